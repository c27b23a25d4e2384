//! Calls of one place that come by several ways in turns, as those of a function around MPI do: which way each of them came.
//!
//! A few calls of each place are sampled. Where the calls around a sample, or its number, tell its way, they tell that of
//! all others, too. Then each way is a place of its own.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use super::calls::{Calls, Steps, TooIrregular};
use super::flow_graph::Set;
use super::regular::Regular;
use super::sequence::Token;
use super::told::{FIRST, Ways, told};
use crate::grammar::{Builder, Grammar};
use crate::totals::{FirstCalls, Turns, is_sample};

/// Part of the work allowed that may be calls of the sequence, and most of these.
const PART: u64 = 4;
const MOST_CALLS: u64 = 1 << 18;
/// Calls around one that are looked at for what is around no sample, on each side.
const AROUND: usize = 4;
/// So many calls of that kind may be steps.
const FEW: u64 = 5;
/// Stands for the ends of the sequence.
const NONE: u32 = u32::MAX;
/// Stands for calls that were only counted.
const GAP: u32 = u32::MAX - 1;

/// The calls of a thread, those of a place told apart by the ways they come by.
#[derive(Clone, Debug)]
pub(super) struct Refined {
    pub(super) grammar: Grammar,
    pub(super) tokens: Vec<Token>,
    /// The terminal that each stands for.
    pub(super) terminals: Vec<u32>,
    /// The shape that each shape is part of.
    pub(super) shapes: Vec<u32>,
    /// Shapes that have parts.
    pub(super) split: Set,
    /// Shapes whose parts are told by the numbers of calls alone: recursion may come by ways in turns, too.
    pub(super) by_number: Set,
}

impl Calls<'_> {
    /// The loop of calls that are told apart by the ways they come by.
    pub(super) fn find_in(&self, refined: &Refined, doubt: &Doubt) -> Result<Option<Steps>, TooIrregular> {
        let whole = |part: &u32| refined.shapes[*part as usize];
        let shapes = |set: &Set| -> Set { set.iter().map(whole).collect() };
        let functions: Vec<u16> = refined.shapes.iter().map(|&of| self.functions[of as usize]).collect();
        let first_of = |of: &u32| {
            self.first.get(*of as usize).copied().flatten().filter(|_| !refined.split.contains(of))
        };
        let first: Vec<Option<FirstCalls>> = refined.shapes.iter().map(first_of).collect();
        let arguments = refined.terminals.iter().map(|&of| self.arguments[of as usize]);
        let arguments: Vec<(Option<u64>, u64)> = arguments.collect();
        let calls = Calls {
            tokens: &refined.tokens,
            functions: &functions,
            first: &first,
            turns: &[],
            arguments: &arguments,
            encloses: &|inner, rest| (self.encloses)(&shapes(inner), &shapes(rest)),
            is_placed: &|part| (self.is_placed)(whole(&part)),
            work: self.work,
            goes_on: self.goes_on,
        };
        let Some(mut steps) = calls.find_among(&refined.grammar, doubt)? else { return Ok(None) };
        steps.iterations = steps.iterations.listed(&refined.grammar, &refined.tokens);
        steps.regular = rejoined(&steps, refined);
        steps.is_marker &= !refined.split.contains(&whole(&steps.place));
        steps.place = whole(&steps.place);
        steps.body = shapes(&steps.body);
        let mut by_shape: BTreeMap<u32, u64> = BTreeMap::new();
        steps.by_shape.iter().for_each(|(part, calls)| *by_shape.entry(whole(part)).or_default() += calls);
        steps.by_shape = by_shape;
        let whole = steps.by_shape.iter().filter(|of| refined.by_number.contains(of.0)).map(|of| *of.1);
        steps.others.extend(whole.max().filter(|&calls| calls != steps.steps));
        Ok(Some(steps))
    }
}

/// Shapes that each step calls equally often, of parts that it does.
fn rejoined(steps: &Steps, refined: &Refined) -> Vec<Regular> {
    let mut regular: BTreeMap<u32, Regular> = BTreeMap::new();
    let mut parts: FxHashMap<u32, usize> = FxHashMap::default();
    for of in &steps.regular {
        let shape = refined.shapes[of.shape as usize];
        let own = regular.entry(shape).or_insert(Regular { shape, per_step: 0, calls: 0 });
        (own.per_step, own.calls) = (own.per_step + of.per_step, own.calls + of.calls);
        *parts.entry(shape).or_default() += 1;
    }
    let inside =
        |shape: u32| steps.by_shape.keys().filter(|&&part| refined.shapes[part as usize] == shape).count();
    let mut regular: Vec<Regular> =
        regular.into_values().filter(|of| parts.get(&of.shape) == Some(&inside(of.shape))).collect();
    regular.sort_by_key(|of| (of.per_step, of.shape));
    regular
}

/// Facts that sampled calls leave open.
#[derive(Clone, Debug, Default)]
pub struct Doubt {
    /// Shapes whose place is called by several ways in turns, told apart or not: functions around MPI make them.
    pub layered: Set,
    /// Shapes whose calls come by several ways in turns, which nothing tells apart.
    pub swaying: Set,
    /// Of programs with such functions the calls of each shape around which is what is around no sample.
    pub unseen: FxHashMap<u32, u64>,
    /// True where nothing tells which way the last calls came by: the last step may be whole.
    pub ends_open: bool,
}

impl Doubt {
    /// True where some of `shapes` are calls of functions around MPI.
    pub(super) fn is_among(&self, shapes: &Set) -> bool {
        !self.layered.is_disjoint(shapes)
    }

    /// True where almost all calls of `shape` come by one way.
    pub(super) fn is_sure(&self, shape: u32) -> bool {
        !self.swaying.contains(&shape) && self.unseen_of(shape) < FEW
    }

    /// True where all calls of `shape` are as samples are, which came by one way.
    pub(super) fn is_certain(&self, shape: u32) -> bool {
        !self.swaying.contains(&shape) && self.unseen_of(shape) == 0
    }

    /// Calls of `shape` that may have come by another way than samples.
    pub(super) fn unseen_of(&self, shape: u32) -> u64 {
        match self.unseen.get(&shape) {
            Some(&calls) => calls,
            None => u64::from(!self.layered.is_empty()),
        }
    }
}

/// Shapes whose calls come by several ways in turns, and the calls told apart where that can be.
pub(super) fn refine(
    grammar: &Grammar,
    tokens: &[Token],
    turns: &[Turns],
    work: u64,
) -> (Doubt, Option<Refined>) {
    let mut calls: FxHashMap<u32, u64> = FxHashMap::default();
    for (terminal, number) in grammar.totals() {
        if let Some(&Token::Shape(shape)) = tokens.get(terminal as usize) {
            *calls.entry(shape).or_default() += number;
        }
    }
    let ways = |(&shape, &calls): (&u32, &u64)| Some((shape, Ways::of(*turns.get(shape as usize)?, calls)?));
    let ways: FxHashMap<u32, Ways> = calls.iter().filter_map(ways).collect();
    let mut swaying: Set = ways
        .iter()
        .filter(|of| of.1.samples.iter().any(|one| one.1 != of.1.samples[0].1))
        .map(|of| *of.0)
        .collect();
    let most = (work / PART).min(MOST_CALLS);
    if ways.is_empty() || !grammar.is_sound() || grammar.len() > most {
        let unseen = calls.into_iter().filter(|_| !ways.is_empty()).collect();
        return (Doubt { layered: swaying.clone(), swaying, unseen, ends_open: false }, None);
    }
    let of = |terminal: u32| match tokens.get(terminal as usize) {
        Some(&Token::Shape(shape)) => Some(shape),
        Some(Token::Gap) => Some(GAP),
        _ => None,
    };
    let all = || grammar.runs().flat_map(|(terminal, count)| std::iter::repeat_n(terminal, count as usize));
    let sequence: Vec<u32> = all().filter_map(of).collect();
    let mut labels = vec![0; sequence.len()];
    let (mut split, mut by_number, mut ends_open) = (Set::default(), Set::default(), false);
    for (&shape, ways) in &ways {
        let at: Vec<usize> = (0..sequence.len()).filter(|&at| sequence[at] == shape).collect();
        if let Some(own) = told(&sequence, &at, ways) {
            ends_open |= own.is_open;
            at.iter().zip(&own.labels).for_each(|(&at, &label)| labels[at] = label);
            split.insert(shape);
            if own.is_by_number {
                by_number.insert(shape);
            }
        }
    }
    let layered = swaying.clone();
    swaying.retain(|shape| !split.contains(shape));
    let unseen =
        unseen(&sequence, |shape| turns.get(shape as usize).is_some_and(|of| of.labels(1).is_some()));
    if split.is_empty() {
        let mut calls = FxHashMap::default();
        sequence
            .iter()
            .zip(unseen)
            .for_each(|(&shape, own)| *calls.entry(shape).or_default() += u64::from(own));
        return (Doubt { layered, swaying, unseen: calls, ends_open }, None);
    }
    let mut calls: FxHashMap<u32, u64> = FxHashMap::default();
    let mut builder = Builder::new();
    let (mut parts, mut numbers) =
        (FxHashMap::<(u32, u8), u32>::default(), FxHashMap::<(u32, u8), u32>::default());
    let (mut shapes, mut terminals, mut refined) = (Vec::new(), Vec::new(), Vec::new());
    let mut at = 0;
    for terminal in all() {
        let label = of(terminal).map_or(0, |_| labels[at]);
        let is_unseen = of(terminal).is_some_and(|_| unseen[at]);
        at += usize::from(of(terminal).is_some());
        let number = *numbers.entry((terminal, label)).or_insert_with(|| {
            terminals.push(terminal);
            refined.push(match tokens.get(terminal as usize) {
                Some(&Token::Shape(shape)) => {
                    Token::Shape(*parts.entry((shape, label)).or_insert_with(|| {
                        shapes.push(shape);
                        shapes.len() as u32 - 1
                    }))
                }
                Some(&other) => other,
                None => Token::Left,
            });
            terminals.len() as u32 - 1
        });
        if let Token::Shape(part) = refined[number as usize] {
            *calls.entry(part).or_default() += u64::from(is_unseen);
        }
        builder.push(number, 1);
    }
    // First calls, which come by other ways, are none of the loop's.
    let is_first = |part: &u32| parts.get(&(shapes[*part as usize], FIRST)) == Some(part);
    let sways = |part: &u32| swaying.contains(&shapes[*part as usize]) || is_first(part);
    let swaying = (0..shapes.len() as u32).filter(sways).collect();
    let grammar = builder.into_grammar();
    let layered = (0..shapes.len() as u32).filter(|part| layered.contains(&shapes[*part as usize])).collect();
    let doubt = Doubt { layered, swaying, unseen: calls, ends_open };
    (doubt, Some(Refined { grammar, tokens: refined, terminals, shapes, split, by_number }))
}

/// True for each call around which is what is around no sample of its shape, or whose shape is not sampled.
fn unseen(sequence: &[u32], is_sampled: impl Fn(u32) -> bool) -> Vec<bool> {
    let mut known: FxHashMap<u32, (u64, FxHashSet<Vec<u32>>)> = FxHashMap::default();
    for (at, &shape) in sequence.iter().enumerate() {
        let (number, keys) = known.entry(shape).or_default();
        *number += 1;
        if is_sample(*number) && is_sampled(shape) {
            keys.insert(around(sequence, at, AROUND, AROUND));
        }
    }
    let of = |(at, shape): (usize, &u32)| {
        known.get(shape).is_none_or(|of| !of.1.contains(&around(sequence, at, AROUND, AROUND)))
    };
    sequence.iter().enumerate().map(of).collect()
}

/// Calls around one, `before` of them before it and `after` behind, the nearest first.
pub(super) fn around(sequence: &[u32], place: usize, before: usize, after: usize) -> Vec<u32> {
    let shape = |place: Option<usize>| place.and_then(|place| sequence.get(place)).copied().unwrap_or(NONE);
    let both = |far: usize| {
        let back = (far <= before).then(|| shape(place.checked_sub(far)));
        [back, (far <= after).then(|| shape(place.checked_add(far)))]
    };
    (1..=before.max(after)).flat_map(both).flatten().collect()
}

#[cfg(test)]
mod tests;
