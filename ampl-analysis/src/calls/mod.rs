//! The places where MPI functions are called, with their calls, times, messages, and who is late.

mod lateness;
mod objects;
mod places;
mod recorded;
mod rows;

pub use lateness::Late;
pub use objects::Objects;
pub use places::{NOWHERE, Number, Parts, Path, Place, Places, recorded, time_ns};
pub use recorded::{Comms, Key, Recorded, Sizes, message_bytes, of as recorded_calls};
pub use rows::{Basis, Bytes, CallTable, Peers, Row, SizeClass, table};
