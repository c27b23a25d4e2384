//! Analyses of what ranks did: values in, values out; no text, no files, no clock.
//!
//! A run is opened by `ampl-reader`. This prints the calls of rank 2, and the mean time in MPI with its interval:
//!
//! ```
//! use std::path::Path;
//!
//! use ampl_analysis::estimate::{Scope, rows};
//! use ampl_reader::{Run, directory};
//!
//! let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ampl-trace/tests/golden/v1/four-ranks.ampl");
//! for call in Run::open(&golden)?.rank(2).expect("it left something").calls() {
//!     let call = call?;
//!     println!("{} {:?}", call.function.name(), call.args);
//! }
//! let trace = directory::read(&golden)?;
//! let plan = directory::plan(&trace.run).expect("the run has its configuration");
//! let estimates = rows(&trace, &plan);
//! let of_run = estimates.iter().find(|row| row.scope == Scope::Run && row.metric == "mpi.time");
//! let row = of_run.expect("time in MPI is always measured");
//! println!("{:?} ns ± {:?} of {} ranks", row.mean, row.half_width, row.population);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod actions;
pub mod callgraph;
pub mod calls;
pub mod check;
pub mod comparison;
pub mod computation;
pub mod counted;
pub mod coverage;
pub mod decisions;
pub mod efficiency;
pub mod estimate;
pub mod followed_steps;
pub mod history;
pub mod ideal_network;
pub mod in_call;
pub mod kept;
pub mod live;
pub mod logical;
pub mod matching;
pub mod messages;
pub mod missing_data;
pub mod moved;
pub mod overhead;
pub mod own_time;
pub mod pauses;
pub mod phases;
pub mod placement;
pub mod processors;
pub mod programs;
pub mod query;
#[cfg(test)]
mod random_loops;
pub mod record;
pub mod scaling;
pub mod scope;
pub mod short_regions;
pub mod stop;
pub mod storage;
pub mod strata;
pub mod timesteps;
pub mod topology;
pub mod uncovered;
pub mod unstored;
pub mod verdict;
pub mod waits;
pub mod what_if;
pub mod window_times;
