//! Parts of the page that come from the calls of all ranks: waits, and loops.

use ampl_analysis::callgraph::{CallGraph, Options, Report};
use ampl_analysis::waits::{self, Waits};
use ampl_core::units::RankSet;
use ampl_reader::selection::Selection;
use ampl_reader::{Run, Symbols, Trace};
use ampl_report::callgraph::{Source, text};
use ampl_report::human::plural;
use serde::Serialize;

use crate::pooling::parts;

/// Most calls whose waits are searched: a report must not take minutes.
const CALLS: u64 = 5_000_000;
/// Most ranks whose trees are made.
const RANKS: usize = 64;
/// Columns of the trees.
const WIDTH: usize = 110;

/// Waits of the whole run; `None` where there are no calls, or too many.
pub fn waits(trace: &Trace) -> Option<Waits> {
    let calls: u64 = trace.calls();
    let everything = Selection::new(None, None, None)?;
    (1..=CALLS).contains(&calls).then(|| waits::waits(trace, &everything, &mut Symbols::default()))
}

/// Trees of calls and loops.
#[derive(Serialize)]
pub struct Loops {
    /// The trees, in words.
    text: String,
    /// The ranks that they are of.
    of: String,
}

/// Trees of calls and loops; of a large job those of one rank of every group that makes equal calls, as far as these are
/// few, and of groups evenly over all where they are many. `None` where no call is recorded.
pub fn loops(run: &Run) -> Option<Loops> {
    let (mut ranks, mut of) = (run.ranks(), "all ranks".to_owned());
    if ranks.len() > RANKS {
        let firsts: Vec<u32> = run.structure().groups().filter_map(|group| group.ranks().next()).collect();
        ranks = parts(firsts.len(), RANKS).into_iter().map(|part| firsts[part.start]).collect();
        let groups = plural(firsts.len() as u64, "group");
        of = match firsts.len() == ranks.len() {
            true => format!("one rank of each of {groups} that make equal calls"),
            false => format!("one rank of {} of {groups} that make equal calls", ranks.len()),
        };
    }
    let part: RankSet = ranks.into_iter().collect();
    let selection = Selection::new(None, None, Some(part))?;
    let graph = CallGraph::of(run, &selection, Options::default(), |_| ());
    let report = Report::of(&graph, &mut Symbols::default());
    let time_error = run.plan().map(|plan| plan.config.trace.time_error);
    let text = || text(&report, Source { time_error, is_cut: false }, WIDTH);
    (report.run.calls > 0).then(|| Loops { text: text(), of })
}
