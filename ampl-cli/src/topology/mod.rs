//! `ampl topology`: the grid, torus, tree or other shape of a communication graph.

mod edges;
mod pattern;
mod picture;
mod report;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use ampl_analysis::topology::{NamedGraph, Options, layers};

use crate::failure::{DAMAGED, Failure};
use crate::output;

/// Name the topology of a graph of communication, whatever its ranks are numbered like.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
A line of the file is 'RANK RANK' or 'RANK RANK VOLUME'; ranks count from 0, '#' begins a comment. The graph is undirected:
a pair may be given in both directions, its volumes are added up. Every answer has been compared with the definition
of the topology, rank by rank; what is none of the known topologies is called 'none'.

A pattern file has tables like this; formulas know x, y, z, u, v, w and the sizes nx, ny, …:
  [[pattern]]
  name = \"knights\"
  dims = [8, 8]               # or \"any\" for a size
  periodic = true             # or one for each axis; false where it is left out
  neighbours = [\"x + 1, y + 2\", \"x + 2, y + 1\", \"x + 1, y - 2\", \"x + 2, y - 1\"]

Examples:
  ampl topology --edges edges.txt
  ampl topology --edges edges.txt --pattern mine.toml --json")]
pub struct Args {
    /// File of the edges; '-' is standard input
    #[arg(long, value_name = "FILE", required = true)]
    edges: PathBuf,
    /// File of patterns of your own, which go before the built-in ones
    #[arg(long, value_name = "FILE")]
    pattern: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Names and prints the topology.
///
/// # Errors
/// A [`Failure`] of status 4 where a file does not exist, of status 3 for what is wrong with the edges, of status 2 for
/// what is wrong with the patterns.
pub fn topology(args: &Args) -> anyhow::Result<ExitCode> {
    let patterns = args.pattern.as_deref().map(pattern::read).transpose()?.unwrap_or_default();
    let read = edges::read(&args.edges)?;
    let named = |vertices: u32, edges: u64| -> Vec<Arc<NamedGraph>> {
        patterns.iter().flat_map(|pattern| pattern.graphs(vertices, edges)).collect()
    };
    let options = Options { named: &named, ..Options::default() };
    let found = layers(read.vertices, read.edges.clone(), &options).map_err(|error| {
        Failure::message(DAMAGED, error, args.edges.display(), "leave out what is of no interest")
    })?;
    let report = report::Report::of(&read, &found);
    if args.json {
        output::json(&report)?;
    } else {
        output::print(|out| picture::print(out, &read, &found, &report))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// `0-3,8`: `ranks`, which ascend.
fn rank_set(ranks: impl IntoIterator<Item = u32>) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for rank in ranks {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == rank => *last = rank,
            _ => ranges.push((rank, rank)),
        }
    }
    let text =
        |&(low, high): &(u32, u32)| if low == high { low.to_string() } else { format!("{low}-{high}") };
    ranges.iter().map(text).collect::<Vec<_>>().join(",")
}
