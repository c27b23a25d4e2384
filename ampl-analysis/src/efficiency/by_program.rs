//! Efficiencies of each program of a job of several: programs do different work, so their ranks are not compared.

use ampl_core::mpi::{Class, Function};
use ampl_core::units::{Rank, RankSet};
use ampl_trace::Trace;
use serde::Serialize;

use super::run::run_times_of;
use super::shares::Shares;
use crate::coverage::Extent;
use crate::programs;
use crate::window_times::Times;

/// Least difference of the shares that two programs compute at which the one that computes more is named, in (0, 1).
const APART: f64 = 0.05;

/// Part of the calls of a rank that ask whether something has arrived, from which on it serves others.
const POLLS: f64 = 0.2;
/// The same part, from which on it does nothing else.
const ONLY_POLLS: f64 = 0.9;
/// Processor time over the time outside of MPI, below which a rank sleeps there.
const AWAKE: f64 = 0.5;
/// Processor time for each call that asks, nanoseconds, below which nothing is computed between two of them: what
/// `sched_yield` takes.
const YIELD_NS: f64 = 20_000.0;

/// Efficiencies of the ranks of one program.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OfProgram {
    /// The program, as the run's title has it.
    pub program: String,
    /// Its ranks, `0-3,8`.
    pub ranks: String,
    /// Share of its ranks' time that computes; none, as the next two, where too little was measured, and of a program that
    /// sleeps or yields between its polls.
    pub parallel: Option<f64>,
    /// Mean over greatest compute time of its ranks.
    pub load_balance: Option<f64>,
    /// Greatest compute time of its ranks over their elapsed time.
    pub communication: Option<f64>,
    /// Time in MPI over all time of its ranks.
    pub mpi: Option<f64>,
    /// Its rank with the most compute time, where it has several.
    pub slowest: Option<u32>,
    /// Share of its ranks' time that the numbers rest on.
    pub coverage: f64,
}

/// Efficiencies of each program of `trace`, by their first ranks; none where there is one program. Each rests on windows
/// that the program's own ranks measured.
pub fn by_program(trace: &Trace) -> Vec<OfProgram> {
    let programs = programs::of(trace);
    if programs.len() < 2 {
        return Vec::new();
    }
    let row = |of: programs::Program| {
        let ranks = RankSet::parse(&of.ranks).unwrap_or_default();
        let own = run_times_of(trace, &ranks);
        let shares = Shares::of(&own.times).filter(|_| own.extent() != Extent::Little);
        // What it does between its polls is no computing.
        let computing = shares.filter(|_| !only_polls(trace, &own.times));
        OfProgram {
            parallel: computing.map(|shares| shares.parallel),
            load_balance: computing.and_then(|shares| shares.load_balance),
            communication: computing.map(|shares| shares.communication),
            mpi: shares.map(|shares| shares.mpi),
            slowest: shares.and_then(|shares| shares.slowest).filter(|_| own.times.len() > 1),
            coverage: own.coverage.share,
            program: of.program,
            ranks: of.ranks,
        }
    };
    programs.into_iter().map(row).collect()
}

/// True where the rank that is longest outside of MPI asks again and again whether something has come, and sleeps or yields
/// meanwhile: it has the processor for less than half of its time outside of MPI, or for no longer than that takes.
fn only_polls(trace: &Trace, times: &[Times]) -> bool {
    let Some(busiest) = times.iter().max_by(|a, b| a.compute.total_cmp(&b.compute)) else { return false };
    let Some(process) = trace.rank(busiest.rank).map(|rank| &rank.process) else { return false };
    let calls = |is_meant: fn(Class) -> bool| -> u64 {
        let of = process.calls.iter().filter(|(function, _)| is_meant(Function(*function).spec().class));
        of.map(|(_, calls)| calls).sum()
    };
    let polls = calls(|class| class == Class::Poll) as f64;
    let all = calls(Class::is_work) as f64;
    let processor = process.processor_ns as f64;
    let sleeps = polls >= POLLS * all && sleep(trace, [busiest]);
    let yields = polls >= ONLY_POLLS * all && processor > 0.0 && processor < YIELD_NS * polls;
    sleeps || yields
}

/// True where ranks with these times have the processor for less than half of their time outside of MPI; false where that is
/// not known.
fn sleep<'a>(trace: &Trace, times: impl IntoIterator<Item = &'a Times>) -> bool {
    let (mut processor, mut compute) = (0.0, 0.0);
    for own in times {
        processor += trace.rank(own.rank).map_or(0.0, |rank| rank.process.processor_ns as f64);
        compute += own.compute;
    }
    processor > 0.0 && processor < AWAKE * compute
}

/// True where the ranks of `program`, which are among those with these times, sleep outside of MPI.
pub fn sleeps(trace: &Trace, program: &OfProgram, times: &[Times]) -> bool {
    let ranks = RankSet::parse(&program.ranks).unwrap_or_default();
    sleep(trace, times.iter().filter(|times| ranks.contains(Rank(times.rank))))
}

/// The program whose busiest rank computes for most of its time, where no other of those whose times are known comes
/// near; programs that idle are never it.
pub fn busiest(rows: &[OfProgram]) -> Option<&OfProgram> {
    let mut known: Vec<(&OfProgram, f64)> =
        rows.iter().filter_map(|row| Some((row, row.communication?))).collect();
    known.sort_by(|a, b| b.1.total_cmp(&a.1));
    match known[..] {
        [(first, most), (_, next), ..] if most - next >= APART => Some(first),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(program: &str, communication: Option<f64>) -> OfProgram {
        OfProgram {
            program: program.into(),
            ranks: "0".into(),
            parallel: communication,
            load_balance: Some(1.0),
            communication,
            mpi: communication.map(|share| 1.0 - share),
            slowest: None,
            coverage: 1.0,
        }
    }

    /// It asks for requests ten times a second.
    #[test]
    fn a_server_that_sleeps_or_yields_between_polls_does_not_compute() {
        let mut trace = ampl_testkit::times::run(&["a"], 1e9, &vec![vec![Some(0.99e9)]; 4]);
        let [probe, receive] = ["MPI_Iprobe", "MPI_Recv"].map(|name| Function::by_name(name).unwrap().0);
        let mut sleeps = |processor_ns, calls: &[(u16, u64)]| {
            let process = &mut trace.ranks[0].process;
            (process.processor_ns, process.calls) = (processor_ns, calls.to_vec());
            let times = run_times_of(&trace, &RankSet::range(0, 0)).times;
            only_polls(&trace, &times)
        };
        assert!(sleeps(100_000_000, &[(probe, 400), (receive, 8)]));
        // It works on what it gets, or its calls are for that; nothing is known of its processor time.
        assert!(!sleeps(3_900_000_000, &[(probe, 400), (receive, 8)]));
        assert!(!sleeps(100_000_000, &[(probe, 10), (receive, 80)]));
        assert!(!sleeps(0, &[(probe, 400), (receive, 8)]));
        // It gives its processor away between two polls, and has it again at once; or works between them.
        assert!(sleeps(3_900_000_000, &[(probe, 1_000_000), (receive, 8)]));
        assert!(!sleeps(3_900_000_000, &[(probe, 100_000), (receive, 8)]));
    }

    #[test]
    fn the_program_that_computes_most_is_named_and_a_server_never() {
        let name = |rows: &[OfProgram]| busiest(rows).map(|row| row.program.clone());
        let rows = [of("server", Some(0.01)), of("ocean", Some(0.95)), of("air", Some(0.6))];
        assert_eq!(name(&rows).as_deref(), Some("ocean"));
        assert_eq!(name(&[of("a", Some(0.9)), of("b", Some(0.88))]), None);
        // One alone is compared with none; the times of a server that polls are not known.
        assert_eq!(name(&[of("a", Some(0.9)), of("b", None)]), None);
        let rows = [of("ocean", Some(0.9)), of("air", Some(0.5)), of("server", None)];
        assert_eq!(name(&rows).as_deref(), Some("ocean"));
        assert_eq!(name(&[of("a", Some(0.9))]), None);
    }
}
