//! Durations of calls by function, call site and size of the message, as a table.

use std::fmt::Write;

use ampl_analysis::query::durations::Durations;

use crate::calls::label::fitted;
use crate::human::{bytes, count, duration};

/// Columns of everything behind the name.
const NUMBERS: usize = 67;

/// The rows of `found` in lines of `width` columns.
pub fn text(found: &Durations, width: usize) -> String {
    if found.rows.is_empty() {
        return "no times of calls are stored of this part\n".into();
    }
    let name = width.saturating_sub(NUMBERS).max(24);
    let mut out = format!(
        "{:<name$}{:>9}{:>11}{:>9}{:>9}{:>9}{:>9}{:>11}\n",
        "function @ site", "each", "timed", "mean", "median", "90 %", "most", "of"
    );
    for row in &found.rows {
        let title = match &row.site {
            Some(site) => format!("{} @ {site}", row.function),
            None => row.function.to_owned(),
        };
        let each = row.bytes.map_or("?".into(), |size| bytes(size as f64));
        let _ = writeln!(
            out,
            "{:<name$}{each:>9}{:>11}{:>9}{:>9}{:>9}{:>9}{:>11}",
            fitted(&title, name - 1),
            count(row.timed),
            duration(row.mean_ns),
            duration(row.median_ns),
            duration(row.p90_ns),
            duration(row.max_ns as f64),
            format!("rank {}", row.max_rank),
        );
    }
    out.push_str(
        "\neach: bytes of a call's message; timed: calls whose times are stored; median and 90 % to 5 %\n",
    );
    out
}
