//! `ampl export`: the records of a run as tables for other tools.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ampl_core::config::RankSummaries;
use ampl_export::place::Place;
use ampl_export::{Format, calls, estimates, summaries};
use ampl_report::human::{count, plural};
use ampl_trace::Trace;

use crate::failure::{DAMAGED, Failure, NOT_FOUND, OTHER, USAGE};
use crate::progress::Progress;
use crate::rundir::{self, RunArg};
use crate::{selection, strata};

#[cfg(test)]
mod tests;

/// Write a run as tables: windows, calls, estimates and strata.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Example:\n  ampl export ampl-lmp-4242-20260101T120000 --to parquet --from 10s --to 20s\n\n\
                  csv writes summaries.csv; parquet writes, beside it in one directory:\n  \
                  summaries.parquet  every rank's windows, as 'ampl simulate --population' takes them\n  \
                  calls.parquet      every stored call, with its time and weight where these are stored\n  \
                  estimates.parquet  the rows of 'ampl estimate'\n  \
                  strata.parquet     the strata of 'ampl strata'\n\n\
                  --ranks cuts summaries and calls; --from and --until cut all but strata. Calls without a\n\
                  stored time are left out then. docs/export.md has the columns."
)]
pub struct Args {
    #[command(flatten)]
    run: RunArg,
    /// `csv` or `parquet`; given a second time, as in --to 20s, it is --until
    #[arg(long, value_name = "FORMAT|T", required = true)]
    to: Vec<String>,
    /// Directory for the files; by default one named after the format, in the run directory
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
    /// Only windows that end after that time since the start, as in 1.5s or 250ms
    #[arg(long, value_name = "T")]
    from: Option<String>,
    /// Only windows that start before that time
    #[arg(long, value_name = "T")]
    until: Option<String>,
    /// Only these ranks, as in 0-127,200
    #[arg(long, value_name = "SET")]
    ranks: Option<String>,
}

/// Writes the tables and prints their paths to stderr.
///
/// # Errors
/// Errors of [`RunArg::read`]; a [`Failure`] of status 2 for options that make no sense and for files that
/// exist, of status 4 where nothing was recorded that could be written, or not of the ranks or the time
/// named.
pub fn export(args: &Args) -> anyhow::Result<ExitCode> {
    let (format, second) = format(&args.to)?;
    let until = match (args.until.as_deref(), second) {
        (Some(_), Some(_)) => {
            let fix = "leave out one of --until and the second --to";
            return Err(Failure::message(USAGE, "the end is given twice", "command line", fix));
        }
        (until, second) => until.or(second),
    };
    let selection = selection::parse(args.from.as_deref(), until, args.ranks.as_deref())?;
    let trace = args.run.read()?;
    let present = trace.ranks.iter().map(|rank| rank.process.rank);
    if let Some(absent) = selection.lacks(trace.run.ranks, present) {
        let (what, fix) = selection::lacking(&absent, trace.run.ranks);
        let status = if trace.damage.is_empty() { NOT_FOUND } else { DAMAGED };
        let place =
            format!("{}, --ranks {}", args.run.run.display(), args.ranks.as_deref().unwrap_or_default());
        return Err(Failure::message(status, what, place, fix));
    }
    let Some(plan) = rundir::plan(&trace) else {
        let fix = "keep run.toml beside the journals of a run that was not merged";
        let place = args.run.run.display();
        return Err(Failure::message(DAMAGED, "the run's configuration cannot be read", place, fix));
    };
    let missing = match kept_back(&trace, &args.run.run) {
        // Calls can be exported all the same.
        Err(error) if format == Format::Parquet && Failure::has(&error, NOT_FOUND) => {
            tell!("ampl: {error}");
            None
        }
        missing => missing?,
    };
    let taken = trace.ranks.iter().filter(|rank| selection.takes_rank(rank.process.rank));
    if let Some(end_ns) = selection.misses(taken.flat_map(|rank| &rank.windows)) {
        let (what, fix) = selection::missed(end_ns);
        return Err(Failure::message(NOT_FOUND, what, args.run.run.display(), fix));
    }
    let directory = args.output.clone().unwrap_or_else(|| beside(&args.run.run, format));
    let tables: &[&str] = match format {
        Format::Csv => &["summaries"],
        Format::Parquet => &["calls", "estimates", "strata", "summaries"],
    };
    let names: Vec<String> = tables.iter().map(|table| format!("{table}.{}", format.name())).collect();
    if let Some(file) = names.iter().map(|name| directory.join(name)).find(|file| file.exists()) {
        let fix = "remove it, or name another directory with -o";
        return Err(Failure::message(USAGE, "the file exists", file.display(), fix));
    }
    let unwritable = |error| unwritable(&directory, &error);
    let place = Place::new(&directory, names.clone()).map_err(unwritable)?;
    let mut rows = Vec::new();
    for (table, name) in tables.iter().zip(&names) {
        let out = BufWriter::new(File::create(place.path(name)).map_err(unwritable)?);
        let mut progress = Progress::of(trace.ranks.len() as u64, "ranks");
        let rank_done = || progress.one_more();
        rows.push(match *table {
            "calls" => {
                let written = calls::write(&trace, &plan, &selection, out, rank_done).map_err(unwritable)?;
                notice(&written, &args.run.run);
                written.rows
            }
            "estimates" => estimates::write(&trace, &plan, &selection, out).map_err(unwritable)?,
            "strata" => {
                let found = strata::of_run(&args.run.run);
                if let Err(error) = &found {
                    tell!("ampl: no strata are written: {error}");
                }
                estimates::write_strata(found.as_ref().ok(), out).map_err(unwritable)?
            }
            _ => {
                let sampled = missing.is_some();
                summaries::write(&trace, &selection, sampled, format, out, rank_done).map_err(unwritable)?
            }
        });
    }
    place.finish().map_err(unwritable)?;
    if let Some((missing, fix)) = missing {
        tell!("ampl: {missing} ({}): {fix}", args.run.run.display());
    }
    for (rows, name) in rows.into_iter().zip(&names) {
        tell!("ampl: {} rows in {}", count(rows), directory.join(name).display());
    }
    Ok(rundir::status(&trace))
}

/// Reports on stderr the calls that are not in the table.
fn notice(written: &calls::Written, run: &Path) {
    if written.untimed > 0 {
        let calls = plural(written.untimed, "call");
        let fix = "leave out --from and --until to have them";
        tell!("ampl: {calls} left out without a stored time ({}): {fix}", run.display());
    }
    if written.damaged > 0 {
        let ranks = plural(written.damaged, "rank");
        tell!(
            "ampl: calls of {ranks} cannot be read to the end ({}): those before are written",
            run.display()
        );
    }
}

/// The format, and the time behind a second `--to`, in whichever order they came.
fn format(words: &[String]) -> anyhow::Result<(Format, Option<&str>)> {
    let (formats, times): (Vec<&String>, Vec<&String>) =
        words.iter().partition(|word| Format::by_name(word).is_some());
    let wrong =
        |what: String| Failure::message(USAGE, what, "--to", "use csv or parquet, then a time such as 20s");
    match (formats[..].as_ref(), times[..].as_ref()) {
        ([format], []) => Ok((Format::by_name(format).expect("it was found"), None)),
        ([format], [time]) => Ok((Format::by_name(format).expect("it was found"), Some(time))),
        ([], [word, ..]) => Err(wrong(format!("'{word}' is not a format of this version"))),
        _ => Err(wrong("one format and at most one time can be given".into())),
    }
}

/// Windows that the run did not store, and how to have them; `None` where it stored all, an error where it stored
/// none.
fn kept_back(trace: &Trace, run: &Path) -> anyhow::Result<Option<(&'static str, &'static str)>> {
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

/// `RUN/csv`, whether the run was named by its directory or by its trace.
fn beside(run: &Path, format: Format) -> PathBuf {
    let directory = if run.is_dir() { run } else { run.parent().unwrap_or(Path::new("")) };
    directory.join(format.name())
}

fn unwritable(path: &Path, error: &io::Error) -> anyhow::Error {
    let what = format!("cannot write: {error}");
    Failure::message(OTHER, what, path.display(), "name a directory that you may write with -o")
}
