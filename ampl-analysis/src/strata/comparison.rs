//! The same ranks by all methods, as names and numbers.

use ampl_core::cluster::NoClasses;
use ampl_core::cluster::methods::{Compared, Method};
use ampl_core::units::RankSet;
use serde::Serialize;

use super::found::finite;
use super::ranks_of;

/// The strata of one method. Sizes are as in [`super::Found`].
#[derive(Debug, Serialize)]
pub struct ComparedFound {
    /// The method.
    pub method: Method,
    /// Strata; 1 where more do not pay.
    pub k: usize,
    /// Share of the ranks that they save against a single stratum; 0 for one.
    pub gain: f64,
    /// Ranks to be drawn with these strata.
    pub size: f64,
    /// Ratio of the variance between strata to that within them; none for one stratum.
    pub f: Option<f64>,
    /// linfa's, in [−1, 1]; none for one stratum.
    pub silhouette: Option<f64>,
    /// Adjusted Rand index with the strata of k-medoids.
    pub agreement: f64,
    /// Ranks that the method has put into no class; they are in the stratum of the nearest medoid.
    pub unclassed: usize,
    /// Ranks that classes were made of; the others joined the nearest medoid.
    pub clustered: usize,
    /// Ranks of every stratum, as a job file has them.
    pub strata: Vec<String>,
    /// Every number of strata that was tried and priced.
    pub tried: Vec<Priced>,
    /// Numbers of strata for which the method has found no classes.
    pub failed: Vec<Failed>,
}

/// Cost of one number of strata.
#[derive(Debug, Serialize)]
pub struct Priced {
    /// Strata.
    pub k: usize,
    /// Ranks to be drawn.
    pub size: f64,
    /// Share of the ranks that they save against a single stratum.
    pub gain: f64,
}

/// A number of strata without classes.
#[derive(Debug, Serialize)]
pub struct Failed {
    /// Strata asked for.
    pub k: usize,
    /// Reason.
    pub why: NoClasses,
}

impl ComparedFound {
    /// The strata of `compared`; `members` are the numbers of the ranks.
    pub(super) fn of(compared: &Compared, members: &[u32]) -> Self {
        let Compared { method, choice, silhouette, agreement, clustered } = compared;
        let found = choice.strata();
        let priced = choice.tried.iter();
        let failed = choice.failed.iter();
        Self {
            method: *method,
            k: found.k,
            gain: found.gain,
            size: found.price.size,
            f: finite(found.price.f),
            silhouette: *silhouette,
            agreement: *agreement,
            unclassed: found.unclassed,
            clustered: *clustered,
            strata: ranks_of(members, found).iter().map(RankSet::to_string).collect(),
            tried: priced
                .map(|tried| Priced { k: tried.k, size: tried.price.size, gain: tried.gain })
                .collect(),
            failed: failed.map(|&(k, why)| Failed { k, why }).collect(),
        }
    }
}
