//! Calls that were only counted: their number is known, and their time is not.

use std::collections::BTreeMap;

use ampl_core::mpi::FUNCTIONS;
use ampl_trace::Trace;

use super::cost::Purpose;
use super::finding::{Basis, Evidence, Finding, Next, Place};

/// Fewest polls of a rank in a second that are a finding without their time.
const MANY: f64 = 10_000.0;

/// Number of calls of each rank that ask whether something has arrived.
pub fn polls(trace: &Trace) -> BTreeMap<u32, u64> {
    let of = |calls: &[(u16, u64)]| calls.iter().filter(|call| is_poll(call.0)).map(|call| call.1).sum();
    trace.ranks.iter().map(|rank| (rank.process.rank, of(&rank.process.calls))).collect()
}

fn is_poll(function: u16) -> bool {
    Purpose::of(function) == Some(Purpose::Polls)
}

/// Polls that are very many, of a run of which too little was measured to know their time.
pub fn of(trace: &Trace) -> Option<Finding> {
    let calls: u64 = polls(trace).values().sum();
    let elapsed_ns: f64 = trace.ranks.iter().map(|rank| rank.process.elapsed_ns as f64).sum();
    let per_second = calls as f64 / (elapsed_ns / 1e9);
    if elapsed_ns <= 0.0 || per_second < MANY {
        return None;
    }
    let mut functions: BTreeMap<u16, u64> = BTreeMap::new();
    let made = trace.ranks.iter().flat_map(|rank| &rank.process.calls);
    made.filter(|call| is_poll(call.0)).for_each(|&(function, count)| {
        *functions.entry(function).or_default() += count;
    });
    let most = functions.into_iter().max_by_key(|&(_, count)| count)?.0;
    let function = FUNCTIONS.get(usize::from(most))?.name;
    let mut finding = Finding::new(Evidence::Counted { calls, per_second }, Basis::Recorded, Next::Calls);
    finding.place = Some(Place { function, site: None, within: None });
    Some(finding)
}
