//! Nodes by what they have in common: names and their order, without durations and numbers of times.

use rustc_hash::FxHashMap;

use super::dag::{Dag, NodeId};
use super::names::{Name, NameId};

/// Number of a shape.
pub type Shape = u32;

/// The shape of time between calls, which is part of what is around it.
pub const NOTHING: Shape = 0;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Content {
    Nothing,
    Leaf(NameId),
    /// A node of that name that is more than parts of another.
    Named(NameId, Shape),
    /// Shapes of which neighbours differ.
    Sequence(Box<[Shape]>),
}

/// Shapes of all nodes of a graph.
#[derive(Clone, Debug)]
pub struct Shapes {
    of_nodes: Vec<Shape>,
    /// Nodes of that shape that follow each other in each node, which is one of them itself, or holds nothing else.
    units: Vec<u64>,
    contents: Vec<Content>,
}

impl Shapes {
    /// Shapes of the nodes of `dag`.
    pub fn of(dag: &Dag) -> Self {
        let mut known: FxHashMap<Content, Shape> = FxHashMap::default();
        let mut contents = vec![Content::Nothing];
        let mut intern = |content: Content| {
            *known.entry(content).or_insert_with_key(|content| {
                contents.push(content.clone());
                contents.len() as Shape - 1
            })
        };
        let (mut of_nodes, mut units): (Vec<Shape>, Vec<u64>) = Default::default();
        let mut runs: Vec<Shape> = Vec::new();
        for node in 0..dag.len() as NodeId {
            let (name, id) = (dag.name(node), dag.name_id(node));
            if dag.leaf(node).is_some() {
                let is_outside = *name == Name::Outside;
                of_nodes.push(if is_outside { NOTHING } else { intern(Content::Leaf(id)) });
                units.push(1);
                continue;
            }
            runs.clear();
            let mut own = 0u64;
            for edge in dag.parts(node) {
                let shape = of_nodes[edge.node as usize];
                if shape != NOTHING {
                    if runs.last() != Some(&shape) {
                        runs.push(shape);
                    }
                    own = own.saturating_add(units[edge.node as usize].saturating_mul(edge.times.into()));
                }
            }
            let inner = match runs[..] {
                [] => NOTHING,
                [shape] => shape,
                _ => intern(Content::Sequence(runs.as_slice().into())),
            };
            let is_transparent = name.is_part() && runs.len() <= 1;
            units.push(if is_transparent { own } else { 1 });
            of_nodes.push(if name.is_part() { inner } else { intern(Content::Named(id, inner)) });
        }
        Self { of_nodes, units, contents }
    }

    /// Shape of `node`.
    pub fn get(&self, node: NodeId) -> Shape {
        self.of_nodes[node as usize]
    }

    /// Nodes of its shape that follow each other in `node`.
    pub fn units(&self, node: NodeId) -> u64 {
        self.units[node as usize]
    }

    /// Shape of all that `node` holds, but for time between calls; `None` where there are several, or nothing.
    pub fn only(&self, dag: &Dag, node: NodeId) -> Option<Shape> {
        let mut shapes =
            dag.parts(node).iter().map(|edge| self.get(edge.node)).filter(|&shape| shape != NOTHING);
        let first = shapes.next()?;
        shapes.all(|shape| shape == first).then_some(first)
    }

    /// True for a node that only holds nodes of its own shape, or time between calls.
    pub fn is_transparent(&self, dag: &Dag, node: NodeId) -> bool {
        dag.name(node).is_part() && !dag.parts(node).is_empty() && !self.is_mixed(dag, node)
    }

    fn is_mixed(&self, dag: &Dag, node: NodeId) -> bool {
        let own = self.get(node);
        dag.parts(node).iter().any(|edge| {
            let shape = self.get(edge.node);
            shape != NOTHING && shape != own
        })
    }

    /// True where nodes of that shape hold others in a sequence.
    pub fn is_sequence(&self, shape: Shape) -> bool {
        matches!(self.contents[shape as usize], Content::Sequence(_))
    }
}
