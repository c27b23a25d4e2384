//! The decider: summaries in, directives out, and the tree that carries both.
//!
//! Nothing here performs I/O, reads a clock, or knows MPI: the runtime, the simulator and the
//! tests drive the same state machines.
//!
//! ```
//! use ampl_client::simulate::{Census, Job, Run};
//! use ampl_core::config::Config;
//! use ampl_core::message::MetricSummary;
//! use ampl_core::plan::Plan;
//!
//! let file = "[sampling]\nseed = 7\n[[metric]]\nname = \"mpi.time\"\nrole = \"guide\"\n";
//! let (config, _) = Config::parse(file).expect("a valid job file");
//! let job = Job::new(Plan::new(config, 500).expect("a job of that size"));
//! let (mut run, _) = Run::new(&job, 7);
//! let mut kept = Vec::new();
//! for number in 0..3 * job.interval() {
//!     let mut window = job.window(number);
//!     for (rank, own) in window.guides[0].iter_mut().enumerate() {
//!         let ns = 1e6 + 1e4 * (rank as f64 * 1.7 + number as f64).sin();
//!         *own = MetricSummary { n: 1, sum: ns, sum_sq: ns * ns, min: ns, max: ns };
//!     }
//!     let census = Census::of_all(&job, &window);
//!     let (draws, _) = run.draw_all(&job, &window, &census);
//!     run.end_window(&job, &window, &census, &draws);
//!     kept.push(draws.size(0));
//! }
//! // Nothing is known of the first window. Ranks that hardly differ need a small sample later.
//! assert!(kept.last() < Some(&50), "{kept:?}");
//! ```
#![forbid(unsafe_code)]

pub mod policy;
pub mod simulate;
pub mod steps;
pub mod tree;

pub use policy::Policy;
pub use tree::{Node, Topology, TreeError};
