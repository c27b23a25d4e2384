//! Points and how far they are apart.

/// Vectors of equal length, one after the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Points {
    rows: usize,
    dimensions: usize,
    values: Vec<f64>,
}

impl Points {
    /// The points of which `values` holds one row after the other; `None` unless there are `rows` times
    /// `dimensions` of them.
    pub fn new(rows: usize, dimensions: usize, values: Vec<f64>) -> Option<Self> {
        (rows.checked_mul(dimensions) == Some(values.len())).then_some(Self { rows, dimensions, values })
    }

    /// Number of points.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// `true` if there are no points.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Numbers per point.
    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// Point number `index`.
    pub fn row(&self, index: usize) -> &[f64] {
        &self.values[index * self.dimensions..(index + 1) * self.dimensions]
    }

    /// All numbers, row after row.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// `true` if every number is finite.
    pub fn is_finite(&self) -> bool {
        self.values.iter().all(|value| value.is_finite())
    }
}

/// Dissimilarity of two points: symmetric, 0 for equal points, not negative, finite for finite points. It need not
/// be a metric: k-medoids asks for nothing else.
pub trait Dissimilarity {
    /// Dissimilarity of `a` and `b`, which have equal lengths.
    fn between(&self, a: &[f64], b: &[f64]) -> f64;
}

impl<F: Fn(&[f64], &[f64]) -> f64> Dissimilarity for F {
    fn between(&self, a: &[f64], b: &[f64]) -> f64 {
        self(a, b)
    }
}

/// The usual dissimilarities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Metric {
    /// √Σ(a − b)², as in AMPL 2008 §4.7.
    #[default]
    Euclidean,
    /// Σ|a − b|: a single wild window counts for less.
    Manhattan,
}

impl Metric {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Euclidean, Self::Manhattan];

    /// The name on command lines.
    pub fn name(self) -> &'static str {
        match self {
            Self::Euclidean => "euclidean",
            Self::Manhattan => "manhattan",
        }
    }

    /// The metric of that name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|metric| metric.name() == name)
    }
}

impl Dissimilarity for Metric {
    fn between(&self, a: &[f64], b: &[f64]) -> f64 {
        match self {
            Self::Euclidean => sum(a, b, |difference| difference * difference).sqrt(),
            Self::Manhattan => sum(a, b, f64::abs),
        }
    }
}

/// Σ of `term` over the differences. Four sums side by side, which the processor adds at once; their order is
/// fixed, so equal points give equal sums everywhere.
fn sum(a: &[f64], b: &[f64], term: impl Fn(f64) -> f64) -> f64 {
    let (left, right) = (a.chunks_exact(4), b.chunks_exact(4));
    let rest = left.remainder().iter().zip(right.remainder());
    let rest: f64 = rest.map(|(a, b)| term(a - b)).sum();
    let mut sums = [0.0; 4];
    for (a, b) in left.zip(right) {
        for lane in 0..4 {
            sums[lane] += term(a[lane] - b[lane]);
        }
    }
    (sums[0] + sums[1]) + (sums[2] + sums[3]) + rest
}

/// Points that others are compared with side by side.
pub(super) const LANES: usize = 8;

/// All dissimilarities of some points: 8 bytes for each pair and order.
#[derive(Clone, Debug)]
pub struct Distances {
    points: usize,
    /// Rows of `points` numbers, each followed by [`LANES`] zeros: a block of lanes may begin at any of them.
    values: Vec<f64>,
}

impl Distances {
    /// Dissimilarities between `rows` of `points`, numbered as in `rows`.
    pub fn of(points: &Points, rows: &[usize], metric: &impl Dissimilarity) -> Self {
        let mut distances = Self::none(rows.len());
        (0..rows.len()).for_each(|index| distances.measure(index, points, rows, metric));
        distances
    }

    /// Room for the dissimilarities of `points` points, all 0 so far.
    pub(super) fn none(points: usize) -> Self {
        Self { points, values: vec![0.0; points * (points + LANES)] }
    }

    /// Fills in the dissimilarities between point `index` and the points before it.
    pub(super) fn measure(
        &mut self,
        index: usize,
        points: &Points,
        rows: &[usize],
        metric: &impl Dissimilarity,
    ) {
        let width = self.points + LANES;
        let point = points.row(rows[index]);
        for (other, &row) in rows[..index].iter().enumerate() {
            let distance = metric.between(point, points.row(row));
            self.values[index * width + other] = distance;
            self.values[other * width + index] = distance;
        }
    }

    /// Number of points.
    pub fn len(&self) -> usize {
        self.points
    }

    /// `true` if there are no points.
    pub fn is_empty(&self) -> bool {
        self.points == 0
    }

    /// Dissimilarities from point `index` to every point.
    pub fn from(&self, index: usize) -> &[f64] {
        let first = index * (self.points + LANES);
        &self.values[first..first + self.points]
    }

    /// Dissimilarities from point `index` to point `first` and those behind it, as many as there are lanes.
    pub(super) fn block(&self, index: usize, first: usize) -> &[f64; LANES] {
        let first = index * (self.points + LANES) + first;
        self.values[first..].first_chunk().expect("a row ends in as many zeros")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_what_they_are_called() {
        let (a, b) = ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1.0, 5.0, 3.0, 0.0, 5.0, 6.0]);
        assert_eq!(Metric::Euclidean.between(&a, &b), 5.0);
        assert_eq!(Metric::Manhattan.between(&a, &b), 7.0);
        assert_eq!(Metric::Euclidean.between(&[], &[]), 0.0);
        for metric in Metric::ALL {
            assert_eq!(Metric::by_name(metric.name()), Some(metric));
        }
    }

    #[test]
    fn any_function_is_a_dissimilarity() {
        let points = Points::new(3, 2, vec![0.0, 1.0, 4.0, 2.0, 1.0, 9.0]).unwrap();
        let largest = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        let distances = Distances::of(&points, &[2, 0], &largest);
        assert_eq!((distances.from(0), distances.from(1)), (&[0.0, 8.0][..], &[8.0, 0.0][..]));
        assert_eq!(Points::new(3, 2, vec![0.0; 5]), None);
    }
}
