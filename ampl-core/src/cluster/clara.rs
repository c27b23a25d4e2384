//! k-medoids of any number of points: of all of them, or of samples.

use super::distance::{Dissimilarity, Distances, Points};
use super::pam::{Initial, Purpose, build, faster_pam, lab, some};

/// How much is spent on a clustering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// How the first medoids are found.
    pub initial: Initial,
    /// Seed of samples and of LAB.
    pub seed: u64,
    /// Up to that many points all pairs are looked at: 8 bytes for each.
    pub all_up_to: usize,
    /// Beyond it, so many samples are clustered.
    pub samples: usize,
    /// So many points each, at least `k`.
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
}

/// Points ready to be clustered, for one number of clusters after the other.
#[derive(Clone, Debug)]
pub struct KMedoids<'p, D> {
    points: &'p Points,
    metric: D,
    effort: Effort,
    /// Numbers of the points of every sample, and their dissimilarities; one of all points where these are few.
    samples: Vec<(Vec<usize>, Distances)>,
    judges: Vec<usize>,
}

impl<'p, D: Dissimilarity> KMedoids<'p, D> {
    /// `points`, all of finite numbers.
    ///
    /// # Source
    /// CLARA, Kaufman & Rousseeuw (1990), ch. 3, for samples; with FasterPAM they can be far larger than its
    /// 40 + 2k, and hold some points of classes of 1 %.
    pub fn new(points: &'p Points, metric: D, effort: Effort) -> Self {
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
            let distances = Distances::of(points, &rows, &metric);
            (rows, distances)
        });
        Self { points, samples: samples.collect(), judges, metric, effort }
    }

    /// The clustering around `k` medoids, or around fewer where fewer points differ; none of no points.
    pub fn clusters(&self, k: usize) -> Clustering {
        let fits = self.samples.iter().map(|(rows, distances)| {
            let first = match self.effort.initial {
                Initial::Build => build(distances, k),
                Initial::Lab => lab(distances, k, self.effort.seed),
            };
            let found = faster_pam(distances, first, self.effort.most_swaps);
            found.medoids.iter().map(|&medoid| rows[medoid]).collect::<Vec<usize>>()
        });
        let judged = fits.map(|medoids| (self.deviation(&medoids), medoids));
        let best = judged.reduce(|best, next| if next.0 < best.0 { next } else { best });
        let medoids = best.map(|(_, medoids)| medoids).unwrap_or_default();
        let mut labels = Vec::with_capacity(self.points.len());
        let mut deviation = 0.0;
        for point in 0..self.points.len() {
            let (label, distance) = self.nearest(point, &medoids);
            labels.push(label);
            deviation += distance;
        }
        Clustering { medoids, labels, deviation }
    }

    fn deviation(&self, medoids: &[usize]) -> f64 {
        self.judges.iter().map(|&point| self.nearest(point, medoids).1).sum()
    }

    fn nearest(&self, point: usize, medoids: &[usize]) -> (usize, f64) {
        let medoids = medoids.iter().map(|&medoid| self.points.row(medoid));
        nearest(self.points.row(point), medoids, &self.metric)
    }
}

/// Which of `medoids` is nearest to `point`, the first of equally near ones, and how far it is.
pub fn nearest<'m>(
    point: &[f64],
    medoids: impl Iterator<Item = &'m [f64]>,
    metric: &impl Dissimilarity,
) -> (usize, f64) {
    let distances = medoids.map(|medoid| metric.between(point, medoid)).enumerate();
    distances.fold((0, f64::INFINITY), |best, next| if next.1 < best.1 { next } else { best })
}
