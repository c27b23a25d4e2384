//! k-medoids of any number of points: of all of them, or of samples.

use std::borrow::Cow;
use std::task::{Poll, ready};

use super::distance::{Dissimilarity, Distances, Points};
use super::pam::{First, Initial, Purpose, Swapping, some};
use super::work_budget::Work;

/// Effort spent on a clustering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Search for the first medoids.
    pub initial: Initial,
    /// Seed of samples and of LAB.
    pub seed: u64,
    /// Most points of which all pairs are compared, 8 bytes per pair.
    pub all_up_to: usize,
    /// Samples that are clustered beyond that number of points.
    pub samples: usize,
    /// Points of a sample, at least `k`.
    pub sample_points: usize,
    /// Most points that the samples' medoids are compared on.
    pub judges: usize,
    /// Most swaps of one search; it ends by itself, as a rule after a few per medoid.
    pub most_swaps: usize,
}

impl Default for Effort {
    fn default() -> Self {
        Self {
            initial: Initial::Build,
            seed: 42,
            all_up_to: 2000,
            samples: 5,
            sample_points: 1000,
            judges: 1 << 16,
            most_swaps: 10_000,
        }
    }
}

/// Medoids, and which of them every point belongs to.
#[derive(Clone, Debug, PartialEq)]
pub struct Clustering {
    /// Numbers of the points that are medoids, ascending.
    pub medoids: Vec<usize>,
    /// For every point, the index in `medoids` of its nearest one.
    pub labels: Vec<usize>,
    /// Σ of the points' dissimilarities to their nearest medoids.
    pub deviation: f64,
    /// Points that the method has put into no class; they have the label of the nearest medoid.
    pub unclassed: usize,
}

/// Points ready to be clustered, for one number of clusters after the other.
#[derive(Clone, Debug)]
pub struct KMedoids<'p, D> {
    points: Cow<'p, Points>,
    metric: D,
    effort: Effort,
    /// Samples of the points; one of all points where these are few.
    samples: Vec<Sample>,
    judges: Vec<usize>,
    /// The clustering that is being searched for.
    fit: Option<Fit>,
}

#[derive(Clone, Debug)]
struct Sample {
    /// Numbers of its points.
    rows: Vec<usize>,
    distances: Distances,
    /// Rows of `distances` filled in so far.
    measured: usize,
    first: First,
}

/// Progress of the search for `k` clusters.
#[derive(Clone, Debug)]
struct Fit {
    k: usize,
    /// The sample that is being clustered.
    sample: usize,
    swapping: Option<Swapping>,
    /// Smallest deviation over the judges so far, and its medoids.
    best: Option<(f64, Vec<usize>)>,
}

impl<'p, D: Dissimilarity> KMedoids<'p, D> {
    /// `points`, all of finite numbers.
    ///
    /// # Source
    /// CLARA, Kaufman & Rousseeuw (1990), ch. 3, for samples; with FasterPAM they can be far larger than its
    /// 40 + 2k, and hold some points of classes of 1 %.
    pub fn new(points: &'p Points, metric: D, effort: Effort) -> Self {
        Self::of(Cow::Borrowed(points), metric, effort)
    }

    pub(super) fn of(points: Cow<'p, Points>, metric: D, effort: Effort) -> Self {
        let all = points.len();
        let rows: Vec<Vec<usize>> = match all > effort.all_up_to {
            false => vec![(0..all).collect()],
            true => (0..effort.samples.max(1) as u64)
                .map(|round| some(effort.seed, Purpose::Sample, round, effort.sample_points, all).collect())
                .collect(),
        };
        let judges = match (rows.len(), all <= effort.judges) {
            (1, _) => Vec::new(),
            (_, true) => (0..all).collect(),
            (_, false) => some(effort.seed, Purpose::Judges, 0, effort.judges, all).collect(),
        };
        let samples = rows.into_iter().map(|mut rows| {
            // In order, so that ties fall as they do among all points.
            rows.sort_unstable();
            let (distances, first) = (Distances::none(rows.len()), First::new(rows.len()));
            Sample { rows, distances, measured: 0, first }
        });
        Self { points, samples: samples.collect(), judges, metric, effort, fit: None }
    }

    /// The clustering around `k` medoids, or around fewer where fewer points differ; none of no points.
    pub fn clusters(&mut self, k: usize) -> Clustering {
        Work::whole(|work| self.step(k, work))
    }

    /// The same, as far as `work` goes; to be asked again for the same `k` until it is ready.
    pub fn step(&mut self, k: usize, work: &mut Work) -> Poll<Clustering> {
        let fit = self.fit.take().filter(|fit| fit.k == k);
        let mut fit = fit.unwrap_or(Fit { k, sample: 0, swapping: None, best: None });
        let found = self.search(&mut fit, work);
        if found.is_pending() {
            self.fit = Some(fit);
        }
        found
    }

    fn search(&mut self, fit: &mut Fit, work: &mut Work) -> Poll<Clustering> {
        let per_point = (self.points.dimensions() + 4) as u64 * fit.k as u64;
        while let Some(sample) = self.samples.get_mut(fit.sample) {
            ready!(sample.measure(&self.points, &self.metric, work));
            ready!(sample.search(fit, &self.effort, work));
            let Some(swapping) = &fit.swapping else { break };
            ready!(work.take(self.judges.len() as u64 * per_point + 1));
            let medoids = swapping.medoids(&sample.distances);
            let medoids: Vec<usize> = medoids.into_iter().map(|medoid| sample.rows[medoid]).collect();
            let deviation = self.deviation(&medoids);
            if fit.best.as_ref().is_none_or(|(best, _)| deviation < *best) {
                fit.best = Some((deviation, medoids));
            }
            (fit.sample, fit.swapping) = (fit.sample + 1, None);
        }
        ready!(work.take(self.points.len() as u64 * per_point + 1));
        let medoids = fit.best.take().map(|(_, medoids)| medoids).unwrap_or_default();
        let mut labels = Vec::with_capacity(self.points.len());
        let mut deviation = 0.0;
        for point in 0..self.points.len() {
            let (label, distance) = self.nearest(point, &medoids);
            labels.push(label);
            deviation += distance;
        }
        Poll::Ready(Clustering { medoids, labels, deviation, unclassed: 0 })
    }

    fn deviation(&self, medoids: &[usize]) -> f64 {
        self.judges.iter().map(|&point| self.nearest(point, medoids).1).sum()
    }

    fn nearest(&self, point: usize, medoids: &[usize]) -> (usize, f64) {
        let medoids = medoids.iter().map(|&medoid| self.points.row(medoid));
        nearest(self.points.row(point), medoids, &self.metric)
    }
}

impl Sample {
    /// Finds out how far its points are apart.
    fn measure(&mut self, points: &Points, metric: &impl Dissimilarity, work: &mut Work) -> Poll<()> {
        while self.measured < self.rows.len() {
            ready!(work.take((self.measured * (points.dimensions() + 2) + 1) as u64));
            self.distances.measure(self.measured, points, &self.rows, metric);
            self.measured += 1;
        }
        Poll::Ready(())
    }

    /// Finds the medoids of `fit`.
    fn search(&mut self, fit: &mut Fit, effort: &Effort, work: &mut Work) -> Poll<()> {
        let points = self.rows.len();
        let k = fit.k.min(points);
        while self.first.medoids.len() < k {
            ready!(work.take((points * points / 2) as u64));
            self.first.add(&self.distances, effort.initial, effort.seed);
        }
        if fit.swapping.is_none() {
            ready!(work.take(Swapping::units(points, k)));
        }
        let first = || self.first.medoids[..k].to_vec();
        let swapping =
            fit.swapping.get_or_insert_with(|| Swapping::new(&self.distances, first(), effort.most_swaps));
        while let Some(units) = swapping.next_units() {
            ready!(work.take(units));
            swapping.step(&self.distances);
        }
        Poll::Ready(())
    }
}

/// Index in `medoids` of the one nearest to `point`, the first of equally near ones, and its dissimilarity.
pub fn nearest<'m>(
    point: &[f64],
    medoids: impl Iterator<Item = &'m [f64]>,
    metric: &impl Dissimilarity,
) -> (usize, f64) {
    let distances = medoids.map(|medoid| metric.between(point, medoid)).enumerate();
    distances.fold((0, f64::INFINITY), |best, next| if next.1 < best.1 { next } else { best })
}
