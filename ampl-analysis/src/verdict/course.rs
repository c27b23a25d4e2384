//! Phases of a run, and changes in its course.

use std::ops::Range;

use ampl_core::units::{Rank, RankSet};
use ampl_trace::RankTrace;

use super::finding::{Basis, Evidence, Finding, Kind, Next};
use super::{Facts, NOTABLE, WINDOWS};
use crate::efficiency::{self, Row};
use crate::phases::{Name, Phase};

/// Fewest windows on either side of a change.
const SIDE: usize = 5;
/// Least difference of the parallel efficiency before and after it.
const STEP: f64 = 0.15;
/// The difference over the standard deviation on either side, at least.
const CLEAR: f64 = 4.0;

/// Share of the run from which a start-up or wind-down may be another loop of the program.
const LONG: f64 = 0.25;
/// Calls of a rank in each of its windows, the mean, from which on it is.
const LOOPS: f64 = 10.0;

/// Findings about the course of the run.
pub fn of(facts: &Facts<'_>) -> Vec<Finding> {
    let mut found: Vec<Finding> = facts.phases.iter().filter_map(|phase| of_phase(facts, phase)).collect();
    found.extend(change(facts));
    found
}

fn of_phase(facts: &Facts<'_>, phase: &Phase) -> Option<Finding> {
    let kind = match phase.phase {
        _ if is_repeated(facts, phase) => return None,
        Name::StartUp => Kind::StartUp,
        Name::WindDown => Kind::WindDown,
        Name::Body => return None,
    };
    let top = phase.top.first().and_then(|top| Some((top.function, top.share?)));
    let (ns, windows, mpi) = (phase.ns, phase.windows, phase.mpi);
    let ended = ended(facts, phase);
    let all = || facts.trace.ranks.iter().map(|rank| rank.process.rank);
    let others = || all().filter(|&rank| !ended.contains(Rank(rank))).collect();
    let ranks = (!ended.is_empty()).then(others);
    let evidence = Evidence::Phase { kind, ns, windows, mpi, top, ended };
    let finding = Finding { ranks, ..Finding::new(evidence, facts.basis(), Next::Efficiency) };
    (phase.share >= NOTABLE).then(|| finding.costing(phase.share))
}

/// Ranks that had come to `MPI_Finalize` when the wind-down began, or hardly later: no window of theirs shows that they
/// wait there for the others.
fn ended(facts: &Facts<'_>, phase: &Phase) -> RankSet {
    let is_over = |rank: &&RankTrace| rank.process.finalized && rank.windows.end() <= phase.windows[0] + 1;
    let ranks = facts.trace.ranks.iter().filter(|_| phase.phase == Name::WindDown).filter(is_over);
    let ended: RankSet = ranks.map(|rank| rank.process.rank).collect();
    // Where all end in the first window it is all of the phase.
    if ended.len() < facts.trace.ranks.len() as u64 { ended } else { RankSet::default() }
}

/// True where a long part calls all the time: the body, or a loop before or behind it.
fn is_repeated(facts: &Facts<'_>, phase: &Phase) -> bool {
    let most = phase.top.iter().map(|top| top.calls).max().unwrap_or(0) as f64;
    let windows = (phase.windows[1] - phase.windows[0] + 1) as f64;
    let each = most / f64::from(facts.trace.run.ranks.max(1));
    phase.phase == Name::Body || phase.share >= LONG && each >= LOOPS * windows
}

/// The windows of the repeated parts.
fn body(facts: &Facts<'_>) -> Range<u64> {
    let parts = || facts.phases.iter().filter(|phase| is_repeated(facts, phase));
    let first = parts().map(|part| part.windows[0]).min().unwrap_or(0);
    let last = parts().map(|part| part.windows[1]).max().unwrap_or(u64::MAX);
    first..last.saturating_add(1)
}

/// The window at which the share that computes changes for good.
fn change(facts: &Facts<'_>) -> Option<Finding> {
    let body = body(facts);
    let is_known = |row: &&Row| {
        let inside = row.window.is_some_and(|window| body.contains(&window));
        // Ranks that have come to their end are in no row: the others alone are another program.
        let all = row.reported == row.population;
        inside && all && row.basis == efficiency::Basis::Census && row.partial != Some(true)
    };
    let known = facts.rows.iter().filter(is_known);
    let known: Vec<(u64, f64)> = known.filter_map(|row| Some((row.window?, row.parallel?))).collect();
    if (known.len() as u64) < WINDOWS {
        return None;
    }
    let values: Vec<f64> = known.iter().map(|&(_, parallel)| parallel).collect();
    let at = split(&values)?;
    let [before, after] = [mean(&values[..at]), mean(&values[at..])];
    // What the worse part lacks against the better one.
    let worse = if before < after { at } else { values.len() - at };
    let cost = (before - after).abs() * worse as f64 / values.len() as f64;
    let window = known[at].0;
    let starts = facts.trace.ranks.iter().flat_map(|rank| &rank.windows);
    let at_ns = starts.filter(|of| of.window == window).map(|of| of.start_ns).min().unwrap_or(0);
    let evidence = Evidence::Change { window, at_ns: at_ns as f64, parallel: [before, after] };
    (cost >= NOTABLE / 2.0).then(|| Finding::new(evidence, Basis::Census, Next::Efficiency).costing(cost))
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn squares(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

/// The place that divides `values` into two parts of different means: the least sum of squares within the parts, if
/// the difference is clear.
pub(super) fn split(values: &[f64]) -> Option<usize> {
    let places = SIDE..values.len().checked_sub(SIDE)? + 1;
    let all: f64 = values.iter().sum();
    let mut first: f64 = values[..SIDE].iter().sum();
    let (mut at, mut most) = (None, -1.0);
    for place in places {
        let (n, rest) = (place as f64, (values.len() - place) as f64);
        // The squares within the parts are fewest where those between them are most.
        let between = n * rest * (first / n - (all - first) / rest).powi(2);
        if between > most {
            (at, most) = (Some(place), between);
        }
        first += values[place];
    }
    let at = at?;
    let (before, after) = values.split_at(at);
    let step = (mean(before) - mean(after)).abs();
    let deviation = ((squares(before) + squares(after)) / values.len() as f64).sqrt();
    (step >= STEP && step >= CLEAR * deviation).then_some(at)
}
