//! Counts of terminals in stretches of the sequence, without expanding what lies between their ends.
//!
//! A rule whose repetitions are always the same is passed at once, however often it is repeated; what it holds is
//! counted when the stretch ends, rule by rule. Only rules whose repetitions vary are walked through.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::runs::{Used, next_count};
use super::{Grammar, Symbol};

/// Position of the walk in a rule.
struct Frame {
    rule: usize,
    item: usize,
    /// Expansions that are to be walked, this one among them.
    left: u64,
}

struct Walk<'a> {
    grammar: &'a Grammar,
    spans: &'a [Range<u64>],
    /// Length of one expansion of each rule, where all have the same content.
    lengths: Vec<Option<u64>>,
    /// Rules, each before those that it holds.
    order: Vec<usize>,
    /// The stretch being read, or that comes next.
    span: usize,
    position: u64,
    /// Contents that the stretch holds so far: whole expansions by rule, terminals by number.
    expansions: Vec<u64>,
    terminals: FxHashMap<u32, u64>,
    counts: Vec<Vec<(u32, u64)>>,
}

impl Grammar {
    /// For each of `spans` of positions in the sequence, which ascend and do not overlap, the terminals in it and how
    /// often, ascending.
    ///
    /// Time: the grammar's size for each stretch, and the expansions of rules whose counts vary.
    pub fn counts_in(&self, spans: &[Range<u64>]) -> Vec<Vec<(u32, u64)>> {
        let (order, lengths) = self.measured();
        let mut walk = Walk {
            grammar: self,
            spans,
            expansions: vec![0; lengths.len()],
            lengths,
            order,
            span: 0,
            position: 0,
            terminals: FxHashMap::default(),
            counts: Vec::with_capacity(spans.len()),
        };
        walk.turn();
        walk.all();
        while walk.span < spans.len() {
            walk.end_span();
        }
        walk.counts
    }

    /// The rules that are used, each before those that it holds; length of an expansion of each whose expansions are
    /// all alike.
    pub(super) fn measured(&self) -> (Vec<usize>, Vec<Option<u64>>) {
        let mut order = Vec::with_capacity(self.rules.len());
        let mut seen = vec![false; self.rules.len()];
        let mut lengths: Vec<Option<u64>> = vec![None; self.rules.len()];
        let mut stack = vec![(0usize, 0usize)];
        seen.iter_mut().take(1).for_each(|seen| *seen = true);
        while let Some((rule, item)) = stack.last_mut() {
            let Some(items) = self.rules.get(*rule) else { break };
            if let Some(next) = items.get(*item) {
                *item += 1;
                if let Some(inner) = next.symbol.as_rule().filter(|&inner| seen.get(inner) == Some(&false)) {
                    seen[inner] = true;
                    stack.push((inner, 0));
                }
                continue;
            }
            let length = items.iter().try_fold(0u64, |sum, item| {
                let [(times, _)] = item.counts[..] else { return None };
                let one = match item.symbol.as_rule() {
                    None => 1,
                    Some(inner) => lengths.get(inner).copied().flatten()?,
                };
                sum.checked_add(one.checked_mul(times)?)
            });
            lengths[*rule] = length.filter(|&length| length > 0);
            order.push(*rule);
            stack.pop();
        }
        order.reverse();
        (order, lengths)
    }
}

impl Walk<'_> {
    fn all(&mut self) {
        let mut used = vec![Used::default(); self.grammar.rules.lists()];
        let mut stack = vec![Frame { rule: 0, item: 0, left: 1 }];
        while self.span < self.spans.len() {
            let Some(frame) = stack.last_mut() else { return };
            if frame.item == 0
                && let Some(length) = self.lengths.get(frame.rule).copied().flatten()
            {
                let whole = (self.boundary() - self.position) / length;
                let passed = whole.min(frame.left);
                if passed > 0 {
                    frame.left -= passed;
                    self.pass(Symbol((frame.rule as u32) << 1 | 1), passed, length);
                    if stack.last().is_some_and(|frame| frame.left == 0) {
                        stack.pop();
                    }
                    continue;
                }
            }
            let Some(item) = self.grammar.rules.get(frame.rule).and_then(|rule| rule.get(frame.item)) else {
                frame.left = frame.left.saturating_sub(1);
                frame.item = 0;
                if frame.left == 0 {
                    stack.pop();
                }
                continue;
            };
            let Some(times) = next_count(&mut used, item) else { return };
            frame.item += 1;
            match item.symbol.as_rule() {
                None => {
                    let mut left = times;
                    while left > 0 && self.span < self.spans.len() {
                        let passed = left.min(self.boundary() - self.position);
                        left -= passed;
                        self.pass(item.symbol, passed, 1);
                    }
                }
                // Deeper than there are rules: a rule inside itself.
                Some(_) if stack.len() > self.grammar.rules.len() => return,
                Some(_) if times == 0 => return,
                Some(rule) => stack.push(Frame { rule, item: 0, left: times }),
            }
        }
    }

    /// The next position at which a stretch begins or ends; there is one.
    fn boundary(&self) -> u64 {
        let span = &self.spans[self.span];
        if self.position < span.start { span.start } else { span.end }
    }

    /// Passes `times` of `symbol`, up to the boundary at most.
    fn pass(&mut self, symbol: Symbol, times: u64, length: u64) {
        if self.spans[self.span].start <= self.position {
            let sum = match symbol.as_rule() {
                Some(rule) => &mut self.expansions[rule],
                None => self.terminals.entry(symbol.0 >> 1).or_default(),
            };
            *sum = sum.saturating_add(times);
        }
        self.position += times * length;
        self.turn();
    }

    /// Ends the stretches that end here.
    fn turn(&mut self) {
        while self.spans.get(self.span).is_some_and(|span| span.end <= self.position.max(span.start)) {
            self.end_span();
        }
    }

    fn end_span(&mut self) {
        for &rule in &self.order {
            let times = std::mem::take(&mut self.expansions[rule]);
            for item in self.grammar.rules.at(rule).iter().filter(|_| times > 0) {
                let [(each, _)] = item.counts[..] else { continue };
                let sum = match item.symbol.as_rule() {
                    Some(inner) => &mut self.expansions[inner],
                    None => self.terminals.entry(item.symbol.0 >> 1).or_default(),
                };
                *sum = sum.saturating_add(times.saturating_mul(each));
            }
        }
        let mut counts: Vec<(u32, u64)> = self.terminals.drain().collect();
        counts.sort_unstable();
        self.counts.push(counts);
        self.span += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::super::Builder;
    use super::*;
    use std::collections::BTreeMap;

    /// The same, call by call.
    fn naive(calls: &[u32], span: &Range<u64>) -> Vec<(u32, u64)> {
        let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
        let (from, until) = (span.start.min(calls.len() as u64), span.end.min(calls.len() as u64));
        calls.iter().take(until as usize).skip(from as usize).for_each(|&call| {
            *counts.entry(call).or_default() += 1;
        });
        counts.into_iter().collect()
    }

    #[test]
    fn stretches_of_random_loops_have_the_counts_of_their_calls() {
        // A small generator of its own: the same numbers on every machine.
        let mut state = 12345u64;
        let mut random = move |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for case in 0..200u64 {
            let mut calls: Vec<u32> = Vec::new();
            for _ in 0..1 + random(6) {
                let body: Vec<(u32, u64)> =
                    (0..1 + random(4)).map(|_| (random(5) as u32, 1 + random(3))).collect();
                let varies = random(2) == 0;
                for trip in 0..random(30) {
                    for &(call, times) in &body {
                        let times = if varies { times + (trip * trip) % 3 } else { times };
                        calls.extend((0..times).map(|_| call));
                    }
                }
            }
            let mut builder = Builder::default();
            calls.iter().for_each(|&call| builder.push(call, 1));
            let grammar = builder.into_grammar();
            let length = calls.len() as u64;
            let mut cuts: Vec<u64> = (0..2 * (1 + random(5))).map(|_| random(length + 10)).collect();
            cuts.sort_unstable();
            let spans: Vec<Range<u64>> = cuts.chunks(2).map(|pair| pair[0]..pair[1]).collect();
            let expected: Vec<_> = spans.iter().map(|span| naive(&calls, span)).collect();
            assert_eq!(grammar.counts_in(&spans), expected, "case {case}: {spans:?}");
            // Neighbours without room between them, and the whole.
            let halves = [0..length / 2, length / 2..u64::MAX];
            let expected: Vec<_> = halves.iter().map(|span| naive(&calls, span)).collect();
            assert_eq!(grammar.counts_in(&halves), expected, "case {case}");
        }
    }

    #[test]
    fn long_loops_are_not_expanded() {
        let mut builder = Builder::default();
        for _ in 0..40 {
            builder.push(0, 1);
            builder.push(1, 1);
        }
        let mut grammar = builder.into_grammar();
        // A loop as long as no walk could pass call by call.
        let many = 1u64 << 50;
        let mut rules = grammar.rules.to_items();
        for item in rules[0].iter_mut().filter(|item| item.symbol.as_rule().is_some()) {
            item.counts = [(many, 1)].into_iter().collect();
        }
        grammar.rules = rules.into_iter().collect();
        let counts = grammar.counts_in(&[1..many, many + 1..many + 4]);
        assert_eq!(counts[0], [(0, many / 2 - 1), (1, many / 2)]);
        assert_eq!(counts[1], [(0, 1), (1, 2)]);
    }

    #[test]
    fn nothing_has_no_counts() {
        let empty: Vec<Vec<(u32, u64)>> = vec![Vec::new(), Vec::new()];
        assert_eq!(Grammar::default().counts_in(&[0..5, 5..6]), empty);
        assert_eq!(Grammar { rules: super::super::Rules::default() }.counts_in(&[3..3, 4..9]), empty);
        assert!(Grammar::default().counts_in(&[]).is_empty());
    }
}
