//! What runs in every process of a job: windows, accumulators, what is kept, and the journal that
//! survives the process.
//!
//! No MPI and no clock: ticks, handles and decoded arguments come in as numbers, so all of this
//! runs in tests without a job. The hot path takes no lock and allocates nothing in steady state.
#![deny(unsafe_code)]

pub mod accumulate;
pub mod closed;
pub mod counters;
pub mod current;
pub mod descriptor;
#[allow(unsafe_code)]
pub mod fetch;
#[allow(unsafe_code)]
pub mod floating;
pub mod governor;
pub mod handles;
mod held;
pub mod journal;
mod log;
#[allow(unsafe_code)]
mod map;
pub mod meter;
pub mod named;
mod node;
mod numbers;
pub mod partners;
mod passing;
pub mod paths;
mod pending;
pub mod policies;
mod pricing;
pub mod regions;
pub mod repeats;
pub mod requests;
mod room;
pub mod shared;
mod shelf;
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
mod verdicts;
pub mod window;

pub use map::ReadOnlyMap;
pub use thread::{CallEnd, Thread};
