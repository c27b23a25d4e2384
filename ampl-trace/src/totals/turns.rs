//! Ways that the sampled calls of a place came by, in their order.

use crate::varint::{Reader, put};

/// First calls of a place that are all sampled.
pub const FIRST_SAMPLES: u64 = 10;
/// Number of the last call of a place that is sampled; before, the first ones and powers of two are.
pub const LAST_SAMPLE: u64 = 1 << 9;

/// Bits of a label.
const BITS: u32 = 4;
/// Label of a way that is not known, or of one too many.
const UNKNOWN: u8 = 15;

/// Labels of the ways of sampled calls, equal where calls came by the same return addresses. The default is of calls that
/// all came by one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turns(u64);

/// Place of the call of that number among samples.
fn index(number: u64) -> u32 {
    match number {
        ..=FIRST_SAMPLES => number.saturating_sub(1) as u32,
        _ => number.ilog2() + 6,
    }
}

/// True where the call of that number is a sample of its place.
#[inline(always)]
pub fn is_sample(number: u64) -> bool {
    number <= FIRST_SAMPLES || number <= LAST_SAMPLE && number.is_power_of_two()
}

/// Numbers of sampled calls.
fn numbers() -> impl Iterator<Item = u64> {
    (1..=FIRST_SAMPLES).chain((4..=LAST_SAMPLE.ilog2()).map(|power| 1 << power))
}

impl Turns {
    /// The same with the call of that number, a sample, by the way `label`; `None` by one that is not known.
    #[must_use]
    pub fn with(self, number: u64, label: Option<usize>) -> Self {
        let label = label.map_or(UNKNOWN, |label| (label + 1).min(UNKNOWN.into()) as u8);
        let shift = BITS * index(number).min(u64::BITS / BITS - 1);
        Self(self.0 & !(0xF << shift) | u64::from(label) << shift)
    }

    /// The word that stands for them: of samples behind the last one in it the way is that one's.
    pub fn word(self) -> u64 {
        let last = (u64::BITS - self.0.leading_zeros()).div_ceil(BITS);
        let label = |at: u32| self.0 >> (BITS * at) & 0xF;
        let same = (0..last).rev().take_while(|&at| label(at) == label(last - 1)).count() as u32;
        match last - same {
            // Of one way nothing is to be told.
            0 if label(0) != u64::from(UNKNOWN) => 0,
            before => self.0 & (u64::MAX >> (u64::BITS - BITS * (before + 1))),
        }
    }

    /// The turns of a [word](Self::word).
    pub fn of(word: u64) -> Self {
        Self(word)
    }

    /// Numbers and labels of the samples among the first `calls` calls; `None` where the way of one is not known. Empty
    /// where all came by one.
    pub fn labels(self, calls: u64) -> Option<Vec<(u64, u8)>> {
        let mut labels: Vec<(u64, u8)> = Vec::new();
        if self.0 == 0 {
            return Some(labels);
        }
        for number in numbers().take_while(|&number| number <= calls) {
            let own = (self.0 >> (BITS * index(number)) & 0xF) as u8;
            let label = if own == 0 { labels.last()?.1 } else { own };
            labels.push((number, label));
        }
        labels.iter().all(|of| of.1 < UNKNOWN).then_some(labels)
    }

    /// Joins those of other ranks: nothing is known of ranks that differ.
    pub(super) fn join(&mut self, other: Self) {
        if *self != other {
            self.0 = UNKNOWN.into();
        }
    }

    pub(super) fn put(self, out: &mut Vec<u8>) {
        put(out, self.word());
    }

    pub(super) fn get(reader: &mut Reader<'_>) -> Option<Self> {
        Some(Self(reader.get()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(labels: &[usize]) -> Turns {
        let samples = numbers().zip(labels);
        samples.fold(Turns::default(), |turns, (number, &label)| turns.with(number, Some(label)))
    }

    #[test]
    fn labels_come_back_in_their_order() {
        let labels = [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 0, 1, 0, 1, 0, 1];
        let back = Turns::of(turns(&labels).word()).labels(1000).unwrap();
        assert_eq!(back.iter().map(|of| usize::from(of.1) - 1).collect::<Vec<_>>(), labels);
        assert_eq!(back[9..].iter().map(|of| of.0).collect::<Vec<_>>(), [10, 16, 32, 64, 128, 256, 512]);
        assert_eq!(turns(&labels).labels(20).unwrap().len(), 11);
    }

    #[test]
    fn what_stays_the_same_takes_no_room() {
        assert_eq!(turns(&[0; 16]).word(), 0);
        assert_eq!(turns(&[0, 1, 1, 1]).word(), 0x21);
        let once = Turns::of(turns(&[0, 1]).word()).labels(40).unwrap();
        assert_eq!(once.iter().map(|of| of.1).collect::<Vec<_>>(), [&[1][..], &[2; 11]].concat());
        assert_eq!(Turns::default().labels(40), Some(vec![]));
    }

    #[test]
    fn a_way_that_is_not_known_hides_the_others() {
        assert_eq!(turns(&[0, 1]).with(3, None).labels(9), None);
        assert_eq!(turns(&[0, 1]).with(3, None).labels(2).map(|all| all.len()), Some(2));
        assert_eq!(turns(&[0, 15]).labels(9), None, "one too many");
        let mut joined = turns(&[0, 1]);
        joined.join(turns(&[0, 1]));
        assert_eq!(joined, turns(&[0, 1]));
        joined.join(turns(&[0, 0, 1]));
        assert_eq!(joined.labels(9), None);
    }
}
