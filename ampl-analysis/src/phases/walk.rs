//! Calls of a sequence by place and window. Repetitions are visited once per window, not one by one.

use ampl_trace::grammar::{Grammar, Position};

/// Most places of a rule whose repetitions are counted together.
const MOST_PLACES: usize = 64;

/// Calls in a row that ended in one window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Number of calls.
    pub calls: u64,
    /// The window; `None` where it is not known, or not wanted.
    pub window: Option<usize>,
}

/// A rule whose expansions are all alike.
#[derive(Clone, Debug, Default)]
struct Fixed {
    calls: u64,
    /// Calls by place.
    counts: Vec<(u32, u64)>,
}

impl Fixed {
    fn add(&mut self, other: &Self, times: u64) {
        self.calls = self.calls.saturating_add(other.calls.saturating_mul(times));
        for &(place, calls) in &other.counts {
            self.add_place(place, calls.saturating_mul(times));
        }
    }

    fn add_place(&mut self, place: u32, calls: u64) {
        match self.counts.iter_mut().find(|(known, _)| *known == place) {
            Some((_, sum)) => *sum = sum.saturating_add(calls),
            None => self.counts.push((place, calls)),
        }
    }
}

/// Position of the walk in a rule.
struct Frame {
    rule: usize,
    item: usize,
    /// Number of further expansions of the rule.
    left: u64,
}

/// Passes every call of `grammar` that ended in a known window to `add`: window, place and number. `places` are those
/// of terminals. `steps` limits the work, and decreases.
///
/// `None` where that is too little, or the grammar is not sound.
pub fn count(
    grammar: &Grammar,
    places: &[Option<u32>],
    spans: &[Span],
    steps: &mut u64,
    mut add: impl FnMut(usize, u32, u64),
) -> Option<()> {
    let fixed = fixed_rules(grammar, places);
    // Used counts of a position: the run, and expansions in it.
    let mut used = vec![(0usize, 0u64); grammar.size()];
    let mut spans = spans.iter().copied();
    let mut span = Span { calls: 0, window: None };
    let mut stack = vec![Frame { rule: 0, item: 0, left: 0 }];
    while let Some(frame) = stack.last_mut() {
        *steps = steps.checked_sub(1)?;
        while span.calls == 0 {
            let Some(next) = spans.next() else { return Some(()) };
            span = next;
        }
        let rule = grammar.rules.get(frame.rule)?;
        let Some(item) = rule.get(frame.item) else {
            if frame.left == 0 {
                stack.pop();
                continue;
            }
            if let Some(alike) = fixed.get(frame.rule)?.as_ref().filter(|alike| alike.calls > 0) {
                let times = frame.left.min(span.calls / alike.calls);
                if times > 0 {
                    frame.left -= times;
                    span.calls -= times * alike.calls;
                    for &(place, calls) in &alike.counts {
                        span.window.into_iter().for_each(|window| add(window, place, calls * times));
                    }
                    continue;
                }
            }
            (frame.left, frame.item) = (frame.left - 1, 0);
            continue;
        };
        let mut times = next_count(&mut used[rule.begin() + frame.item], item)?;
        frame.item += 1;
        if let Some(inner) = item.symbol.as_rule() {
            // Deeper than the number of rules: a rule inside itself.
            if stack.len() > grammar.rules.len() {
                return None;
            }
            stack.push(Frame { rule: inner, item: grammar.rules.get(inner)?.len(), left: times });
            continue;
        }
        let place = item.symbol.as_terminal().and_then(|terminal| *places.get(terminal as usize)?);
        while times > 0 {
            if span.calls == 0 {
                let Some(next) = spans.next() else { return Some(()) };
                span = next;
            }
            let now = times.min(span.calls);
            if let (Some(window), Some(place)) = (span.window.filter(|_| now > 0), place) {
                add(window, place, now);
            }
            (times, span.calls) = (times - now, span.calls - now);
        }
    }
    Some(())
}

/// The next count of a position.
fn next_count(used: &mut (usize, u64), item: Position<'_>) -> Option<u64> {
    if let [(times, _)] = item.counts[..] {
        return Some(times);
    }
    let &(times, expansions) = item.counts.get(used.0)?;
    used.1 += 1;
    if used.1 >= expansions {
        *used = (used.0 + 1, 0);
    }
    Some(times)
}

/// Calls of each rule whose expansions are all alike.
fn fixed_rules(grammar: &Grammar, places: &[Option<u32>]) -> Vec<Option<Fixed>> {
    enum State {
        New,
        Open,
        Done(Option<Fixed>),
    }
    let mut states: Vec<State> = grammar.rules.iter().map(|_| State::New).collect();
    for root in 0..states.len() {
        let mut stack = vec![root];
        while let Some(&rule) = stack.last() {
            if let State::Done(_) = states[rule] {
                stack.pop();
                continue;
            }
            let inner = grammar.rules.at(rule).iter().filter_map(|item| item.symbol.as_rule());
            let new = inner.filter(|&inner| matches!(states.get(inner), Some(State::New)) && inner != rule);
            let new: Vec<usize> = new.collect();
            if matches!(states[rule], State::New) && !new.is_empty() {
                states[rule] = State::Open;
                stack.extend(new);
                continue;
            }
            stack.pop();
            let mut own = Some(Fixed::default());
            for item in grammar.rules.at(rule).iter() {
                let Some(sum) = own.as_mut().filter(|sum| sum.counts.len() <= MOST_PLACES) else { break };
                let [(times, _)] = item.counts[..] else {
                    own = None;
                    break;
                };
                match item.symbol.as_rule() {
                    Some(inner) => match states.get(inner) {
                        Some(State::Done(Some(of))) => sum.add(of, times),
                        _ => own = None,
                    },
                    None => {
                        sum.calls = sum.calls.saturating_add(times);
                        let terminal = item.symbol.as_terminal().unwrap_or(u32::MAX);
                        if let Some(place) = places.get(terminal as usize).copied().flatten() {
                            sum.add_place(place, times);
                        }
                    }
                }
            }
            states[rule] = State::Done(own.filter(|own| own.counts.len() <= MOST_PLACES));
        }
    }
    let done = |state| match state {
        State::Done(fixed) => fixed,
        _ => None,
    };
    states.into_iter().map(done).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use ampl_trace::grammar::Builder;
    use proptest::prelude::*;

    use super::*;

    fn grammar(calls: &[u32]) -> Grammar {
        let mut builder = Builder::new();
        calls.iter().for_each(|&call| builder.push(call, 1));
        builder.into_grammar()
    }

    /// Loops in loops, as programs have them, with an odd call now and then.
    fn sequences() -> impl Strategy<Value = Vec<u32>> {
        let part = (prop::collection::vec(0u32..4, 1..5), 1usize..40, 0u32..6);
        prop::collection::vec(part, 1..6).prop_map(|parts| {
            let all = parts.into_iter().flat_map(|(body, times, odd)| {
                let mut calls: Vec<u32> = (0..times).flat_map(|_| body.clone()).collect();
                calls.push(odd);
                calls
            });
            all.collect()
        })
    }

    proptest! {
        #[test]
        fn it_counts_what_the_sequence_has(
            calls in sequences(),
            lengths in prop::collection::vec((0u64..30, any::<bool>()), 0..30),
        ) {
            // Terminals 4 and 5 have no place.
            let places = [Some(7), Some(2), Some(7), Some(0), None, None];
            let window = |(index, &(calls, known)): (usize, &(u64, bool))| Span { calls, window: known.then_some(index) };
            let spans: Vec<Span> = lengths.iter().enumerate().map(window).collect();
            let mut naive: BTreeMap<(usize, u32), u64> = BTreeMap::new();
            let ended = spans.iter().flat_map(|span| (0..span.calls).map(|_| span.window));
            for (&call, window) in calls.iter().zip(ended) {
                if let (Some(window), Some(place)) = (window, places[call as usize]) {
                    *naive.entry((window, place)).or_default() += 1;
                }
            }
            let mut found: BTreeMap<(usize, u32), u64> = BTreeMap::new();
            let add = |window, place, calls| *found.entry((window, place)).or_default() += calls;
            count(&grammar(&calls), &places, &spans, &mut u64::MAX.clone(), add).unwrap();
            prop_assert_eq!(found, naive);
        }
    }

    #[test]
    fn a_loop_is_gone_through_once_per_window() {
        let calls: Vec<u32> = (0..100_000).flat_map(|_| [0, 1, 1, 2]).collect();
        let spans = vec![Span { calls: 40_000, window: Some(0) }; 10];
        let (mut steps, mut sum) = (2000, 0);
        count(&grammar(&calls), &[Some(0); 3], &spans, &mut steps, |_, _, calls| sum += calls).unwrap();
        assert_eq!(sum, 400_000);
        assert_eq!(count(&grammar(&calls), &[Some(0); 3], &spans, &mut 3, |_, _, _| {}), None);
    }
}
