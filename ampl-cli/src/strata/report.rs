//! Strata that were found, as JSON and for people.

use std::io::{self, Write};

use ampl_core::cluster::LEAST_GAIN;
use ampl_core::config::ErrorBound;
use serde::Serialize;

use super::divide::Stratification;
use crate::human::{cut, digits, percent, plural};

/// Output of `--json`. Sizes are numbers of ranks to be drawn of a window, mean over windows that strata were not
/// found on, before floors and rounding.
#[derive(Debug, Serialize)]
pub struct Found {
    /// Strata.
    pub k: usize,
    /// Share of the ranks that they save against a single stratum; 0 for one.
    pub gain: f64,
    /// The strata, in the order of their smallest ranks.
    pub strata: Vec<StratumFound>,
    /// The group that was divided.
    pub group: String,
    /// Its ranks.
    pub population: usize,
    /// Windows with an observation.
    pub windows: usize,
    /// Metrics that ranks were clustered by.
    pub metrics: Vec<String>,
    /// The bound that samples are priced for.
    pub confidence: f64,
    /// Its half-width, relative to the mean; none where it is in the metric's unit.
    pub error: Option<f64>,
    /// Its half-width in the metric's unit.
    pub error_abs: Option<f64>,
    pub method: &'static str,
    /// Ranks to be drawn with these strata.
    pub size: f64,
    /// Ratio of the variance between strata to that within them; none for one stratum.
    pub f: Option<f64>,
    /// Every number of strata that was tried.
    pub tried: Vec<TriedFound>,
}

/// One stratum.
#[derive(Debug, Serialize)]
pub struct StratumFound {
    pub name: String,
    /// The rank in the middle.
    pub medoid: Option<u32>,
    /// Its ranks, as a job file has them.
    pub ranks: String,
    /// Number of ranks.
    pub population: u64,
    /// Ranks to be drawn.
    pub size: f64,
}

/// One number of strata.
#[derive(Debug, Serialize)]
pub struct TriedFound {
    pub k: usize,
    pub size: f64,
    pub gain: f64,
    pub f: Option<f64>,
    /// linfa's, in [−1, 1].
    pub silhouette: Option<f64>,
}

impl Found {
    pub fn of(division: &Stratification) -> Self {
        let chosen = division.choice.strata();
        // JSON has no infinity: classes without any difference inside have no ratio.
        let finite = |f: Option<f64>| f.filter(|f| f.is_finite());
        let strata = division.strata.iter().map(|stratum| StratumFound {
            name: stratum.name.clone(),
            medoid: stratum.medoid,
            ranks: stratum.ranks.to_string(),
            population: stratum.ranks.len(),
            size: stratum.size,
        });
        let tried = division.choice.tried.iter().zip(&division.silhouettes);
        let (error, error_abs) = match division.error {
            ErrorBound::Relative(error) => (Some(error), None),
            ErrorBound::Absolute(error) => (None, Some(error)),
        };
        Self {
            k: chosen.k,
            gain: chosen.gain,
            strata: strata.collect(),
            group: division.plan.groups[division.group].name.clone(),
            population: division.members.len(),
            windows: division.windows,
            metrics: division.guides.clone(),
            confidence: division.confidence,
            error,
            error_abs,
            method: division.method.name(),
            size: chosen.price.size,
            f: finite(chosen.price.f),
            tried: tried
                .map(|(tried, &silhouette)| TriedFound {
                    k: tried.k,
                    size: tried.price.size,
                    gain: tried.gain,
                    f: finite(tried.price.f),
                    silhouette,
                })
                .collect(),
        }
    }
}

/// Prints it for people.
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
        found.method
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
    Ok(())
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
