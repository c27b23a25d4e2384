//! Sequences from grammars: expansions of a rule that are alike are made once.

use std::collections::BTreeMap;

use ampl_trace::grammar::{Grammar, Item};

use super::sequence::{DEEPEST, Part, Sequence, Slice, Token};

/// Most positions that are visited to build a sequence.
const MOST_WORK: u64 = 1 << 25;

/// A sequence that is built from a grammar.
pub struct Build<'a> {
    grammar: &'a Grammar,
    /// The part of each terminal.
    terminals: Vec<Option<Part>>,
    /// The part of each rule whose expansions are all alike.
    fixed: Vec<Option<Option<Part>>>,
    /// Index of each rule's first position.
    places: Vec<usize>,
    /// Progress in the counts of each position: the run, and expansions used of it.
    used: Vec<(usize, u64)>,
    /// Place of each rule in an order in which rules come behind those that use them.
    order: Vec<usize>,
    work: u64,
    /// The parts made so far.
    pub sequence: Sequence,
}

impl<'a> Build<'a> {
    /// The parts of the terminals and of the rules that are always alike; `None` where these are too many.
    pub fn new(grammar: &'a Grammar, tokens: &[Token]) -> Option<Self> {
        let mut sequence = Sequence::default();
        let terminals = tokens.iter().map(|&token| sequence.token(token)).collect();
        let mut size = 0;
        let first_of = |rule: &Vec<Item>| {
            size += rule.len();
            size - rule.len()
        };
        let places = grammar.rules.iter().map(first_of).collect();
        let used = vec![(0, 0); grammar.size()];
        let fixed = vec![None; grammar.rules.len()];
        let order = order(grammar);
        let mut build = Self { order, grammar, terminals, fixed, places, used, work: MOST_WORK, sequence };
        build.fix()?;
        Some(build)
    }

    /// The parts of rules whose expansions are all alike.
    fn fix(&mut self) -> Option<()> {
        let grammar = self.grammar;
        let mut is_done = vec![false; grammar.rules.len()];
        for root in 1..grammar.rules.len() {
            let mut stack = vec![(root, false)];
            while let Some((rule, is_visited)) = stack.pop() {
                if is_done[rule] {
                    continue;
                }
                let inner = grammar.rules[rule].iter().filter_map(|item| item.symbol.as_rule());
                if !is_visited {
                    stack.push((rule, true));
                    stack.extend(inner.filter(|&inner| !is_done[inner]).map(|inner| (inner, false)));
                    continue;
                }
                is_done[rule] = true;
                let is_fixed = grammar.rules[rule].iter().all(|item| {
                    item.counts.len() == 1
                        && item.symbol.as_rule().is_none_or(|inner| self.fixed[inner].is_some())
                });
                if is_fixed {
                    let parts = self.expand(rule, 0)?;
                    self.fixed[rule] = Some(self.sequence.intern(parts)?);
                }
            }
        }
        Some(())
    }

    /// The next expansion of `rule`.
    pub fn expand(&mut self, rule: usize, depth: u32) -> Option<Slice> {
        if depth > DEEPEST {
            return None;
        }
        let grammar = self.grammar;
        let mut parts = Slice::new();
        for (index, item) in grammar.rules[rule].iter().enumerate() {
            self.work = self.work.checked_sub(1)?;
            let mut times = next(&mut self.used[self.places[rule] + index], item, 1)?;
            let Some(inner) = item.symbol.as_rule() else {
                let terminal = item.symbol.as_terminal()? as usize;
                if let Some(part) = *self.terminals.get(terminal)? {
                    self.sequence.push(&mut parts, part, times);
                }
                continue;
            };
            if let Some(part) = self.fixed[inner] {
                part.into_iter().for_each(|part| self.sequence.push(&mut parts, part, times));
                continue;
            }
            while times > 0 {
                let alike = self.alike(inner)?.clamp(1, times);
                let expansion = self.expand(inner, depth + 1)?;
                if alike > 1 {
                    self.skip(inner, alike - 1)?;
                }
                if let Some(part) = self.sequence.intern(expansion)? {
                    self.sequence.push(&mut parts, part, alike);
                }
                times -= alike;
            }
        }
        Some(parts)
    }

    /// Number of expansions of `rule` from here on that are sure to be alike.
    fn alike(&mut self, rule: usize) -> Option<u64> {
        let (grammar, mut least) = (self.grammar, u64::MAX);
        for (inner, uses) in self.uses(rule)? {
            for (index, item) in grammar.rules[inner].iter().enumerate() {
                let &(run, used) = &self.used[self.places[inner] + index];
                // The only count is never used up.
                if item.counts.len() > 1 {
                    least = least.min(item.counts.get(run)?.1.checked_sub(used)? / uses);
                }
            }
        }
        Some(least)
    }

    /// Passes over `times` expansions of `rule` that are alike.
    fn skip(&mut self, rule: usize, times: u64) -> Option<()> {
        let grammar = self.grammar;
        for (inner, uses) in self.uses(rule)? {
            for (index, item) in grammar.rules[inner].iter().enumerate() {
                next(&mut self.used[self.places[inner] + index], item, uses.checked_mul(times)?)?;
            }
        }
        Some(())
    }

    /// `rule` and the rules inside it whose expansions differ, with the number of expansions of each in one of `rule`,
    /// if counts stay as they are.
    fn uses(&mut self, rule: usize) -> Option<Vec<(usize, u64)>> {
        // By their order: rules come behind those that use them.
        let mut open = BTreeMap::from([(self.order[rule], (rule, 1u64))]);
        let mut uses = Vec::new();
        while let Some((_, (rule, times))) = open.pop_first() {
            uses.push((rule, times));
            for (index, item) in self.grammar.rules[rule].iter().enumerate() {
                self.work = self.work.checked_sub(1)?;
                let Some(inner) = item.symbol.as_rule().filter(|&inner| self.fixed[inner].is_none()) else {
                    continue;
                };
                let run = self.used[self.places[rule] + index].0;
                let more = item.counts.get(run)?.0.checked_mul(times)?;
                let sum = &mut open.entry(self.order[inner]).or_insert((inner, 0)).1;
                *sum = sum.checked_add(more)?;
            }
        }
        Some(uses)
    }
}

/// The count of a position in its next expansions, `times` of one run.
fn next(used: &mut (usize, u64), item: &Item, times: u64) -> Option<u64> {
    let &(count, length) = item.counts.get(used.0)?;
    if item.counts.len() > 1 {
        used.1 += times;
        if used.1 >= length {
            *used = (used.0 + 1, 0);
        }
    }
    Some(count)
}

/// The place of each rule of a sound grammar behind all rules that use it.
fn order(grammar: &Grammar) -> Vec<usize> {
    let inner = |rule: usize| grammar.rules[rule].iter().filter_map(|item| item.symbol.as_rule());
    let mut users = vec![0u32; grammar.rules.len()];
    (0..users.len()).flat_map(inner).for_each(|rule| users[rule] += 1);
    let (mut order, mut open, mut number) = (vec![0; users.len()], vec![0], 0);
    while let Some(rule) = open.pop() {
        order[rule] = number;
        number += 1;
        for inner in inner(rule) {
            users[inner] -= 1;
            if users[inner] == 0 {
                open.push(inner);
            }
        }
    }
    order
}
