//! Summary of a run, on about 35 lines that need no manual.

mod counted;
mod efficiency;
mod missing_data;
pub(crate) mod places;
mod sampling;
mod sites;
mod steps;
mod storage;
mod verdict;

use std::fmt::Write;
use std::path::Path;

use ampl_analysis::moved::Moved;
use ampl_analysis::overhead::{Clocks, Overhead, StepReason};
use ampl_analysis::verdict::{self as findings, Finding};
use ampl_analysis::{programs, uncovered};
use ampl_reader::model::EndBasis;
use ampl_reader::{Trace, directory};

pub use missing_data::{done_less, not_covered};
pub use sampling::windows;
pub use storage::trace_file;

use crate::human::{bytes, count, digits, duration, fit, percent, plain, plural, shell_word, wrap};
use crate::layout::{Page, field, paragraph};
use crate::programs::title as names;
use crate::verdict::next as command;

/// Lines of text without gaps or damage.
const HEIGHT: usize = 44;

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
    let findings = findings::of(trace);
    verdict::write(&mut out, &findings);
    let plan = directory::plan(&trace.run);
    if trace.windows() == 0 {
        let no_room = Overhead::of(trace, 0)
            .steps
            .iter()
            .any(|step| matches!(step.reason, StepReason::Journal | StepReason::Limit));
        let why = match no_room {
            true => "none is stored: there was no room",
            false => "none was closed: the thread that called MPI_Init made no call long enough after it",
        };
        field(&mut out, "windows", why);
    } else {
        efficiency::write(&mut out, trace, plan.as_ref());
        sampling::write(&mut out, trace, plan.as_ref());
        steps::write(&mut out, trace, plan.as_ref());
    }
    moved(&mut out, trace);
    storage::write(&mut out, trace, plan.as_ref(), !source.has_file);
    paragraph(&mut out, "ampl's own time", &own_time(trace));
    places::write(&mut out, trace);
    let mut end = Page::new(source.width);
    counted::write(&mut end, trace);
    missing_data::write(&mut end, trace, plan.as_ref());
    next(&mut end, trace, source.run, &findings);
    // Call sites take the lines that are left, but for their title.
    let rest = HEIGHT.saturating_sub(out.lines() + end.lines() + 2);
    sites::write(&mut out, trace, plan.as_ref(), rest.clamp(3, 5));
    out.into_text() + &end.into_text()
}

fn head(out: &mut Page, trace: &Trace) {
    let name = title(trace);
    let lines = match programs::of(trace).len() {
        2.. => wrap(&format!("ampl: {name}"), out.width, "      "),
        _ => vec![fit(&format!("ampl: {name}"), out.width)],
    };
    let _ = writeln!(out, "\n{}", lines.join("\n"));
    for (label, text) in facts(trace) {
        field(out, label, &text);
    }
}

/// The command of a run, or its programs where there are several.
pub fn title(trace: &Trace) -> String {
    let programs = programs::of(trace);
    let command = trace.run.command.join(" ");
    let title = match (programs.len(), command.as_str()) {
        (2.., _) => names(&programs),
        (_, "") => "a run whose program is not known".to_owned(),
        _ => command,
    };
    plain(&title)
}

/// Facts about a run, each with its label: library, processes, clocks, run time.
pub fn facts(trace: &Trace) -> Vec<(&'static str, String)> {
    let run = &trace.run;
    let mut found = vec![("MPI library", library(&run.mpi_library))];
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
    let on = plural(hosts.len() as u64, "host");
    found.push(("processes", format!("{ranks} on {on} ({shown}); {state}")));
    found.extend(clocks(trace).map(|text| ("clocks", text)));
    let calls: u64 = trace.calls();
    // Calls that a rank made after it was read, or left nothing of, are not in it.
    let whole = trace.complete && uncovered::functions(trace).is_empty();
    let counted = if whole { ", all counted" } else { " counted" };
    found.push(("run time", format!("{}; {} MPI calls{counted}", run_time(trace), count(calls))));
    found
}

/// The error of the ranks' times, where they have several clocks.
fn clocks(trace: &Trace) -> Option<String> {
    let Clocks { ranks, error_ns, rank, drift_ppm } = Clocks::of(trace)?;
    let drift = match drift_ppm {
        Some(0.0) => "; no drift was seen".into(),
        Some(drift) => format!("; drift of up to {} ppm is taken out", digits(drift.abs())),
        None => "; drift was not measured, as the job did not end".into(),
    };
    let others = plural(ranks, "rank");
    let within = duration(error_ns as f64);
    Some(format!("{others} of another clock than rank 0, within {within} (rank {rank}){drift}"))
}

/// Run time of the longest rank as far as its clock was read, nanoseconds.
fn longest_ns(trace: &Trace) -> u64 {
    trace.elapsed_ns()
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
pub fn library(description: &str) -> String {
    let first = description.lines().next().unwrap_or_default();
    let first = first.split(',').next().unwrap_or_default();
    let words: Vec<&str> = first.split_whitespace().collect();
    if words.is_empty() { "not known".into() } else { words.join(" ") }
}

/// Bytes to and from files and windows.
fn moved(out: &mut Page, trace: &Trace) {
    let Some(Moved { read, written, put, got }) = Moved::of(trace) else { return };
    if read + written > 0 {
        let text =
            format!("{} asked for by reads, {} written by MPI-IO", bytes(read as f64), bytes(written as f64));
        field(out, "files", &text);
    }
    if put + got > 0 {
        let text = format!("{} put, {} got by one-sided calls", bytes(put as f64), bytes(got as f64));
        field(out, "windows of memory", &text);
    }
}

/// Time that ampl took, as it measured itself, in words.
pub fn own_time(trace: &Trace) -> String {
    let calls = trace.calls();
    let Overhead { agent_ns, share, per_call_ns, own, .. } = Overhead::of(trace, calls);
    let mut text = format!("{} of processor time", duration(agent_ns as f64));
    if let (Some(share), Some(job)) = (own.processor_share, own.processor_ns) {
        let _ = write!(text, ", {} of the job's {}", percent(share), duration(job as f64));
    }
    if own.start_ns + own.end_ns > 0 {
        let [calls, start, end] = [own.calls_ns, own.start_ns, own.end_ns].map(|part| duration(part as f64));
        let _ = write!(text, "; calls {calls}, start {start}, end {end}");
    }
    if let Some(per_call) = per_call_ns {
        let _ = write!(text, "; {} per call", duration(per_call));
    }
    if let Some(share) = share {
        let _ = write!(text, "; {} of the ranks' time", percent(share));
    }
    if let (1.., Some(share)) = (own.polling_ns, share) {
        let polling = duration(own.polling_ns as f64);
        let share = share * (agent_ns.saturating_sub(own.polling_ns) as f64 / agent_ns.max(1) as f64);
        let _ = write!(
            text,
            " ({polling} of it in polls that found nothing, which nobody waits for, else {})",
            percent(share)
        );
    }
    if let Some(most) = &own.largest {
        let before = if share.is_some() { "," } else { ";" };
        let share = percent(most.share);
        let _ = write!(
            text,
            "{before} at most {share} of a window's (rank {}, window {})",
            most.rank, most.window
        );
    }
    format!("{text}; self-measured")
}

fn next(out: &mut Page, trace: &Trace, run: &Path, findings: &[Finding]) {
    // The rank with the most to show.
    let rank = trace.ranks.iter().max_by_key(|rank| (rank.times.len(), std::cmp::Reverse(rank.process.rank)));
    let rank = rank.map_or(0, |rank| rank.process.rank);
    // Quoted for a shell and never cut: part of a path is of no use.
    let path = run.display().to_string();
    let word = shell_word(&path);
    let run = if word == path { "$RUN" } else { "\"$RUN\"" };
    let _ = writeln!(out, "  {:<20}RUN={word}", "next");
    let decode = format!("ampl decode {run} --rank {rank}");
    let first = findings.first().map(|finding| command(finding.next, run));
    let width = first.iter().map(String::len).max().unwrap_or(0).max(decode.len());
    let first = first.map(|command| (command, "more about the first finding"));
    for (command, meaning) in first.into_iter().chain([
        (format!("ampl report {run}"), "all of it as a page for a browser"),
        (format!("ampl estimate {run}"), "every mean with its interval"),
        (format!("ampl decisions {run}"), "who was sampled, from when on, and why"),
        (decode, "the calls of one rank"),
    ]) {
        field(out, "", &format!("{command:<width$}   {meaning}"));
    }
}

#[cfg(test)]
mod folded;
#[cfg(test)]
mod part_measured;
#[cfg(test)]
mod tests;
