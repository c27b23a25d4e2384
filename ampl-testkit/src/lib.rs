//! Seeded synthetic jobs and runs, and naive oracles; never part of what is installed.
//!
//! ```
//! use ampl_testkit::{Kind, Population};
//!
//! let mut job = Population::new(Kind::Bimodal, 1000, 7);
//! let window = job.next_window();
//! let mean = window.iter().map(|rank| rank.y).sum::<f64>() / 1000.0;
//! assert!((190.0..210.0).contains(&mean), "half of the ranks take three times as long as the others");
//! // A seed gives the same job again.
//! assert_eq!(window, Population::new(Kind::Bimodal, 1000, 7).next_window());
//! ```
#![forbid(unsafe_code)]

pub mod classes;
#[cfg(feature = "runs")]
pub mod equal_ranks;
pub mod medoids;
pub mod population;
#[cfg(feature = "runs")]
pub mod runs;
#[cfg(feature = "runs")]
pub mod splits;
#[cfg(feature = "symbols")]
pub mod symbols;
#[cfg(feature = "runs")]
pub mod synthetic;
#[cfg(feature = "table")]
pub mod table;
#[cfg(feature = "runs")]
pub mod timed;
#[cfg(feature = "runs")]
pub mod times;
pub mod topology;

pub use classes::{ClassJob, Classes};
pub use population::{Kind, Population};
