//! Journals and trace files: what agents record, how it is stored, how it is read back.
//!
//! A rank's agent writes [`record`]s into its [`journal`]; [`compact`](from_journal::compact) turns a journal into the
//! sections of a trace [`format`]; [`Trace`] is the same for readers, whether it comes from a finished trace file or
//! from the journals of a job that died.
//!
//! ```
//! let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/v1/four-ranks.ampl");
//! let trace = ampl_trace::format::read(&std::fs::read(golden)?)?;
//! for rank in &trace.ranks {
//!     println!("rank {} on {}: {} windows", rank.process.rank, rank.process.host, rank.windows.count());
//! }
//! for (function, calls) in trace.function_calls() {
//!     println!("{calls} calls of {}", ampl_core::mpi::Function(function).name());
//! }
//! assert_eq!(trace.ranks.len(), 4);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod args;
mod bits;
pub mod buffers;
pub mod cells;
pub mod census;
mod column;
pub mod communicators;
pub mod current;
pub mod decode;
pub mod error;
pub mod format;
pub mod from_journal;
pub mod gaps;
pub mod grammar;
pub mod journal;
mod last;
mod level;
pub mod loops;
pub mod metadata;
pub mod model;
pub mod permissions;
pub mod places;
pub mod planted;
pub mod record;
pub mod regions;
pub mod request;
mod rounded;
pub mod rounding;
pub mod site;
pub mod spread;
pub mod steps;
pub mod structure;
pub mod time_index;
pub mod timed;
pub mod timestep;
pub mod timing;
pub mod totals;
pub mod varint;
mod window_summary;

pub use error::{Damage, ReadError};
pub use model::{RankTrace, RunInfo, Trace};
