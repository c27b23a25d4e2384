//! Where MPI time goes.

use std::collections::HashMap;
use std::fmt::Write;

use ampl_core::mpi::FUNCTIONS;
use ampl_trace::{RankTrace, Trace};

use super::title;
use crate::human::{count, cut, digits, duration, percent};
use crate::symbols::Symbols;

const SHOWN: usize = 5;

/// A call site over all ranks.
#[derive(Debug, Default)]
struct Total {
    calls: u64,
    time_ns: f64,
    /// Time of the rank with the most.
    most_ns: f64,
}

/// A function where it is called: module and offset, none for calls beyond the table of sites.
type Key<'a> = (Option<u16>, Option<(&'a str, u64)>);

pub(super) fn write(out: &mut String, trace: &Trace) {
    let totals = totals(trace);
    let all: f64 = totals.values().map(|total| total.time_ns).sum();
    let mut top: Vec<(&Key, &Total)> = totals.iter().collect();
    top.sort_by(|a, b| b.1.time_ns.total_cmp(&a.1.time_ns).then_with(|| a.0.cmp(b.0)));
    if top.is_empty() {
        return;
    }
    let whose = match trace.ranks.len() {
        all if all as u64 == u64::from(trace.run.ranks) => "every rank".into(),
        some => format!("the {some} ranks read"),
    };
    title(out, &format!("Where MPI time goes (exact, ± 0: every call of {whose} is in the totals)"));
    let head = ["function @ call site", "calls", "MPI time", "mean of a call", "rank max/mean"];
    let _ = writeln!(out, "  {:<44}{:>12}{:>10}{:>16}{:>15}", head[0], head[1], head[2], head[3], head[4]);
    let mut symbols = Symbols::default();
    for (&(function, site), total) in top.into_iter().take(SHOWN) {
        let function = function
            .and_then(|index| FUNCTIONS.get(usize::from(index)))
            .map_or("(several)", |spec| spec.name);
        let site = site.map_or("(further sites)".into(), |(module, offset)| symbols.name(module, offset));
        let _ = writeln!(
            out,
            "  {:<44}{:>12}{:>10}{:>16}{:>15}",
            cut(&format!("{function} @ {site}"), 43),
            count(total.calls),
            percent(if all > 0.0 { total.time_ns / all } else { 0.0 }),
            duration(total.time_ns / total.calls.max(1) as f64),
            imbalance(total, trace.ranks.len()),
        );
    }
}

/// Most time of a rank over the mean of all ranks; ranks that never came here count.
fn imbalance(total: &Total, ranks: usize) -> String {
    let mean = total.time_ns / ranks.max(1) as f64;
    if mean > 0.0 { digits(total.most_ns / mean) } else { "-".into() }
}

fn totals(trace: &Trace) -> HashMap<Key<'_>, Total> {
    let mut totals: HashMap<Key<'_>, Total> = HashMap::new();
    for rank in &trace.ranks {
        // Threads of a rank have entries of their own.
        let mut own: HashMap<Key<'_>, f64> = HashMap::new();
        for entry in &rank.aggregates {
            let site = entry.site.map(|site| place(rank, site));
            // The entry that sites beyond the table share knows its latest function only.
            let key = (site.is_some().then_some(entry.function), site);
            let total = totals.entry(key).or_default();
            total.calls += entry.calls;
            total.time_ns += entry.time_ns;
            *own.entry(key).or_default() += entry.time_ns;
        }
        for (key, time_ns) in own {
            let total = totals.entry(key).or_default();
            total.most_ns = total.most_ns.max(time_ns);
        }
    }
    totals
}

fn place(rank: &RankTrace, site: u32) -> (&str, u64) {
    let site = rank.sites.get(site as usize);
    let module = site.and_then(|site| rank.modules.get(site.module as usize));
    (module.map_or("?", String::as_str), site.map_or(0, |site| site.offset))
}
