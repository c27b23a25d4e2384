//! Phases for people.

use std::io::{self, Write};

use ampl_analysis::coverage::Extent;
use ampl_analysis::efficiency::{Bound, Lost};
use ampl_analysis::phases::{Name, Phase, TimeBasis, Top};

use crate::coverage::{part, unknown as not_known};
use crate::human::{digits, duration, percent, plural};

/// Share of a phase's time in MPI from which a function is named.
const NAMED: f64 = 0.1;

/// A phase as people read it.
fn name(phase: Name) -> &'static str {
    match phase {
        Name::StartUp => "start-up",
        Name::Body => "body",
        Name::WindDown => "wind-down",
    }
}

/// One line per phase: its label and its text.
pub fn lines(phases: &[Phase]) -> Vec<(&'static str, String)> {
    phases.iter().map(|phase| (name(phase.phase), line(phase, phases))).collect()
}

fn line(phase: &Phase, all: &[Phase]) -> String {
    let error = match all.first() == Some(phase) {
        true => format!(" ± {}", duration(phase.boundary_ns)),
        false => String::new(),
    };
    let mut text = format!("{}{error} ({}): ", duration(phase.ns), percent(phase.share));
    let (Some(mpi), true) = (phase.mpi, phase.parallel.is_some()) else {
        return text + &unknown(phase);
    };
    text += &format!("{} in MPI", percent(mpi));
    if let (Some(balance), true) = (phase.load_balance, phase.coverage.of_ranks > 1) {
        text += &format!(", balance {}", percent(balance));
    }
    if phase.coverage.extent() != Extent::Whole {
        text += &format!("; of {}", part(&phase.coverage));
    }
    if let Some(top) = phase.top.first().filter(|top| top.share.is_some_and(|share| share >= NAMED)) {
        text += &format!("; most {}", top.function);
    }
    text
}

fn unknown(phase: &Phase) -> String {
    match phase.bounds {
        Some(bounds) => {
            let [low, high] = bounds.mpi;
            format!("{}: {} to {} in MPI", not_known(&phase.coverage), percent(low), percent(high))
        }
        None => not_known(&phase.coverage),
    }
}

fn most(top: &Top) -> String {
    let about = if top.basis == TimeBasis::Calls { "about " } else { "" };
    match top.share {
        Some(share) => format!("{} {about}{}", top.function, percent(share)),
        None => top.function.into(),
    }
}

/// The table of `ampl efficiency`.
pub fn table(out: &mut impl Write, phases: &[Phase], ranks: u64) -> io::Result<()> {
    let Some(first) = phases.first() else { return Ok(()) };
    writeln!(
        out,
        "\nPhases (by the calls of {} of {}; where they end is known to {})",
        first.found_by,
        plural(ranks, "rank"),
        duration(first.boundary_ns)
    )?;
    writeln!(
        out,
        "{:<10} {:>11} {:>8} {:>7} {:>9} {:>8} {:>13} {:>7} {:>10}  of its time in MPI",
        "phase", "windows", "time", "share", "parallel", "balance", "communication", "in MPI", "imbalance"
    )?;
    for phase in phases {
        let share = |share: Option<f64>| share.map_or("-".into(), percent);
        let whole = phase.coverage.extent() == Extent::Whole;
        let calls: Vec<String> =
            phase.top.iter().filter(|top| top.share.is_some_and(|share| share >= NAMED)).map(most).collect();
        let last = match (phase.parallel, whole) {
            (None, _) => unknown(phase),
            (_, true) => calls.join(", "),
            (_, false) => format!("of {}", part(&phase.coverage)),
        };
        let text = format!(
            "{:<10} {:>11} {:>8} {:>7} {:>9} {:>8} {:>13} {:>7} {:>10}  {last}",
            name(phase.phase),
            format!("{}-{}", phase.windows[0], phase.windows[1]),
            duration(phase.ns),
            percent(phase.share),
            share(phase.parallel),
            share(phase.load_balance),
            share(phase.communication),
            share(phase.mpi),
            phase.lost.map_or("-".into(), |lost| imbalance(&lost)),
        );
        writeln!(out, "{}", text.trim_end())?;
    }
    if let Some(costly) = costly(phases) {
        writeln!(out, "{costly}")?;
    }
    Ok(())
}

/// Time that imbalance costs, or costs at least.
fn imbalance(lost: &Lost) -> String {
    match lost.bound {
        Bound::AtLeast => format!("≥ {}", duration(lost.imbalance_ns)),
        Bound::Estimate => duration(lost.imbalance_ns),
    }
}

/// Share of the run's lost time that is in phases other than the body.
fn costly(phases: &[Phase]) -> Option<String> {
    let lost = |phase: &Phase| phase.lost.map(|lost| lost.imbalance_ns + lost.mpi_ns);
    let all: f64 = phases.iter().map(lost).sum::<Option<f64>>()?;
    let beside: f64 = phases.iter().filter(|phase| phase.phase != Name::Body).filter_map(lost).sum();
    let share = beside / all;
    (all > 0.0).then(|| {
        format!(
            "Start-up and wind-down take {} % of the time that MPI and imbalance cost.",
            digits(100.0 * share)
        )
    })
}
