//! The sequence of a grammar, in its order.

use super::{Grammar, Position};

/// Progress in a list of counts.
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
    /// Progress by list.
    used: Vec<Used>,
    stack: Vec<Frame>,
    /// Length of one expansion of each rule, where all have the same content; empty until it is needed.
    lengths: Vec<Option<u64>>,
}

impl<'a> Runs<'a> {
    pub(super) fn new(grammar: &'a Grammar) -> Self {
        let used = vec![Used::default(); grammar.rules.lists()];
        Self { grammar, used, stack: vec![Frame { rule: 0, item: 0, left: 0 }], lengths: Vec::new() }
    }

    /// Passes whole runs of `most` terminals together at most, as many as it can; returns the number of terminals. Rules
    /// whose repetitions are always the same are passed at once.
    pub fn pass_over(&mut self, most: u64) -> u64 {
        if self.lengths.is_empty() {
            self.lengths = self.grammar.measured().1;
        }
        let mut left = most;
        while self.pass(&mut left).is_some() {}
        most - left
    }

    /// One step of it; `None` where nothing more can be passed.
    fn pass(&mut self, left: &mut u64) -> Option<()> {
        let depth = self.stack.len();
        let frame = self.stack.last_mut()?;
        if frame.item == 0
            && let Some(length) = self.lengths.get(frame.rule).copied().flatten()
        {
            let expansions = (*left / length).min(frame.left.saturating_add(1));
            *left -= expansions * length;
            if expansions > frame.left {
                self.stack.pop();
                return Some(());
            }
            frame.left -= expansions;
        }
        let Some(item) = self.grammar.rules.get(frame.rule)?.get(frame.item) else {
            if frame.left > 0 {
                (frame.left, frame.item) = (frame.left - 1, 0);
            } else {
                self.stack.pop();
            }
            return Some(());
        };
        let before = item.counts.list().map(|list| self.used[list]);
        let count = next_count(&mut self.used, item)?;
        let passed = match item.symbol.as_rule() {
            None => left.checked_sub(count).map(|rest| *left = rest),
            // Deeper than there are rules: a rule inside itself.
            Some(_) if depth > self.grammar.rules.len() => None,
            Some(rule) => count.checked_sub(1).map(|left| self.stack.push(Frame { rule, item: 0, left })),
        };
        if passed.is_none() {
            // It is read again by the walk.
            item.counts.list().zip(before).into_iter().for_each(|(list, before)| self.used[list] = before);
            return None;
        }
        self.stack[depth - 1].item += 1;
        Some(())
    }
}

/// The next count of a position; `used` has the progress in each list.
pub(super) fn next_count(used: &mut [Used], item: Position<'_>) -> Option<u64> {
    if let [(times, _)] = item.counts[..] {
        return Some(times);
    }
    let used = &mut used[item.counts.list()?];
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
            frame.item += 1;
            let count = next_count(&mut self.used, item)?;
            match item.symbol.as_rule() {
                None => return Some((item.symbol.0 >> 1, count)),
                // Deeper than there are rules: a rule inside itself.
                Some(_) if self.stack.len() > self.grammar.rules.len() => return None,
                Some(rule) => self.stack.push(Frame { rule, item: 0, left: count.checked_sub(1)? }),
            }
        }
    }
}
