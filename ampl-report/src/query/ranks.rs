//! Calls, time and bytes of each rank, and of many ranks the least, the middle and the most.

use std::fmt::Write;

use ampl_analysis::query::distribution::{Distribution, Row};

use crate::human::{bytes, count, cut, duration, percent, plural};

/// Most ranks that have a line each.
const MOST_LINES: usize = 64;

/// A number of a rank, where it is known, and its text.
type Of = (&'static str, fn(&Row) -> Option<f64>, fn(f64) -> String);

const QUANTITIES: [Of; 4] = [
    ("time in MPI", |row| row.mpi_ns, duration),
    ("compute time", |row| row.compute_ns, duration),
    ("calls", |row| row.calls.map(|calls| calls as f64), |calls| count(calls as u64)),
    ("bytes", |row| row.bytes.map(|sum| sum as f64), bytes),
];

/// The rows of `found`.
pub fn text(found: &Distribution) -> String {
    let mut out = String::new();
    spread(&mut out, &found.rows);
    if found.rows.len() > MOST_LINES {
        let _ = writeln!(out, "\n--ranks lists up to {MOST_LINES} ranks one by one; --json all");
        return out;
    }
    let _ = writeln!(
        out,
        "\n{:>6} {:<20}{:>14}{:>12}{:>16}{:>14}{:>11}",
        "rank", "host", "time in MPI", "of its time", "compute time", "calls", "bytes"
    );
    for row in &found.rows {
        let known = |value: Option<String>| value.unwrap_or_else(|| "not known".into());
        let share = row.mpi_ns.zip(row.wall_ns).filter(|(_, wall)| *wall > 0.0);
        let _ = writeln!(
            out,
            "{:>6} {:<20}{:>14}{:>12}{:>16}{:>14}{:>11}",
            row.rank,
            cut(&row.host, 19),
            known(row.mpi_ns.map(duration)),
            share.map_or(String::new(), |(mpi, wall)| percent(mpi / wall)),
            known(row.compute_ns.map(duration)),
            known(row.calls.map(count)),
            known(row.bytes.map(|sum| bytes(sum as f64))),
        );
    }
    out
}

/// The least, the quarters and the most of each quantity, the extremes with rank and host.
fn spread(out: &mut String, rows: &[Row]) {
    let _ = writeln!(
        out,
        "{:<13}{:>9} {:<18}{:>11}{:>11}{:>11}{:>10} of",
        plural(rows.len() as u64, "rank"),
        "least",
        "of",
        "quarter",
        "half",
        "3 quarters",
        "most"
    );
    for (name, value, text) in QUANTITIES {
        let mut values: Vec<(f64, &Row)> = rows.iter().filter_map(|row| Some((value(row)?, row))).collect();
        values.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.rank.cmp(&b.1.rank)));
        let (Some(least), Some(most)) = (values.first(), values.last()) else {
            let _ = writeln!(out, "{name:<13}{:>9}", "not known");
            continue;
        };
        let at = |share: f64| text(values[((values.len() - 1) as f64 * share).round() as usize].0);
        let of = |row: &Row| cut(&format!("rank {} on {}", row.rank, row.host), 17);
        let missing = rows.len() - values.len();
        let note = if missing > 0 { format!("; {missing} not known") } else { String::new() };
        let _ = writeln!(
            out,
            "{name:<13}{:>9} {:<18}{:>11}{:>11}{:>11}{:>10} {}{note}",
            text(least.0),
            of(least.1),
            at(0.25),
            at(0.5),
            at(0.75),
            text(most.0),
            of(most.1)
        );
    }
}
