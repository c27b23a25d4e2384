//! A grammar without the rules that do not pay.

use smallvec::smallvec;

use super::{Grammar, Item, Rule, Symbol};

/// True where a rule of `size` positions that stands at `uses` others takes fewer bytes than its copies would.
///
/// In tenths of a symbol: naming a rule takes more than naming a terminal, and the length of a body takes
/// something.
fn pays(uses: usize, size: usize) -> bool {
    10 * uses * size > 17 * uses + 10 * size + 5
}

/// The logarithm to base 2 in 256ths, for `value` from 1, at most 22 of them too small: the same on every machine.
fn log2(value: u64) -> u64 {
    let whole = value.ilog2();
    let fraction = (u128::from(value) << 8 >> whole) as u64 - 256;
    (u64::from(whole) << 8) + fraction
}

/// Length of all values of these frequencies, each as long as its frequency implies, 256ths of bits.
fn entropy(frequencies: impl Iterator<Item = u64> + Clone) -> u64 {
    let all: u64 = frequencies.clone().sum();
    let of = |count: u64| count * log2(count.max(1));
    of(all).saturating_sub(frequencies.map(of).sum())
}

impl Grammar {
    /// This grammar, or the same sequence [trimmed](Grammar::trimmed), whichever takes fewer bits.
    pub fn shorter(self) -> Self {
        let Some(bits) = self.bits() else { return self };
        let trimmed = self.trimmed();
        if trimmed.bits().is_some_and(|fewer| fewer < bits) { trimmed } else { self }
    }

    /// Length of its symbols by their frequencies, and of the lengths of its rules, 256ths of bits; `None` where
    /// symbols have numbers far above their count.
    ///
    /// The first appearance of a symbol is coded as the next of its kind.
    fn bits(&self) -> Option<u64> {
        let symbols = || self.rules.all().map(|item| item.symbol.0 as usize);
        let most = symbols().max().unwrap_or(0);
        if most > 2 * (self.rules.len() + symbols().count()) {
            return None;
        }
        let mut again = vec![0u64; most + 1];
        let mut first = [0; 2];
        for symbol in symbols() {
            again[symbol] += 1;
            first[symbol & 1] += u64::from(again[symbol] == 1);
        }
        let mut lengths = vec![0; self.rules.iter().map(Rule::len).max().unwrap_or(0) + 1];
        self.rules.iter().for_each(|rule| lengths[rule.len()] += 1);
        let known = again.into_iter().map(|count| count.saturating_sub(1));
        Some(entropy(known.chain(first)) + entropy(lengths.into_iter()))
    }

    /// The same sequence without rules that cost more than they save.
    ///
    /// Such rules arise by chance in sequences without order. Repetitions in loops stay. The grammar must be sound.
    pub fn trimmed(&self) -> Self {
        let Some(order) = self.order() else { return self.clone() };
        let (mut uses, mut always_once) = (vec![0usize; self.rules.len()], vec![true; self.rules.len()]);
        for item in self.rules.all() {
            if let Some(rule) = item.symbol.as_rule() {
                uses[rule] += 1;
                always_once[rule] &= matches!(item.counts[..], [(1, _)]);
            }
        }
        // Bodies of rules that are no more; the innermost first.
        let mut inside: Vec<Option<Vec<Item>>> = vec![None; self.rules.len()];
        let mut rules: Vec<Vec<Item>> = vec![Vec::new(); self.rules.len()];
        for &rule in order.iter().rev() {
            let mut body: Vec<Item> = Vec::with_capacity(self.rules.at(rule).len());
            for item in self.rules.at(rule).iter() {
                match item.symbol.as_rule().and_then(|inner| inside[inner].as_ref()) {
                    Some(inner) => {
                        let expansions = item.counts[0].1;
                        inner.iter().for_each(|item| {
                            let counts = smallvec![(item.counts[0].0, expansions)];
                            append(&mut body, Item { symbol: item.symbol, counts });
                        });
                    }
                    None => append(&mut body, item.into()),
                }
            }
            let constant = body.iter().all(|item| item.counts.len() == 1);
            if rule > 0 && constant && always_once[rule] && !pays(uses[rule], body.len()) {
                inside[rule] = Some(body);
            } else {
                rules[rule] = body;
            }
        }
        Self::numbered(rules)
    }

    /// Rules of `all` that are used, in the order of a walk.
    pub(super) fn numbered(mut all: Vec<Vec<Item>>) -> Self {
        let mut numbers = vec![0; all.len()];
        let (mut order, mut walk) = (vec![0], vec![(0, 0)]);
        while let Some((rule, place)) = walk.pop() {
            let Some(item) = all[rule].get(place) else { continue };
            walk.push((rule, place + 1));
            if let Some(inner) = item.symbol.as_rule()
                && numbers[inner] == 0
            {
                numbers[inner] = order.len() as u32;
                order.push(inner);
                walk.push((inner, 0));
            }
        }
        let rules = order.into_iter().map(|rule| {
            let mut items = std::mem::take(&mut all[rule]);
            for item in &mut items {
                if let Some(rule) = item.symbol.as_rule() {
                    item.symbol = Symbol(numbers[rule] << 1 | 1);
                }
            }
            items
        });
        Self { rules: rules.collect() }
    }
}

/// Appends an item, or makes the last count more often if it has the same symbol and both are constant.
fn append(body: &mut Vec<Item>, item: Item) {
    // Not the first: a body keeps two.
    if let [_, .., last] = &mut body[..]
        && last.symbol == item.symbol
        && let ([(times, _)], [(more, _)]) = (&mut last.counts[..], &item.counts[..])
        && let Some(sum) = times.checked_add(*more)
    {
        *times = sum;
    } else {
        body.push(item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::Builder;

    /// A few calls in ever new order, as requests end that are waited for together: rules pay there that are used less
    /// often than those of many calls must be.
    #[test]
    fn rules_that_pay_are_kept() {
        let (mut state, mut builder) = (1u64, Builder::new());
        for _ in 0..4000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let first = (state >> 33) as u32 % 40 * 6;
            (first..first + 6).for_each(|terminal| builder.push(terminal, 1));
        }
        let grammar = builder.into_grammar();
        let shorter = grammar.clone().shorter();
        assert!(shorter.runs().eq(grammar.runs()));
        let written = |grammar: &Grammar| {
            let mut bytes = Vec::new();
            grammar.write(&mut bytes);
            bytes.len()
        };
        assert!(written(&shorter) <= written(&grammar));
        assert!(shorter.rules.len() > 40);
    }
}
