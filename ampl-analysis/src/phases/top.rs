//! Calls of a phase by function, and the time in them.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use ampl_core::mpi::Function;
use ampl_trace::Trace;
use serde::Serialize;

use super::activity::{Key, Known};

/// Functions of a phase that are listed.
const MOST: usize = 5;
/// Share of its calls up to which a place is left out.
const LEAST: f64 = 0.1;
/// The same where all of them are at the phase's ends.
const HALF: f64 = 0.5;

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
/// ranks in these, is not known. Empty where calls of some ranks are not known.
pub fn of(trace: &Trace, known: &Known, phase: &Range<usize>, mpi_ns: Option<f64>) -> Vec<Top> {
    if known.ranks < u64::from(trace.run.ranks) {
        return Vec::new();
    }
    let totals: HashMap<Key, u64> = trace
        .totals
        .places()
        .map(|(function, path, total)| {
            let path = path.into_iter().map(|(module, offset)| (module.to_owned(), offset)).collect();
            ((function, path), total.time_ns)
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
        let total = totals.get(key).map(|&ns| ns as f64);
        sum.is_timed &= total.is_some();
        match part < 1.0 {
            true => sum.split_ns += total.unwrap_or(0.0) * part,
            false => sum.own_ns += total.unwrap_or(0.0),
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
