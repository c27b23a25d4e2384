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
    ewma: Option<f64>,
    /// S² of the last window.
    last: f64,
    /// S² of this interval's first window.
    first: Option<f64>,
    /// v without its margins when this interval began.
    before: Option<f64>,
    growth: f64,
    lambda: f64,
}

impl Default for CensusTracker {
    fn default() -> Self {
        Self { ewma: None, last: 0.0, first: None, before: None, growth: 1.0, lambda: 0.0 }
    }
}

impl CensusTracker {
    /// Takes a window's S² and the probability with which its sample missed the bound, `risk` (α)
    /// being the one that was allowed.
    pub fn observe(&mut self, variance: f64, miss: f64, risk: f64) {
        self.lambda = (self.lambda + 0.08 * (miss - risk) / risk.sqrt()).clamp(-0.02, 1.5);
        if !variance.is_finite() {
            // A mean of 0 says that only everyone will do next, and nothing about later.
            self.last = f64::INFINITY;
            return;
        }
        if self.first.is_none() {
            self.first = Some(variance);
            if let Some(planned) = self.before {
                let growth = if variance == planned { 1.0 } else { variance / planned };
                self.growth = (0.7 * self.growth + 0.3 * growth).clamp(1.0, 1.5);
            }
        }
        self.ewma = Some(self.ewma.map_or(variance, |ewma| 0.6 * ewma + 0.4 * variance));
        self.last = variance;
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
        self.last.max(self.ewma.unwrap_or(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_margins_follow_growth_and_misses() {
        let mut tracker = CensusTracker::default();
        for _ in 0..4 {
            tracker.observe(1.0, 0.1, 0.1);
        }
        assert_eq!(tracker.end_interval(), 1.0);
        // It doubles: g ← .7 + .3·2 = 1.3 at the first window only; EWMA stays below the last.
        tracker.observe(2.0, 0.1, 0.1);
        tracker.observe(2.0, 0.1, 0.1);
        assert!((tracker.end_interval() - 2.0 * 1.3).abs() < 1e-12);
        // It falls back, the bound having been missed for sure: EWMA and λ remember.
        tracker.observe(1.0, 1.0, 0.1);
        let ewma = 0.6 * (0.6 * (0.6 + 0.8) + 0.8) + 0.4;
        let lambda = 0.08 * 0.9 / 0.1f64.sqrt();
        let growth = 0.7 * 1.3 + 0.3 * 0.5;
        assert!((tracker.end_interval() / (ewma * lambda.exp() * growth) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn an_unbounded_window_passes() {
        let mut tracker = CensusTracker::default();
        tracker.observe(f64::NAN, 0.0, 0.1);
        assert_eq!(tracker.end_interval(), f64::INFINITY);
        tracker.observe(1.0, 0.0, 0.1);
        let v = tracker.end_interval();
        assert!((0.97..=1.0).contains(&v), "{v}");
    }
}
