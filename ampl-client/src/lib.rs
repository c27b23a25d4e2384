//! The decider: summaries in, directives out, and the tree that carries both.
//!
//! Nothing here performs I/O, reads a clock, or knows MPI: the runtime, the simulator and the
//! tests drive the same state machines.
#![forbid(unsafe_code)]

pub mod policy;
pub mod simulate;
pub mod tree;

pub use policy::Policy;
pub use tree::{Node, Topology, TreeError};
