//! From what a user calls a run to the trace in it.

mod holder;
mod journals;
mod life;
pub mod nodes;
mod runfile;

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ampl_core::config::Config;
use ampl_core::plan::Plan;
use ampl_trace::model::WindowSummary;
use ampl_trace::{Damage, Trace, format};

use crate::failure::{DAMAGED, Failure, NOT_FOUND};
pub use holder::{Holder, host, living, runs};
pub use journals::write;
use runfile::RunFile;
pub use runfile::note_end;

/// The trace file's name in a run directory.
pub const TRACE: &str = "trace.ampl";

/// Where a run is, as every reading command takes it.
#[derive(clap::Args, Debug)]
pub struct RunArg {
    /// A run directory, its trace.ampl, or a directory of journals
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
}

impl RunArg {
    /// The trace; what is missing or wrong in it is printed to stderr.
    ///
    /// # Errors
    /// Those of [`read`].
    pub fn read(&self) -> anyhow::Result<Trace> {
        let trace = read_spread(&self.run)?;
        trace.damage.iter().for_each(|damage| tell!("{}", message(damage, &self.run)));
        Ok(trace)
    }
}

/// As [`read`], with an entry for every window, those too that were closed together.
///
/// # Errors
/// Those of [`read`].
pub fn read_spread(run: &Path) -> anyhow::Result<Trace> {
    let mut trace = read(run)?;
    trace.ranks.iter_mut().for_each(|rank| WindowSummary::spread(&mut rank.windows));
    Ok(trace)
}

/// The plan that the job agreed on, from the configuration in the trace; `None` where that cannot be read.
pub fn plan(trace: &Trace) -> Option<Plan> {
    let (config, _) = Config::parse(&trace.run.config).ok().filter(|_| trace.run.ranks > 0)?;
    Plan::new(config, trace.run.ranks).ok()
}

/// The status of a command that has printed what could be read of `trace`: that of damaged input if there is more.
pub fn status(trace: &Trace) -> ExitCode {
    if trace.damage.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(DAMAGED) }
}

/// The plan of a run that has windows, and all ranks' summaries of them; `run` names it.
///
/// # Errors
/// A [`Failure`] that says what is missing.
pub fn summarised(trace: &Trace, run: &Path) -> anyhow::Result<Plan> {
    let place = run.display();
    let Some(plan) = plan(trace) else {
        let fix = "keep run.toml beside the journals of a run that was not merged";
        return Err(Failure::message(DAMAGED, "the run's configuration cannot be read", place, fix));
    };
    if !plan.stores_summary(false) {
        let fix = "use summaries = \"census\" and output.rank_summaries = \"all\" for the next run";
        return Err(Failure::message(NOT_FOUND, "not all ranks' windows were stored", place, fix));
    }
    if trace.windows() == 0 {
        let (status, fix) = match trace.damage.is_empty() {
            true => (NOT_FOUND, "name a run that went on for longer"),
            false => (DAMAGED, "see above what is damaged"),
        };
        return Err(Failure::message(status, "no window was closed", place, fix));
    }
    Ok(plan)
}

/// `damage` as a message about `run`.
pub fn message(damage: &Damage, run: &Path) -> String {
    let place = match damage.rank {
        Some(rank) => format!("{}, rank {rank}", run.display()),
        None => run.display().to_string(),
    };
    format!("ampl: {} ({place}): what could be read is used", damage.what)
}

/// The trace of `run`: its trace file, or its journals while there is none that is whole.
///
/// # Errors
/// A [`Failure`] of status 4 when nothing of a run is there, of status 3 when a file is none of ours.
pub fn read(run: &Path) -> anyhow::Result<Trace> {
    let metadata = fs::metadata(run).map_err(|error| absent(run, &error.to_string()))?;
    if !metadata.is_dir() {
        return read_file(run);
    }
    let file = run.join(TRACE);
    if !file.exists() {
        return from_journals(run, &[]);
    }
    let merged = read_file(&file);
    let whole = merged.as_ref().is_ok_and(|trace| trace.damage.is_empty());
    if whole {
        return merged;
    }
    // A job that dies while it merges leaves both: the journals are removed last.
    match (merged, from_journals(run, &[])) {
        (Ok(merged), Ok(journals)) if journals.ranks.len() < merged.ranks.len() => Ok(merged),
        (_, Ok(journals)) => Ok(journals),
        (merged, Err(_)) => merged,
    }
}

fn read_file(file: &Path) -> anyhow::Result<Trace> {
    let bytes = fs::read(file).map_err(|error| match error.kind() {
        ErrorKind::NotFound => absent(file, &error.to_string()),
        _ => unreadable(file, &error.to_string()),
    })?;
    format::read(&bytes).map_err(|error| unreadable(file, &error.to_string()))
}

/// The trace as far as the journals of a run tell that is under way, or has died, and those in `others`.
///
/// # Errors
/// A [`Failure`] of status 4 when there is none, of status 3 when none can be read.
pub fn from_journals(run: &Path, others: &[PathBuf]) -> anyhow::Result<Trace> {
    let run_file = RunFile::read(run);
    let named = run_file.as_ref().and_then(|file| file.journals.clone());
    let mut files = own_journals(run);
    files.extend(others.iter().flat_map(|place| journals::list(place)));
    if !files.is_empty() {
        return journals::assemble(&files, run_file.as_ref());
    }
    if run_file.is_some_and(|file| file.keeps_no_journals()) {
        let fix = "only a job that reaches MPI_Finalize leaves a trace then: set output.journal = \"node\"";
        return Err(Failure::message(
            NOT_FOUND,
            format!("no {TRACE}, and journals were off"),
            run.display(),
            fix,
        ));
    }
    let Some(named) = named else {
        let fix = format!("name a directory that ampl made, its {TRACE}, or a directory of journals");
        return Err(Failure::message(NOT_FOUND, "neither a trace nor journals", run.display(), fix));
    };
    Err(Failure::message(
        NOT_FOUND,
        format!("no {TRACE}, and no journals in {}", named.display()),
        run.display(),
        "journals of a node's own memory can only be read on that node, until it is cleaned",
    ))
}

/// The journals of `run` that can be read here: where the job says that they are or in the run directory, and those that
/// were brought home from other hosts.
pub fn own_journals(run: &Path) -> Vec<PathBuf> {
    let named = RunFile::read(run).and_then(|file| file.journals);
    let places = [named, Some(run.join("journal")), Some(run.to_owned())];
    let own = places.into_iter().flatten().map(|place| journals::list(&place));
    let mut files = own.into_iter().find(|files| !files.is_empty()).unwrap_or_default();
    let mut ranks: BTreeSet<OsString> =
        files.iter().filter_map(|file| Some(file.file_name()?.into())).collect();
    for home in nodes::homes(run) {
        let brought = journals::list(&home);
        files.extend(
            brought.into_iter().filter(|file| ranks.insert(file.file_name().unwrap_or_default().into())),
        );
    }
    files
}

/// Those of them that are in this node's memory, and not in the run directory.
pub fn node_journals(run: &Path) -> Vec<PathBuf> {
    let full = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let directory = full(run);
    own_journals(run).into_iter().filter(|file| !full(file).starts_with(&directory)).collect()
}

/// Whether the trace of the run in `dir` has all ranks, and is not damaged.
pub fn is_whole(dir: &Path) -> bool {
    let file = dir.join(TRACE);
    file.exists() && read_file(&file).is_ok_and(|trace| trace.complete && trace.damage.is_empty())
}

/// Whether a run directory has no trace file: then all that there is of it is in journals.
pub fn has_no_trace(run: &Path) -> bool {
    run.is_dir() && !run.join(TRACE).exists()
}

fn absent(path: &Path, error: &str) -> anyhow::Error {
    let fix = format!("name a run directory or its {TRACE}");
    Failure::message(NOT_FOUND, format!("no such run: {error}"), path.display(), fix)
}

fn unreadable(path: &Path, error: &str) -> anyhow::Error {
    let name = path.file_name().unwrap_or(OsStr::new(TRACE)).to_string_lossy();
    let fix = "check that it was written by this version of ampl and copied whole";
    Failure::message(DAMAGED, format!("cannot read {name}: {error}"), path.display(), fix)
}
