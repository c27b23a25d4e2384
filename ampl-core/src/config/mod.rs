//! A job's configuration: every setting, its default, and what makes it wrong.
//!
//! [`Config::parse`] is the one place where text becomes settings; the command line's
//! `--set KEY=VALUE` edits the text before it is parsed.

#[cfg(feature = "edit")]
mod edit;
mod error;
mod form;
mod fraction;
pub mod keys;
#[cfg(feature = "edit")]
mod layers;
mod marker;
mod metric;
mod parse;
pub mod perf;
mod policy;
mod program_pattern;
mod region_filter;
mod rules;
mod schema;
pub mod site;
mod sites;
mod text;
mod tree;
mod write;

#[cfg(feature = "edit")]
pub use edit::table_path;
pub use error::{Cause, ConfigError, ConfigErrors, Notice};
pub use fraction::fraction;
#[cfg(feature = "edit")]
pub use layers::{Setting, SiteLayer, keys_in};
pub use marker::nanoseconds;
pub use metric::{Event, Metric, Quantity};
pub use policy::{SiteMatch, SitePolicy, SiteTrace};
pub use program_pattern::ProgramPattern;
pub use region_filter::RegionFilter;
pub use schema::{Agent, Hooks, Output, Sampling, Trace, Window};
pub use sites::SitesFault;
pub use text::{LONGEST, split_origin, text, with_origin};
pub use write::quoted;

use serde::{Deserialize, Serialize};

use crate::units::RankSet;
use site::Site;

/// Everything a user may set in `JOB.toml`. [`Config::default`] is what an empty file means.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// `[sampling]`
    pub sampling: Sampling,
    /// `[window]`
    pub window: Window,
    /// `[[metric]]`, in the order of the file; never empty.
    pub metrics: Vec<Metric>,
    /// `[[group]]`, in the order of the file. Ranks in no group form the group `all`.
    pub groups: Vec<Group>,
    /// Groups that are to be divided into strata, and how.
    pub strata: Vec<GroupStrata>,
    /// Names of groups that are not to be divided (`stratify = "off"`).
    pub whole: Vec<String>,
    /// `[[site]]`, in the order of the file; the first that matches a call decides.
    pub sites: Vec<SitePolicy>,
    /// `[trace]`
    pub trace: Trace,
    /// `[output]`
    pub output: Output,
    /// `[agent]`
    pub agent: Agent,
    /// `[hooks]`
    pub hooks: Hooks,
}

/// Method of drawing a sample of a given size (AMPL 2008, §3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mechanism {
    /// Exactly m ranks, kept until the next update.
    #[default]
    Subset,
    /// Every rank keeps each window with probability m/M.
    Global,
}

impl Mechanism {
    /// The name in configuration and output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Subset => "subset",
            Self::Global => "global",
        }
    }
}

/// Ranks whose window summaries reach the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Summaries {
    /// Every rank's.
    Census,
    /// The sampled ranks' only (AMPL 2008).
    Sampled,
}

/// Time of the decision about a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Selection {
    /// Before the window, from earlier ones.
    Predictive,
    /// After the window, from the window itself.
    Retrospective,
}

/// Formula that prices a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizing {
    /// Cochran 1977 §5.5, with the margins of STATISTICS §2.
    Neyman,
    /// Equation (8) of AMPL 2008, corrected.
    Ampl2008,
}

/// Event that closes a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Marker {
    /// Entry of an MPI function, optionally at one call site (`mpi:FUNCTION@SITE`).
    Mpi {
        /// C-cased name.
        function: String,
        /// Call site; `None` for every site.
        site: Option<Site>,
    },
    /// Exit of the region of that name (`region:NAME`).
    Region(String),
    /// `MPI_Pcontrol` with a level other than 0 and 1.
    Pcontrol,
    /// Multiples of a wall-clock period on the aligned clock, in nanoseconds.
    Period(u64),
    /// The program's own time step, once it is found; [`Marker::AUTO_PERIOD_NS`] until then.
    Auto,
}

impl Marker {
    /// The period that stands in for a marker that cannot be had: the default one, 250 ms.
    pub const AUTO_PERIOD_NS: u64 = 250_000_000;

    /// The call site that it names, if any.
    pub fn site(&self) -> Option<&Site> {
        match self {
            Self::Mpi { site, .. } => site.as_ref(),
            _ => None,
        }
    }

    /// `true` if the clock ends windows, not the program; those of `auto` too, as long as no time step is found.
    pub fn is_clock(&self) -> bool {
        matches!(self, Self::Period(_) | Self::Auto)
    }
}

/// `[[group]]`: ranks sampled for a common bound.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Name, unique in the file.
    pub name: String,
    /// Ranks of the group, disjoint from every other group's.
    pub members: Members,
    /// Size of its sample, or the bound that asks for it.
    pub target: Target,
    /// Ranks always kept, a subset of `members`.
    pub pinned: RankSet,
}

/// Ranks of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Members {
    /// Listed ranks, as far as the job has them.
    Listed(RankSet),
    /// Ranks that run a program of such a name, as far as no other group lists them or comes first.
    Program(ProgramPattern),
    /// Every rank in no other group.
    Others,
}

impl Members {
    /// The ranks that are listed, where they are.
    pub fn listed(&self) -> Option<&RankSet> {
        match self {
            Self::Listed(listed) => Some(listed),
            Self::Program(_) | Self::Others => None,
        }
    }
}

impl std::fmt::Display for Members {
    /// As in a job file.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Listed(listed) => listed.fmt(f),
            Self::Program(pattern) => pattern.fmt(f),
            Self::Others => f.write_str("*"),
        }
    }
}

impl From<RankSet> for Members {
    fn from(listed: RankSet) -> Self {
        Self::Listed(listed)
    }
}

/// `group.stratify = "k-medoids"`: a group that is to be divided into strata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupStrata {
    /// The group's name.
    pub group: String,
    /// Number of strata, from 1 to 8; `None` for as many as pay.
    pub k: Option<u32>,
}

/// Size of a group's sample, or the bound that asks for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target {
    /// For a confidence and an error bound.
    Bound {
        /// Confidence, in (0, 1).
        confidence: f64,
        /// Half-width of the interval.
        error: ErrorBound,
    },
    /// Exactly that many ranks, pinned ones included.
    Static {
        /// Size, at least 1.
        ranks: u32,
    },
}

/// Half-width of a confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ErrorBound {
    /// Relative to the mean, in (0, 1).
    Relative(f64),
    /// In the metric's unit, positive.
    Absolute(f64),
}

/// The group of the ranks that are in no configured one. A configured group of that name has these ranks, too.
pub const UNGROUPED: &str = "all";

/// The bound of the group `all` and of groups that name none: 90 % confidence, 8 % error.
pub const DEFAULT_TARGET: Target = Target::Bound { confidence: DEFAULT_BOUND.0, error: DEFAULT_BOUND.1 };

/// Confidence and half-width of [`DEFAULT_TARGET`].
const DEFAULT_BOUND: (f64, ErrorBound) = (0.90, ErrorBound::Relative(0.08));

/// Most metrics of a configuration.
pub const MOST_METRICS: usize = 1024;

/// Most strata of a group; ranks that are kept in full are none.
pub const MOST_STRATA: usize = 8;

/// Most frames of a call path.
pub const MOST_FRAMES: u32 = 64;

/// Windows of which something is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Sampled rank-windows.
    Kept,
    /// Every rank-window.
    All,
    /// No rank-window.
    Off,
}

/// Ranks whose window vectors are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RankSummaries {
    /// Every rank's.
    All,
    /// The sampled ranks'.
    Sample,
    /// No rank's.
    Off,
}

/// Words of the program's command line that are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arguments {
    /// All of them, with the hashes of files that they name.
    All,
    /// The program's name.
    Program,
    /// No word.
    Off,
}

impl Arguments {
    /// The words of `command` that are stored.
    pub fn of(self, mut command: Vec<String>) -> Vec<String> {
        command.truncate(match self {
            Self::All => usize::MAX,
            Self::Program => 1,
            Self::Off => 0,
        });
        command
    }
}

/// Place of per-rank journals until they are merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Journal {
    /// Memory-backed file system of the node.
    Node,
    /// In the run directory.
    Run,
    /// In this directory.
    Path(String),
    /// In memory that goes with the process.
    Off,
}

impl Journal {
    /// The place as in configuration.
    pub fn name(&self) -> &str {
        match self {
            Self::Node => "node",
            Self::Run => "run",
            Self::Off => "off",
            Self::Path(path) => path,
        }
    }
}

impl Config {
    /// Stratification that is asked for the group of that name, if any.
    pub fn divides(&self, group: &str) -> Option<&GroupStrata> {
        self.strata.iter().find(|strata| strata.group == group)
    }

    /// `true` if the times of all calls are stored, whichever ranks are sampled: decisions are only marked then.
    pub fn stores_everything(&self) -> bool {
        match self.trace.stored() {
            Keep::Kept => self.output.verify,
            stored => stored == Keep::All,
        }
    }

    /// Share of the job's time that the agent may take. Where it is not set: 1 %, or no limit (`None`) if everything is
    /// recorded.
    pub fn max_overhead(&self) -> Option<f64> {
        self.agent.max_overhead.or((!self.stores_everything()).then_some(0.01))
    }
}

impl Trace {
    /// Windows of which times are stored, all settings together.
    pub fn stored(&self) -> Keep {
        if self.structure == Keep::Off { Keep::Off } else { self.timing }
    }
}

impl Default for Config {
    fn default() -> Self {
        let guide = |quantity| Metric { quantity, event: Event::Window, guide: true, optional: false };
        Self {
            sampling: Sampling::default(),
            window: Window::default(),
            metrics: vec![guide(Quantity::MpiTime), guide(Quantity::ComputeTime)],
            groups: Vec::new(),
            strata: Vec::new(),
            whole: Vec::new(),
            sites: Vec::new(),
            trace: Trace::default(),
            output: Output::default(),
            agent: Agent::default(),
            hooks: Hooks::default(),
        }
    }
}
