//! A finding: its kind, numbers, and what they rest on.

use ampl_core::units::RankSet;

use super::senders::Senders;
use super::steps::InTurn;
use crate::coverage::Coverage;
use crate::efficiency::{self, Bound};
use crate::processors::Sharing;
use crate::stop::Stop;

/// Cause of lost time, or a fact that limits what other numbers say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Ranks have less than a processor each.
    SharedProcessors,
    /// A library that computes on a device is mapped.
    Device,
    /// Calls had not returned when the run ended.
    Unreturned,
    /// Too little was measured for any other finding.
    NotMeasured,
    /// Ranks that compute more than the others throughout.
    SlowRank,
    /// All ranks of a host do.
    SlowHost,
    /// A stratum of ranks does: a configured group, or ranks that are apart from all others.
    SlowStratum,
    /// Other ranks compute more in each window.
    Turns,
    /// Ranks that compute more change slowly.
    MovingImbalance,
    /// A program of several computes most, and the others have time to spare.
    BusiestProgram,
    /// Ranks compute unequally, and there are too few of them or too few windows to name any.
    Imbalance,
    /// Ranks wait for a rank that comes late to a call, though it does not compute more.
    LateRank,
    /// Ranks wait for messages of others, which do not wait as long and do not compute more.
    LateSender,
    /// Ranks wait in calls far longer than these take, and none of them computes more.
    Waiting,
    /// Ranks compute one after another.
    Pipeline,
    /// Messages take the time that computing leaves, and nothing else explains it.
    Transfer,
    /// Many messages of few bytes.
    SmallMessages,
    /// Collective calls take the time themselves.
    Collectives,
    /// Calls that ask whether something has arrived.
    Polling,
    /// Calls on files.
    Files,
    /// One-sided calls.
    OneSided,
    /// The part before the repeated one.
    StartUp,
    /// The part behind it.
    WindDown,
    /// The share that computes changes at some window.
    Change,
    /// No cause takes enough time to be named.
    Nothing,
}

impl Kind {
    /// Name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::SharedProcessors => "shared-processors",
            Self::Device => "device",
            Self::Unreturned => "unreturned",
            Self::NotMeasured => "not-measured",
            Self::SlowRank => "slow-rank",
            Self::SlowHost => "slow-host",
            Self::SlowStratum => "slow-stratum",
            Self::Turns => "turns",
            Self::MovingImbalance => "moving-imbalance",
            Self::BusiestProgram => "busiest-program",
            Self::Imbalance => "imbalance",
            Self::LateRank => "late-rank",
            Self::LateSender => "late-sender",
            Self::Waiting => "waiting",
            Self::Pipeline => "pipeline",
            Self::Transfer => "transfer",
            Self::SmallMessages => "small-messages",
            Self::Collectives => "collectives",
            Self::Polling => "polling",
            Self::Files => "files",
            Self::OneSided => "one-sided",
            Self::StartUp => "start-up",
            Self::WindDown => "wind-down",
            Self::Change => "change",
            Self::Nothing => "nothing",
        }
    }
}

/// Data that a finding rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// Window summaries of all ranks.
    Census,
    /// Totals by function or call site of all ranks.
    Totals,
    /// Windows that all ranks measured.
    Measured,
    /// Facts about the job, as they were recorded.
    Recorded,
}

impl Basis {
    /// Name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Census => "census",
            Self::Totals => "totals",
            Self::Measured => "measured",
            Self::Recorded => "recorded",
        }
    }
}

impl From<efficiency::Basis> for Basis {
    fn from(basis: efficiency::Basis) -> Self {
        match basis {
            efficiency::Basis::Census => Self::Census,
            efficiency::Basis::Totals => Self::Totals,
            efficiency::Basis::Measured | efficiency::Basis::Sampled => Self::Measured,
        }
    }
}

/// The command that examines a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// `ampl info`.
    Info,
    /// `ampl info --calls`.
    Calls,
    /// `ampl efficiency`.
    Efficiency,
    /// `ampl strata`.
    Strata,
}

/// A call site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The function called there.
    pub function: &'static str,
    /// `file:line` or `module+0xoffset`; none where sites were not told apart.
    pub site: Option<String>,
    /// The function around it, where the line is not known.
    pub within: Option<String>,
}

/// Reason why ranks are not compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unranked {
    /// The job has so few.
    FewRanks(u32),
    /// There are so few windows.
    FewWindows(u64),
    /// The system gave the processor to others often.
    Disturbed,
}

/// Evidence beyond the totals of calls.
#[derive(Clone, Debug, PartialEq)]
pub enum Detail {
    /// Other ranks compute longest in each step, by kept times.
    InTurn(InTurn),
    /// Mean duration of a call at the place in the first quarter of the kept times and in the last, nanoseconds.
    Growth([f64; 2]),
    /// Time between failed polls that follow each other, over the ranks' time: it counts as computing. By kept times.
    BetweenPolls(f64),
    /// Ranks that wait, and those that their receives name.
    Senders(Senders),
}

/// Numbers of a finding.
#[derive(Clone, Debug, PartialEq)]
pub enum Evidence {
    /// Ranks that share processors.
    Shared(Sharing),
    /// File names of the libraries.
    Device {
        /// The names.
        libraries: Vec<String>,
    },
    /// Ranks in a call that had not returned.
    Unreturned {
        /// The ranks in it.
        waiting: RankSet,
        /// The longest time in it until the end, nanoseconds.
        longest_ns: f64,
        /// True where that is an upper limit.
        at_most: bool,
        /// True where the run may go on: the end is when it was read.
        is_now: bool,
        /// True where the cost is a share of the time of the ranks' threads, of which some rank has several.
        of_threads: bool,
        /// The ranks that it stopped at.
        stop: Option<Stop>,
    },
    /// Part of the run that was measured.
    NotMeasured(Coverage),
    /// Ranks that compute more throughout.
    Slow {
        /// [`Kind::SlowRank`], [`Kind::SlowHost`] or [`Kind::SlowStratum`].
        kind: Kind,
        /// Name of the configured group that these ranks are.
        group: Option<String>,
        /// Their mean compute time over that of all ranks.
        over_mean: f64,
        /// Windows in which each of them, or their host, computes more than the mean, and windows of the run.
        windows: [u64; 2],
        /// First and last window of the part of the run in which they do, where it is not all of it; `over_mean` is of
        /// that part, then.
        phase: Option<[u64; 2]>,
        /// True where they do so now and then.
        recurs: bool,
        /// How near the cost is to the truth.
        bound: Bound,
        /// The rank that computes least, and its compute time over the mean, where most ranks are among the slow.
        least: Option<(u32, f64)>,
    },
    /// Ranks that compute more in turns, or for some time each.
    Moving {
        /// True where those of a window are mostly those of the next.
        is_slow: bool,
        /// Mean over windows of the greatest compute time over the mean.
        in_window: f64,
        /// The same of the run.
        in_run: f64,
        /// Windows compared.
        windows: u64,
        /// How near the cost is to the truth.
        bound: Bound,
    },
    /// Programs of a job of several.
    Programs {
        /// The program that computes most, and the share of its time for which its busiest rank does.
        most: (String, f64),
        /// The others.
        others: Vec<(String, f64)>,
    },
    /// Ranks that compute unequally.
    Unequal {
        /// The greatest compute time over the mean.
        over_mean: f64,
        /// Reason why no rank is named.
        why: Unranked,
        /// How near the cost is to the truth.
        bound: Bound,
    },
    /// Calls that take the time.
    Calls {
        /// Any kind of calls.
        kind: Kind,
        /// Number of calls.
        calls: u64,
        /// Time in them over the ranks' time, in [0, 1].
        share: f64,
        /// The mean time of a call, nanoseconds.
        mean_ns: f64,
        /// The shortest call at the site, and the mean there, nanoseconds.
        at_site_ns: Option<[f64; 2]>,
        /// Mean bytes of a message or of a call; none where no bytes are known.
        bytes: Option<f64>,
        /// Calls, or messages, of a rank in a second.
        per_second: f64,
        /// The rank with the most time in them, and its share of the run.
        worst: Option<(u32, f64)>,
        /// Ranks that compute at a time, the mean.
        computing: f64,
        /// Evidence beyond the totals.
        detail: Option<Detail>,
    },
    /// Polls that were mostly counted, and not timed.
    Counted {
        /// Number of calls.
        calls: u64,
        /// Calls of a rank in a second.
        per_second: f64,
    },
    /// A phase of the run.
    Phase {
        /// [`Kind::StartUp`] or [`Kind::WindDown`].
        kind: Kind,
        /// Mean time of a rank in it, nanoseconds.
        ns: f64,
        /// First and last window.
        windows: [u64; 2],
        /// Share of the ranks' time in it that is in MPI.
        mpi: Option<f64>,
        /// The function with the most time in it, and that time over all time in MPI there.
        top: Option<(&'static str, f64)>,
        /// Ranks that had come to `MPI_Finalize` when it began, where others had not.
        ended: RankSet,
    },
    /// A window from which on more or less computes.
    Change {
        /// The first window after the change.
        window: u64,
        /// Its beginning, nanoseconds since the start.
        at_ns: f64,
        /// Parallel efficiency before and after.
        parallel: [f64; 2],
    },
    /// No cause takes enough.
    Nothing {
        /// Share of the ranks' time that computes.
        parallel: f64,
        /// Share that imbalance takes.
        imbalance: Option<f64>,
        /// Share that MPI takes besides.
        mpi: Option<f64>,
        /// Reason why ranks were not compared.
        unranked: Option<Unranked>,
    },
}

/// A finding.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Time that it costs over the ranks' time, in [0, 1]; none for facts that cost no known time.
    pub cost_share: Option<f64>,
    /// The ranks that it names.
    pub ranks: Option<RankSet>,
    /// The hosts that it names.
    pub hosts: Vec<String>,
    /// The call where most of the waiting is, or that takes the time.
    pub place: Option<Place>,
    /// Its numbers.
    pub evidence: Evidence,
    /// Data that they rest on.
    pub basis: Basis,
    /// Share of the ranks' time that they rest on, in [0, 1].
    pub coverage: f64,
    /// The command that examines it.
    pub next: Next,
}

impl Finding {
    /// A finding that costs no known time and names no rank.
    pub fn new(evidence: Evidence, basis: Basis, next: Next) -> Self {
        let hosts = Vec::new();
        Self { cost_share: None, ranks: None, hosts, place: None, evidence, basis, coverage: 1.0, next }
    }

    /// Finding that ranks share processors.
    pub(super) fn shared(sharing: &Sharing) -> Self {
        let hosts = sharing.hosts.iter().map(|crowd| crowd.host.clone()).collect();
        let ranks = sharing.disturbed.as_ref().filter(|_| sharing.hosts.is_empty());
        let ranks = ranks.map(|disturbed| RankSet::range(disturbed.rank, disturbed.rank));
        let evidence = Evidence::Shared(sharing.clone());
        Self { hosts, ranks, ..Self::new(evidence, Basis::Recorded, Next::Efficiency) }
    }

    /// The finding with its cost, a share of the ranks' time.
    pub(super) fn costing(self, share: f64) -> Self {
        Self { cost_share: Some(share.clamp(0.0, 1.0)), ..self }
    }

    /// Its kind.
    pub fn kind(&self) -> Kind {
        match &self.evidence {
            Evidence::Shared(_) => Kind::SharedProcessors,
            Evidence::Device { .. } => Kind::Device,
            Evidence::Unreturned { .. } => Kind::Unreturned,
            Evidence::NotMeasured(_) => Kind::NotMeasured,
            Evidence::Slow { kind, .. } | Evidence::Calls { kind, .. } | Evidence::Phase { kind, .. } => {
                *kind
            }
            Evidence::Counted { .. } => Kind::Polling,
            Evidence::Moving { is_slow: true, .. } => Kind::MovingImbalance,
            Evidence::Moving { .. } => Kind::Turns,
            Evidence::Programs { .. } => Kind::BusiestProgram,
            Evidence::Unequal { .. } => Kind::Imbalance,
            Evidence::Change { .. } => Kind::Change,
            Evidence::Nothing { .. } => Kind::Nothing,
        }
    }
}
