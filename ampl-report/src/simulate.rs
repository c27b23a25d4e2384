//! Results of a simulation, for people.

use std::io::{self, Write};

use ampl_analysis::what_if::Entry;

use crate::human::{Unit, cut, digits, of_event, percent};

/// Writes `entries` as a table; `interval` is the number of windows of an update interval.
///
/// # Errors
/// Errors of `out`.
pub fn table(out: &mut impl Write, interval: u64, entries: &[Entry]) -> io::Result<()> {
    writeln!(
        out,
        "{:<12} {:<24} {:<18} {:>9} {:>9} {:>10} {:>9} {:>9} {:>8}",
        "group", "guide", "bound", "windows", "intervals", "kept", "of ranks", "oracle", "scored"
    )?;
    for entry in entries {
        let guide = of_event(&entry.metric, &entry.event);
        let share = |share: Option<f64>| share.map_or("-".into(), percent);
        let number = |number: Option<f64>| number.map_or("-".into(), digits);
        writeln!(
            out,
            "{:<12} {:<24} {:<18} {:>9} {:>9} {:>10} {:>9} {:>9} {:>8}",
            cut(&entry.group, 12),
            cut(&guide, 24),
            bound(entry),
            share(entry.coverage_window),
            share(entry.coverage_interval),
            number(entry.mean_size),
            entry.population,
            number(entry.oracle_size),
            entry.windows.len(),
        )?;
    }
    writeln!(
        out,
        "\nwindows, intervals: share whose estimate lies within the bound of the truth, after the first interval\n\
         of {interval} windows. oracle: the smallest simple random sample for a window's true variance."
    )
}

fn bound(entry: &Entry) -> String {
    let error = match (entry.error, entry.error_abs) {
        (Some(error), _) => percent(error),
        (_, Some(error)) => Unit::of(&entry.metric).text(error),
        _ => return "fixed size".into(),
    };
    format!("± {error} at {}", entry.confidence.map_or("-".into(), percent))
}
