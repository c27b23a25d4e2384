//! Regions that a thread has met: their terminals, and which of their visits are left out.

use ampl_trace::regions::Edge;
use rustc_hash::FxHashMap;

/// No terminal yet.
const NONE: u32 = u32::MAX;
/// Visits after which a region that is left out where it is short is judged for the first time, and then again.
pub const ALLOWANCE: u64 = 10_000;

/// Name of a region.
#[derive(Debug)]
pub enum RegionName {
    /// The program's own.
    Own(Box<str>),
    /// Module and offset of a function.
    Place(Box<str>, u64),
}

/// A region that a thread has met.
#[derive(Debug)]
pub struct KnownRegion {
    /// Terminals of its entry and exit, then of those that passed unseen.
    terminals: [u32; 4],
    name: RegionName,
    /// Words of its signatures.
    words: Box<[u64]>,
    /// Site that they name; 0 for none.
    pub site: u32,
    /// True where the configuration leaves all visits out.
    unwanted: bool,
    /// True where visits that begin from here on are left out.
    pub left_out: bool,
    /// Visits that are open and left out.
    hidden: u64,
    /// Visits that have been left out.
    pub skipped: u64,
    /// Ticks up to which its mean visit is too short to be recorded; 0 where none is.
    floor: u64,
    /// Visits since it was judged last, and their ticks.
    visits: u64,
    ticks: u64,
}

/// All of them, by number.
#[derive(Debug, Default)]
pub struct KnownRegions {
    all: Vec<KnownRegion>,
    /// Numbers plus 1 of named regions, by the number that the process gives the name; 0 for unknown ones.
    named: Vec<u32>,
    /// Numbers of functions by the address of their first byte.
    functions: FxHashMap<u64, u32>,
    /// The function met last, and its number: loops call one.
    last: (u64, u32),
}

impl KnownRegion {
    /// A region whose signatures have these words. Visits are left out where they are `unwanted`, or their mean is up to
    /// `floor` ticks.
    pub fn new(name: RegionName, words: Box<[u64]>, unwanted: bool, floor: u64) -> Self {
        let (site, hidden, skipped, visits, ticks) = Default::default();
        let (terminals, left_out) = ([NONE; 4], unwanted);
        Self { terminals, name, words, site, unwanted, left_out, hidden, skipped, floor, visits, ticks }
    }

    /// The same, whose signatures have that site.
    pub fn at_site(self, site: u32) -> Self {
        Self { site, ..self }
    }

    /// Words of its signatures.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Its terminal at `edge`, where that is known.
    #[inline]
    pub fn terminal(&self, edge: Edge, unseen: bool) -> Option<u32> {
        Some(self.terminals[edge as usize + 2 * usize::from(unseen)]).filter(|&terminal| terminal != NONE)
    }

    /// Sets it.
    pub fn set_terminal(&mut self, edge: Edge, unseen: bool, terminal: u32) {
        self.terminals[edge as usize + 2 * usize::from(unseen)] = terminal;
    }

    /// A visit begins; returns true where it is left out.
    #[inline]
    pub fn hides_entry(&mut self) -> bool {
        if self.left_out {
            self.hidden += 1;
            self.skipped += 1;
        }
        self.left_out
    }

    /// A visit ends; returns true where it was left out.
    #[inline]
    pub fn hides_exit(&mut self) -> bool {
        if self.hidden > 0 {
            self.hidden -= 1;
            return true;
        }
        false
    }

    /// A visit of `ticks` has been recorded.
    #[inline]
    pub fn visited(&mut self, ticks: u64) {
        if self.floor > 0 {
            (self.visits, self.ticks) = (self.visits + 1, self.ticks.saturating_add(ticks));
            if self.visits == ALLOWANCE {
                self.left_out = self.ticks / ALLOWANCE <= self.floor;
                (self.visits, self.ticks) = (0, 0);
            }
        }
    }
}

impl KnownRegions {
    /// The region of that number.
    #[inline]
    pub fn get(&mut self, number: u32) -> &mut KnownRegion {
        &mut self.all[number as usize]
    }

    /// Number of the region whose name has the number `name`.
    #[inline]
    pub fn named(&self, name: u32) -> Option<u32> {
        self.named.get(name as usize)?.checked_sub(1)
    }

    /// Number of the function whose code begins at `address`.
    #[inline]
    pub fn function(&mut self, address: u64) -> Option<u32> {
        if self.last.0 != address {
            self.last = (address, *self.functions.get(&address)?);
        }
        Some(self.last.1)
    }

    /// Adds the region whose name has that number.
    pub fn add_named(&mut self, name: u32, region: KnownRegion) -> u32 {
        let number = self.add(region);
        self.named.resize(self.named.len().max(name as usize + 1), 0);
        self.named[name as usize] = number + 1;
        number
    }

    /// Adds the function whose code begins at `address`.
    pub fn add_function(&mut self, address: u64, region: KnownRegion) -> u32 {
        let number = self.add(region);
        self.functions.insert(address, number);
        number
    }

    fn add(&mut self, region: KnownRegion) -> u32 {
        self.all.push(region);
        self.all.len() as u32 - 1
    }

    /// Another thread takes the place of one that may have been in some.
    pub fn restart(&mut self) {
        self.all.iter_mut().for_each(|region| region.hidden = 0);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Names of those of which visits have been left out because they were short, and how many.
    pub fn left_out(&self) -> impl Iterator<Item = (&RegionName, u64)> {
        let some = self.all.iter().filter(|region| region.skipped > 0 && !region.unwanted);
        some.map(|region| (&region.name, region.skipped))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_visits_are_left_out_after_the_allowance() {
        let mut region = KnownRegion::new(RegionName::Own("".into()), [].into(), false, 100);
        let visit = |region: &mut KnownRegion, ticks| {
            let hidden = region.hides_entry();
            assert_eq!(region.hides_exit(), hidden);
            if !hidden {
                region.visited(ticks);
            }
            hidden
        };
        // Long ones at first.
        assert!((0..ALLOWANCE).all(|_| !visit(&mut region, 101)));
        assert!((0..ALLOWANCE).all(|_| !visit(&mut region, 100)));
        assert!((0..50).all(|_| visit(&mut region, 100_000)));
        assert_eq!(region.skipped, 50);
        let mut kept = KnownRegion::new(RegionName::Own("".into()), [].into(), false, 0);
        assert!((0..3 * ALLOWANCE).all(|_| !visit(&mut kept, 0)));
    }

    #[test]
    fn a_visit_around_those_left_out_ends_as_it_began() {
        let mut region = KnownRegion::new(RegionName::Own("".into()), [].into(), false, 100);
        assert!(!region.hides_entry());
        region.left_out = true;
        assert!(region.hides_entry() && region.hides_entry());
        assert!(region.hides_exit() && region.hides_exit());
        assert!(!region.hides_exit(), "the outer one is in the trace");
    }

    #[test]
    fn names_and_functions_have_numbers_of_their_own() {
        let mut regions = KnownRegions::default();
        let region = || KnownRegion::new(RegionName::Own("".into()), [].into(), false, 0);
        assert_eq!((regions.named(4), regions.function(4)), (None, None));
        let numbers = [regions.add_named(4, region()), regions.add_function(4, region())];
        let again = regions.add_named(2, region());
        assert_eq!(numbers, [0, 1]);
        assert_eq!(
            (regions.named(4), regions.function(4), regions.named(2)),
            (Some(0), Some(1), Some(again))
        );
        assert_eq!((regions.named(3), regions.named(0), regions.function(5)), (None, None, None));
        assert_eq!(regions.function(4), Some(1));
    }
}
