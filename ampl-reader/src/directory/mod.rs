//! The files of a run: its trace file, its journals, its hosts.

mod holder;
mod in_memory;
mod journals;
mod life;
pub mod nodes;
mod run_file;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use ampl_core::config::Config;
use ampl_core::plan::Plan;
use ampl_trace::format::TraceFile;
use ampl_trace::{RunInfo, Trace};
use memmap2::Mmap;

use crate::error::OpenError;
use crate::map;
pub use crate::names::TRACE;
pub use holder::{Holder, host, lives_in, living, runs};
pub use in_memory::own as own_in_memory;
pub use journals::{list as journals_in, write};
use run_file::RunFile;
pub use run_file::note_end;

/// The plan that the job agreed on, from the configuration in `run`; `None` where that cannot be read.
pub fn plan(run: &RunInfo) -> Option<Plan> {
    let (config, _) = Config::parse(&run.config).ok().filter(|_| run.ranks > 0)?;
    Plan::new(config, run.ranks).ok()
}

/// The trace of `run`: its trace file, or its journals while there is none that is whole.
///
/// # Errors
/// [`OpenError`] when nothing of a run is there, or none of it can be read.
pub fn read(run: &Path) -> Result<Trace, OpenError> {
    let Some(file) = trace_file(run)? else { return from_journals(run, &[]) };
    let merged = read_file(&file);
    let whole = merged.as_ref().is_ok_and(|trace| trace.damage.is_empty());
    if whole || file == run {
        return merged;
    }
    // A job that dies while it merges leaves both: the journals are removed last.
    match (merged, from_journals(run, &[])) {
        (Ok(merged), Ok(journals)) if journals.ranks.len() < merged.ranks.len() => Ok(merged),
        (_, Ok(journals)) => Ok(journals),
        (merged, Err(_)) => merged,
    }
}

/// The trace file of `run`: itself, or the one in the directory; `None` where the directory has none.
///
/// # Errors
/// [`OpenError::Absent`] where nothing is at `run`, and no journal in this node's memory names it.
pub(crate) fn trace_file(run: &Path) -> Result<Option<PathBuf>, OpenError> {
    let absent =
        |error| OpenError::denied(run).unwrap_or_else(|| OpenError::Absent { path: run.to_owned(), error });
    match fs::metadata(run) {
        Ok(metadata) if metadata.is_dir() => {}
        Ok(_) => return Ok(Some(run.to_owned())),
        Err(error) if error.kind() == ErrorKind::NotFound && in_memory::of(run).is_some() => return Ok(None),
        Err(error) => return Err(absent(error)),
    }
    let file = run.join(TRACE);
    Ok(file.exists().then_some(file))
}

/// The trace file at `file`, mapped, with the list of its sections.
///
/// # Errors
/// [`OpenError`] where it cannot be read, or is no trace file of this version.
pub(crate) fn open_file(file: &Path) -> Result<TraceFile<Mmap>, OpenError> {
    TraceFile::new(mapped(file)?).map_err(|error| OpenError::NotATrace { path: file.to_owned(), error })
}

fn read_file(file: &Path) -> Result<Trace, OpenError> {
    let trace = open_file(file)?.into_trace();
    trace.map_err(|error| OpenError::NotATrace { path: file.to_owned(), error })
}

fn mapped(file: &Path) -> Result<Mmap, OpenError> {
    let path = file.to_owned();
    map::file(file).map_err(|error: io::Error| match error.kind() {
        ErrorKind::NotFound => OpenError::Absent { path, error },
        ErrorKind::PermissionDenied => {
            OpenError::denied(file).unwrap_or(OpenError::Unreadable { path, error })
        }
        _ => OpenError::Unreadable { path, error },
    })
}

/// The trace of a run that is under way, or has died, from its journals and those in `others`, which stand before copies
/// in the run directory.
///
/// # Errors
/// [`OpenError`] when there is none, or none can be read.
pub fn from_journals(run: &Path, others: &[PathBuf]) -> Result<Trace, OpenError> {
    let run_file = RunFile::read(run);
    let named = run_file.as_ref().and_then(|file| file.journals.clone());
    let others: Vec<PathBuf> = others.iter().flat_map(|place| journals::list(place)).collect();
    let mut files = own_journals(run);
    let again: BTreeSet<_> = others.iter().filter_map(|file| file.file_name()).collect();
    files
        .retain(|file| !(is_brought(run, file) && file.file_name().is_some_and(|name| again.contains(name))));
    files.extend(others);
    if let Some(first) = files.first() {
        let assembled = journals::assemble(&files, run_file.as_ref());
        return assembled.map_err(|error| OpenError::denied(first).unwrap_or(error));
    }
    // What may not be read looks as if it were not there.
    let places = [Some(run), Some(&*run.join("run.toml")), named.as_deref()];
    if let Some(denied) = places.into_iter().flatten().find_map(OpenError::denied) {
        return Err(denied);
    }
    let path = run.to_owned();
    if run_file.is_some_and(|file| file.keeps_no_journals()) {
        return Err(OpenError::JournalsOff { path });
    }
    Err(match named {
        Some(journals) => OpenError::JournalsGone { path, journals },
        None => OpenError::Empty { path },
    })
}

/// Journals of `run` that can be read here: in the job's journal directory or the run directory, and those that were
/// brought home from other hosts. Where no `run.toml` names them, those in this node's memory that name `run`.
pub fn own_journals(run: &Path) -> Vec<PathBuf> {
    let named = RunFile::read(run).and_then(|file| file.journals).or_else(|| in_memory::of(run));
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

/// True where `file`, a journal of `run`, is one that came from the memory of a node.
fn is_brought(run: &Path, file: &Path) -> bool {
    file.starts_with(run.join(ampl_core::nodes::NODES))
}

/// Journals of `run` that its ranks themselves write or wrote, as far as they are seen here.
pub fn original_journals(run: &Path) -> Vec<PathBuf> {
    let mut files = own_journals(run);
    files.retain(|file| !is_brought(run, file));
    files
}

/// Time between two copies of the journals of `run`, nanoseconds; `None` where it has none or that is not known.
pub fn copy_ns(run: &Path) -> Option<u64> {
    RunFile::read(run)?.copy_ns()
}

/// Journals of `run` that are in this node's memory, and not in the run directory.
pub fn node_journals(run: &Path) -> Vec<PathBuf> {
    let full = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let directory = full(run);
    own_journals(run).into_iter().filter(|file| !full(file).starts_with(&directory)).collect()
}

/// The scheduler of the job that `run` is of, and its number there; `None` where it was started by hand.
pub fn scheduled(run: &Path) -> Option<(String, String)> {
    RunFile::read(run)?.scheduled()
}

/// True where the trace of the run in `dir` has all ranks, and is not damaged.
pub fn is_whole(dir: &Path) -> bool {
    let file = dir.join(TRACE);
    file.exists() && read_file(&file).is_ok_and(|trace| trace.complete && trace.damage.is_empty())
}

/// True where a run directory has no trace file, or is gone: then all that there is of the run is in journals.
pub fn has_no_trace(run: &Path) -> bool {
    match run.is_dir() {
        true => !run.join(TRACE).exists(),
        false => !run.exists() && in_memory::of(run).is_some(),
    }
}

/// The runs in a directory that is none itself, by names without equals signs.
pub fn runs_in(directory: &Path) -> BTreeMap<String, PathBuf> {
    let is_run = |path: &Path| path.join(TRACE).is_file() || path.join("run.toml").is_file();
    if is_run(directory) {
        return BTreeMap::new();
    }
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    // An equals sign would end the name of a partition.
    let name = |path: &Path| Some(path.file_name()?.to_string_lossy().replace('=', "_"));
    entries.filter(|path| is_run(path)).filter_map(|path| Some((name(&path)?, path))).collect()
}
