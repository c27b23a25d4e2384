//! Windows, accumulators, retention and the journal of every process of a job; the journal survives the process.
//!
//! No MPI and no clock: ticks, handles and decoded arguments come in as numbers, so all of this
//! runs in tests without a job. The hot path takes no lock and allocates nothing in steady state.
//!
//! ```
//! use std::sync::Arc;
//!
//! use ampl_agent::journal::{Identity, Journal};
//! use ampl_agent::shared::Shared;
//! use ampl_agent::{CallEnd, Thread};
//! use ampl_core::{config::Config, mpi::ids, plan::Plan, units::Rank};
//! use ampl_trace::{from_journal::compact, timing::Settings};
//!
//! let place = tempfile::tempdir()?;
//! let (config, _) = Config::parse("[window]\nmarker = \"mpi:MPI_Barrier\"\n").expect("a valid job file");
//! let plan = Plan::new(config, 1).expect("a job of one rank");
//! let identity = Identity { ranks: 1, ..Identity::default() };
//! let journal = Journal::create(&place.path().join("journal"), &identity)?.unmeasured();
//! let resolve = |address| ("app".to_owned(), address);
//! let shared = Arc::new(Shared::new(Arc::new(journal), plan, Rank(0), resolve));
//! let mut thread = Thread::new(shared.clone(), 0, 0).expect("room for a journal");
//! // A barrier from tick 40 to tick 60: the window before it ends where it begins.
//! let (function, address, start, end) = (ids::MPI_BARRIER, 0x40, 40, 60);
//! thread.enter(function, address, start);
//! let terminal = thread.terminal(function, address, 0, &[1], &[]);
//! let (sent, received, flags, timed, apart) = (0, 0, 0, true, false);
//! thread.leave(&CallEnd { function, address, start, end, sent, received, flags, terminal, timed, apart });
//! thread.finish(100);
//! let contents = shared.journal.contents().expect("a readable journal");
//! let read = compact(contents.bytes(), Settings { error: 0.0, floor_ns: 0 }).expect("a whole header");
//! assert_eq!(read.rank.windows.count(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![deny(unsafe_code)]

pub mod accumulate;
pub mod buffers;
mod call_end;
pub mod call_requests;
mod call_sequence;
pub mod closed;
pub mod counters;
pub mod current;
mod cursor;
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
mod known_regions;
#[allow(unsafe_code)]
mod map;
mod marker_credits;
pub mod memory_limit;
pub mod meter;
mod node;
mod numbers;
pub mod partners;
pub mod paths;
mod pending;
pub mod policies;
pub mod polls;
#[allow(unsafe_code)]
pub mod prefetch;
mod pricing;
pub mod reading;
mod region_stack;
pub mod regions;
pub mod repeats;
mod request_table;
pub mod requests;
pub mod shared;
pub mod signatures;
pub mod sites;
pub mod slots;
mod spin;
pub mod stopwatch;
pub mod stream;
mod sync;
pub mod thread;
pub mod transport;
#[allow(unsafe_code)]
pub mod uncancelled;
pub mod window;
mod window_decisions;

pub use call_end::CallEnd;
pub use map::ReadOnlyMap;
pub use thread::Thread;
