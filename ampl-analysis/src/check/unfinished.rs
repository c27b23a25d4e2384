//! Faults of jobs that did not come to their end: the calls that ranks were in are not among the recorded ones.

use ampl_core::mpi::Function;
use ampl_core::units::{Rank, RankSet};
use ampl_reader::Symbols;
use ampl_trace::Trace;
use ampl_trace::communicators::Communicators;
use ampl_trace::model::{EndBasis, Process, ThreadPlace};

use super::{Against, Finding, Problem};
use crate::in_call::{self, Named, Role, Row};
use crate::live::{Ended, WAITS_NS, Waiting, in_vain};
use crate::matching::{Lost, is_collective};

/// Faults of `trace` by the calls that its ranks were in at the end; calls of ranks are recorded up to those in `lost`.
pub fn findings(trace: &Trace, comms: &Communicators, lost: &[(u32, u64, Lost)]) -> Vec<Finding> {
    let end = trace.run.end.filter(|end| !trace.complete && end.basis != EndBasis::Now);
    let Some(end) = end else { return Vec::new() };
    let rows = in_call::rows(trace, comms, &mut Symbols::default());
    let processes = || trace.ranks.iter().map(|rank| &rank.process);
    let is_over = |own: &&Process| {
        let ends = |thread: &ThreadPlace| thread.inside && thread.function == "MPI_Finalize";
        own.finalized || own.threads.iter().any(ends)
    };
    let ended: RankSet = processes().filter(is_over).map(|own| own.rank).collect();
    let of_rank = |rank: u32| processes().find(|own| own.rank == rank);
    let mut found: Vec<Finding> = Vec::new();
    let mut add = |rank: u32, problem: Problem| {
        found.extend(of_rank(rank).and_then(|own| finding(own, lost, problem)));
    };
    let calls = |rank: u32, function: Function| {
        let all = of_rank(rank).map_or(&[][..], |own| &own.calls);
        all.iter().find(|of| of.0 == function.0).map_or(0, |of| of.1)
    };
    let over = Ended { ranks: &ended, calls: &calls };
    let stuck = in_vain(&rows, comms, trace.run.ranks, &over);
    let is_stuck = |rank: Rank| stuck.iter().any(|own| own.rank == rank.0);
    let size = |name: &str| match name {
        "world" => u64::from(trace.run.ranks),
        _ => {
            let of = comms.iter().find(|comm| comm.is_agreed() && comm.name.to_string() == name);
            of.and_then(|comm| comm.ranks.as_ref()).map_or(u64::MAX, |ranks| ranks.len().into())
        }
    };
    for (rank, problem) in disagreements(&rows, is_stuck, size) {
        add(rank, problem);
    }
    let circle = Waiting::of(&rows, comms, trace.run.ranks).circle;
    for own in &stuck {
        let ended: RankSet =
            own.on.iter().map(|rank| rank.0).filter(|&rank| ended.contains(Rank(rank))).collect();
        add(
            own.rank,
            match circle.contains(Rank(own.rank)) && ended.is_empty() {
                true => Problem::WaitsInCircle(circle.clone()),
                false => Problem::WaitsInVain { on: own.on.clone(), ended },
            },
        );
    }
    let aborts = |own: &&Process| own.threads.iter().any(|thread| thread.function == "MPI_Abort");
    for own in processes().filter(aborts) {
        add(own.rank, Problem::Aborted);
    }
    if !found.is_empty() {
        return found;
    }
    // Where all are in MPI, any of these calls may have been the last.
    let first = in_call::first_to_stop(trace).filter(|first| !first.in_mpi).map(|first| first.ranks);
    let last =
        first.unwrap_or_else(|| processes().filter(|own| !own.finalized).map(|own| own.rank).collect());
    for own in last.iter().filter(|&rank| !ended.contains(rank)).filter_map(|rank| of_rank(rank.0)) {
        let Some(thread) = own.threads.first() else { continue };
        let for_ns = (end.at_ns - thread.since_ns).max(0);
        found.extend(finding(own, lost, Problem::Ended { inside: thread.inside, for_ns }));
    }
    found
}

/// Fault of the call that a rank was in, or of its last one.
fn finding(own: &Process, lost: &[(u32, u64, Lost)], problem: Problem) -> Option<Finding> {
    let thread = own.threads.iter().find(|thread| thread.inside).or(own.threads.first())?;
    let last = lost.iter().find(|(rank, ..)| *rank == own.rank).map_or(0, |&(_, seq, _)| seq);
    Some(Finding {
        rank: own.rank,
        thread: thread.thread,
        // Behind those that are recorded, where it has not returned.
        seq: if thread.inside { last } else { last.saturating_sub(1) },
        function: Function::by_name(&thread.function)?,
        site: thread.site.first().map(|place| (place.module.clone(), place.offset)),
        problem,
    })
}

/// Ranks that were in another collective of a communicator than most of its ranks, as far as they waited in vain, or that
/// named another root, where all ranks had come; `size` knows communicators by their names.
fn disagreements(
    rows: &[Row],
    is_stuck: impl Fn(Rank) -> bool,
    size: impl Fn(&str) -> u64,
) -> Vec<(u32, Problem)> {
    let collectives: Vec<(&Row, Function, &str)> = rows.iter().filter_map(collective).collect();
    let mut found = Vec::new();
    for &(row, function, comm) in &collectives {
        let others = collectives.iter().filter(|of| of.2 == comm && of.0.members != row.members);
        // The first of those with most ranks: rows are in that order.
        let Some(&(other, with, _)) =
            others.max_by_key(|of| (of.0.members.len(), std::cmp::Reverse(first(of.0))))
        else {
            continue;
        };
        let is_fewer = (row.members.len(), std::cmp::Reverse(first(row)))
            < (other.members.len(), std::cmp::Reverse(first(other)));
        let waits = |row: &Row| row.members.iter().all(&is_stuck);
        let there = collectives.iter().filter(|of| (of.1, of.2) == (function, comm));
        let have_come = there.map(|of| of.0.members.len()).sum::<u64>() >= size(comm);
        let problem = match (root(row), root(other)) {
            _ if !is_fewer => continue,
            _ if function != with && !(waits(row) && waits(other)) => continue,
            _ if function != with => {
                Problem::Order(Against { own: function, rank: first(other), other: with })
            }
            (Some(own), Some(with)) if own != with && have_come => {
                Problem::Root(Against { own, rank: first(other), other: with })
            }
            _ => continue,
        };
        found.extend(row.members.iter().map(|rank| (rank.0, problem.clone())));
    }
    found
}

/// The collective that the ranks of `row` had been in for long, and its communicator.
fn collective(row: &Row) -> Option<(&Row, Function, &str)> {
    let function = Function::by_name(row.place.function.as_deref()?).filter(|&own| is_collective(own))?;
    let comm = row.place.comm.as_deref().filter(|&comm| comm != "self")?;
    (row.for_ns >= WAITS_NS && !row.at_most).then_some((row, function, comm))
}

fn first(row: &Row) -> u32 {
    row.members.iter().next().map_or(0, |rank| rank.0)
}

fn root(row: &Row) -> Option<i64> {
    match (&row.place.peer, row.place.role) {
        (Some(Named::Number(root)), Some(Role::Root)) => Some(*root),
        _ => None,
    }
}
