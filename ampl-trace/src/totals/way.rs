//! The functions on the way to a place, by sampled calls.

use super::Turns;
use crate::varint::{Reader, put, put_signed};

/// Largest number of functions of a way.
pub const MOST_CALLERS: usize = 8;

/// Number of the first calls of a place, which came by other return addresses than all sampled calls behind them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstCalls {
    /// At least so many; above 0.
    pub least: u64,
    /// At most so many: calls between two samples may be of either kind.
    pub most: u64,
}

/// The functions that sampled calls of a place have in common on their way there, from the caller of the place's own
/// function outwards.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Way {
    /// Module, and one more than the offset of the function's first byte.
    pub functions: Vec<(u32, u64)>,
    /// True where sampled calls came by several ways, which differ beyond `functions`.
    pub several: bool,
    /// Its first calls, where they came from elsewhere than the others.
    pub first: Option<FirstCalls>,
    /// Ways that its sampled calls came by, in their order.
    pub turns: Turns,
}

impl Way {
    /// Joins the way of other calls of the same place.
    pub fn join(&mut self, other: &Self) {
        let common =
            self.functions.iter().zip(&other.functions).take_while(|(one, other)| one == other).count();
        let differ = common < self.functions.len().max(other.functions.len());
        self.several |= other.several || differ;
        self.functions.truncate(common);
        // Of ranks that differ nothing is known.
        self.first = self.first.filter(|_| self.first == other.first);
        self.turns.join(other.turns);
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        put(out, (self.functions.len() as u64) << 1 | u64::from(self.several));
        let mut before = 0u64;
        for &(module, offset) in &self.functions {
            put(out, module.into());
            put_signed(out, offset.wrapping_sub(before) as i64);
            before = offset;
        }
    }

    pub(super) fn get(reader: &mut Reader<'_>) -> Option<Self> {
        let head = reader.get()?;
        let length = usize::try_from(head >> 1).ok().filter(|&length| length <= MOST_CALLERS)?;
        let mut before = 0u64;
        let mut functions = Vec::with_capacity(length);
        for _ in 0..length {
            let module = u32::try_from(reader.get()?).ok()?;
            before = before.wrapping_add(reader.get_signed()? as u64);
            functions.push((module, before));
        }
        Some(Self { functions, several: head & 1 != 0, ..Self::default() })
    }
}

impl FirstCalls {
    pub(super) fn put(first: Option<Self>, out: &mut Vec<u8>) {
        put(out, first.map_or(0, |first| first.least));
        if let Some(first) = first {
            put(out, first.most - first.least);
        }
    }

    pub(super) fn get(reader: &mut Reader<'_>) -> Option<Option<Self>> {
        let least = reader.get()?;
        if least == 0 {
            return Some(None);
        }
        let most = least.checked_add(reader.get()?)?;
        Some(Some(Self { least, most }))
    }
}
