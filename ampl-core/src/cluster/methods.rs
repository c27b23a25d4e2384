//! Clustering methods side by side: each divides the same ranks, and its strata are priced on the same windows.

use serde::Serialize;

use super::estimator::search;
use super::linfa_baselines::{MIXTURE_COLUMNS, dbscan, k_means, mixture, silhouette};
use super::{Aim, Choice, Effort, Features, MOST_STRATA, Metric, Rule, Search, Vectors, agreement, choose};

/// Neighbours that make a rank a core point of a class.
const DBSCAN_NEIGHBOURS: usize = 4;

/// Clustering method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Medoids, with samples of the ranks where these are many ([`super::KMedoids`]); ampl's own.
    KMedoids,
    /// Means, by linfa.
    KMeans,
    /// Chains of close ranks, by linfa; it finds its own number of classes.
    Dbscan,
    /// Gaussians with full covariances, by linfa.
    GaussianMixture,
}

impl Method {
    /// All of them, ampl's own first.
    pub const ALL: [Self; 4] = [Self::KMedoids, Self::KMeans, Self::Dbscan, Self::GaussianMixture];

    /// The name on command lines.
    pub fn name(self) -> &'static str {
        match self {
            Self::KMedoids => "k-medoids",
            Self::KMeans => "k-means",
            Self::Dbscan => "dbscan",
            Self::GaussianMixture => "gaussian-mixture",
        }
    }

    /// The method of that name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }

    /// Strata of the ranks of `vectors`, priced for `aims` on windows that they were not found on: exactly `k`, or as many
    /// as pay.
    pub fn choose(
        self,
        vectors: &Vectors,
        aims: &[Aim],
        k: Option<usize>,
        metric: Metric,
        effort: Effort,
    ) -> Choice {
        let rule = match (self, k) {
            // DBSCAN runs once, and finds the number of classes itself.
            (Self::Dbscan, None) => Rule::Pays(2),
            (_, None) => Rule::Pays(MOST_STRATA),
            (_, Some(k)) => Rule::Exactly(k),
        };
        let by = |vectors: &Vectors| choose(vectors, aims, rule, |f| self.search(f, metric, effort));
        match self {
            // Its covariances grow with the square of what a rank is described by. Prices are the same.
            Self::GaussianMixture => by(&vectors.clone().sampled(vectors.population(), MIXTURE_COLUMNS)),
            _ => by(vectors),
        }
    }

    /// Finds classes for successive numbers of them.
    fn search(self, features: &Features, metric: Metric, effort: Effort) -> Search<'_> {
        let points = &features.points;
        match self {
            Self::KMedoids => search(features, metric, effort),
            Self::KMeans => Box::new(move |k| k_means(points, k, metric, effort)),
            Self::Dbscan => Box::new(move |k| match k {
                1 => k_means(points, 1, metric, effort),
                _ => dbscan(points, DBSCAN_NEIGHBOURS, metric, effort),
            }),
            Self::GaussianMixture => Box::new(move |k| mixture(points, k, metric, effort)),
        }
    }

    /// Ranks of `ranks` that classes are made of; the others join the nearest medoid.
    fn clustered(self, ranks: usize, effort: Effort) -> usize {
        let samples = if self == Self::KMedoids { effort.samples } else { 1 };
        if ranks > effort.all_up_to { ranks.min(samples * effort.sample_points) } else { ranks }
    }
}

/// The strata of one method.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// The method.
    pub method: Method,
    /// Every number of strata that was tried, and the one to be had.
    pub choice: Choice,
    /// linfa's silhouette of the strata to be had, in [−1, 1]; none for one stratum.
    pub silhouette: Option<f64>,
    /// Adjusted Rand index with the strata of k-medoids: 1 where they are the same.
    pub agreement: f64,
    /// Ranks that classes were made of; the others joined the nearest medoid.
    pub clustered: usize,
}

/// Strata of the same ranks by every method, k-medoids first: found on the same windows, priced on the same others, from
/// the same seed.
pub fn compare(
    vectors: &Vectors,
    aims: &[Aim],
    k: Option<usize>,
    metric: Metric,
    effort: Effort,
) -> Vec<Compared> {
    let (found_on, _) = vectors.halves();
    let points = vectors.features(&found_on).points;
    let mut reference = None;
    let by = |method: Method| {
        let choice = method.choose(vectors, aims, k, metric, effort);
        let labels = &choice.strata().labels;
        let agreement = agreement(labels, reference.get_or_insert_with(|| labels.clone()));
        let silhouette = silhouette(&points, labels, effort.seed);
        let clustered = method.clustered(vectors.ranks(), effort);
        Compared { method, choice, silhouette, agreement, clustered }
    };
    Method::ALL.into_iter().map(by).collect()
}
