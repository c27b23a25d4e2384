//! Complete call trees of ranks, in the order of time, as a graph that has equal subtrees once.
//!
//! Nodes are calls, regions, gaps, and the times between calls; a node without parts has a duration, and others last as
//! long as their parts. Equal subtrees are one node. Within a [`Bound`] similar durations are equal, too: a node keeps
//! the least and the greatest that it stands for, so that every [`Sums`] has the limits of the true value. Names, bytes
//! and design weights are never merged.
//!
//! The graph is built from the grammar. Where times are stored, rules are expanded; elsewhere a rule is one node, and
//! a repetition count is one number. Rules are kept as nodes that hold parts ([`Name::Body`]), and so are runs of more
//! nodes than one may hold ([`Name::Split`]).
//!
//! # Source
//! A. Knüpfer, W. E. Nagel, *New Algorithms for Performance Trace Analysis Based on Compressed Complete Call Graphs*,
//! ICCS 2005. Departures: time between calls is a node of its own, so that limits of durations stand in one place;
//! similar durations share fixed bins, so that the graph does not depend on the order of what comes first; splitting
//! follows the rules of the grammar.
//!
//! ```
//! use std::path::Path;
//!
//! use ampl_analysis::callgraph::{CallGraph, Options};
//! use ampl_reader::{Run, selection::Selection};
//!
//! let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ampl-trace/tests/golden/v1/four-ranks.ampl");
//! let run = Run::open(&golden)?;
//! let everything = Selection::new(None, None, None).expect("it has a length");
//! let graph = CallGraph::of(&run, &everything, Options::default(), |_| ());
//! let sums = graph.sums(graph.ranks().iter().map(|rank| (rank.node, 1)));
//! println!("{} calls in {} nodes", sums.calls, graph.metrics().nodes);
//! # assert!(sums.calls > 0 && graph.metrics().r_n() > 1.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bound;
mod dag;
mod fragment;
mod frames;
mod graph;
mod job;
mod names;
mod rows;
mod shapes;
mod times;
mod view;
mod walk;

pub use bound::{Bound, Span};
pub use dag::{Dag, Edge, Facts, NodeId};
pub use fragment::Fault;
pub use frames::Around;
pub use graph::{CallGraph, Metrics, RankTree, Sums};
pub use job::{BRANCHING, Builder, Options, weights};
pub use names::{Name, NameId, Names, Place, Region, RegionName};
pub use rows::{Kind, Report, Row, Times, Without};
pub use view::{Item, Repeats, Tree, View, What};

#[cfg(test)]
mod tests;
