//! `ampl simulate`: results of a job file on a population, seed by seed.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use ampl_analysis::what_if::{drive, entries};
use ampl_client::simulate::Job;
use ampl_core::plan::Plan;
use ampl_export::population::{Extent, Population, Windows};
use ampl_launch::job::{self, Request};
use ampl_report::human::{bytes, count, digits, of_event, plural};
use ampl_report::simulate as report;

use crate::failure::{Failure, USAGE};
use crate::output;
use crate::population;
use crate::progress::Progress;

/// Run the sampling policy over what every rank of a job observed, and compare its estimates with the truth.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Examples:\n  ampl simulate -c job.toml --population ampl-lmp-4242-20260101T120000/parquet\n  \
                  ampl simulate -c job.toml --population population.csv --seeds 20 --json\n\n\
                  A population is CSV or Parquet with the columns window, rank, metric, count, sum, sum_sq, min, max\n\
                  and, if need be, event; rows come in any order, and one that is missing is of no observation.\n\
                  The first update interval is not scored."
)]
pub struct Args {
    /// Job file; without it AMPL_CONFIG, and without that the defaults
    #[arg(short = 'c', long = "config", value_name = "JOB.toml")]
    config: Option<std::ffi::OsString>,
    /// Set one key of the job file, as in --set sampling.seed=7
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// CSV or Parquet file, or a directory that 'ampl export' wrote
    #[arg(long, value_name = "POP")]
    population: PathBuf,
    /// How many seeds: the job file's, and those after it
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    seeds: u64,
    /// How many ranks the job has, if the last ones observed nothing; by default one more than the largest
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 22))]
    ranks: Option<u32>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Simulates, and prints the results.
///
/// # Errors
/// A [`Failure`] of status 2 for what is wrong with the job file or does not fit the population, of status 3
/// for what is wrong with the population, of status 4 where there is none.
pub fn simulate(args: &Args) -> anyhow::Result<ExitCode> {
    let started = Instant::now();
    let request = Request { config: args.config.clone(), output: None, settings: args.set.clone() };
    let loaded = job::Job::load(&request, true, job::Site::Ignored)?;
    let source = Population::open(&args.population).map_err(population::failure)?;
    let failure = |fault| population::fault(&source, &fault);
    let mut reading = match source.row_count() {
        Some(rows) => Progress::of(rows, "rows looked at"),
        None => Progress::endless("rows looked at"),
    };
    let extent = Extent::of(&source, |rows| reading.add(rows)).map_err(failure)?;
    drop(reading);
    population::check_whole(&source, &extent)?;
    let ranks = args.ranks.unwrap_or(extent.ranks);
    if ranks < extent.ranks {
        let what = format!("the population has rank {}", extent.ranks - 1);
        return Err(Failure::message(USAGE, what, format!("--ranks {ranks}"), "name all of them"));
    }
    loaded.notice_clipping(ranks);
    let config = extent.measurable(loaded.config.clone());
    let plan = Plan::new(config, ranks).map_err(|error| {
        let place = loaded.place_of(&error);
        Failure::message(USAGE, error, place, "correct it, or give --ranks")
    })?;
    let job = Job::new(plan);
    let guides = extent.guides(&job).map_err(|(name, event)| {
        let missing = of_event(&name, &event);
        let what = format!("the population has no rows of the guide {missing}, but of: {}", extent.list());
        Failure::message(USAGE, what, source.path().display(), "name guides that it has in the job file")
    })?;
    let mut sorting = (!extent.ascending).then(|| Progress::of(extent.rows, "rows sorted"));
    let windows = Windows::new(&source, &extent, guides, ranks, |rows| {
        sorting.iter_mut().for_each(|bar| bar.add(rows));
    });
    drop(sorting);
    let mut windows = windows.map_err(failure)?;
    let seed = job.plan.config.sampling.seed;
    let seeds: Vec<u64> = (0..args.seeds).map(|index| seed.wrapping_add(index)).collect();
    let fill = |number, window: &mut _| windows.fill(number, window);
    let mut progress = Progress::of(extent.windows.1 - extent.windows.0 + 1, "windows");
    let runs = drive(&job, fill, extent.windows, &seeds, || progress.one_more()).map_err(failure)?;
    drop(progress);
    if loaded.config.sampling.budget.is_some() {
        notice!(
            "ampl: sampling.budget is left aside ({}): a population does not say how many bytes",
            source.path().display()
        );
    }
    if let Some((guide, missing, all)) = windows.lacking(&job) {
        let (missing, all, place) = (count(missing), count(all), source.path().display());
        notice!("ampl: {missing} of {all} rank-windows have no row of {guide} ({place}): {INSTEAD}");
    }
    let entries = entries(&job, &runs);
    if args.json {
        output::json(&entries)?;
    } else {
        output::print(|out| report::table(out, job.interval(), &entries))?;
    }
    let memory = peak_memory().map_or(String::new(), |peak| format!("; peak memory {}", bytes(peak)));
    notice!(
        "ampl: {} of {}, {} in {} s{memory}",
        plural(extent.windows.1 - extent.windows.0 + 1, "window"),
        plural(u64::from(ranks), "rank"),
        plural(args.seeds, "seed"),
        digits(started.elapsed().as_secs_f64()),
    );
    if entries.iter().all(|entry| entry.windows.is_empty()) {
        let why = if entries.iter().all(|entry| entry.first_windows.is_empty()) {
            "nobody observed any of the guides".to_owned()
        } else {
            format!("give more than one update interval, {} windows", count(job.interval()))
        };
        notice!("ampl: no window was scored ({}): {why}", source.path().display());
    }
    Ok(ExitCode::SUCCESS)
}

/// Remedy for rows that are missing.
const INSTEAD: &str = "they count as of no observation; if they are missing because they were not in a sample, \
                       coverage over it is not coverage over the population: export a run with summaries = \"census\" \
                       and output.rank_summaries = \"all\"";

/// Peak memory of this process, bytes; none where Linux does not report it.
fn peak_memory() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(1024.0 * kibibytes)
}
