//! Observations of every rank, window after window, and the vectors that classify ranks.

use super::distance::{Dissimilarity, Points};
use super::nearest;

/// Most numbers of a vector per guide: consecutive windows are put together where there are more.
const MOST_COLUMNS: usize = 64;

/// Observations of some guides by all ranks of a group: how many, and their total, per window.
#[derive(Clone, Debug)]
pub struct Vectors {
    ranks: usize,
    guides: usize,
    windows: usize,
    /// Ranks that these stand for, themselves included.
    population: u64,
    /// Most numbers of a vector per guide.
    columns: usize,
    /// Counts of observations, by window, then guide, then rank.
    n: Vec<f64>,
    /// Totals, in the same order.
    y: Vec<f64>,
}

impl Vectors {
    /// No window yet.
    pub fn new(ranks: usize, guides: usize) -> Self {
        Self {
            ranks,
            guides,
            windows: 0,
            population: ranks as u64,
            columns: MOST_COLUMNS,
            n: Vec::new(),
            y: Vec::new(),
        }
    }

    /// The ranks are a simple random sample of `population`, and vectors may have `columns` numbers per guide.
    pub fn sampled(self, population: u64, columns: usize) -> Self {
        Self { population: population.max(self.ranks as u64), columns: columns.max(1), ..self }
    }

    /// Ranks that those here stand for, themselves included.
    pub fn population(&self) -> u64 {
        self.population
    }

    /// Ranks of the group.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// Guides.
    pub fn guides(&self) -> usize {
        self.guides
    }

    /// Windows with an observation.
    pub fn windows(&self) -> usize {
        self.windows
    }

    /// Adds a window: count and total of every rank, guide by guide. A window without any observation is left out; a
    /// number that is not finite counts as no observation.
    ///
    /// # Panics
    /// Unless there are as many pairs as ranks times guides.
    pub fn push(&mut self, observed: impl IntoIterator<Item = (f64, f64)>) {
        let before = self.n.len();
        for (n, y) in observed {
            let sound = n > 0.0 && n.is_finite() && y.is_finite();
            self.n.push(if sound { n } else { 0.0 });
            self.y.push(if sound { y } else { 0.0 });
        }
        assert_eq!(self.n.len() - before, self.ranks * self.guides, "a pair per rank and guide");
        if self.n[before..].iter().any(|&n| n > 0.0) {
            self.windows += 1;
        } else {
            self.n.truncate(before);
            self.y.truncate(before);
        }
    }

    /// Counts and totals of every rank in one window.
    pub fn of(&self, window: usize, guide: usize) -> (&[f64], &[f64]) {
        let first = (window * self.guides + guide) * self.ranks;
        (&self.n[first..first + self.ranks], &self.y[first..first + self.ranks])
    }

    /// Every other window: those to cluster on, and those to find out on what it is worth. Neighbours are as alike
    /// as windows can be, so both halves see what the job does.
    pub fn halves(&self) -> (Vec<usize>, Vec<usize>) {
        (0..self.windows).partition(|window| window % 2 == 1)
    }

    /// The ranks' vectors over `windows`: local means y/n of every guide and window, in units of their standard
    /// deviation over ranks and about their mean, so that no window or guide weighs more than another.
    ///
    /// A rank without an observation is put at the mean. What does not differ between ranks is left out.
    ///
    /// # Source
    /// AMPL 2008 §4.7: time-varying vectors of local means; standardising them is ours.
    pub fn features(&self, windows: &[usize]) -> Features {
        let width = windows.len().div_ceil(self.columns).max(1);
        let mut columns = Vec::new();
        let mut kept: Vec<Vec<f64>> = Vec::new();
        for guide in 0..self.guides {
            for windows in windows.chunks(width) {
                let (column, values) = self.column(windows, guide);
                if column.per_deviation > 0.0 {
                    kept.push(values);
                }
                columns.push(column);
            }
        }
        let dimensions = kept.len();
        let mut values = vec![0.0; self.ranks * dimensions];
        for (place, column) in kept.iter().enumerate() {
            let places = values.iter_mut().skip(place).step_by(dimensions);
            places.zip(column).for_each(|(to, value)| *to = *value);
        }
        let points = Points::new(self.ranks, dimensions, values).expect("a number per rank and column");
        Features { points, columns, width }
    }

    fn column(&self, windows: &[usize], guide: usize) -> (Column, Vec<f64>) {
        let (mut n, mut y) = (vec![0.0; self.ranks], vec![0.0; self.ranks]);
        for &window in windows {
            let (count, total) = self.of(window, guide);
            n.iter_mut().zip(count).for_each(|(sum, count)| *sum += count);
            y.iter_mut().zip(total).for_each(|(sum, total)| *sum += total);
        }
        let means: Vec<Option<f64>> = n.iter().zip(&y).map(|(&n, &y)| (n > 0.0).then(|| y / n)).collect();
        let observed = || means.iter().flatten();
        let count = observed().count().max(1) as f64;
        let mean = observed().sum::<f64>() / count;
        let deviation = (observed().map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt();
        // What rounding makes of equal numbers is no difference.
        let differs = deviation.is_finite() && deviation > 1e-12 * mean.abs();
        let column = Column { mean, per_deviation: if differs { 1.0 / deviation } else { 0.0 } };
        let values = means.iter().map(|&mean| column.standard(mean)).collect();
        (column, values)
    }
}

/// Mean and scale that a rank's local mean is compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Column {
    mean: f64,
    /// One over the standard deviation; 0 where ranks do not differ.
    per_deviation: f64,
}

impl Column {
    fn standard(self, mean: Option<f64>) -> f64 {
        mean.map_or(0.0, |mean| (mean - self.mean) * self.per_deviation)
    }
}

/// The ranks as points, and what the numbers are.
#[derive(Clone, Debug)]
pub struct Features {
    /// A point per rank.
    pub points: Points,
    columns: Vec<Column>,
    /// Windows put together in a number.
    width: usize,
}

impl Features {
    /// Medoids to send to ranks, so that each finds its own stratum: their vectors and what these are relative to. The
    /// size does not depend on how many ranks there are.
    pub fn reference(&self, medoids: &[usize]) -> Reference {
        Reference {
            columns: self.columns.clone(),
            width: self.width,
            medoids: medoids.iter().map(|&medoid| self.points.row(medoid).to_vec()).collect(),
        }
    }
}

/// Medoids that are sent to ranks, so that each finds its stratum by itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Reference {
    columns: Vec<Column>,
    width: usize,
    medoids: Vec<Vec<f64>>,
}

impl Reference {
    /// Parts of the reference, to be sent: per column the mean and one over the standard deviation, windows per column,
    /// and the medoids.
    pub fn parts(&self) -> (impl ExactSizeIterator<Item = (f64, f64)> + '_, usize, &[Vec<f64>]) {
        let columns = self.columns.iter().map(|column| (column.mean, column.per_deviation));
        (columns, self.width, &self.medoids)
    }

    /// Reference made of its parts; `None` where a number is not finite or the parts do not fit each other.
    pub fn from_parts(columns: Vec<(f64, f64)>, width: usize, medoids: Vec<Vec<f64>>) -> Option<Self> {
        let sound = |&(mean, per_deviation): &(f64, f64)| mean.is_finite() && per_deviation.is_finite();
        let used = columns.iter().filter(|(_, per_deviation)| *per_deviation > 0.0).count();
        let fits = |medoid: &Vec<f64>| medoid.len() == used && medoid.iter().all(|value| value.is_finite());
        let sound = width > 0 && columns.iter().all(sound) && medoids.iter().all(fits);
        let column = |(mean, per_deviation)| Column { mean, per_deviation };
        sound.then(|| Self { columns: columns.into_iter().map(column).collect(), width, medoids })
    }

    /// Stratum of a rank that observed `guides`, count and total per window, in the windows that the medoids are about:
    /// the index of the nearest medoid.
    pub fn stratum_of(&self, guides: &[Vec<(f64, f64)>], metric: &impl Dissimilarity) -> usize {
        let sound = |&(n, y): &(f64, f64)| n > 0.0 && n.is_finite() && y.is_finite();
        let blocks = guides.iter().flat_map(|windows| windows.chunks(self.width));
        let means = blocks.map(|windows| {
            let windows = windows.iter().copied().filter(sound);
            let (n, y) = windows.fold((0.0, 0.0), |(n, y), next| (n + next.0, y + next.1));
            (n > 0.0).then(|| y / n)
        });
        let used = self.columns.iter().zip(means).filter(|(column, _)| column.per_deviation > 0.0);
        let point: Vec<f64> = used.map(|(column, mean)| column.standard(mean)).collect();
        nearest(&point, self.medoids.iter().map(Vec::as_slice), metric).0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Metric;

    fn vectors(windows: &[&[(f64, f64)]]) -> Vectors {
        let mut vectors = Vectors::new(windows[0].len(), 1);
        windows.iter().for_each(|window| vectors.push(window.iter().copied()));
        vectors
    }

    #[test]
    fn vectors_are_local_means_in_standard_units() {
        let vectors = vectors(&[
            &[(1.0, 9.0), (1.0, 9.0), (1.0, 9.0)],
            &[(2.0, 2.0), (1.0, 3.0), (0.0, 0.0)],
            &[(1.0, f64::NAN), (1.0, f64::INFINITY), (f64::NAN, 3.0)],
        ]);
        // The last window has no observation that is a number.
        assert_eq!((vectors.windows(), vectors.ranks()), (2, 3));
        let features = vectors.features(&[0, 1]);
        // Window 0 is the same for everyone; in window 1 the means are 1 and 3, and one rank has none.
        assert_eq!(features.points.dimensions(), 1);
        assert_eq!(features.points.values(), [-1.0, 1.0, 0.0]);
        assert_eq!(vectors.features(&[0]).points.dimensions(), 0);
        assert_eq!(vectors.halves(), (vec![1], vec![0]));
    }

    #[test]
    fn many_windows_are_put_together() {
        let mut vectors = Vectors::new(2, 2);
        (0..200).for_each(|w| vectors.push([(1.0, 1.0), (1.0, 2.0), (1.0, f64::from(w)), (1.0, 0.5)]));
        let windows: Vec<usize> = (0..200).collect();
        assert_eq!(vectors.features(&windows).points.dimensions(), 2 * 50);
    }

    #[test]
    fn a_rank_finds_its_own_stratum() {
        let mut vectors = Vectors::new(40, 1);
        for window in 0..300 {
            let value = |rank: usize| ((rank % 3) as f64 + 0.01 * ((rank * 7 + window) % 11) as f64) * 5.0;
            vectors.push((0..40).map(|rank| (2.0, value(rank))));
        }
        let (windows, _) = vectors.halves();
        let features = vectors.features(&windows);
        let medoids = [0, 1, 2];
        let reference = features.reference(&medoids);
        for rank in 0..40 {
            let seen: Vec<(f64, f64)> = windows
                .iter()
                .map(|&window| {
                    let (n, y) = vectors.of(window, 0);
                    (n[rank], y[rank])
                })
                .collect();
            assert_eq!(reference.stratum_of(&[seen], &Metric::Euclidean), rank % 3, "{rank}");
        }
    }
}
