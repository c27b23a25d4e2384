//! Share of the ranks' time that computes, and the ranks that the others wait for.
//!
//! [`rows`] has the run and each of its windows; [`run_times`] the times that the run's row rests on.

mod bounds;
mod by_program;
mod imbalance;
mod rows;
mod run;
mod shares;
#[cfg(test)]
mod tests;

pub use bounds::Bounds;
pub use by_program::{OfProgram, busiest, by_program, sleeps};
pub use imbalance::{Bound, Course, Imbalance, Lost};
pub use rows::{Basis, Row, SlowestHost, SlowestRank, parts, rows};
pub use run::{RunTimes, known_mpi_share, measured_share, run_times, run_times_of};
pub use shares::Shares;
