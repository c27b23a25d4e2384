//! Opens a run, finished, live or dead: ranks, calls by name, windows, call sites, communicators, damage.
//!
//! [`Run::open`] takes a run directory, a trace file or a directory of journals. It reads the list of sections; every
//! section is read when it is asked for. The cost of opening a run is that of what is asked.
//!
//! ```
//! use std::path::Path;
//!
//! use ampl_reader::Run;
//!
//! let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ampl-trace/tests/golden/v1/four-ranks.ampl");
//! let run = Run::open(&golden)?;
//! assert_eq!(run.ranks().len(), 4);
//! let rank = run.rank(2).expect("the rank left something");
//! for call in rank.calls() {
//!     let call = call?;
//!     println!("{} {:?}", call.function.name(), call.args);
//! }
//! for group in run.structure().groups() {
//!     println!("{} ranks share a grammar of {} signatures", group.len(), group.signatures());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![deny(unsafe_code)]

pub mod call_selection;
pub mod constants;
pub mod directory;
pub mod error;
pub mod gaps;
#[allow(unsafe_code)]
pub mod map;
mod names;
pub mod run;
pub mod selection;
pub mod sites;
pub mod time_index;

pub use ampl_trace::communicators::{Communicator, Communicators};
pub use ampl_trace::decode::{Call, Calls, Event, Events, Timed};
pub use ampl_trace::gaps::{Gap, Part as GapPart, Reason};
pub use ampl_trace::regions::{Edge, Moment, Region, RegionEvent};
/// The recorded data, as values.
pub use ampl_trace::{Damage, RankTrace, RunInfo, Trace, cells, grammar, model, structure, totals};
pub use error::OpenError;
pub use run::{Rank, Run};
pub use sites::Symbols;
pub use time_index::TimeIndex;
