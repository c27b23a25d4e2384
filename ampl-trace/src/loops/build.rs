//! Sequences from grammars: expansions of a rule that are alike are made once.

use super::sequence::{DEEPEST, Part, Sequence, Slice, Token};
use crate::grammar::{Expansions, Grammar};

/// A sequence that is built from a grammar.
pub struct Build<'a> {
    grammar: &'a Grammar,
    /// The part of each terminal.
    terminals: Vec<Option<Part>>,
    /// The part of each rule whose expansions are all alike.
    fixed: Vec<Option<Option<Part>>>,
    /// Progress in counts.
    counts: Expansions<'a>,
    /// The parts made so far.
    pub sequence: Sequence,
}

impl<'a> Build<'a> {
    /// The parts of the terminals and of the rules that are always alike; `None` where more than `work` positions would be
    /// visited.
    pub fn new(grammar: &'a Grammar, tokens: &[Token], work: u64) -> Option<Self> {
        let mut sequence = Sequence::default();
        let terminals = tokens.iter().map(|&token| sequence.token(token)).collect();
        let fixed = vec![None; grammar.rules.len()];
        let counts = Expansions::new(grammar, work);
        let mut build = Self { grammar, terminals, fixed, counts, sequence };
        build.fix()?;
        Some(build)
    }

    /// The parts of rules whose expansions are all alike.
    fn fix(&mut self) -> Option<()> {
        for rule in self.counts.rules() {
            if rule > 0 && self.counts.is_fixed(rule) {
                let parts = self.expand(rule, 0)?;
                self.fixed[rule] = Some(self.sequence.intern(parts)?);
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
        for (index, item) in grammar.rules.at(rule).iter().enumerate() {
            let mut times = self.counts.next(rule, index)?;
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
                let alike = self.counts.alike(inner)?.clamp(1, times);
                let expansion = self.expand(inner, depth + 1)?;
                if alike > 1 {
                    self.counts.skip(inner, alike - 1)?;
                }
                if let Some(part) = self.sequence.intern(expansion)? {
                    self.sequence.push(&mut parts, part, alike);
                }
                times -= alike;
            }
        }
        Some(parts)
    }
}
