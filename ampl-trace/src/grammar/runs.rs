//! The sequence of a grammar, in its order.

use super::{Grammar, Item};

/// Progress in the counts of a position.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Used {
    run: usize,
    expansions: u64,
}

/// Position of the walk in a rule.
#[derive(Clone, Debug)]
struct Frame {
    rule: usize,
    item: usize,
    /// Times that the rule is to be expanded after this.
    left: u64,
}

/// Iterator over the runs (terminal, count) of a grammar.
///
/// Ends early, without a panic, where a grammar that is not sound has no count or rule to go on with.
#[derive(Clone, Debug)]
pub struct Runs<'a> {
    grammar: &'a Grammar,
    /// Index in `used` of the first position of each rule.
    places: Vec<usize>,
    used: Vec<Used>,
    stack: Vec<Frame>,
}

impl<'a> Runs<'a> {
    pub(super) fn new(grammar: &'a Grammar) -> Self {
        let mut size = 0;
        let places = grammar.rules.iter().map(|rule| {
            size += rule.len();
            size - rule.len()
        });
        let places = places.collect();
        let used = vec![Used::default(); size];
        Self { grammar, places, used, stack: vec![Frame { rule: 0, item: 0, left: 0 }] }
    }
}

/// The next count of a position.
pub(super) fn next_count(used: &mut Used, item: &Item) -> Option<u64> {
    if let [(times, _)] = item.counts[..] {
        return Some(times);
    }
    let &(times, expansions) = item.counts.get(used.run)?;
    used.expansions += 1;
    if used.expansions >= expansions {
        *used = Used { run: used.run + 1, expansions: 0 };
    }
    Some(times)
}

impl Iterator for Runs<'_> {
    type Item = (u32, u64);

    fn next(&mut self) -> Option<(u32, u64)> {
        loop {
            let frame = self.stack.last_mut()?;
            let Some(item) = self.grammar.rules.get(frame.rule)?.get(frame.item) else {
                if frame.left > 0 {
                    frame.left -= 1;
                    frame.item = 0;
                } else {
                    self.stack.pop();
                }
                continue;
            };
            let used = &mut self.used[self.places[frame.rule] + frame.item];
            frame.item += 1;
            let count = next_count(used, item)?;
            match item.symbol.as_rule() {
                None => return Some((item.symbol.0 >> 1, count)),
                // Deeper than there are rules: a rule inside itself.
                Some(_) if self.stack.len() > self.grammar.rules.len() => return None,
                Some(rule) => self.stack.push(Frame { rule, item: 0, left: count.checked_sub(1)? }),
            }
        }
    }
}
