//! Calls of a thread by function and place, without their arguments.

use ampl_trace::loops::{Token, fold, hashes};
use ampl_trace::site::call_path;
use ampl_trace::structure::{GroupTerminal, GroupThread, RankGroup};
use rustc_hash::FxHashMap;

/// A return address: module and offset.
pub type Frame<'a> = (&'a str, u64);

/// A function of MPI, and the path to the call from there outwards, without the repetitions of recursion.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shape<'a> {
    /// Index in the function table.
    pub function: u16,
    /// Return addresses; none where calls are not told apart by place.
    pub path: Vec<Frame<'a>>,
}

/// The terminals of a thread as shapes.
#[derive(Clone, Debug)]
pub struct Shapes<'a> {
    /// Shapes by number.
    pub shapes: Vec<Shape<'a>>,
    /// Meaning of each terminal.
    pub tokens: Vec<Token>,
}

impl<'a> Shapes<'a> {
    /// Shapes of the calls of `thread`, in the order in which they come first.
    pub fn of(group: &RankGroup<'a>, thread: &GroupThread<'a>) -> Self {
        let (sites, modules) = (group.sites(), group.modules());
        let mut numbers: FxHashMap<Shape<'a>, u32> = FxHashMap::default();
        let mut shapes = Vec::new();
        let mut token = |(function, flags, site): (u16, u8, Option<u32>)| {
            if let Some(other) = Token::of_no_shape(function, flags) {
                return other;
            }
            let frames = site.into_iter().flat_map(|site| call_path(sites, site));
            let name = |module: u32| modules.get(module as usize).map_or("", String::as_str);
            let mut path: Vec<Frame<'a>> = frames.map(|frame| (name(frame.module), frame.offset)).collect();
            fold(&mut path);
            let shape = Shape { function, path };
            Token::Shape(*numbers.entry(shape).or_insert_with_key(|shape| {
                shapes.push(shape.clone());
                shapes.len() as u32 - 1
            }))
        };
        let tokens = thread.calls().map(&mut token).collect();
        Self { shapes, tokens }
    }
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
