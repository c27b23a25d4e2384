//! Progress in the repetition counts of a grammar, and the expansions that are alike.

use std::collections::BTreeMap;

use super::{Grammar, Position};

/// Progress in the counts of all positions of a sound grammar.
#[derive(Clone, Debug)]
pub struct Expansions<'a> {
    grammar: &'a Grammar,
    /// For each position: the run, and expansions used of it.
    used: Vec<(usize, u64)>,
    /// Place of each rule in an order in which rules come behind those that use them.
    order: Vec<usize>,
    /// True for each rule whose expansions are all alike.
    fixed: Vec<bool>,
    /// Positions that may still be visited.
    work: u64,
}

impl<'a> Expansions<'a> {
    /// The beginning of `grammar`, which is sound; at most `work` positions are visited.
    pub fn new(grammar: &'a Grammar, work: u64) -> Self {
        let used = vec![(0, 0); grammar.size()];
        let order = order(grammar);
        let mut fixed = vec![false; grammar.rules.len()];
        for rule in backwards(&order) {
            fixed[rule] =
                grammar.rules.at(rule).iter().all(|item| {
                    item.counts.len() == 1 && item.symbol.as_rule().is_none_or(|inner| fixed[inner])
                });
        }
        Self { grammar, used, order, fixed, work }
    }

    /// The rules, each before all that use it.
    pub fn rules(&self) -> Vec<usize> {
        backwards(&self.order)
    }

    /// True where all expansions of `rule` are alike.
    pub fn is_fixed(&self, rule: usize) -> bool {
        self.fixed[rule]
    }

    /// Counts a visit of a position; `None` where there were too many.
    pub fn visit(&mut self) -> Option<()> {
        self.work = self.work.checked_sub(1)?;
        Some(())
    }

    /// Lets so many more positions be visited.
    pub fn allow(&mut self, positions: u64) {
        self.work = self.work.saturating_add(positions);
    }

    /// The count of a position of `rule` in its next expansion.
    pub fn next(&mut self, rule: usize, index: usize) -> Option<u64> {
        self.visit()?;
        let rule = self.grammar.rules.at(rule);
        next(&mut self.used[rule.begin() + index], rule.get(index)?, 1)
    }

    /// Number of expansions of `rule` from here on that are sure to be alike.
    pub fn alike(&mut self, rule: usize) -> Option<u64> {
        let (grammar, mut least) = (self.grammar, u64::MAX);
        for (inner, uses) in self.uses(rule)? {
            let rule = grammar.rules.at(inner);
            for (index, item) in rule.iter().enumerate() {
                let &(run, used) = &self.used[rule.begin() + index];
                // The only count is never used up.
                if item.counts.len() > 1 {
                    least = least.min(item.counts.get(run)?.1.checked_sub(used)? / uses);
                }
            }
        }
        Some(least)
    }

    /// Passes over `times` expansions of `rule` that are alike.
    pub fn skip(&mut self, rule: usize, times: u64) -> Option<()> {
        let grammar = self.grammar;
        for (inner, uses) in self.uses(rule)? {
            let rule = grammar.rules.at(inner);
            for (index, item) in rule.iter().enumerate() {
                next(&mut self.used[rule.begin() + index], item, uses.checked_mul(times)?)?;
            }
        }
        Some(())
    }

    /// Number of terminals of the next expansion of `rule`, if counts stay as they are; `lengths` are those of rules
    /// whose expansions are alike.
    pub fn length(&mut self, rule: usize, lengths: &[u64]) -> Option<u64> {
        let (grammar, mut length) = (self.grammar, 0u64);
        for (inner, uses) in self.uses(rule)? {
            let rule = grammar.rules.at(inner);
            for (index, item) in rule.iter().enumerate() {
                let count = item.counts.get(self.used[rule.begin() + index].0)?.0;
                let own = match item.symbol.as_rule() {
                    None => 1,
                    Some(rule) if self.fixed[rule] => lengths[rule],
                    Some(_) => continue,
                };
                length = length.checked_add(count.checked_mul(own)?.checked_mul(uses)?)?;
            }
        }
        Some(length)
    }

    /// `rule` and the rules inside it whose expansions differ, with the number of expansions of each in one of `rule`,
    /// if counts stay as they are.
    fn uses(&mut self, rule: usize) -> Option<Vec<(usize, u64)>> {
        // By their order: rules come behind those that use them.
        let mut open = BTreeMap::from([(self.order[rule], (rule, 1u64))]);
        let mut uses = Vec::new();
        while let Some((_, (rule, times))) = open.pop_first() {
            uses.push((rule, times));
            let items = self.grammar.rules.at(rule);
            for (index, item) in items.iter().enumerate() {
                self.visit()?;
                let Some(inner) = item.symbol.as_rule().filter(|&inner| !self.fixed[inner]) else {
                    continue;
                };
                let run = self.used[items.begin() + index].0;
                let more = item.counts.get(run)?.0.checked_mul(times)?;
                let sum = &mut open.entry(self.order[inner]).or_insert((inner, 0)).1;
                *sum = sum.checked_add(more)?;
            }
        }
        Some(uses)
    }
}

/// The count of a position in its next expansions, `times` of one run.
fn next(used: &mut (usize, u64), item: Position<'_>, times: u64) -> Option<u64> {
    let &(count, length) = item.counts.get(used.0)?;
    if item.counts.len() > 1 {
        used.1 += times;
        if used.1 >= length {
            *used = (used.0 + 1, 0);
        }
    }
    Some(count)
}

/// Rules from the last of `order` to the first.
fn backwards(order: &[usize]) -> Vec<usize> {
    let mut rules = vec![0; order.len()];
    order.iter().enumerate().for_each(|(rule, &place)| rules[order.len() - 1 - place] = rule);
    rules
}

/// The place of each rule of a sound grammar behind all rules that use it.
fn order(grammar: &Grammar) -> Vec<usize> {
    let inner = |rule: usize| grammar.rules.at(rule).iter().filter_map(|item| item.symbol.as_rule());
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
