//! Soundness of a grammar, which a reader of foreign bytes must check.

use super::{Grammar, Symbol};

impl Grammar {
    /// The rules, each behind all that use it; `None` if there is none, or one is missing, too short, not
    /// used, or used by itself.
    pub(super) fn order(&self) -> Option<Vec<usize>> {
        order(self.rules.len(), |rule| self.rules.at(rule).iter().map(|item| item.symbol))
    }

    /// True where the sequence can be expanded, in time proportional to its length.
    ///
    /// Every rule but the first is used, not by itself, and has two positions; every position has a count of
    /// at least 1 for each expansion of its rule and no more; and all expansions and terminals number less
    /// than 2^64.
    pub fn is_sound(&self) -> bool {
        self.order().is_some_and(|order| self.checked_len(&order).is_some())
    }

    /// Terminals in the sequence; `None` if the counts do not fit the rules, or 64 bits.
    pub(super) fn checked_len(&self, order: &[usize]) -> Option<u64> {
        let mut expansions = vec![0u64; self.rules.len()];
        *expansions.first_mut()? = 1;
        let mut len = 0u64;
        for &rule in order {
            for item in self.rules.at(rule).iter() {
                let (mut sum, mut total) = (0u64, 0u64);
                for &(times, length) in item.counts.iter() {
                    if times == 0 || length == 0 {
                        return None;
                    }
                    sum = sum.checked_add(length)?;
                    total = total.checked_add(times.checked_mul(length)?)?;
                }
                if sum != expansions[rule] {
                    return None;
                }
                let whole = item.symbol.as_rule().map_or(&mut len, |inner| &mut expansions[inner]);
                *whole = whole.checked_add(total)?;
            }
        }
        Some(len)
    }
}

/// As [`Grammar::order`], of so many rules with these symbols.
pub(super) fn order<Symbols: Iterator<Item = Symbol>>(
    rules: usize,
    symbols: impl Fn(usize) -> Symbols,
) -> Option<Vec<usize>> {
    let inner = |rule: usize| symbols(rule).filter_map(Symbol::as_rule);
    let mut users = vec![0u32; rules];
    for rule in (0..rules).flat_map(inner) {
        let users = users.get_mut(rule)?;
        *users = users.checked_add(1)?;
    }
    if *users.first()? > 0 || (1..rules).any(|rule| symbols(rule).take(2).count() < 2) {
        return None;
    }
    let mut order = Vec::with_capacity(rules);
    order.push(0);
    let mut looked_at = 0;
    while let Some(&rule) = order.get(looked_at) {
        looked_at += 1;
        for inner in inner(rule) {
            users[inner] -= 1;
            if users[inner] == 0 {
                order.push(inner);
            }
        }
    }
    (order.len() == rules).then_some(order)
}
