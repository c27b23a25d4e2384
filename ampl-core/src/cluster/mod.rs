//! Classes of ranks that behave alike: dissimilarity, k-medoids, and how many strata pay.
//!
//! A rank is described by its local means, window after window, standardised ([`Vectors::features`]). [`KMedoids`]
//! finds classes of such vectors. [`choose()`] decides whether classes are worth a stratum each, and how many, by the
//! cost of samples on windows that were not clustered. [`propose`] does so for a job that has strata already, in steps
//! inside a running job ([`Proposing`]). Everything is a function of its arguments and a seed.
//!
//! [`estimator`] adapts the algorithm to `linfa`, and [`linfa_baselines`] puts linfa's own k-means, DBSCAN, Gaussian
//! mixture and silhouette beside it; [`methods`] compares them. They come with the feature `cluster`, which nothing that
//! runs inside a job enables.
//!
//! # Source
//! AMPL 2008 §2.3 and §4.7 for strata from k-medoids over vectors of local means; STATISTICS §5 for what k costs.

mod agreement;
mod choose;
mod clara;
mod distance;
#[cfg(feature = "cluster")]
pub mod estimator;
#[cfg(feature = "cluster")]
pub mod linfa_baselines;
#[cfg(feature = "cluster")]
pub mod methods;
mod online;
mod pam;
mod price;
mod stratum_bounds;
mod vectors;
mod work_budget;

pub use agreement::agreement;
pub use choose::{
    Choice, LEAST_GAIN, MOST_STRATA, NoClasses, Rule, Search, Tried, choose, k_medoids, numbered,
};
pub use clara::{Clustering, Effort, KMedoids, nearest};
pub use distance::{Dissimilarity, Distances, Metric, Points};
pub use online::{OnlineStratum, Proposal, Proposing, Strata, propose};
pub use pam::{Initial, Medoids, build, faster_pam, lab};
pub use price::{Aim, Price, price};
pub use stratum_bounds::{floor_of_each, target_of};
pub use vectors::{Features, Reference, Vectors};
pub use work_budget::Work;
