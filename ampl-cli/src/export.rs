//! `ampl export`: the records of a run as tables for other tools.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ampl_export::call_rows::Written;
use ampl_export::{Format, Selection, place};
use ampl_reader::directory::runs_in;
use ampl_report::human::plural;
use ampl_report::selection::{lacking, missed};

use crate::failure::{DAMAGED, Failure, NOT_FOUND, OTHER, USAGE};
use crate::rundir::{self, RunArg};
use crate::selection;

mod actions;
mod copy;
mod otf2;
mod tables;
mod timeline;

/// Form in which a run is taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    /// Tables, a file each.
    Tables(Format),
    /// One file with the calls of all ranks over time.
    Timeline(timeline::Format),
    /// An archive of OTF2.
    Otf2,
    /// Actions of the ranks, for simulators.
    Actions(actions::Format),
    /// A trace file.
    Copy,
}

impl Target {
    const ALL: [Self; 7] = [
        Self::Tables(Format::Csv),
        Self::Tables(Format::Parquet),
        Self::Timeline(timeline::Format::Perfetto),
        Self::Otf2,
        Self::Actions(actions::Format::Simgrid),
        Self::Actions(actions::Format::Goal),
        Self::Copy,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Tables(format) => format.name(),
            Self::Timeline(format) => format.name(),
            Self::Otf2 => "otf2",
            Self::Actions(format) => format.name(),
            Self::Copy => "ampl",
        }
    }

    fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|target| target.name() == name)
    }
}

/// Write a run for other tools: tables, or a timeline.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Example:\n  ampl export ampl-lmp-4242-20260101T120000 --to parquet --from 10s --to 20s\n\n\
                  csv writes summaries.csv; parquet writes, beside it in one directory:\n  \
                  summaries.parquet  every rank's windows, as 'ampl simulate --population' takes them\n  \
                  calls.parquet      every stored call, with its time and weight where these are stored\n  \
                  estimates.parquet  the rows of 'ampl estimate'\n  \
                  functions.parquet  every rank's calls by function\n  \
                  sites.parquet      the table of 'ampl info --calls'\n  \
                  communicators.parquet, messages.parquet, strata.parquet\n\n\
                  Of a directory of runs, parquet writes a data set with a partition run=NAME for each.\n\n\
                  perfetto writes one timeline of the timed calls, for ui.perfetto.dev;\n\
                  otf2 a directory with traces.otf2, for Vampir, Cube and otf2-print;\n\
                  simgrid a directory for smpirun -replay, goal a file for LogGOPSim: see docs/guide/simulators.md;\n\
                  ampl a trace file that ampl reads; with --anonymous, numbers stand for all names in it.\n\n\
                  --ranks cuts windows, calls and functions; --from and --until cut windows, calls and\n\
                  estimates. Calls without a stored time are left out then. docs/export.md has the columns."
)]
pub struct Args {
    #[command(flatten)]
    run: RunArg,
    /// `csv`, `parquet`, `perfetto`, `otf2`, `simgrid`, `goal` or `ampl`; given a second time, as in --to 20s, it is --until
    #[arg(long, value_name = "FORMAT|T", required = true)]
    to: Vec<String>,
    /// Directory for tables or OTF2, or the timeline's file; by default one named after the format, in the run directory
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
    /// With --to ampl: without names of programs, arguments, hosts, paths and symbols
    #[arg(long)]
    anonymous: bool,
}

/// Writes the files of a run, or the tables of each run in a directory, and prints their paths to stderr.
///
/// # Errors
/// Errors of [`RunArg::read`]; a [`Failure`] of status 2 for options that make no sense and for files that
/// exist, of status 4 where nothing was recorded that could be written, or not of the ranks or the time
/// named.
pub fn export(args: &Args) -> anyhow::Result<ExitCode> {
    let (target, second) = target(&args.to)?;
    ampl_launch::interrupted::clean_up(place::abandon)?;
    let until = match (args.until.as_deref(), second) {
        (Some(_), Some(_)) => {
            let fix = "leave out one of --until and the second --to";
            return Err(Failure::message(USAGE, "the end is given twice", "command line", fix));
        }
        (until, second) => until.or(second),
    };
    if args.anonymous && target != Target::Copy {
        let what = format!("{} has names in it", target.name());
        let fix = "write --to ampl --anonymous, then export that file";
        return Err(Failure::message(USAGE, what, "--anonymous", fix));
    }
    if matches!(target, Target::Actions(_) | Target::Copy)
        && (until.is_some() || args.from.is_some() || args.ranks.is_some())
    {
        let what = format!("{} is of a whole run", target.name());
        return Err(Failure::message(USAGE, what, "command line", "leave out --from, --until and --ranks"));
    }
    let selection = selection::parse(args.from.as_deref(), until, args.ranks.as_deref())?;
    let runs = runs_in(&args.run.run);
    if runs.is_empty() {
        return one(args, &args.run, args.output.clone(), target, &selection);
    }
    let Target::Tables(format @ Format::Parquet) = target else {
        let what = format!("a directory of runs can be written as parquet, not as {}", target.name());
        return Err(Failure::message(USAGE, what, args.run.run.display(), "name one run"));
    };
    let data_set = args.output.clone().unwrap_or_else(|| args.run.run.join(format.name()));
    let mut worst = ExitCode::SUCCESS;
    for (name, run) in runs {
        let output = data_set.join(format!("run={name}"));
        let status = one(args, &RunArg { run }, Some(output), target, &selection)?;
        if status != ExitCode::SUCCESS {
            worst = status;
        }
    }
    Ok(worst)
}

/// Writes what is asked for of one run.
fn one(
    args: &Args,
    run: &RunArg,
    output: Option<PathBuf>,
    target: Target,
    selection: &Selection,
) -> anyhow::Result<ExitCode> {
    let trace = run.read()?;
    let present = trace.ranks.iter().map(|rank| rank.process.rank);
    if let Some(absent) = selection.lacks(trace.run.ranks, present) {
        let (what, fix) = lacking(&absent, trace.run.ranks);
        let status = if trace.damage.is_empty() { NOT_FOUND } else { DAMAGED };
        let place = format!("{}, --ranks {}", run.run.display(), args.ranks.as_deref().unwrap_or_default());
        return Err(Failure::message(status, what, place, fix));
    }
    let Some(plan) = rundir::plan(&trace) else {
        let fix = "keep run.toml beside the journals of a run that was not merged";
        let place = run.run.display();
        return Err(Failure::message(DAMAGED, "the run's configuration cannot be read", place, fix));
    };
    let taken = trace.ranks.iter().filter(|rank| selection.takes_rank(rank.process.rank));
    if let Some(end_ns) = selection.misses(taken.flat_map(|rank| &rank.windows)) {
        let (what, fix) = missed(end_ns);
        return Err(Failure::message(NOT_FOUND, what, run.run.display(), fix));
    }
    let status = rundir::status(&trace);
    match target {
        Target::Copy => copy::write(&run.run, output, trace, args.anonymous)?,
        Target::Actions(format) => actions::write(&run.run, output, &trace, format)?,
        Target::Tables(format) => tables::write(&run.run, output, &trace, &plan, selection, format)?,
        Target::Timeline(format) => timeline::write(&run.run, output, &trace, &plan, selection, format)?,
        Target::Otf2 => {
            let cut = otf2::Cut {
                from_ns: selection.from_ns(),
                until_ns: selection.until_ns(),
                ranks: args.ranks.as_deref(),
            };
            otf2::write(&run.run, output, cut)?;
        }
    }
    Ok(status)
}

/// Way out where calls have no stored times.
const KEEP_TIMES: &str = "set trace.timing = \"all\" for the next run to have the times of all";

/// Refuses to write over `path`.
fn refuse_existing(path: &Path, what: &str) -> anyhow::Result<()> {
    if !path.exists() {
        return Ok(());
    }
    let fix = "remove it, or name another with -o";
    Err(Failure::message(USAGE, format!("the {what} exists"), path.display(), fix))
}

/// Refuses an export of timed calls that has none.
fn refuse_empty(written: &Written, run: &Path) -> anyhow::Result<()> {
    if written.rows > 0 {
        return Ok(());
    }
    let what = "no call that is asked for has a stored time";
    Err(Failure::message(NOT_FOUND, what, run.display(), KEEP_TIMES))
}

/// Reports on stderr the calls that are not in the table.
fn notice(written: &Written, run: &Path, fix: &str) {
    if written.untimed > 0 {
        let calls = plural(written.untimed, "call");
        notice!("ampl: {calls} left out without a stored time ({}): {fix}", run.display());
    }
    if written.damaged > 0 {
        let ranks = plural(written.damaged, "rank");
        notice!(
            "ampl: calls of {ranks} cannot be read to the end ({}): those before are written",
            run.display()
        );
    }
}

/// The form, and the time behind a second `--to`, in whichever order they came.
fn target(words: &[String]) -> anyhow::Result<(Target, Option<&str>)> {
    let (targets, times): (Vec<&String>, Vec<&String>) =
        words.iter().partition(|word| Target::by_name(word).is_some());
    let names = Target::ALL.map(Target::name).join(", ");
    let wrong = |what: String| {
        Failure::message(USAGE, what, "--to", format!("use one of {names}, then a time such as 20s"))
    };
    match (targets[..].as_ref(), times[..].as_ref()) {
        ([target], []) => Ok((Target::by_name(target).expect("it was found"), None)),
        ([target], [time]) => Ok((Target::by_name(target).expect("it was found"), Some(time))),
        ([], [word, ..]) => Err(wrong(format!("'{word}' is not a format of this version"))),
        _ => Err(wrong("one format and at most one time can be given".into())),
    }
}

/// `RUN/NAME`, whether the run was named by its directory or by its trace.
fn beside(run: &Path, name: &str) -> PathBuf {
    let directory = if run.is_dir() { run } else { run.parent().unwrap_or(Path::new("")) };
    directory.join(name)
}

fn unwritable(path: &Path, error: &io::Error) -> anyhow::Error {
    let what = format!("cannot write: {error}");
    Failure::message(OTHER, what, path.display(), place::remedy(error))
}
