//! Calls that a rank counted, and that are not stored one by one.

use std::collections::{BTreeMap, BTreeSet};

use ampl_core::config::Keep;
use ampl_core::mpi::{FUNCTIONS, Function};
use ampl_reader::directory;
use ampl_trace::model::{Level, Limit, Process, Step};
use ampl_trace::{RunInfo, Trace};

/// Calls of a process that are in its sequence, as it counted them: without queries such as `MPI_Initialized`.
pub fn in_sequence(process: &Process) -> u64 {
    let calls = process.calls.iter().filter(|call| !Function(call.0).spec().class.only_asks());
    calls.fold(0, |sum, &(_, calls)| sum.saturating_add(calls))
}

/// Number of these that are stored one by one, of each of `ranks`.
pub fn stored(trace: &Trace, ranks: &BTreeSet<u32>) -> BTreeMap<u32, u64> {
    let calls = trace.structure.function_calls_of(|group| ranks.iter().any(|&rank| group.contains(rank)));
    let is_counted =
        |function: u16| FUNCTIONS.get(usize::from(function)).is_some_and(|spec| !spec.class.only_asks());
    let of = |rank: u32| {
        let own = calls.of(rank).into_iter().flatten().filter(|&(&function, _)| is_counted(function));
        own.fold(0u64, |sum, (_, calls)| sum.saturating_add(*calls))
    };
    ranks.iter().map(|&rank| (rank, of(rank))).collect()
}

/// Reason why none of the calls of a process is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// `trace.structure` is `off`.
    Off,
    /// There was no room for them.
    NoRoom,
    /// A limit of the configuration was reached.
    Limit(Limit),
    /// Recording them would have cost more than `agent.max_structure_overhead`.
    Overhead,
    /// No call of the process was recorded.
    NotRecorded,
}

/// Reason, as far as the trace has it.
pub fn why(run: &RunInfo, process: &Process) -> Reason {
    let off = directory::plan(run).is_some_and(|plan| plan.config.trace.structure == Keep::Off);
    match process.steps.iter().find(|step| matches!(step.level, Level::Summaries | Level::Off)) {
        _ if off => Reason::Off,
        Some(Step { limit: Some(limit), .. }) => Reason::Limit(*limit),
        Some(step) if step.share == 0.0 => Reason::NoRoom,
        Some(_) => Reason::Overhead,
        None => Reason::NotRecorded,
    }
}
