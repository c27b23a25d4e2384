//! The trace file: one self-describing file of checksummed sections.
//!
//! A reader refuses a version it does not know.

mod buffers;
mod bundle;
mod common;
mod file;
mod gaps;
pub mod kind;
mod places;
mod processes;
mod sections;
mod succession;
mod trace;
pub mod v1;
mod weights;
mod windows;

pub use file::TraceFile;
pub use gaps::round_gaps;
pub use kind::Kind;
pub use processes::round_facts;
pub use sections::{Part, rank_parts, run_parts};
pub use trace::{Writer, finish, place_sites, read};
