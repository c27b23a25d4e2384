//! Regions of the program in the sequence of calls: where it enters and leaves them.
//!
//! An entry or exit is a terminal as a call is. Its signature has the region's name as words, so that ranks that use the
//! same names share a grammar. A function that a compiler has instrumented has no name there: its site is the first byte
//! of its code, which the symbols of the module name.

use std::sync::Arc;

use crate::record::{REGION_ENTER, REGION_EXIT, get_text, put_text};
use crate::structure::Signature;

/// Side of a region that the program passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Edge {
    /// It enters the region.
    Enter,
    /// It leaves the region.
    Exit,
}

impl Edge {
    /// The edge that signatures of `function` stand for; `None` for calls and gaps.
    pub fn of(function: u16) -> Option<Self> {
        match function {
            REGION_ENTER => Some(Self::Enter),
            REGION_EXIT => Some(Self::Exit),
            _ => None,
        }
    }

    /// Stands for the function in signatures.
    pub fn function(self) -> u16 {
        match self {
            Self::Enter => REGION_ENTER,
            Self::Exit => REGION_EXIT,
        }
    }

    /// The name in output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Enter => "enter",
            Self::Exit => "exit",
        }
    }
}

/// A region, as signatures have it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Region {
    /// A region with the name that the program gives it.
    Named(Arc<str>),
    /// A function of the program: index into [`RankStructure::sites`](crate::structure::RankStructure::sites) of the
    /// first byte of its code.
    Function(u32),
}

/// A moment in a window whose times are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The window.
    pub window: u64,
    /// Nanoseconds since T0.
    pub at_ns: i64,
}

/// An entry or exit of a region, between two calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionEvent {
    /// Number of the thread's next call: regions have no numbers of their own.
    pub seq: u64,
    /// The thread, 0 for the one that called `MPI_Init`.
    pub thread: u32,
    /// The region.
    pub region: Region,
    /// Its moment, where the times of its window are stored.
    pub timed: Option<Moment>,
    /// True where the thread passed it while nothing was recorded: anywhere in the gap before, or before the thread's
    /// first call. Visits that began and ended in a gap are missing.
    pub unseen: bool,
    /// Index into its thread's signatures.
    pub terminal: u32,
}

/// Words of a signature that give a region its `name`.
pub fn name_words(words: &mut Vec<u64>, name: &str) {
    put_text(words, name);
}

impl Signature {
    /// Edge and region that it stands for; `None` where it is that of a call or a gap, or makes no sense.
    pub fn region(&self) -> Option<(Edge, Region)> {
        let edge = Edge::of(self.function)?;
        if let Some(site) = self.site.checked_sub(1) {
            return Some((edge, Region::Function(site)));
        }
        let (name, _) = get_text(&self.words)?;
        Some((edge, Region::Named(name.into())))
    }

    /// True where it stands for an entry or exit of a region.
    pub fn is_region(&self) -> bool {
        Edge::of(self.function).is_some()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn names_come_back(name: String, exits: bool) {
            let edge = if exits { Edge::Exit } else { Edge::Enter };
            let mut words = Vec::new();
            name_words(&mut words, &name);
            let signature = Signature { function: edge.function(), words, ..Signature::default() };
            prop_assert_eq!(signature.region(), Some((edge, Region::Named(name.as_str().into()))));
        }

        #[test]
        fn any_words_are_read_without_panic(words: Vec<u64>, site: u32) {
            let signature = Signature { function: REGION_ENTER, words, site, ..Signature::default() };
            let found = signature.region();
            prop_assert!(site == 0 || found == Some((Edge::Enter, Region::Function(site - 1))));
        }
    }

    #[test]
    fn calls_and_gaps_are_no_regions() {
        for function in [0, 7, crate::record::GAP] {
            let signature = Signature { function, words: vec![0], ..Signature::default() };
            assert!(signature.region().is_none() && !signature.is_region());
        }
    }
}
