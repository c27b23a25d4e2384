//! Rows as a table for people.

use std::io::{self, Write};

use ampl_core::stats::Basis;

use super::rows::{Row, Scope};
use crate::human::{Unit, digits, percent};

/// Writes `rows`; `more` adds where other scopes are to be had.
///
/// # Errors
/// Those of `out`.
pub fn write(out: &mut impl Write, rows: &[Row], more: bool) -> io::Result<()> {
    writeln!(
        out,
        "{:<11} {:<10} {:<24} {:<7} {:>11}  {:<24} {:<14} guarantee",
        "scope", "group", "metric", "basis", "mean", "interval", "ranks"
    )?;
    for row in rows {
        writeln!(out, "{}", line(row))?;
    }
    if rows.is_empty() {
        writeln!(out, "(no window was closed)")?;
    }
    if more {
        writeln!(out, "\nPer window or update interval: --scope window, --scope update. All of it: --json.")?;
    }
    Ok(())
}

fn line(row: &Row) -> String {
    let scope = match (row.scope, row.window) {
        (Scope::Window, Some(window)) => format!("window {window}"),
        (Scope::Update, Some(window)) => format!("from {window}"),
        _ => "run".into(),
    };
    let metric =
        if row.event == "*" { row.metric.clone() } else { format!("{} of {}", row.metric, row.event) };
    let ranks = format!("{} of {}", row.kept, row.population);
    let mean = row.mean.map_or("-".into(), |mean| Unit::of(&row.metric).text(mean));
    let guarantee = if row.guaranteed { "guaranteed" } else { "no guarantee" };
    format!(
        "{scope:<11} {:<10} {metric:<24} {:<7} {mean:>11}  {:<24} {ranks:<14} {guarantee}",
        row.group,
        row.basis.name(),
        interval(row)
    )
}

/// The interval in words: `exact`, `± 1.2 us (3.1 %) at 90 %`.
pub fn interval(row: &Row) -> String {
    let at = || format!("at {} %", digits(100.0 * row.confidence));
    match (row.mean, row.half_width, row.error) {
        (None, ..) => "no observation".into(),
        _ if row.basis == Basis::Census && row.kept == row.population => "exact".into(),
        _ if row.basis == Basis::Census => format!("exact for {} ranks", row.kept),
        (_, Some(_), Some(error)) => format!("± {} {}", percent(error), at()),
        (_, Some(half_width), None) => format!("± {} {}", Unit::of(&row.metric).text(half_width), at()),
        (_, None, _) => "unknown: one rank only".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_is_known_and_from_whom() {
        let mut row = Row {
            window: Some(3),
            group: "all".into(),
            stratum: 0,
            metric: "mpi.time".into(),
            event: "*".into(),
            population: 64,
            kept: 16,
            mean: Some(1.25e6),
            half_width: Some(5e4),
            confidence: 0.9,
            error: Some(0.04),
            scope: Scope::Window,
            basis: Basis::Trace,
            guaranteed: true,
        };
        let text = line(&row);
        for word in ["window 3", "mpi.time", "trace", "1.25 ms", "± 4 % at 90 %", "16 of 64", " guaranteed"]
        {
            assert!(text.contains(word), "{word}: {text}");
        }
        (row.basis, row.kept, row.guaranteed) = (Basis::Census, 64, false);
        assert!(line(&row).contains("exact ") && line(&row).ends_with("no guarantee"));
        row.kept = 63;
        assert_eq!(interval(&row), "exact for 63 ranks");
        row.mean = None;
        assert_eq!(interval(&row), "no observation");
    }
}
