//! `ampl timesteps`: the loop of a program that advances time.

use std::process::ExitCode;

use ampl_analysis::timesteps::{Named, timesteps};
use ampl_core::units::RankSet;
use ampl_reader::sites::Symbols;
use ampl_report::timesteps as text;
use serde::{Serialize, Serializer};

use crate::failure::DAMAGED;
use crate::output;
use crate::rundir::{self, RunArg};

/// Find the loop that advances time: its steps, the calls of one, and where it stands.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Calls are compared by function and place; their arguments are ignored. Steps before the loop, which warm up, are counted
apart. There are none in a program without a loop over time; the reason is printed then.

Examples:
  ampl timesteps ampl-lmp-4242-20260101T120000
  ampl timesteps ampl-lmp-4242-20260101T120000 --json")]
pub struct Args {
    #[command(flatten)]
    run: RunArg,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Finds the loop and prints it, or the reason why there is none.
///
/// # Errors
/// Errors of [`RunArg::open`], and failures to write.
pub fn timesteps_of(args: &Args) -> anyhow::Result<ExitCode> {
    let run = args.run.open()?;
    let mut symbols = Symbols::default();
    let found = timesteps(run.structure(), &mut |module, offset| {
        let function = symbols.function(module, offset)?;
        offset.checked_sub(function.offset?)
    });
    let damage = run.damage();
    damage.iter().for_each(|damage| notice!("{}", rundir::message(damage, &args.run.run)));
    let found = Named::of(&found, &mut symbols);
    match args.json {
        true => output::json(&Row::of(&found))?,
        false => output::print(|out| text::write(out, &found))?,
    }
    Ok(if damage.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(DAMAGED) })
}

/// Output of `--json`; the order of fields is part of the format.
#[derive(Debug, Serialize)]
struct Row<'a> {
    /// Steps; null where there is no loop over time.
    count: Option<u64>,
    /// Calls of a rank in a step, mean of the ranks that agree.
    calls_per_step: Option<f64>,
    /// Place of a call of each step.
    site: Option<&'a str>,
    /// Calls of a rank in a step by function.
    function_mix: Mix<'a>,
    /// Share of the job's ranks that show as many steps, or no loop where that is null.
    confidence: f64,
    reason: Option<&'static str>,
    function: Option<&'static str>,
    /// Value of `window.marker`, where one call ends windows with steps; functions that all calls come from, outermost first.
    marker: Option<&'a str>,
    path: &'a [String],
    /// Steps before the loop that warm up; calls of a rank before the loop, and behind it.
    warm_up: Option<u64>,
    start_up_calls: Option<f64>,
    wind_down_calls: Option<f64>,
    /// Calls of a rank inside the loop that were only counted, and steps that one of these may hold; other numbers of steps.
    missing_calls: Option<f64>,
    bodies_may_hold: Option<u64>,
    others: &'a [u64],
    /// Data that the number rests on: `calls` by function and place, or their `arguments`, too.
    basis: Option<&'static str>,
    /// Ranks of the job, and those whose calls are stored.
    ranks: u32,
    examined: u32,
    /// Steps by the calls of each rank alone.
    counts: Vec<RankCount>,
}

#[derive(Debug, Serialize)]
struct RankCount {
    count: Option<u64>,
    ranks: String,
    /// True where calls of these ranks were counted and not recorded: there may be more steps.
    gaps: bool,
}

/// Calls in a step by function, most first.
#[derive(Debug, Default)]
struct Mix<'a>(&'a [(&'static str, f64)]);

impl Serialize for Mix<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().copied())
    }
}

impl<'a> Row<'a> {
    fn of(found: &'a Named) -> Self {
        let count = |count: &ampl_analysis::timesteps::Count| RankCount {
            count: count.steps,
            ranks: RankSet::from_iter(count.ranks.iter().copied()).to_string(),
            gaps: count.has_gaps,
        };
        Self {
            count: found.steps,
            calls_per_step: found.calls_per_step,
            site: found.site.as_deref(),
            function_mix: Mix(&found.functions),
            confidence: found.confidence,
            reason: found.absence.map(|absence| text::reason(absence, found.ranks)),
            function: found.function,
            marker: found.marker.as_deref(),
            path: &found.path,
            warm_up: found.warm_up,
            start_up_calls: found.start_up,
            wind_down_calls: found.wind_down,
            missing_calls: found.missing,
            bodies_may_hold: found.may_hold.filter(|&steps| steps > 1),
            others: &found.others,
            basis: found.by_arguments.map(|is_so| if is_so { "arguments" } else { "calls" }),
            ranks: found.ranks,
            examined: found.examined,
            counts: found.counts.iter().map(count).collect(),
        }
    }
}
