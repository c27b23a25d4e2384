//! Tables of a run, a file each.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use ampl_core::config::RankSummaries;
use ampl_core::plan::Plan;
use ampl_export::place::Place;
use ampl_export::{Format, Selection, calls, counts, estimates, messages, summaries};
use ampl_report::human::count;
use ampl_trace::Trace;
use ampl_trace::communicators::Communicators;

use super::{beside, notice, unwritable};
use crate::failure::{DAMAGED, Failure, NOT_FOUND, USAGE};
use crate::progress::Progress;
use crate::{rundir, strata};

/// A table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Table {
    Calls,
    Communicators,
    Estimates,
    Functions,
    Messages,
    Sites,
    Strata,
    Summaries,
}

impl Table {
    const ALL: [Self; 8] = [
        Self::Calls,
        Self::Communicators,
        Self::Estimates,
        Self::Functions,
        Self::Messages,
        Self::Sites,
        Self::Strata,
        Self::Summaries,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Calls => "calls",
            Self::Communicators => "communicators",
            Self::Estimates => "estimates",
            Self::Functions => "functions",
            Self::Messages => "messages",
            Self::Sites => "sites",
            Self::Strata => "strata",
            Self::Summaries => "summaries",
        }
    }
}

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
    let missing = match kept_back(trace, run) {
        // Calls can be exported all the same.
        Err(error) if format == Format::Parquet && Failure::has(&error, NOT_FOUND) => {
            tell!("ampl: {error}");
            None
        }
        missing => missing?,
    };
    let directory = output.unwrap_or_else(|| beside(run, format.name()));
    let tables: &[Table] = match format {
        Format::Csv => &[Table::Summaries],
        Format::Parquet => &Table::ALL,
    };
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
                    tell!("ampl: no strata are written: {error}");
                }
                estimates::write_strata(found.as_ref().ok(), out)
            }
            Table::Summaries => summaries::write(trace, selection, missing.is_some(), format, out, rank_done),
        };
        rows.push(written.map_err(unwritable)?);
    }
    place.finish().map_err(unwritable)?;
    if let Some((missing, fix)) = missing {
        tell!("ampl: {missing} ({}): {fix}", run.display());
    }
    for (rows, name) in rows.into_iter().zip(&names) {
        tell!("ampl: {} rows in {}", count(rows), directory.join(name).display());
    }
    Ok(())
}

/// Windows that the run did not store, and how to have them; `None` where it stored all, an error where it stored
/// none.
pub(super) fn kept_back(trace: &Trace, run: &Path) -> anyhow::Result<Option<(&'static str, &'static str)>> {
    let Some(plan) = rundir::plan(trace) else {
        let fix = "keep run.toml beside the journals of a run that was not merged";
        return Err(Failure::message(DAMAGED, "the run's configuration cannot be read", run.display(), fix));
    };
    match plan.config.output.rank_summaries {
        _ if plan.stores_summary(false) => Ok(None),
        RankSummaries::All => Ok(Some((
            "only sampled windows were stored, as sampling.summaries says",
            "set it to \"census\" for the next run",
        ))),
        RankSummaries::Sample => Ok(Some((
            "only sampled windows were stored, as output.rank_summaries says",
            "set it to \"all\" for the next run",
        ))),
        RankSummaries::Off => {
            let fix = "set it to \"all\" or \"sample\" for the next run";
            let what = "no rank's windows were stored, as output.rank_summaries says";
            Err(Failure::message(NOT_FOUND, what, run.display(), fix))
        }
    }
}
