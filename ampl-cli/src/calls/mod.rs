//! The places where MPI functions are called, as tables have them.

pub mod label;
pub mod lateness;
pub mod objects;
pub mod places;
pub mod recorded;
pub mod rows;
pub mod table;

pub use objects::Objects;
pub use recorded::message_bytes;
