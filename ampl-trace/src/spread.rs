//! Arrays of numbers of which only mean and ends are stored.

use ampl_core::value::Spread;

/// The length of an array in whose place a [`Spread`] is stored: its fields follow.
pub const SPREAD: u64 = u64::MAX - 1;
/// Words behind [`SPREAD`].
pub const SPREAD_WORDS: usize = 4;

/// Puts the words of a [`Spread`] of `numbers` behind `words`; false where there are none.
pub fn put_spread(words: &mut Vec<u64>, mut numbers: impl Iterator<Item = i64>) -> bool {
    let Some(first) = numbers.next() else { return false };
    let one = Spread { count: 1, sum: first, min: first, max: first };
    let all = numbers.fold(one, |all, next| Spread {
        count: all.count + 1,
        sum: all.sum.saturating_add(next),
        min: all.min.min(next),
        max: all.max.max(next),
    });
    words.extend([SPREAD, all.count, all.sum as u64, all.min as u64, all.max as u64]);
    true
}

/// The spread that `words` behind [`SPREAD`] are; `None` for that of no numbers.
pub(crate) fn spread(words: &[u64]) -> Option<Spread> {
    let &[count, sum, min, max] = words else { return None };
    (count > 0).then_some(Spread { count, sum: sum as i64, min: min as i64, max: max as i64 })
}
