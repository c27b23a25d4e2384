//! A group that is divided while the job runs.
//!
//! The client sees the same few ranks of the group in every window. Now and then it checks whether strata found in some
//! of the windows would have saved ranks in the others. If so, it sends medoids, with the window from which summaries
//! are by them. When an interval has been summed so, and nearly all ranks were counted, directives draw from the
//! strata.
//!
//! A check goes on for some windows, with a bounded part of the work in each; its input does not change. Repeated tests
//! inflate false positives, so the interval doubles after each failure.

mod check;
mod set;

use ampl_core::cluster::{Aim, MOST_STRATA, OnlineStratum, Proposal, Rule, Strata, Work};
use ampl_core::config::Mechanism;
use ampl_core::message::{
    CensusWindow, Sampled, Stratification as Sent, Stratifications, StratifiedGroup, StratifiedSums,
    StratumCount,
};
use ampl_core::plan::Plan;
use ampl_core::stats::Moments;
use ampl_core::stats::sizing::{Stratum, mean_variance};
use ampl_core::units::WindowId;

use super::bound::{Bound, GroupMean};
use super::census::CensusTracker;
use check::{AT_ONCE, Look, Seen, Wish, of_ranks};
use set::Lasting;
pub(super) use set::{Ask, Set, Terms};

/// Fewest and most windows that strata are searched in.
const WINDOWS: (usize, usize) = (8, 16);
/// Largest distance between the first and the last of these windows.
const REACH: u64 = 63;

/// Fewest ranks that strata are searched among.
const RANKS: usize = 8;

/// Most windows from one check to the next.
const LONGEST_INTERVAL: u64 = 64;

/// Windows before an interval's end in which a check may begin; its result is sent at the end.
const AHEAD: u64 = 16;

/// Largest age, in windows, of the first window that medoids are about. Ranks, which get the medoids some windows
/// later, remember 128 windows, and `ampl simulate` this many.
const AGE: u64 = 96;

/// Most groups that take turns: with more of them, several have one at a time, or checks would last too long.
const TURNS: u64 = 8;

/// Fewest windows from a directive to the first one that is summed by the division that it sends.
const NOTICE: u64 = 4;

/// Share of a group's ranks that have to be counted before directives draw from its strata.
const ENOUGH: f64 = 0.9;

/// A group's stratification, and the search for a better one.
#[derive(Clone, Debug)]
pub(super) struct Stratification {
    place: usize,
    group: u16,
    wish: Wish,
    windows_per_update: u64,
    /// Turns that the groups to be divided take.
    turns: u64,
    /// Windows so far, each one turn.
    turn: u64,
    seen: Seen,
    /// `true` if no strata could save ranks at the last interval's end.
    few: bool,
    /// Windows since the last check began.
    since: u64,
    /// Windows from that check to the next.
    check_interval: u64,
    look: Option<Look>,
    /// Divisions sent so far.
    sent: u32,
    next_id: u16,
    /// Number of the group's stratum as long as there is only one.
    single: u16,
    current: Option<Set>,
    pending: Option<Set>,
}

impl Stratification {
    /// Stratification of the group of that index of `plan`; `None` if it is not to be divided.
    pub fn new(
        plan: &Plan,
        divisions: Option<&Stratifications>,
        (index, floor): (usize, u64),
        bounds: &[Bound],
    ) -> Option<Self> {
        let divisions = divisions?;
        let group = &plan.groups[index];
        // Coins need some ranks of each stratum: more strata would take more than the fewest ranks there are.
        let most = match plan.config.sampling.update_mechanism {
            Mechanism::Subset => MOST_STRATA,
            Mechanism::Global => (floor as usize / 8).clamp(2, MOST_STRATA),
        };
        let k = plan.divides(group)?;
        let sampling = &plan.config.sampling;
        let aim = |(guide, bound): (usize, &Bound)| Aim {
            guide,
            confidence: bound.confidence,
            error: bound.asked(),
        };
        let wish = Wish {
            aims: bounds.iter().enumerate().map(aim).collect(),
            rule: k.map_or(Rule::Pays(most), |k| Rule::Exactly(k as usize)),
            seed: sampling.seed,
            columns: usize::from(divisions.columns),
            population: group.members.len() - group.pinned.len(),
        };
        Some(Self {
            place: divisions.group(index)?,
            group: index as u16,
            wish,
            windows_per_update: u64::from(sampling.windows_per_update.max(1)),
            turns: (divisions.groups.len() as u64).clamp(1, TURNS),
            turn: 0,
            seen: Seen::new(),
            few: false,
            since: 0,
            check_interval: 0,
            look: None,
            sent: 0,
            next_id: 1,
            single: 0,
            current: None,
            pending: None,
        })
    }

    /// The strata that directives draw from, while there are several.
    pub fn in_force(&self) -> Option<&Set> {
        self.current.as_ref()
    }

    /// Number of the group's stratum as long as there is only one.
    pub fn single(&self) -> u16 {
        self.single
    }

    fn sums<'w>(&self, window: &'w CensusWindow) -> Option<&'w StratifiedSums> {
        window.partial.divided.get(self.place)
    }

    /// Variance of the group's mean in `window` under the sizes in force, the strata's variances in it being what
    /// they were; none where they are not known.
    pub fn mean_variance(
        &self,
        window: &CensusWindow,
        guide: usize,
        (bound, mean): (&Bound, GroupMean),
        terms: Terms,
    ) -> Option<f64> {
        let set = self.current.as_ref()?;
        let sums = self.sums(window).filter(|sums| sums.number == set.sent.number)?;
        let of = |(stratum, moments): (&Lasting, &Moments)| {
            let variance = bound.variance(moments, mean);
            let part = Stratum { ranks: stratum.ranks, variance };
            mean_variance(part, stratum.drawn(terms), terms.population)
        };
        let moments = sums.strata.iter().map(|stratum| stratum.guides.get(guide));
        let pairs = set.strata.iter().zip(moments).filter_map(|(stratum, moments)| Some((stratum, moments?)));
        Some(pairs.map(of).sum())
    }

    /// Takes a guide's sums in a window: `miss` is the probability that its bound was missed, `risk` the one that is
    /// allowed.
    pub fn observe(
        &mut self,
        window: &CensusWindow,
        guide: usize,
        (bound, mean): (&Bound, GroupMean),
        (miss, risk): (f64, f64),
    ) {
        let Some(sums) = self.sums(window) else { return };
        for set in self.current.iter_mut().chain(&mut self.pending) {
            if set.sent.number != sums.number {
                continue;
            }
            for (stratum, sums) in set.strata.iter_mut().zip(&sums.strata) {
                let Some(moments) = sums.guides.get(guide).filter(|_| sums.ranks > 0) else { continue };
                let (tracker, seen, _) = &mut stratum.guides[guide];
                tracker.observe((bound.variance(moments, mean), moments.kurtosis()), miss, risk);
                *seen = true;
            }
        }
    }

    /// Takes a window, when its guides have been observed, and continues the search for better strata.
    pub fn end_window(&mut self, window: &CensusWindow) {
        let Some(sums) = self.sums(window) else { return };
        let windows = window.windows();
        for set in self.current.iter_mut().chain(&mut self.pending) {
            if set.sent.number == sums.number {
                set.count(sums, window.first_window, windows);
            }
        }
        self.since = self.since.saturating_add(windows);
        if windows == 1 && !sums.sample.is_empty() {
            let number = window.first_window.0;
            self.seen.push_back((number, sums.number, sums.sample.clone()));
            while self.seen.len() > WINDOWS.1 || self.seen.front().is_some_and(|old| old.0 + REACH < number) {
                self.seen.pop_front();
            }
        }
        self.turn += 1;
        if self.turn % self.turns == self.place as u64 % self.turns {
            let left = self.windows_per_update - 1 - window.last_window.0 % self.windows_per_update;
            self.look(left, &mut Work::new(AT_ONCE));
        }
    }

    /// Ends an interval: `next` is the one that the directive will be for. `few` says that no strata could save
    /// ranks, because a single one takes no more than the fewest.
    pub fn end_interval(&mut self, next: u64, few: bool) {
        self.few = few;
        let first = next.saturating_mul(self.windows_per_update);
        if let Some(set) = &self.pending {
            if set.all as f64 >= ENOUGH * self.wish.population as f64 && set.all > 0 {
                self.current = self.pending.take();
            } else if first > set.sent.from.0.saturating_add(4 * self.windows_per_update + NOTICE) {
                self.pending = None;
            }
        }
        if let Some(look) = self.look.take_if(|look| look.is_over()) {
            self.follow(look, next);
        }
        for set in self.current.iter_mut().chain(&mut self.pending) {
            let guides = set.strata.iter_mut().flat_map(|stratum| &mut stratum.guides);
            for (tracker, seen, priced) in guides.filter(|(_, seen, _)| *seen) {
                *priced = tracker.end_interval();
                *seen = false;
            }
        }
    }

    /// Prices the strata in force by the interval's windows so far.
    pub fn amend(&mut self) {
        let strata = self.current.iter_mut().flat_map(|set| &mut set.strata);
        for (tracker, _, priced) in
            strata.flat_map(|stratum| &mut stratum.guides).filter(|(_, seen, _)| *seen)
        {
            *priced = tracker.expected();
        }
    }

    /// Continues the check for better strata as far as `work` goes, or begins one where it is due, `left` windows
    /// before the interval ends.
    fn look(&mut self, left: u64, work: &mut Work) {
        if self.look.is_none() && left <= AHEAD {
            self.look = self.begin(work);
        }
        if let Some(look) = &mut self.look {
            look.go_on(work);
        }
    }

    fn begin(&mut self, work: &mut Work) -> Option<Look> {
        let useless = self.few && matches!(self.wish.rule, Rule::Pays(_));
        let early = self.seen.len() < WINDOWS.0 || self.since < self.check_interval;
        if self.pending.is_some() || useless || early {
            return None;
        }
        let (ranks, current) = self.sampled()?;
        let units = self.seen.len() * ranks.len() * (8 + 4 * self.wish.aims.len());
        _ = work.take(units as u64);
        self.since = 0;
        self.check_interval = (2 * self.check_interval).clamp(WINDOWS.0 as u64, LONGEST_INTERVAL);
        Some(Look::begin(&self.wish, &self.seen, ranks, current))
    }

    /// Ends a check; strata that it has found are sent in the directive for interval `next`.
    fn follow(&mut self, look: Look, next: u64) {
        let Some(proposal) = look.found() else { return };
        self.check_interval = WINDOWS.0 as u64;
        let first = next.saturating_mul(self.windows_per_update);
        if look.found_on.first().is_some_and(|&oldest| oldest.saturating_add(AGE) >= first) {
            self.adopt(proposal, &look.ranks, &look.found_on, next);
        }
    }

    /// The ranks that were seen in every window, by their places in the seeded order, and their strata.
    fn sampled(&self) -> Option<(Vec<u32>, Strata)> {
        let (_, number, newest) = self.seen.back()?;
        let set = self.current.as_ref();
        let label = |sampled: &Sampled| match set {
            None => Some(0),
            Some(set) => sampled
                .stratum
                .map(usize::from)
                .filter(|&label| *number == set.sent.number && label < set.strata.len()),
        };
        let mut everywhere: Vec<u32> = newest.iter().map(|sampled| sampled.place).collect();
        for (_, _, sample) in &self.seen {
            everywhere = of_ranks(sample, &everywhere).map(|sampled| sampled.place).collect();
        }
        let known = of_ranks(newest, &everywhere);
        let (ranks, labels): (Vec<u32>, Vec<usize>) =
            known.filter_map(|sampled| Some((sampled.place, label(sampled)?))).unzip();
        if ranks.len() < RANKS {
            return None;
        }
        // A stratum whose medoid is not among them cannot be continued.
        let index = |medoid: u32| ranks.binary_search(&medoid).unwrap_or(usize::MAX);
        let strata = match set {
            None => vec![OnlineStratum { id: self.single, medoid: 0 }],
            Some(set) => set
                .strata
                .iter()
                .map(|stratum| OnlineStratum { id: stratum.id, medoid: index(stratum.medoid) })
                .collect(),
        };
        Some((ranks, Strata { strata, labels, next_id: self.next_id }))
    }

    fn adopt(&mut self, proposal: &Proposal, ranks: &[u32], windows: &[u64], next: u64) {
        self.next_id = proposal.strata.next_id;
        let (Some(reference), Some(&first)) = (proposal.reference.clone(), windows.first()) else {
            self.single = proposal.strata.strata.first().map_or(0, |stratum| stratum.id);
            self.current = None;
            return;
        };
        self.sent += 1;
        let notice = NOTICE.div_ceil(self.windows_per_update).max(1);
        let sent = Sent {
            number: self.sent,
            from: WindowId(next.saturating_add(notice).saturating_mul(self.windows_per_update)),
            first: WindowId(first),
            windows: windows.iter().fold(0, |all, window| all | 1 << (window - first)),
            reference,
        };
        let guide = (CensusTracker::default(), false, 0.0);
        let strata = proposal.strata.strata.iter().map(|stratum| Lasting {
            id: stratum.id,
            medoid: ranks[stratum.medoid],
            ranks: 0,
            pinned: 0,
            size: 0,
            reported: None,
            guides: vec![guide; self.wish.aims.len()],
        });
        self.pending = Some(Set { strata: strata.collect(), sent, counted: WindowId(0), all: 0 });
    }

    /// A directive's part for the group; `None` while there is nothing to send.
    pub fn divided(&self) -> Option<StratifiedGroup> {
        let newest = self.pending.as_ref().or(self.current.as_ref())?;
        let count = |stratum: &Lasting| StratumCount { ranks: stratum.ranks as u32, before: Some(0) };
        let current = self.current.as_ref();
        Some(StratifiedGroup {
            group: self.group,
            number: current.map_or(0, |set| set.sent.number),
            counted: current.map_or(WindowId(0), |set| set.counted),
            counts: current.map_or_else(Vec::new, |set| set.strata.iter().map(count).collect()),
            newest: Some(newest.sent.clone()),
            own: None,
        })
    }

    /// Sets the sizes of the strata in force.
    pub fn resize(&mut self, sizes: &[u64]) {
        let strata = self.current.iter_mut().flat_map(|set| &mut set.strata);
        strata.zip(sizes).for_each(|(stratum, &size)| stratum.size = size);
    }

    /// Forgets how many ranks have reported.
    pub fn begin_interval(&mut self) {
        let strata = self.current.iter_mut().flat_map(|set| &mut set.strata);
        strata.for_each(|stratum| stratum.reported = None);
    }
}
