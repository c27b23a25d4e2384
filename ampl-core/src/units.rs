//! Units and small identities that cross crate borders.

use serde::{Deserialize, Serialize};

/// A process's number in `MPI_COMM_WORLD`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Rank(pub u32);

/// Number of a window, from 0 at the return of `MPI_Init`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WindowId(pub u64);

impl WindowId {
    /// The window after this one.
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// A set of ranks written as in configuration files: `"0-127,200"`.
///
/// Kept as sorted, disjoint, inclusive ranges, so its size in memory does not depend on the
/// number of ranks in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankSet {
    ranges: Vec<(u32, u32)>,
}

/// Reason why a rank set could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RankSetError {
    /// A part is neither a number nor `LOW-HIGH`.
    NotARange(String),
    /// `LOW-HIGH` with `LOW > HIGH`.
    Backwards(u32, u32),
}

impl std::fmt::Display for RankSetError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotARange(part) => write!(f, "'{part}' is neither a rank nor a range like 0-127"),
            Self::Backwards(low, high) => write!(f, "range {low}-{high} runs backwards"),
        }
    }
}

impl std::error::Error for RankSetError {}

impl RankSet {
    /// The set of ranks `first..=last`.
    pub fn range(first: u32, last: u32) -> Self {
        Self { ranges: vec![(first, last)] }
    }

    /// The set named by `text`, ranges merged and sorted; the empty text is the empty set.
    ///
    /// # Errors
    /// [`RankSetError`] naming the first part that cannot be read.
    pub fn parse(text: &str) -> Result<Self, RankSetError> {
        let mut ranges = Vec::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let bad = || RankSetError::NotARange(part.to_owned());
            let (low, high) = match part.split_once('-') {
                Some((low, high)) => {
                    (low.trim().parse().map_err(|_| bad())?, high.trim().parse().map_err(|_| bad())?)
                }
                None => {
                    let rank = part.parse().map_err(|_| bad())?;
                    (rank, rank)
                }
            };
            if low > high {
                return Err(RankSetError::Backwards(low, high));
            }
            ranges.push((low, high));
        }
        Ok(Self::merged(ranges))
    }

    /// The set of the ranks in `ranges`, which may overlap and stand in any order.
    fn merged(mut ranges: Vec<(u32, u32)>) -> Self {
        ranges.sort_unstable();
        let mut merged: Vec<(u32, u32)> = Vec::with_capacity(ranges.len());
        for (low, high) in ranges {
            match merged.last_mut() {
                Some(last) if u64::from(low) <= u64::from(last.1) + 1 => last.1 = last.1.max(high),
                _ => merged.push((low, high)),
            }
        }
        Self { ranges: merged }
    }

    /// The ranks of the set that are below `end`.
    pub fn below(&self, end: u32) -> Self {
        let below = self.ranges.iter().filter(|&&(low, _)| low < end);
        Self { ranges: below.map(|&(low, high)| (low, high.min(end - 1))).collect() }
    }

    /// The ranks below `end` that are not in the set.
    pub fn complement(&self, end: u32) -> Self {
        let (mut ranges, mut next) = (Vec::new(), 0);
        for (low, high) in self.below(end).ranges() {
            if low > next {
                ranges.push((next, low - 1));
            }
            next = high + 1;
        }
        if next < end {
            ranges.push((next, end - 1));
        }
        Self { ranges }
    }

    /// Number of ranks in the set.
    pub fn len(&self) -> u64 {
        self.ranges.iter().map(|&(low, high)| u64::from(high) - u64::from(low) + 1).sum()
    }

    /// `true` if the set has no rank.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// `true` if `rank` is in the set.
    pub fn contains(&self, rank: Rank) -> bool {
        self.position(rank).is_some()
    }

    /// The largest rank of the set.
    pub fn max(&self) -> Option<Rank> {
        self.ranges.last().map(|&(_, high)| Rank(high))
    }

    /// Number of ranks of the set that are smaller than `rank`, if `rank` is in the set.
    pub fn position(&self, rank: Rank) -> Option<u64> {
        let mut before = 0;
        for &(low, high) in &self.ranges {
            if rank.0 < low {
                return None;
            }
            if rank.0 <= high {
                return Some(before + u64::from(rank.0 - low));
            }
            before += u64::from(high) - u64::from(low) + 1;
        }
        None
    }

    /// The ranks of the set in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = Rank> + '_ {
        self.ranges.iter().flat_map(|&(low, high)| (low..=high).map(Rank))
    }

    /// The set's inclusive ranges, sorted and disjoint.
    pub fn ranges(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.ranges.iter().copied()
    }
}

impl FromIterator<u32> for RankSet {
    fn from_iter<T: IntoIterator<Item = u32>>(ranks: T) -> Self {
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for rank in ranks {
            match ranges.last_mut() {
                // Mostly they ascend: a set of many ranks is few ranges while it grows.
                Some((_, last)) if last.checked_add(1) == Some(rank) => *last = rank,
                _ => ranges.push((rank, rank)),
            }
        }
        Self::merged(ranges)
    }
}

impl FromIterator<Rank> for RankSet {
    fn from_iter<I: IntoIterator<Item = Rank>>(ranks: I) -> Self {
        ranks.into_iter().map(|rank| rank.0).collect()
    }
}

/// The union.
impl FromIterator<Self> for RankSet {
    fn from_iter<I: IntoIterator<Item = Self>>(sets: I) -> Self {
        Self::merged(sets.into_iter().flat_map(|set| set.ranges).collect())
    }
}

impl std::fmt::Display for RankSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, (low, high)) in self.ranges.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            if low == high {
                write!(f, "{comma}{low}")?;
            } else {
                write!(f, "{comma}{low}-{high}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_merge_sort_and_print_back() {
        let set = RankSet::parse("8, 0-3,4-5 ,128-137").unwrap();
        assert_eq!(set.to_string(), "0-5,8,128-137");
        assert_eq!(set.len(), 17);
        assert_eq!(set.position(Rank(8)), Some(6));
        assert_eq!(set.position(Rank(7)), None);
        assert_eq!(set.position(Rank(130)), Some(9));
        assert_eq!(set.iter().count(), 17);
        assert_eq!(set.max(), Some(Rank(137)));
    }

    #[test]
    fn sets_of_ranks_are_those_of_their_texts() {
        let large = [7, 2, 1, 2, u32::MAX, 6, u32::MAX - 1];
        for ranks in [
            &[][..],
            &[3],
            &[0, 1, 2, 5],
            &[4, 3, 5, 5, 0],
            &[u32::MAX, 0, u32::MAX - 1],
            &[7, 9, 8, 1, 2, 2],
            &large,
        ] {
            let text: Vec<String> = ranks.iter().map(u32::to_string).collect();
            let set: RankSet = ranks.iter().copied().collect();
            assert_eq!(set, RankSet::parse(&text.join(",")).unwrap());
            let parts = ranks.chunks(2).map(|part| part.iter().copied().collect::<RankSet>());
            assert_eq!(parts.collect::<RankSet>(), set);
        }
    }

    #[test]
    fn sets_end_where_the_job_does() {
        let set = RankSet::parse("2-4,7,9-4294967295").unwrap();
        let both = |end| (set.below(end).to_string(), set.complement(end).to_string());
        assert_eq!(both(0), (String::new(), String::new()));
        assert_eq!(both(3), ("2".into(), "0-1".into()));
        assert_eq!(both(8), ("2-4,7".into(), "0-1,5-6".into()));
        assert_eq!(both(u32::MAX), ("2-4,7,9-4294967294".into(), "0-1,5-6,8".into()));
    }

    #[test]
    fn bad_ranges_are_named() {
        assert_eq!(RankSet::parse("5-2"), Err(RankSetError::Backwards(5, 2)));
        assert_eq!(RankSet::parse("1,x-3"), Err(RankSetError::NotARange("x-3".into())));
        assert!(RankSet::parse("").unwrap().is_empty());
    }
}
