//! The variance that the next interval is priced for, when every rank's summary is known.

/// Predicts one guide's S² from its past.
///
/// v = max(S², EWMA)·g·e^λ: EWMA remembers, g covers growth across the update interval, λ is
/// moved by how often the bound is missed.
///
/// # Source
/// STATISTICS §2; λ after Gibbs & Candès, *Adaptive Conformal Inference* (NeurIPS 2021).
/// Departure: `miss` is not the 0/1 outcome of the draw but its probability given the window's exact
/// variance and the size in force. The expectation is the same where the estimate is about normal,
/// and decisions then follow from the census alone: they repeat exactly from the seed however late
/// a directive reached a rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct CensusTracker {
    ewma: Option<Spread>,
    /// Spread in the last window.
    last: Spread,
    /// S² of this interval's first window.
    first: Option<f64>,
    /// v without its margins when this interval began.
    before: Option<f64>,
    growth: f64,
    lambda: f64,
}

/// Differences between ranks in a window.
#[derive(Clone, Copy, Debug, Default)]
struct Spread {
    /// S².
    variance: f64,
    /// Mean fourth power κ S⁴ of the ranks' deviations from the mean, with a normal population's κ where it is unknown.
    fourth: f64,
}

impl Spread {
    fn and(self, more: Self) -> Self {
        let mean = |old: f64, new: f64| 0.6 * old + 0.4 * new;
        Self { variance: mean(self.variance, more.variance), fourth: mean(self.fourth, more.fourth) }
    }
}

impl Default for CensusTracker {
    fn default() -> Self {
        Self { ewma: None, last: Spread::default(), first: None, before: None, growth: 1.0, lambda: 0.0 }
    }
}

impl CensusTracker {
    /// Takes a window's S², with the kurtosis where it is known, and the probability with which its sample missed the
    /// bound, `risk` (α) being the one that was allowed.
    pub fn observe(&mut self, (variance, kurtosis): (f64, Option<f64>), miss: f64, risk: f64) {
        self.lambda = (self.lambda + 0.08 * (miss - risk) / risk.sqrt()).clamp(-0.02, 1.5);
        let last = Spread { variance, fourth: kurtosis.unwrap_or(3.0) * variance * variance };
        if !variance.is_finite() {
            // A mean of 0 asks for every rank next, and predicts nothing for later windows.
            self.last = Spread { variance: f64::INFINITY, ..last };
            return;
        }
        if self.first.is_none() {
            self.first = Some(variance);
            if let Some(planned) = self.before {
                let growth = if variance == planned { 1.0 } else { variance / planned };
                self.growth = (0.7 * self.growth + 0.3 * growth).clamp(1.0, 1.5);
            }
        }
        self.ewma = Some(self.ewma.map_or(last, |ewma| ewma.and(last)));
        self.last = last;
    }

    /// Kurtosis of the ranks whose variance is priced, including outliers of windows that are remembered.
    pub fn kurtosis(&self) -> Option<f64> {
        let Spread { variance, fourth } = self.decisive();
        Some(fourth / (variance * variance)).filter(|kurtosis| kurtosis.is_finite())
    }

    /// The S² to price the next window for.
    pub fn expected(&self) -> f64 {
        self.planned() * self.growth * self.lambda.exp()
    }

    /// The S² to price the next interval for; ends this one.
    pub fn end_interval(&mut self) -> f64 {
        self.first = None;
        self.before = Some(self.planned()).filter(|planned| planned.is_finite());
        self.expected()
    }

    /// v without its margins.
    fn planned(&self) -> f64 {
        self.decisive().variance
    }

    fn decisive(&self) -> Spread {
        self.ewma.filter(|ewma| ewma.variance > self.last.variance).unwrap_or(self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_margins_follow_growth_and_misses() {
        let mut tracker = CensusTracker::default();
        for _ in 0..4 {
            tracker.observe((1.0, None), 0.1, 0.1);
        }
        assert_eq!(tracker.end_interval(), 1.0);
        // It doubles: g ← .7 + .3·2 = 1.3 at the first window only; EWMA stays below the last.
        tracker.observe((2.0, None), 0.1, 0.1);
        tracker.observe((2.0, None), 0.1, 0.1);
        assert!((tracker.end_interval() - 2.0 * 1.3).abs() < 1e-12);
        // It falls back, the bound having been missed for sure: EWMA and λ remember.
        tracker.observe((1.0, None), 1.0, 0.1);
        let ewma = 0.6 * (0.6 * (0.6 + 0.8) + 0.8) + 0.4;
        let lambda = 0.08 * 0.9 / 0.1f64.sqrt();
        let growth = 0.7 * 1.3 + 0.3 * 0.5;
        assert!((tracker.end_interval() / (ewma * lambda.exp() * growth) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn what_was_far_off_is_remembered_as_long_as_its_variance() {
        let mut tracker = CensusTracker::default();
        assert_eq!(tracker.kurtosis(), None);
        tracker.observe((4.0, Some(60.0)), 0.1, 0.1);
        assert_eq!(tracker.kurtosis(), Some(60.0));
        tracker.observe((0.25, Some(3.0)), 0.1, 0.1);
        let (variance, fourth) = (0.6 * 4.0 + 0.4 * 0.25, 0.6 * 60.0 * 16.0 + 0.4 * 3.0 * 0.0625);
        assert!((tracker.kurtosis().unwrap() * variance * variance / fourth - 1.0).abs() < 1e-12);
        tracker.observe((9.0, Some(5.0)), 0.1, 0.1);
        assert_eq!(tracker.kurtosis(), Some(5.0));
        tracker.observe((f64::NAN, None), 0.1, 0.1);
        assert_eq!(tracker.kurtosis(), None);
    }

    #[test]
    fn an_unbounded_window_passes() {
        let mut tracker = CensusTracker::default();
        tracker.observe((f64::NAN, None), 0.0, 0.1);
        assert_eq!(tracker.end_interval(), f64::INFINITY);
        tracker.observe((1.0, None), 0.0, 0.1);
        let v = tracker.end_interval();
        assert!((0.97..=1.0).contains(&v), "{v}");
    }
}
