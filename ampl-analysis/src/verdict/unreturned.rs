//! Calls that had not returned when the run ended, or when it was read.

use std::collections::BTreeMap;

use ampl_core::mpi::Function;
use ampl_core::units::RankSet;
use ampl_reader::{Communicators, Symbols};
use ampl_trace::Trace;
use ampl_trace::model::EndBasis;

use super::LEAST;
use super::finding::{Basis, Evidence, Finding, Next, Place};
use crate::in_call::{self, Row};
use crate::stop::Stop;

/// Ranks in calls at one place.
#[derive(Default)]
struct Group {
    ranks: RankSet,
    /// Sum and longest of the times so far, nanoseconds.
    sum_ns: f64,
    longest_ns: i64,
    at_most: bool,
}

/// The calls that most ranks of an unfinished run had not returned from for longest, if they take enough of its time.
pub fn of(trace: &Trace) -> Option<Finding> {
    let share = in_call::unfinished_share(trace).filter(|&share| share >= LEAST)?;
    let end = trace.run.end?;
    let comms = Communicators::of(trace);
    let rows = in_call::rows(trace, &comms, &mut Symbols::default());
    let mut groups: BTreeMap<(&str, Option<&str>), Group> = BTreeMap::new();
    let inside = rows.iter().filter(|row| !row.place.polling);
    for (row, function) in inside.filter_map(|row| Some((row, row.place.function.as_deref()?))) {
        add(groups.entry((function, row.place.site.as_deref())).or_default(), row);
    }
    let ((function, site), group) = groups.into_iter().max_by(|a, b| a.1.sum_ns.total_cmp(&b.1.sum_ns))?;
    let function = Function::by_name(function)?.spec().name;
    let stop = Stop::of(trace, &rows, &comms);
    let ranks = stop.as_ref().map(|stop| stop.ranks().clone());
    let evidence = Evidence::Unreturned {
        waiting: group.ranks,
        longest_ns: group.longest_ns as f64,
        at_most: group.at_most,
        is_now: end.basis == EndBasis::Now,
        of_threads: in_call::threads(trace) > trace.ranks.len(),
        stop,
    };
    let mut finding = Finding::new(evidence, Basis::Recorded, Next::Info).costing(share);
    finding.place = Some(Place { function, site: site.map(str::to_owned), within: None });
    finding.ranks = ranks;
    Some(finding)
}

fn add(group: &mut Group, row: &Row) {
    group.ranks = group.ranks.iter().chain(row.members.iter()).map(|rank| rank.0).collect();
    group.sum_ns += row.for_ns as f64 * row.members.len() as f64;
    group.longest_ns = group.longest_ns.max(row.for_ns);
    group.at_most |= row.at_most;
}
