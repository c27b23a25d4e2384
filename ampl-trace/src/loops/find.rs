//! The loop of a sequence that advances time, and how often it was gone through.

use rustc_hash::FxHashSet;

use super::flow_graph::{FlowGraph, Set};
use super::sequence::{Anchor, Flow, Sequence, Slice};
use super::trips::Trips;
use super::uncut::uncut;

/// Fewest iterations of a loop.
const LEAST: u64 = 3;
/// The same of one that repeats a single call.
const LEAST_ALONE: u64 = 5;
/// Share of a loop's calls from which on a loop inside it may be the one that is looked for.
const COVERAGE: f64 = 0.9;
/// Most shapes of a sequence.
const MOST_SHAPES: usize = 4096;
/// Most shapes of a loop besides those of one inside it whose intervals are looked at.
const MOST_RARE: usize = 32;
/// Deepest nesting of loops that are entered.
const DEEPEST: u32 = 16;

/// A loop of a sequence.
#[derive(Clone, Debug)]
pub struct Found {
    /// Iterations.
    pub steps: u64,
    /// Iterations that were begun, at least: one may not have all of its calls.
    pub begun: u64,
    /// Calls that are made once in each.
    pub anchor: Anchor,
    /// Times that each repeats most of its calls, where all do equally often; 1 otherwise.
    pub repeats: u64,
    /// Other numbers of iterations that a program with the same calls may have: those of a loop around or inside that begins
    /// with the same calls.
    pub others: Vec<u64>,
    /// Shapes of the loop.
    pub body: Set,
    /// The sequence before the loop.
    pub before: Slice,
    /// The loop.
    pub inside: Slice,
    /// The sequence behind it.
    pub after: Slice,
}

/// Finds loops in a sequence.
pub struct Finder<'a> {
    /// The sequence.
    pub sequence: &'a Sequence,
    /// True where the loop of the first shapes lies in a function that makes calls of the second besides.
    pub encloses: &'a dyn Fn(&Set, &Set) -> bool,
    /// True where a loop of those shapes may be one over time.
    pub accepts: &'a dyn Fn(&Set) -> bool,
}

/// Share of an iteration's calls from which on a part of it that is repeated may be a step.
const MOST_OF_A_STEP: f64 = 0.5;

/// Relation of a loop to one inside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    /// The iterations are the outer loop's.
    Outer,
    /// The same, and each goes through the inner loop so many times, which has most of its calls.
    Repeating(u64),
    /// The iterations are the inner loop's, in its executions from the first index on; the rest of the outer loop is
    /// done in some of them.
    Inner { from: u64, steps: u64 },
    /// The execution of that index alone is the loop: the others come before or behind.
    Alone(u64),
}

impl Finder<'_> {
    /// The loop with the most calls in `slice`; of loops inside each other the one whose iterations are steps.
    pub fn find(&mut self, slice: &Slice) -> Option<Found> {
        self.find_in(slice, DEEPEST)
    }

    fn find_in(&mut self, slice: &Slice, depth: u32) -> Option<Found> {
        let depth = depth.checked_sub(1)?;
        let flow = self.sequence.flow(slice);
        let graph = FlowGraph::of(&flow, None, &[]);
        if graph.size() > MOST_SHAPES {
            return None;
        }
        let mut parts = graph.cycles();
        parts.sort_by_key(|part| (std::cmp::Reverse(flow.sum(part)), part.iter().min().copied()));
        parts.iter().find_map(|part| self.find_on(slice, &flow, part, depth))
    }

    /// The loop among the shapes of `part`, which are on common cycles.
    fn find_on(&mut self, slice: &Slice, flow: &Flow, part: &Set, depth: u32) -> Option<Found> {
        if let Some(found) = self.find_between(slice, flow, part, 1, depth) {
            return Some(found);
        }
        let [before, inside, after] = self.sequence.trim(slice, part);
        let entry = self.sequence.first(&inside)?;
        let flow = self.sequence.flow(&inside);
        let loops = FlowGraph::of(&flow, Some(part), &[]).loops(entry);
        let loops = self.without_branches(&inside, &flow, part, loops)?;
        let (mut anchor, mut steps, mut begun) = anchor(&flow, part, &loops)?;
        // What is gone through twice is no loop, but something between may be.
        if steps < LEAST
            && let Some(found) = self.find_between(slice, &flow, part, steps, depth)
        {
            return Some(found);
        }
        let (mut before, mut inside) = (before, inside);
        let (mut body, mut repeats, mut others) = (part.clone(), 1, Vec::new());
        // Loops inside each other, from the outermost one on.
        while let Some(inner) = heaviest(&flow, &body, &loops) {
            let Some((inner_anchor, inner_begun, most)) = self::anchor(&flow, inner, &loops) else { break };
            let list = Trips::of(&self.sequence.executions(&inside, inner, &inner_anchor)?);
            match self.relation(&flow, &body, inner, steps, &list) {
                Relation::Outer => {
                    let at = self.at_intervals(&inside, &flow, part, &loops);
                    let Some(at) = at.filter(|at| at.3.len() < body.len() && at.3.is_subset(&body)) else {
                        let through = FlowGraph::of(&flow, Some(&body), &[]).on_all_cycles();
                        match Self::in_turns(&flow, &through, steps, &list) {
                            Some((shape, more)) if more != 2 * steps => {
                                (steps, begun) = (more, more);
                                anchor = Anchor::call(shape);
                            }
                            Some((_, more)) => others.push(more),
                            None => {}
                        }
                        let other = self.otherwise(&through, &body, inner, steps, &list);
                        others.extend(other);
                        break;
                    };
                    (anchor, steps, begun, body) = at;
                }
                Relation::Repeating(times) => {
                    repeats = times;
                    break;
                }
                Relation::Alone(index) => {
                    let [begin, alone, end] = self.sequence.execution(&inside, inner, index)?;
                    let found = self.find_in(&alone, depth)?;
                    return Some(found.between(
                        before.into_iter().chain(begin).collect(),
                        end.into_iter().chain(after).collect(),
                    ));
                }
                Relation::Inner { from, steps: inner_steps } => {
                    others.extend(Some(steps).filter(|&steps| list.is_even() && from == 0 && steps >= LEAST));
                    if from > 0 {
                        let [begin, first, rest] = self.sequence.execution(&inside, inner, from)?;
                        before.extend(begin);
                        inside = first.into_iter().chain(rest).collect();
                    }
                    begun = inner_steps + (most - inner_begun);
                    (anchor, steps, body) = (inner_anchor, inner_steps, inner.clone());
                }
            }
        }
        if let Some(once) = uncut(self.sequence, &inside, &flow, &body, &anchor, steps) {
            (anchor, steps) = once;
            begun = steps;
        }
        let found =
            Found { steps, begun, anchor, repeats, others, body: part.clone(), before, inside, after };
        let least = if part.len() > 1 { LEAST } else { LEAST_ALONE };
        (steps >= least && (self.accepts)(&found.body)).then_some(found)
    }

    /// One of the calls `through` which all cycles of a loop go that is made about twice in each of its iterations, and its
    /// number: steps may do one thing and another in turns.
    fn in_turns(flow: &Flow, through: &[u32], steps: u64, list: &Trips) -> Option<(u32, u64)> {
        let (calls, shape) = through.iter().map(|&shape| (flow.of(shape), shape)).max()?;
        let is_twice = calls + 1 >= 2 * steps && calls <= 2 * steps + 1;
        (is_twice && list.number() > 2 && list.number_of(1) == list.number()).then_some((shape, calls))
    }

    /// Iterations of `inner`, where a program whose steps these are, and that does the rest of `body` in some of them, makes
    /// the same calls: one of those `through` which each cycle of `body` goes is of it.
    fn otherwise(&self, through: &[u32], body: &Set, inner: &Set, steps: u64, list: &Trips) -> Option<u64> {
        let rest: Set = body.difference(inner).copied().collect();
        let is_same = list.number() > 2
            && list.sum() > steps
            && list.regular().is_none()
            && through.iter().any(|shape| inner.contains(shape))
            && !(self.encloses)(inner, &rest);
        is_same.then(|| list.sum())
    }

    /// `loops` without those that are ways through a step: what is around them goes by without a part of their own
    /// iterations, and most times not one of these is whole.
    fn without_branches(
        &self,
        inside: &Slice,
        flow: &Flow,
        part: &Set,
        mut loops: Vec<Set>,
    ) -> Option<Vec<Set>> {
        loops.sort_by_key(|body| (body.len(), body.iter().min().copied()));
        let mut at = 0;
        while let Some(body) = loops.get(at).cloned() {
            let around = loops[at + 1..].iter().find(|outer| body.is_subset(outer)).unwrap_or(part);
            let others: Vec<Set> =
                loops.iter().filter(|other| **other != body && !other.is_superset(&body)).cloned().collect();
            let joined = children(flow, around, &others);
            let through = |set: &Set| FlowGraph::of(flow, Some(set), &joined).on_all_cycles();
            let (all, own) = (through(around), through(&body));
            let is_branch =
                !all.is_empty() && all.len() < own.len() && all.iter().all(|shape| own.contains(shape));
            if is_branch && let Some((anchor, ..)) = anchor(flow, &body, &loops) {
                let executions = self.sequence.executions(inside, &body, &anchor)?;
                let number = |list: &mut dyn Iterator<Item = &(u64, u64)>| list.map(|of| of.1).sum::<u64>();
                let none = number(&mut executions.iter().filter(|of| of.0 == 0));
                if none * 2 > number(&mut executions.iter()) {
                    loops.remove(at);
                    continue;
                }
            }
            at += 1;
        }
        Some(loops)
    }

    /// The loop between calls that are made `times` times at most, which only look as if they were on its cycles because
    /// what comes before it has calls like its own.
    fn find_between(
        &mut self,
        slice: &Slice,
        flow: &Flow,
        part: &Set,
        times: u64,
        depth: u32,
    ) -> Option<Found> {
        let runs = |&shape: &u32| Anchor::run(shape).count(flow);
        let rare: Set = part.iter().copied().filter(|shape| part.len() > 1 && runs(shape) <= times).collect();
        if rare.is_empty() {
            return None;
        }
        let pieces = self.sequence.cut(slice, &rare);
        let flows: Vec<Flow> = pieces.iter().map(|piece| self.sequence.flow(piece)).collect();
        let calls: Vec<u64> = flows.iter().map(|flow| flow.sum(part)).collect();
        let loops = || (0..pieces.len()).step_by(2);
        let main = loops().max_by_key(|&at| (calls[at], std::cmp::Reverse(at)))?;
        let is_large = |&at: &usize| calls[at].saturating_mul(2) >= calls[main];
        // Once in the middle of a loop is part of it.
        if times == 1 && loops().filter(is_large).count() > 1 {
            return None;
        }
        let mut found = self.find_in(&pieces[main], depth)?;
        let (mut first, mut last) = (loops().find(is_large)?, loops().rfind(is_large)?);
        // The same loop goes on behind something that was done rarely, or ends in its last iteration.
        let least = if found.begun > found.steps { 1 } else { 2 };
        let goes_on = |at: usize| at < pieces.len() && found.anchor.count(&flows[at]) >= least;
        while times == 1 && found.after.is_empty() && goes_on(last + 2) {
            last += 2;
        }
        // Between two calls that come every so many steps there are as many steps as on neither side.
        let within = |at: usize| found.anchor.count(&flows[at]) <= found.steps;
        let is_period = times == 2 && main == 2 && pieces.len() == 5 && found.before.is_empty();
        if is_period && found.after.is_empty() && within(0) && goes_on(4) && within(4) {
            (first, last) = (if found.anchor.count(&flows[0]) > 0 { 0 } else { 2 }, 4);
        }
        if first < last {
            let more = (first..=last).step_by(2).filter(|&at| at != main);
            found.steps += more.map(|at| found.anchor.count(&flows[at])).sum::<u64>();
            found.begun = found.begun.max(found.steps);
            (first..=last).for_each(|at| found.body.extend(flows[at].calls.keys()));
            [found.before, found.inside, found.after] =
                self.sequence.trim(&pieces[first..=last].concat(), part);
        }
        Some(found.between(pieces[..first].concat(), pieces[last + 1..].concat()))
    }

    /// The loop inside `part` of whose iterations the rest is done every so many, each call at an interval of its own, so
    /// that its executions differ: its anchor, iterations, those begun, and shapes. Calls of an iteration around it have one
    /// interval, or none that is always the same.
    fn at_intervals(
        &self,
        inside: &Slice,
        flow: &Flow,
        part: &Set,
        loops: &[Set],
    ) -> Option<(Anchor, u64, u64, Set)> {
        let mut inner = heaviest(flow, part, loops)?;
        loop {
            let (anchor, begun, most) = anchor(flow, inner, loops)?;
            let list = Trips::of(&self.sequence.executions(inside, inner, &anchor)?);
            let rest: Vec<u32> = part.difference(inner).copied().collect();
            let differ = list.number() > 2 && list.regular().is_none();
            if differ && (2..=MOST_RARE).contains(&rest.len()) {
                let intervals = rest.iter().map(|&shape| self.interval(inside, part, shape, &anchor));
                let intervals: Option<Vec<Option<u64>>> = intervals.collect();
                let intervals: FxHashSet<u64> = intervals.into_iter().flatten().flatten().collect();
                if intervals.len() >= 2 {
                    let steps = list.sum();
                    return Some((anchor, steps, steps + (most - begun), inner.clone()));
                }
            }
            inner = heaviest(flow, inner, loops)?;
        }
    }

    /// Iterations by `anchor` between two calls of `shape`, one of `part`, which are always as many; `Some(None)` where
    /// there are too few, `None` where they differ.
    fn interval(&self, inside: &Slice, part: &Set, shape: u32, anchor: &Anchor) -> Option<Option<u64>> {
        let others: Set = part.iter().copied().filter(|&other| other != shape).collect();
        let between = Trips::of(&self.sequence.executions(inside, &others, anchor)?);
        match between.regular() {
            None if between.number() <= 2 => Some(None),
            interval => interval.filter(|&interval| interval >= 2).map(Some),
        }
    }

    /// Relation of the loop of `body`, gone through `steps` times, to that of `inner`, whose executions have so many
    /// iterations.
    fn relation(&mut self, flow: &Flow, body: &Set, inner: &Set, steps: u64, list: &Trips) -> Relation {
        let share = flow.sum(inner) as f64 / flow.sum(body).max(1) as f64;
        let sum = list.sum();
        if list.number() <= 1 {
            return match list.number() == 1 && (share >= COVERAGE || steps < LEAST) {
                true => Relation::Alone(list.index(0)),
                false => Relation::Outer,
            };
        }
        let (longest, most) = list.longest();
        let has_main = most.saturating_mul(2) > sum;
        match list.regular() {
            Some(1) if has_main => {}
            // Once in each iteration, but for the first or the last.
            Some(1) => return Relation::Outer,
            Some(times) if share < COVERAGE && steps >= LEAST => {
                return match share >= MOST_OF_A_STEP {
                    true => Relation::Repeating(times),
                    false => Relation::Outer,
                };
            }
            Some(_) => {
                let rest: Set = body.difference(inner).copied().collect();
                return match steps >= LEAST && (self.encloses)(inner, &rest) {
                    true => Relation::Outer,
                    false => Relation::Inner { from: 0, steps: sum },
                };
            }
            None => {}
        }
        if steps < LEAST || share >= COVERAGE && has_main {
            // Short ones before it warm up; long ones behind it go on.
            let from = (0..longest).find(|&at| list.trips[at].0.saturating_mul(2) >= most).unwrap_or(longest);
            let counted = list.trips[from..].iter();
            let steps = counted.map(|&(trips, times, _)| if trips > 1 { trips * times } else { 0 }).sum();
            return match steps == most {
                true => Relation::Alone(list.index(longest)),
                false => Relation::Inner { from: list.index(from), steps },
            };
        }
        // Most iterations have all of the body, and some go without a part.
        if list.is_mostly_once() {
            return Relation::Inner { from: 0, steps: sum };
        }
        Relation::Outer
    }
}

impl Found {
    /// With more of the sequence around it.
    fn between(mut self, before: Slice, after: Slice) -> Self {
        self.before.splice(0..0, before);
        self.after.extend(after);
        self
    }
}

/// The loop right inside `body` that has the most calls.
fn heaviest<'a>(flow: &Flow, body: &Set, loops: &'a [Set]) -> Option<&'a Set> {
    children(flow, body, loops).into_iter().next()
}

/// Loops right inside `body`, disjoint, those with the most calls first.
fn children<'a>(flow: &Flow, body: &Set, loops: &'a [Set]) -> Vec<&'a Set> {
    let mut inside: Vec<&Set> =
        loops.iter().filter(|inner| inner.len() < body.len() && inner.is_subset(body)).collect();
    inside.sort_by_key(|inner| {
        (std::cmp::Reverse(flow.sum(*inner)), std::cmp::Reverse(inner.len()), inner.iter().min().copied())
    });
    let mut taken: Set = FxHashSet::default();
    inside.retain(|inner| {
        let is_free = inner.is_disjoint(&taken);
        if is_free {
            taken.extend(inner.iter());
        }
        is_free
    });
    inside
}

/// Calls that are made once in each iteration of the loop of `body`, the number of its iterations, and of those begun.
fn anchor(flow: &Flow, body: &Set, loops: &[Set]) -> Option<(Anchor, u64, u64)> {
    if body.len() == 1 {
        let calls = flow.sum(body);
        return Some((Anchor { shapes: body.clone(), merges: false }, calls, calls));
    }
    let mut joined: Vec<Set> = children(flow, body, loops).into_iter().cloned().collect();
    let named = |joined: &[Set], shape: u32| {
        let set = joined.iter().find(|set| set.contains(&shape));
        set.map_or_else(|| Anchor::call(shape), |set| Anchor { shapes: set.clone(), merges: true })
    };
    loop {
        let graph = FlowGraph::of(flow, Some(body), &joined.iter().collect::<Vec<_>>());
        let candidates = graph.on_all_cycles();
        let counted = candidates.into_iter().map(|shape| {
            let anchor = named(&joined, shape);
            (anchor.count(flow), anchor.merges, shape, anchor)
        });
        let mut counted: Vec<(u64, bool, u32, Anchor)> = counted.collect();
        counted.sort_by_key(|&(count, merges, shape, _)| (count, merges, shape));
        if let Some(most) = counted.last().map(|last| last.0) {
            let (count, _, _, anchor) = counted.swap_remove(0);
            return Some((anchor, count, most));
        }
        // Cycles that have nothing in common: all but the rarest calls are inside of others.
        let rarest = body.iter().copied().min_by_key(|&shape| (named(&joined, shape).count(flow), shape))?;
        let name = named(&joined, rarest).shapes.into_iter().min()?;
        let inner = graph.cycles_without(name);
        if inner.is_empty() {
            return None;
        }
        for set in inner {
            let whole: Set = set.iter().flat_map(|&shape| named(&joined, shape).shapes).collect();
            joined.retain(|known| known.is_disjoint(&whole));
            joined.push(whole);
        }
    }
}
