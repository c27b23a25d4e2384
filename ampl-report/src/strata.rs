//! Strata that were found, for people.

use std::io::{self, Write};

use ampl_analysis::strata::guides::MissingGuide;
use ampl_analysis::strata::{Found, Stratification};
use ampl_core::cluster::LEAST_GAIN;

use crate::human::{cut, digits, percent, plural};
use crate::strata_comparison;

/// Writes the strata as tables, behind a headline.
///
/// # Errors
/// Errors of `out`.
pub fn table(out: &mut impl Write, division: &Stratification, found: &Found) -> io::Result<()> {
    let bound = match (found.error, found.error_abs) {
        (Some(error), _) => percent(error),
        (None, error) => digits(error.unwrap_or_default()),
    };
    writeln!(out, "{}", headline(division, found))?;
    let windows = plural(found.windows as u64, "window");
    writeln!(
        out,
        "{} of group \"{}\", {windows} of {}; ± {bound} at {}; {}\n",
        plural(found.population as u64, "rank"),
        found.group,
        found.metrics.join(", "),
        percent(found.confidence),
        found.method.name()
    )?;
    if found.k > 1 {
        writeln!(out, "{:<16} {:>8} {:>8} {:>8}   ranks", "stratum", "ranks", "medoid", "drawn")?;
        for stratum in &found.strata {
            let medoid = stratum.medoid.map_or("-".into(), |medoid| medoid.to_string());
            let (name, ranks) = (cut(&stratum.name, 16), cut(&stratum.ranks, 60));
            writeln!(
                out,
                "{name:<16} {:>8} {medoid:>8} {:>8}   {ranks}",
                stratum.population,
                digits(stratum.size)
            )?;
        }
        writeln!(out)?;
    }
    writeln!(out, "{:>6} {:>8} {:>8} {:>8} {:>11}", "strata", "drawn", "saved", "F", "silhouette")?;
    for tried in &found.tried {
        let number = |number: Option<f64>| number.map_or("-".into(), digits);
        let saved = if tried.k == 1 { "-".into() } else { percent(tried.gain) };
        writeln!(
            out,
            "{:>6} {:>8} {saved:>8} {:>8} {:>11}",
            tried.k,
            digits(tried.size),
            number(tried.f),
            number(tried.silhouette)
        )?;
    }
    writeln!(
        out,
        "\ndrawn: ranks of a window that the bound takes, on windows that the strata were not found on."
    )?;
    let floor = division.floor();
    if found.k > 1 && found.tried[0].size <= floor as f64 {
        writeln!(
            out,
            "A bound is given {floor} ranks anyway: strata save nothing unless sampling.floor is less."
        )?;
    }
    strata_comparison::table(out, found)
}

/// Result in a line.
fn headline(division: &Stratification, found: &Found) -> String {
    let one = digits(found.tried[0].size);
    if found.k > 1 {
        let saved = if found.gain < 0.0 {
            format!("{} more", percent(-found.gain))
        } else {
            format!("{} less", percent(found.gain))
        };
        let (k, size) = (found.k, digits(found.size));
        return format!("{k} strata: {size} ranks of a window instead of {one}, {saved}");
    }
    let Some(best) = division.choice.best_alternative() else {
        return match found.windows {
            0 | 1 => "one class: it takes two windows to find out about others".into(),
            _ => format!("one class: all ranks are alike; {one} of a window are enough"),
        };
    };
    let (k, size) = (best.k, digits(best.price.size));
    let saved = match best.gain {
        gain if gain < 0.0 => format!("{} more", percent(-gain)),
        gain if gain < LEAST_GAIN => format!("{} less, {} are asked for", percent(gain), percent(LEAST_GAIN)),
        gain if !best.price.is_proven() => format!("{} less, but no more than by chance", percent(gain)),
        gain => {
            format!("{} less, but not for long: in another part of the run they are others", percent(gain))
        }
    };
    format!(
        "one class: stratifying would not pay ({k} strata take {size} ranks of a window instead of {one}: {saved})"
    )
}

/// Fault of a run whose guides cannot tell ranks apart, and its remedy.
pub fn missing_guide(missing: &MissingGuide) -> (String, &'static str) {
    match missing {
        MissingGuide::None(have) => (
            format!("it has none of the guides, but: {}", have.join(", ")),
            "name a metric that it has with --metric",
        ),
        MissingGuide::Unknown(name, have) => {
            (format!("it has no metric {name}, but: {}", have.join(", ")), "name one of these with --metric")
        }
    }
}
