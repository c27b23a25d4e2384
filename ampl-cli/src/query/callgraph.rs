//! `ampl query RUN callgraph`: the complete call tree of every rank.

use std::process::ExitCode;

use ampl_analysis::callgraph::{Bound, CallGraph, Options, Report};
use ampl_core::config::{fraction, nanoseconds};
use ampl_reader::sites::Symbols;
use ampl_report::callgraph::{Source, text};
use ampl_report::layout::width;

use super::part::Part;
use crate::failure::{DAMAGED, Failure, NOT_FOUND};
use crate::output;
use crate::progress::Progress;
use crate::rundir::{self, RunArg};
use ampl_launch::environment;

/// Options of the call graph.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Take durations for one that differ by no more: a share as in 10%, or a time as in 1us
    #[arg(long, value_name = "BOUND", value_parser = bound)]
    bound: Option<Bound>,
}

/// A share below 1, or a time.
fn bound(text: &str) -> Result<Bound, String> {
    if let Some(absolute_ns) = nanoseconds(text) {
        return Ok(Bound { absolute_ns, relative: 0.0 });
    }
    let relative = fraction(text).filter(|share| (0.0..1.0).contains(share));
    let relative = relative.ok_or("a share below 1 is needed, such as 10%, or a time, such as 1us")?;
    Ok(Bound { relative, absolute_ns: 0 })
}

/// Prints the trees of the ranks and the time that are asked for.
///
/// # Errors
/// Errors of [`RunArg::open`] and [`Part::selection`], a failure of status 4 where no call is in them, and failures to
/// write.
pub fn callgraph(named: &RunArg, part: &Part, args: &Args) -> anyhow::Result<ExitCode> {
    let run = named.open()?;
    let selection = part.selection(&run, named)?;
    let options = Options { bound: args.bound.unwrap_or_default(), ..Options::default() };
    let ranks = run.ranks().into_iter().filter(|&rank| selection.takes_rank(rank)).count();
    let mut progress = Progress::of(ranks as u64, "ranks");
    let graph = CallGraph::of(&run, &selection, options, |_| progress.one_more());
    drop(progress);
    let report = Report::of(&graph, &mut Symbols::default());
    let damage = run.damage();
    damage.iter().for_each(|damage| notice!("{}", rundir::message(damage, &named.run)));
    if report.run.calls == 0 && selection.cuts_time() {
        let fix = "ask for another time, or record with trace.timing = \"all\"";
        let what = "no call lies there whose time is stored";
        return Err(Failure::message(NOT_FOUND, what, named.run.display(), fix));
    }
    match part.json {
        true => output::json(&report)?,
        false => {
            let time_error = run.plan().map(|plan| plan.config.trace.time_error);
            let source = Source { time_error, is_cut: selection.cuts_time() };
            let text = text(&report, source, width(environment::columns()));
            output::text(&text)?;
        }
    }
    let is_whole = damage.is_empty() && report.without.is_empty() && report.damaged_times.is_empty();
    Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::from(DAMAGED) })
}
