//! Functions on the way to calls, and the function that encloses a loop.

use ampl_trace::totals::Totals;
use rustc_hash::FxHashMap;

use super::flow_graph::Set;
use super::shapes::{Frame, Shape};

/// First byte of the function around an address, where known.
pub type Around<'a> = dyn FnMut(&str, u64) -> Option<u64> + 'a;

/// Functions from that of a call outwards, as far as calls of one place have them in common.
type Way<'a> = Vec<Frame<'a>>;

/// Ways to the shapes of a thread.
#[derive(Clone, Debug)]
pub struct Ways<'a> {
    ways: Vec<Option<Way<'a>>>,
}

/// Ways that sampled calls of a run came by: function, place, functions outwards.
#[derive(Clone, Debug, Default)]
pub struct Sampled<'a> {
    ways: FxHashMap<(u16, Vec<Frame<'a>>), Way<'a>>,
}

impl<'a> Sampled<'a> {
    /// Ways that `totals` has.
    pub fn of(totals: &'a Totals) -> Self {
        let way =
            |known: ampl_trace::totals::Known<'a>| Some(((known.function, known.path), known.callers?.0));
        Self { ways: totals.known().filter_map(way).collect() }
    }

    /// Ways to `shapes`.
    pub fn to(&self, shapes: &[Shape<'a>], around: &mut Around<'_>) -> Ways<'a> {
        let way = |shape: &Shape<'a>| {
            let (&(module, offset), callers) = shape.path.split_first()?;
            let mut way: Way<'a> = Vec::new();
            if let Some(start) = around(module, offset) {
                // As sampled functions are given.
                way.push((module, start.saturating_add(1)));
            }
            match callers {
                [] => way.extend(self.ways.get(&(shape.function, shape.path.clone()))?),
                _ => way.extend(callers),
            }
            Some(way)
        };
        Ways { ways: shapes.iter().map(way).collect() }
    }
}

impl<'a> Ways<'a> {
    /// Functions that all of `shapes` are called from, from the innermost outwards; none where that is not known.
    pub fn common(&self, shapes: &Set) -> Way<'a> {
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

    fn of(&self, shape: u32) -> Option<&Way<'a>> {
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
