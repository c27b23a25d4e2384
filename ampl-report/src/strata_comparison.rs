//! The same ranks by all methods, for people.

use std::io::{self, Write};

use ampl_analysis::strata::{ComparedFound, Found, Method};
use ampl_core::cluster::NoClasses;

use crate::human::{count, digits, percent, plural};

/// Writes the comparison as a table, if there is one.
///
/// # Errors
/// Errors of `out`.
pub fn table(out: &mut impl Write, found: &Found) -> io::Result<()> {
    let Some(compared) = &found.compare else { return Ok(()) };
    let (found_on, priced_on) = (found.windows as u64 / 2, (found.windows as u64).div_ceil(2));
    writeln!(
        out,
        "\nthe same ranks by every method, found on {} and priced on {} between them:\n",
        plural(found_on, "window"),
        plural(priced_on, "window")
    )?;
    writeln!(
        out,
        "{:<16} {:>6} {:>8} {:>8} {:>11} {:>8}",
        "method", "strata", "drawn", "saved", "silhouette", "agrees"
    )?;
    for row in compared {
        let saved = if row.k == 1 { "-".into() } else { percent(row.gain) };
        let silhouette = row.silhouette.map_or("-".into(), digits);
        let (size, agreement) = (digits(row.size), digits(row.agreement));
        let line = format!(
            "{:<16} {:>6} {size:>8} {saved:>8} {silhouette:>11} {agreement:>8}   {}",
            row.method.name(),
            row.k,
            notes(row)
        );
        writeln!(out, "{}", line.trim_end())?;
    }
    writeln!(out, "\nagrees: adjusted Rand index with the strata of k-medoids; 1 where they are the same.")?;
    for row in compared.iter().filter(|row| row.clustered < found.population) {
        let clustered = count(row.clustered as u64);
        writeln!(
            out,
            "{}: classes were made of {clustered} ranks; the others joined the nearest medoid.",
            row.method.name()
        )?;
    }
    Ok(())
}

/// Ranks that the method left out, numbers of strata that it failed for, and the best number that would not pay.
fn notes(row: &ComparedFound) -> String {
    let mut notes = Vec::new();
    if row.unclassed > 0 {
        notes.push(format!("{} in no class", plural(row.unclassed as u64, "rank")));
    }
    for (why, words) in [
        (NoClasses::NotConverged, "did not converge"),
        (NoClasses::Degenerate, "a class collapsed"),
        (NoClasses::AllNoise, "every rank is noise"),
    ] {
        let numbers = row.failed.iter().filter(|failed| failed.why == why);
        let numbers: Vec<String> = numbers.map(|failed| failed.k.to_string()).collect();
        if numbers.is_empty() {
            continue;
        }
        // DBSCAN is not asked for a number.
        let asked = row.method != Method::Dbscan;
        notes.push(match asked {
            true => format!("{words} with {} strata", numbers.join(", ")),
            false => words.to_owned(),
        });
    }
    let best = row.tried.iter().filter(|tried| tried.k > 1).max_by(|a, b| a.gain.total_cmp(&b.gain));
    if let (1, Some(best)) = (row.k, best) {
        let saved = match best.gain {
            gain if gain < 0.0 => format!("{} more", percent(-gain)),
            gain => format!("{} less", percent(gain)),
        };
        notes.push(format!("{} strata would not pay ({saved})", best.k));
    }
    notes.join("; ")
}
