//! Parts of the replayer that need no MPI: what cannot be replayed, sources of wildcard receives, launchers.
#![forbid(unsafe_code)]

pub mod completions;
pub mod launcher;
pub mod refusal;
pub mod wildcards;
