//! Pure decisions: what ampl computes, without any I/O, clock, MPI handle or global state.
//!
//! Everything here is a function of its arguments and a recorded seed, so a live run, the
//! simulator and a test reach the same answer.
//!
//! ```
//! use ampl_core::config::Config;
//! use ampl_core::plan::Plan;
//! use ampl_core::stats::quantile::normal_two_sided;
//! use ampl_core::stats::sizing::simple_random;
//!
//! let (config, _) = Config::parse("[window]\nmarker = \"period:250ms\"\n").expect("a valid job file");
//! let plan = Plan::new(config, 1000).expect("a job of that size");
//! assert_eq!(plan.groups[0].members.len(), 1000);
//! // Fewest ranks whose mean is within 5 % at 95 %, where the ranks' relative variance is 0.04.
//! let allowed = (0.05 / normal_two_sided(0.95)).powi(2);
//! assert_eq!(simple_random(1000, 0.04, allowed), 58);
//! ```
#![forbid(unsafe_code)]

pub mod cluster;
pub mod config;
pub mod device_call;
pub mod draw;
pub mod hook_source;
pub mod message;
pub mod mpi;
pub mod naming;
pub mod nodes;
pub mod permute;
pub mod plain;
pub mod plan;
pub mod process_stat;
pub mod program;
pub mod refusal;
pub mod since;
pub mod stats;
pub mod units;
pub mod value;
pub mod window_growth;
pub mod window_set;
