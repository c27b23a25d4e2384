//! Ranks that waited for each other when their job ended: the calls that they were in are not among the recorded ones.

use ampl_core::mpi::Function;
use ampl_core::units::Rank;
use ampl_reader::Symbols;
use ampl_trace::Trace;
use ampl_trace::communicators::Communicators;

use super::{Finding, Problem};
use crate::in_call;
use crate::live::Waiting;
use crate::matching::{Lost, is_collective};

/// Calls of `trace` in which ranks waited for each other; calls of ranks are recorded up to those in `lost`.
pub fn findings(trace: &Trace, comms: &Communicators, lost: &[(u32, u64, Lost)]) -> Vec<Finding> {
    let rows = in_call::rows(trace, comms, &mut Symbols::default());
    let circle = Waiting::of(&rows, comms, trace.run.ranks).circle;
    let in_one: Vec<_> =
        rows.iter().filter(|row| row.members.iter().any(|rank| circle.contains(rank))).collect();
    // Ranks that have all come to one collective may have been about to leave it.
    if let [row] = in_one[..]
        && row.place.function.as_deref().and_then(Function::by_name).is_some_and(is_collective)
    {
        return Vec::new();
    }
    let processes = trace.ranks.iter().map(|rank| &rank.process);
    let finding = |process: &ampl_trace::model::Process| {
        let thread = process.threads.iter().find(|thread| thread.inside)?;
        let site = thread.site.first().map(|place| (place.module.clone(), place.offset));
        Some(Finding {
            rank: process.rank,
            thread: thread.thread,
            seq: lost.iter().find(|(rank, ..)| *rank == process.rank)?.1,
            function: Function::by_name(&thread.function)?,
            site,
            problem: Problem::WaitsInCircle(circle.clone()),
        })
    };
    processes.filter(|process| circle.contains(Rank(process.rank))).filter_map(finding).collect()
}
