//! One stratum's size: what its guides ask for, and the floors.

use ampl_core::config::{Mechanism, Sizing, Summaries, Target};
use ampl_core::message::{Cell, CensusWindow, Divided, Divisions, MetricMoments};
use ampl_core::plan::Plan;
use ampl_core::stats::Moments;
use ampl_core::stats::quantile::{normal_outside, normal_two_sided, student_from_normal};
use ampl_core::stats::sizing::{FLOOR, FLOOR_AMPL_2008, Stratum, ampl_2008, mean_variance, neyman};

use super::bound::{Bound, GroupMean};
use super::budget::{Cost, Pressure};
use super::census::CensusTracker;
use super::division::{Ask, Division, Set, Terms};
use super::sampled::SampledTracker;

/// One stratum of one group: its pinned ranks are taken in full, the others are drawn.
#[derive(Clone, Debug)]
pub(super) struct StratumState {
    pub group: u16,
    pub name: String,
    /// m in force, pinned ranks included; expected under `global`.
    pub size: u64,
    /// Why; none for static sizes and before an observation.
    pub reason: Option<Reason>,
    /// Fewest ranks that reported a window of this interval.
    pub reported: Option<u64>,
    /// Whether the size is less than what is asked for.
    pub limited: bool,
    mechanism: Mechanism,
    ranks: Ranks,
    /// Ranks to draw, where that is what the group says.
    fixed: Option<u64>,
    /// Fewest ranks kept, and whether pinned ones count: they do where the variance is known
    /// anyway, but an unknown one must be estimated from the drawn ranks.
    floor: u64,
    floor_counts_pinned: bool,
    guides: Vec<Guide>,
    /// Whether windows are decided when they are over, and what ranks report is what they have buffered.
    buffered: bool,
    /// How the group is divided, where it is to be.
    division: Option<Division>,
    /// What keeping takes, summed over this interval, and what it took when ranks were last kept.
    spent: Spent,
    cost: Option<Cost>,
}

/// Rank-windows kept, and bytes that it took.
#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    drawn: (u64, u64),
    pinned: (u64, u64),
}

/// How many ranks there are to draw from, and how many are taken anyway.
#[derive(Clone, Copy, Debug)]
struct Ranks {
    others: u64,
    pinned: u64,
}

impl Ranks {
    fn all(self) -> u64 {
        self.others + self.pinned
    }

    /// Variance of the group's mean with `drawn` of the others, whose variance is `variance`.
    fn mean_variance(self, variance: f64, drawn: f64) -> f64 {
        mean_variance(Stratum { ranks: self.others, variance }, drawn, self.all())
    }
}

/// Why a size is what it is.
#[derive(Clone, Debug)]
pub(super) struct Reason {
    /// The metric's name.
    pub guide: String,
    /// Its event.
    pub event: String,
    /// The group's mean when it was decided.
    pub mean: f64,
    /// S² that was priced, in the unit of `error` squared.
    pub variance: f64,
    /// The bound asked for.
    pub error: f64,
    quantile: f64,
}

#[derive(Clone, Debug)]
struct Guide {
    metric: usize,
    name: String,
    event: String,
    optional: bool,
    bound: Bound,
    tracker: Tracker,
    mean: Option<GroupMean>,
    /// How many of the other ranks it asked for last; none before it saw an observation.
    asked: Option<(u64, Reason)>,
}

#[derive(Clone, Debug)]
enum Tracker {
    Census(CensusTracker),
    Sampled(SampledTracker),
    /// The interval's totals of pinned and of drawn ranks.
    Ampl2008(Moments, Moments),
}

impl StratumState {
    pub fn new(plan: &Plan, index: usize, buffered: bool, divisions: Option<&Divisions>) -> Self {
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
            asked: None,
        });
        let guides: Vec<Guide> = guides.collect();
        let bounds: Vec<Bound> = guides.iter().map(|guide| guide.bound).collect();
        Self {
            group: index as u16,
            division: Division::new(plan, divisions, (index, floor), &bounds),
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

    /// Its number among the strata that the group has had, while it is one.
    pub fn single(&self) -> u16 {
        self.division.as_ref().map_or(0, Division::single)
    }

    /// The guide that the size is due to.
    pub fn leading(&self) -> Option<usize> {
        let reason = self.reason.as_ref()?;
        self.guides.iter().position(|guide| guide.is(reason))
    }

    /// What a directive says of how the group is divided.
    pub fn divided(&self) -> Option<Divided> {
        self.division.as_ref()?.divided()
    }

    /// Begins an interval: what was reported is forgotten.
    pub fn begin_interval(&mut self) {
        self.reported = None;
        if let Some(division) = &mut self.division {
            division.begin_interval();
        }
    }

    /// How sizes of strata are limited under that pressure.
    fn terms(&self, pressure: Pressure) -> Terms {
        let floor = (self.least_drawn() as f64 * pressure.floor) as u64;
        Terms { population: self.ranks.all(), floor, coins: self.mechanism == Mechanism::Global }
    }

    /// Fewest ranks that are drawn, where a bound asks.
    fn least_drawn(&self) -> u64 {
        // Two drawn ranks at least, or the sample could not tell its own error.
        match self.floor_counts_pinned {
            true => self.floor.saturating_sub(self.ranks.pinned).max(2),
            false => self.floor,
        }
    }

    /// Sizes of the strata in force under that pressure, and the guide that asks for the most.
    fn sizes(&self, pressure: Pressure) -> Option<(Vec<u64>, Option<usize>)> {
        let set = self.strata()?;
        let asks = self.guides.iter().enumerate().filter_map(|(guide, state)| {
            let (_, reason) = state.asked.as_ref()?;
            Some(Ask { guide, allowed: (pressure.wider * reason.error / reason.quantile).powi(2) })
        });
        let asks: Vec<Ask> = asks.collect();
        let (mut sizes, most) = set.allocate(&asks, self.terms(pressure));
        if pressure.floor < 1.0 {
            sizes.iter_mut().for_each(|size| *size = (*size as f64 * pressure.floor) as u64);
        }
        Some((sizes, most))
    }

    /// How many drawn ranks an estimate rests on.
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
        let count = |cell: Option<&Cell>| cell.map_or(0, |cell| cell.reported);
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
            let metric = |cell: Option<&Cell>| -> MetricMoments {
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
        for guide in &mut self.guides {
            guide.end_interval(self.ranks, correlation);
        }
        let asked = self.guides.iter().filter_map(|guide| guide.asked.as_ref());
        // Every guide's bound must hold; the first of equals is named.
        let most = asked.reduce(|most, next| if next.0 > most.0 { next } else { most });
        if let Some((_, reason)) = most {
            self.reason = Some(reason.clone());
        }
        let few = self.under_one(Pressure::NONE) <= self.least_drawn();
        if let Some(division) = &mut self.division {
            division.end_interval(next, few);
        }
        if let Some((sizes, most)) = self.sizes(Pressure::NONE) {
            let asked = most.and_then(|guide| self.guides[guide].asked.as_ref());
            self.reason = asked.map(|(_, reason)| reason.clone()).or(self.reason.take());
            self.division.iter_mut().for_each(|division| division.resize(&sizes));
        }
        self.size = self.ranks.pinned + self.under(Pressure::NONE);
    }

    /// How many ranks that are not pinned the next interval draws under that pressure; as long as nothing was
    /// observed, all of them, or a fixed size.
    pub fn under(&self, pressure: Pressure) -> u64 {
        self.sizes(pressure).map_or_else(|| self.under_one(pressure), |(sizes, _)| sizes.iter().sum())
    }

    /// The same as long as the group is one stratum.
    fn under_one(&self, pressure: Pressure) -> u64 {
        let others = self.ranks.others;
        let floor = self.least_drawn();
        let extra = u64::from(self.mechanism == Mechanism::Global);
        let asked = self.guides.iter().filter_map(|guide| {
            let (asked, reason) = guide.asked.as_ref()?;
            Some(match pressure.wider {
                1.0 => *asked,
                wider => size(self.ranks, reason.variance, wider * reason.error, reason.quantile),
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

    /// What a rank-window takes; none before any was kept.
    pub fn cost(&self) -> Option<Cost> {
        self.cost
    }

    /// What keeping took in the interval that ends: where no rank was kept, what it took before.
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

impl Guide {
    /// Whether it is the one of `reason`.
    fn is(&self, reason: &Reason) -> bool {
        (&self.name, &self.event) == (&reason.guide, &reason.event)
    }

    /// Takes a window; `of_strata` is the variance of the group's mean under samples of strata, if there are any.
    /// Returns the group's mean and how likely its bound was missed, where every rank's summary is known.
    fn observe(
        &mut self,
        ranks: Ranks,
        in_force: f64,
        (drawn, pinned): (&MetricMoments, &MetricMoments),
        of_strata: impl Fn(GroupMean) -> Option<f64>,
    ) -> Option<(GroupMean, f64)> {
        match &mut self.tracker {
            Tracker::Census(tracker) => {
                let (drawn, pinned) = (&drawn.census, &pinned.census);
                let mean = GroupMean::new(pinned, drawn, drawn.ranks as f64)?;
                let variance = self.bound.variance(drawn, mean);
                let error = of_strata(mean).unwrap_or_else(|| ranks.mean_variance(variance, in_force)).sqrt();
                let miss = match error {
                    0.0 => 0.0,
                    _ if variance.is_finite() => normal_outside(self.bound.error() / error),
                    _ => 1.0,
                };
                tracker.observe(variance, miss, 1.0 - self.bound.confidence);
                self.mean = Some(mean);
                return Some((mean, miss));
            }
            Tracker::Sampled(tracker) => {
                let (drawn, pinned) = (&drawn.kept, &pinned.kept);
                let mean = GroupMean::new(pinned, drawn, ranks.others as f64)?;
                let variance = self.bound.variance(drawn, mean);
                let kurtosis = drawn.kurtosis().unwrap_or(3.0);
                tracker.observe(variance, kurtosis, drawn.ranks);
                self.mean = Some(mean);
            }
            Tracker::Ampl2008(taken, sampled) => {
                taken.merge(&pinned.interval);
                sampled.merge(&drawn.interval);
            }
        }
        None
    }

    /// Asks anew, unless the interval had no observation.
    fn end_interval(&mut self, ranks: Ranks, correlation: f64) {
        let confidence = self.bound.confidence;
        let error = self.bound.error();
        let (variance, quantile, mean, asked) = match &mut self.tracker {
            Tracker::Census(tracker) => {
                let Some(mean) = self.mean.take() else { return };
                let variance = tracker.end_interval();
                let z = normal_two_sided(confidence);
                (variance, z, mean, size(ranks, variance, error, z))
            }
            Tracker::Sampled(tracker) => {
                let pooled = tracker.end_interval(correlation);
                let (Some(mean), Some((variance, freedom))) = (self.mean.take(), pooled) else {
                    return;
                };
                let t = student_from_normal(normal_two_sided(confidence), freedom);
                (variance, t, mean, size(ranks, variance, error, t))
            }
            Tracker::Ampl2008(taken, sampled) => {
                let (taken, sampled) = (std::mem::take(taken), std::mem::take(sampled));
                let mean = GroupMean::new(&taken, &sampled, ranks.others as f64);
                let Some(mean) = mean else { return };
                let z = normal_two_sided(confidence);
                // The drawn ranks' part of the error, when others are taken in full.
                let share = ranks.others as f64 / ranks.all() as f64;
                let half_width = self.bound.half_width(mean) / share;
                let s_r2 = sampled.residual_variance_about(mean.ratio);
                let asked = ampl_2008(ranks.others, s_r2, mean.mean_n, half_width, z);
                (self.bound.variance(&sampled, mean), z, mean, asked)
            }
        };
        let reason = Reason {
            guide: self.name.clone(),
            event: self.event.clone(),
            mean: mean.ratio,
            variance,
            error,
            quantile,
        };
        self.asked = Some((asked, reason));
    }
}

/// The other ranks that `variance` takes for a half-width of `error`.
fn size(ranks: Ranks, variance: f64, error: f64, quantile: f64) -> u64 {
    let stratum = Stratum { ranks: ranks.others, variance };
    let allowed = (error / quantile).powi(2);
    neyman(&[stratum], ranks.all(), allowed)[0]
}
