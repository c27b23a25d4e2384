//! Sums over ranks that merge without losing digits.

/// Totals and centred moments of (y, n) over ranks: one rank is one point.
///
/// A range of k windows counts every rank as k points (rank-windows), so ratio and variance
/// keep their per-window meaning.
///
/// # Source
/// Chan, Golub & LeVeque, *Amer. Statistician* 37 (1983), for pairwise merging of centred sums;
/// Pébay, SAND2008-6212, for the third and fourth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moments {
    /// Points: ranks, or rank-windows of a range. Ranks without observations count.
    pub ranks: u64,
    /// Σ n: observations.
    pub n: u64,
    /// Σ y, in the metric's unit.
    pub y: f64,
    /// Σ (y − ȳ)².
    pub cyy: f64,
    /// Σ (y − ȳ)(n − n̄).
    pub cyn: f64,
    /// Σ (n − n̄)².
    pub cnn: f64,
    /// Σ (y − ȳ)³.
    pub cy3: f64,
    /// Σ (y − ȳ)⁴.
    pub cy4: f64,
    /// Sum of the squares of the observations themselves.
    pub q: f64,
    /// Smallest observation; infinite without any.
    pub min: f64,
    /// Largest observation; minus infinity without any.
    pub max: f64,
}

impl Default for Moments {
    fn default() -> Self {
        Self {
            ranks: 0,
            n: 0,
            y: 0.0,
            cyy: 0.0,
            cyn: 0.0,
            cnn: 0.0,
            cy3: 0.0,
            cy4: 0.0,
            q: 0.0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
        }
    }
}

impl Moments {
    /// The moments of one rank with `n` observations of total `y` and sum of squares `q`.
    ///
    /// A rank without observations is a point at the origin whatever the other arguments say.
    pub fn of_rank(n: u64, y: f64, q: f64, min: f64, max: f64) -> Self {
        Self::of_rank_windows(1, n, y, q, min, max)
    }

    /// The moments of one rank whose `windows` windows were summed into one: as many points,
    /// each with an equal share, since how the total was spread is no longer known.
    pub fn of_rank_windows(windows: u64, n: u64, y: f64, q: f64, min: f64, max: f64) -> Self {
        let empty = Self { ranks: windows, ..Self::default() };
        if n == 0 { empty } else { Self { n, y, q, min, max, ..empty } }
    }

    /// ȳ: the total of an average rank; 0 without ranks.
    pub fn mean_y(&self) -> f64 {
        if self.ranks == 0 { 0.0 } else { self.y / self.ranks as f64 }
    }

    /// N̄: the observations of an average rank; 0 without ranks.
    pub fn mean_n(&self) -> f64 {
        if self.ranks == 0 { 0.0 } else { self.n as f64 / self.ranks as f64 }
    }

    /// Share of the ranks that have observations, in (0, 1]: of ranks with as many each, if their n vary as these do,
    /// (Σn)² / (M Σn²). 1 without observations: no rank can be missed.
    pub fn observing(&self) -> f64 {
        if self.n == 0 {
            return 1.0;
        }
        // M Σ(n − n̄)² / (Σn)², the squared cv of n.
        let vary = self.cnn * self.ranks as f64 / (self.n as f64).powi(2);
        1.0 / (1.0 + vary)
    }

    /// Adds the points of `other`.
    pub fn merge(&mut self, other: &Self) {
        if other.ranks == 0 {
            return;
        }
        if self.ranks == 0 {
            *self = *other;
            return;
        }
        let (a, b) = (self.ranks as f64, other.ranks as f64);
        let all = a + b;
        let dy = other.mean_y() - self.mean_y();
        let dn = other.mean_n() - self.mean_n();
        let share = a * b / all;
        self.cy4 += other.cy4
            + dy.powi(4) * share * (a * a - a * b + b * b) / (all * all)
            + 6.0 * dy * dy * (a * a * other.cyy + b * b * self.cyy) / (all * all)
            + 4.0 * dy * (a * other.cy3 - b * self.cy3) / all;
        self.cy3 +=
            other.cy3 + dy.powi(3) * share * (a - b) / all + 3.0 * dy * (a * other.cyy - b * self.cyy) / all;
        self.cyy += other.cyy + dy * dy * share;
        self.cyn += other.cyn + dy * dn * share;
        self.cnn += other.cnn + dn * dn * share;
        self.ranks = self.ranks.saturating_add(other.ranks);
        self.n = self.n.saturating_add(other.n);
        self.y += other.y;
        self.q += other.q;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// These moments with the points of `other` added.
    pub fn merged(mut self, other: &Self) -> Self {
        self.merge(other);
        self
    }

    /// R = Σy/Σn, in the metric's unit per observation; `None` without observations.
    pub fn ratio(&self) -> Option<f64> {
        (self.n > 0).then(|| self.y / self.n as f64)
    }

    /// Σ (e_i − ē)² of the residuals e_i = y_i − `ratio`·n_i, in the metric's unit squared.
    ///
    /// For the moments' own ratio ē is 0; a stratum keeps its own ē when `ratio` is its group's.
    pub fn residual_squares(&self, ratio: f64) -> f64 {
        let sum = self.cyy - 2.0 * ratio * self.cyn + ratio * ratio * self.cnn;
        // What is left of equal numbers may be a rounding error below zero.
        sum.max(0.0)
    }

    /// s² of the residuals about `ratio` with divisor M − 1, in the metric's unit squared; 0 for
    /// fewer than two points.
    ///
    /// With its own ratio this is s_r² of equation (7) of AMPL 2008.
    pub fn residual_variance_about(&self, ratio: f64) -> f64 {
        if self.ranks < 2 { 0.0 } else { self.residual_squares(ratio) / (self.ranks - 1) as f64 }
    }

    /// S² = Σ z_i²/(M−1), without a unit.
    ///
    /// 0 without observations or residuals; infinite when residuals surround a mean of 0, which no
    /// relative bound can hold.
    ///
    /// # Source
    /// Cochran, *Sampling Techniques*, 3rd ed. (1977), §6.3 (ratio estimates).
    pub fn residual_variance(&self) -> f64 {
        let Some(ratio) = self.ratio() else {
            return 0.0;
        };
        relative(self.residual_variance_about(ratio), self.mean_n() * ratio)
    }

    /// Kurtosis of the ranks' totals (3 for a normal population); `None` when they do not vary.
    ///
    /// Equal to the kurtosis of the residuals where every rank makes as many observations, as for
    /// event `"*"`; an approximation otherwise.
    pub fn kurtosis(&self) -> Option<f64> {
        let kurtosis = self.cy4 * self.ranks as f64 / (self.cyy * self.cyy);
        (self.cyy > 0.0 && kurtosis.is_finite()).then_some(kurtosis)
    }
}

/// `variance`/`scale`², where nothing over nothing is nothing.
pub(crate) fn relative(variance: f64, scale: f64) -> f64 {
    if variance == 0.0 { 0.0 } else { variance / (scale * scale) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank(n: u64, y: f64) -> Moments {
        Moments::of_rank(n, y, y * y, y, y)
    }

    fn all(points: &[(u64, f64)]) -> Moments {
        points.iter().fold(Moments::default(), |sum, &(n, y)| sum.merged(&rank(n, y)))
    }

    #[test]
    fn moments_match_the_definition() {
        let points = [(1, 2.0), (3, 5.0), (2, 7.0), (0, 0.0), (5, 9.0)];
        let moments = all(&points);
        let m = points.len() as f64;
        let ratio = 23.0 / 11.0;
        assert_eq!(moments.ratio(), Some(ratio));
        let squares: f64 = points.iter().map(|&(n, y)| (y - ratio * n as f64).powi(2)).sum();
        assert!((moments.residual_variance_about(ratio) - squares / (m - 1.0)).abs() < 1e-12);
        let scale = 11.0 / m * ratio;
        assert!((moments.residual_variance() - squares / (m - 1.0) / scale / scale).abs() < 1e-12);
        let mean = 23.0 / m;
        let central = |power: i32| points.iter().map(|&(_, y)| (y - mean).powi(power)).sum::<f64>();
        assert!((moments.cy3 - central(3)).abs() < 1e-9);
        assert!((moments.cy4 - central(4)).abs() < 1e-9);
        assert!((moments.kurtosis().unwrap() - central(4) * m / central(2).powi(2)).abs() < 1e-12);
        assert_eq!((moments.min, moments.max), (2.0, 9.0));
    }

    #[test]
    fn empty_and_zero_populations_are_defined() {
        assert_eq!(Moments::default().ratio(), None);
        assert_eq!(Moments::default().residual_variance(), 0.0);
        assert_eq!(all(&[(0, 3.0), (0, 1.0)]).ratio(), None);
        assert_eq!(all(&[(0, 3.0), (0, 1.0)]).y, 0.0);
        assert_eq!(all(&[(1, 0.0), (1, 0.0)]).residual_variance(), 0.0);
        assert_eq!(all(&[(1, -1.0), (1, 1.0)]).residual_variance(), f64::INFINITY);
        assert_eq!(all(&[(1, 4.0), (1, 4.0)]).kurtosis(), None);
    }

    #[test]
    fn small_differences_between_large_values_survive() {
        // Raw Σy² − (Σy)²/M of these loses every digit.
        let moments = all(&[(1, 1e9), (1, 1e9 + 1.0), (1, 1e9 + 2.0)]);
        assert!((moments.residual_variance_about(1e9 + 1.0) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_range_counts_every_window() {
        let range = Moments::of_rank_windows(4, 8, 20.0, 60.0, 1.0, 4.0);
        assert_eq!((range.ranks, range.n, range.y), (4, 8, 20.0));
        assert_eq!((range.mean_n(), range.ratio()), (2.0, Some(2.5)));
    }
}
