//! Calls of a phase by function, and the time in them.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use ampl_core::mpi::Function;
use ampl_trace::Trace;
use ampl_trace::totals::Total;
use serde::Serialize;

use super::activity::{Key, Known, Place};

/// Functions of a phase that are listed.
const MOST: usize = 5;
/// Share of its calls up to which a place is left out.
const LEAST: f64 = 0.1;
/// The same where all of them are at the phase's ends.
const HALF: f64 = 0.5;
/// Share of a place's time from which it matters that calls may have begun before the phase.
const BEFORE: f64 = 0.1;

/// Data that the time in a function's calls rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TimeBasis {
    /// Totals of places that are called in this phase alone.
    Exact,
    /// Totals of places that are called elsewhere, too: each call counts with the mean of its place.
    Calls,
}

/// The calls of a function in a phase.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Top {
    /// Its name.
    pub function: &'static str,
    /// Number of calls.
    pub calls: u64,
    /// Time in them, nanoseconds; none where not all calls of the phase were timed.
    pub ns: Option<f64>,
    /// `ns` over all time in MPI of the phase.
    pub share: Option<f64>,
    /// Data that `ns` and `share` rest on.
    pub basis: TimeBasis,
}

/// The calls of a function at all places.
#[derive(Clone, Copy, Debug)]
struct Sum {
    calls: u64,
    /// Time at places that call in the phase alone, nanoseconds.
    own_ns: f64,
    /// Time at the others, nanoseconds: their calls in the phase, each with the place's mean.
    split_ns: f64,
    is_timed: bool,
}

impl Default for Sum {
    fn default() -> Self {
        Self { calls: 0, own_ns: 0.0, split_ns: 0.0, is_timed: true }
    }
}

/// Functions with most time in the windows of `phase`, or with most calls where `mpi_ns`, the time in MPI of all
/// ranks in these, is not known. Empty where calls of some ranks are not known. `boundary_ns` is the error of the phase's
/// ends.
pub fn of(
    trace: &Trace,
    known: &Known,
    phase: &Range<usize>,
    mpi_ns: Option<f64>,
    boundary_ns: f64,
) -> Vec<Top> {
    if known.ranks < u64::from(trace.run.ranks) {
        return Vec::new();
    }
    let totals: HashMap<Key, &Total> = trace
        .totals
        .places()
        .map(|(function, path, total)| {
            let path = path.into_iter().map(|(module, offset)| (module.to_owned(), offset)).collect();
            ((function, path), total)
        })
        .collect();
    let mut functions: BTreeMap<u16, Sum> = BTreeMap::new();
    for (key, place) in known.keys.iter().zip(&known.activity.places) {
        let (calls, part) = (place.calls_in(phase.clone()), place.part(phase.clone()));
        // A window at the phase's end has calls of the next one.
        let inner = phase.start + 1..phase.end.saturating_sub(1);
        if part <= LEAST || (!inner.is_empty() && part < HALF && place.calls_in(inner) == 0) {
            continue;
        }
        let sum = functions.entry(place.function).or_default();
        sum.calls = sum.calls.saturating_add(calls);
        let total = totals.get(key).filter(|total| !began_before(place, phase, total, boundary_ns));
        sum.is_timed &= total.is_some();
        let ns = total.map_or(0.0, |total| total.time_ns as f64);
        match part < 1.0 {
            true => sum.split_ns += ns * part,
            false => sum.own_ns += ns,
        }
    }
    // The mean of a place may differ from that of its calls here: their sum is limited to all time in MPI.
    let sum = |part: fn(&Sum) -> f64| functions.values().map(part).sum::<f64>();
    let (own, split) = (sum(|sum| sum.own_ns), sum(|sum| sum.split_ns));
    let scale = mpi_ns.map_or(1.0, |mpi| ((mpi - own) / split).clamp(0.0, 1.0));
    let top = |(&function, sum): (&u16, &Sum)| {
        let ns = mpi_ns.filter(|_| sum.is_timed).map(|_| sum.own_ns + scale * sum.split_ns);
        let share = ns.zip(mpi_ns).filter(|(_, mpi)| *mpi > 0.0).map(|(ns, mpi)| (ns / mpi).min(1.0));
        let basis = if sum.split_ns > 0.0 { TimeBasis::Calls } else { TimeBasis::Exact };
        Top { function: Function(function).name(), calls: sum.calls, ns, share, basis }
    };
    let mut all: Vec<Top> = functions.iter().map(top).collect();
    let order = |top: &Top| (top.ns.unwrap_or(0.0), top.calls);
    all.sort_by(|a, b| order(b).partial_cmp(&order(a)).unwrap_or(std::cmp::Ordering::Equal));
    all.truncate(MOST);
    all
}

/// True where much of the time of `place` may be of the phase before: it has calls that ended in the first window and may
/// have begun long before it.
fn began_before(place: &Place, phase: &Range<usize>, total: &Total, boundary_ns: f64) -> bool {
    let longest = total.longest.ns as f64;
    let first = place.calls_in(phase.start..phase.start + 1) as f64;
    phase.start > 0 && longest > boundary_ns && first * longest >= BEFORE * total.time_ns as f64
}

#[cfg(test)]
mod tests {
    use ampl_trace::totals::Extreme;

    use super::*;

    #[test]
    fn time_of_a_call_that_began_in_the_phase_before_is_not_this_phase_s() {
        let total = |time_ns, ns| Total { time_ns, longest: Extreme { ns, rank: 0 }, ..Total::default() };
        // Four calls of 1.25 s end in the first window of 250 ms, one of 30 ms comes in each.
        let made = Place::new(0, vec![(6, 4)]);
        let each = Place::new(0, (6..15).map(|window| (window, 1)).collect());
        let boundary = 250e6;
        assert!(began_before(&made, &(6..15), &total(5_000_000_000, 1_250_000_000), boundary));
        assert!(!began_before(&each, &(6..15), &total(270_000_000, 30_000_000), boundary));
        // Nothing is before the first phase, and a long call within the body is the body's.
        assert!(!began_before(&made, &(0..15), &total(5_000_000_000, 1_250_000_000), boundary));
        assert!(!began_before(&made, &(2..15), &total(5_000_000_000, 1_250_000_000), boundary));
    }
}
