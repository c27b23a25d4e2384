//! The page of a comparison: what changed, and a run of each side next to the other.

use std::path::Path;

use ampl_analysis::comparison::{Comparison, Kind, Row, Scope};
use ampl_analysis::efficiency::{rows, run_times};
use ampl_reader::{Trace, directory};
use ampl_report::comparison::{left_out, words};
use ampl_report::human::{percent, plural, shell_word};
use ampl_report::summary::{facts, not_covered, title};
use minijinja::context;
use serde::Serialize;

use crate::frame;
use crate::grid::Grid;
use crate::tables::{self, Factor, Found};

const TEMPLATE: &str = include_str!("../page/diff.html");
/// Parts of the script, in order.
const SCRIPT: [&str; 3] =
    [include_str!("../page/state.js"), include_str!("../page/maps.js"), include_str!("../page/sides.js")];

/// Most rows and columns of a side's map: there are two of them.
const MAP: [usize; 2] = [150, 200];
/// Most rows of a table.
const ROWS: usize = 1000;
/// Rows that are shown before a table is opened.
const FEW: usize = 15;

/// A side of a comparison, shown by one of its runs.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    /// The run that is shown.
    pub trace: &'a Trace,
    /// Its place, as the user named it.
    pub run: &'a Path,
    /// Number of runs of the side.
    pub runs: usize,
}

#[derive(Serialize)]
struct Data {
    /// Absent: this page has no grid of its own.
    grid: Option<Grid>,
    ranks: u32,
    sides: Vec<SideData>,
}

#[derive(Serialize)]
struct SideData {
    name: &'static str,
    grid: Option<Grid>,
}

/// A side in words.
#[derive(Serialize)]
struct SideText {
    id: String,
    name: &'static str,
    title: String,
    about: String,
    facts: Vec<(&'static str, String)>,
    findings: Vec<Found>,
    tree: Vec<Factor>,
    not_covered: Vec<String>,
    has_grid: bool,
}

/// A table of quantities.
#[derive(Serialize)]
struct Table {
    id: &'static str,
    title: &'static str,
    interval: String,
    rows: Vec<Line>,
    more: usize,
}

/// A quantity on both sides.
#[derive(Serialize)]
struct Line {
    name: String,
    base: String,
    new: String,
    change: String,
    interval: String,
    significant: bool,
}

/// The whole page.
///
/// # Errors
/// A fault in the template.
pub fn text(found: &Comparison, sides: [Side<'_>; 2]) -> Result<String, minijinja::Error> {
    let names = ["base", "new"];
    let map = |side: &Side<'_>| Grid::within(side.trace, &[], MAP[0], MAP[1]);
    let own = |(name, side): (&'static str, &Side<'_>)| SideData { name, grid: map(side) };
    let drawn: Vec<SideData> = names.into_iter().zip(&sides).map(own).collect();
    let has_grid = drawn.iter().any(|side| side.grid.is_some());
    let data = Data { grid: None, ranks: 0, sides: drawn };
    let texts: Vec<SideText> = sides.iter().zip(&data.sides).enumerate().map(side_text).collect();
    let rules: Vec<[String; 3]> = found
        .judged
        .iter()
        .map(|of| [of.rule.text.clone(), of.verdict.name().to_owned(), words::judged(of, &found.rows)])
        .collect();
    let values = context! {
        headline => words::headline(found),
        mismatches => found.mismatches.iter().map(words::mismatch).collect::<Vec<_>>(),
        differences => found.differences.iter().map(words::difference).collect::<Vec<_>>(),
        rules => rules,
        tables => tables_of(found),
        few => FEW,
        sides => texts,
        has_grid => has_grid,
        left_out => left_out(found),
        method => words::method(found),
        version => env!("CARGO_PKG_VERSION"),
    };
    frame::rendered(TEMPLATE, &SCRIPT, &data, values)
}

fn side_text((number, (side, data)): (usize, (&Side<'_>, &SideData))) -> SideText {
    let trace = side.trace;
    let path = side.run.display().to_string();
    let about = match side.runs {
        1 => path.clone(),
        runs => format!("{path}: the run of median length of {}", plural(runs as u64, "run")),
    };
    let (rows, run) = (rows(trace), run_times(trace));
    SideText {
        id: format!("side-{number}"),
        name: data.name,
        title: title(trace),
        about,
        facts: facts(trace),
        findings: tables::findings(trace, &shell_word(&path)),
        tree: tables::tree(rows.first(), &run),
        not_covered: not_covered(trace, directory::plan(&trace.run).as_ref()),
        has_grid: data.grid.is_some(),
    }
}

/// The tables of a comparison that have rows.
fn tables_of(found: &Comparison) -> Vec<Table> {
    let is_run = |row: &&Row| row.key.scope == Scope::Run;
    let of = |id, title, interval: &str, rows: Vec<&Row>| Table {
        id,
        title,
        interval: interval.to_owned(),
        more: rows.len().saturating_sub(ROWS),
        rows: rows.into_iter().take(ROWS).map(line).collect(),
    };
    let part = |kind: Kind| -> Vec<&Row> {
        found.rows.iter().filter(|row| !is_run(row) && row.key.what.kind() == kind).collect()
    };
    let interval = format!("{} interval", percent(found.confidence));
    let all = [
        of("whole", "The run", &interval, found.rows.iter().filter(is_run).collect()),
        of("structure", "Structure that changed, biggest change first", "basis", part(Kind::Structure)),
        of("times", "Times of parts, biggest change first", &interval, part(Kind::Time)),
    ];
    all.into_iter().filter(|table| !table.rows.is_empty()).collect()
}

fn line(row: &Row) -> Line {
    Line {
        name: words::name(row),
        base: words::value(row, row.base),
        new: words::value(row, row.new),
        change: words::change(row),
        interval: words::interval(row),
        significant: row.significant,
    }
}
