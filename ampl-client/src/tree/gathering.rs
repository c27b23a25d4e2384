//! How rarely ranks may look after the tree where windows are decided when they are over.
//!
//! A look needs much that is in no cache by then, so that to look once for several windows costs hardly more than for
//! one. But every rank remembers only so many windows until they are decided, and the higher the tree, the more looks
//! that takes.

/// Looks, one behind the other, that take a window a level further until it is decided: its sums go up, a reference comes
/// down, its bins go up, the verdict comes down.
const WAYS: u32 = 4;

/// Looks that are reckoned with in low trees: some to spare.
const FEWEST: u32 = 8;

/// Nanoseconds in which windows are decided where nobody is held up.
const DECIDED_NS: u64 = 8_000_000_000;

/// What may gather between two looks of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gathering {
    /// Windows: so many that none is forgotten before it is decided.
    pub windows: usize,
    /// Nanoseconds from one look to the next, at most.
    pub rest_ns: u64,
}

impl Gathering {
    /// In a tree with so many levels below its root, at a rank that remembers `waiting` windows.
    pub(super) fn new(levels: u32, waiting: usize) -> Self {
        let looks = (WAYS * levels).max(FEWEST);
        Self { windows: (waiting / looks as usize).max(1), rest_ns: DECIDED_NS / u64::from(looks) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_high_trees_less_gathers() {
        let of = |levels| Gathering::new(levels, 64);
        assert_eq!(of(0), of(2));
        assert_eq!(of(2), Gathering { windows: 8, rest_ns: 1_000_000_000 });
        assert_eq!(of(7), Gathering { windows: 2, rest_ns: 285_714_285 });
        assert_eq!(of(31).windows, 1);
    }
}
