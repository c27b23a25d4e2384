//! The page of a report: its template and its data.

use std::collections::BTreeMap;

use ampl_analysis::efficiency::{rows, run_times};
use ampl_analysis::messages::Messages;
use ampl_core::plan::Plan;
use ampl_reader::{Communicators, Trace, directory};
use ampl_report::history::started;
use ampl_report::human::{duration, percent, shell_word};
use ampl_report::summary::{facts, not_covered, own_time, title, trace_file, windows};
use minijinja::context;
use serde::Serialize;

use crate::calls::{loops, waits};
use crate::charts::{Series, Sizes, Strip, estimates, sizes};
use crate::drawn::{Drawing, drawings};
use crate::frame;
use crate::grid::Grid;
use crate::matrix::Matrix;
use crate::source::Source;
use crate::strata::Strata;
use crate::tables;
use crate::timeline::Timeline;
use crate::waiting::Waiting;

const TEMPLATE: &str = include_str!("../page/page.html");
/// Parts of the script, in order; all of it is one script, so that one hash allows it.
const SCRIPT: [&str; 7] = [
    include_str!("../vendor/uplot/uPlot.iife.min.js"),
    include_str!("../page/state.js"),
    include_str!("../page/charts.js"),
    include_str!("../page/maps.js"),
    include_str!("../page/timeline.js"),
    include_str!("../page/tables.js"),
    include_str!("../page/main.js"),
];
const LICENCE: &str = include_str!("../vendor/uplot/LICENSE");

/// Columns of text that is shown as it would be in a terminal.
const LINE: usize = 110;
/// Most rows of tables for readers without scripts.
const ROWS: usize = 500;

/// Values that the script draws.
#[derive(Serialize)]
struct Data {
    ranks: u32,
    windows: u64,
    grid: Option<Grid>,
    strip: Strip,
    estimates: Vec<Series>,
    sizes: Vec<Sizes>,
    matrix: Option<Matrix>,
    timeline: Option<Timeline>,
    drawings: Vec<Drawing>,
    /// Hosts, and the number of that of each rank.
    hosts: Vec<String>,
    host_of: Vec<Option<usize>>,
    strata: Vec<String>,
    stratum_of: Vec<usize>,
}

/// The whole page.
///
/// # Errors
/// A fault in the template.
pub fn text(trace: &Trace, source: &Source<'_>) -> Result<String, minijinja::Error> {
    let plan = directory::plan(&trace.run);
    let plan = plan.as_ref();
    let (rows, run) = (rows(trace), run_times(trace));
    let strata = Strata::of(trace, plan);
    let (hosts, host_of) = hosts(trace);
    let grid = Grid::of(trace, &strata.of_rank);
    let has_windows = grid.is_some();
    let messages = Messages::of(&trace.structure, &Communicators::of(trace), trace.run.ranks);
    let data = Data {
        ranks: trace.run.ranks,
        windows: trace.windows(),
        grid,
        strip: Strip::of(&rows),
        estimates: plan.map_or_else(Vec::new, |plan| estimates(trace, plan)),
        sizes: plan.map_or_else(Vec::new, |plan| sizes(trace, plan)),
        matrix: Matrix::of(&messages, trace.run.ranks),
        timeline: source.calls.filter(|_| has_windows).and_then(Timeline::of),
        drawings: drawings(&messages, trace.run.ranks),
        hosts,
        host_of,
        strata: strata.strata.iter().map(|stratum| stratum.name.clone()).collect(),
        stratum_of: strata.of_rank.clone(),
    };
    let waits = waits(trace);
    let path = source.run.display().to_string();
    let shown = tables::ranks(trace, &run, ROWS);
    let known = tables::windows(&rows, ROWS);
    let values = context! {
        title => title(trace),
        facts => all_facts(trace, plan),
        complete => trace.complete,
        findings => tables::findings(trace, &shell_word(&path)),
        tree => tables::tree(rows.first(), &run),
        coverage => percent(run.coverage.of_run()),
        covers_all => run.coverage.of_run() >= 0.999,
        not_covered => not_covered(trace, plan),
        sites => tables::sites(trace),
        strata => strata.strata,
        strata_about => strata.about,
        own_time => own_time(trace),
        trace_file => trace_file(trace, plan, !source.has_file),
        has_grid => data.grid.is_some(),
        went_on => data.grid.as_ref().and_then(|grid| went_on(trace, grid)),
        has_estimates => !data.estimates.is_empty(),
        has_sizes => !data.sizes.is_empty(),
        matrix => data.matrix.as_ref().map(|matrix| context! { complete => matrix.complete, messages => matrix.messages }),
        has_timeline => data.timeline.is_some(),
        drawings => data.drawings.iter().map(|of| [of.name.clone(), of.about.clone()]).collect::<Vec<_>>(),
        waits => waits.as_ref().and_then(Waiting::of),
        waits_text => waits.as_ref().map(|waits| ampl_report::waits::text(waits, LINE)),
        loops => source.calls.and_then(loops),
        ranks => shown,
        more_ranks => trace.ranks.len().saturating_sub(ROWS),
        windows => known,
        more_windows => (trace.windows() as usize).saturating_sub(ROWS),
        settings => trace.run.config,
        versions => versions(trace),
        run => path,
        licence => LICENCE,
    };
    frame::rendered(TEMPLATE, &SCRIPT, &data, values)
}

/// Facts of the summary, when the run began, and what its windows are.
fn all_facts(trace: &Trace, plan: Option<&Plan>) -> Vec<(&'static str, String)> {
    let mut found = facts(trace);
    if trace.run.started_ns > 0 {
        found.push(("started", format!("{} UTC", started(trace.run.started_ns))));
    }
    found.push(("in parts", windows(trace, plan)));
    found
}

/// Ends of the charts and of a run that went on behind its last window.
fn went_on(trace: &Trace, grid: &Grid) -> Option<[String; 2]> {
    let (run, charts) = (trace.run.end?.at_ns as f64, 1e9 * grid.edges.last()?);
    (run > 1.01 * charts).then(|| [charts, run].map(duration))
}

/// Hosts by name, and the number of each rank's.
fn hosts(trace: &Trace) -> (Vec<String>, Vec<Option<usize>>) {
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    trace.ranks.iter().for_each(|rank| _ = names.insert(&rank.process.host, 0));
    names.values_mut().enumerate().for_each(|(number, of)| *of = number);
    let of = |rank: u32| names.get(trace.rank(rank)?.process.host.as_str()).copied();
    let host_of = (0..trace.run.ranks).map(of).collect();
    (names.keys().map(|name| (*name).to_owned()).collect(), host_of)
}

fn versions(trace: &Trace) -> Vec<(&'static str, String)> {
    let metadata = &trace.run.metadata;
    let mut found = vec![("ampl that recorded", trace.run.ampl_version.clone())];
    found.push(("ampl that wrote this page", env!("CARGO_PKG_VERSION").to_owned()));
    found.push(("MPI library", trace.run.mpi_library.lines().next().unwrap_or_default().to_owned()));
    if let Some(executable) = &metadata.executable {
        found.push(("program", executable.path.clone()));
    }
    if let Some(machine) = &metadata.machine {
        let parts = [machine.model.clone(), machine.system.clone()];
        found.push(("machine", parts.into_iter().flatten().collect::<Vec<_>>().join(", ")));
    }
    found.into_iter().filter(|(_, text)| !text.is_empty()).collect()
}
