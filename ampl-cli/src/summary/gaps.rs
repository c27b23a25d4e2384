//! What the other lines do not cover.

use std::collections::{BTreeMap, BTreeSet};

use ampl_core::mpi::Function;
use ampl_core::units::RankSet;
use ampl_trace::Trace;
use ampl_trace::decode::Calls;

use super::field;
use crate::decode::lacks_arguments;
use crate::human::{count, percent, plural};
use crate::info::Overhead;
use crate::rundir;

/// Stored calls that are looked at for gaps, over all ranks: the summary must not take longer than a glance.
const LOOKED_AT: usize = 200_000;

pub(super) fn write(out: &mut String, trace: &Trace) {
    out.push('\n');
    let gaps = list(trace);
    for (index, gap) in gaps.iter().enumerate() {
        field(out, if index == 0 { "not covered" } else { "" }, gap);
    }
    if gaps.is_empty() {
        field(out, "not covered", "nothing is known to be missing");
    }
}

fn list(trace: &Trace) -> Vec<String> {
    let mut gaps = Vec::new();
    ranks(trace, &mut gaps);
    if let Some(first) = trace.damage.first() {
        let rank = first.rank.map_or(String::new(), |rank| format!("rank {rank}: "));
        gaps.push(format!(
            "{} in the files, the first: {rank}{}",
            faults(trace.damage.len() as u64),
            first.what
        ));
    }
    windows(trace, &mut gaps);
    let failures: u64 = trace.ranks.iter().map(|rank| rank.process.agent_failures).sum();
    if failures > 0 {
        gaps.push(format!("ampl itself failed {} (the program was not affected)", plural(failures, "time")));
    }
    let allowed = rundir::plan(trace).map(|plan| plan.config.agent.max_overhead);
    if let (Some(share), Some(allowed)) = (Overhead::of(trace, 0).share, allowed)
        && share > allowed
    {
        gaps.push(format!(
            "ampl took more than the {} of agent.max_overhead: it disturbed the times",
            percent(allowed)
        ));
    }
    if trace.ranks.iter().flat_map(|rank| &rank.aggregates).any(|entry| entry.site.is_none()) {
        gaps.push("more call sites than the table holds: the rest is added up as '(further sites)'".into());
    }
    if !trace.run.hidden.is_empty() {
        let (names, more) = some(&trace.run.hidden);
        gaps.push(format!("{names}{more}: the program, or a tool loaded before ampl, defines them itself"));
    }
    if trace.run.early_calls > 0 {
        gaps.push(format!(
            "{} of rank 0 before MPI_Init: counted, not in the sequence",
            plural(trace.run.early_calls, "call")
        ));
    }
    let spawns = ["MPI_Comm_spawn", "MPI_Comm_spawn_multiple"].map(Function::by_name);
    if trace.function_calls().iter().any(|&(function, _)| spawns.contains(&Some(Function(function)))) {
        gaps.push(
            "the processes that the program spawned: only those it was started with are recorded".into(),
        );
    }
    calls(trace, &mut gaps);
    gaps
}

/// The first names, and what stands for the rest.
fn some(names: &[String]) -> (String, &'static str) {
    (names[..names.len().min(4)].join(", "), if names.len() > 4 { ", …" } else { "" })
}

fn faults(number: u64) -> String {
    if number == 1 { "1 fault".into() } else { format!("{} faults", count(number)) }
}

fn ranks(trace: &Trace, gaps: &mut Vec<String>) {
    let there: BTreeSet<u32> = trace.ranks.iter().map(|rank| rank.process.rank).collect();
    let absent = set((0..trace.run.ranks).filter(|rank| !there.contains(rank)));
    if !absent.is_empty() {
        gaps.push(format!("{} left nothing that is readable here: {absent}", plural(absent.len(), "rank")));
    }
    let unfinished = trace.ranks.iter().filter(|rank| !rank.process.finalized).map(|rank| rank.process.rank);
    let unfinished = set(unfinished);
    if !unfinished.is_empty() {
        gaps.push(format!("{} did not reach MPI_Finalize: {unfinished}", plural(unfinished.len(), "rank")));
    }
    if !trace.complete && absent.is_empty() && unfinished.is_empty() && trace.damage.is_empty() {
        gaps.push("the ranks' journals were not merged: the job still runs, or ended too early".into());
    }
}

fn set(ranks: impl Iterator<Item = u32>) -> RankSet {
    let text: Vec<String> = ranks.map(|rank| rank.to_string()).collect();
    RankSet::parse(&text.join(",")).unwrap_or_default()
}

fn windows(trace: &Trace, gaps: &mut Vec<String>) {
    let mut reported: BTreeMap<u64, u32> = BTreeMap::new();
    for window in trace.ranks.iter().flat_map(|rank| &rank.windows) {
        *reported.entry(window.window).or_default() += 1;
    }
    let short = reported.values().filter(|&&ranks| ranks < trace.run.ranks).count() as u64;
    if short > 0 {
        gaps.push(format!("{} without a summary of every rank", plural(short, "window")));
    }
    let late = trace.decisions.iter().filter(|decision| decision.late).count() as u64;
    if late > 0 {
        gaps.push(format!("{} did not wait for every rank (late)", plural(late, "decision")));
    }
}

/// What stored calls lack; a prefix of each rank's is looked at.
fn calls(trace: &Trace, gaps: &mut Vec<String>) {
    let each = (LOOKED_AT / trace.ranks.len().max(1)).max(100);
    let mut bare = BTreeSet::new();
    let mut threads = false;
    for rank in &trace.ranks {
        for call in Calls::new(rank).take(each).flatten() {
            threads |= call.thread != 0;
            if lacks_arguments(&call) && !call.function.name().starts_with("MPI_Init") {
                bare.insert(call.function.name());
            }
        }
    }
    if !bare.is_empty() {
        let (names, more) = some(&bare.into_iter().map(str::to_owned).collect::<Vec<_>>());
        gaps.push(format!("arguments of calls that did not return (a jump, an exception): {names}{more}"));
    }
    if threads {
        gaps.push(
            "several threads call MPI: times are added up, each call in the window where it returns".into(),
        );
    }
}
