//! Quantities that are compared, and the parts of a run that they are of.

use std::fmt;

/// Nature of a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Exact in each run: one run a side is enough.
    Structure,
    /// Different from run to run: it takes several.
    Time,
}

/// Unit of a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A number of things.
    Count,
    /// Bytes.
    Bytes,
    /// Nanoseconds.
    Nanoseconds,
    /// A share of one; its change is a difference.
    Fraction,
    /// A metric's own unit.
    Plain,
}

impl Unit {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Bytes => "B",
            Self::Nanoseconds => "ns",
            Self::Fraction => "fraction",
            Self::Plain => "metric",
        }
    }
}

/// A quantity of a run, or of a part of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RunQuantity {
    /// Calls of MPI functions, without those whose number depends on load.
    Calls,
    /// Bytes that calls send.
    BytesSent,
    /// Bytes that calls receive.
    BytesReceived,
    /// Messages between ranks.
    Messages,
    /// Bytes of messages between ranks.
    MessageBytes,
    /// Pairs of a sender and a receiver.
    Partners,
    /// Communicators that the program makes.
    Communicators,
    /// Iterations of the timestep loop.
    Steps,
    /// Ranks whose sequence of calls is another than in the first run of the base.
    Sequence,
    /// Time from `MPI_Init` to `MPI_Finalize` of the slowest rank.
    Elapsed,
    /// Time in MPI, mean over ranks.
    MpiTime,
    /// Time outside of MPI, mean over ranks.
    ComputeTime,
    /// Parallel efficiency.
    Parallel,
    /// Load balance.
    LoadBalance,
    /// Communication efficiency.
    Communication,
    /// A configured metric, mean over ranks.
    Metric(String),
}

impl RunQuantity {
    /// The quantities with names of their own.
    pub const NAMED: [Self; 15] = [
        Self::Calls,
        Self::BytesSent,
        Self::BytesReceived,
        Self::Messages,
        Self::MessageBytes,
        Self::Partners,
        Self::Communicators,
        Self::Steps,
        Self::Sequence,
        Self::Elapsed,
        Self::MpiTime,
        Self::ComputeTime,
        Self::Parallel,
        Self::LoadBalance,
        Self::Communication,
    ];

    /// Its name in rules, tables and JSON.
    pub fn name(&self) -> &str {
        match self {
            Self::Calls => "calls",
            Self::BytesSent => "bytes.sent",
            Self::BytesReceived => "bytes.received",
            Self::Messages => "messages",
            Self::MessageBytes => "messages.bytes",
            Self::Partners => "partners",
            Self::Communicators => "communicators",
            Self::Steps => "steps",
            Self::Sequence => "sequence",
            Self::Elapsed => "elapsed",
            Self::MpiTime => "mpi.time",
            Self::ComputeTime => "compute.time",
            Self::Parallel => "parallel",
            Self::LoadBalance => "load_balance",
            Self::Communication => "communication",
            Self::Metric(name) => name,
        }
    }

    /// The quantity of that name; names of no own are metrics'.
    pub fn by_name(name: &str) -> Self {
        let named = Self::NAMED.into_iter().find(|quantity| quantity.name() == name);
        named.unwrap_or_else(|| Self::Metric(name.to_owned()))
    }

    /// Its nature.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Calls | Self::BytesSent | Self::BytesReceived | Self::Messages | Self::MessageBytes => {
                Kind::Structure
            }
            Self::Partners | Self::Communicators | Self::Steps | Self::Sequence => Kind::Structure,
            _ => Kind::Time,
        }
    }

    /// Its unit.
    pub fn unit(&self) -> Unit {
        match self {
            Self::BytesSent | Self::BytesReceived | Self::MessageBytes => Unit::Bytes,
            Self::Elapsed | Self::MpiTime | Self::ComputeTime => Unit::Nanoseconds,
            Self::Parallel | Self::LoadBalance | Self::Communication => Unit::Fraction,
            Self::Metric(name) if name == "wall" || name.ends_with(".time") => Unit::Nanoseconds,
            Self::Metric(_) => Unit::Plain,
            _ => Unit::Count,
        }
    }
}

/// Part of a run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// All of it.
    Run,
    /// The calls of an MPI function.
    Function(String),
    /// The calls of a function at a place.
    Site {
        /// The function.
        function: String,
        /// The place, with its callers where they are told apart.
        place: String,
    },
    /// Ranks that behave alike: `0-3,8`.
    Stratum(String),
    /// A group of the job file.
    Group(String),
    /// A region of the program.
    Region(String),
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run => f.write_str("run"),
            Self::Function(name) => f.write_str(name),
            Self::Site { function, place } => write!(f, "{function}@{place}"),
            Self::Stratum(ranks) => write!(f, "stratum:{ranks}"),
            Self::Group(name) => write!(f, "group:{name}"),
            Self::Region(name) => write!(f, "region:{name}"),
        }
    }
}

/// A quantity of a part of a run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The part.
    pub scope: Scope,
    /// The quantity.
    pub what: RunQuantity,
}

impl Key {
    /// A quantity of the whole run.
    pub fn run(what: RunQuantity) -> Self {
        Self { scope: Scope::Run, what }
    }
}
