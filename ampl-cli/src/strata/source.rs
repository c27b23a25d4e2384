//! Data that strata are found in: the windows of a run, or a population.

use ampl_analysis::strata::guides;
use ampl_client::simulate::{Job, Window};
use ampl_core::config::{Config, Event, GroupStrata, Marker, Metric, Quantity};
use ampl_core::plan::Plan;
use ampl_export::population::{Extent, Observed, Population, is_population};
use ampl_launch::job::{self, Request};
use ampl_report::strata::missing_guide;

use super::Args;
use crate::failure::{DAMAGED, Failure, USAGE};
use crate::population;
use crate::progress::Progress;
use crate::rundir;

/// Ranks, windows and settings.
pub struct Source {
    /// The job with the guides that ranks are clustered by.
    pub job: Job,
    /// Groups that the job file wants divided.
    pub divided: Vec<GroupStrata>,
    data: Observed,
}

impl Source {
    /// Opens the run or population that `args` name.
    ///
    /// # Errors
    /// Errors of [`super::strata`].
    pub fn open(args: &Args) -> anyhow::Result<Self> {
        let job_file = match &args.config {
            Some(config) => {
                let request = Request { config: Some(config.clone()), ..Request::default() };
                Some(job::Job::load(&request, true, job::Site::Ignored)?)
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
        let (first, last) = self.data.windows();
        let mut progress = Progress::of(last - first + 1, "windows");
        let each = self.data.each_window(&self.job, &mut |window| {
            take(window);
            progress.one_more();
        });
        each.map_err(|fault| match &self.data {
            Observed::Population(source, _) => population::fault(source, &fault),
            Observed::Run(_) => anyhow::Error::msg(fault.what),
        })
    }
}

type Opened = (Observed, u32, Vec<(String, String)>, Config);

fn of_run(args: &Args, config: Option<Config>) -> anyhow::Result<Opened> {
    let trace = rundir::RunArg { run: args.run.clone() }.read()?;
    if !trace.damage.is_empty() {
        let fix = "name another run of the job: ranks of which windows are lost would seem to be of a class";
        return Err(Failure::message(DAMAGED, "the run is damaged", args.run.display(), fix));
    }
    let plan = rundir::summarised(&trace, &args.run)?;
    let known = trace.run.metrics.iter().map(|metric| (metric.name.clone(), metric.event.clone())).collect();
    let ranks = plan.ranks;
    Ok((Observed::Run(Box::new(trace)), ranks, known, config.unwrap_or(plan.config)))
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
    let known = extent.known();
    let config = config.unwrap_or_else(|| guides::usual(&known));
    let ranks = extent.ranks;
    Ok((Observed::Population(source, Box::new(extent)), ranks, known, config))
}

/// `config` with the guides that ranks are clustered by: those named, or its own as far as they were measured.
fn guided(args: &Args, config: Config, known: &[(String, String)]) -> anyhow::Result<Config> {
    guides::guided(config, &args.metrics, known).map_err(|missing| {
        let (what, fix) = missing_guide(&missing);
        Failure::message(USAGE, what, args.run.display(), fix)
    })
}
