//! The loop of one thread's sequence, with its calls by function.

use std::collections::BTreeMap;

use ampl_core::mpi::{Class, Function, Traffic};
use rustc_hash::FxHashMap;

use super::find::{Finder, Found};
use super::flow_graph::Set;
use super::iterations::Iterations;
use super::regular::{Regular, repeated};
use super::repetition::{Repetition, longest};
use super::sequence::{Anchor, Flow, Sequence, Slice, Token};
use super::turns::steps_of_iteration;
use crate::grammar::Grammar;

/// Kinds of arguments at one place from which on they tell parts of a step apart.
const LEAST_KINDS: usize = 3;
/// Share of a loop's calls that the loop by arguments must have, too.
const SAME_CALLS: f64 = 0.9;

/// Most shapes of each step that are named.
const MOST_REGULAR: usize = 64;

/// Meaning of the terminals of a thread.
pub struct Calls<'a> {
    /// Meaning of each terminal.
    pub tokens: &'a [Token],
    /// Function of each shape.
    pub functions: &'a [u16],
    /// Place of each shape: calls of a function around MPI have one, and a shape for each way they come by.
    pub places: &'a [u32],
    /// [Hashes of arguments](super::hashes) by terminal.
    pub arguments: &'a [(Option<u64>, u64)],
    /// True where the loop of the first shapes lies in a function that makes calls of the second besides.
    pub encloses: &'a dyn Fn(&Set, &Set) -> bool,
    /// True where it is known which functions a shape is called by.
    pub is_placed: &'a dyn Fn(u32) -> bool,
    /// Most positions of a grammar that are visited.
    pub work: u64,
    /// True where more calls follow: a loop that goes on may have had few steps so far.
    pub goes_on: bool,
}

/// The loop of a thread.
#[derive(Clone, Debug)]
pub struct Steps {
    /// Iterations.
    pub steps: u64,
    /// Steps before the loop, as warm-up.
    pub warm_up: u64,
    /// Calls inside the loop.
    pub calls: u64,
    /// Calls before it.
    pub start_up: u64,
    /// Calls behind it.
    pub wind_down: u64,
    /// Calls inside it that were counted and not recorded.
    pub missing: u64,
    /// True where the number of steps comes from arguments, too.
    pub by_arguments: bool,
    /// Calls inside the loop by function.
    pub functions: BTreeMap<u16, u64>,
    /// Shapes inside the loop.
    pub body: Set,
    /// Place of a call of each step.
    pub place: u32,
    /// True where that is called once in each step.
    pub is_marker: bool,
    /// Calls of the most frequent shape inside the loop that most steps go without.
    pub rare: u64,
    /// Places that are called once in each step; of a program that goes on, where there are none, those that each step calls
    /// equally often.
    pub regular: Vec<Regular>,
    /// Steps that one of these may hold, as its parts are alike, or come in turns; 1 where nothing suggests more.
    pub may_hold: u64,
    /// Calls inside the loop by place.
    pub by_place: BTreeMap<u32, u64>,
    /// Calls that begin the steps.
    pub iterations: Iterations,
    /// Other numbers of steps that a program with the same calls may have.
    pub others: Vec<u64>,
}

/// Reason why a thread's loop is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooIrregular;

impl Calls<'_> {
    /// The loop in `grammar`.
    ///
    /// # Errors
    /// [`TooIrregular`] where the work allowed does not suffice.
    pub fn find(&self, grammar: &Grammar) -> Result<Option<Steps>, TooIrregular> {
        Ok(self.find_by_shapes(grammar)?.map(|steps| steps.by_places(self.places)))
    }

    fn find_by_shapes(&self, grammar: &Grammar) -> Result<Option<Steps>, TooIrregular> {
        let (sequence, whole) = Sequence::within(grammar, self.tokens, self.work).ok_or(TooIrregular)?;
        let partners = self.partners(grammar);
        let all = sequence.flow(&whole);
        let communicating = |shape: &&u32| self.communicates(&Set::from_iter([**shape]));
        let most: u64 = all.calls.keys().filter(communicating).map(|shape| all.calls[shape]).sum();
        let accepts = |body: &Set| {
            let is_most = body.len() > 1 || all.sum(body).saturating_mul(2) >= most;
            self.communicates(body) && !is_over_ranks(body, &partners) && is_most
        };
        let mut finder = Finder { sequence: &sequence, encloses: self.encloses, accepts: &accepts };
        let Some(mut found) = finder.find(&whole) else { return Ok(None) };
        if !self.goes_on {
            found.take_ends(&sequence, self.is_placed);
        }
        let calls = sequence.calls(&found.inside);
        if let Some(refined) = self.by_arguments(grammar, &found, calls) {
            return Ok(Some(refined));
        }
        Ok(Some(self.described(&sequence, &found, &|shape| shape, false)))
    }

    /// The loop by shapes and arguments, where that is one outside of `found`: calls of all parts of its steps look
    /// alike by their places.
    fn by_arguments(&self, grammar: &Grammar, found: &Found, calls: u64) -> Option<Steps> {
        let mut kinds: Vec<(u32, u64)> = Vec::new();
        let mut known: FxHashMap<(u32, u64), u32> = FxHashMap::default();
        let tokens: Vec<Token> = self
            .tokens
            .iter()
            .zip(self.arguments)
            .map(|(&token, &(_, arguments))| match token {
                Token::Shape(shape) => Token::Shape(*known.entry((shape, arguments)).or_insert_with(|| {
                    kinds.push((shape, arguments));
                    kinds.len() as u32 - 1
                })),
                other => other,
            })
            .collect();
        let mut of_shape: FxHashMap<u32, usize> = FxHashMap::default();
        kinds.iter().for_each(|&(shape, _)| *of_shape.entry(shape).or_default() += 1);
        let is_varied = |shape: &u32| of_shape.get(shape).is_some_and(|&kinds| kinds >= LEAST_KINDS);
        if !found.body.iter().any(is_varied) {
            return None;
        }
        let (sequence, whole) = Sequence::within(grammar, &tokens, self.work)?;
        let shapes = |set: &Set| -> Set { set.iter().map(|&kind| kinds[kind as usize].0).collect() };
        let encloses = |inner: &Set, rest: &Set| (self.encloses)(&shapes(inner), &shapes(rest));
        let mut finder = Finder { sequence: &sequence, encloses: &encloses, accepts: &|_| true };
        let is_confirmed = finder.find(&whole).is_some_and(|refined| refined.steps == found.steps);
        let Repetition { times, slices: [before, inside, after] } = longest(&sequence, &whole)?;
        let own = sequence.calls(&inside);
        let is_under_way = self.goes_on && sequence.calls(&after).saturating_mul(times) < own;
        if times >= found.steps || !is_under_way && (own as f64) < SAME_CALLS * calls as f64 {
            return None;
        }
        if is_confirmed && !are_too_short(found.steps, times, calls.saturating_sub(own), own) {
            return None;
        }
        let anchor = Anchor { shapes: Set::default(), merges: false };
        let body = sequence.flow(&inside).calls.into_keys().collect();
        let repeated = Found {
            steps: times,
            begun: times,
            anchor,
            repeats: 1,
            others: Vec::new(),
            body,
            before,
            inside,
            after,
        };
        Some(self.described(&sequence, &repeated, &|kind| kinds[kind as usize].0, true))
    }

    fn described(
        &self,
        sequence: &Sequence,
        found: &Found,
        shape_of: &dyn Fn(u32) -> u32,
        by_arguments: bool,
    ) -> Steps {
        let flow = sequence.flow(&found.inside);
        let (mut functions, mut by_shape): (BTreeMap<u16, u64>, BTreeMap<u32, u64>) = Default::default();
        for (&shape, calls) in &flow.calls {
            let function = self.functions[shape_of(shape) as usize];
            *functions.entry(function).or_default() += calls;
            *by_shape.entry(shape_of(shape)).or_default() += calls;
        }
        let first = sequence.first(&found.inside).unwrap_or(0);
        let marker = found.anchor.shapes.iter().copied().min().unwrap_or(first);
        let once = |calls: u64| calls == found.steps || calls == found.steps + 1;
        // Of a step that is under way a call may have come.
        let all_once = flow.calls.iter().filter(|of| !by_arguments && once(*of.1));
        let mut regular: Vec<Regular> =
            all_once.map(|(&shape, &calls)| Regular { shape, per_step: 1, calls }).collect();
        regular.sort_unstable_by_key(|of| of.shape);
        if self.goes_on {
            let in_each = regular.into_iter().filter(|of| found.is_once_in_each(sequence, of.shape));
            regular = in_each.take(MOST_REGULAR).collect();
        }
        if self.goes_on && regular.is_empty() {
            regular = repeated(sequence, found, shape_of);
        }
        if self.goes_on && regular.is_empty() && !by_arguments {
            regular = found.even(sequence);
        }
        let calls = |slice: &Slice| sequence.calls(slice);
        let function = |shape: u32| self.functions[shape_of(shape) as usize];
        let may_hold = match by_arguments {
            true => 1,
            false => steps_of_iteration(&flow, first, &function).max(found.repeats),
        };
        // Calls to warm up may come to the same places by another way.
        let place = |shape: u32| match by_arguments {
            true => shape,
            false => self.places.get(shape as usize).copied().unwrap_or(shape),
        };
        let each = by_arguments.then(|| calls(&found.inside) / found.steps.max(1));
        Steps {
            may_hold,
            iterations: Iterations::of(sequence, found, each, self.tokens),
            steps: found.steps,
            warm_up: warm_up(&flow, &sequence.flow(&found.before), found.steps, &place),
            calls: calls(&found.inside),
            start_up: calls(&found.before),
            wind_down: calls(&found.after),
            missing: sequence.missing(&found.inside),
            by_arguments,
            functions,
            body: flow.calls.keys().map(|&shape| shape_of(shape)).collect(),
            place: shape_of(marker),
            is_marker: !by_arguments && found.anchor.shapes.len() == 1 && flow.of(marker) == found.steps,
            rare: flow
                .calls
                .values()
                .copied()
                .filter(|calls| calls.saturating_mul(4) <= found.steps)
                .max()
                .unwrap_or(0),
            regular,
            by_place: by_shape,
            others: found.others.clone(),
        }
    }

    /// True where calls of `body` move data, or wait for other ranks.
    fn communicates(&self, body: &Set) -> bool {
        body.iter().any(|&shape| {
            let function = Function(self.functions[shape as usize]);
            let spec = function.spec();
            spec.traffic != Traffic::None
                || function.synchronises()
                || matches!(spec.class, Class::Completion | Class::Start | Class::Poll)
        })
    }

    /// Calls with each partner, by shape.
    fn partners(&self, grammar: &Grammar) -> FxHashMap<u32, FxHashMap<u64, u64>> {
        let mut partners: FxHashMap<u32, FxHashMap<u64, u64>> = FxHashMap::default();
        for (terminal, calls) in grammar.totals() {
            let Some(&Token::Shape(shape)) = self.tokens.get(terminal as usize) else { continue };
            if let Some(&(Some(partner), _)) = self.arguments.get(terminal as usize) {
                *partners.entry(shape).or_default().entry(partner).or_default() += calls;
            }
        }
        partners
    }
}

/// True where those of `steps` that are not among `times` repetitions are no steps: their calls, `rest`, are by far fewer
/// than as many steps have among the calls repeated.
fn are_too_short(steps: u64, times: u64, rest: u64, repeated: u64) -> bool {
    let inside = steps / times.max(1) * times;
    let others = u128::from(steps - inside);
    others > 0 && 2 * u128::from(rest) * u128::from(inside) < others * u128::from(repeated)
}

/// Steps before the loop: as many as the calls before it suffice for, by the calls that no step goes without.
fn warm_up(inside: &Flow, before: &Flow, steps: u64, place: &dyn Fn(u32) -> u32) -> u64 {
    let by_place = |flow: &Flow| {
        let mut calls: BTreeMap<u32, u64> = BTreeMap::new();
        flow.calls.iter().for_each(|(&shape, own)| *calls.entry(place(shape)).or_default() += own);
        calls
    };
    let (inside, before) = (by_place(inside), by_place(before));
    let needed = inside.iter().filter(|(_, calls)| **calls >= steps);
    let steps_of = |(place, calls): (&u32, &u64)| {
        let before = before.get(place).copied().unwrap_or(0);
        (u128::from(before) * u128::from(steps)).div_ceil(u128::from(*calls)) as u64
    };
    needed.map(steps_of).min().unwrap_or(0)
}

/// True where the calls of `body` that name ranks name each of them once: a loop over ranks, not over time.
fn is_over_ranks(body: &Set, partners: &FxHashMap<u32, FxHashMap<u64, u64>>) -> bool {
    let mut all = body.iter().filter_map(|shape| partners.get(shape)).peekable();
    all.peek().is_some() && all.all(|partners| partners.values().all(|&calls| calls <= 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::Builder;

    /// Steps of calls at places, each with its argument; all of one function.
    fn found(calls: &[(u32, u64)]) -> Option<u64> {
        described(calls).map(|found| found.steps)
    }

    fn described(calls: &[(u32, u64)]) -> Option<Steps> {
        described_as(calls, false)
    }

    fn described_as(calls: &[(u32, u64)], goes_on: bool) -> Option<Steps> {
        let mut kinds: Vec<(u32, u64)> = Vec::new();
        let mut builder = Builder::new();
        for call in calls {
            let kind = kinds.iter().position(|kind| kind == call).unwrap_or_else(|| {
                kinds.push(*call);
                kinds.len() - 1
            });
            builder.push(kind as u32, 1);
        }
        let tokens: Vec<Token> = kinds.iter().map(|kind| Token::Shape(kind.0)).collect();
        let arguments: Vec<(Option<u64>, u64)> = kinds.iter().map(|kind| (None, kind.1)).collect();
        let calls = Calls {
            tokens: &tokens,
            functions: &[ampl_core::mpi::ids::MPI_ALLREDUCE.0; 16],
            places: &[],
            arguments: &arguments,
            encloses: &|_, _| false,
            is_placed: &|_| false,
            work: super::super::MOST_WORK,
            goes_on,
        };
        calls.find(&builder.into_grammar()).unwrap()
    }

    #[test]
    fn iterations_that_may_hold_several_steps_say_so() {
        let of = |calls: &[(u32, u64)]| described(calls).map(|found| (found.steps, found.may_hold));
        // A barrier in even steps, an exchange in odd ones; 61 in all.
        let turns: Vec<(u32, u64)> = (0..61).map(|step| (1 + step % 2, 0)).collect();
        assert_eq!(of(&turns), Some((30, 2)));
        // Output in every second step of two calls, or a reduction behind two iterations.
        let exchange = [(1, 0), (2, 0)];
        let pairs = [&exchange[..], &exchange, &[(3, 0)]].concat();
        assert_eq!(of(&pairs.repeat(10)), Some((10, 2)));
        assert_eq!(of(&exchange.repeat(3)).map(|of| of.0), Some(3));
        // In every twentieth it is known to be output.
        let twenty = [&exchange.repeat(20)[..], &[(3, 0)]].concat();
        assert_eq!(of(&twenty.repeat(5)).map(|of| of.0), Some(100));
    }

    /// An exchange on the level of a grid, as MG makes it: along each axis two receives, sends and completions.
    fn level(level: u64) -> Vec<(u32, u64)> {
        let along = |axis: u32| {
            let receives = [0, 1].map(|side| (1, 2 * u64::from(axis) + side));
            let sends = [0, 1].map(|side| (2 + axis, 2 * level + side));
            [receives, sends, [(5, 0), (5, 0)]].concat()
        };
        (0..3).flat_map(along).collect()
    }

    #[test]
    fn what_is_around_a_loop_of_levels_is_no_step() {
        // A rank that has nothing to do on the coarsest level, and sends what it has there.
        let levels = |levels: &[u64]| levels.iter().flat_map(|&own| level(own)).collect::<Vec<_>>();
        let (down, up) = (levels(&[1, 2, 3, 4, 4]), levels(&[3, 3, 2, 2, 1, 1, 0, 0, 0]));
        let step = [&down[..], &[(6, 0), (6, 1)], &up].concat();
        let norm = [&level(0)[..], &[(7, 0), (8, 0)]].concat();
        let warm_up = [&norm[..], &norm, &step, &[(9, 0)], &level(0), &[(10, 0)]].concat();
        let own = [&norm[..], &step.repeat(4), &norm[18..]].concat();
        let calls = [&[(0, 0)][..], &warm_up, &own, &[(11, 0)]].concat();
        assert_eq!(found(&calls), Some(4));
    }

    /// Of a program that is in its fifth step, whose calls are all made several times in each.
    #[test]
    fn steps_that_repeat_have_calls_equally_often() {
        let step = [level(1), level(2), level(1)].concat();
        let start = [&[(0, 0)][..], &level(0), &level(3), &[(7, 0)], &step, &[(8, 0)]].concat();
        let calls = |cut: usize| [&start[..], &step.repeat(4), &step[..cut]].concat();
        for cut in 0..step.len() {
            let found = described_as(&calls(cut), true).expect("a loop");
            assert_eq!((found.steps, found.wind_down), (4, cut as u64));
            let own = |shape: u32| found.regular.iter().find(|of| of.shape == shape).copied();
            let under_way = step[..cut].iter().filter(|of| of.0 == 2).count() as u64;
            assert_eq!(own(2), Some(Regular { shape: 2, per_step: 6, calls: 24 + under_way }), "{found:?}");
            assert_eq!(own(1).map(|of| of.per_step), Some(18));
        }
        // What else has come behind the loop of a run that is over is too much.
        let with_more = [calls(0), level(9), level(8), level(7)].concat();
        assert_ne!(described_as(&with_more, false).map(|found| found.steps), Some(4));
    }

    /// Molecular dynamics: most steps send positions forward, some rebuild lists of neighbours instead, every second one
    /// checks for that, and all send forces back along four directions.
    #[test]
    fn calls_that_all_steps_make_equally_often_are_regular_where_steps_differ() {
        let [forward, back] = [1, 3].map(|place| [(place, 0), (place + 1, 0)].repeat(4));
        let rebuilt = [&[(5, 0), (6, 0)].repeat(6)[..], &[(7, 0)]].concat();
        let start = [&[(0, 0)][..], &rebuilt, &back, &[(9, 0)]].concat();
        let step = |step: usize| {
            let check: &[(u32, u64)] = if step % 2 == 1 { &[(8, 0)] } else { &[] };
            [check, if step % 6 == 5 { &rebuilt } else { &forward }, &back].concat()
        };
        for steps in [20, 33, 60] {
            let own: Vec<(u32, u64)> = (0..steps).flat_map(step).collect();
            for under_way in [0, 3, 12] {
                let next = step(steps);
                let calls = [&start[..], &own, &next[..under_way]].concat();
                let found = described_as(&calls, true).expect("a loop");
                let back = found.regular.iter().find(|of| of.shape == 3).copied();
                let more = next[..under_way].iter().filter(|of| of.0 == 3).count() as u64;
                let expected = Regular { shape: 3, per_step: 4, calls: 4 * steps as u64 + more };
                assert_eq!(back, Some(expected), "{steps} {under_way}: {found:?}");
                assert!(found.regular.iter().all(|of| [3, 4].contains(&of.shape)), "{found:?}");
            }
        }
    }

    /// A program that reads its input by five calls at one place, works once and ends.
    #[test]
    fn a_call_that_is_repeated_among_others_is_no_loop_over_time() {
        let read = |times: u64| (0..times).map(|time| (0, time)).collect::<Vec<_>>();
        let rest: Vec<(u32, u64)> = (1..8).map(|place| (place, 0)).collect();
        assert_eq!(found(&[read(5), rest.clone()].concat()), None);
        assert_eq!(found(&[read(50), rest].concat()), Some(50));
    }

    #[test]
    fn output_of_two_steps_is_part_of_the_loop() {
        let steps = |steps: usize| [(0, 0), (1, 0), (2, 0)].repeat(steps);
        let with_output = |first: usize, between: usize, last: usize| {
            let [start, output, end] = [[(4, 0)], [(3, 0)], [(5, 0)]];
            found(
                &[&start[..], &steps(first), &output, &steps(between), &output, &steps(last), &end].concat(),
            )
        };
        assert_eq!(with_output(1, 10, 9), Some(20));
        assert_eq!(with_output(1, 10, 4), Some(15));
        assert_eq!(with_output(7, 10, 3), Some(20));
        assert_eq!(with_output(1, 10, 0), Some(10), "calls around a loop, and a step that warms up");
    }

    #[test]
    fn steps_with_calls_of_their_own_count() {
        assert!(are_too_short(6, 4, 20, 1000));
        assert!(!are_too_short(50, 49, 20, 980), "the last one");
        assert!(!are_too_short(22, 20, 100, 1000), "the first one and the last one");
        assert!(!are_too_short(40, 20, 0, 1000), "two in each repetition");
    }
}
