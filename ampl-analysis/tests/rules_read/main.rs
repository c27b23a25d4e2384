//! Rules of grammars that analyses with one answer for each group of ranks read: as many of few ranks as of many.
//!
//! Communicators, messages and logical programs have answers for each rank, and read each rank's calls.

use ampl_analysis::calls::table;
use ampl_analysis::timesteps::timesteps;
use ampl_reader::gaps::Recorded;
use ampl_testkit::runs;
use ampl_trace::{RankTrace, Trace};

/// A ring: every rank sends to the next and receives from the one before, in each of 50 steps, half of which end with a
/// collective of a communicator that the program makes.
fn ring(ranks: u32) -> Trace {
    let structure = runs::structure(ranks, |caller| {
        let (rank, world) = (i64::from(caller.rank()), runs::world());
        let (next, before) = ((rank + 1) % i64::from(ranks), (rank - 1).rem_euclid(i64::from(ranks)));
        caller.call("MPI_Init", 1, &[0, 0]);
        caller.split(0, 0, 5, (ranks, rank as u32));
        for step in 0..50 {
            caller.send(2, next, 100, world);
            caller.receive(3, before, before, 100, world);
            if step % 2 == 0 {
                caller.call("MPI_Barrier", 4, &[5]);
            }
        }
        caller.call("MPI_Finalize", 6, &[]);
    });
    let process = runs::processes(&structure, |rank| format!("node{}", rank / 4));
    let ranks_traces = process.into_iter().map(|process| RankTrace { process, ..RankTrace::default() });
    Trace { run: runs::info(ranks), ranks: ranks_traces.collect(), structure, ..Trace::default() }
}

/// Number of rules that `analysis` reads of a ring of so many ranks.
fn rules(ranks: u32, analysis: &impl Fn(&Trace)) -> u64 {
    let trace = ring(ranks);
    let before = trace.structure.rules_read();
    analysis(&trace);
    trace.structure.rules_read() - before
}

/// Fails where `analysis` reads more rules of a hundred times as many ranks.
fn reads_once(name: &str, analysis: impl Fn(&Trace)) {
    let few = rules(8, &analysis);
    assert!(few > 0, "{name} reads grammars");
    assert_eq!(rules(800, &analysis), few, "{name}");
}

#[test]
fn function_calls_read_each_groups_rules_once() {
    reads_once("calls of functions", |trace| {
        assert!(
            trace.structure.function_calls().of(3).is_some_and(|calls| calls.values().sum::<u64>() == 128)
        );
    });
    reads_once("recorded calls", |trace| {
        assert_eq!(Recorded::of(trace, None).calls, 128 * u64::from(trace.run.ranks));
    });
}

#[test]
fn call_table_reads_each_groups_rules_once() {
    reads_once("call table", |trace| drop(table(trace)));
}

#[test]
fn timesteps_read_each_groups_rules_once() {
    reads_once("timesteps", |trace| {
        let found = timesteps(&trace.structure, &mut |_, _| None);
        assert!(found.outcome.is_ok(), "{:?}", found.counts);
    });
}
