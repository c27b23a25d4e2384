//! Calls of a thread by function and path, without their arguments.

use ampl_trace::loops::{Token, Ways, fold, hashes};
use ampl_trace::site::call_path;
use ampl_trace::structure::{GroupTerminal, GroupThread, RankGroup};
use rustc_hash::FxHashMap;

/// A return address: module and offset.
pub type Frame<'a> = (&'a str, u64);

/// First byte of the function around an address, where known.
pub type Around<'a> = dyn FnMut(&str, u64) -> Option<u64> + 'a;

/// A function of MPI and return addresses from a call of it outwards, without the repetitions of recursion.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shape<'a> {
    /// Index in the function table.
    pub function: u16,
    /// Return addresses; none where calls are not told apart by place.
    pub path: Vec<Frame<'a>>,
}

/// The terminals of a thread as shapes: calls of one that come by one way.
#[derive(Clone, Debug, Default)]
pub struct Shapes<'a> {
    /// Shapes by number, with all callers that are known.
    pub shapes: Vec<Shape<'a>>,
    /// Places by number, as calls are shown.
    pub places: Vec<Shape<'a>>,
    /// Place of each shape.
    pub place_of: Vec<u32>,
    /// Meaning of each terminal.
    pub tokens: Vec<Token>,
}

impl<'a> Shapes<'a> {
    /// Shapes of the calls of `thread`, in the order in which they come first.
    pub fn of(group: &RankGroup<'a>, thread: &GroupThread<'a>) -> Self {
        let (sites, modules) = (group.sites(), group.modules());
        let name = |module: u32| modules.get(module as usize).map_or("", String::as_str);
        let path = |site: Option<u32>| {
            let frames = site.into_iter().flat_map(|site| call_path(sites, site));
            let mut path: Vec<Frame<'a>> = frames.map(|frame| (name(frame.module), frame.offset)).collect();
            fold(&mut path);
            path
        };
        let (mut numbers, mut places) = (FxHashMap::default(), FxHashMap::default());
        let mut all = Self::default();
        for ((function, flags, site), way) in thread.calls().zip(thread.paths()) {
            let token = Token::of_no_shape(function, flags).unwrap_or_else(|| {
                let place = number(&mut places, &mut all.places, Shape { function, path: path(site) });
                let shape = number(&mut numbers, &mut all.shapes, Shape { function, path: path(way) });
                if shape as usize == all.place_of.len() {
                    all.place_of.push(place);
                }
                Token::Shape(shape)
            });
            all.tokens.push(token);
        }
        all
    }

    /// Functions on the way to each shape.
    pub fn ways(&self, around: &mut Around<'_>) -> Ways<Frame<'a>> {
        let way = |shape: &Shape<'a>| {
            let (&(module, offset), callers) = shape.path.split_first()?;
            let own = around(module, offset).map(|start| (module, start.saturating_add(1)));
            (!callers.is_empty()).then(|| own.into_iter().chain(callers.iter().copied()).collect())
        };
        Ways::new(self.shapes.iter().map(way).collect())
    }
}

/// Number of `shape` among those `known`, where it is added if it is new.
fn number<'a>(numbers: &mut FxHashMap<Shape<'a>, u32>, known: &mut Vec<Shape<'a>>, shape: Shape<'a>) -> u32 {
    *numbers.entry(shape).or_insert_with_key(|shape| {
        known.push(shape.clone());
        known.len() as u32 - 1
    })
}

/// [Hashes of the arguments](hashes) of each terminal of `thread` as `rank` gives them.
pub fn arguments(thread: &GroupThread<'_>, rank: u32) -> Vec<(Option<u64>, u64)> {
    let of = |terminal: GroupTerminal<'_>| {
        hashes(
            terminal.words.iter().map(|word| (word.role, word.param, word.element, word.argument.of(rank))),
        )
    };
    thread.terminals().map(of).collect()
}
