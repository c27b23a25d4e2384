//! Spread of a place's calls and time over ranks.

use super::Extreme;
use crate::varint::{Reader, put};

/// Number of ranks with the least time that are stored.
pub const LEAST: usize = 4;

/// Spread of the calls of a place over the ranks that made any.
///
/// Spreads of disjoint sets of ranks may be joined in any order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spread {
    /// Number of ranks that called here; 0 where it is not known.
    pub ranks: u32,
    /// Calls of the rank with the fewest.
    pub fewest: u64,
    /// Calls of the rank with the most.
    pub most: u64,
    least: [Extreme; LEAST],
    named: u8,
}

impl Spread {
    /// Spread of one rank, which made so many calls and took so long in them: 0 where it was not timed.
    pub(super) fn of(calls: u64, time: Extreme) -> Self {
        let named = u8::from(time.ns > 0);
        let mut least = [Extreme::default(); LEAST];
        if named > 0 {
            least[0] = time;
        }
        Self { ranks: 1, fewest: calls, most: calls, least, named }
    }

    /// The ranks that took the least time, those with less first; of equal ones the lowest.
    pub fn least(&self) -> &[Extreme] {
        &self.least[..usize::from(self.named).min(LEAST)]
    }

    /// True where every rank that called here did so as often as every other.
    pub fn is_even(&self) -> bool {
        self.ranks > 0 && self.fewest == self.most
    }

    /// Adds the spread of other ranks.
    pub(super) fn join(&mut self, other: &Self) {
        if self.ranks == 0 || other.ranks == 0 {
            // One part has no spread: the whole has none.
            *self = Self::default();
            return;
        }
        let mut all: Vec<Extreme> = self.least().iter().chain(other.least()).copied().collect();
        all.sort_unstable_by_key(|one| (one.ns, one.rank));
        all.truncate(LEAST);
        let mut least = [Extreme::default(); LEAST];
        least[..all.len()].copy_from_slice(&all);
        *self = Self {
            ranks: self.ranks.saturating_add(other.ranks),
            fewest: self.fewest.min(other.fewest),
            most: self.most.max(other.most),
            least,
            named: all.len() as u8,
        };
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        put(out, self.ranks.into());
        put(out, self.fewest);
        put(out, self.most.saturating_sub(self.fewest));
        put(out, self.least().len() as u64);
        let mut before = 0;
        for one in self.least() {
            put(out, one.ns - before);
            put(out, one.rank.into());
            before = one.ns;
        }
    }

    pub(super) fn get(reader: &mut Reader<'_>) -> Option<Self> {
        let ranks = u32::try_from(reader.get()?).ok()?;
        let fewest = reader.get()?;
        let most = fewest.checked_add(reader.get()?)?;
        let named = usize::try_from(reader.get()?).ok().filter(|&named| named <= LEAST)?;
        let mut least = [Extreme::default(); LEAST];
        let mut before = 0u64;
        for one in &mut least[..named] {
            before = before.checked_add(reader.get()?)?;
            *one = Extreme { ns: before, rank: u32::try_from(reader.get()?).ok()? };
        }
        Some(Self { ranks, fewest, most, least, named: named as u8 })
    }
}
