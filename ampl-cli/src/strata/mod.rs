//! `ampl strata`: ranks of a run that behave alike, and whether sampling them apart would pay.

mod source;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use ampl_analysis::strata::{Found, K, Method, Request, StrataError, Stratification};
use ampl_core::cluster::Metric;
use ampl_report::human::plural;
use ampl_report::{strata as report, strata_file};

use crate::failure::{Failure, USAGE};
use crate::fraction;
use crate::output;
use source::Source;

/// Find ranks that behave alike, and write a job file that samples them apart.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  ampl strata ampl-lmp-4242-20260101T120000\n  \
                  ampl strata ampl-lmp-4242-20260101T120000 -o strata.toml --error 0.05\n  \
                  ampl strata population.parquet -c job.toml --k 2 --json\n  \
                  ampl strata ampl-lmp-4242-20260101T120000 --compare\n\n\
                  Ranks are told apart by their mean per window of every guide. Strata are found on every other\n\
                  window and judged on the windows between: by how many ranks a sample would take.")]
pub struct Args {
    /// A run whose summaries are a census; or a population, as 'ampl simulate' takes it
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// Job file with other guides, groups and bounds than the run's, and with group.stratify and group.k
    #[arg(short = 'c', long = "config", value_name = "JOB.toml")]
    config: Option<OsString>,
    /// Write a job file in which every stratum is a group
    #[arg(short = 'o', long = "output", value_name = "JOB.toml")]
    output: Option<PathBuf>,
    /// Divide this group only; without it, all ranks together, or the one group with 'stratify'
    #[arg(long, value_name = "NAME")]
    group: Option<String>,
    /// Metric to go by, as in mpi.time or mpi.time@MPI_Waitsome; without it, the guides
    #[arg(long = "metric", value_name = "METRIC[@EVENT]")]
    metrics: Vec<String>,
    /// How many strata; without it group.k, and without that as many as pay, up to 8
    #[arg(long, value_name = "auto|N", value_parser = k)]
    k: Option<K>,
    /// Confidence of the bound that samples are priced for, in (0, 1); without it, the group's
    #[arg(long, value_name = "P", value_parser = fraction::inside)]
    confidence: Option<f64>,
    /// Its relative error, in (0, 1); without it, the group's
    #[arg(long, value_name = "E", value_parser = fraction::inside)]
    error: Option<f64>,
    /// How ranks are put together: k-medoids, k-means, gaussian-mixture, or dbscan, which finds its own number of classes
    #[arg(long, value_name = "METHOD", default_value = "k-medoids", value_parser = method)]
    method: Method,
    /// Show what every method would make of the same ranks, priced on the same windows
    #[arg(long)]
    compare: bool,
    /// How far two ranks are apart: euclidean or manhattan
    #[arg(long, value_name = "DISTANCE", default_value = "euclidean", value_parser = distance)]
    distance: Metric,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn k(text: &str) -> Result<K, String> {
    match (text, text.parse()) {
        ("auto", _) => Ok(K::Auto),
        (_, Ok(number)) if number > 0 => Ok(K::Exactly(number)),
        _ => Err("'auto' or a number from 1 is needed".into()),
    }
}

fn method(text: &str) -> Result<Method, String> {
    Method::by_name(text).ok_or_else(|| "k-medoids, k-means, dbscan or gaussian-mixture is needed".into())
}

fn distance(text: &str) -> Result<Metric, String> {
    Metric::by_name(text).ok_or_else(|| "euclidean or manhattan is needed".into())
}

/// The strata of the run in `run`, found as `ampl strata RUN` finds them.
///
/// # Errors
/// Errors of [`strata`].
pub fn of_run(run: &std::path::Path) -> anyhow::Result<Found> {
    let args = Args {
        run: run.to_owned(),
        config: None,
        output: None,
        group: None,
        metrics: Vec::new(),
        k: None,
        confidence: None,
        error: None,
        method: Method::KMedoids,
        compare: false,
        distance: Metric::Euclidean,
        json: false,
    };
    Ok(Found::of(&divide(&args)?))
}

/// The stratification that `args` ask for.
fn divide(args: &Args) -> anyhow::Result<Stratification> {
    let source = Source::open(args)?;
    let request = Request {
        group: args.group.clone(),
        k: args.k,
        confidence: args.confidence,
        error: args.error,
        method: args.method,
        distance: args.distance,
        compare: args.compare,
    };
    let found = Stratification::of(&request, &source.job, &source.divided, |take| source.each_window(take));
    found.map_err(|error| match error {
        StrataError::SeveralGroups(names) => {
            let what = format!("several groups have 'stratify': {}", names.join(", "));
            Failure::message(USAGE, what, "--group", "name one of them")
        }
        StrataError::NoGroup { name, have } => {
            let what = format!("there is no group '{name}'");
            Failure::message(USAGE, what, "--group", format!("there are: {}", have.join(", ")))
        }
        StrataError::TooMany { k, ranks } => {
            let what = format!("{} cannot be {k} strata", plural(ranks, "rank"));
            Failure::message(USAGE, what, "--k", format!("name {ranks} at most, or auto"))
        }
        StrataError::Windows(error) => error,
    })
}

/// Divides the ranks, and prints and writes the strata.
///
/// # Errors
/// A [`Failure`] of status 2 for what is wrong with the arguments or the job file, of status 3 for what is wrong
/// with the run, of status 4 where it does not have all ranks' summaries.
pub fn strata(args: &Args) -> anyhow::Result<ExitCode> {
    if let Some(file) = args.output.as_ref().filter(|file| file.symlink_metadata().is_ok()) {
        let fix = "name a new one with -o";
        return Err(Failure::message(USAGE, "the file exists", file.display(), fix));
    }
    let division = divide(args)?;
    if let Some(path) = &args.output {
        let text = strata_file::text(&division, &args.run);
        std::fs::write(path, text).map_err(|error| {
            Failure::message(USAGE, format!("cannot write it: {error}"), path.display(), "name another file")
        })?;
        notice!("ampl: wrote {}", path.display());
    }
    let found = Found::of(&division);
    if args.json {
        output::json(&found)?;
    } else {
        output::print(|out| report::table(out, &division, &found))?;
    }
    Ok(ExitCode::SUCCESS)
}
