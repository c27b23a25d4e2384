//! A run read from its ranks' journals, while the job runs or after it has died.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use ampl_trace::format::{self, TraceFile, Writer, rank_parts};
use ampl_trace::from_journal::{Compacted, compact};
use ampl_trace::journal::word;
use ampl_trace::model::Sizes;
use ampl_trace::places::Places;
use ampl_trace::structure::JobStructure;
use ampl_trace::timing::Settings;
use ampl_trace::{Damage, RankTrace, Trace};

use super::life;
use super::run_file::RunFile;
use crate::error::OpenError;
use crate::map;

/// Settings that keep every time exact: a dead job leaves little, and all there is to explain it.
const EXACT: Settings = Settings { error: 0.0, floor_ns: 0 };

/// The journals in `dir`, by rank.
pub fn list(dir: &Path) -> Vec<PathBuf> {
    let ours = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("rank-") && name.ends_with(".journal")
    };
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(ours).collect();
    files.sort();
    files
}

/// One trace from the journals in `files`, never complete; the run file stands in for the client's journal.
///
/// # Errors
/// [`OpenError::BadJournals`] when none of them can be read.
pub fn assemble(files: &[PathBuf], run_file: Option<&RunFile>) -> Result<Trace, OpenError> {
    let mut trace = Trace::default();
    let mut structures = Vec::new();
    let mut run = None;
    let mut ranks = 0;
    for file in files {
        let note = |rank, what: String| {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            Damage { rank, what: format!("{name}: {what}") }
        };
        let read = map::file(file).map_err(|error| error.to_string());
        let compacted = read.and_then(|bytes| {
            let mut compacted = compact(&bytes, EXACT).map_err(|error| error.to_string())?;
            ranks = ranks.max(ranks_of(&bytes));
            compacted.rank.process.liveness = life::of(&compacted.rank.process, file);
            Ok(compacted)
        });
        let part = match compacted {
            Ok(part) => part,
            Err(error) => {
                trace.damage.push(note(None, error));
                continue;
            }
        };
        let totals = part.totals();
        let Compacted { rank, structure, run: described, decisions, damage, .. } = part;
        let number = rank.process.rank;
        trace.damage.extend(damage.into_iter().map(|what| note(Some(number), what)));
        if trace.rank(number).is_some() {
            trace.damage.push(note(Some(number), "a second journal of this rank".into()));
            continue;
        }
        trace.ranks.push(rank);
        trace.totals.join(totals);
        structures.push(structure);
        run = run.or(described);
        trace.decisions.extend(decisions);
    }
    if trace.ranks.is_empty() {
        let damage = trace.damage.first().map(|damage| damage.what.clone()).unwrap_or_default();
        let place = files.first().and_then(|file| file.parent()).unwrap_or(Path::new("."));
        return Err(OpenError::BadJournals { path: place.to_owned(), damage });
    }
    trace.ranks.sort_by_key(|rank| rank.process.rank);
    trace.run = run.unwrap_or_else(|| run_file.map(RunFile::describe).unwrap_or_default());
    if trace.run.ranks == 0 {
        trace.run.ranks = ranks;
    }
    trace.run.has_gaps = true;
    structures.sort_by_key(|structure| structure.rank);
    trace.structure = JobStructure::new(trace.run.ranks);
    structures.into_iter().for_each(|structure| trace.structure.join(JobStructure::of(structure)));
    trace.structure.unify();
    format::place_sites(&mut trace);
    format::finish(&mut trace);
    if super::plan(&trace.run).is_some_and(|plan| plan.leaves_out_summaries()) {
        trace.ranks.iter_mut().for_each(RankTrace::leave_out_summaries);
    }
    if super::plan(&trace.run).is_some_and(|plan| !plan.config.trace.addresses) {
        trace.ranks.iter_mut().for_each(|rank| rank.places = Places::default());
    }
    trace.run.end = life::end(&trace, run_file.and_then(|file| file.ended_ns));
    let until = trace.run.end.map_or(0, |end| end.at_ns.max(0) as u64);
    for rank in &mut trace.ranks {
        // The last reading of its clock is no end: it may have been in a call since.
        rank.process.elapsed_ns = rank.process.elapsed_ns.max(until);
    }
    trace.sizes = sizes(&trace);
    Ok(trace)
}

/// The number of ranks in a journal's header.
fn ranks_of(bytes: &[u8]) -> u32 {
    let field = bytes.get(word::RANKS * 8..).and_then(|rest| rest.first_chunk::<8>());
    field.and_then(|bytes| u32::try_from(u64::from_le_bytes(*bytes)).ok()).unwrap_or(0)
}

/// The sizes of `trace` as a trace file.
fn sizes(trace: &Trace) -> Sizes {
    let bytes = write(trace, Vec::new()).expect("memory takes everything");
    TraceFile::new(bytes).map(|file| file.sizes()).unwrap_or_default()
}

/// Writes `trace` as a trace file to `out`.
///
/// # Errors
/// Errors of `out`.
pub fn write<W: Write>(trace: &Trace, out: W) -> io::Result<W> {
    let mut writer = Writer::new(out)?;
    writer.run(&trace.run, &trace.decisions)?;
    writer.structure(&trace.structure)?;
    writer.totals(&trace.totals)?;
    writer.census(&trace.census)?;
    for rank in &trace.ranks {
        writer.rank(&rank_parts(rank))?;
    }
    writer.finish()
}
