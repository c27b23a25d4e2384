//! Pure decisions: what ampl computes, without any I/O, clock, MPI handle or global state.
//!
//! Everything here is a function of its arguments and a recorded seed, so a live run, the
//! simulator and a test reach the same answer.
#![forbid(unsafe_code)]

pub mod cluster;
pub mod config;
pub mod draw;
pub mod message;
pub mod mpi;
pub mod naming;
pub mod nodes;
pub mod permute;
pub mod plan;
pub mod program;
pub mod refusal;
pub mod stats;
pub mod units;
pub mod value;
