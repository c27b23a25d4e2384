//! A node's part in dividing groups into strata that last.
//!
//! Its rank remembers what it observed in the last windows, and finds its stratum when medoids come down. Every
//! contributor's ranks by stratum are remembered for a while. Once a directive names the window in which ranks were
//! counted, they give the places of a stratum that each of them has.

use std::collections::VecDeque;

use ampl_core::cluster::Metric;
use ampl_core::message::{
    CensusWindow, Directive, MOST_STRATA, MessageLayout, Own, PartialSums, Sampled, Stratification,
    Stratifications, StratifiedGroup, StratifiedSums, Summary,
};
use ampl_core::plan::Plan;
use ampl_core::stats::Moments;
use ampl_core::units::{Rank, WindowId};

use super::window_reduction::ReductionObserver;

/// Windows of its own that a rank remembers: twice as many as medoids may be about.
const REMEMBERED: usize = 128;

/// Windows whose counts are remembered.
const COUNTED: usize = 64;

/// State of a node for groups that are divided.
#[derive(Debug)]
pub(super) struct NodeStrata {
    divisions: Stratifications,
    seed: u64,
    rank: Rank,
    /// Index of the rank's group in [`Stratifications::groups`], and in the plan.
    group: Option<(usize, u16)>,
    pinned: bool,
    /// Windows of the rank, ascending: observations and their total, guide by guide.
    seen: VecDeque<(u64, Vec<(f64, f64)>)>,
    /// The newest divisions of its group: the one that is in force, and the one that is to be.
    known: VecDeque<Known>,
    /// Running totals of the window that is being added up, contributor by contributor.
    adding: Vec<Totals>,
    /// Windows that went up, oldest first.
    counts: VecDeque<Counts>,
    /// Per group, the window that directives draw by.
    adopted: Vec<Option<Counts>>,
}

#[derive(Debug)]
struct Known {
    division: Stratification,
    /// The rank's stratum, `Some(None)` if it has none; `None` until it has been searched.
    stratum: Option<Option<u8>>,
}

/// Ranks that are not pinned by stratum.
type Ranks = [u32; MOST_STRATA];

/// Per group, the number of the division and the ranks by stratum.
type Totals = Vec<(u32, Ranks)>;

#[derive(Clone, Debug)]
struct Counts {
    window: WindowId,
    /// Running totals: what comes before each contributor, and at last all.
    before: Vec<Totals>,
}

impl NodeStrata {
    pub fn new(plan: &Plan, shape: &MessageLayout, rank: Rank) -> Option<Self> {
        let divisions = shape.divisions.clone()?;
        let group = plan.group_of(rank);
        Some(Self {
            seed: plan.config.sampling.seed,
            rank,
            group: divisions.group(group).map(|place| (place, group as u16)),
            pinned: plan.groups[group].pinned.contains(rank),
            seen: VecDeque::new(),
            known: VecDeque::new(),
            adding: Vec::new(),
            counts: VecDeque::new(),
            adopted: vec![None; divisions.groups.len()],
            divisions,
        })
    }

    /// Puts the rank's own part of windows `first`..=`last` into `partial`.
    pub fn local(&mut self, first: WindowId, last: WindowId, summary: &Summary, partial: &mut PartialSums) {
        let Some((place, _)) = self.group else { return };
        let windows = last.0.saturating_sub(first.0).saturating_add(1);
        let of = |&guide: &u16| summary.metrics.get(usize::from(guide)).copied().unwrap_or_default();
        let seen: Vec<_> = self.divisions.guides.iter().map(of).collect();
        let each = |count: f64| count / windows as f64;
        let own: Vec<(f64, f64)> = seen.iter().map(|seen| (each(seen.n as f64), each(seen.sum))).collect();
        for window in first.0.max(last.0.saturating_sub(REMEMBERED as u64))..=last.0 {
            self.seen.push_back((window, own.clone()));
        }
        while self.seen.len() > REMEMBERED {
            self.seen.pop_front();
        }
        self.settle();
        // The newest that is in force; a range that began before it goes by the one before.
        let in_force = self.known.iter().rev().find(|known| known.division.from <= first);
        let (number, stratum) =
            in_force.map_or((0, None), |known| (known.division.number, known.stratum.flatten()));
        let moments: Vec<Moments> = seen
            .iter()
            .map(|seen| Moments::of_rank_windows(windows, seen.n, seen.sum, 0.0, 0.0, 0.0))
            .collect();
        let sums = &mut partial.divided[place];
        sums.add(number, stratum, self.pinned, windows, &moments);
        if windows == 1 && !self.pinned {
            sums.sample(number, Sampled::of(&self.divisions, self.seed, self.rank, stratum, summary));
        }
    }

    /// Finds the rank's stratum in divisions about windows that are all over.
    fn settle(&mut self) {
        let Some(&(newest, _)) = self.seen.back() else { return };
        for known in self.known.iter_mut().filter(|known| known.stratum.is_none()) {
            let wanted: Vec<u64> = known.division.windows().collect();
            if wanted.last().is_some_and(|&last| last > newest) {
                continue;
            }
            let of = |window: &u64| self.seen.iter().find(|(have, _)| have == window).map(|(_, seen)| seen);
            let found: Vec<Option<&Vec<(f64, f64)>>> = wanted.iter().map(of).collect();
            let enough = 2 * found.iter().flatten().count() >= wanted.len();
            let guides = (0..self.divisions.guides.len()).map(|guide| {
                let seen = |seen: &Option<&Vec<(f64, f64)>>| seen.map_or((0.0, 0.0), |seen| seen[guide]);
                found.iter().map(seen).collect()
            });
            let guides: Vec<Vec<(f64, f64)>> = guides.collect();
            let stratum = || known.division.reference.stratum_of(&guides, &Metric::Euclidean) as u8;
            known.stratum = Some(enough.then(stratum));
        }
    }

    /// Remembers the contributors' parts of a window that goes up: running totals, as [`totals`] gives them.
    fn remember(&mut self, window: WindowId, mut totals: Vec<Totals>) {
        let Some(all) = totals.last().cloned().filter(|all| all.iter().any(|&(number, _)| number > 0)) else {
            return;
        };
        // Ranks that went by an older division are in no stratum of the one that counts.
        for part in &mut totals {
            for (part, &(number, _)) in part.iter_mut().zip(&all) {
                if part.0 != number {
                    *part = (number, Ranks::default());
                }
            }
        }
        let none = all.iter().map(|&(number, _)| (number, Ranks::default())).collect();
        totals.insert(0, none);
        self.counts.push_back(Counts { window, before: totals });
        if self.counts.len() > COUNTED {
            self.counts.pop_front();
        }
    }

    /// Takes a directive: new divisions, and the counts it draws by. Fills in the rank's own place.
    pub fn direct(&mut self, directive: &mut Directive) {
        for divided in &mut directive.divided {
            let Some(place) = self.divisions.group(divided.group.into()) else { continue };
            self.adopt(place, divided);
            if self.group != Some((place, divided.group)) {
                continue;
            }
            let newest = self.known.back().map_or(0, |known| known.division.number);
            if let Some(division) = divided.newest.as_ref().filter(|division| division.number > newest) {
                self.known.push_back(Known { division: division.clone(), stratum: None });
                if self.known.len() > 2 {
                    self.known.pop_front();
                }
            }
            self.settle();
            divided.own = self.own(place, divided);
        }
    }

    fn own(&self, place: usize, divided: &StratifiedGroup) -> Option<Own> {
        let known = self.known.iter().find(|known| known.division.number == divided.number)?;
        let stratum = known.stratum.flatten()?;
        let count = divided.counts.get(usize::from(stratum))?;
        let counted = self.adopted[place].as_ref().is_some_and(|counts| {
            let own = counts.before.get(1).and_then(|totals| totals.get(place));
            own.is_some_and(|(_, ranks)| ranks[usize::from(stratum)] == 1)
        });
        Some(Own { stratum, place: count.before.filter(|_| counted) })
    }

    /// Holds on to the counts that a directive draws by.
    fn adopt(&mut self, place: usize, divided: &StratifiedGroup) {
        let adopted = &mut self.adopted[place];
        if divided.counts.is_empty() || adopted.as_ref().is_some_and(|have| have.window == divided.counted) {
            return;
        }
        let counts = self.counts.iter().find(|counts| {
            let all = counts.before.last().and_then(|all| all.get(place));
            counts.window == divided.counted && all.is_some_and(|&(number, _)| number == divided.number)
        });
        *adopted = counts.cloned();
    }

    /// Fills in a contributor's part of a directive: how many ranks come before its own.
    pub fn part(&self, directive: &mut Directive, contributor: usize) {
        for divided in &mut directive.divided {
            divided.own = None;
            let place = self.divisions.group(divided.group.into());
            let before = place.and_then(|place| {
                let counts = self.adopted[place].as_ref()?;
                let of = |number: usize| Some(counts.before.get(number)?.get(place)?.1);
                let (before, behind) = (of(contributor)?, of(contributor + 1)?);
                (before != behind).then_some(before)
            });
            for (stratum, count) in divided.counts.iter_mut().enumerate() {
                let more = before.and_then(|before| before.get(stratum).copied());
                count.before = count.before.zip(more).map(|(before, more)| before.saturating_add(more));
            }
        }
    }
}

impl ReductionObserver for NodeStrata {
    fn added(&mut self, so_far: Option<&CensusWindow>) {
        let nothing = || vec![(0, Ranks::default()); self.divisions.groups.len()];
        self.adding.push(so_far.map_or_else(nothing, totals));
    }

    fn complete(&mut self, window: &CensusWindow) {
        let totals = std::mem::take(&mut self.adding);
        if window.first_window == window.last_window {
            self.remember(window.first_window, totals);
        }
    }
}

/// Ranks by stratum in what has been added up of a window.
fn totals(window: &CensusWindow) -> Totals {
    let of = |sums: &StratifiedSums| {
        let mut ranks = Ranks::default();
        for (to, (counted, _)) in ranks.iter_mut().zip(sums.counts()) {
            *to = u32::try_from(counted).unwrap_or(u32::MAX);
        }
        (sums.number, ranks)
    };
    window.partial.divided.iter().map(of).collect()
}
