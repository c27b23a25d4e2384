//! Numbers to so many significant bits: how values are rounded, and how such numbers are coded.
//!
//! A number has a *rank* among those with as many significant bits. Neighbours in rank differ by about the same share,
//! so the difference of two ranks takes the bits of their relative difference, whatever their magnitude.

use crate::bits::Bits;
use crate::column::{Column, LIMIT};
use crate::timing::Node;

/// Most significant bits that a number is rounded to: more would not be found again in an f64.
pub const MOST_DIGITS: u32 = 52;

/// Significant bits that keep numbers within a relative `error`, 0 for exact ones.
pub fn digits(error: f64) -> u32 {
    // Half a step of n bits is 2^-n of the number at most.
    if error > 0.0 { ((1.0 / error).log2().ceil().max(1.0) as u32).min(MOST_DIGITS) } else { 0 }
}

/// Significant bits of the agent's own times beside values with so many: they are a small share of a window each.
pub fn own_digits(digits: u32) -> u32 {
    digits.min(6)
}

/// `number`, rounded to the nearest with so many significant bits.
pub fn nearest(number: u64, digits: u32) -> u64 {
    let half = 1u64 << shift(number, digits) >> 1;
    let raised = number.saturating_add(half);
    raised >> shift(raised, digits) << shift(raised, digits)
}

/// Low bits of `number` beyond its significant ones.
fn shift(number: u64, digits: u32) -> u32 {
    (u64::BITS - number.leading_zeros()).saturating_sub(digits)
}

/// True where `number` has no more than so many significant bits.
pub fn fits(number: u64, digits: u32) -> bool {
    number >> shift(number, digits) << shift(number, digits) == number
}

/// Rank of `number` among the numbers of so many significant bits, from 0; low bits do not count.
fn rank(number: u64, digits: u32) -> u64 {
    let shift = shift(number, digits);
    match shift {
        0 => number,
        _ => (u64::from(shift) << (digits - 1)) + (number >> shift),
    }
}

/// The number of that rank; the largest one for a rank that there is not.
fn of_rank(rank: u64, digits: u32) -> u64 {
    let half = 1u64 << (digits - 1);
    let shift = (rank / half).saturating_sub(1);
    let significant = rank - shift * half;
    if shift > u64::from(u64::BITS - digits) { u64::MAX } else { significant << shift }
}

/// Numbers of a kind, most of which have few significant bits; the others are coded with what lies below.
#[derive(Clone, Debug)]
pub struct Rounded {
    ranks: Column,
    is_exact: Node,
}

impl Rounded {
    /// A column before its first number.
    pub const NEW: Self = Self { ranks: Column::NEW, is_exact: Node::NEW };

    /// Codes a number with one to four guesses: its rank among those of so many significant bits, then whether there is
    /// anything below these, and that.
    pub fn code<B: Bits>(&mut self, bits: &mut B, digits: u32, number: u64, guesses: &[u64]) -> u64 {
        let mut ranks = [0; 4];
        let guesses = guesses.iter().take(ranks.len());
        let count = guesses.len();
        ranks.iter_mut().zip(guesses).for_each(|(to, &guess)| *to = rank(nearest(guess, digits), digits));
        let coded = self.ranks.code(bits, rank(number, digits), &ranks[..count]);
        let rounded = of_rank(coded, digits);
        let low = shift(rounded, digits);
        if low == 0 || self.is_exact.code(bits, LIMIT, fits(number, digits)) {
            return rounded;
        }
        rounded | bits.plain(low, number & ((1 << low) - 1))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::bits::{Reader, Writer};

    #[test]
    fn three_digits_are_ten_bits() {
        assert_eq!([0.001, 0.01, 0.1, 0.5, 0.0].map(digits), [10, 7, 4, 1, 0]);
    }

    proptest! {
        #[test]
        fn rounding_stays_within_the_error(number: u64, low in 0..64u32, error in 1e-9..0.9f64) {
            let (number, digits) = (number >> low, digits(error));
            let rounded = nearest(number, digits);
            prop_assert!(rounded.abs_diff(number) as f64 <= error * number as f64);
            prop_assert!(fits(rounded, digits) || rounded == u64::MAX >> shift(u64::MAX, digits) << shift(u64::MAX, digits));
            prop_assert_eq!(nearest(rounded, digits), rounded);
        }

        #[test]
        fn ranks_are_in_the_order_of_numbers(one: u64, other: u64, low in [0..64u32, 0..64], digits in 1..MOST_DIGITS) {
            let (one, other) = (nearest(one >> 1 >> low[0].min(62), digits), nearest(other >> 1 >> low[1].min(62), digits));
            prop_assert_eq!(of_rank(rank(one, digits), digits), one);
            prop_assert_eq!(one.cmp(&other), rank(one, digits).cmp(&rank(other, digits)));
        }

        #[test]
        fn any_numbers_come_back(numbers: Vec<(u64, u32)>, guesses in prop::collection::vec(any::<u64>(), 1..=4), digits in 1..=MOST_DIGITS) {
            let numbers: Vec<u64> = numbers.iter().map(|&(number, low)| number >> (low % 64)).collect();
            let (mut column, mut bits) = (Rounded::NEW, Writer::default());
            for &number in &numbers {
                prop_assert_eq!(column.code(&mut bits, digits, number, &guesses), number);
            }
            let bytes = bits.into_bytes();
            let (mut column, mut bits) = (Rounded::NEW, Reader::new(&bytes));
            for &number in &numbers {
                prop_assert_eq!(column.code(&mut bits, digits, 0, &guesses), number);
            }
            prop_assert!(bits.is_sound());
        }
    }

    /// Ten bits of noise on any magnitude take about ten bits, seven less for noise of a hundredth.
    #[test]
    fn a_relative_difference_takes_its_own_bits() {
        let noise = |index: u64| index.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let size = |spread: f64| {
            let (mut column, mut bits, mut before) = (Rounded::NEW, Writer::default(), 0);
            for index in 0..1000 {
                let share = 1.0 + spread * (noise(index) as f64 / f64::from(1 << 24) - 0.5);
                let number = nearest((3e9 * share) as u64, 10);
                before = column.code(&mut bits, 10, number, &[before]);
            }
            bits.into_bytes().len()
        };
        assert!((350..560).contains(&size(0.02)), "{}", size(0.02));
        assert!((900..1320).contains(&size(1.0)), "{}", size(1.0));
    }
}
