//! The file of edges that `--edges` names.

use std::io::{BufRead, BufReader, ErrorKind};
use std::path::Path;

use ampl_analysis::topology::Edges;
use ampl_export::edges::parse;

use crate::failure::{DAMAGED, Failure, NOT_FOUND, OTHER};

/// Edges of the file at `path`.
///
/// # Errors
/// A [`Failure`] of status 4 where there is no such file, of status 3 for a line that is none of an edge.
pub fn read(path: &Path) -> anyhow::Result<Edges> {
    if path.as_os_str() == "-" {
        return edges(std::io::stdin().lock(), "standard input");
    }
    let place = path.display().to_string();
    let file = std::fs::File::open(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => Failure::message(NOT_FOUND, "no such file", &place, "name a file of edges"),
        _ => Failure::message(OTHER, format!("cannot read it: {error}"), &place, "see its permissions"),
    })?;
    edges(BufReader::new(file), &place)
}

fn edges(input: impl BufRead, place: &str) -> anyhow::Result<Edges> {
    parse(input).map_err(|fault| {
        Failure::message(DAMAGED, fault.what, format!("{place}, line {}", fault.line), fault.fix)
    })
}
