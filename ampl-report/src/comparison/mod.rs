//! Comparisons of runs for people: as text and as Markdown.

mod markdown;
pub mod words;

use std::io::{self, Write};

use ampl_analysis::comparison::{Comparison, Kind, Row, Scope};

use crate::human::{count, middle};

pub use markdown::markdown;

/// Rows that are printed unless all are asked for.
const SHOWN: usize = 20;
/// Facts that are printed unless all are asked for.
const FACTS: usize = 12;
/// Columns of names.
const NAME: usize = 44;
/// Columns of a fact's values.
const FACT: usize = 90;

/// Writes `comparison`; with `all`, every row.
///
/// # Errors
/// Errors of `out`.
pub fn write(out: &mut impl Write, comparison: &Comparison, all: bool) -> io::Result<()> {
    writeln!(out, "{}", words::headline(comparison))?;
    for mismatch in &comparison.mismatches {
        writeln!(out, "  {}", words::mismatch(mismatch))?;
    }
    facts(out, comparison, all)?;
    if !comparison.judged.is_empty() {
        writeln!(out, "\nRules")?;
    }
    for judged in &comparison.judged {
        let answer = words::judged(judged, &comparison.rows);
        writeln!(out, "  {:<13} {:<28} {answer}", judged.verdict.name(), judged.rule.text)?;
    }
    tables(out, comparison, all)?;
    let left_out = left_out(comparison);
    if !left_out.is_empty() {
        writeln!(out, "\nNot compared")?;
    }
    left_out.iter().try_for_each(|line| writeln!(out, "  {line}"))?;
    let method = words::method(comparison);
    if !method.is_empty() {
        writeln!(out)?;
    }
    method.iter().try_for_each(|line| writeln!(out, "{line}"))
}

/// Parts that are not compared, a line each.
pub fn left_out(comparison: &Comparison) -> Vec<String> {
    let mut lines: Vec<String> = comparison.left_out.iter().map(words::left_out).collect();
    if comparison.unnamed_sites > 0 {
        let sites = count(comparison.unnamed_sites);
        lines.push(format!("{sites} call sites without line numbers: the programs are of different builds"));
    }
    lines
}

fn facts(out: &mut impl Write, comparison: &Comparison, all: bool) -> io::Result<()> {
    let differences = &comparison.differences;
    if differences.is_empty() {
        return writeln!(out, "\nRecorded facts about program, machine and settings are the same.");
    }
    writeln!(out, "\nOther than in the base")?;
    let shown = if all { differences.len() } else { FACTS };
    for difference in differences.iter().take(shown) {
        let (name, values) = words::difference(difference);
        writeln!(out, "  {:<28} {}", middle(&name, 28), if all { values } else { middle(&values, FACT) })?;
    }
    more(out, differences.len(), shown)
}

fn tables(out: &mut impl Write, comparison: &Comparison, all: bool) -> io::Result<()> {
    let rows = &comparison.rows;
    let is_whole = |row: &&Row| row.key.scope == Scope::Run;
    let part = |kind: Kind| {
        rows.iter().filter(move |row| row.key.scope != Scope::Run && row.key.what.kind() == kind)
    };
    let interval = format!("{} interval", crate::human::percent(comparison.confidence));
    table(out, "The run", &interval, rows.iter().filter(is_whole), true)?;
    table(out, "Structure that changed, biggest change first", "", part(Kind::Structure), all)?;
    table(out, "Times of parts, biggest change first", &interval, part(Kind::Time), all)
}

fn table<'a>(
    out: &mut impl Write,
    title: &str,
    interval: &str,
    rows: impl Iterator<Item = &'a Row>,
    all: bool,
) -> io::Result<()> {
    let rows: Vec<&Row> = rows.collect();
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{title:<NAME$} {:>12} {:>12} {:>12}   {interval}", "base", "new", "change")?;
    let shown = if all { rows.len() } else { SHOWN };
    for row in rows.iter().take(shown) {
        let mark = if row.significant { "*" } else { " " };
        let name = words::name(row);
        let name = if all { name } else { middle(&name, NAME - 2) };
        let (base, new) = (words::value(row, row.base), words::value(row, row.new));
        let change = words::change(row);
        writeln!(out, "{mark} {name:<42} {base:>12} {new:>12} {change:>12}   {}", words::interval(row))?;
    }
    more(out, rows.len(), shown)
}

fn more(out: &mut impl Write, all: usize, shown: usize) -> io::Result<()> {
    match all.saturating_sub(shown) {
        0 => Ok(()),
        more => writeln!(out, "  ({} more with --all)", count(more as u64)),
    }
}
