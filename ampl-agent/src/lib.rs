//! Windows, accumulators, retention and the journal of every process of a job; the journal survives the process.
//!
//! No MPI and no clock: ticks, handles and decoded arguments come in as numbers, so all of this
//! runs in tests without a job. The hot path takes no lock and allocates nothing in steady state.
#![deny(unsafe_code)]

pub mod accumulate;
pub mod call_requests;
mod call_sequence;
pub mod closed;
pub mod counters;
pub mod current;
pub mod declared;
pub mod descriptor;
#[allow(unsafe_code)]
pub mod floating;
mod free_space;
mod gaps;
mod gathered;
pub mod governor;
pub mod handles;
mod held;
pub mod journal;
#[allow(unsafe_code)]
mod map;
mod marker_credits;
pub mod meter;
mod node;
mod numbers;
pub mod partners;
pub mod paths;
mod pending;
pub mod policies;
#[allow(unsafe_code)]
pub mod prefetch;
mod pricing;
pub mod reading;
pub mod regions;
pub mod repeats;
mod request_table;
pub mod requests;
pub mod shared;
pub mod signatures;
pub mod sites;
pub mod slots;
pub mod stopwatch;
pub mod stream;
mod sync;
pub mod thread;
pub mod transport;
#[allow(unsafe_code)]
pub mod uncancelled;
pub mod window;
mod window_decisions;

pub use map::ReadOnlyMap;
pub use thread::{CallEnd, Thread};
