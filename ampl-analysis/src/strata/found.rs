//! Strata that were found, as names and numbers.

use ampl_core::cluster::methods::Method;
use ampl_core::config::ErrorBound;
use serde::Serialize;

use super::{ComparedFound, Stratification};

/// Strata that were found. Sizes are numbers of ranks to be drawn of a window, mean over windows that strata were not
/// found on, before floors and rounding.
#[derive(Debug, Serialize)]
pub struct Found {
    /// Strata.
    pub k: usize,
    /// Share of the ranks that they save against a single stratum; 0 for one.
    pub gain: f64,
    /// The strata, in the order of their smallest ranks.
    pub strata: Vec<StratumFound>,
    /// The group that was divided.
    pub group: String,
    /// Its ranks.
    pub population: usize,
    /// Windows with an observation.
    pub windows: usize,
    /// Metrics that ranks were clustered by.
    pub metrics: Vec<String>,
    /// The bound that samples are priced for.
    pub confidence: f64,
    /// Its half-width, relative to the mean; none where it is in the metric's unit.
    pub error: Option<f64>,
    /// Its half-width in the metric's unit.
    pub error_abs: Option<f64>,
    /// Clustering method.
    pub method: Method,
    /// Ranks to be drawn with these strata.
    pub size: f64,
    /// Ratio of the variance between strata to that within them; none for one stratum.
    pub f: Option<f64>,
    /// Every number of strata that was tried.
    pub tried: Vec<TriedFound>,
    /// The same ranks by all methods, where that is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compare: Option<Vec<ComparedFound>>,
}

/// One stratum.
#[derive(Debug, Serialize)]
pub struct StratumFound {
    /// Its name.
    pub name: String,
    /// The rank in the middle.
    pub medoid: Option<u32>,
    /// Its ranks, as a job file has them.
    pub ranks: String,
    /// Number of ranks.
    pub population: u64,
    /// Ranks to be drawn.
    pub size: f64,
}

/// One number of strata.
#[derive(Debug, Serialize)]
pub struct TriedFound {
    /// Strata.
    pub k: usize,
    /// Ranks to be drawn.
    pub size: f64,
    /// Share of the ranks that they save against a single stratum.
    pub gain: f64,
    /// Ratio of the variance between strata to that within them; none for one stratum.
    pub f: Option<f64>,
    /// linfa's, in [−1, 1].
    pub silhouette: Option<f64>,
}

impl Found {
    /// The strata of `division`.
    pub fn of(division: &Stratification) -> Self {
        let chosen = division.choice.strata();
        let strata = division.strata.iter().map(|stratum| StratumFound {
            name: stratum.name.clone(),
            medoid: stratum.medoid,
            ranks: stratum.ranks.to_string(),
            population: stratum.ranks.len(),
            size: stratum.size,
        });
        let tried = division.choice.tried.iter().zip(&division.silhouettes);
        let (error, error_abs) = match division.error {
            ErrorBound::Relative(error) => (Some(error), None),
            ErrorBound::Absolute(error) => (None, Some(error)),
        };
        Self {
            k: chosen.k,
            gain: chosen.gain,
            strata: strata.collect(),
            group: division.plan.groups[division.group].name.clone(),
            population: division.members.len(),
            windows: division.windows,
            metrics: division.guides.clone(),
            confidence: division.confidence,
            error,
            error_abs,
            method: division.method,
            size: chosen.price.size,
            f: finite(chosen.price.f),
            tried: tried
                .map(|(tried, &silhouette)| TriedFound {
                    k: tried.k,
                    size: tried.price.size,
                    gain: tried.gain,
                    f: finite(tried.price.f),
                    silhouette,
                })
                .collect(),
            compare: division.compared.as_ref().map(|compared| {
                compared.iter().map(|compared| ComparedFound::of(compared, &division.members)).collect()
            }),
        }
    }
}

/// JSON has no infinity: classes without any difference inside have no ratio.
pub(super) fn finite(f: Option<f64>) -> Option<f64> {
    f.filter(|f| f.is_finite())
}
