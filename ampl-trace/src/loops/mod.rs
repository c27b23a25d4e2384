//! The loop of a thread that advances time, from the grammar of its calls.
//!
//! Calls are compared by *shape*, a function and its place; arguments and trip counts of inner loops are ignored. Shapes
//! that follow each other make a flow graph, whose natural loops are the program's. Of loops inside each other the
//! outermost one is taken; one inside it, where that has nine tenths of the calls, is gone through equally often each
//! time, and lies in the same function. Iterations are counted inside the loop: steps before it that warm up are
//! counted apart.
//!
//! Calls by a function around MPI all have its place. Each way that they come by is a place of its own.
//!
//! Readers examine finished runs by it, and agents the calls of a running program.

mod arguments;
mod build;
mod calls;
mod ends;
mod executions;
mod find;
mod flow_graph;
mod fold;
mod iterations;
mod places;
mod regular;
mod repetition;
mod sequence;
mod trips;
mod turns;
mod uncut;
mod ways;

pub use arguments::{hashes, raw_hashes};
pub use calls::{Calls, Steps, TooIrregular};
pub use find::{Finder, Found};
pub use flow_graph::{FlowGraph, Set};
pub use fold::fold;
pub use iterations::{Iterations, Walk};
pub use regular::Regular;
pub use repetition::longest;
pub use sequence::{Anchor, Flow, MOST_WORK, Part, Sequence, Slice, Token};
pub use ways::Ways;
