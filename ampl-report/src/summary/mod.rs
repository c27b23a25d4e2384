//! Summary of a run, on about 25 lines that need no manual.

mod counted;
mod efficiency;
mod missing_data;
mod places;
mod sampling;
mod sites;
mod storage;

use std::fmt::Write;
use std::path::Path;

use ampl_analysis::moved::Moved;
use ampl_analysis::overhead::{Clocks, Overhead};
use ampl_analysis::processors::Sharing;
use ampl_analysis::{programs, uncovered};
use ampl_reader::model::EndBasis;
use ampl_reader::{Trace, directory};

pub use missing_data::done_less;

use crate::human::{bytes, count, digits, duration, fit, percent, plural, wrap};
use crate::layout::{Page, field, paragraph};
use crate::processors;
use crate::programs::title;

/// Lines of text without gaps or damage.
const HEIGHT: usize = 32;

/// The place that a trace was read from, and the page that is written.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The run as the user named it.
    pub run: &'a Path,
    /// True where there is a trace file; false where there are journals only.
    pub has_file: bool,
    /// Columns of text.
    pub width: usize,
}

/// The summary of `trace`, which was read from `source`.
pub fn text(trace: &Trace, source: &Source<'_>) -> String {
    let mut out = Page::new(source.width);
    head(&mut out, trace);
    let plan = directory::plan(&trace.run);
    if trace.windows() == 0 {
        let no_room = Overhead::of(trace, 0).steps.iter().any(|step| step.reason == "journal");
        let why = match no_room {
            true => "none is stored: there was no room",
            false => "none was closed: the thread that called MPI_Init made no call long enough after it",
        };
        field(&mut out, "windows", why);
    } else {
        if let Some(sharing) = Sharing::of(trace) {
            paragraph(&mut out, "processors", &processors::text(&sharing));
        }
        efficiency::write(&mut out, trace, plan.as_ref());
        sampling::write(&mut out, trace, plan.as_ref());
    }
    moved(&mut out, trace);
    storage::write(&mut out, trace, plan.as_ref(), !source.has_file);
    agent(&mut out, trace);
    places::write(&mut out, trace);
    let mut end = Page::new(source.width);
    counted::write(&mut end, trace);
    missing_data::write(&mut end, trace, plan.as_ref());
    next(&mut end, trace, source.run);
    // Call sites take the lines that are left, but for their title.
    let rest = HEIGHT.saturating_sub(out.lines() + end.lines() + 2);
    sites::write(&mut out, trace, plan.as_ref(), rest.clamp(3, 5));
    out.into_text() + &end.into_text()
}

fn head(out: &mut Page, trace: &Trace) {
    let run = &trace.run;
    let programs = programs::of(trace);
    let command = run.command.join(" ");
    let lines = match (programs.len(), command.as_str()) {
        (2.., _) => wrap(&format!("ampl: {}", title(&programs)), out.width, "      "),
        (_, "") => vec!["ampl: a run whose program is not known".to_owned()],
        (_, command) => vec![fit(&format!("ampl: {command}"), out.width)],
    };
    let _ = writeln!(out, "\n{}", lines.join("\n"));
    field(out, "MPI library", &library(&run.mpi_library));
    let mut hosts: Vec<&str> = trace.ranks.iter().map(|rank| rank.process.host.as_str()).collect();
    hosts.sort_unstable();
    hosts.dedup();
    let shown = match hosts.len() {
        0..=4 => hosts.join(", "),
        _ => format!("{}, …", hosts[..3].join(", ")),
    };
    let state = match (&run.alone, trace.complete) {
        (Some(alone), true) => &format!("ONE OF {} THAT RAN ALONE, see below", alone.processes),
        (None, true) => "complete",
        (_, false) => "INCOMPLETE, see below",
    };
    let ranks = plural(run.ranks.into(), "rank");
    field(out, "processes", &format!("{ranks} on {} ({shown}); {state}", plural(hosts.len() as u64, "host")));
    let calls: u64 = trace.function_calls().iter().map(|&(_, calls)| calls).sum();
    clocks(out, trace);
    // Calls that a rank made after it was read, or left nothing of, are not in it.
    let whole = trace.complete && uncovered::functions(trace).is_empty();
    let counted = if whole { ", all counted" } else { " counted" };
    field(out, "run time", &format!("{}; {} MPI calls{counted}", run_time(trace), count(calls)));
}

/// Writes the error of the ranks' times, where they have several clocks.
fn clocks(out: &mut Page, trace: &Trace) {
    let Some(Clocks { ranks, error_ns, rank, drift_ppm }) = Clocks::of(trace) else { return };
    let drift = match drift_ppm {
        Some(0.0) => "; no drift was seen".into(),
        Some(drift) => format!("; drift of up to {} ppm is taken out", digits(drift.abs())),
        None => "; drift was not measured, as the job did not end".into(),
    };
    let others = plural(ranks, "rank");
    let text = format!(
        "{others} of another clock than rank 0, within {} (rank {rank}){drift}",
        duration(error_ns as f64)
    );
    field(out, "clocks", &text);
}

/// Run time of the longest rank as far as its clock was read, nanoseconds.
fn longest_ns(trace: &Trace) -> u64 {
    trace.ranks.iter().map(|rank| rank.process.elapsed_ns).max().unwrap_or(0)
}

/// Run time; for an unfinished run, with its end.
fn run_time(trace: &Trace) -> String {
    let longest = longest_ns(trace) as f64;
    let Some(end) = trace.run.end.filter(|_| !trace.complete) else {
        return format!("{} of the longest rank", duration(longest));
    };
    let until = match end.basis {
        EndBasis::Now => "until now",
        EndBasis::Launcher => "until the launcher returned",
        EndBasis::LastCall => "until the last call of a rank",
    };
    format!("{} {until}", duration(longest))
}

/// The library's name and version out of its own description, which may be a page.
fn library(description: &str) -> String {
    let first = description.lines().next().unwrap_or_default();
    let first = first.split(',').next().unwrap_or_default();
    let words: Vec<&str> = first.split_whitespace().collect();
    if words.is_empty() { "not known".into() } else { words.join(" ") }
}

/// Bytes to and from files and windows.
fn moved(out: &mut Page, trace: &Trace) {
    let Some(Moved { read, written, put, got }) = Moved::of(trace) else { return };
    if read + written > 0 {
        let text = format!("{} read, {} written by MPI-IO", bytes(read as f64), bytes(written as f64));
        field(out, "files", &text);
    }
    if put + got > 0 {
        let text = format!("{} put, {} got by one-sided calls", bytes(put as f64), bytes(got as f64));
        field(out, "windows of memory", &text);
    }
}

fn agent(out: &mut Page, trace: &Trace) {
    let calls = trace.function_calls().iter().map(|&(_, calls)| calls).sum();
    let Overhead { agent_ns, share, per_call_ns, own, .. } = Overhead::of(trace, calls);
    let mut text = format!("{} of processor time", duration(agent_ns as f64));
    match (own.processor_share, own.processor_ns) {
        (Some(share), Some(job)) => {
            let _ = write!(text, ", {} of the job's {}", percent(share), duration(job as f64));
        }
        _ => share.into_iter().for_each(|share| {
            let _ = write!(text, ", {} of the ranks' time", percent(share));
        }),
    }
    if own.start_ns + own.end_ns > 0 {
        let [calls, start, end] = [own.calls_ns, own.start_ns, own.end_ns].map(|part| duration(part as f64));
        let _ = write!(text, "; calls {calls}, start {start}, end {end}");
    }
    if let Some(per_call) = per_call_ns {
        let _ = write!(text, "; {} per call", duration(per_call));
    }
    if let Some(most) = &own.largest {
        let share = percent(most.share);
        let _ = write!(text, "; at most {share} in a window (rank {}, window {})", most.rank, most.window);
    }
    paragraph(out, "ampl's own time", &format!("{text}; self-measured"));
}

fn next(out: &mut Page, trace: &Trace, run: &Path) {
    // The rank with the most to show.
    let rank = trace.ranks.iter().max_by_key(|rank| (rank.times.len(), std::cmp::Reverse(rank.process.rank)));
    let rank = rank.map_or(0, |rank| rank.process.rank);
    // Quoted for a shell and never cut: part of a path is of no use.
    let path = run.display().to_string();
    let plain = path.chars().all(|letter| letter.is_alphanumeric() || "/._-+,:@%".contains(letter));
    let (path, run) = if plain { (path, "$RUN") } else { (quoted(&path), "\"$RUN\"") };
    let _ = writeln!(out, "  {:<20}RUN={path}", "next");
    let decode = format!("ampl decode {run} --rank {rank}");
    let width = decode.len();
    for (command, meaning) in [
        (format!("ampl estimate {run}"), "every mean with its interval"),
        (format!("ampl decisions {run}"), "who was sampled, from when on, and why"),
        (decode, "the calls of one rank"),
    ] {
        field(out, "", &format!("{command:<width$}   {meaning}"));
    }
}

/// `text` as one word of a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests;
