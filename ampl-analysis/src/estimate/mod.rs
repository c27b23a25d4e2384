//! Mean of each metric with its confidence interval: per window, per update interval and of the run.

mod coverage;
mod observed;
pub(crate) mod pool;
mod rows;
#[cfg(test)]
mod tests;
mod verify;

pub use coverage::windows_lacking;
pub use observed::windows_per_update;
pub use rows::{Row, Scope, mpi_shares, rows};
pub use verify::{Check, inside};
