//! Functions on the way to calls.

use ampl_trace::loops::Ways;
use ampl_trace::totals::{FirstCalls, Totals, Turns};
use rustc_hash::FxHashMap;

use super::shapes::{Frame, Shape};

/// First byte of the function around an address, where known.
pub type Around<'a> = dyn FnMut(&str, u64) -> Option<u64> + 'a;

/// Functions from that of a call outwards, as far as calls of one place have them in common.
type Way<'a> = Vec<Frame<'a>>;

/// Ways that sampled calls of a run came by: function, place, functions outwards.
#[derive(Clone, Debug, Default)]
pub struct Sampled<'a> {
    ways: FxHashMap<(u16, Vec<Frame<'a>>), Way<'a>>,
    first: FxHashMap<(u16, Vec<Frame<'a>>), FirstCalls>,
    turns: FxHashMap<(u16, Vec<Frame<'a>>), Turns>,
}

impl<'a> Sampled<'a> {
    /// Ways that `totals` has.
    pub fn of(totals: &'a Totals) -> Self {
        let way =
            |known: ampl_trace::totals::Known<'a>| Some(((known.function, known.path), known.callers?.0));
        let first = |known: ampl_trace::totals::Known<'a>| Some(((known.function, known.path), known.first?));
        Self {
            ways: totals.known().filter_map(way).collect(),
            first: totals.known().filter_map(first).collect(),
            turns: totals.known().map(|known| ((known.function, known.path), known.turns)).collect(),
        }
    }

    /// First calls of `shapes`, where sampled ones came from elsewhere than those behind them.
    pub fn first(&self, shapes: &[Shape<'a>]) -> Vec<Option<FirstCalls>> {
        let first = |shape: &Shape<'a>| self.first.get(&(shape.function, shape.path.clone())).copied();
        shapes.iter().map(first).collect()
    }

    /// Ways that sampled calls of `shapes` came by, in their order.
    pub fn turns(&self, shapes: &[Shape<'a>]) -> Vec<Turns> {
        let turns = |shape: &Shape<'a>| self.turns.get(&(shape.function, shape.path.clone())).copied();
        shapes.iter().map(|shape| turns(shape).unwrap_or_default()).collect()
    }

    /// Ways to `shapes`.
    pub fn to(&self, shapes: &[Shape<'a>], around: &mut Around<'_>) -> Ways<Frame<'a>> {
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
        Ways::new(shapes.iter().map(way).collect())
    }
}
