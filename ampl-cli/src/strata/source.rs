//! Data that strata are found in: the windows of a run, or a population.

use std::path::Path;

use ampl_analysis::what_if::Recorded;
use ampl_client::simulate::{Job, Window};
use ampl_core::config::{Config, Event, GroupStrata, Marker, Metric, Quantity};
use ampl_core::plan::Plan;
use ampl_export::population::{Extent, Population, Windows};
use ampl_trace::Trace;

use super::Args;
use crate::failure::{DAMAGED, Failure, USAGE};
use crate::job::{self, JobArgs};
use crate::population;
use crate::progress::Progress;
use crate::rundir;

/// Ranks, windows and settings.
pub struct Source {
    /// The job with the guides that ranks are clustered by.
    pub job: Job,
    /// Groups that the job file wants divided.
    pub divided: Vec<GroupStrata>,
    data: Data,
}

enum Data {
    Run(Box<Trace>),
    Population(Population, Box<Extent>),
}

impl Source {
    /// Opens the run or population that `args` name.
    ///
    /// # Errors
    /// Errors of [`super::strata`].
    pub fn open(args: &Args) -> anyhow::Result<Self> {
        let job_file = match &args.config {
            Some(config) => {
                let args = JobArgs {
                    config: Some(config.clone()),
                    output: None,
                    set: Vec::new(),
                    hooks: Vec::new(),
                };
                Some(job::Job::load(&args, true, job::Site::Ignored)?)
            }
            None => None,
        };
        let config = job_file.as_ref().map(|job| job.config.clone());
        let divided = config.as_ref().map_or_else(Vec::new, |config| config.strata.clone());
        let (data, ranks, known, config) = match is_population(&args.run) {
            true => of_population(args, config)?,
            false => of_run(args, config)?,
        };
        let mut config = guided(args, config, &known)?;
        let wall = |metric: &Metric| metric.quantity == Quantity::Wall && metric.event == Event::Window;
        if config.metrics.iter().any(wall) && config.window.marker.is_clock() {
            // Its windows differ in length, so the clock did not end them.
            config.window.marker = Marker::Pcontrol;
        }
        job_file.iter().for_each(|job| job.notice_clipping(ranks));
        let plan = Plan::new(config, ranks).map_err(|error| {
            let place = job_file.map_or_else(|| args.run.display().to_string(), |job| job.place_of(&error));
            Failure::message(USAGE, error, place, "correct it, or name the run it is for")
        })?;
        Ok(Self { job: Job::new(plan), divided, data })
    }

    /// Calls `take` with every window.
    ///
    /// # Errors
    /// Status 3 where a population is wrong.
    pub fn each_window(&self, take: &mut dyn FnMut(&Window)) -> anyhow::Result<()> {
        let mut window = Window::default();
        let (first, last) = match &self.data {
            Data::Run(trace) => (0, trace.windows().saturating_sub(1)),
            Data::Population(_, extent) => extent.windows,
        };
        let mut progress = Progress::of(last - first + 1, "windows");
        match &self.data {
            Data::Run(trace) => {
                let mut recorded = Recorded::new(trace, &self.job);
                for number in first..=last {
                    recorded.fill(number, &mut window);
                    take(&window);
                    progress.one_more();
                }
            }
            Data::Population(source, extent) => {
                let number = |&guide: &usize| {
                    let metric = &self.job.plan.metrics[guide];
                    extent.find(&metric.name(), &metric.event.name())
                };
                let guides = self.job.guides.iter().filter_map(number).collect();
                let ranks = self.job.plan.ranks;
                let failure = |fault| population::fault(source, &fault);
                let mut windows = Windows::new(source, extent, guides, ranks, |_| ()).map_err(failure)?;
                for number in first..=last {
                    windows.fill(number, &mut window).map_err(failure)?;
                    take(&window);
                    progress.one_more();
                }
            }
        }
        Ok(())
    }
}

/// True where `path` is a population rather than a run: Parquet, CSV, or a directory that holds one and no run.
fn is_population(path: &Path) -> bool {
    if path.is_dir() {
        let tables = ["summaries.parquet", "summaries.csv"].iter().any(|name| path.join(name).exists());
        return tables && !path.join(rundir::TRACE).exists();
    }
    let named = path.extension().is_some_and(|extension| extension == "csv" || extension == "parquet");
    let mut magic = [0; 4];
    let mut file = std::fs::File::open(path);
    let read = file.as_mut().is_ok_and(|file| std::io::Read::read_exact(file, &mut magic).is_ok());
    named || read && &magic == b"PAR1"
}

type Opened = (Data, u32, Vec<(String, String)>, Config);

fn of_run(args: &Args, config: Option<Config>) -> anyhow::Result<Opened> {
    let trace = rundir::RunArg { run: args.run.clone() }.read()?;
    if !trace.damage.is_empty() {
        let fix = "name another run of the job: ranks of which windows are lost would seem to be of a class";
        return Err(Failure::message(DAMAGED, "the run is damaged", args.run.display(), fix));
    }
    let plan = rundir::summarised(&trace, &args.run)?;
    let known = trace.run.metrics.iter().map(|metric| (metric.name.clone(), metric.event.clone())).collect();
    let ranks = plan.ranks;
    Ok((Data::Run(Box::new(trace)), ranks, known, config.unwrap_or(plan.config)))
}

fn of_population(args: &Args, config: Option<Config>) -> anyhow::Result<Opened> {
    let source = Population::open(&args.run).map_err(population::failure)?;
    let mut reading = match source.row_count() {
        Some(rows) => Progress::of(rows, "rows looked at"),
        None => Progress::endless("rows looked at"),
    };
    let extent = Extent::of(&source, |rows| reading.add(rows));
    let extent = extent.map_err(|fault| population::fault(&source, &fault))?;
    population::check_whole(&source, &extent)?;
    let names = &extent.names;
    let known: Vec<(String, String)> = extent
        .metrics
        .iter()
        .map(|&(metric, event)| (names.name(metric).to_owned(), names.name(event).to_owned()))
        .collect();
    let config = config.unwrap_or_else(|| {
        let mut config = Config::default();
        let usual = config.metrics.iter().any(|metric| is_known(&known, metric));
        // The only metric of a file is its guide.
        if let ([only], false) = (&known[..], usual)
            && let Some(metric) = declared(&only.0, &only.1)
        {
            config.metrics = vec![metric];
        }
        config
    });
    let ranks = extent.ranks;
    Ok((Data::Population(source, Box::new(extent)), ranks, known, config))
}

fn is_known(known: &[(String, String)], metric: &Metric) -> bool {
    known.iter().any(|(name, event)| *name == metric.name() && *event == metric.event.name())
}

/// A guide of that name, if the job file could name it.
fn declared(name: &str, event: &str) -> Option<Metric> {
    let quoted = |text: &str| format!("{text:?}");
    // As a job file, so that names mean what they mean there. A period makes windows as long as each other.
    let text = format!(
        "[window]\nmarker = \"pcontrol\"\n[[metric]]\nname = {}\nevent = {}\nrole = \"guide\"\n",
        quoted(name),
        quoted(event)
    );
    Config::parse(&text).ok()?.0.metrics.pop()
}

/// `config` with the guides that ranks are clustered by: those named, or its own as far as they were measured.
fn guided(args: &Args, mut config: Config, known: &[(String, String)]) -> anyhow::Result<Config> {
    let list = || {
        let name = |(name, event): &(String, String)| match event.as_str() {
            "*" => name.clone(),
            _ => format!("{name}@{event}"),
        };
        known.iter().map(name).collect::<Vec<_>>().join(", ")
    };
    let place = args.run.display();
    if args.metrics.is_empty() {
        // Without guides that the machine could not measure, or that the file does not have.
        config.metrics.retain(|metric| metric.guide && is_known(known, metric));
        if config.metrics.is_empty() {
            let what = format!("it has none of the guides, but: {}", list());
            return Err(Failure::message(USAGE, what, place, "name a metric that it has with --metric"));
        }
        return Ok(config);
    }
    config.metrics.clear();
    for name in &args.metrics {
        let (metric, event) = name.split_once('@').unwrap_or((name, "*"));
        let found = declared(metric, event).filter(|metric| is_known(known, metric));
        let Some(found) = found else {
            let what = format!("it has no metric {name}, but: {}", list());
            return Err(Failure::message(USAGE, what, place, "name one of these with --metric"));
        };
        config.metrics.push(found);
    }
    Ok(config)
}
