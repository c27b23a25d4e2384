//! Bins of magnitudes: logarithmic, of a bounded relative error, or exact.

use super::{MILLION, Settings};

/// Number of groups of bins that models distinguish; the rest of a bin's number are low bits.
pub const GROUPS: usize = 256;
/// Octaves of a `u64`, and one for 0.
const OCTAVES: usize = 65;

/// A bin, as it is coded: its group, and its number in that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Bin {
    /// Group, below [`GROUPS`].
    pub group: u8,
    /// Number in the group, of the width that [`Scale::low_width`] gives.
    pub low: u64,
}

/// Bins of magnitudes.
#[derive(Debug)]
pub enum Scale {
    /// Every integer is a bin: groups are quarters of octaves.
    Exact,
    /// Bins within a relative error.
    Relative(Box<Relative>),
}

/// Bins within a relative error `e`: one begins where that before ends, holds all whose distance to its
/// value is at most `e` times themselves, and integers below `1 / e` are alone in theirs.
#[derive(Debug)]
pub struct Relative {
    /// The last magnitude of each bin, ascending to `u64::MAX`.
    last: Vec<u64>,
    /// Value that a bin is decoded as.
    value: Vec<u64>,
    /// Bin of each octave's first magnitude.
    octave: [u32; OCTAVES + 1],
    /// Low bits of a bin's number.
    low_width: u32,
}

impl Scale {
    /// The scale of the settings' error.
    pub fn new(settings: Settings) -> Self {
        match settings.millionths() {
            0 => Self::Exact,
            error => Self::Relative(Box::new(Relative::new(error))),
        }
    }

    /// The bin of a magnitude.
    #[inline]
    pub fn bin(&self, magnitude: u64) -> Bin {
        match self {
            Self::Exact if magnitude < 4 => Bin { group: magnitude as u8, low: 0 },
            Self::Exact => {
                let width = magnitude.ilog2() - 2;
                let top = magnitude >> width; // 4 to 7
                Bin { group: (4 * width + top as u32) as u8, low: magnitude & ((1 << width) - 1) }
            }
            Self::Relative(relative) => {
                let number = relative.number(magnitude) as u64;
                let low = number & ((1 << relative.low_width) - 1);
                Bin { group: (number >> relative.low_width) as u8, low }
            }
        }
    }

    /// Bits of a number within the group.
    #[inline]
    pub fn low_width(&self, group: u8) -> u32 {
        match self {
            Self::Exact => (u32::from(group) / 4).saturating_sub(1),
            Self::Relative(relative) => relative.low_width,
        }
    }

    /// The magnitude that a bin is decoded as; `None` for one that no magnitude has.
    #[inline]
    pub fn value(&self, bin: Bin) -> Option<u64> {
        match self {
            Self::Exact if bin.group < 4 => Some(bin.group.into()),
            Self::Exact => {
                let width = self.low_width(bin.group);
                let top = u64::from(bin.group % 4) + 4;
                (width <= 61).then(|| top << width | bin.low)
            }
            Self::Relative(relative) => {
                let number = u64::from(bin.group) << relative.low_width | bin.low;
                relative.value.get(number as usize).copied()
            }
        }
    }
}

impl Relative {
    /// The bins within an error of so many millionths, at least 1.
    fn new(error: u64) -> Self {
        let [error, one] = [error, MILLION].map(u128::from);
        let (mut last, mut value) = (vec![0u64], vec![0u64]);
        while let Some(first) = last[last.len() - 1].checked_add(1) {
            // The largest value that is near enough to the first, and the largest that is near enough to it.
            let middle = u128::from(first) * (one + error) / one;
            let end = middle * one / (one - error);
            let [middle, end] = [middle, end].map(|edge| edge.try_into().unwrap_or(u64::MAX));
            last.push(end);
            value.push(middle);
        }
        let low_width = (0..).find(|width| (last.len() - 1) >> width < GROUPS).unwrap_or(0);
        let mut relative = Self { last, value, octave: [0; OCTAVES + 1], low_width };
        for octave in 1..=OCTAVES {
            let first = if octave > 64 { u64::MAX } else { 1 << (octave - 1) };
            relative.octave[octave] = relative.last.partition_point(|&last| last < first) as u32;
        }
        relative
    }

    /// The number of a magnitude's bin.
    #[inline]
    fn number(&self, magnitude: u64) -> usize {
        let octave = (u64::BITS - magnitude.leading_zeros()) as usize;
        // From the bin of the octave's first to that of the next one's.
        let from = self.octave[octave] as usize;
        let to = self.octave[octave + 1] as usize;
        from + self.last[from..to].partition_point(|&last| last < magnitude)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bin_is_within_the_error_and_the_small_are_alone() {
        for error in [1000, 3000, 50_000, 100_000, 333_333, 500_000] {
            let relative = Relative::new(error);
            let mut first = 0u64;
            for (number, (&last, &value)) in relative.last.iter().zip(&relative.value).enumerate() {
                for magnitude in [first, last] {
                    assert_eq!(relative.number(magnitude), number, "{magnitude}");
                    let distance = u128::from(magnitude.abs_diff(value)) * u128::from(MILLION);
                    assert!(distance <= u128::from(magnitude) * u128::from(error), "{magnitude} as {value}");
                }
                assert!(first == last || last >= MILLION / error);
                first = last.wrapping_add(1);
            }
            assert_eq!(first, 0, "all magnitudes have a bin");
        }
    }

    #[test]
    fn bins_come_back_from_group_and_low_bits() {
        let edges =
            (0..64).flat_map(|bit| [(1u64 << bit) - 1, 1 << bit, 3 << bit >> 1, !(u64::MAX >> 1 >> bit)]);
        for error in [0.0, 0.001, 0.01, 0.1, 0.5] {
            let scale = Scale::new(Settings { error, floor_ns: 0 });
            for magnitude in edges.clone().chain([u64::MAX]) {
                let bin = scale.bin(magnitude);
                assert_eq!(bin.low >> scale.low_width(bin.group), 0);
                let value = scale.value(bin).expect("a bin");
                assert_eq!(scale.bin(value), bin);
                assert!(error > 0.0 || value == magnitude);
            }
        }
    }

    #[test]
    fn bins_that_nothing_has_have_no_value() {
        assert_eq!(Scale::Exact.value(Bin { group: 252, low: 0 }), None);
        let tenth = Scale::new(Settings { error: 0.1, floor_ns: 0 });
        assert_eq!(tenth.value(Bin { group: 255, low: 0 }), None);
    }
}
