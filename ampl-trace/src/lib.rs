//! Journals and trace files: what agents record, how it is stored, how it is read back.
//!
//! A rank's agent writes [`record`]s into its [`journal`]; [`compact`](from_journal::compact) turns a journal into the
//! sections of a trace [`format`]; [`Trace`] is the same for readers, whether it comes from a finished trace file or
//! from the journals of a job that died.
#![forbid(unsafe_code)]

pub mod args;
mod bits;
pub mod cells;
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
pub mod model;
pub mod places;
pub mod record;
pub mod request;
pub mod site;
pub mod structure;
pub mod timed;
pub mod timing;
pub mod totals;
pub mod varint;

pub use error::{Damage, ReadError};
pub use model::{RankTrace, RunInfo, Trace};
