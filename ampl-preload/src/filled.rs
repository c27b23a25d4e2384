//! Statuses that MPI filled for this thread.
//!
//! An input status is known if it is one of them, as it was filled. What a program passes else, and what MPI leaves in
//! the statuses of sends, may be anything.

use ampl_trace::args::NO_STATUS;

/// Statuses filled one by one that are remembered.
const RECENT: usize = 8;

/// The last statuses that calls of a thread have filled, with their words of the record.
#[derive(Debug)]
pub struct Filled {
    /// Single ones: address and word, oldest at `next`.
    recent: [(usize, u64); RECENT],
    next: usize,
    /// Address of the last array.
    array: usize,
    /// Distance of its elements.
    stride: usize,
    /// Words of its elements.
    words: Vec<u64>,
}

impl Default for Filled {
    fn default() -> Self {
        Self { recent: NONE, next: 0, array: 0, stride: 1, words: Vec::new() }
    }
}

/// No status, which is at no address.
const NONE: [(usize, u64); RECENT] = [(0, NO_STATUS); RECENT];

impl Filled {
    /// A call has filled the status at `at`, which is recorded as `word`.
    #[inline]
    pub fn one(&mut self, at: usize, word: u64) {
        if let Some(element) = self.element(at) {
            self.words[element] = word;
            return;
        }
        let newest = (self.next + RECENT - 1) % RECENT;
        if self.recent[newest].0 == at {
            self.recent[newest].1 = word;
            return;
        }
        // The address must not be there twice: the older entry would outlive the newer one.
        let same = self.recent.iter().position(|&(known, _)| known == at);
        match same {
            Some(known) => self.recent[known].1 = word,
            None => {
                self.recent[self.next] = (at, word);
                self.next = (self.next + 1) % RECENT;
            }
        }
    }

    /// A call has filled the array of statuses of `stride` bytes at `base`, which are recorded as `words`.
    pub fn several(&mut self, base: usize, stride: usize, words: &[u64]) {
        let behind = base + stride * words.len();
        for known in self.recent.iter_mut().filter(|known| (base..behind).contains(&known.0)) {
            *known = (0, NO_STATUS);
        }
        (self.array, self.stride) = (base, stride);
        self.words.clear();
        self.words.extend_from_slice(words);
    }

    /// The record word of the input status at `at`, which now reads as `word`: [`NO_STATUS`] unless it was filled so.
    #[inline]
    pub fn told(&self, at: usize, word: u64) -> u64 {
        let filled = match self.element(at) {
            Some(element) => Some(self.words[element]),
            None => self.recent.iter().find(|&&(known, _)| known == at).map(|&(_, word)| word),
        };
        if filled == Some(word) { word } else { NO_STATUS }
    }

    /// Forgets everything: what comes next is not followed.
    pub fn clear(&mut self) {
        self.recent = NONE;
        self.words.clear();
    }

    /// Index of the element of the last array at `at`.
    #[inline]
    fn element(&self, at: usize) -> Option<usize> {
        let offset = at.checked_sub(self.array)?;
        if offset >= self.stride * self.words.len() || offset % self.stride != 0 {
            return None;
        }
        Some(offset / self.stride)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_known_as_long_as_it_is_as_it_was_filled() {
        let mut filled = Filled::default();
        assert_eq!(filled.told(96, 5), NO_STATUS);
        assert_eq!(filled.told(0, 0), NO_STATUS, "no status is at no address");
        filled.one(96, 5);
        assert_eq!((filled.told(96, 5), filled.told(96, 6), filled.told(120, 5)), (5, NO_STATUS, NO_STATUS));
        filled.one(96, NO_STATUS);
        assert_eq!(filled.told(96, 5), NO_STATUS, "a send has filled it since");
        // Others in between, and then the first again.
        (1..RECENT).for_each(|number| filled.one(96 + 24 * number, 7));
        filled.one(96, 8);
        assert_eq!((filled.told(96, 7), filled.told(96, 8), filled.told(120, 7)), (NO_STATUS, 8, 7));
        filled.one(1000, 9);
        let known = (0..RECENT).filter(|number| filled.told(96 + 24 * number, 7) == 7).count();
        assert_eq!((known, filled.told(1000, 9)), (RECENT - 1, 9));
        filled.clear();
        assert_eq!(filled.told(1000, 9), NO_STATUS);
    }

    #[test]
    fn elements_of_arrays_are_known() {
        let mut filled = Filled::default();
        filled.one(104, 3);
        filled.several(80, 24, &[1, NO_STATUS, 2]);
        assert_eq!([80, 104, 128].map(|at| filled.told(at, 1)), [1, NO_STATUS, NO_STATUS]);
        assert_eq!(filled.told(104, 3), NO_STATUS, "the array has filled it since");
        assert_eq!((filled.told(128, 2), filled.told(90, 1), filled.told(152, 2)), (2, NO_STATUS, NO_STATUS));
        filled.one(128, 4);
        assert_eq!((filled.told(128, 2), filled.told(128, 4)), (NO_STATUS, 4));
        // Only the last array is known, and single statuses behind it.
        filled.several(800, 20, &[6]);
        assert_eq!((filled.told(80, 1), filled.told(800, 6)), (NO_STATUS, 6));
    }
}
