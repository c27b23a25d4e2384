//! A sequence without some of its terminals.

use std::borrow::Cow;

use super::{Grammar, Item, Symbol};

impl Grammar {
    /// The sequence without the terminals that `leaves_out` accepts. Rules may be short or unused there, and neighbours
    /// alike.
    pub fn without(&self, leaves_out: impl Fn(u32) -> bool) -> Cow<'_, Self> {
        let is_out = |symbol: Symbol| symbol.as_terminal().is_some_and(&leaves_out);
        let any = self.rules.all().any(|item| is_out(item.symbol));
        let Some(order) = self.order().filter(|_| any) else {
            return Cow::Borrowed(self);
        };
        let mut rules = self.rules.to_items();
        // Inner rules first: one that is left empty takes no place in others.
        for rule in order.into_iter().rev() {
            let items = std::mem::take(&mut rules[rule]);
            let is_empty = |item: &Item| item.symbol.as_rule().is_some_and(|inner| rules[inner].is_empty());
            let kept = items.into_iter().filter(|item| !is_out(item.symbol) && !is_empty(item)).collect();
            rules[rule] = kept;
        }
        Cow::Owned(Self { rules: rules.into_iter().collect() })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Builder;

    fn expanded(grammar: &super::Grammar) -> Vec<u32> {
        grammar.runs().flat_map(|(terminal, count)| std::iter::repeat_n(terminal, count as usize)).collect()
    }

    proptest! {
        #[test]
        fn what_is_left_keeps_its_order(
            turns in prop::collection::vec((prop::collection::vec(0u32..6, 1..8), 1usize..5), 0..20),
            out in prop::collection::btree_set(0u32..6, 0..5),
        ) {
            let mut builder = Builder::new();
            let calls: Vec<u32> = turns.iter().flat_map(|(calls, times)| calls.repeat(*times)).collect();
            calls.iter().for_each(|&call| builder.push(call, 1));
            let grammar = builder.into_grammar();
            let left = grammar.without(|terminal| out.contains(&terminal));
            let expected: Vec<u32> = calls.into_iter().filter(|call| !out.contains(call)).collect();
            prop_assert_eq!(expanded(&left), expected);
            prop_assert_eq!(left.len(), expanded(&left).len() as u64);
        }
    }
}
