//! Efficiencies for people: the run, its course, its worst windows, and one sentence to act on.

use std::io::{self, Write};

use super::rows::{Basis, Row};
use crate::human::{digits, percent, plural};

/// Windows in the table.
const WORST: usize = 10;
/// Characters of the course.
const WIDTH: usize = 72;
/// From a parallel efficiency of this on there is little to gain.
const GOOD: f64 = 0.9;

pub(super) fn write(out: &mut impl Write, rows: &[Row]) -> io::Result<()> {
    let (run, windows) = rows.split_first().expect("the run has a row");
    let basis = match run.basis {
        Basis::Census => "census, exact",
        Basis::Sampled => "sampled summaries",
        Basis::Totals => "call totals of every rank; windows from the sampled ranks",
        Basis::Measured => {
            "of the windows that all measured; in others calls were only counted, or ampl was paused"
        }
    };
    writeln!(out, "Efficiency of the run ({basis}; {} of {} ranks)", run.reported, run.population)?;
    let (Some(parallel), Some(balance), Some(communication)) =
        (run.parallel, run.load_balance, run.communication)
    else {
        return writeln!(out, "  not known: no time was measured");
    };
    writeln!(
        out,
        "  parallel       {:<9} of the ranks' time computes: the product of the next two",
        percent(parallel)
    )?;
    writeln!(out, "  load balance   {:<9} mean/max of compute time", percent(balance))?;
    writeln!(out, "  communication  {:<9} most compute time of a rank / run time", percent(communication))?;
    if windows.is_empty() {
        writeln!(out, "\nNo rank's window is in the trace.")?;
    } else {
        course(out, windows)?;
        worst(out, windows)?;
    }
    writeln!(out, "\n{}", sentence(run, windows))
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
            "{text} without times of every rank: those that had ended, made fewer windows or only counted"
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

/// Time lost to imbalance and to MPI, nanoseconds of an average rank.
///
/// Added up over windows: who waits for another rank in every window has lost that time, though over the run
/// all compute the same.
fn lost(run: &Row, windows: &[Row]) -> (f64, f64) {
    let rows = if windows.is_empty() { std::slice::from_ref(run) } else { windows };
    let known = rows.iter().filter_map(|row| Some((row.elapsed_ns, row.parallel?, row.communication?)));
    known.fold((0.0, 0.0), |(imbalance, mpi), (elapsed, parallel, communication)| {
        (imbalance + elapsed * (communication - parallel), mpi + elapsed * (1.0 - communication))
    })
}

/// What to do about it.
pub(super) fn sentence(run: &Row, rows: &[Row]) -> String {
    let (Some(parallel), Some(balance), Some(communication)) =
        (run.parallel, run.load_balance, run.communication)
    else {
        return "Nothing is known: no time was measured.".into();
    };
    let (Some(rank), Some(host)) = (&run.slowest, &run.slowest_host) else {
        return String::new();
    };
    if run.population == 1 {
        return format!("One rank: nothing to balance; it computes {} of its time.", percent(communication));
    }
    if parallel >= GOOD {
        return format!("Little to gain: {} of the ranks' time computes.", percent(parallel));
    }
    let (imbalance, mpi) = lost(run, rows);
    if mpi > imbalance {
        return format!(
            "MPI costs most: even the busiest rank, {} on {}, computes only {} of the time; 'ampl info RUN' names \
             the calls.",
            rank.rank,
            rank.host,
            percent(communication)
        );
    }
    let windows = rows.len() as u64;
    let of = |some: u64| format!("in {some} of {}", plural(windows, "window"));
    if host.ranks < run.reported && host.windows * 2 > windows {
        return format!(
            "Node {} is slowest {}, its ranks compute {} times as long as the mean: look at that node, or give it \
             less work.",
            host.host,
            of(host.windows),
            digits(host.over_mean)
        );
    }
    let over = digits(1.0 / balance);
    if rank.windows * 2 > windows {
        return format!(
            "Rank {} on {} is slowest {}, it computes {over} times as long as the mean: give it less work.",
            rank.rank,
            rank.host,
            of(rank.windows)
        );
    }
    format!(
        "The imbalance moves: the rank with most work, {} on {}, is slowest {} only; distribute work while it runs.",
        rank.rank,
        rank.host,
        of(rank.windows)
    )
}
