//! One stratum's size: what its guides ask for, and the floors.

use ampl_core::config::{Mechanism, Sizing, Summaries, Target};
use ampl_core::message::{CellSums, CensusWindow, MetricMoments, Stratifications, StratifiedGroup};
use ampl_core::plan::Plan;
use ampl_core::stats::Moments;
use ampl_core::stats::observers::part_of;
use ampl_core::stats::sizing::{FLOOR, FLOOR_AMPL_2008};

use super::bound::Bound;
use super::budget::{Cost, Pressure};
use super::census::CensusTracker;
use super::guide::{Guide, Ranks, Reason, Tracker};
use super::sampled::SampledTracker;
use super::stratification::{Ask, Set, Stratification, Terms};

/// Share by which a size has to change within an interval to be worth a directive.
const WORTH: f64 = 0.25;

/// One stratum of one group: its pinned ranks are taken in full, the others are drawn.
#[derive(Clone, Debug)]
pub(super) struct StratumState {
    pub group: u16,
    pub name: String,
    /// m in force, pinned ranks included; expected under `global`.
    pub size: u64,
    /// Reason for the size; `None` for static sizes and before an observation.
    pub reason: Option<Reason>,
    /// Fewest ranks that reported a window of this interval.
    pub reported: Option<u64>,
    /// `true` if the size is less than the bounds ask for.
    pub limited: bool,
    mechanism: Mechanism,
    ranks: Ranks,
    /// Ranks to draw, where the group has a fixed size.
    fixed: Option<u64>,
    /// Fewest ranks kept.
    floor: u64,
    /// `true` if pinned ranks count towards the floor: they do where the variance is known anyway, but an unknown one
    /// must be estimated from the drawn ranks.
    floor_counts_pinned: bool,
    guides: Vec<Guide>,
    /// `true` if decisions are retrospective, and ranks report the bytes that they have buffered.
    buffered: bool,
    /// Stratification of the group, where it is to be divided.
    division: Option<Stratification>,
    /// Rank-windows kept in this interval, and their bytes.
    spent: Spent,
    /// Cost of a rank-window when ranks were last kept.
    cost: Option<Cost>,
}

/// Rank-windows kept, and bytes that it took.
#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    drawn: (u64, u64),
    pinned: (u64, u64),
}

impl StratumState {
    pub fn new(plan: &Plan, index: usize, buffered: bool, divisions: Option<&Stratifications>) -> Self {
        let (sampling, group) = (&plan.config.sampling, &plan.groups[index]);
        let pinned = group.pinned.len();
        let ranks = Ranks { others: group.members.len() - pinned, pinned };
        let fixed = match group.target {
            Target::Static { ranks: size } => Some(u64::from(size).clamp(pinned, ranks.all()) - pinned),
            Target::Bound { .. } => None,
        };
        let size = pinned + fixed.unwrap_or(ranks.others);
        let census = sampling.summaries == Summaries::Census;
        let tracker = match sampling.sizing {
            _ if census => Tracker::Census(CensusTracker::default()),
            Sizing::Neyman => Tracker::Sampled(SampledTracker::default()),
            Sizing::Ampl2008 => Tracker::Ampl2008(Moments::default(), Moments::default()),
        };
        let floor = match (sampling.floor, &tracker) {
            (Some(floor), _) => u64::from(floor),
            (None, Tracker::Ampl2008(..)) => FLOOR_AMPL_2008,
            (None, _) => FLOOR,
        };
        let guides = plan.metrics.iter().enumerate().filter(|(_, metric)| metric.guide);
        let guides =
            guides.filter_map(|(metric, guide)| Some((metric, guide, Bound::of(plan.target(group, guide))?)));
        let guides = guides.map(|(metric, guide, bound)| Guide {
            metric,
            name: guide.name().into_owned(),
            event: guide.event.name().into_owned(),
            optional: guide.optional,
            bound,
            tracker: tracker.clone(),
            mean: None,
            observing: None,
            least: 0,
            asked: None,
        });
        let guides: Vec<Guide> = guides.collect();
        let bounds: Vec<Bound> = guides.iter().map(|guide| guide.bound).collect();
        Self {
            group: index as u16,
            division: Stratification::new(plan, divisions, (index, floor), &bounds),
            name: group.name.clone(),
            size,
            reason: None,
            reported: None,
            limited: false,
            buffered,
            spent: Spent::default(),
            cost: None,
            mechanism: sampling.update_mechanism,
            ranks,
            fixed,
            floor,
            floor_counts_pinned: census,
            guides,
        }
    }

    /// The guide that decides until one is seen to ask for more; none for a static size, or where none is sure
    /// to be measured.
    pub fn first_guide(&self) -> Option<String> {
        self.guides.iter().find(|guide| !guide.optional).map(|guide| guide.name.clone())
    }

    /// M of the stratum.
    pub fn population(&self) -> u64 {
        self.ranks.all()
    }

    /// Inclusion probability of a rank that is not pinned.
    pub fn probability(&self) -> f64 {
        match self.ranks.others {
            0 => 1.0,
            others => (self.size - self.ranks.pinned) as f64 / others as f64,
        }
    }

    /// The strata that it is divided into, while there are several.
    pub fn strata(&self) -> Option<&Set> {
        self.division.as_ref()?.in_force()
    }

    /// Stratum number of the group, while there is only one.
    pub fn single(&self) -> u16 {
        self.division.as_ref().map_or(0, Stratification::single)
    }

    /// The guide that the size is due to.
    pub fn leading(&self) -> Option<usize> {
        let reason = self.reason.as_ref()?;
        self.guides.iter().position(|guide| guide.is(reason))
    }

    /// A directive's part for the strata of the group.
    pub fn divided(&self) -> Option<StratifiedGroup> {
        self.division.as_ref()?.divided()
    }

    /// Begins an interval: what was reported is forgotten.
    pub fn begin_interval(&mut self) {
        self.reported = None;
        if let Some(division) = &mut self.division {
            division.begin_interval();
        }
    }

    /// Conditions on sizes of strata under that pressure.
    fn terms(&self, pressure: Pressure) -> Terms {
        let floor = (self.least_drawn() as f64 * pressure.floor) as u64;
        Terms { population: self.ranks.all(), floor, coins: self.coins() }
    }

    /// Fewest ranks that are drawn, where a bound asks.
    fn least_drawn(&self) -> u64 {
        // Two drawn ranks at least, or the sample's own error would be unknown.
        match self.floor_counts_pinned {
            true => self.floor.saturating_sub(self.ranks.pinned).max(2),
            false => self.floor,
        }
    }

    /// Fewest ranks that are drawn so that some rank observes every guide.
    fn observed(&self) -> u64 {
        self.guides.iter().map(|guide| guide.least).max().unwrap_or(0)
    }

    /// Fewest that are drawn while the group is one stratum.
    fn least_of_one(&self) -> u64 {
        self.least_drawn().max(self.observed())
    }

    fn coins(&self) -> bool {
        self.mechanism == Mechanism::Global
    }

    /// Sizes of the strata in force under that pressure, and the guide that asks for the most.
    fn sizes(&self, pressure: Pressure) -> Option<(Vec<u64>, Option<usize>)> {
        let set = self.strata()?;
        let asks = self.guides.iter().enumerate().filter_map(|(guide, state)| {
            let (_, reason) = state.asked.as_ref()?;
            let (error, confidence) = (pressure.wider * reason.error, state.bound.confidence);
            Some(Ask { guide, error, confidence, allowed: (error / reason.quantile).powi(2) })
        });
        let asks: Vec<Ask> = asks.collect();
        let (mut sizes, most) = set.allocate(&asks, self.terms(pressure));
        let observed = self.observed();
        for (size, stratum) in sizes.iter_mut().zip(&set.strata) {
            *size = (*size).max(part_of(stratum.ranks, observed, self.ranks.others));
        }
        if pressure.floor < 1.0 {
            sizes.iter_mut().for_each(|size| *size = (*size as f64 * pressure.floor) as u64);
        }
        Some((sizes, most))
    }

    /// Number of drawn ranks that an estimate rests on.
    fn drawn(&self) -> f64 {
        let drawn = (self.size - self.ranks.pinned) as f64;
        match self.mechanism {
            // Short of everyone, a sample of random size is worth one rank less (STATISTICS §2).
            Mechanism::Global if self.size < self.population() => (drawn - 1.0).max(0.0),
            _ => drawn,
        }
    }

    /// The error bound that the size attains if the variance is as priced.
    pub fn attained(&self, reason: &Reason) -> Option<f64> {
        let variance = match (self.strata(), self.leading()) {
            (Some(set), Some(guide)) => set.priced(guide, self.terms(Pressure::NONE)),
            _ => self.ranks.mean_variance(reason.variance, self.drawn()),
        };
        let half_width = reason.quantile * variance.sqrt();
        half_width.is_finite().then_some(half_width)
    }

    /// Takes a window.
    pub fn observe(&mut self, window: &CensusWindow) {
        let cell = |pinned| window.partial.cell(self.group, 0, pinned);
        let cells = (cell(false), cell(true));
        let count = |cell: Option<&CellSums>| cell.map_or(0, |cell| cell.reported);
        let reported = count(cells.0).saturating_add(count(cells.1)) / window.windows();
        self.reported = Some(self.reported.map_or(reported, |fewest| fewest.min(reported)));
        for (cell, spent) in [(cells.0, &mut self.spent.drawn), (cells.1, &mut self.spent.pinned)] {
            let (kept, bytes) = cell.map_or((0, 0), |cell| match self.buffered {
                true => (cell.reported, cell.bytes),
                false => (cell.kept, cell.bytes),
            });
            *spent = (spent.0.saturating_add(kept), spent.1.saturating_add(bytes));
        }
        let (ranks, drawn, terms) = (self.ranks, self.drawn(), self.terms(Pressure::NONE));
        let division = &mut self.division;
        for (index, guide) in self.guides.iter_mut().enumerate() {
            let metric = |cell: Option<&CellSums>| -> MetricMoments {
                let slot = cell.and_then(|cell| cell.metrics.get(guide.metric));
                slot.copied().unwrap_or_default()
            };
            let bound = guide.bound;
            let of_strata = |mean| {
                division.as_ref().and_then(|of| of.mean_variance(window, index, (&bound, mean), terms))
            };
            let seen = guide.observe(ranks, drawn, (&metric(cells.0), &metric(cells.1)), of_strata);
            if let (Some(division), Some((mean, miss))) = (&mut *division, seen) {
                division.observe(window, index, (&bound, mean), (miss, 1.0 - bound.confidence));
            }
        }
        if let Some(division) = division {
            division.end_window(window);
        }
    }

    /// Decides the size for the interval `next`.
    pub fn end_interval(&mut self, next: u64) {
        self.limited = false;
        self.take_cost();
        // Under `global` the same rank's next coin may fall the same way; under `subset` it does.
        let correlation = match self.mechanism {
            Mechanism::Subset => 1.0,
            Mechanism::Global => self.probability(),
        };
        let coins = self.coins();
        for guide in &mut self.guides {
            guide.end_interval(self.ranks, correlation, coins);
        }
        let few = self.under_one(Pressure::NONE) <= self.least_of_one();
        if let Some(division) = &mut self.division {
            division.end_interval(next, few);
        }
        let sizes = self.wanted();
        self.draw(&sizes);
    }

    /// Decides the size again within an interval, from its windows so far; `true` if it has changed enough to be sent.
    pub fn amend(&mut self) -> bool {
        if self.buffered {
            return false;
        }
        let coins = self.coins();
        self.guides.iter_mut().for_each(|guide| guide.amend(self.ranks, coins));
        self.division.iter_mut().for_each(Stratification::amend);
        let sizes = self.wanted();
        let in_force = match self.strata() {
            Some(set) => set.strata.iter().map(|stratum| stratum.size).collect(),
            None => vec![self.size - self.ranks.pinned],
        };
        let differs =
            |(&one, &other): (&u64, &u64)| one.abs_diff(other) as f64 > WORTH * one.min(other) as f64;
        let worth = sizes.iter().zip(&in_force).any(differs);
        if worth {
            self.draw(&sizes);
        }
        worth
    }

    /// Ranks that are asked for now, of every stratum in force, or of the group; sets the reason.
    fn wanted(&mut self) -> Vec<u64> {
        let asked = self.guides.iter().filter_map(|guide| guide.asked.as_ref());
        // Every guide's bound must hold; the first of equals is named.
        let most = asked.reduce(|most, next| if next.0 > most.0 { next } else { most });
        if let Some((_, reason)) = most {
            self.reason = Some(reason.clone());
        }
        let Some((sizes, most)) = self.sizes(Pressure::NONE) else {
            return vec![self.under_one(Pressure::NONE)];
        };
        let asked = most.and_then(|guide| self.guides[guide].asked.as_ref());
        self.reason = asked.map(|(_, reason)| reason.clone()).or(self.reason.take());
        sizes
    }

    /// Sets the sizes of the strata in force, or of the group.
    fn draw(&mut self, sizes: &[u64]) {
        if self.strata().is_some() {
            self.division.iter_mut().for_each(|division| division.resize(sizes));
        }
        self.size = self.ranks.pinned + sizes.iter().sum::<u64>();
    }

    /// Ranks, without pinned ones, that the next interval draws under that pressure; as long as nothing was observed,
    /// all of them, or a fixed size.
    pub fn under(&self, pressure: Pressure) -> u64 {
        self.sizes(pressure).map_or_else(|| self.under_one(pressure), |(sizes, _)| sizes.iter().sum())
    }

    /// The same as long as the group is one stratum.
    fn under_one(&self, pressure: Pressure) -> u64 {
        let others = self.ranks.others;
        let floor = self.least_of_one();
        let extra = u64::from(self.coins());
        let asked = self.guides.iter().filter_map(|guide| {
            let (asked, reason) = guide.asked.as_ref()?;
            Some(match pressure.wider {
                1.0 => *asked,
                wider => guide.size(self.ranks, reason, wider),
            })
        });
        let wanted = match (asked.max(), self.fixed) {
            (Some(asked), _) => asked.max(floor) + extra,
            // The error of a fixed size grows like that of any other.
            (None, Some(fixed)) => ((fixed as f64 / pressure.wider.powi(2)) as u64).max(fixed.min(floor)),
            (None, None) if pressure == Pressure::NONE => others,
            (None, None) => floor + extra,
        };
        // What is below the floor is less by a share of it.
        match pressure.floor {
            1.0 => wanted.min(others),
            share => (wanted.min(others) as f64 * share) as u64,
        }
    }

    /// Keeps no more than what that pressure leaves.
    pub fn limit(&mut self, pressure: Pressure) {
        let size = self.ranks.pinned + self.under(pressure);
        self.limited = size < self.size;
        self.size = size.min(self.size);
        if let Some((sizes, _)) = self.sizes(pressure).filter(|_| self.limited) {
            self.division.iter_mut().for_each(|division| division.resize(&sizes));
        }
    }

    /// Ranks that are taken anyway.
    pub fn pinned(&self) -> u64 {
        self.ranks.pinned
    }

    /// Cost of a rank-window; `None` before any was kept.
    pub fn cost(&self) -> Option<Cost> {
        self.cost
    }

    /// Takes the cost of keeping in the interval that ends; where no rank was kept, the cost stays.
    fn take_cost(&mut self) {
        let Spent { drawn, pinned } = std::mem::take(&mut self.spent);
        let each = |(kept, bytes): (u64, u64)| (kept > 0).then(|| bytes as f64 / kept as f64);
        let before = self.cost.unwrap_or_default();
        if let (None, None) = (each(drawn), each(pinned)) {
            return;
        }
        self.cost = Some(Cost {
            drawn: each(drawn).unwrap_or(before.drawn),
            pinned: each(pinned).unwrap_or(before.pinned),
        });
    }
}
