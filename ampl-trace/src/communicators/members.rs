//! Ordered lists of ranks, kept as runs, each list once.

use rustc_hash::FxHashMap;

/// Ranks that lie at equal distances: the first, how far apart, how many.
type Run = (u32, i64, u32);

/// Ranks of the world in the order of a communicator or group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Members {
    runs: Vec<Run>,
    length: u32,
}

impl Members {
    /// The first so many ranks.
    pub fn first(length: u32) -> Self {
        match length {
            0 => Self::default(),
            1 => Self { runs: vec![(0, 0, 1)], length },
            _ => Self { runs: vec![(0, 1, length)], length },
        }
    }

    /// Number of ranks.
    pub fn len(&self) -> u32 {
        self.length
    }

    /// True where there are no ranks.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let of = |&(first, step, length): &Run| {
            (0..i64::from(length)).map(move |index| (i64::from(first) + step * index) as u32)
        };
        self.runs.iter().flat_map(of)
    }

    /// The rank of the world at that place.
    pub fn get(&self, place: u32) -> Option<u32> {
        let mut before = 0;
        for &(first, step, length) in &self.runs {
            if place - before < length {
                return Some((i64::from(first) + step * i64::from(place - before)) as u32);
            }
            before += length;
        }
        None
    }

    /// The place of a rank of the world.
    pub fn place(&self, rank: u32) -> Option<u32> {
        let mut before = 0;
        for &(first, step, length) in &self.runs {
            let away = i64::from(rank) - i64::from(first);
            let place = if step == 0 { away } else { away / step };
            if (0..i64::from(length)).contains(&place) && place * step == away {
                return Some(before + place as u32);
            }
            before += length;
        }
        None
    }

    /// The lowest of them.
    pub fn lowest(&self) -> Option<u32> {
        let end = |&(first, step, length): &Run| {
            let last = i64::from(first) + step * (i64::from(length) - 1);
            first.min(last as u32)
        };
        self.runs.iter().map(end).min()
    }

    /// Memory that they take, in runs.
    pub fn runs(&self) -> usize {
        self.runs.len()
    }
}

impl FromIterator<u32> for Members {
    fn from_iter<T: IntoIterator<Item = u32>>(ranks: T) -> Self {
        let mut members = Self::default();
        for rank in ranks {
            members.length += 1;
            match members.runs.last_mut() {
                Some((first, step, length @ 1)) => {
                    (*step, *length) = (i64::from(rank) - i64::from(*first), 2);
                }
                Some((first, step, length))
                    if i64::from(*first) + *step * i64::from(*length) == i64::from(rank) =>
                {
                    *length += 1;
                }
                _ => members.runs.push((rank, 0, 1)),
            }
        }
        members
    }
}

/// `0-3,8`: in order, neighbours that follow each other joined.
impl std::fmt::Display for Members {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut ranks = self.iter().peekable();
        let mut separator = "";
        while let Some(first) = ranks.next() {
            let mut last = first;
            while let Some(next) = ranks.next_if(|&next| Some(next) == last.checked_add(1)) {
                last = next;
            }
            match last - first {
                0 => write!(f, "{separator}{first}")?,
                _ => write!(f, "{separator}{first}-{last}")?,
            }
            separator = ",";
        }
        Ok(())
    }
}

/// The number of a list in [`Lists`].
pub type ListId = u32;

/// Lists of ranks by number: equal lists have the same.
#[derive(Debug, Default)]
pub struct Lists {
    lists: Vec<Members>,
    known: FxHashMap<Members, ListId>,
    runs: usize,
}

impl Lists {
    /// The number of a list.
    pub fn number(&mut self, members: Members) -> ListId {
        if let Some(&known) = self.known.get(&members) {
            return known;
        }
        self.runs += members.runs();
        self.lists.push(members.clone());
        let number = self.lists.len() as ListId - 1;
        self.known.insert(members, number);
        number
    }

    /// The list of that number.
    pub fn get(&self, list: ListId) -> &Members {
        &self.lists[list as usize]
    }

    /// Runs of all lists.
    pub fn runs(&self) -> usize {
        self.runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn lists_are_what_they_were_made_of(ranks in prop::collection::vec(0u32..12, 0..30)) {
            let mut seen = std::collections::HashSet::new();
            let ranks: Vec<u32> = ranks.into_iter().filter(|&rank| seen.insert(rank)).collect();
            let members: Members = ranks.iter().copied().collect();
            prop_assert_eq!(members.iter().collect::<Vec<_>>(), ranks.clone());
            prop_assert_eq!(members.len() as usize, ranks.len());
            prop_assert_eq!(members.lowest(), ranks.iter().copied().min());
            for rank in 0..13 {
                let place = ranks.iter().position(|&known| known == rank).map(|place| place as u32);
                prop_assert_eq!(members.place(rank), place);
            }
            for place in 0..14 {
                prop_assert_eq!(members.get(place), ranks.get(place as usize).copied());
            }
        }
    }

    #[test]
    fn lists_of_many_ranks_are_short_and_read_in_order() {
        let shown = |ranks: &[u32]| ranks.iter().copied().collect::<Members>().to_string();
        assert_eq!(shown(&[0, 1, 2, 3, 8]), "0-3,8");
        assert_eq!(shown(&[7, 6, 5, 0, 1]), "7,6,5,0-1");
        assert_eq!(shown(&[]), "");
        let column: Members = (0..1000).map(|row| row * 1000 + 7).collect();
        assert_eq!(column.runs(), 1);
        for length in 0..4 {
            assert_eq!(Members::first(length), (0..length).collect());
        }
    }
}
