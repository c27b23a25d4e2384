//! `ampl history`: the runs of an archive of records.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use ampl_analysis::history::{Change, Row, changes_of};
use ampl_analysis::record::{Origin, Record};
use ampl_core::since;
use ampl_export::archive::index;
use ampl_export::history as tables;
use ampl_launch::environment;
use ampl_report::history::{self as text, Mark};
use ampl_report::human::plural;
use serde::Serialize;

use crate::failure::{Failure, NOT_FOUND, OTHER, USAGE};
use crate::output;
use crate::progress::Progress;
use crate::rundir::RunArg;

/// List the runs of an archive, and find when runs of one kind became slower.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Example:\n  ampl history /archive --app lmp --since 30d\n  ampl history /archive --like ampl-lmp-4242-20260101T120000"
)]
pub struct Args {
    /// The directory in which output.record puts records
    #[arg(value_name = "DIR")]
    archive: PathBuf,
    /// Only runs of this program
    #[arg(long, value_name = "NAME")]
    app: Option<String>,
    /// Only runs of this user
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Only runs that began at or after a day (2026-11-27, UTC) or in the last 12h, 30d or 8w
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only runs of the same program, ranks, arguments and inputs as this run or record, with changes of their time
    #[arg(long, value_name = "RUN")]
    like: Option<PathBuf>,
    /// One JSON document instead of lines
    #[arg(long, conflicts_with = "parquet")]
    json: bool,
    /// Write the list as Parquet, a directory for each month
    #[arg(long)]
    parquet: bool,
    /// Directory for --parquet, which must not exist yet
    #[arg(
        short = 'o',
        long = "output",
        value_name = "DIR",
        default_value = "ampl-history",
        requires = "parquet"
    )]
    output: PathBuf,
}

/// A row of the output in JSON.
#[derive(Debug, Serialize)]
struct JsonRow<'a> {
    #[serde(flatten)]
    row: &'a Row,
    /// The change that this run is the first after.
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<JsonChange<'a>>,
}

#[derive(Debug, Serialize)]
struct JsonChange<'a> {
    before_ns: f64,
    after_ns: f64,
    /// Relative: 0.1 where runs take a tenth longer.
    change: f64,
    p: f64,
    /// Facts in which this run and the one before differ.
    differences: &'a [String],
}

/// Prints the list.
///
/// # Errors
/// A [`Failure`] of status 2 for a time that is none, of status 4 where there is no archive; errors of reading `--like`.
pub fn history(args: &Args) -> anyhow::Result<ExitCode> {
    let since = args.since.as_deref().map(moment).transpose()?;
    let alike = args.like.as_deref().map(of).transpose()?;
    let like = alike.as_ref().map(|record| &record.key);
    if args.parquet && args.output.exists() {
        let what = "the directory exists";
        return Err(Failure::message(USAGE, what, args.output.display(), "name a new one with -o"));
    }
    let mut progress = Progress::endless("records read");
    let archive =
        index::open(&args.archive, environment::cache().as_deref(), || progress.add(1)).map_err(|error| {
            let what = format!("cannot read the archive: {error}");
            Failure::message(NOT_FOUND, what, args.archive.display(), "name the directory of output.record")
        })?;
    drop(progress);
    if let Some((file, why)) = archive.others.first() {
        let (number, place) = (archive.others.len(), args.archive.join(file));
        let what = format!("{number} files are no records: the first: {why}");
        notice!("ampl: {what} ({}): move them elsewhere", place.display());
    }
    for (what, fix) in text::left_out(archive.denied, archive.closed, archive.passed) {
        notice!("ampl: {what} ({}): {fix}", args.archive.display());
    }
    alike.as_ref().and_then(text::unknown_of).iter().for_each(|what| notice!("ampl: {what}"));
    let is_wanted = |row: &Row| {
        args.app.as_ref().is_none_or(|app| *app == row.app)
            && args.user.as_ref().is_none_or(|user| *user == row.user)
            && since.is_none_or(|since| row.started_ns >= since)
            && like.is_none_or(|key| *key == row.key)
    };
    let mut rows = archive.rows;
    rows.retain(is_wanted);
    let marks = like.map_or_else(Vec::new, |_| marks(&args.archive, &rows));
    if args.parquet {
        return write_tables(&rows, &args.output);
    }
    if args.json {
        let rows: Vec<JsonRow<'_>> =
            rows.iter().enumerate().map(|(at, row)| json_row(at, row, &marks)).collect();
        output::json(&rows)?;
        return Ok(ExitCode::SUCCESS);
    }
    output::print(|out| text::write(out, &rows, &marks))?;
    if alike.is_some() {
        notice!("ampl: {}", text::verdict(&rows, &marks));
    }
    Ok(ExitCode::SUCCESS)
}

/// Nanoseconds since the Unix epoch of the moment in `text`.
fn moment(text: &str) -> anyhow::Result<u64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    since::seconds(text, now).map(|seconds| seconds.saturating_mul(1_000_000_000)).ok_or_else(|| {
        let what = format!("'{text}' is no time");
        Failure::message(USAGE, what, "--since", "write a day as 2026-11-27, or 12h, 30d or 8w")
    })
}

fn json_row<'a>(at: usize, row: &'a Row, marks: &'a [Mark]) -> JsonRow<'a> {
    let change = marks.iter().find(|mark| mark.row == at).map(|mark| {
        let Change { before, after, p, .. } = mark.change;
        let change = after / before - 1.0;
        JsonChange { before_ns: before, after_ns: after, change, p, differences: &mark.differences }
    });
    JsonRow { row, change }
}

/// The record of a run, or the one in a file.
fn of(path: &Path) -> anyhow::Result<Record> {
    if path.is_file() && path.extension().is_some_and(|ending| ending == "json") {
        let record = index::read(path).map_err(|why| {
            let what = format!("this is no record: {why}");
            Failure::message(crate::failure::DAMAGED, what, path.display(), "name a run or its record")
        })?;
        return Ok(record);
    }
    let trace = RunArg { run: path.to_owned() }.read()?;
    Ok(Record::of(&trace, Origin::default()))
}

/// Changes in `rows`, with the facts that differ between the finished runs around each.
fn marks(archive: &Path, rows: &[Row]) -> Vec<Mark> {
    let mark = |(row, change): (usize, Change)| {
        let (before, after) = index::facts_around(archive, rows, row);
        Mark { row, change, differences: text::differences(before, after) }
    };
    changes_of(rows).into_iter().map(mark).collect()
}

/// Writes the months, all or none.
fn write_tables(rows: &[Row], target: &Path) -> anyhow::Result<ExitCode> {
    let unwritable = |error: std::io::Error| {
        let what = format!("cannot write: {error}");
        Failure::message(OTHER, what, target.display(), "name another directory with -o")
    };
    tables::write_months(rows, target).map_err(unwritable)?;
    notice!("ampl: {} in {}", plural(rows.len() as u64, "run"), target.display());
    Ok(ExitCode::SUCCESS)
}
