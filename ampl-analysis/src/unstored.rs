//! Calls that a rank counted, and that are not stored one by one.

use ampl_core::config::Keep;
use ampl_core::mpi::{FUNCTIONS, Function};
use ampl_reader::directory;
use ampl_trace::model::Process;
use ampl_trace::{RankTrace, RunInfo, Trace};

/// Calls of a process that are in its sequence, as it counted them: without queries such as `MPI_Initialized`.
pub fn in_sequence(process: &Process) -> u64 {
    let calls = process.calls.iter().filter(|call| !Function(call.0).spec().class.only_asks());
    calls.fold(0, |sum, &(_, calls)| sum.saturating_add(calls))
}

/// Number of these that are stored one by one.
pub fn stored(trace: &Trace, rank: &RankTrace) -> u64 {
    let mut stored = 0u64;
    for thread in trace.structure.rank(rank.process.rank).into_iter().flat_map(|rank| rank.threads) {
        for (terminal, calls) in thread.grammar.totals() {
            let function = thread.signatures.get(terminal as usize).map(|signature| signature.function);
            let spec = function.and_then(|function| FUNCTIONS.get(usize::from(function)));
            if spec.is_some_and(|spec| !spec.class.only_asks()) {
                stored = stored.saturating_add(calls);
            }
        }
    }
    stored
}

/// Reason why none of the calls of a process is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// `trace.structure` is `off`.
    Off,
    /// There was no room for them.
    NoRoom,
    /// Recording them would have cost more than `agent.max_structure_overhead`.
    Overhead,
    /// No call of the process was recorded.
    NotRecorded,
}

/// Reason, as far as the trace has it.
pub fn why(run: &RunInfo, process: &Process) -> Reason {
    let off = directory::plan(run).is_some_and(|plan| plan.config.trace.structure == Keep::Off);
    match process.steps.iter().find(|step| step.level == "summaries" || step.level == "off") {
        _ if off => Reason::Off,
        Some(step) if step.share == 0.0 => Reason::NoRoom,
        Some(_) => Reason::Overhead,
        None => Reason::NotRecorded,
    }
}
