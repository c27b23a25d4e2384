//! The timestep loop for people.

use std::io::{self, Write};

use ampl_analysis::timesteps::{Absence, Named};
use ampl_core::units::RankSet;

use crate::human::{count, digits, percent, plural};

/// Functions that are printed.
const SHOWN: usize = 8;

/// Sentence on why a run of `ranks` has no timestep loop.
pub fn reason(absence: Absence, ranks: u32) -> &'static str {
    match absence {
        Absence::NoCalls => "no calls are stored",
        Absence::NoLoop if ranks == 1 => "the calls of the only rank do not repeat as a loop over time",
        Absence::NoLoop => "the calls of most ranks do not repeat as a loop over time",
        Absence::Disagreement => "ranks show different numbers of steps, none of them most ranks",
        Absence::TooIrregular => "the calls are too irregular, or too many, to be examined",
    }
}

/// Writes the loop, or why there is none.
///
/// # Errors
/// Errors of `out`.
pub fn write(out: &mut impl Write, row: &Named) -> io::Result<()> {
    let share = format!("{} of {}", percent(row.confidence), plural(row.ranks.into(), "rank"));
    let Some(steps) = row.steps else {
        let title = match row.absence {
            Some(Absence::NoCalls | Absence::NoLoop) => "No timestep loop",
            _ => "Timestep loop not known",
        };
        let reason = row.absence.map_or("it is not known why", |absence| reason(absence, row.ranks));
        writeln!(out, "{title}: {reason}")?;
        return ranks(out, row);
    };
    let least = if row.missing.is_some_and(|missing| missing > 0.0) { "at least " } else { "" };
    writeln!(out, "Timestep loop: {least}{} (by the calls of {share})", plural(steps, "step"))?;
    let mut line = |title: &str, text: String| writeln!(out, "  {title:<14}{text}");
    let calls = |calls: Option<f64>| format!("{} calls", digits(calls.unwrap_or(0.0)));
    line("a step", format!("{} of a rank", calls(row.calls_per_step)))?;
    if let (Some(site), Some(function)) = (&row.site, row.function) {
        line("each step", format!("{function} @ {site}"))?;
    }
    if !row.path.is_empty() {
        line("inside of", row.path.join(" > "))?;
    }
    let warm_up = match row.warm_up {
        Some(steps) if steps > 0 => format!(", with {} to warm up", plural(steps, "step")),
        _ => String::new(),
    };
    line("before", calls(row.start_up) + &warm_up)?;
    line("behind", calls(row.wind_down))?;
    if let Some(missing) = row.missing.filter(|&missing| missing > 0.0) {
        line("not recorded", format!("{} inside the loop: there may be more steps", calls(Some(missing))))?;
    }
    if row.by_arguments == Some(true) {
        line(
            "told by",
            "functions, places and arguments: by the first two all parts of a step look alike".into(),
        )?;
    }
    if let Some(parts) = row.may_hold.filter(|&parts| parts > 1) {
        let all = parts.saturating_mul(steps);
        let text = format!(
            "{parts} steps of the program, about {} in all: its calls are the same if {parts} parts come in turns",
            count(all)
        );
        line("may hold", text)?;
    }
    for &other in &row.others {
        let text = if other < steps {
            format!(
                "{} steps: a program that makes several of these in each has the same calls",
                count(other)
            )
        } else {
            format!(
                "{} steps: a program that does the rest of one in some of them has the same calls",
                count(other)
            )
        };
        line("or", text)?;
    }
    if let Some(marker) = &row.marker {
        line("as windows", format!("--set window.marker={marker}"))?;
    }
    ranks(out, row)?;
    writeln!(out, "\n{:<28} {:>14} {:>8}", "function", "calls per step", "share")?;
    let all: f64 = row.functions.iter().map(|(_, calls)| calls).sum();
    for (function, calls) in row.functions.iter().take(SHOWN) {
        writeln!(out, "{function:<28} {:>14} {:>8}", digits(*calls), percent(calls / all))?;
    }
    let rest = row.functions.iter().skip(SHOWN);
    if rest.len() > 0 {
        let calls: f64 = rest.clone().map(|(_, calls)| calls).sum();
        let title = format!("({} more)", count(rest.len() as u64));
        writeln!(out, "{title:<28} {:>14} {:>8}", digits(calls), percent(calls / all))?;
    }
    Ok(())
}

/// Ranks that show another number of steps, and those that were not examined.
fn ranks(out: &mut impl Write, row: &Named) -> io::Result<()> {
    for other in row.counts.iter().filter(|other| other.steps != row.steps) {
        let ranks = RankSet::from_iter(other.ranks.iter().copied());
        let steps = other.steps.map_or("no loop".into(), |steps| plural(steps, "step"));
        let least = if other.has_gaps { ", of which some are not recorded" } else { "" };
        writeln!(out, "  {:<14}{steps} by the calls of ranks {ranks}{least}", "others")?;
    }
    if row.examined < row.ranks {
        let missing = plural((row.ranks - row.examined).into(), "rank");
        writeln!(out, "  {:<14}of {missing} no calls are stored", "not known")?;
    }
    Ok(())
}
