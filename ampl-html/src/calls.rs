//! Parts of the page that come from the calls of all ranks: waits, and loops.

use ampl_analysis::callgraph::{CallGraph, Options, Report};
use ampl_analysis::waits::{self, Waits};
use ampl_core::units::RankSet;
use ampl_reader::selection::Selection;
use ampl_reader::{Run, Symbols, Trace};
use ampl_report::callgraph::{Source, text};

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

/// Trees of calls and loops in words; of a large job those of some ranks of every group that makes equal calls. `None`
/// where no call is recorded.
pub fn loops(run: &Run) -> Option<String> {
    let mut ranks = run.ranks();
    if ranks.len() > RANKS {
        ranks = run.structure().groups().filter_map(|group| group.ranks().next()).take(RANKS).collect();
    }
    let part: RankSet = ranks.into_iter().collect();
    let selection = Selection::new(None, None, Some(part))?;
    let graph = CallGraph::of(run, &selection, Options::default(), |_| ());
    let report = Report::of(&graph, &mut Symbols::default());
    let time_error = run.plan().map(|plan| plan.config.trace.time_error);
    (report.run.calls > 0).then(|| text(&report, Source { time_error, is_cut: false }, WIDTH))
}
