//! Tables of a run, a file each.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use ampl_core::plan::Plan;
use ampl_export::place::Place;
use ampl_export::{Format, Selection, Table, calls, counts, estimates, messages, summaries};
use ampl_report::human::count;
use ampl_report::unstored::{KeptBack, windows_kept_back};
use ampl_trace::Trace;
use ampl_trace::communicators::Communicators;

use super::{beside, notice, unwritable};
use crate::failure::{Failure, NOT_FOUND, USAGE};
use crate::progress::Progress;
use crate::strata;

/// Writes the tables, all or none, and prints their paths to stderr.
///
/// # Errors
/// A [`Failure`] of status 2 for files that exist, of status 4 where no windows were recorded that a table could have,
/// of status 1 where a file cannot be written.
pub fn write(
    run: &Path,
    output: Option<PathBuf>,
    trace: &Trace,
    plan: &Plan,
    selection: &Selection,
    format: Format,
) -> anyhow::Result<()> {
    let missing = match windows_kept_back(plan) {
        KeptBack::Nothing => None,
        KeptBack::Some(what, fix) => Some((what, fix)),
        KeptBack::All(what, fix) => {
            let error = Failure::message(NOT_FOUND, what, run.display(), fix);
            // Calls can be exported all the same.
            if format == Format::Csv {
                return Err(error);
            }
            notice!("ampl: {error}");
            None
        }
    };
    let directory = output.unwrap_or_else(|| beside(run, format.name()));
    let tables = Table::of(format);
    let names: Vec<String> =
        tables.iter().map(|table| format!("{}.{}", table.name(), format.name())).collect();
    if let Some(file) = names.iter().map(|name| directory.join(name)).find(|file| file.exists()) {
        let fix = "remove it, or name another directory with -o";
        return Err(Failure::message(USAGE, "the file exists", file.display(), fix));
    }
    let unwritable = |error| unwritable(&directory, &error);
    let place = Place::new(&directory, names.clone()).map_err(unwritable)?;
    let comms = Communicators::of(trace);
    let mut rows = Vec::new();
    for (table, name) in tables.iter().zip(&names) {
        let out = BufWriter::new(File::create(place.path(name)).map_err(unwritable)?);
        let mut progress = Progress::of(trace.ranks.len() as u64, "ranks");
        let rank_done = || progress.one_more();
        let written = match table {
            Table::Calls => calls::write(trace, &comms, plan, selection, out, rank_done).map(|written| {
                notice(&written, run, "leave out --from and --until to have them");
                written.rows
            }),
            Table::Communicators => counts::write_communicators(&comms, out),
            Table::Estimates => estimates::write(trace, plan, selection, out),
            Table::Functions => counts::write_functions(trace, selection, out),
            Table::Messages => messages::write(trace, &comms, selection, out),
            Table::Sites => counts::write_sites(trace, out),
            Table::Strata => {
                let found = strata::of_run(run);
                if let Err(error) = &found {
                    notice!("ampl: no strata are written: {error}");
                }
                estimates::write_strata(found.as_ref().ok(), out)
            }
            Table::Summaries => summaries::write(trace, selection, missing.is_some(), format, out, rank_done),
        };
        rows.push(written.map_err(unwritable)?);
    }
    place.finish().map_err(unwritable)?;
    if let Some((missing, fix)) = missing {
        notice!("ampl: {missing} ({}): {fix}", run.display());
    }
    for (rows, name) in rows.into_iter().zip(&names) {
        notice!("ampl: {} rows in {}", count(rows), directory.join(name).display());
    }
    Ok(())
}
