//! Ranks of a group by where they stand in a window, in a space that does not depend on how many there are.
//!
//! Retrospective selection stratifies a window's ranks by the very values that it is to estimate. Ranks cannot
//! be listed, so they are counted in bins of their residual, with sums from which the variance within any run of
//! bins follows. Residuals are measured from an [`Origin`] that every rank knows beforehand, the mean of an
//! earlier window: any classification that ranks can make is a valid one, and the sums are enough to move them
//! to the window's own mean afterwards ([`Shift`]).
//!
//! # Source
//! STATISTICS §2. Departure: one pass over the window instead of two, since its mean need not be known first.

/// Bins reach this many error bounds to either side; what lies beyond is in the outermost ones.
const REACH: f64 = 1000.0;

/// Closer to the origin than this share of an error bound is on it: what rounding leaves of equal numbers must
/// not fall to both sides.
const NOTHING: f64 = 1e-9;

/// The bin of a residual that is `bounds` error bounds from the origin; bins are of equal width in its asinh.
///
/// NaN is in the last bin.
pub fn bin(bounds: f64, bins: usize) -> usize {
    let last = bins.saturating_sub(1);
    let bounds = if bounds.abs() < NOTHING { 0.0 } else { bounds };
    let place = (asinh(bounds) / asinh(REACH) + 1.0) / 2.0 * bins as f64;
    if place.is_nan() { last } else { (place as usize).min(last) }
}

/// Inverse hyperbolic sine.
///
/// The standard library's calls `hypot`, for which the linker takes glibc 2.35. Many clusters have 2.34.
fn asinh(value: f64) -> f64 {
    let (size, inverse) = (value.abs(), 1.0 / value.abs());
    (size + size / ((1.0 + inverse * inverse).sqrt() + inverse)).ln_1p().copysign(value)
}

/// Origin that residuals of a guide are measured from, and their unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Origin {
    /// R of an earlier window, in the guide's unit per observation.
    pub ratio: f64,
    /// N̄ of it: observations per rank, above 0.
    pub mean_n: f64,
    /// Divisor of a residual: N̄ R for a relative bound, N̄ for an absolute one. Not 0.
    pub unit: f64,
}

impl Origin {
    /// Point of a rank with `n` observations of total `y`.
    pub fn point(&self, n: u64, y: f64) -> Point {
        let n = n as f64;
        // Sums of squares of what a hostile program reports must stay numbers.
        let bounded = |value: f64| if value.is_nan() { 0.0 } else { value.clamp(-1e100, 1e100) };
        Point { z: bounded((y - self.ratio * n) / self.unit), v: bounded(n / self.mean_n - 1.0) }
    }

    /// Shift of residuals about this origin to those about the window's own mean `ratio`, in units of `unit`.
    pub fn shift(&self, ratio: f64, unit: f64) -> Shift {
        Shift { scale: self.unit / unit, offset: (self.ratio - ratio) * self.mean_n / unit }
    }
}

/// z about the origin, and ν = n/N̄ − 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    /// Residual over the origin's unit.
    pub z: f64,
    /// Surplus of observations over the origin's.
    pub v: f64,
}

/// The residual about another mean: `scale`·z + `offset`·(1 + ν).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shift {
    /// Factor of z.
    pub scale: f64,
    /// Factor of 1 + ν.
    pub offset: f64,
}

/// Sums of one guide's points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Residuals {
    /// Σ z.
    pub z: f64,
    /// Σ z².
    pub zz: f64,
    /// Σ ν.
    pub v: f64,
    /// Σ ν².
    pub vv: f64,
    /// Σ z ν.
    pub zv: f64,
    /// Smallest z; infinite without any.
    pub min: f64,
    /// Largest z; minus infinity without any.
    pub max: f64,
}

impl Default for Residuals {
    fn default() -> Self {
        Self { z: 0.0, zz: 0.0, v: 0.0, vv: 0.0, zv: 0.0, min: f64::INFINITY, max: f64::NEG_INFINITY }
    }
}

impl Residuals {
    /// Adds a rank.
    pub fn add(&mut self, Point { z, v }: Point) {
        self.merge(&Self { z, zz: z * z, v, vv: v * v, zv: z * v, min: z, max: z });
    }

    /// Adds the ranks of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.z += other.z;
        self.zz += other.zz;
        self.v += other.v;
        self.vv += other.vv;
        self.zv += other.zv;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }
}

/// A group's ranks by bin.
///
/// Most are about one rank or a few, and made for every window: only occupied bins take room.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    bins: usize,
    guides: usize,
    /// Occupied bins, ascending, and their ranks.
    ranks: Vec<(u16, u64)>,
    /// Sums of one such bin after the other, one entry per guide.
    residuals: Vec<Residuals>,
}

/// An occupied bin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Occupied<'a> {
    /// Number of the bin.
    pub bin: usize,
    /// Ranks in it, at least 1.
    pub ranks: u64,
    /// Sums over these, one entry per guide.
    pub residuals: &'a [Residuals],
}

impl Histogram {
    /// No ranks, in fewer than 65536 bins.
    pub fn new(bins: usize, guides: usize) -> Self {
        Self { bins, guides, ranks: Vec::new(), residuals: Vec::new() }
    }

    /// Removes all ranks.
    pub fn clear(&mut self) {
        self.ranks.clear();
        self.residuals.clear();
    }

    /// Number of bins.
    pub fn bins(&self) -> usize {
        self.bins
    }

    /// Number of guides.
    pub fn guides(&self) -> usize {
        self.guides
    }

    /// The occupied bins, ascending.
    pub fn occupied(&self) -> impl ExactSizeIterator<Item = Occupied<'_>> + Clone {
        self.ranks.iter().enumerate().map(|(place, &(bin, ranks))| {
            let residuals = &self.residuals[place * self.guides..(place + 1) * self.guides];
            Occupied { bin: bin.into(), ranks, residuals }
        })
    }

    /// Adds a rank that stands in `bin`, with one point per guide.
    ///
    /// # Panics
    /// If there is no such bin.
    pub fn add(&mut self, bin: usize, points: &[Point]) {
        let (ranks, residuals) = self.entry(bin);
        *ranks = ranks.saturating_add(1);
        residuals.iter_mut().zip(points).for_each(|(sum, &point)| sum.add(point));
    }

    /// Adds `ranks` ranks in a bin behind all occupied ones, and returns their sums, one entry per guide, to be filled
    /// in; `None` where there is no such bin, or `ranks` is 0.
    pub fn append(&mut self, bin: usize, ranks: u64) -> Option<&mut [Residuals]> {
        let behind = self.ranks.last().is_none_or(|&(last, _)| usize::from(last) < bin);
        let number = u16::try_from(bin).ok().filter(|_| behind && bin < self.bins && ranks > 0)?;
        self.ranks.push((number, ranks));
        let from = self.residuals.len();
        self.residuals.resize(from + self.guides, Residuals::default());
        Some(&mut self.residuals[from..])
    }

    /// Adds the ranks of `other`, of as many bins and guides.
    pub fn merge(&mut self, other: &Self) {
        if self.ranks.is_empty() {
            self.ranks.clone_from(&other.ranks);
            self.residuals.clone_from(&other.residuals);
            return;
        }
        for more in other.occupied() {
            let (ranks, residuals) = self.entry(more.bin);
            *ranks = ranks.saturating_add(more.ranks);
            residuals.iter_mut().zip(more.residuals).for_each(|(sum, more)| sum.merge(more));
        }
    }

    /// Ranks of a bin, and sums over them, to be changed; an empty bin is added.
    fn entry(&mut self, bin: usize) -> (&mut u64, &mut [Residuals]) {
        assert!(bin < self.bins, "there are {} bins", self.bins);
        let found = self.ranks.binary_search_by_key(&bin, |&(number, _)| number.into());
        let place = found.unwrap_or_else(|place| {
            self.ranks.insert(place, (bin as u16, 0));
            let nobody = std::iter::repeat_n(Residuals::default(), self.guides);
            self.residuals.splice(place * self.guides..place * self.guides, nobody);
            place
        });
        let residuals = &mut self.residuals[place * self.guides..(place + 1) * self.guides];
        (&mut self.ranks[place].1, residuals)
    }

    /// All ranks in it.
    pub fn population(&self) -> u64 {
        self.ranks.iter().fold(0, |sum, &(_, ranks)| sum.saturating_add(ranks))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inverse_sine_is_that_of_the_standard_library() {
        for value in [0.0, 1e-300, 1e-9, 0.3, 1.0, 17.5, 1e6, 1e100, f64::MAX, f64::INFINITY, f64::NAN] {
            for value in [value, -value] {
                let (own, other) = (asinh(value), value.asinh());
                let is_same = own.to_bits() == other.to_bits() || own.is_nan() && other.is_nan();
                assert!(is_same || (own - other).abs() <= 1e-15 * other.abs(), "{value}: {own} {other}");
            }
        }
    }

    #[test]
    fn bins_are_symmetric_and_ascend() {
        let at = |bounds: f64| bin(bounds, 128);
        assert_eq!((at(-1e9), at(-1000.0), at(0.0), at(1e9), at(f64::INFINITY)), (0, 0, 64, 127, 127));
        assert_eq!((at(1e-12), at(-1e-12), at(f64::NAN), at(f64::NEG_INFINITY)), (64, 64, 127, 0));
        let mut before = 0;
        for step in -20_000..=20_000 {
            let bounds = f64::from(step) / 17.0 + 1e-4;
            assert!(at(bounds) >= before);
            before = at(bounds);
            assert_eq!(at(bounds) + at(-bounds), 127, "{bounds}");
        }
        assert_eq!(bin(5.0, 1), 0);
    }

    #[test]
    fn sums_do_not_depend_on_which_bin_was_filled_first() {
        let points =
            [(3, 0.5), (1, -2.0), (3, 0.25), (7, 9.0)].map(|(bin, z)| (bin, Point { z, v: z / 2.0 }));
        let of = |order: &[usize]| {
            let mut histogram = Histogram::new(8, 2);
            order.iter().for_each(|&at| histogram.add(points[at].0, &[points[at].1, Point::default()]));
            histogram
        };
        let all = of(&[0, 1, 2, 3]);
        assert_eq!(all, of(&[3, 0, 1, 2]));
        let mut merged = of(&[3, 1]);
        merged.merge(&of(&[0, 2]));
        assert_eq!(all, merged);
        assert_ne!(all, of(&[0, 1, 2]));
        let ranks: Vec<_> = all.occupied().map(|occupied| (occupied.bin, occupied.ranks)).collect();
        assert_eq!((ranks, all.population()), (vec![(1, 1), (3, 2), (7, 1)], 4));
        let third = all.occupied().nth(1).expect("somebody is in it").residuals[0];
        assert_eq!((third.z, third.max), (0.75, 0.5));
        merged.merge(&Histogram::new(8, 2));
        assert_eq!(all, merged);
    }

    #[test]
    fn bins_are_appended_in_order_and_with_somebody_in_them() {
        let mut histogram = Histogram::new(8, 1);
        assert_eq!(histogram.append(2, 1).map(|sums| sums.len()), Some(1));
        for (bin, ranks) in [(2, 1), (1, 1), (3, 0), (8, 1), (usize::MAX, 1)] {
            assert_eq!(histogram.append(bin, ranks), None);
        }
        assert!(histogram.append(7, u64::MAX).is_some());
        assert_eq!((histogram.occupied().len(), histogram.population()), (2, u64::MAX));
    }

    #[test]
    fn a_shift_gives_residuals_about_the_true_mean() {
        let ranks = [(3u64, 7.0), (1, 2.5), (4, 12.0), (0, 0.0), (2, 3.0)];
        let (n, y) = ranks.iter().fold((0.0, 0.0), |(n, y), &(a, b)| (n + a as f64, y + b));
        let (ratio, mean_n) = (y / n, n / 5.0);
        let origin = Origin { ratio: 1.7, mean_n: 2.3, unit: 1.7 * 2.3 };
        let shift = origin.shift(ratio, mean_n * ratio);
        for (n, y) in ranks {
            let Point { z, v } = origin.point(n, y);
            let truth = (y - ratio * n as f64) / (mean_n * ratio);
            assert!((shift.scale * z + shift.offset * (1.0 + v) - truth).abs() < 1e-12);
        }
    }
}
