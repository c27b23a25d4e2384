//! Parts of the replayer that need no MPI: what cannot be replayed, sources of wildcard receives, launchers, constants
//! of another MPI, computation between calls, runs with fewer steps, comparison of a run with its recorded replay.
//!
//! ```
//! use ampl_replay::launcher::{Launched, Mpi};
//!
//! let variables = [("OMPI_COMM_WORLD_RANK", "3"), ("OMPI_COMM_WORLD_SIZE", "8")];
//! let variable = |name: &str| {
//!     let found = variables.iter().find(|(known, _)| *known == name);
//!     found.map(|(_, value)| (*value).to_owned())
//! };
//! let expected = Launched { rank: 3, ranks: Some(8), mpi: Some(Mpi::OpenMpi) };
//! assert_eq!(Launched::of(&variable), Some(expected));
//! ```
#![forbid(unsafe_code)]

pub mod completions;
pub mod computation;
pub mod constants;
pub mod content;
pub mod launcher;
pub mod refusal;
pub mod shares;
pub mod steps;
pub mod wildcards;
pub mod windows;

use std::io::Write as _;

/// Writes `text` as a line of standard error, by one write: ranks share the place, and their lines must not run into
/// each other.
pub fn say(text: &str) {
    let _ = std::io::stderr().write_all(format!("ampl-replay: {text}\n").as_bytes());
}
