//! The record of one decision.

use serde::{Deserialize, Serialize};

use crate::config::{Mechanism, Selection};

/// Number of ranks of a stratum that keep their windows in an update interval, or one window, and the reason.
///
/// Serialised, it is one element of what `ampl decisions --json` prints.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// Update interval it is for.
    pub update: u64,
    /// First window it applies to.
    pub window: u64,
    /// Name of the group.
    pub group: String,
    /// Stratum of the group.
    pub stratum: u16,
    /// Method by which they are drawn.
    pub mechanism: Mechanism,
    /// M: ranks of the stratum, pinned ones included.
    pub population: u64,
    /// Fewest ranks whose census or sample entered, over the windows it was decided from; the
    /// population where nothing had to be known.
    pub reported: u64,
    /// `true` if a window it was decided from was passed on before every rank had reported, or if a rank could not bin
    /// itself in time for a retrospective decision.
    pub late: bool,
    /// m: ranks kept, pinned ones included; the expected number under `global`.
    pub size: u32,
    /// Inclusion probability of a rank that is not pinned.
    pub probability: f64,
    /// The guide that asked for the most ranks, the first one before anything was observed; none for a
    /// static size.
    pub guide: Option<String>,
    /// Version of the policy: the number of directives before this one.
    pub policy: u32,
    /// The guide's event, as in configuration: `*` or an MPI function.
    #[serde(default)]
    pub event: Option<String>,
    /// The guide's mean in the last window (`ampl-2008`: interval), in its unit per observation.
    #[serde(default)]
    pub mean: Option<f64>,
    /// S² that the size was priced for: of the ranks not pinned, safety margins included; without
    /// a unit for relative bounds, in the guide's unit squared for absolute ones.
    #[serde(default)]
    pub variance: Option<f64>,
    /// The error bound asked for: relative, or in the guide's unit.
    #[serde(default)]
    pub error_required: Option<f64>,
    /// The error bound that this size attains if the variance is as priced; none if unbounded.
    #[serde(default)]
    pub error_attained: Option<f64>,
    /// Limit that kept the size below what the bound asks for.
    #[serde(default)]
    pub limit: Option<DecisionLimit>,
    /// Windows it was decided from that were merged with others because they had to wait on the way. Which ones, and so
    /// the decision, may differ in another run.
    #[serde(default)]
    pub merged_windows: u64,
    /// Predictive: for the windows of an update interval to come, from those before. Retrospective: for the
    /// one window that it was decided from; there is a row per stratum then, numbered from 1, and stratum 0
    /// has the ranks that are kept in full, pinned ones among them, and those that did not report: populations add
    /// up to the group's.
    #[serde(default)]
    pub selection: Option<Selection>,
}

/// Limit of the size of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DecisionLimit {
    /// `sampling.budget`.
    Budget,
}

impl DecisionLimit {
    /// The name in output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Budget => "budget",
        }
    }
}
