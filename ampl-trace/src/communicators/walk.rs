//! The calls of a thread that matter, in their order, without the others.

use super::calls::Weight;
use crate::grammar::{Grammar, Position, Symbol};

/// Steps that a reader may still take.
#[derive(Clone, Copy, Debug)]
pub struct Fuel(pub u64);

impl Fuel {
    /// Takes off `steps`; `None` where there are not so many.
    pub fn spend(&mut self, steps: u64) -> Option<()> {
        match self.0.checked_sub(steps) {
            Some(left) => self.0 = left,
            None => {
                self.0 = 0;
                return None;
            }
        }
        Some(())
    }
}

/// Rules of a grammar that lead to terminals that matter, and their positions.
#[derive(Debug)]
pub struct Paths<'a> {
    grammar: &'a Grammar,
    weights: &'a [Weight],
    rules: Vec<Weight>,
    /// Positions that matter, by rule.
    positions: Vec<Vec<u32>>,
}

/// Position of the walk in a rule.
struct Frame {
    rule: usize,
    /// Index into the positions that matter.
    next: usize,
    /// Times that the rule is to be expanded after this.
    left: u64,
}

impl<'a> Paths<'a> {
    /// Paths of a sound grammar whose terminals have these weights.
    pub fn new(grammar: &'a Grammar, weights: &'a [Weight]) -> Self {
        let mut paths = Self {
            grammar,
            weights,
            rules: vec![Weight::None; grammar.rules.len()],
            positions: vec![Vec::new(); grammar.rules.len()],
        };
        let mut seen = vec![false; grammar.rules.len()];
        let mut stack = vec![(0, 0)];
        // A rule is weighed when all that it names has been.
        while let Some((rule, next)) = stack.last_mut() {
            let (rule, at) = (*rule, *next);
            let Some(item) = grammar.rules.get(rule).and_then(|items| items.get(at)) else {
                stack.pop();
                paths.weigh(rule);
                continue;
            };
            *next += 1;
            if let Some(inner) = item.symbol.as_rule().filter(|&inner| inner < seen.len())
                && !std::mem::replace(&mut seen[inner], true)
            {
                stack.push((inner, 0));
            }
        }
        paths
    }

    fn weigh(&mut self, rule: usize) {
        let Some(items) = self.grammar.rules.get(rule) else { return };
        let weights = items.iter().map(|item| self.of(item.symbol));
        let weighed: Vec<(u32, Weight)> =
            (0..).zip(weights).filter(|&(_, weight)| weight != Weight::None).collect();
        self.rules[rule] = weighed.iter().map(|&(_, weight)| weight).max().unwrap_or(Weight::None);
        self.positions[rule] = weighed.into_iter().map(|(position, _)| position).collect();
    }

    fn of(&self, symbol: Symbol) -> Weight {
        let weight = match symbol.as_rule() {
            Some(rule) => self.rules.get(rule),
            None => self.weights.get((symbol.0 >> 1) as usize),
        };
        weight.copied().unwrap_or(Weight::None)
    }

    /// True where any call makes or frees an object.
    pub fn acts(&self) -> bool {
        self.rules.first() == Some(&Weight::Acts)
    }

    /// Visits the terminals that matter: acting ones as often as they are called, reporting ones at least once between
    /// two that act. `None` where fuel runs out, or `visit` returns that.
    pub fn walk(&self, fuel: &mut Fuel, mut visit: impl FnMut(u32, &mut Fuel) -> Option<()>) -> Option<()> {
        let mut used: Vec<Vec<(usize, u64)>> = vec![Vec::new(); self.rules.len()];
        let mut stack = vec![Frame { rule: 0, next: 0, left: 0 }];
        // Number of acting calls when each reporting rule was last visited.
        let (mut told, mut acted) = (vec![u64::MAX; self.rules.len()], 0);
        while let Some(frame) = stack.last_mut() {
            fuel.spend(1)?;
            let Some(&position) = self.positions[frame.rule].get(frame.next) else {
                if frame.left > 0 {
                    frame.left -= 1;
                    frame.next = 0;
                } else {
                    stack.pop();
                }
                continue;
            };
            let (rule, next) = (frame.rule, frame.next);
            frame.next += 1;
            let item = self.grammar.rules.at(rule).get(position as usize)?;
            let weight = self.of(item.symbol);
            let count = match weight {
                Weight::Acts => {
                    let used = &mut used[rule];
                    used.resize(self.positions[rule].len(), (0, 0));
                    times(&mut used[next], item)?
                }
                _ => 1,
            };
            match item.symbol.as_rule() {
                None => {
                    acted += u64::from(weight == Weight::Acts);
                    for _ in 0..count {
                        fuel.spend(1)?;
                        visit(item.symbol.0 >> 1, fuel)?;
                    }
                }
                // Deeper than there are rules: a rule inside itself.
                Some(_) if stack.len() > self.rules.len() => return None,
                // Nothing has changed since.
                Some(rule) if weight == Weight::Tells && told[rule] == acted => {}
                Some(rule) => {
                    told[rule] = acted;
                    stack.push(Frame { rule, next: 0, left: count.checked_sub(1)? });
                }
            }
        }
        Some(())
    }
}

/// The next count of a position.
fn times((run, expansions): &mut (usize, u64), item: Position<'_>) -> Option<u64> {
    if let [(times, _)] = item.counts[..] {
        return Some(times);
    }
    let &(times, length) = item.counts.get(*run)?;
    *expansions += 1;
    if *expansions >= length {
        (*run, *expansions) = (*run + 1, 0);
    }
    Some(times)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::Builder;
    use proptest::prelude::*;

    /// Terminals 0 and 1 do not matter, 2 tells, 3 and 4 act.
    const WEIGHTS: [Weight; 5] = [Weight::None, Weight::None, Weight::Tells, Weight::Acts, Weight::Acts];

    fn walked(grammar: &Grammar) -> Vec<u32> {
        let (mut out, paths) = (Vec::new(), Paths::new(grammar, &WEIGHTS));
        let visit = |terminal, _: &mut Fuel| {
            out.push(terminal);
            Some(())
        };
        paths.walk(&mut Fuel(1 << 20), visit).unwrap();
        out
    }

    /// Tellings between two acts, each once.
    fn condensed(terminals: impl Iterator<Item = u32>) -> Vec<(Vec<u32>, u32)> {
        let (mut out, mut told) = (Vec::new(), std::collections::BTreeSet::new());
        for terminal in terminals.chain([9]) {
            match terminal {
                0 | 1 => {}
                2 => drop(told.insert(2)),
                _ => out.push((std::mem::take(&mut told).into_iter().collect(), terminal)),
            }
        }
        out
    }

    proptest! {
        #[test]
        fn nothing_that_matters_is_left_out(
            parts in prop::collection::vec((prop::collection::vec(0u32..5, 1..6), 1usize..9), 0..12),
        ) {
            let all: Vec<u32> = parts.iter().flat_map(|(part, times)| part.repeat(*times)).collect();
            let mut builder = Builder::new();
            all.iter().for_each(|&terminal| builder.push(terminal, 1));
            let grammar = builder.grammar();
            prop_assert_eq!(condensed(walked(&grammar).into_iter()), condensed(all.into_iter()));
        }
    }

    #[test]
    fn loops_that_only_tell_or_do_not_matter_are_walked_once() {
        let mut builder = Builder::new();
        for turn in 0..10_000 {
            [0, 1, 2, 0, 2].iter().for_each(|&terminal| builder.push(terminal, 1 + turn % 3));
        }
        builder.push(3, 4);
        let grammar = builder.grammar();
        let (mut acts, mut fuel) = (0, Fuel(2_000));
        let paths = Paths::new(&grammar, &WEIGHTS);
        let visit = |terminal, _: &mut Fuel| {
            acts += u32::from(terminal == 3);
            Some(())
        };
        paths.walk(&mut fuel, visit).unwrap();
        assert_eq!(acts, 4);
        // Not so many steps as calls that act.
        builder.push(4, 1 << 40);
        let grammar = builder.grammar();
        let paths = Paths::new(&grammar, &WEIGHTS);
        assert_eq!(paths.walk(&mut Fuel(10_000), |_, _| Some(())), None);
    }
}
