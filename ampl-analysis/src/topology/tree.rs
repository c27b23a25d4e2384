//! Trees: isomorphism from the centres, after Aho, Hopcroft and Ullman.

use rustc_hash::FxHashMap;

use super::Match;
use super::graph::Graph;
use super::shape::{Parent, Shape};

/// The k-ary or binomial tree that `graph` is, which is a tree.
pub(super) fn tree(graph: &Graph) -> Option<Match> {
    let vertices = graph.vertices();
    let degrees = graph.degrees();
    let most = *degrees.last()?;
    let arities = [most.saturating_sub(1), most].into_iter().filter(|&arity| arity >= 2);
    let trees = arities.map(|arity| Shape::Tree { vertices, arity });
    let binomials = [Parent::WithoutLowestBit, Parent::WithoutHighestBit];
    let binomials = binomials.map(|parent| Shape::BinomialTree { vertices, parent });
    trees.chain(binomials).find_map(|shape| {
        let other = shape.graph()?;
        if other.degrees() != degrees {
            return None;
        }
        Some(Match { positions: isomorphism(graph, &other)?, shape })
    })
}

/// For each vertex of the tree `a` a vertex of the tree `b`, so that neighbours stay neighbours.
pub(super) fn isomorphism(a: &Graph, b: &Graph) -> Option<Vec<u32>> {
    let (centres, others) = (centres(a), centres(b));
    if a.vertices() != b.vertices() || centres.len() != others.len() {
        return None;
    }
    let mut kinds = FxHashMap::default();
    let rooted = Rooted::new(b, *others.first()?, &mut kinds);
    centres.into_iter().map(|centre| Rooted::new(a, centre, &mut kinds)).find_map(|tree| tree.onto(&rooted))
}

/// The one or two vertices in the middle of every longest path.
fn centres(tree: &Graph) -> Vec<u32> {
    let mut degrees: Vec<u32> = (0..tree.vertices()).map(|vertex| tree.degree(vertex)).collect();
    let mut leaves: Vec<u32> = (0..tree.vertices()).filter(|&vertex| degrees[vertex as usize] <= 1).collect();
    let mut left = tree.vertices() as usize;
    while left > 2 {
        left -= leaves.len();
        let mut inner = Vec::new();
        for &leaf in &leaves {
            degrees[leaf as usize] = 0;
            for &next in tree.neighbours(leaf) {
                let degree = &mut degrees[next as usize];
                // One that has been taken off already is at 0.
                if *degree > 0 {
                    *degree -= 1;
                    if *degree == 1 {
                        inner.push(next);
                    }
                }
            }
        }
        leaves = inner;
    }
    leaves
}

/// A tree with a root; vertices of one kind have subtrees that are alike.
struct Rooted<'a> {
    tree: &'a Graph,
    order: Vec<u32>,
    parents: Vec<u32>,
    kinds: Vec<u32>,
}

impl<'a> Rooted<'a> {
    fn new(tree: &'a Graph, root: u32, known: &mut FxHashMap<Vec<u32>, u32>) -> Self {
        let mut parents = vec![u32::MAX; tree.vertices() as usize];
        let mut order = vec![root];
        let mut at = 0;
        while let Some(&vertex) = order.get(at) {
            at += 1;
            for &next in tree.neighbours(vertex) {
                if next != parents[vertex as usize] {
                    parents[next as usize] = vertex;
                    order.push(next);
                }
            }
        }
        let mut kinds = vec![0; tree.vertices() as usize];
        for &vertex in order.iter().rev() {
            let children = tree.neighbours(vertex).iter().filter(|&&next| next != parents[vertex as usize]);
            let mut below: Vec<u32> = children.map(|&child| kinds[child as usize]).collect();
            below.sort_unstable();
            let fresh = known.len() as u32;
            kinds[vertex as usize] = *known.entry(below).or_insert(fresh);
        }
        Self { tree, order, parents, kinds }
    }

    /// Children of `vertex`, by kind.
    fn children(&self, vertex: u32) -> Vec<u32> {
        let all = self.tree.neighbours(vertex).iter().copied();
        let mut children: Vec<u32> = all.filter(|&next| next != self.parents[vertex as usize]).collect();
        children.sort_by_key(|&child| self.kinds[child as usize]);
        children
    }

    /// For each vertex one of `other`, if the roots are of one kind.
    fn onto(&self, other: &Self) -> Option<Vec<u32>> {
        let (root, others) = (*self.order.first()?, *other.order.first()?);
        if self.kinds[root as usize] != other.kinds[others as usize] {
            return None;
        }
        let mut mapping = vec![0; self.order.len()];
        mapping[root as usize] = others;
        for &vertex in &self.order {
            let onto = other.children(mapping[vertex as usize]);
            for (child, onto) in self.children(vertex).into_iter().zip(onto) {
                mapping[child as usize] = onto;
            }
        }
        Some(mapping)
    }
}
