//! k-medoids as an estimator of `linfa`: parameters that are checked, `Fit`, `Predict`.

use linfa::DatasetBase;
use linfa::prelude::{Fit, ParamGuard, Predict, PredictInplace};
use ndarray::{Array1, Array2, ArrayBase, ArrayView2, Axis, Data, Ix1, Ix2};

use super::choose::{NoClasses, Search};
use super::clara::{Clustering, Effort, nearest};
use super::distance::{Dissimilarity, Metric, Points};
use super::pam::Initial;
use super::vectors::Features;

/// The search by k-medoids, fitted and predicted as any estimator of linfa. It finds what [`super::k_medoids`] finds.
pub fn search(features: &Features, metric: Metric, effort: Effort) -> Search<'_> {
    let points = &features.points;
    Box::new(move |k| {
        let shape = (points.len(), points.dimensions());
        let records = ArrayView2::from_shape(shape, points.values()).map_err(|_| NoClasses::Degenerate)?;
        let params = KMedoidsModel::<Metric>::params_with(k, metric).effort(effort);
        let model = params.fit(&DatasetBase::from(records)).map_err(|_| NoClasses::Degenerate)?;
        let labels: Array1<usize> = model.predict(&records);
        Ok(Clustering {
            medoids: model.rows,
            labels: labels.to_vec(),
            deviation: model.deviation,
            unclassed: 0,
        })
    })
}

/// Parameters of [`KMedoidsModel`] that are not checked yet.
#[derive(Clone, Debug, PartialEq)]
pub struct KMedoidsParams<D>(KMedoidsValidParams<D>);

/// Parameters that can be used.
#[derive(Clone, Debug, PartialEq)]
pub struct KMedoidsValidParams<D> {
    k: usize,
    metric: D,
    effort: Effort,
}

/// Reason why there are no medoids.
#[derive(Debug)]
#[non_exhaustive]
pub enum KMedoidsError {
    /// No cluster was asked for.
    NoClusters,
    /// Samples of no point, or none of them.
    NoSample,
    /// There is no point.
    NoPoints,
    /// A number is none, or is infinite.
    NotFinite {
        /// Number of the point.
        row: usize,
        /// Number of the coordinate.
        column: usize,
    },
    /// linfa's own.
    Linfa(linfa::Error),
}

impl std::fmt::Display for KMedoidsError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoClusters => write!(f, "k is 0"),
            Self::NoSample => write!(f, "samples without a point"),
            Self::NoPoints => write!(f, "there is no point"),
            Self::NotFinite { row, column } => write!(f, "coordinate {column} of point {row} is not finite"),
            Self::Linfa(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for KMedoidsError {}

impl From<linfa::Error> for KMedoidsError {
    fn from(error: linfa::Error) -> Self {
        Self::Linfa(error)
    }
}

/// Medoids that were found, and their numbers among the points.
#[derive(Clone, Debug, PartialEq)]
pub struct KMedoidsModel<D> {
    medoids: Array2<f64>,
    rows: Vec<usize>,
    deviation: f64,
    metric: D,
}

impl KMedoidsModel<Metric> {
    /// Parameters for `k` clusters: Euclidean, BUILD, everything else as in [`Effort::default`].
    pub fn params(k: usize) -> KMedoidsParams<Metric> {
        Self::params_with(k, Metric::default())
    }
}

impl<D> KMedoidsModel<D> {
    /// Parameters for `k` clusters by `metric`.
    pub fn params_with<M>(k: usize, metric: M) -> KMedoidsParams<M> {
        KMedoidsParams(KMedoidsValidParams { k, metric, effort: Effort::default() })
    }

    /// The medoids, one a row. Fewer than were asked for where fewer points differ.
    pub fn medoids(&self) -> &Array2<f64> {
        &self.medoids
    }

    /// Numbers of the medoids among the points, ascending.
    pub fn rows(&self) -> &[usize] {
        &self.rows
    }

    /// Σ of the points' dissimilarities to their nearest medoids.
    pub fn deviation(&self) -> f64 {
        self.deviation
    }
}

impl<D> KMedoidsParams<D> {
    /// Search for the first medoids.
    pub fn initial(mut self, initial: Initial) -> Self {
        self.0.effort.initial = initial;
        self
    }

    /// Seed of samples and of LAB.
    pub fn seed(mut self, seed: u64) -> Self {
        self.0.effort.seed = seed;
        self
    }

    /// All the rest.
    pub fn effort(mut self, effort: Effort) -> Self {
        self.0.effort = effort;
        self
    }
}

impl<D> ParamGuard for KMedoidsParams<D> {
    type Checked = KMedoidsValidParams<D>;
    type Error = KMedoidsError;

    fn check_ref(&self) -> Result<&Self::Checked, Self::Error> {
        match &self.0 {
            params if params.k == 0 => Err(KMedoidsError::NoClusters),
            params if params.effort.samples == 0 || params.effort.sample_points == 0 => {
                Err(KMedoidsError::NoSample)
            }
            params => Ok(params),
        }
    }

    fn check(self) -> Result<Self::Checked, Self::Error> {
        self.check_ref()?;
        Ok(self.0)
    }
}

impl<D: Dissimilarity + Clone, A: Data<Elem = f64>, T> Fit<ArrayBase<A, Ix2>, T, KMedoidsError>
    for KMedoidsValidParams<D>
{
    type Object = KMedoidsModel<D>;

    fn fit(&self, dataset: &DatasetBase<ArrayBase<A, Ix2>, T>) -> Result<Self::Object, KMedoidsError> {
        let records = &dataset.records;
        let wrong = records.indexed_iter().find(|(_, value)| !value.is_finite());
        if let Some(((row, column), _)) = wrong {
            return Err(KMedoidsError::NotFinite { row, column });
        }
        if records.nrows() == 0 {
            return Err(KMedoidsError::NoPoints);
        }
        // The order of iteration is that of rows, whatever the layout.
        let values = records.iter().copied().collect();
        let points = Points::new(records.nrows(), records.ncols(), values).expect("an array is full");
        let found = super::KMedoids::new(&points, self.metric.clone(), self.effort).clusters(self.k);
        Ok(KMedoidsModel {
            medoids: records.select(Axis(0), &found.medoids),
            rows: found.medoids,
            deviation: found.deviation,
            metric: self.metric.clone(),
        })
    }
}

impl<D: Dissimilarity, A: Data<Elem = f64>> PredictInplace<ArrayBase<A, Ix2>, Array1<usize>>
    for KMedoidsModel<D>
{
    fn predict_inplace(&self, points: &ArrayBase<A, Ix2>, labels: &mut Array1<usize>) {
        assert_eq!(points.nrows(), labels.len(), "a label per point");
        for (point, label) in points.rows().into_iter().zip(labels) {
            *label = self.nearest(point.iter().copied().collect());
        }
    }

    fn default_target(&self, points: &ArrayBase<A, Ix2>) -> Array1<usize> {
        Array1::zeros(points.nrows())
    }
}

impl<D: Dissimilarity, A: Data<Elem = f64>> PredictInplace<ArrayBase<A, Ix1>, usize> for KMedoidsModel<D> {
    fn predict_inplace(&self, point: &ArrayBase<A, Ix1>, label: &mut usize) {
        *label = self.nearest(point.iter().copied().collect());
    }

    fn default_target(&self, _: &ArrayBase<A, Ix1>) -> usize {
        0
    }
}

impl<D: Dissimilarity> KMedoidsModel<D> {
    fn nearest(&self, point: Vec<f64>) -> usize {
        let width = self.medoids.ncols();
        // Made by `select`, it is in the order of rows.
        let values = self.medoids.as_slice().unwrap_or_default();
        let medoids = (0..self.medoids.nrows()).map(|row| &values[row * width..(row + 1) * width]);
        nearest(&point, medoids, &self.metric).0
    }
}
