//! Calls, time and bytes by function and call site, as a table.

use std::fmt::Write;

use ampl_analysis::query::summary::{Basis, Row, Summary};

use crate::human::{bytes, count, duration, fit, percent, plural};

/// Columns of everything behind the name.
const NUMBERS: usize = 62;

/// The rows of `summary` in lines of `width` columns; `ranks` and `time` name the part.
pub fn text(summary: &Summary, width: usize) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}", basis(summary));
    if summary.rows.is_empty() {
        out.push_str("no call belongs to this part\n");
        return out;
    }
    let all: f64 = summary.rows.iter().filter_map(|row| row.inclusive_ns).sum();
    let name = width.saturating_sub(NUMBERS).max(24);
    let _ = writeln!(
        out,
        "\n{:<name$}{:>14}{:>18}{:>9}{:>11}{:>10}",
        "function @ site", "calls", "time", "share", "each", "bytes"
    );
    for row in &summary.rows {
        let _ = writeln!(out, "{}", line(row, all, name));
    }
    let _ = writeln!(out, "\nshare: of the time in these rows, {}", duration(all));
    out
}

/// Data that times and calls rest on.
fn basis(summary: &Summary) -> String {
    let extent = &summary.extent;
    let ranks = plural(extent.ranks, "rank");
    if summary.rows.iter().any(|row| row.basis == Some(Basis::Census)) {
        return format!("Calls and times of {ranks}: all of them, by the census");
    }
    let windows = plural(extent.windows, "rank-window");
    match (extent.timed, summary.is_estimated) {
        (0, _) => format!("Calls of {ranks}; no times are stored of {windows}"),
        (_, false) => format!("Calls and times of {ranks}: those of all {windows}"),
        (timed, true) => format!(
            "Calls and times of {ranks}: times are stored of {} of {windows}, which stand for all; ± at {} confidence",
            count(timed),
            percent(summary.confidence)
        ),
    }
}

fn line(row: &Row, all: f64, name: usize) -> String {
    let function = row.function.unwrap_or("(several)");
    let title = match &row.site {
        Some(site) => format!("{function} @ {site}"),
        None => function.to_owned(),
    };
    let calls = match (row.calls, row.calls_half_width) {
        (Some(calls), Some(0.0)) => count(calls),
        (Some(calls), _) => format!("~{}", count(calls)),
        (None, _) => "not known".into(),
    };
    let time = match (row.inclusive_ns, row.half_width) {
        (None, _) => "not known".into(),
        (Some(ns), Some(0.0)) => duration(ns),
        (Some(ns), Some(half_width)) if ns > 0.0 => {
            format!("{} ±{}", duration(ns), percent(half_width / ns))
        }
        (Some(ns), _) => format!("~{}", duration(ns)),
    };
    let share = row.inclusive_ns.filter(|_| all > 0.0).map_or(String::new(), |ns| percent(ns / all));
    let each = match (row.inclusive_ns, row.calls) {
        (Some(ns), Some(calls)) if calls > 0 => duration(ns / calls as f64),
        _ => String::new(),
    };
    let moved =
        row.bytes.map_or("not known".into(), |sum| if sum > 0 { bytes(sum as f64) } else { String::new() });
    let title = fit(&title, name - 1);
    format!("{title:<name$}{calls:>14}{time:>18}{share:>9}{each:>11}{moved:>10}").trim_end().to_owned()
}
