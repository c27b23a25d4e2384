//! `ampl recover`: the trace of a job that did not come to its end, from what its ranks had written until then.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ampl_trace::Trace;

use crate::failure::{Failure, NOT_FOUND};
use crate::human::{bytes, count, plural};
use crate::rundir::{self, TRACE};
use crate::summary;

/// Rebuild the trace of a job that died, from its ranks' journals.
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  ampl recover ampl-lmp-4242-20260101T120000")]
pub struct Args {
    /// The run directory, or a directory of journals
    run: PathBuf,
    /// Further directories of journals, copied from other nodes
    #[arg(value_name = "JOURNALS")]
    others: Vec<PathBuf>,
    /// The trace file to write, instead of the run's trace.ampl
    #[arg(short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Writes the trace file and says what it lacks.
///
/// # Errors
/// A [`Failure`] of status 4 when there is no journal, of status 3 when none can be read; that of writing the file.
pub fn recover(args: &Args) -> anyhow::Result<ExitCode> {
    let file = args.output.clone().unwrap_or_else(|| args.run.join(TRACE));
    if args.output.is_none() && file.exists() && rundir::read(&file).is_ok_and(|trace| trace.complete) {
        tell!("ampl: {} is whole: there is nothing to recover", file.display());
        return Ok(ExitCode::SUCCESS);
    }
    let there = args.run.join(TRACE).exists();
    let mut trace = rundir::from_journals(&args.run, &args.others).map_err(|error| {
        if !(there && Failure::has(&error, NOT_FOUND)) {
            return error;
        }
        let fix = format!("see what there is in its {TRACE} with 'ampl info'");
        Failure::message(NOT_FOUND, "no journals are left to recover it from", args.run.display(), fix)
    })?;
    trace.run.recovered = lacking(&trace);
    write(&trace, &file).map_err(|error| {
        let fix = "name another file with -o";
        Failure::message(1, format!("cannot write the trace: {error}"), file.display(), fix)
    })?;
    let size = fs::metadata(&file).map_or(0, |metadata| metadata.len());
    let calls: u64 = trace.ranks.iter().flat_map(|rank| &rank.process.calls).map(|&(_, calls)| calls).sum();
    tell!(
        "ampl: {} of {}, which made {}, recovered into {} ({})",
        count(trace.ranks.len() as u64),
        plural(trace.run.ranks.into(), "rank"),
        plural(calls, "call"),
        file.display(),
        bytes(size as f64)
    );
    let less = summary::done_less(&trace, rundir::plan(&trace).as_ref());
    trace.run.recovered.iter().chain(&less).for_each(|what| tell!("ampl: {what}"));
    tell!("ampl: the journals are still there; see what there is with 'ampl info {}'", file.display());
    Ok(ExitCode::SUCCESS)
}

/// What a trace of journals lacks, a sentence each.
fn lacking(trace: &Trace) -> Vec<String> {
    let mut lacking = Vec::new();
    let present = trace.ranks.len() as u64;
    let missing = u64::from(trace.run.ranks).saturating_sub(present);
    if missing > 0 {
        let here = |rank: u32| trace.rank(rank).is_some();
        let names = (0..trace.run.ranks).filter(|&rank| !here(rank)).take(8).map(|rank| rank.to_string());
        let names: Vec<String> = names.collect();
        let more = if missing > names.len() as u64 { ", …" } else { "" };
        lacking.push(format!(
            "{} left no journal here ({}{more}): journals of other nodes can be named behind the run",
            plural(missing, "rank"),
            names.join(", ")
        ));
    }
    let ended = trace.ranks.iter().filter(|rank| rank.process.finalized).count() as u64;
    if ended < present {
        lacking.push(format!(
            "{} did not reach MPI_Finalize: of each, the call it was in is missing, and the summaries of its last windows",
            plural(present - ended, "rank")
        ));
    }
    lacking.extend(trace.damage.iter().map(|damage| match damage.rank {
        Some(rank) => format!("rank {rank}: {}", damage.what),
        None => damage.what.clone(),
    }));
    lacking
}

/// Writes `trace` to `file`, which is there when it is whole.
fn write(trace: &Trace, file: &Path) -> anyhow::Result<()> {
    if file.parent().is_some_and(|parent| !parent.as_os_str().is_empty() && !parent.is_dir()) {
        let fix = "make it, or name another file with -o";
        return Err(Failure::message(NOT_FOUND, "no such directory", file.display(), fix));
    }
    let part = file.with_extension("ampl.part");
    rundir::write(trace, BufWriter::new(File::create(&part)?))?;
    fs::rename(&part, file)?;
    Ok(())
}
