//! A job's configuration: every setting, its default, and what makes it wrong.
//!
//! [`Config::parse`] is the one place where text becomes settings; the command line's
//! `--set KEY=VALUE` edits the text before it is parsed.

mod edit;
mod error;
pub mod keys;
mod marker;
mod parse;
mod rules;
pub mod site;
mod tree;
mod write;

pub use edit::table_path;
pub use error::{Cause, ConfigError, ConfigErrors, Notice};

use crate::units::RankSet;

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
    /// `[trace]`
    pub trace: Trace,
    /// `[output]`
    pub output: Output,
    /// `[agent]`
    pub agent: Agent,
}

/// `[sampling]`: how the client decides.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampling {
    /// Windows between two directives, at least 1.
    pub windows_per_update: u32,
    /// Who is drawn, and how often.
    pub update_mechanism: Mechanism,
    /// Whose summaries reach the client.
    pub summaries: Summaries,
    /// When the client decides about a window.
    pub selection: Selection,
    /// Which formula prices the sample.
    pub sizing: Sizing,
    /// Fewest ranks that a bound may ask for; `None` for the formula's own floor.
    pub floor: Option<u32>,
    /// Seed of every random choice.
    pub seed: u64,
}

/// How a sample of a given size is drawn (AMPL 2008, §3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// Exactly m ranks, kept until the next update.
    Subset,
    /// Every rank keeps each window with probability m/M.
    Global,
}

/// Whose window summaries reach the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Summaries {
    /// Every rank's.
    Census,
    /// The sampled ranks' only (AMPL 2008).
    Sampled,
}

/// When the decision about a window is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// Before the window, from earlier ones.
    Predictive,
    /// After the window, from the window itself.
    Retrospective,
}

/// Which formula prices a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizing {
    /// Cochran 1977 §5.5, with the margins of STATISTICS §2.
    Neyman,
    /// Equation (8) of AMPL 2008, corrected.
    Ampl2008,
}

/// `[window]`: what delimits windows.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// What closes a window.
    pub marker: Marker,
    /// Markers per window, at least 1.
    pub every: u32,
}

/// What closes a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Marker {
    /// Entry of an MPI function, optionally at one call site (`mpi:FUNCTION@SITE`).
    Mpi {
        /// C-cased name.
        function: String,
        /// `file:line` or `module+0xoffset`.
        site: Option<String>,
    },
    /// Multiples of a wall-clock period on the aligned clock, in nanoseconds.
    Period(u64),
}

/// `[[metric]]`: one measured quantity over one kind of event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metric {
    /// What is measured.
    pub quantity: Quantity,
    /// Over which events.
    pub event: Event,
    /// Whether its bound sizes the sample.
    pub guide: bool,
}

impl Metric {
    /// The metric's name as in configuration and output, `mpi.time`.
    pub fn name(&self) -> &'static str {
        self.quantity.name()
    }
}

/// A quantity measured without the program's help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Quantity {
    /// Wall-clock time, nanoseconds.
    Wall,
    /// Time inside MPI, nanoseconds.
    MpiTime,
    /// Time outside MPI, nanoseconds.
    ComputeTime,
    /// Bytes sent.
    BytesSent,
    /// Bytes received.
    BytesReceived,
    /// MPI calls.
    Calls,
}

impl Quantity {
    /// Every built-in quantity, in the order of summaries.
    pub const ALL: [Self; 6] =
        [Self::Wall, Self::MpiTime, Self::ComputeTime, Self::BytesSent, Self::BytesReceived, Self::Calls];

    /// The name in configuration and output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Wall => "wall",
            Self::MpiTime => "mpi.time",
            Self::ComputeTime => "compute.time",
            Self::BytesSent => "bytes.sent",
            Self::BytesReceived => "bytes.received",
            Self::Calls => "calls",
        }
    }

    /// The quantity of that name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|quantity| quantity.name() == name)
    }
}

/// Which events a metric observes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// `"*"`: the whole window, one observation per rank.
    Window,
    /// Every call of one MPI function (C-cased name), one observation per call.
    Function(String),
}

impl Event {
    /// The event as in configuration and output.
    pub fn name(&self) -> &str {
        match self {
            Self::Window => "*",
            Self::Function(name) => name,
        }
    }
}

/// `[[group]]`: ranks sampled for a common bound.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Name, unique in the file.
    pub name: String,
    /// Its ranks; disjoint from every other group's.
    pub members: RankSet,
    /// How its sample is sized.
    pub target: Target,
    /// Ranks always kept, a subset of `members`.
    pub pinned: RankSet,
}

/// How a group's sample is sized.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target {
    /// For a confidence and an error bound.
    Bound {
        /// In (0, 1).
        confidence: f64,
        /// Half-width of the interval.
        error: ErrorBound,
    },
    /// Exactly that many ranks, pinned ones included.
    Static {
        /// At least 1.
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

/// The bound of the group `all` and of groups that name none: 90 % confidence, 8 % error.
pub const DEFAULT_TARGET: Target = Target::Bound { confidence: 0.90, error: ErrorBound::Relative(0.08) };

/// `[trace]`: what is stored of kept windows.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// Of which windows calls are stored.
    pub timing: Keep,
    /// Whether call sites are stored with calls.
    pub call_sites: bool,
}

/// Of which windows something is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Sampled rank-windows.
    Kept,
    /// Every rank-window.
    All,
    /// None.
    Off,
}

/// `[output]`: where files go.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// Template of the run directory; `{app}`, `{jobid}` and `{time}` are replaced.
    pub dir: String,
    /// Where journals live until they are merged.
    pub journal: Journal,
}

/// Where per-rank journals live until they are merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Journal {
    /// Memory-backed file system of the node.
    Node,
    /// In the run directory.
    Run,
    /// In this directory.
    Path(String),
}

/// `[agent]`: what the agent may cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Agent {
    /// Share of the job's time, in (0, 1). Reported against, in this version; not enforced.
    pub max_overhead: f64,
}

impl Default for Config {
    fn default() -> Self {
        let guide = |quantity| Metric { quantity, event: Event::Window, guide: true };
        Self {
            sampling: Sampling {
                windows_per_update: 4,
                update_mechanism: Mechanism::Subset,
                summaries: Summaries::Census,
                selection: Selection::Predictive,
                sizing: Sizing::Neyman,
                floor: None,
                seed: 42,
            },
            window: Window { marker: Marker::Period(250_000_000), every: 1 },
            metrics: vec![guide(Quantity::MpiTime), guide(Quantity::ComputeTime)],
            groups: Vec::new(),
            trace: Trace { timing: Keep::Kept, call_sites: true },
            output: Output { dir: "ampl-{app}-{jobid}-{time}".into(), journal: Journal::Node },
            agent: Agent { max_overhead: 0.01 },
        }
    }
}
