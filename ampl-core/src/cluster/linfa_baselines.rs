//! linfa's clusterings and its silhouette, over the same points and with the same results as ours, to compare with.
//!
//! Beyond [`Effort::all_up_to`] points they see a sample, and the others go to the nearest medoid.

use linfa::DatasetBase;
use linfa::prelude::{Fit, Predict, SilhouetteScore, Transformer};
use linfa_clustering::{Dbscan, GaussianMixtureModel, GmmError, KMeans};
use linfa_nn::CommonNearestNeighbour;
use linfa_nn::distance::{Distance, L1Dist, L2Dist};
use ndarray::{Array1, Array2, ArrayView1};
use rand_xoshiro::Xoshiro256Plus;
use rand_xoshiro::rand_core::SeedableRng;

use super::choose::NoClasses;
use super::clara::{Clustering, Effort, nearest};
use super::distance::{Dissimilarity, Metric, Points};
use super::pam::{Purpose, some};

/// Points that the silhouette is averaged over: it compares all pairs.
const SILHOUETTE_POINTS: usize = 1000;

/// Distance of a coordinate from its mean at which k-means has come to rest; coordinates vary by 1.
const AT_REST: f64 = 1e-2;

/// `k` classes by k-means (Euclidean: Lloyd with k-means++; otherwise distances to the means by `metric`). The
/// medoid of a class is the point of it with the smallest sum of dissimilarities to the others.
///
/// # Errors
/// Means that have not come to rest.
pub fn k_means(points: &Points, k: usize, metric: Metric, effort: Effort) -> Result<Clustering, NoClasses> {
    let seen = Seen::of(points, effort);
    // k-means++ does not end where there are fewer different points than means.
    let k = seen.different(k);
    if k < 2 {
        return Ok(seen.one_class(points, metric));
    }
    let random = Xoshiro256Plus::seed_from_u64(effort.seed);
    let labels = match metric {
        Metric::Euclidean => fit_means(&seen.records, k, random, L2Dist)?,
        Metric::Manhattan => fit_means(&seen.records, k, random, L1Dist)?,
    };
    Ok(seen.clustering(points, metric, labels.into_iter().map(Some).collect()))
}

fn fit_means<D: Distance<f64> + Sync + Send>(
    records: &Array2<f64>,
    k: usize,
    random: Xoshiro256Plus,
    distance: D,
) -> Result<Vec<usize>, NoClasses> {
    let dataset = DatasetBase::from(records.view());
    let model =
        KMeans::params_with(k, random, distance).fit(&dataset).map_err(|_| NoClasses::NotConverged)?;
    let labels: Array1<usize> = model.predict(&records.view());
    // linfa stops after 300 steps without a word.
    match are_means(records, &labels, model.centroids()) {
        true => Ok(labels.to_vec()),
        false => Err(NoClasses::NotConverged),
    }
}

/// `true` if `centroids` are the means of the points with their labels.
fn are_means(records: &Array2<f64>, labels: &Array1<usize>, centroids: &Array2<f64>) -> bool {
    let mut sums = Array2::<f64>::zeros(centroids.raw_dim());
    let mut counts = vec![0.0; centroids.nrows()];
    for (record, &label) in records.rows().into_iter().zip(labels) {
        sums.row_mut(label).scaled_add(1.0, &record);
        counts[label] += 1.0;
    }
    let rows = sums.rows().into_iter().zip(centroids.rows()).zip(&counts);
    rows.filter(|(_, count)| **count > 0.0).all(|((sum, centroid), count)| {
        sum.iter().zip(centroid).all(|(s, c)| (s / count - c).abs() < AT_REST)
    })
}

/// Numbers of a vector per guide that a Gaussian mixture is fitted to, at most: every class has a full covariance, whose
/// entries grow with the square. More windows are put together ([`super::Vectors::sampled`]).
pub const MIXTURE_COLUMNS: usize = 4;

/// Least variance of a class of the mixture, in units of that of all points: without one a class of equal points has
/// none.
const LEAST_VARIANCE: f64 = 1e-3;

/// `k` classes by a mixture of `k` Gaussians with full covariances (expectation and maximisation from k-means). A point
/// is of the class that it is most probably of.
///
/// # Errors
/// No convergence in 100 steps, a class that no point is left of, or probabilities that are none.
pub fn mixture(points: &Points, k: usize, metric: Metric, effort: Effort) -> Result<Clustering, NoClasses> {
    let seen = Seen::of(points, effort);
    let k = seen.different(k);
    if k < 2 {
        return Ok(seen.one_class(points, metric));
    }
    let random = Xoshiro256Plus::seed_from_u64(effort.seed);
    let params = GaussianMixtureModel::params_with_rng(k, random).reg_covariance(LEAST_VARIANCE);
    let model = params.fit(&DatasetBase::from(seen.records.view())).map_err(|error| match error {
        GmmError::NotConverged(_) => NoClasses::NotConverged,
        _ => NoClasses::Degenerate,
    })?;
    // linfa's predict panics where a point is too far from every class for a probability.
    let probabilities = model.predict_proba(&seen.records);
    if probabilities.iter().any(|probability| !probability.is_finite()) {
        return Err(NoClasses::Degenerate);
    }
    let most = |row: ArrayView1<'_, f64>| {
        let best = row.iter().enumerate().max_by(|(_, a), (_, b)| a.total_cmp(b));
        best.map(|(class, _)| class)
    };
    Ok(seen.clustering(points, metric, probabilities.rows().into_iter().map(most).collect()))
}

/// Classes of points that are linked by a chain of close ones (DBSCAN): how many follows from the points. Close is
/// what nine points in ten have `least` neighbours within. Points in no class go to the nearest medoid.
///
/// # Errors
/// No point has that many neighbours.
pub fn dbscan(
    points: &Points,
    least: usize,
    metric: Metric,
    effort: Effort,
) -> Result<Clustering, NoClasses> {
    let seen = Seen::of(points, effort);
    let least = least.max(2);
    let count = seen.rows.len();
    let mut reaches: Vec<f64> = seen.rows.iter().map(|&row| seen.reach(points, row, least, metric)).collect();
    reaches.sort_unstable_by(f64::total_cmp);
    let reach = reaches.get(count * 9 / 10).copied().unwrap_or(0.0);
    if seen.different(2) < 2 {
        return Ok(seen.one_class(points, metric));
    }
    if !reach.is_finite() {
        return Err(NoClasses::AllNoise);
    }
    // Of equal points any reach above 0 gives the same classes.
    let reach = reach.max(f64::MIN_POSITIVE) * (1.0 + 1e-9);
    let search = CommonNearestNeighbour::LinearSearch;
    let labels = match metric {
        Metric::Euclidean => {
            Dbscan::params_with(least, L2Dist, search).tolerance(reach).transform(&seen.records)
        }
        Metric::Manhattan => {
            Dbscan::params_with(least, L1Dist, search).tolerance(reach).transform(&seen.records)
        }
    };
    let labels: Array1<Option<usize>> = labels.map_err(|_| NoClasses::Degenerate)?;
    match labels.iter().any(Option::is_some) {
        true => Ok(seen.clustering(points, metric, labels.to_vec())),
        false => Err(NoClasses::AllNoise),
    }
}

/// linfa's mean silhouette: how much nearer points are to those of their own class than to those of the next, by
/// Euclidean distance, in [−1, 1]. `None` for a single class. Of many points, a sample is used.
pub fn silhouette(points: &Points, labels: &[usize], seed: u64) -> Option<f64> {
    let effort = Effort { all_up_to: SILHOUETTE_POINTS, seed, ..Effort::default() };
    let seen = Seen::of(points, Effort { sample_points: SILHOUETTE_POINTS, ..effort });
    let labels: Array1<usize> = seen.rows.iter().map(|&row| labels[row]).collect();
    if labels.iter().all(|label| *label == labels[0]) {
        return None;
    }
    let score = DatasetBase::new(seen.records, labels).silhouette_score().ok()?;
    score.is_finite().then_some(score)
}

/// Points that are compared.
struct Seen {
    rows: Vec<usize>,
    records: Array2<f64>,
}

impl Seen {
    fn of(points: &Points, effort: Effort) -> Self {
        let all = points.len();
        let mut rows: Vec<usize> = match all > effort.all_up_to {
            false => (0..all).collect(),
            true => some(effort.seed, Purpose::Sample, 0, effort.sample_points, all).collect(),
        };
        rows.sort_unstable();
        let values: Vec<f64> = rows.iter().flat_map(|&row| points.row(row)).copied().collect();
        let shape = (rows.len(), points.dimensions());
        let records = Array2::from_shape_vec(shape, values).expect("a number per row and column");
        Self { rows, records }
    }

    /// Number of different points, counted up to `most`. Coordinates vary by 1: what differs by less than rounding makes
    /// of them is the same.
    fn different(&self, most: usize) -> usize {
        let mut found: Vec<ArrayView1<'_, f64>> = Vec::new();
        for row in self.records.rows() {
            let is_same = |other: &ArrayView1<'_, f64>| {
                row.iter().zip(other).map(|(a, b)| (a - b).powi(2)).sum::<f64>() <= 1e-18
            };
            if found.len() < most && !found.iter().any(is_same) {
                found.push(row);
            }
        }
        found.len()
    }

    /// Distance of the `least`-th nearest other point.
    fn reach(&self, points: &Points, row: usize, least: usize, metric: Metric) -> f64 {
        let others = self.rows.iter().map(|&other| metric.between(points.row(row), points.row(other)));
        let mut distances: Vec<f64> = others.collect();
        match least < distances.len() {
            true => *distances.select_nth_unstable_by(least, f64::total_cmp).1,
            false => f64::INFINITY,
        }
    }

    /// All points as one class.
    fn one_class(&self, points: &Points, metric: Metric) -> Clustering {
        self.clustering(points, metric, vec![Some(0); self.rows.len()])
    }

    /// Classes with the medoid that each has: the point with the smallest sum of dissimilarities to the others of its
    /// class. Points of no class, or not compared, go to the nearest medoid.
    fn clustering(&self, points: &Points, metric: Metric, labels: Vec<Option<usize>>) -> Clustering {
        let classes = labels.iter().flatten().max().map_or(0, |most| most + 1);
        let members = |class| {
            let own = self.rows.iter().zip(&labels).filter(move |&(_, label)| *label == Some(class));
            own.map(|(&row, _)| row).collect::<Vec<usize>>()
        };
        let classes = (0..classes).map(members).filter(|members| !members.is_empty());
        let mut classes: Vec<(usize, Vec<usize>)> =
            classes.filter_map(|members| Some((medoid(points, &members, metric)?, members))).collect();
        classes.sort_unstable();
        if classes.is_empty() && !self.rows.is_empty() {
            classes.push((self.rows[0], Vec::new()));
        }
        let medoids: Vec<usize> = classes.iter().map(|(medoid, _)| *medoid).collect();
        let place = |row| nearest(points.row(row), medoids.iter().map(|&m| points.row(m)), &metric).0;
        let mut found: Vec<usize> = (0..points.len()).map(place).collect();
        for (class, (_, members)) in classes.iter().enumerate() {
            members.iter().for_each(|&row| found[row] = class);
        }
        let distance =
            |(row, &class): (usize, &usize)| metric.between(points.row(row), points.row(medoids[class]));
        let deviation = found.iter().enumerate().map(distance).sum();
        let unclassed = labels.iter().filter(|label| label.is_none()).count();
        Clustering { medoids, labels: found, deviation, unclassed }
    }
}

fn medoid(points: &Points, members: &[usize], metric: Metric) -> Option<usize> {
    let sum = |&row: &usize| -> f64 {
        members.iter().map(|&other| metric.between(points.row(row), points.row(other))).sum()
    };
    let sums = members.iter().map(|row| (*row, sum(row)));
    sums.reduce(|best, next| if next.1 < best.1 { next } else { best }).map(|(row, _)| row)
}
