//! Waiting in MPI: who waits for whom, where, and for how long.
//!
//! Where times of both sides are kept, each wait is measured: in collectives that synchronise by durations alone, which
//! need no common clock; between sender and receiver, and with a root, by the clocks, less their error (the wait states
//! of Scalasca: Böhme et al., *Scalable Critical-Path Based Performance Analysis*, 2012, and *Identifying the Root
//! Causes of Wait States*, 2016). A wait that is caused by an earlier wait is charged to the cause of that. Elsewhere
//! the totals of all ranks tell: the rank that waits least and computes most.

mod between;
mod blame;
pub(crate) mod causes;
mod census;
mod compute;
mod ends;
mod kept;
pub(crate) mod places;
mod polls;

use std::collections::BTreeMap;

use ampl_core::mpi::{Class, FUNCTIONS, Function, FunctionSpec, Traffic};
use ampl_core::units::RankSet;
use ampl_reader::selection::Selection;
use ampl_reader::sites::Symbols;
use ampl_trace::Trace;
use ampl_trace::communicators::Communicators;
use serde::{Serialize, Serializer};

pub use between::Between;

use crate::in_call::unfinished_ns;
use crate::matching::{Job, Lost, Stop, play};

/// Kind of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub enum Kind {
    /// Ranks wait in a collective for the last to arrive.
    #[serde(rename = "last to arrive")]
    LastToArrive,
    /// Ranks wait for the root's data.
    #[serde(rename = "late root")]
    LateRoot,
    /// The root waits for the last of the others.
    #[serde(rename = "early root")]
    EarlyRoot,
    /// A receiver waits for the send.
    #[serde(rename = "late sender")]
    LateSender,
    /// A sender waits for the receive.
    #[serde(rename = "late receiver")]
    LateReceiver,
}

/// Ranks of one side, and the host that all of them are on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Party {
    /// The ranks; none where they are not known.
    #[serde(serialize_with = "as_text")]
    pub ranks: Option<RankSet>,
    /// Their host; none where they are on several, or not known.
    pub host: Option<String>,
}

fn as_text<S: Serializer>(ranks: &Option<RankSet>, serializer: S) -> Result<S::Ok, S::Error> {
    match ranks {
        Some(ranks) => serializer.collect_str(ranks),
        None => serializer.serialize_none(),
    }
}

/// Meaning of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Bound {
    /// The wait is as long, or longer.
    #[serde(rename = "at least")]
    AtLeast,
    /// It is as long.
    #[serde(rename = "exact")]
    Exact,
}

/// Data that a row rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// Totals of all ranks.
    Census,
    /// Kept times.
    Trace,
}

/// Settings that would tell the cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Needed {
    /// The times of both sides of messages.
    #[serde(rename = "sampling.partners = \"keep\", or trace.timing = \"all\"")]
    Partners,
    /// The times of all ranks.
    #[serde(rename = "trace.timing = \"all\"")]
    Times,
}

/// Waits at a call site that have one cause; the order of fields is part of the format.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Call site of the call that waits.
    pub site: Option<String>,
    /// Kind.
    pub kind: Kind,
    /// The ranks that wait.
    pub waiting: Party,
    /// The ranks that they wait for; none where no rank stands out, or it cannot be told.
    pub causing: Party,
    /// Messages or collectives with such a wait; of a census, calls.
    pub instances: u64,
    /// Time that is waited, nanoseconds, of all waiting ranks together.
    pub ns: u64,
    /// Meaning of `ns`.
    pub bound: Bound,
    /// Data that it rests on.
    pub basis: Basis,
    /// Function that waits.
    pub function: &'static str,
    /// Share of the time of the rank that waits longest.
    pub share: f64,
    /// Largest error of the clocks that has been taken off, nanoseconds; none where no clocks were compared.
    pub clock_error_ns: Option<u64>,
    /// Settings that would tell the cause; none where it is told, or no rank stands out.
    pub needed: Option<Needed>,
}

/// Waits of a run, and the rest of its time in MPI.
#[derive(Clone, Debug, Default)]
pub struct Waits {
    /// The rows, most time first.
    pub rows: Vec<Row>,
    /// Waits between the programs of a job of several, by the numbers of both.
    pub between: Vec<Between>,
    /// Time in MPI of all ranks, nanoseconds.
    pub mpi_ns: u64,
    /// Time of all threads in calls that had not returned, which is not in `mpi_ns`, nanoseconds.
    pub unreturned_ns: u64,
    /// The part that is known to be waiting: a lower bound.
    pub waiting_ns: u64,
    /// Functions that may wait, but in which no kind of wait is looked for, with all ranks' time in them, nanoseconds; most
    /// first.
    pub unexamined: Vec<(&'static str, u64)>,
    /// Messages, collectives, and how many of each have known times on all sides.
    pub matched: Matched,
    /// Ranks that are not matched to their end.
    pub lost: Vec<(u32, u64, Lost)>,
    /// Number of operations that are not matched, by reason.
    pub stopped: Vec<(Stop, u64)>,
}

/// Number of matched messages and collectives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Matched {
    /// Messages.
    pub messages: u64,
    /// Messages with times on both sides.
    pub timed_messages: u64,
    /// Collectives.
    pub collectives: u64,
    /// Collectives with times of all ranks.
    pub timed_collectives: u64,
}

/// Share of its time that some rank waits for a cause from which a row is worth its line, in (0, 1).
const WORTH: f64 = 0.02;

/// Waits between the programs of `trace` in all of the run, by the numbers of both.
pub fn between_programs(trace: &Trace) -> Vec<Between> {
    let whole = Selection::new(None, None, None).expect("all time has a length");
    waits(trace, &whole, &mut Symbols::default()).between
}

/// Waits of `trace` in the ranks and times of `part`; call sites are named by `symbols`.
pub fn waits(trace: &Trace, part: &Selection, symbols: &mut Symbols) -> Waits {
    let comms = Communicators::of(trace);
    let job = Job::of(trace);
    let sources = job.sources();
    let mut observer = kept::Observer::new(trace, &sources, part);
    let outcome = play(job.ranks, &sources, &comms, &mut observer);
    let observed = observer.finish();
    let census = match part.cuts_time() {
        true => Vec::new(),
        false => census::rows(trace, part, &observed, symbols),
    };
    let rows = causes::rows(trace, job.ranks, &observed, census, symbols);
    let known = trace.totals.known();
    let mpi_ns = known.fold(0u64, |sum, known| sum.saturating_add(known.total.time_ns));
    let waiting_ns = rows.iter().fold(0u64, |sum, row| sum.saturating_add(row.ns)).min(mpi_ns);
    let matched =
        Matched { messages: outcome.messages, collectives: outcome.collectives, ..observed.matched };
    let between = between::between(trace, &observed, &rows, causes::elapsed(trace));
    let unexamined = unexamined(trace, &rows, mpi_ns, observed.unknown_ends > 0);
    let unreturned_ns = u64::try_from(unfinished_ns(trace)).unwrap_or(0);
    Waits {
        rows,
        between,
        unexamined,
        mpi_ns,
        unreturned_ns,
        waiting_ns,
        matched,
        lost: outcome.lost,
        stopped: outcome.stopped,
    }
}

/// Functions of [`Waits::unexamined`] that have a part of `mpi_ns` that is worth a line. `lacks_ends` where ends of collectives that
/// do not block were not examined.
fn unexamined(trace: &Trace, rows: &[Row], mpi_ns: u64, lacks_ends: bool) -> Vec<(&'static str, u64)> {
    let calls = || {
        let known = trace.totals.known();
        known.filter_map(|known| Some((FUNCTIONS.get(usize::from(known.function))?, known)))
    };
    // The end of a collective that does not block shows in calls that end messages, too.
    let begins = lacks_ends && calls().any(|(spec, _)| is_begun_collective(spec));
    let is_end = |spec: &FunctionSpec| {
        begins && spec.class == Class::Completion && rows.iter().all(|row| row.function != spec.name)
    };
    let mut functions: BTreeMap<&str, u64> = BTreeMap::new();
    for (spec, known) in calls() {
        if is_unexamined(Function(known.function), spec) || is_end(spec) {
            let ns = functions.entry(spec.name).or_default();
            *ns = ns.saturating_add(known.total.time_ns);
        }
    }
    let mut functions: Vec<_> = functions.into_iter().collect();
    functions.retain(|(_, ns)| *ns as f64 >= WORTH * mpi_ns as f64 && *ns > 0);
    functions.sort_by_key(|&(name, ns)| (std::cmp::Reverse(ns), name));
    functions
}

/// True of calls that begin a collective, which another call completes.
fn is_begun_collective(spec: &FunctionSpec) -> bool {
    let between_two =
        matches!(spec.traffic, Traffic::Send | Traffic::Recv | Traffic::Sendrecv | Traffic::SendrecvReplace);
    let moves = spec.traffic.is_message() && !between_two || spec.name.starts_with("MPI_Ibarrier");
    spec.class == Class::PersistentCollective || spec.class == Class::Nonblocking && moves
}

/// True of calls that may wait for some of the other ranks: prefix reductions, neighbours, windows, files, probes.
fn is_unexamined(function: Function, spec: &FunctionSpec) -> bool {
    let neighbours = matches!(
        spec.traffic,
        Traffic::NeighborAllgather
            | Traffic::NeighborAllgatherv
            | Traffic::NeighborAlltoall
            | Traffic::NeighborAlltoallv
            | Traffic::NeighborAlltoallw
    );
    let prefix = spec.traffic == Traffic::Allreduce && !function.synchronises();
    let windows = spec.name.starts_with("MPI_Win_") && !function.waits_for_all();
    let others = ["MPI_Probe", "MPI_Mprobe"].contains(&spec.name) || spec.name.starts_with("MPI_File_");
    spec.class == Class::Ordinary && (neighbours || prefix || windows || others)
}

#[cfg(test)]
mod tests;
