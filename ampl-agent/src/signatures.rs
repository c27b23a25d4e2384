//! A thread's call signatures: equal calls are one terminal of its structure.
//!
//! A signature is a function, flags, a site and the words of the arguments ([`ampl_trace::args`]); terminals are
//! numbered from 0 in the order in which their signatures first appear, which is the same on ranks that do the same.

/// Bits of a hash beside a terminal in the index.
const TAG: u64 = !0 << 32;
/// Multipliers of the hash: the odd part of π and of the golden ratio.
const MIX: [u64; 2] = [0x2435_F6A8_885A_308D, 0x9E37_79B9_7F4A_7C15];

/// Words of all signatures of a thread, 64 MiB: a program whose calls are ever new must not lose its memory to ampl.
const MOST_WORDS: usize = 8 << 20;

/// The signatures seen so far.
#[derive(Debug)]
pub struct Signatures {
    /// Heads and words of all of them, one behind the other.
    words: Vec<u64>,
    /// Where each begins; the last is where the next will.
    begins: Vec<usize>,
    /// Open addressing, at most half full: the upper half of the hash, and the terminal plus 1; 0 where there is none.
    index: Vec<u64>,
    /// The terminal found last, and behind each the one that came after it last: programs repeat themselves.
    last: u32,
    follows: Vec<u32>,
    /// True where the terminal found last is the one that had come there before.
    expected: bool,
}

impl Default for Signatures {
    fn default() -> Self {
        Self {
            words: Vec::new(),
            begins: vec![0],
            index: vec![0; 256],
            last: 0,
            follows: Vec::new(),
            expected: false,
        }
    }
}

/// The first word of a signature: all but its arguments.
#[inline]
pub fn head(function: u16, flags: u8, (site, way): (u32, u8)) -> u64 {
    u64::from(function) | u64::from(flags) << 16 | u64::from(way) << 24 | u64::from(site) << 32
}

/// Every word matters, and so does its place: the product of two words mixed with two numbers, folded.
#[inline]
fn hash(head: u64, words: &[u64]) -> u64 {
    let fold = |one: u64, other: u64| {
        let product = u128::from(one) * u128::from(other);
        product as u64 ^ (product >> 64) as u64
    };
    let mut hash = fold(head ^ MIX[0], words.len() as u64 ^ MIX[1]);
    let (pairs, rest) = words.as_chunks::<2>();
    for [one, other] in pairs {
        hash = fold(hash ^ one, other ^ MIX[1]).wrapping_add(hash.rotate_left(23));
    }
    if let [word] = rest {
        hash = fold(hash ^ word, MIX[0]).wrapping_add(hash.rotate_left(23));
    }
    hash
}

impl Signatures {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.begins.len() - 1
    }

    /// True where signatures should take no more of the process's memory.
    pub fn is_full(&self) -> bool {
        self.words.len() > MOST_WORDS
    }

    /// True where there are no signatures.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Head and words of the signature of `terminal`.
    pub fn get(&self, terminal: usize) -> Option<(u64, &[u64])> {
        let &[from, to] = self.begins.get(terminal..)?.first_chunk()?;
        let (&head, words) = self.words.get(from..to)?.split_first()?;
        Some((head, words))
    }

    #[inline]
    fn is(&self, terminal: u32, head: u64, words: &[u64]) -> bool {
        let terminal = terminal as usize;
        let Some(&[from, to]) = self.begins.get(terminal..).and_then(|begins| begins.first_chunk()) else {
            return false;
        };
        let stored = &self.words[from..to];
        stored.len() == words.len() + 1 && stored[0] == head && stored[1..] == *words
    }

    /// The terminal that came behind the latest one before, or that of nothing yet.
    #[inline]
    pub fn next(&self) -> Option<u32> {
        self.follows.get(self.last as usize).copied()
    }

    /// A call of the known terminal `next` has been made.
    #[inline(always)]
    pub fn advance(&mut self, next: u32) {
        if let Some(follows) = self.follows.get_mut(self.last as usize) {
            *follows = next;
        }
        self.last = next;
    }

    /// The known `terminal` comes next, whatever its signature is.
    #[inline]
    pub fn pass(&mut self, terminal: u32) {
        self.follow(terminal);
    }

    /// True where the terminal found last is the one that had come there before.
    #[inline]
    pub fn was_expected(&self) -> bool {
        self.expected
    }

    /// The terminal of a signature, and whether it is new.
    #[inline]
    pub fn find(&mut self, head: u64, words: &[u64]) -> (u32, bool) {
        if let Some(&next) = self.follows.get(self.last as usize)
            && self.is(next, head, words)
        {
            self.last = next;
            self.expected = true;
            return (next, false);
        }
        self.expected = false;
        self.search(head, words)
    }

    #[inline(never)]
    fn search(&mut self, head: u64, words: &[u64]) -> (u32, bool) {
        let hash = hash(head, words);
        let mask = self.index.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let entry = self.index[at];
            if entry == 0 {
                return (self.add(at, hash, head, words), true);
            }
            let terminal = entry as u32 - 1;
            if (entry ^ hash) & TAG == 0 && self.is(terminal, head, words) {
                self.follow(terminal);
                return (terminal, false);
            }
            at = (at + 1) & mask;
        }
    }

    #[inline]
    fn follow(&mut self, terminal: u32) {
        if let Some(next) = self.follows.get_mut(self.last as usize) {
            *next = terminal;
        }
        self.last = terminal;
    }

    #[cold]
    fn add(&mut self, at: usize, hash: u64, head: u64, words: &[u64]) -> u32 {
        let terminal = self.len() as u32;
        self.words.push(head);
        self.words.extend_from_slice(words);
        self.begins.push(self.words.len());
        self.follows.push(0);
        self.follow(terminal);
        self.index[at] = hash & TAG | u64::from(terminal + 1);
        if self.len() * 2 > self.index.len() {
            self.grow();
        }
        terminal
    }

    #[cold]
    fn grow(&mut self) {
        let mask = self.index.len() * 2 - 1;
        self.index = vec![0; mask + 1];
        for (terminal, bounds) in self.begins.windows(2).enumerate() {
            let hash = hash(self.words[bounds[0]], &self.words[bounds[0] + 1..bounds[1]]);
            let mut at = hash as usize & mask;
            while self.index[at] != 0 {
                at = (at + 1) & mask;
            }
            self.index[at] = hash & TAG | (terminal as u64 + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #[test]
        fn equal_signatures_are_one_terminal_numbered_in_order(
            calls in prop::collection::vec((0u64..4, prop::collection::vec(0u64..3, 0..5)), 0..2000)
        ) {
            let (mut signatures, mut seen) = (Signatures::default(), HashMap::new());
            for (head, words) in calls {
                let next = seen.len() as u32;
                let expected = *seen.entry((head, words.clone())).or_insert(next);
                prop_assert_eq!(signatures.find(head, &words), (expected, expected == next));
                prop_assert_eq!(signatures.len(), seen.len());
            }
        }
    }

    #[test]
    fn neither_order_nor_length_is_lost() {
        let mut signatures = Signatures::default();
        let all = [&[][..], &[0], &[0, 0], &[0, 0, 0], &[1, 2], &[2, 1], &[1, 2, 0], &[u64::MAX]];
        for (terminal, words) in (0..).zip(all) {
            assert_eq!(signatures.find(7, words), (terminal, true));
        }
        for (terminal, words) in (0..).zip(all) {
            assert_eq!(signatures.find(7, words), (terminal, false));
        }
    }
}
