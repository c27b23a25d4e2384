//! Runs of equal ranks, to measure what opening a large run costs.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::Path;

use ampl_core::config::Config;
use ampl_core::mpi::Function;
use ampl_core::plan::Plan;
use ampl_trace::format::{Writer, rank_parts};
use ampl_trace::grammar::Builder;
use ampl_trace::model::{Process, WindowSummary};
use ampl_trace::structure::{JobStructure, RankStructure, Signature, ThreadStructure};
use ampl_trace::{RankTrace, RunInfo};

/// Barriers of each rank.
pub const STEPS: u64 = 1000;

fn barrier() -> u16 {
    Function::by_name("MPI_Barrier").unwrap().0
}

fn structure(rank: u32) -> RankStructure {
    let signatures = vec![Signature { function: barrier(), words: vec![0], ..Signature::default() }];
    let mut builder = Builder::new();
    builder.push(0, STEPS);
    let thread = ThreadStructure { thread: 0, signatures, grammar: builder.into_grammar() };
    RankStructure { rank, threads: vec![thread], ..RankStructure::default() }
}

/// Structures of all ranks, joined by twos, as ranks do.
fn joined(ranks: u32) -> JobStructure {
    let mut parts: Vec<JobStructure> = Vec::new();
    for rank in 0..ranks {
        let mut part = JobStructure::of(structure(rank));
        let mut number = rank + 1;
        while number.is_multiple_of(2) {
            let mut before = parts.pop().unwrap();
            before.join(part);
            (part, number) = (before, number / 2);
        }
        parts.push(part);
    }
    let mut merged = JobStructure::new(ranks);
    parts.into_iter().for_each(|part| merged.join(part));
    merged
}

/// Writes the run of so many ranks to `directory`, which is made.
pub fn write_run(ranks: u32, directory: &Path) {
    let plan = Plan::new(Config::default(), ranks).unwrap();
    let mut run = RunInfo { mpi_library: "synthetic".into(), started_ns: 1, ..RunInfo::default() };
    run.describe(&plan);
    run.command = vec!["./synthetic".into()];
    fs::create_dir_all(directory).unwrap();
    let file = File::create(directory.join("trace.ampl")).unwrap();
    let mut writer = Writer::new(BufWriter::new(file)).unwrap();
    writer.structure(&joined(ranks)).unwrap();
    for rank in 0..ranks {
        let process = Process {
            rank,
            host: format!("node{:05}", rank / 64),
            cpus: (rank % 64).to_string(),
            pid: 1000 + rank,
            finalized: true,
            elapsed_ns: 10_000_000_000,
            own_ns: 1_000_000,
            windows: 40,
            calls: vec![(barrier(), STEPS)],
            ..Process::default()
        };
        let kept = WindowSummary {
            window: 3,
            kept: true,
            drawn: true,
            probability: 0.5,
            ..WindowSummary::default()
        };
        let one = RankTrace { process, windows: vec![kept].into(), ..RankTrace::default() };
        writer.rank(&rank_parts(&one)).unwrap();
    }
    writer.run(&run, &[]).unwrap();
    writer.finish().unwrap();
}
