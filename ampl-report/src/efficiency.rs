//! Efficiencies for people: the run, its course, its worst windows, and the greatest cost.

use std::io::{self, Write};

use ampl_analysis::coverage::{Coverage, Extent};
use ampl_analysis::efficiency::{Basis, Bound, Course, Imbalance, OfProgram, Row};
use ampl_analysis::phases::Phase;

use crate::coverage::{paused, unknown as not_known, words};
use crate::human::{digits, duration, percent, plain, plural};
use crate::phases;

#[cfg(test)]
mod tests;

/// Windows in the table.
const WORST: usize = 10;
/// Programs that have a line.
const PROGRAMS: usize = 12;
/// Characters of the course.
const WIDTH: usize = 72;
/// Parallel efficiency from which there is little to gain.
const GOOD: f64 = 0.9;

/// Writes `rows`, the run's first, its `phases`, and its `programs` where they are several.
///
/// # Errors
/// Errors of `out`.
pub fn write(out: &mut impl Write, rows: &[Row], phases: &[Phase], programs: &[OfProgram]) -> io::Result<()> {
    let (run, windows) = rows.split_first().expect("the run has a row");
    let measured = run.measured.filter(|of| of.extent() != Extent::Whole);
    let basis = match (measured, run.basis) {
        (Some(measured), _) => format!("of {}", words(&measured)),
        (None, Basis::Census) => "census, exact".into(),
        (None, Basis::Sampled) => "sampled summaries".into(),
        (None, Basis::Totals) if windows.is_empty() => "call totals of every rank".into(),
        (None, Basis::Totals) => "call totals of every rank; windows from the sampled ranks".into(),
        (None, Basis::Measured) => "of the windows that all measured".into(),
    };
    let paused = run.paused.map_or(String::new(), |pauses| format!("; {}", paused(&pauses)));
    writeln!(out, "Efficiency of the run ({basis}; {} of {} ranks{paused})", run.reported, run.population)?;
    let (whose, length) = match run.paused {
        Some(_) => ("of the time observed", "time observed"),
        None => ("of the ranks' time", "run time"),
    };
    let unknown = measured.filter(|of| of.extent() == Extent::Little);
    let (Some(parallel), Some(communication)) = (run.parallel, run.communication) else {
        match (unknown, run.bounds) {
            (Some(measured), Some(bounds)) => {
                for (name, [low, high], meaning) in [
                    ("parallel", bounds.parallel, "of the ranks' time computes"),
                    ("load balance", bounds.load_balance, "mean/max of compute time"),
                    ("communication", bounds.communication, "most compute time of a rank / run time"),
                ] {
                    let between = format!("between {} and {}", percent(low), percent(high));
                    writeln!(out, "  {name:<14} {}: {between} {meaning}", not_known(&measured))?;
                }
            }
            (Some(measured), None) => writeln!(out, "  {}", not_known(&measured))?,
            (None, _) => writeln!(out, "  not known: no time was measured")?,
        }
        of_programs(programs).iter().try_for_each(|line| writeln!(out, "  {line}"))?;
        if unknown.is_some() && run.bounds.is_some() {
            phases::table(out, phases, run.population)?;
            windows_of(out, windows)?;
        }
        return Ok(());
    };
    writeln!(out, "  parallel       {:<9} {whose} computes{}", percent(parallel), product(programs))?;
    let balance = run.load_balance.map_or("-".into(), percent);
    match programs {
        [] => writeln!(out, "  load balance   {balance:<9} mean/max of compute time")?,
        _ => writeln!(out, "  load balance   not compared across programs, which do different work")?,
    }
    writeln!(out, "  communication  {:<9} most compute time of a rank / {length}", percent(communication))?;
    of_programs(programs).iter().try_for_each(|line| writeln!(out, "  {line}"))?;
    phases::table(out, phases, run.population)?;
    windows_of(out, windows)?;
    match programs {
        [] => writeln!(out, "\n{}", sentence(run)),
        _ => Ok(()),
    }
}

/// Factors of the parallel efficiency, where both are printed.
pub fn product(programs: &[OfProgram]) -> &'static str {
    if programs.is_empty() { ": the product of the next two" } else { "" }
}

/// Lines about each program: `ocean (0-3): parallel 90.1 %, load balance 97.2 %, communication 92.7 %`.
pub fn of_programs(programs: &[OfProgram]) -> Vec<String> {
    let share = |share: Option<f64>| share.map_or_else(|| "not known".into(), percent);
    let line = |of: &OfProgram| {
        let most = of.slowest.map_or(String::new(), |rank| format!("; rank {rank} has most compute time"));
        let part = match Coverage::extent_of(of.coverage) {
            Extent::Part => format!("; of {} of its time", percent(of.coverage)),
            Extent::Whole | Extent::Little => String::new(),
        };
        format!(
            "{} ({}): parallel {}, load balance {}, communication {}{most}{part}",
            plain(&of.program),
            of.ranks,
            share(of.parallel),
            share(of.load_balance),
            share(of.communication)
        )
    };
    let mut lines: Vec<String> = programs.iter().take(PROGRAMS).map(line).collect();
    if programs.len() > PROGRAMS {
        lines.push(format!("and {}: --json", plural((programs.len() - PROGRAMS) as u64, "more program")));
    }
    lines
}

fn windows_of(out: &mut impl Write, windows: &[Row]) -> io::Result<()> {
    if windows.is_empty() {
        return writeln!(out, "\nNo rank's window is in the trace.");
    }
    course(out, windows)?;
    worst(out, windows)
}

/// Parallel efficiency over the windows, a bar each, or the mean of several.
fn course(out: &mut impl Write, windows: &[Row]) -> io::Result<()> {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let each = windows.len().div_ceil(WIDTH);
    let bar = |rows: &[Row]| {
        let known: Vec<f64> = rows.iter().filter_map(|row| row.parallel).collect();
        if known.is_empty() {
            return ' ';
        }
        let mean = known.iter().sum::<f64>() / known.len() as f64;
        BARS[((mean * 8.0) as usize).min(7)]
    };
    let bars: String = windows.chunks(each).map(bar).collect();
    let (first, last) = (windows[0].window, windows[windows.len() - 1].window);
    let (first, last) = (first.unwrap_or(0), last.unwrap_or(0));
    let per = if each == 1 { String::new() } else { format!(", {each} per bar") };
    writeln!(out, "\nParallel efficiency, windows {first} to {last}{per}; a full bar is 100 %\n  {bars}")
}

/// The windows with the least parallel efficiency.
fn worst(out: &mut impl Write, windows: &[Row]) -> io::Result<()> {
    let mut known: Vec<&Row> = windows.iter().filter(|row| row.parallel.is_some()).collect();
    known.sort_by(|a, b| a.parallel.unwrap_or(1.0).total_cmp(&b.parallel.unwrap_or(1.0)));
    let shown = known.len().min(WORST);
    writeln!(out, "\nWorst {} of {}", plural(shown as u64, "window"), windows.len())?;
    writeln!(
        out,
        "{:>9} {:>9} {:>13} {:>14} {:>9}  {:<16} {:<16} reported",
        "window", "parallel", "load balance", "communication", "slowest", "on", "slowest host"
    )?;
    for row in &known[..shown] {
        let share = |share: Option<f64>| share.map_or("-".into(), percent);
        let rank = row.slowest.as_ref().map_or("-".into(), |slowest| slowest.rank.to_string());
        let text = format!(
            "{:>9} {:>9} {:>13} {:>14} {:>9}  {:<16} {:<16} {}",
            row.window.map_or("run".into(), |window| window.to_string()),
            share(row.parallel),
            share(row.load_balance),
            share(row.communication),
            rank,
            row.slowest.as_ref().map_or("-", |slowest| &slowest.host),
            row.slowest_host.as_ref().map_or("-", |slowest| &slowest.host),
            reported(row),
        );
        writeln!(out, "{}", text.trim_end())?;
    }
    let short =
        windows.iter().filter(|row| row.basis != Basis::Sampled && row.reported < row.population).count();
    if short > 0 {
        let text = plural(short as u64, "window");
        writeln!(
            out,
            "{text} without times of every rank: some had ended or made fewer windows, or calls were only counted"
        )?;
    }
    if windows.iter().any(|row| row.basis == Basis::Sampled) {
        writeln!(
            out,
            "The greatest compute time of a window is the sample's: its load balance is an upper bound"
        )?;
    }
    Ok(())
}

fn reported(row: &Row) -> String {
    match (row.basis, row.reported == row.population) {
        (Basis::Census, true) => "all".into(),
        (Basis::Census | Basis::Measured, _) => format!("{} of {}", row.reported, row.population),
        _ => format!("{} of {}, sampled", row.reported, row.population),
    }
}

/// A sentence on the part that costs most, with its evidence.
fn sentence(run: &Row) -> String {
    let (Some(parallel), Some(communication)) = (run.parallel, run.communication) else {
        return "Nothing is known: no time was measured.".into();
    };
    let (Some(rank), Some(lost)) = (&run.slowest, run.lost) else {
        return "No rank computes: all of the time is in MPI; 'ampl info RUN' names the calls.".into();
    };
    if run.population == 1 {
        return format!("One rank: nothing to balance; it computes {} of its time.", percent(communication));
    }
    if parallel >= GOOD {
        return format!("Little to gain: {} of the ranks' time computes.", percent(parallel));
    }
    let [mpi, imbalance, all] = [lost.mpi_ns, lost.imbalance_ns, lost.run_ns].map(duration);
    let all = match run.paused {
        Some(_) => format!("{all} that were observed"),
        None => all,
    };
    let (least, most) = match lost.bound {
        Bound::AtLeast => ("at least ", "at most "),
        Bound::Estimate => ("", ""),
    };
    let Some(found) = run.imbalance.as_ref().filter(|_| lost.imbalance_ns > lost.mpi_ns) else {
        if lost.bound == Bound::AtLeast && run.imbalance.is_some() {
            return format!(
                "It is not known what costs most: of the run's {all}, MPI takes at most {mpi} of an average rank, imbalance at \
                 least {imbalance}. Ranks that take turns within a window count as MPI; windows that end with each step tell \
                 them apart (window.marker). Even the busiest rank, {} on {}, computes only {} of the time; 'ampl info RUN' \
                 names the calls.",
                rank.rank,
                rank.host,
                percent(communication)
            );
        }
        return format!(
            "MPI costs most: {mpi} of the run's {all} for an average rank, imbalance {imbalance}. Even the busiest rank, {} \
             on {}, computes only {} of the time; 'ampl info RUN' names the calls.",
            rank.rank,
            rank.host,
            percent(communication)
        );
    };
    format!(
        "Imbalance costs most: {least}{imbalance} of the run's {all} for an average rank, MPI {most}{mpi}. {}",
        evidence(found, &rank.host)
    )
}

/// Words for the imbalance among the ranks and in time.
fn evidence(found: &Imbalance, host: &str) -> String {
    let over = format!("{} times the mean", digits(found.over_mean));
    let windows = format!("{} of {}", found.windows, plural(found.of_windows, "window"));
    let several = found.ranks.len() > 1;
    let ranks = match (&found.host, several) {
        (Some(host), _) => format!("The ranks of node {host} ({})", found.ranks),
        (None, true) => format!("Ranks {}", found.ranks),
        (None, false) => format!("Rank {} on {host}", found.ranks),
    };
    match found.course {
        Course::Persistent if found.of_windows == 0 => {
            format!("{ranks} {} {over}.", if several { "compute" } else { "computes" })
        }
        Course::Persistent => {
            let each = match (&found.host, several) {
                (None, true) => "each of them ",
                _ => "",
            };
            let verb = if several { "compute" } else { "computes" };
            format!("It is persistent: {ranks} {verb} {over} over the run, {each}above it in {windows}.")
        }
        Course::Phase => {
            let verb = if several { "compute" } else { "computes" };
            let [first, last] = found.phase.unwrap_or_default();
            format!("It is of one part of the run: {ranks} {verb} {over} in windows {first} to {last}.")
        }
        Course::Recurrent => {
            let verb = if several { "compute" } else { "computes" };
            format!("It comes and goes: {ranks} {verb} {over} over the run, but above it in {windows} only.")
        }
        Course::Drift => format!(
            "It drifts: the ranks that compute most in a window do so in the next (correlation {}), but not throughout. A \
             window's greatest compute time is {} times its mean, the run's only {}.",
            digits(found.correlation.unwrap_or_default()),
            digits(found.most_over_mean),
            digits(found.over_mean)
        ),
        Course::Turns => format!(
            "Ranks take turns: a window's greatest compute time is {} times its mean, the run's only {}, and other ranks \
             have it in the next window.",
            digits(found.most_over_mean),
            digits(found.over_mean)
        ),
    }
}
