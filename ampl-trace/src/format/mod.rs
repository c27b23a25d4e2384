//! The trace file: one self-describing file of checksummed sections.
//!
//! A reader refuses a version it does not know.

mod column;
mod file;
mod packed;
mod sections;
mod trace;
pub mod v1;
mod weights;
mod windows;

pub use file::TraceFile;
pub use sections::{Part, rank_parts, run_parts};
pub use trace::{Writer, finish, place_sites, read};
