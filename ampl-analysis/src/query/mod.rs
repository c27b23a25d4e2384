//! Questions to the calls of a run: sums by function and place, messages between ranks, shares of time, ranks.
//!
//! Numbers of calls and bytes come from the structure, which has every recorded call. A grammar is read once for each
//! rank, and loops are not expanded. Times come from the census where it has them, else from the windows whose times
//! are stored. A part of the time cuts calls at its ends: time counts as far as it lies inside, and a call counts
//! where it ends.

mod bytes;
pub mod distribution;
pub mod durations;
mod estimated;
pub mod index;
#[cfg(test)]
mod index_tests;
mod keys;
pub mod matrix;
mod part;
mod positions;
mod regions;
mod spans;
mod stored;
pub mod summary;
#[cfg(test)]
mod tests;
pub mod timeline;
mod visits;
pub mod volume;

pub use part::Extent;
pub use regions::ranks_with_regions;
