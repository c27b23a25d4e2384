//! Metrics of all ranks over time, a line for a window.

use std::fmt::Write;

use ampl_analysis::query::volume::Row;

use crate::human::{Unit, duration};

/// Metrics that have columns; `--json` has all.
const SHOWN: [&str; 5] = ["mpi.time", "compute.time", "calls", "bytes.sent", "bytes.received"];

/// The windows of `rows`.
pub fn text(rows: &[Row]) -> String {
    let mut out = format!("{:>7}{:>10}{:>10}{:>9}", "window", "from", "until", "ranks");
    for name in SHOWN {
        let _ = write!(out, "{name:>15}");
    }
    out.push('\n');
    for row in rows {
        let ranks = match row.reported == row.ranks {
            true => row.ranks.to_string(),
            false => format!("{} of {}", row.reported, row.ranks),
        };
        let (from, until) = (duration(row.start_ns as f64), duration(row.end_ns as f64));
        let _ = write!(out, "{:>7}{from:>10}{until:>10}{ranks:>9}", row.window);
        for name in SHOWN {
            let sum = row.metrics.0.iter().find(|(own, _)| own == name).filter(|_| row.reported > 0);
            let text = sum.map_or("not known".into(), |(_, sum)| Unit::of(name).text(*sum));
            let _ = write!(out, "{text:>15}");
        }
        out.push('\n');
    }
    out.push_str("\nsums over the ranks that reported a window\n");
    out
}
