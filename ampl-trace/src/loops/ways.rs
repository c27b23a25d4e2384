//! Functions on the way to calls, and the function that encloses a loop.

use super::flow_graph::Set;

/// Functions from that of a call outwards, for the shapes of a thread; as far as calls of one place have them in common.
#[derive(Clone, Debug)]
pub struct Ways<F> {
    ways: Vec<Option<Vec<F>>>,
}

impl<F: Clone + PartialEq> Ways<F> {
    /// Ways by shape; `None` where one is not known.
    pub fn new(ways: Vec<Option<Vec<F>>>) -> Self {
        Self { ways }
    }

    /// Functions that all of `shapes` are called from, from the innermost outwards; none where that is not known.
    pub fn common(&self, shapes: &Set) -> Vec<F> {
        let mut sorted: Vec<u32> = shapes.iter().copied().collect();
        sorted.sort_unstable();
        let mut ways = sorted.iter().map(|&shape| self.of(shape));
        let Some(mut common) = ways.next().flatten().cloned() else { return Vec::new() };
        for way in ways {
            let Some(way) = way else { return Vec::new() };
            let Some(at) = common.iter().position(|frame| way.contains(frame)) else { return Vec::new() };
            common.drain(..at);
        }
        common
    }

    /// True where that of `shape` is known.
    pub fn is_known(&self, shape: u32) -> bool {
        self.of(shape).is_some()
    }

    fn of(&self, shape: u32) -> Option<&Vec<F>> {
        self.ways.get(shape as usize)?.as_ref()
    }

    /// True where the function around the calls of `inner` makes some of `rest` besides, and others are made outside
    /// of it: then it goes through a loop of its own each time that it is called.
    pub fn encloses(&self, inner: &Set, rest: &Set) -> bool {
        let own = self.common(inner);
        let Some(function) = own.first() else { return false };
        let others = || rest.iter().filter_map(|&shape| self.of(shape));
        others().any(|way| way.contains(function)) && others().any(|way| !way.contains(function))
    }
}
