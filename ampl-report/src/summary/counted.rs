//! Calls that were only counted, because more would have cost too much.

use std::collections::BTreeMap;

use ampl_analysis::counted::is_only_counted;
use ampl_core::mpi::Function;
use ampl_reader::Trace;

use crate::human::count;
use crate::layout::{Page, paragraph};

/// Functions that are named.
const NAMED: usize = 4;

/// Writes their functions, the most frequent first: they are in no table above.
pub(super) fn write(out: &mut Page, trace: &Trace) {
    if !is_only_counted(trace) {
        return;
    }
    let mut measured: BTreeMap<u16, u64> = BTreeMap::new();
    for (function, _, share) in trace.totals.shares() {
        let calls = measured.entry(function).or_default();
        *calls = calls.saturating_add(share.calls);
    }
    let counted = trace.function_calls().into_iter().map(|(function, calls)| {
        (function, calls.saturating_sub(measured.get(&function).copied().unwrap_or(0)), calls)
    });
    // The few calls of a run's beginning and end are counted everywhere.
    let mut counted: Vec<(u16, u64, u64)> =
        counted.filter(|&(_, only, _)| only > u64::from(trace.run.ranks)).collect();
    counted.sort_by_key(|&(function, only, _)| (std::cmp::Reverse(only), function));
    let name = Function::name_of;
    let named: Vec<String> = counted
        .iter()
        .take(NAMED)
        .map(|&(function, only, all)| format!("{} of {} {}", count(only), count(all), name(function)))
        .collect();
    if !named.is_empty() {
        let more = if counted.len() > NAMED { ", …" } else { "" };
        paragraph(out, "only counted", &format!("{}{more}", named.join(", ")));
    }
}
