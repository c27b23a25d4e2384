//! The functions on the way to a place.

use crate::varint::{Reader, put, put_signed};

/// Largest number of functions of a way.
pub const MOST_CALLERS: usize = 8;

/// The functions that calls of a place have in common on their way there, from the caller of the place's own
/// function outwards.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Way {
    /// Module, and one more than the offset of the function's first byte.
    pub functions: Vec<(u32, u64)>,
    /// True where calls came by several ways, which differ beyond `functions`.
    pub several: bool,
}

impl Way {
    /// Joins the way of other calls of the same place.
    pub fn join(&mut self, other: &Self) {
        let common =
            self.functions.iter().zip(&other.functions).take_while(|(one, other)| one == other).count();
        let differ = common < self.functions.len().max(other.functions.len());
        self.several |= other.several || differ;
        self.functions.truncate(common);
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
        Some(Self { functions, several: head & 1 != 0 })
    }
}
