//! Sampling statistics: what ranks report, how many of them a bound takes, and what may be said
//! from those that were kept.
//!
//! Notation of all modules: M ranks in a group; in one window rank i makes n_i observations with
//! total y_i; the window's mean is the ratio R = Σy/Σn; residuals are e_i = y_i − R n_i and,
//! without a unit, z_i = e_i/(N̄ R), with N̄ = Σn/M.

pub mod bins;
pub mod estimate;
pub mod moments;
pub mod observers;
pub mod outliers;
pub mod quantile;
pub mod sizing;
pub mod strata;

pub use estimate::{Basis, Estimate};
pub use moments::Moments;
