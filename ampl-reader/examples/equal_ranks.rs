//! Writes a synthetic run of equal ranks, to measure what opening a large run costs: `equal_ranks RANKS DIRECTORY`.

use std::error::Error;
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

const STEPS: u64 = 1000;

fn structure(rank: u32) -> Result<RankStructure, Box<dyn Error>> {
    let function = |name| Function::by_name(name).map(|function| function.0).ok_or(name);
    let signature = |function| Signature { function, words: vec![0], ..Signature::default() };
    let signatures = vec![signature(function("MPI_Barrier")?)];
    let mut builder = Builder::new();
    builder.push(0, STEPS);
    let thread = ThreadStructure { thread: 0, signatures, grammar: builder.into_grammar() };
    Ok(RankStructure { rank, threads: vec![thread], ..RankStructure::default() })
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let (Some(ranks), Some(directory)) = (words.next(), words.next()) else {
        return Err("usage: equal_ranks RANKS DIRECTORY".into());
    };
    let ranks: u32 = ranks.parse()?;
    let plan = Plan::new(Config::default(), ranks).map_err(|error| format!("{error:?}"))?;
    let mut run = RunInfo { mpi_library: "synthetic".into(), started_ns: 1, ..RunInfo::default() };
    run.describe(&plan);
    run.command = vec!["./synthetic".into()];
    fs::create_dir_all(&directory)?;
    let file = File::create(Path::new(&directory).join("trace.ampl"))?;
    let mut writer = Writer::new(BufWriter::new(file))?;
    // Joined by twos, as ranks do.
    let mut parts: Vec<JobStructure> = Vec::new();
    for rank in 0..ranks {
        let mut part = JobStructure::of(structure(rank)?);
        let mut number = rank + 1;
        while number.is_multiple_of(2) {
            let mut before = parts.pop().ok_or("one for each bit")?;
            before.join(part);
            (part, number) = (before, number / 2);
        }
        parts.push(part);
    }
    let mut merged = JobStructure::new(ranks);
    parts.into_iter().for_each(|part| merged.join(part));
    writer.structure(&merged)?;
    let barrier = Function::by_name("MPI_Barrier").ok_or("MPI_Barrier")?.0;
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
            calls: vec![(barrier, STEPS)],
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
        writer.rank(&rank_parts(&one))?;
    }
    writer.run(&run, &[])?;
    writer.finish()?;
    Ok(())
}
