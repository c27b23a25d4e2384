//! One guide metric of a group: its past, and how many ranks it asks for.

use ampl_core::message::MetricMoments;
use ampl_core::stats::Moments;
use ampl_core::stats::observers::observed;
use ampl_core::stats::outliers::{CoverageTarget, with_far};
use ampl_core::stats::quantile::{normal_outside, normal_two_sided, student_from_normal};
use ampl_core::stats::sizing::{Stratum, ampl_2008, mean_variance, neyman};

use super::bound::{Bound, GroupMean};
use super::census::CensusTracker;
use super::sampled::SampledTracker;

/// Ranks to draw from, and pinned ranks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ranks {
    pub others: u64,
    pub pinned: u64,
}

impl Ranks {
    pub fn all(self) -> u64 {
        self.others + self.pinned
    }

    /// Variance of the group's mean with `drawn` of the others, whose variance is `variance`.
    pub fn mean_variance(self, variance: f64, drawn: f64) -> f64 {
        mean_variance(Stratum { ranks: self.others, variance }, drawn, self.all())
    }
}

/// Reason for a size: the guide, and the values that it was priced with.
#[derive(Clone, Debug)]
pub(super) struct Reason {
    /// The metric's name.
    pub guide: String,
    /// The guide's event.
    pub event: String,
    /// The group's mean when it was decided.
    pub mean: f64,
    /// S² that was priced, in the unit of `error` squared.
    pub variance: f64,
    /// Kurtosis of the ranks' totals; `None` where it is not used.
    pub kurtosis: Option<f64>,
    /// The bound asked for.
    pub error: f64,
    pub quantile: f64,
}

#[derive(Clone, Debug)]
pub(super) struct Guide {
    pub metric: usize,
    pub name: String,
    pub event: String,
    pub optional: bool,
    pub bound: Bound,
    pub tracker: Tracker,
    pub mean: Option<GroupMean>,
    /// Smallest share of the ranks that observed in a window of this interval.
    pub observing: Option<f64>,
    /// Fewest of the other ranks among which is one that observes.
    pub least: u64,
    /// Ranks beside the pinned ones that it asked for last; `None` before it saw an observation.
    pub asked: Option<(u64, Reason)>,
}

#[derive(Clone, Debug)]
pub(super) enum Tracker {
    Census(CensusTracker),
    Sampled(SampledTracker),
    /// The interval's totals of pinned and of drawn ranks.
    Ampl2008(Moments, Moments),
}

impl Guide {
    /// `true` if it is the guide of `reason`.
    pub fn is(&self, reason: &Reason) -> bool {
        (&self.name, &self.event) == (&reason.guide, &reason.event)
    }

    /// Takes a window; `of_strata` is the variance of the group's mean under samples of strata, if there are any.
    /// Returns the group's mean and the probability that its bound was missed, where every rank's summary is known.
    pub fn observe(
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
                tracker.observe((variance, drawn.kurtosis()), miss, 1.0 - self.bound.confidence);
                self.mean = Some(mean);
                self.see(drawn, pinned);
                return Some((mean, miss));
            }
            Tracker::Sampled(tracker) => {
                let (drawn, pinned) = (&drawn.kept, &pinned.kept);
                let mean = GroupMean::new(pinned, drawn, ranks.others as f64)?;
                let variance = self.bound.variance(drawn, mean);
                let kurtosis = drawn.kurtosis().unwrap_or(3.0);
                tracker.observe(variance, kurtosis, drawn.ranks);
                self.mean = Some(mean);
                self.see(drawn, pinned);
            }
            Tracker::Ampl2008(taken, sampled) => {
                taken.merge(&pinned.interval);
                sampled.merge(&drawn.interval);
            }
        }
        None
    }

    /// Takes the share of ranks that observed in a window: pinned ranks that did are in every sample.
    fn see(&mut self, drawn: &Moments, pinned: &Moments) {
        let share = if pinned.n > 0 { 1.0 } else { drawn.observing() };
        self.observing = Some(self.observing.map_or(share, |least| least.min(share)));
    }

    /// Fewest of the other ranks among which is one that observes, as it was in this interval.
    fn least(&self, ranks: Ranks, coins: bool) -> u64 {
        self.observing.map_or(self.least, |share| observed(ranks.others, share, self.bound.unseen(), coins))
    }

    /// Computes the size again within an interval, from its windows so far, where every rank's summary is known.
    pub fn amend(&mut self, ranks: Ranks, coins: bool) {
        self.least = self.least(ranks, coins);
        if let (Tracker::Census(tracker), Some(mean)) = (&self.tracker, self.mean) {
            let quantile = normal_two_sided(self.bound.confidence);
            let reason = self.reason(mean, tracker.expected(), tracker.kurtosis(), quantile);
            self.asked = Some((self.size(ranks, &reason, 1.0), reason));
        }
    }

    /// Computes the size for the next interval, unless this one had no observation.
    pub fn end_interval(&mut self, ranks: Ranks, correlation: f64, coins: bool) {
        self.least = self.least(ranks, coins);
        self.observing = None;
        let confidence = self.bound.confidence;
        let (reason, asked) = match &mut self.tracker {
            Tracker::Census(tracker) => {
                let Some(mean) = self.mean.take() else { return };
                let (variance, kurtosis) = (tracker.end_interval(), tracker.kurtosis());
                (self.reason(mean, variance, kurtosis, normal_two_sided(confidence)), None)
            }
            Tracker::Sampled(tracker) => {
                let pooled = tracker.end_interval(correlation);
                let (Some(mean), Some((variance, freedom))) = (self.mean.take(), pooled) else {
                    return;
                };
                let kurtosis = tracker.kurtosis();
                let t = student_from_normal(normal_two_sided(confidence), freedom);
                (self.reason(mean, variance, kurtosis, t), None)
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
                (self.reason(mean, self.bound.variance(&sampled, mean), None, z), Some(asked))
            }
        };
        let asked = asked.unwrap_or_else(|| self.size(ranks, &reason, 1.0));
        self.asked = Some((asked, reason));
    }

    /// Ranks beside the pinned ones that a bound `wider` times as wide takes.
    pub fn size(&self, ranks: Ranks, reason: &Reason, wider: f64) -> u64 {
        let stratum = Stratum { ranks: ranks.others, variance: reason.variance };
        let error = wider * reason.error;
        let size = neyman(&[stratum], ranks.all(), (error / reason.quantile).powi(2))[0];
        match reason.kurtosis {
            Some(kurtosis) => {
                let confidence = self.bound.confidence;
                let promise = CoverageTarget { population: ranks.all(), error, confidence, others: 0.0 };
                with_far(size, (stratum, kurtosis), promise)
            }
            None => size,
        }
    }

    fn reason(&self, mean: GroupMean, variance: f64, kurtosis: Option<f64>, quantile: f64) -> Reason {
        Reason {
            guide: self.name.clone(),
            event: self.event.clone(),
            mean: mean.ratio,
            variance,
            kurtosis,
            error: self.bound.error(),
            quantile,
        }
    }
}
