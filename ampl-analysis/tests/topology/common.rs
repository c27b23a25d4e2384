//! Claims of the analysis, checked.

use ampl_analysis::topology::{Graph, Options, Parent, Pattern, Shape, Topology, identify, printed};
use ampl_testkit::topology::{Claim, Edges, check};

/// Topology of `graph`.
pub fn identified((vertices, edges): &Edges) -> Topology {
    identify(&Graph::from_edges(*vertices, edges).unwrap(), &Options::default())
}

/// A shape's name, sizes, and which axes are periodic.
pub type Name = (String, Vec<u32>, Vec<bool>);

/// Names of one pattern; the first is the one that is said.
pub struct Names {
    pub names: Vec<Name>,
}

impl Names {
    /// True if that is one of the names.
    pub fn is(&self, name: &str, dims: &[u32], periodic: &[bool]) -> bool {
        self.names.iter().any(|own| own.0 == name && own.1 == dims && own.2 == periodic)
    }
}

/// Name of `shape`.
pub fn name(shape: &Shape) -> Name {
    let axes = shape.axes();
    (
        shape.name().to_owned(),
        axes.iter().map(|axis| axis.size).collect(),
        axes.iter().map(|axis| axis.periodic).collect(),
    )
}

/// Checks every claim of `topology` of `graph`, and that every rank is told of once.
pub fn claims(graph: &Edges, topology: &Topology) {
    let mut told: Vec<u32> = topology.isolated.clone();
    told.extend(topology.unknown.iter().flatten());
    for pattern in topology.patterns.iter().map(printed) {
        for copy in &pattern.copies {
            told.extend(&copy.ranks);
            let place = |rank: u32| copy.ranks.binary_search(&rank).ok().map(|at| at as u32);
            let edges: Vec<(u32, u32)> =
                graph.1.iter().filter_map(|&(u, v)| Some((place(u)?, place(v)?))).collect();
            let (name, dims, periodic) = name(&pattern.shape);
            let claim = Claim {
                name: &name,
                dims,
                periodic,
                arity: match pattern.shape {
                    Shape::Tree { arity, .. } => Some(arity),
                    _ => None,
                },
                cleared_bit: match pattern.shape {
                    Shape::BinomialTree { parent: Parent::WithoutLowestBit, .. } => Some("lowest"),
                    Shape::BinomialTree { parent: Parent::WithoutHighestBit, .. } => Some("highest"),
                    _ => None,
                },
                coordinates: copy.positions.iter().map(|&at| pattern.shape.coordinates(at)).collect(),
            };
            if let Err(fault) = check(&claim, copy.ranks.len() as u32, &edges) {
                panic!("{:?}: {fault}", pattern.shape);
            }
        }
    }
    told.sort_unstable();
    assert_eq!(told, (0..graph.0).collect::<Vec<_>>());
}

/// Names of the one pattern that all of `graph` is, after it has been checked; `None` where it is none.
pub fn whole(graph: &Edges) -> Option<Names> {
    let topology = identified(graph);
    claims(graph, &topology);
    let [pattern] = &topology.patterns[..] else { return None };
    let printed = printed(pattern);
    let Pattern { shape, aliases, copies } = &*printed;
    (copies.len() == 1 && topology.unknown.is_empty() && topology.isolated.is_empty())
        .then(|| Names { names: std::iter::once(shape).chain(aliases).map(name).collect() })
}
