//! A grammar from runs, and back to the state from which it grows.

use super::arena::{NIL, rule_of};
use super::engine::Engine;
use super::predict::Cursor;
use super::{Grammar, Item, Symbol};

/// Builds the grammar of a sequence while it grows, in constant amortised time per run.
///
/// The result is a function of the runs pushed, with equal neighbours as one.
#[derive(Clone, Debug)]
pub struct Builder {
    pub(super) engine: Engine,
    pub(super) cursor: Cursor,
    /// The last run, which may still grow; there is none if its count is 0.
    pub(super) terminal: u32,
    pub(super) count: u64,
}

impl Default for Builder {
    fn default() -> Self {
        Self::new()
    }
}

impl Builder {
    /// A builder of the empty sequence.
    pub fn new() -> Self {
        Self { engine: Engine::new(), cursor: Cursor::default(), terminal: 0, count: 0 }
    }

    /// Appends `count` times `terminal`, which is below 2^31.
    #[inline]
    pub fn push(&mut self, terminal: u32, count: u64) {
        debug_assert!(terminal < 1 << 31, "symbols have 32 bits");
        if terminal == self.terminal {
            self.count = self.count.saturating_add(count);
        } else if count > 0 {
            if self.count > 0 {
                self.cursor.feed(&mut self.engine, self.terminal, self.count);
            }
            (self.terminal, self.count) = (terminal, count);
        }
    }

    /// Positions in all rules.
    pub fn size(&self) -> usize {
        self.engine.arena.live() + usize::from(self.count > 0)
    }

    /// The grammar of everything pushed so far.
    pub fn grammar(&self) -> Grammar {
        self.clone().into_grammar()
    }

    /// The grammar of everything pushed.
    pub fn into_grammar(mut self) -> Grammar {
        if self.count > 0 {
            self.cursor.feed(&mut self.engine, self.terminal, self.count);
        }
        self.cursor.give_up(&mut self.engine);
        let arena = &self.engine.arena;
        let mut numbers = vec![0; arena.rules.len()];
        let (mut order, mut walk) = (vec![0], vec![arena.rules[0].first]);
        while let Some(at) = walk.pop() {
            if at == NIL {
                continue;
            }
            let position = arena.at(at);
            walk.push(position.next);
            if let Some(rule) = rule_of(position.symbol)
                && numbers[rule] == 0
            {
                numbers[rule] = order.len() as u32;
                order.push(rule);
                walk.push(arena.rules[rule].first);
            }
        }
        let rules = order.iter().map(|&rule| {
            let mut items = Vec::new();
            let mut at = arena.rules[rule].first;
            while at != NIL {
                let position = arena.at(at);
                let symbol = rule_of(position.symbol).map_or(position.symbol, |rule| numbers[rule] << 1 | 1);
                items.push(Item { symbol: Symbol(symbol), counts: arena.counts(at) });
                at = position.next;
            }
            items
        });
        Grammar { rules: rules.collect() }
    }

    /// A builder that goes on behind the sequence of `grammar`, with its rules.
    ///
    /// # Panics
    /// Unless `grammar` is sound.
    pub fn restore(grammar: &Grammar) -> Self {
        let order = grammar.order().filter(|_| grammar.is_sound()).expect("a sound grammar");
        let mut builder = Self::new();
        let arena = &mut builder.engine.arena;
        for items in grammar.rules.iter().skip(1) {
            let expansions =
                items.get(0).expect("two positions").counts.iter().map(|&(_, expansions)| expansions).sum();
            arena.new_rule(expansions, 0);
        }
        for (rule, items) in grammar.rules.iter().enumerate() {
            for item in items.iter() {
                let at = arena.push(rule, item.symbol.0, 1);
                arena.set_counts(at, &item.counts);
                if let Some(rule) = item.symbol.as_rule() {
                    arena.rules[rule].uses += 1;
                }
            }
        }
        // Rules come behind those that use them.
        for &rule in order.iter().rev().filter(|&&rule| rule > 0) {
            let first = grammar.rules.at(rule).get(0).expect("two positions").symbol;
            arena.rules[rule].head = match first.as_rule() {
                Some(first) => arena.rules[first].head,
                None => first.0 >> 1,
            };
        }
        for at in 0..arena.positions.len() as u32 {
            builder.engine.enter(at);
        }
        builder
    }
}
