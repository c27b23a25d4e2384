//! Numbers of a kind in a row, each coded by its distance from the guess that fitted the numbers before it best.

use crate::bits::Bits;
use crate::timing::Node;

/// After so many bits their probability follows what is new.
pub const LIMIT: u32 = 255;
/// Bits behind a difference's highest that are modelled; those below are even.
const MODELLED: u32 = 3;
/// Guesses that a number may have.
const GUESSES: usize = 5;

/// Numbers of a kind.
#[derive(Clone, Debug)]
pub struct Column {
    /// Bit that a number is as guessed, by whether the number before was.
    guessed: [Node; 2],
    before: bool,
    /// Recent length of differences from each guess, eighths of a bit.
    costs: [u32; GUESSES],
    /// Bit that a number is less than its guess.
    less: Node,
    /// The length of a difference, bit by bit from the highest.
    lengths: [Node; 64],
    /// The bits behind its highest, by its length, as far as there were any.
    tops: Vec<[Node; 1 << MODELLED]>,
}

impl Column {
    /// A column before its first number.
    pub const NEW: Self = Self {
        guessed: [Node::NEW; 2],
        before: false,
        costs: [0; GUESSES],
        less: Node::NEW,
        lengths: [Node::NEW; 64],
        tops: Vec::new(),
    };

    /// Codes a number with one to five guesses, by the guess that has been nearest of late, the first of equal ones.
    pub fn code<B: Bits>(&mut self, bits: &mut B, number: u64, guesses: &[u64]) -> u64 {
        let best = (0..guesses.len()).min_by_key(|&guess| self.costs[guess]).unwrap_or(0);
        let number = self.differs(bits, number, guesses[best]);
        for (cost, guess) in self.costs.iter_mut().zip(guesses) {
            *cost = *cost - *cost / 8 + length(number.wrapping_sub(*guess) as i64);
        }
        number
    }

    fn differs<B: Bits>(&mut self, bits: &mut B, number: u64, guess: u64) -> u64 {
        let guessed = &mut self.guessed[usize::from(self.before)];
        self.before = guessed.code(bits, LIMIT, number == guess);
        if self.before {
            return guess;
        }
        let difference = number.wrapping_sub(guess) as i64;
        let less = self.less.code(bits, LIMIT, difference < 0);
        // A reader has nothing to give, and gets what was not 0.
        let magnitude = difference.unsigned_abs().max(1);
        let below = walk(bits, &mut self.lengths, 6, magnitude.ilog2().into()) as u32;
        let even = below.saturating_sub(MODELLED);
        self.tops.resize(self.tops.len().max(below as usize + 1), [Node::NEW; 1 << MODELLED]);
        let top = walk(bits, &mut self.tops[below as usize], below - even, magnitude >> even);
        let low = bits.plain(even, magnitude & ((1 << even) - 1));
        let magnitude = (1 << (below - even) | top) << even | low;
        if less { guess.wrapping_sub(magnitude) } else { guess.wrapping_add(magnitude) }
    }
}

/// Bits of a difference; a sign that is as often the one as the other takes one.
fn length(difference: i64) -> u32 {
    u64::BITS - difference.unsigned_abs().leading_zeros() + if difference < 0 { 2 } else { 0 }
}

/// Codes the `width` low bits of a value from the highest on, each by those before it.
fn walk<B: Bits>(bits: &mut B, nodes: &mut [Node], width: u32, value: u64) -> u64 {
    let mut at = 1;
    for level in (0..width).rev() {
        at = at << 1 | u64::from(nodes[at as usize].code(bits, LIMIT, value >> level & 1 != 0));
    }
    at & ((1 << width) - 1)
}

/// Mean of the latest numbers of a column.
#[derive(Clone, Copy, Debug)]
pub struct Mean(Option<u64>);

impl Mean {
    /// Before the first number.
    pub const NEW: Self = Self(None);
    /// Weight of a number is this share of the rest's.
    const SHARE: u64 = 16;

    /// The mean; 0 before the first number.
    pub fn value(self) -> u64 {
        self.0.unwrap_or(0)
    }

    /// Adds a number.
    pub fn add(&mut self, number: u64) {
        let mean = self.0.unwrap_or(number);
        let step = number.abs_diff(mean) / Self::SHARE;
        self.0 = Some(if number < mean { mean - step } else { mean + step });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::bits::{Reader, Writer};

    fn coded(numbers: &[(u64, Vec<u64>)]) -> Vec<u8> {
        let (mut column, mut bits) = (Column::NEW, Writer::default());
        for (number, guesses) in numbers {
            assert_eq!(column.code(&mut bits, *number, guesses), *number);
        }
        bits.into_bytes()
    }

    /// Numbers with guesses, the first of which is often near.
    fn numbers() -> impl Strategy<Value = Vec<(u64, Vec<u64>)>> {
        let guesses = prop::collection::vec(any::<u64>(), 1..=GUESSES);
        let number = (any::<u64>(), guesses, 0..9u64).prop_map(|(number, mut guesses, near)| {
            if near < 6 {
                guesses[0] = number.wrapping_add(near).wrapping_sub(3);
            }
            (number, guesses)
        });
        prop::collection::vec(number, 0..99)
    }

    proptest! {
        #[test]
        fn any_numbers_come_back(numbers in numbers()) {
            let bytes = coded(&numbers);
            let (mut column, mut bits) = (Column::NEW, Reader::new(&bytes));
            for (number, guesses) in &numbers {
                prop_assert_eq!(column.code(&mut bits, 0, guesses), *number);
            }
            prop_assert!(bits.is_sound());
        }
    }

    #[test]
    fn the_guess_that_has_been_nearest_is_believed() {
        let far = |index: u64| index.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let numbers = |which: usize| -> Vec<(u64, Vec<u64>)> {
            let guesses = |index| {
                (0..4).map(move |at| if at == which { far(index) } else { far(index + at as u64 + 1) })
            };
            (0..1000).map(|index| (far(index) + 1, guesses(index).collect())).collect()
        };
        for which in 0..4 {
            assert!(coded(&numbers(which)).len() < 100, "{which}");
        }
    }

    /// Numbers with 16 bits of noise take hardly more than these.
    #[test]
    fn noise_takes_what_it_has_to() {
        let noise = |index: u64| index.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48;
        let numbers: Vec<_> = (0..1000).map(|index| (1 << 40 | noise(index), vec![1 << 40])).collect();
        let bytes = coded(&numbers).len();
        assert!((2000..2200).contains(&bytes), "{bytes}");
    }
}
