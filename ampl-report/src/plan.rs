//! Bounds and what they would have kept, for people.

use std::io::{self, Write};

use ampl_analysis::what_if::Row;

use crate::human::{bytes, count, digits, percent};

/// Writes `rows` as a table.
///
/// # Errors
/// Errors of `out`.
pub fn table(out: &mut impl Write, rows: &[Row]) -> io::Result<()> {
    writeln!(
        out,
        "{:<16} {:<12} {:>9} {:>9} {:>9} {:>20} {:>10}",
        "bound", "group", "ranks", "of ranks", "covered", "kept rank-windows", "trace"
    )?;
    for row in rows {
        let bound = match (row.error, row.confidence) {
            (Some(error), Some(confidence)) => format!("± {} at {}", percent(error), percent(confidence)),
            (Some(error), None) => format!("± {}", percent(error)),
            (None, Some(confidence)) => format!("at {}", percent(confidence)),
            (None, None) => "as in the run".into(),
        };
        for (index, group) in row.groups.iter().enumerate() {
            let number = |number: Option<f64>| number.map_or("-".into(), digits);
            let whole = match index {
                0 => format!(
                    "{:>20} {:>10}",
                    format!("{} of {}", number(row.kept_windows), count(row.rank_windows)),
                    row.bytes.map_or("-".into(), bytes)
                ),
                _ => String::new(),
            };
            let line = format!(
                "{:<16} {:<12} {:>9} {:>9} {:>9} {whole}",
                if index == 0 { bound.as_str() } else { "" },
                group.group,
                number(group.mean_size),
                group.population,
                group.coverage_window.map_or("-".into(), percent),
            );
            writeln!(out, "{}", line.trim_end())?;
        }
    }
    writeln!(
        out,
        "\nranks, covered: kept of a window, and windows estimated within the bound, after the first update interval.\n\
         kept, trace: over the whole run; of bounds that were not the run's, at the bytes per kept rank-window that it took."
    )
}
