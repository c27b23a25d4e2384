//! A builder's contents as bytes, as they are: for a copy in case the process dies.
//!
//! Writing takes no memory but that of the bytes, and changes nothing. Reading is for tools that find the copy.

use smallvec::smallvec;

use super::arena::{Arena, NIL};
use super::builder::Builder;
use super::{Grammar, Item, Symbol};
use crate::varint::{self, Reader};

/// A position's number as it is written: [`NIL`] is 0, and so short.
fn link(at: u32) -> u64 {
    u64::from(at.wrapping_add(1))
}

fn get_link(reader: &mut Reader<'_>) -> Option<u32> {
    u32::try_from(reader.get()?).ok().map(|at| at.wrapping_sub(1))
}

impl Builder {
    /// Appends what [`Grammar::undump`] reads to `out`.
    pub fn dump(&self, out: &mut Vec<u8>) {
        self.engine.arena.dump(out);
        self.cursor.dump(&self.engine, |symbol, count| {
            varint::put(out, u64::from(symbol) + 1);
            varint::put(out, count);
        });
        if self.count > 0 {
            varint::put(out, (u64::from(self.terminal) << 1) + 1);
            varint::put(out, self.count);
        }
        varint::put(out, 0);
    }
}

impl Arena {
    fn dump(&self, out: &mut Vec<u8>) {
        varint::put(out, self.rules.len() as u64);
        for (rule, number) in self.rules.iter().zip(0u32..) {
            // Rules that are not used any more have no body that is theirs.
            let live = number == 0 || rule.uses > 0;
            varint::put(out, link(if live { rule.first } else { NIL }));
            varint::put(out, rule.expansions);
        }
        varint::put(out, self.positions.len() as u64);
        for (position, at) in self.positions.iter().zip(0u32..) {
            varint::put(out, u64::from(position.symbol));
            varint::put(out, link(position.next));
            varint::put(out, position.value);
            self.dump_counts(at, out);
        }
    }
}

/// A position as it was dumped.
struct Dumped {
    symbol: u32,
    next: u32,
    value: u64,
    since: u64,
    closed: Vec<(u64, u64)>,
}

impl Grammar {
    /// The grammar of what a builder held that was [dumped](Builder::dump); `None` where the bytes are none, or not
    /// of a sound one. Time and memory are proportional to the bytes.
    pub fn undump(reader: &mut Reader<'_>) -> Option<Self> {
        let mut rules = Vec::new();
        for _ in 0..reader.get()? {
            rules.push((get_link(reader)?, reader.get()?));
        }
        let mut positions = Vec::new();
        for _ in 0..reader.get()? {
            let symbol = u32::try_from(reader.get()?).ok()?;
            let (next, value, since) = (get_link(reader)?, reader.get()?, reader.get()?);
            let mut closed = Vec::new();
            for _ in 0..reader.get()? {
                closed.push((reader.get()?, reader.get()?));
            }
            positions.push(Some(Dumped { symbol, next, value, since, closed }));
        }
        let mut found = Vec::new();
        for &(first, expansions) in &rules {
            let (mut items, mut at) = (Vec::new(), first);
            while at != NIL {
                // Each position belongs to one rule: two visits mean damage.
                let Dumped { symbol, next, value, since, closed } = positions.get_mut(at as usize)?.take()?;
                let open = (value, expansions.checked_sub(since)?);
                items.push(Item {
                    symbol: Symbol(symbol),
                    counts: closed.into_iter().chain([open]).collect(),
                });
                at = next;
            }
            found.push(items);
        }
        let whole = found.first_mut()?;
        while let Some(symbol) = reader.get()?.checked_sub(1) {
            let symbol = Symbol(u32::try_from(symbol).ok()?);
            whole.push(Item { symbol, counts: smallvec![(reader.get()?, 1)] });
        }
        let mut named = found.iter().flatten().filter_map(|item| item.symbol.as_rule());
        if named.any(|rule| rule == 0 || rule >= found.len()) {
            return None;
        }
        Some(Self::numbered(found)).filter(Self::is_sound)
    }
}
