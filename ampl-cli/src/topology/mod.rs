//! `ampl topology`: the grid, torus, tree or other shape of a communication graph.

mod edges;
mod pattern;
mod place;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use ampl_analysis::messages::{Entry, Messages, entries};
use ampl_analysis::placement;
use ampl_analysis::topology::{Input, NamedGraph, Options, Report, layers, of_layers, patterns};
use ampl_reader::Symbols;
use ampl_report::topology::{matrix, picture, placement as placement_text};
use serde::Serialize;

use crate::failure::{DAMAGED, Failure};
use crate::output;
use crate::rundir::{RunArg, message};

/// Name the communication topology of a run, or of a graph, whatever its ranks are numbered like.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Of a run the messages are taken from the recorded calls: every place that sends is looked at by itself, and joined with
others where they make one pattern. Several patterns are reported with their shares of the traffic.

A line of an edge file is 'RANK RANK' or 'RANK RANK VOLUME'; ranks count from 0, '#' begins a comment. The graph is
undirected: a pair may be given in both directions, its volumes are added up. Every answer has been compared with the
definition of the topology, rank by rank; what is none of the known topologies is called 'none'.

A pattern file has tables like this; formulas know x, y, z, u, v, w and the sizes nx, ny, …:
  [[pattern]]
  name = \"knights\"
  dims = [8, 8]               # or \"any\" for a size
  periodic = true             # or one for each axis; false where it is left out
  neighbours = [\"x + 1, y + 2\", \"x + 2, y + 1\", \"x + 1, y - 2\", \"x + 2, y - 1\"]

Examples:
  ampl topology ampl-run
  ampl topology ampl-run --place -o placement
  ampl topology --edges edges.txt --pattern mine.toml --json")]
pub struct Args {
    /// A run directory, its trace.ampl, or a directory of journals
    #[arg(value_name = "RUN", required_unless_present = "edges", conflicts_with = "edges")]
    run: Option<PathBuf>,
    /// File of the edges of a graph instead of a run; '-' is standard input
    #[arg(long, value_name = "FILE")]
    edges: Option<PathBuf>,
    /// File of patterns of your own, which go before the built-in ones
    #[arg(long, value_name = "FILE")]
    pattern: Option<PathBuf>,
    /// Print the matrix of messages instead, in the form that --edges reads; with --json beside the patterns
    #[arg(long, conflicts_with = "edges")]
    matrix: bool,
    #[command(flatten)]
    place: place::Args,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Output of `--json`.
#[derive(Debug, Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    report: &'a Report,
    #[serde(skip_serializing_if = "Option::is_none")]
    matrix: Option<Vec<Entry>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    placement: Option<placement::Report>,
}

/// Names and prints the topology.
///
/// # Errors
/// A [`Failure`] of status 4 where a file does not exist, of status 3 for what is wrong with the edges or the run, of
/// status 2 for what is wrong with the patterns.
pub fn topology(args: &Args) -> anyhow::Result<ExitCode> {
    let own = args.pattern.as_deref().map(pattern::read).transpose()?.unwrap_or_default();
    let named = |vertices: u32, edges: u64| -> Vec<Arc<NamedGraph>> {
        own.iter().flat_map(|pattern| pattern.graphs(vertices, edges)).collect()
    };
    let options = Options { named: &named, ..Options::default() };
    if let Some(run) = &args.run {
        return of_run(args, run, &options);
    }
    let path = args.edges.as_deref().unwrap_or(std::path::Path::new("-"));
    let read = edges::read(path)?;
    let found = layers(read.vertices, read.edges.clone(), &options).map_err(|error| {
        Failure::message(DAMAGED, error, path.display(), "leave out what is of no interest")
    })?;
    let found = of_layers(found);
    let input = Input::of_edges(&read, &found);
    let report = Report::of(&input, &found);
    if args.json {
        output::json(&report)?;
    } else {
        output::print(|out| picture::write(out, &input, &found, &report))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn of_run(args: &Args, path: &std::path::Path, options: &Options<'_>) -> anyhow::Result<ExitCode> {
    let run = RunArg { run: path.to_owned() }.open()?;
    let messages = Messages::of(run.structure(), run.communicators(), run.info().ranks);
    let found = patterns(&messages, options).map_err(|error| {
        Failure::message(DAMAGED, error, path.display(), "there is no way to look at so many")
    })?;
    let matrix = args.matrix.then(|| entries(&messages));
    let damage = run.damage();
    damage.iter().for_each(|damage| notice!("{}", message(damage, path)));
    let status = if damage.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(DAMAGED) };
    if let (Some(rows), false) = (&matrix, args.json) {
        output::print(|out| matrix::write(out, rows))?;
        return Ok(status);
    }
    let input = Input::of_run(&messages, &found, &mut Symbols::default());
    let placement = args.place.placement(&run, &messages, &found)?;
    let report = Report::of(&input, &found);
    if args.json {
        output::json(&Document { report: &report, matrix, placement })?;
    } else {
        output::print(|out| {
            picture::write(out, &input, &found, &report)?;
            placement.iter().try_for_each(|placement| placement_text::write(out, placement))
        })?;
    }
    Ok(status)
}
