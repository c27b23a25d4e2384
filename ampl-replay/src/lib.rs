//! Parts of the replayer that need no MPI: what cannot be replayed, sources of wildcard receives, launchers,
//! computation between calls, runs with fewer steps.
#![forbid(unsafe_code)]

pub mod completions;
pub mod computation;
pub mod launcher;

pub mod refusal;
pub mod steps;
pub mod wildcards;
