//! Arguments of one call as words: numbers, handles, and pointers to arrays that are kept until the call returns.

use ampl_core::mpi::Kind;
use ampl_core::mpi::ObjectKind;

use super::ffi;

/// Words of a call, and the memory that they point to.
#[derive(Debug, Default)]
pub struct Words {
    words: Vec<usize>,
    /// One array for each parameter; kept, so that few calls allocate.
    slots: Vec<Vec<u64>>,
}

/// Bytes of one value of that kind in memory.
pub fn width(kind: Kind) -> usize {
    match kind {
        Kind::Int | Kind::Logical | Kind::Rank | Kind::Tag | Kind::IntOrUndefined => 4,
        Kind::Status => ffi::STATUS_BYTES,
        Kind::String => 1,
        _ => ObjectKind::of(kind).map_or(8, ffi::handle_width),
    }
}

impl Words {
    /// Begins a call.
    pub fn clear(&mut self) {
        self.words.clear();
    }

    /// The words so far.
    pub fn all(&self) -> &[usize] {
        &self.words
    }

    /// Appends a word.
    pub fn push(&mut self, word: usize) {
        self.words.push(word);
    }

    /// Appends a pointer to `bytes` of zeros, which [`slot`](Self::slot) returns by the parameter's index.
    pub fn push_slot(&mut self, bytes: usize) -> &mut [u8] {
        let index = self.words.len();
        if self.slots.len() <= index {
            self.slots.resize_with(index + 1, Vec::new);
        }
        let slot = &mut self.slots[index];
        slot.clear();
        slot.resize(bytes.div_ceil(8) + 1, 0);
        self.words.push(slot.as_mut_ptr() as usize);
        self.slot(index)
    }

    /// The array behind the parameter of that index.
    pub fn slot(&mut self, index: usize) -> &mut [u8] {
        ffi::bytes_of(&mut self.slots[index])
    }

    /// The value of `width` bytes at `position` behind that parameter.
    pub fn value(&mut self, index: usize, position: usize, width: usize) -> usize {
        let mut word = [0; 8];
        word[..width].copy_from_slice(&self.slot(index)[position * width..][..width]);
        usize::from_ne_bytes(word)
    }
}

/// Writes the lower `width` bytes of `word` at `position`.
pub fn put(slot: &mut [u8], position: usize, width: usize, word: usize) {
    slot[position * width..][..width].copy_from_slice(&word.to_ne_bytes()[..width]);
}
