//! Ranks or hosts that others wait for, where some stand out.

use std::collections::{BTreeMap, BTreeSet};

use ampl_core::units::RankSet;
use ampl_reader::sites::Symbols;
use ampl_trace::Trace;
use rustc_hash::FxHashMap;

use super::compute::Compute;
use super::kept::{Cause, Group, Observed};
use super::places::name;
use super::{Basis, Bound, Kind, Needed, Party, Row, WORTH};

/// Share of the waits at a site that ranks must cause to stand out, in (0, 1).
const MOST: f64 = 0.6;
/// Share of the delays, less those by which ranks come first, over both, from which a rank is late as a rule.
const AS_A_RULE: f64 = 0.5;
/// Probability that chance would make ranks the last so often, below which they stand out.
const BY_CHANCE: f64 = 1e-5;
/// Instances up to which ranks stand out if they cost [`MUCH`] and are last in each, or are so by far.
const FEW: u64 = 16;
/// Mean wait of their instances over that of the others, from which on ranks are late by far.
const BY_FAR: f64 = 10.0;
/// Share of its time that some rank waits from which ranks stand out by few instances, in (0, 1).
const MUCH: f64 = 0.2;
/// The same from which ranks stand out whether they compute more than others or not.
const CERTAIN: f64 = 0.15;
/// Share of a site's time that must be kept for waits there to be known without the census, in (0, 1).
const ALMOST_ALL: f64 = 0.9;

/// Hosts of ranks.
#[derive(Debug)]
pub struct Hosts<'a> {
    hosts: FxHashMap<u32, &'a str>,
    ranks: BTreeMap<&'a str, BTreeSet<u32>>,
}

impl<'a> Hosts<'a> {
    /// Hosts of the ranks of `trace`.
    pub fn of(trace: &'a Trace) -> Self {
        let mut ranks: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
        let processes = || trace.ranks.iter().map(|rank| &rank.process).filter(|own| !own.host.is_empty());
        for process in processes() {
            ranks.entry(&process.host).or_default().insert(process.rank);
        }
        Self { hosts: processes().map(|own| (own.rank, &own.host[..])).collect(), ranks }
    }

    /// The ranks, and their host where all of them are on one.
    pub fn party(&self, ranks: impl IntoIterator<Item = u32>) -> Party {
        let ranks: BTreeSet<u32> = ranks.into_iter().collect();
        let hosts: BTreeSet<Option<&str>> = ranks.iter().map(|rank| self.hosts.get(rank).copied()).collect();
        let host = match hosts.first() {
            Some(Some(host)) if hosts.len() == 1 => Some((*host).to_owned()),
            _ => None,
        };
        Party { ranks: rank_set(&ranks), host }
    }

    /// True where all of `ranks` are on one of several hosts.
    fn are_of_one(&self, ranks: &BTreeSet<u32>) -> bool {
        self.ranks.len() > 1 && self.ranks.values().any(|own| ranks.is_subset(own))
    }

    /// The ranks of a host that has all of `ranks` and is slow: more than half of it are among these, or all of it
    /// compute more than others. These alone otherwise.
    fn whole_host(&self, ranks: &BTreeSet<u32>, compute: &Compute) -> BTreeSet<u32> {
        let Some(own) = self.ranks.values().find(|own| ranks.is_subset(own)) else { return ranks.clone() };
        let most = ranks.len() > 1 && 2 * ranks.len() > own.len();
        let slow = own.len() > 1 && own.iter().all(|&rank| compute.is_slow(rank));
        if self.ranks.len() > 1 && (most || slow) { own.clone() } else { ranks.clone() }
    }
}

fn rank_set(ranks: &BTreeSet<u32>) -> Option<RankSet> {
    Some(ranks.iter().copied().collect()).filter(|set: &RankSet| !set.is_empty())
}

/// Time of the longest rank, nanoseconds, at least 1.
pub fn elapsed(trace: &Trace) -> f64 {
    let of = |rank: &ampl_trace::RankTrace| {
        let windows = rank.windows.entries().first().zip(rank.windows.entries().last());
        let span =
            windows.map_or(0, |(first, last)| last.end_ns.saturating_sub(first.start_ns).max(0) as u64);
        rank.process.elapsed_ns.max(span)
    };
    trace.ranks.iter().map(of).max().unwrap_or(0).max(1) as f64
}

/// Probability that of `n` trials with probability `p` at least `k` succeed.
fn at_least(k: u64, n: u64, p: f64) -> f64 {
    if k == 0 || p >= 1.0 {
        return 1.0;
    }
    if p <= 0.0 {
        return 0.0;
    }
    let mut log = 0.0f64;
    let mut sum = 0.0;
    // Terms from k on, each from the one before.
    for i in 0..k {
        log += ((n - i) as f64 / (i + 1) as f64).ln();
    }
    log += k as f64 * p.ln() + (n - k) as f64 * (1.0 - p).ln();
    for i in k..=n {
        sum += log.exp();
        if i < n {
            log += ((n - i) as f64 / (i + 1) as f64).ln() + (p / (1.0 - p)).ln();
        }
    }
    sum.min(1.0)
}

/// The ranks of a group that stand out as causes; empty where none do.
fn standing_out(
    kind: Kind,
    group: &Group,
    ranks: u32,
    all_ranks: (&Hosts<'_>, &Compute, f64),
) -> BTreeSet<u32> {
    let (hosts, compute, elapsed) = all_ranks;
    let all: u64 = group.causes.values().map(|cause| cause.ns).sum::<u64>().saturating_add(group.unknown_ns);
    let most = group.causes.values().map(|cause| cause.ns).max().unwrap_or(0);
    if most == 0 {
        return BTreeSet::new();
    }
    let near = |(&rank, cause): (&u32, &Cause)| (2 * cause.ns >= most).then_some(rank);
    let near: BTreeSet<u32> = group.causes.iter().filter_map(near).collect();
    let set = hosts.whole_host(&near, compute);
    let of_set = || group.causes.iter().filter(|(rank, _)| set.contains(rank)).map(|(_, cause)| cause);
    let sum = |of: fn(&Cause) -> u64| -> u64 { of_set().map(of).sum() };
    // Of most ranks none stands out where all of them wait for each other, unless a host does.
    let wait = waiting(of_set());
    let is_most = 2 * set.len() as u64 > ranks.into() && set.iter().all(|rank| wait.contains_key(rank));
    if is_most && !hosts.are_of_one(&set) || (sum(|cause| cause.ns) as f64) < MOST * all as f64 {
        return BTreeSet::new();
    }
    let longest = wait.values().copied().max().unwrap_or(0) as f64 / elapsed;
    let late = match kind {
        // Noise makes some rank the last as well, and somewhat.
        _ if longest < CERTAIN && !set.iter().any(|&rank| compute.is_slow(rank)) => false,
        Kind::LastToArrive => {
            let (n, k) = (group.instances, sum(|cause| cause.instances).min(group.instances));
            let share = set.len() as f64 / f64::from(ranks.max(1));
            let (own, all) = (sum(|cause| cause.ns) as f64, all as f64);
            let by_far = own * (n - k) as f64 >= BY_FAR * (all - own).max(0.0) * k as f64;
            let few = k <= FEW && longest >= MUCH && (k == n || k > 0 && by_far);
            2 * set.len() <= ranks as usize && (few || at_least(k, n, share) <= BY_CHANCE)
        }
        _ => {
            let (late, early) = (sum(|cause| cause.late_ns) as f64, sum(|cause| cause.early_ns) as f64);
            let often = 2 * sum(|cause| cause.instances) >= sum(|cause| cause.met);
            // Ranks that do not wait may be ahead for long: much waiting tells by itself.
            let much = longest >= MUCH;
            (often && much) || ((often || much) && late - early >= AS_A_RULE * (late + early))
        }
    };
    if late { set } else { BTreeSet::new() }
}

/// Sum of causes by waiting rank.
fn waiting<'a>(causes: impl Iterator<Item = &'a Cause>) -> BTreeMap<u32, u64> {
    let mut sums: BTreeMap<u32, u64> = BTreeMap::new();
    for cause in causes {
        for (&rank, &ns) in &cause.waiting {
            *sums.entry(rank).or_default() += ns;
        }
    }
    sums
}

/// Ranks that wait much: a tenth of the longest, or longer.
fn much(waiting: &BTreeMap<u32, u64>) -> Vec<u32> {
    let most = waiting.values().copied().max().unwrap_or(0);
    waiting.iter().filter(|(_, ns)| **ns * 10 >= most).map(|(&rank, _)| rank).collect()
}

/// Rows of kept times, and of the census where more of a site's time is not kept.
pub fn rows(
    trace: &Trace,
    ranks: u32,
    observed: &Observed,
    census: Vec<Row>,
    symbols: &mut Symbols,
) -> Vec<Row> {
    let (hosts, compute, elapsed) = (Hosts::of(trace), Compute::of(trace), elapsed(trace));
    let mut totals: FxHashMap<(u16, &str, u64), u64> = FxHashMap::default();
    for known in trace.totals.known() {
        let (module, offset) = known.path.first().copied().unwrap_or(("", 0));
        *totals.entry((known.function, module, offset)).or_default() += known.total.time_ns;
    }
    let mut rows: Vec<Row> = Vec::new();
    // Sites whose times are kept almost all.
    let mut settled: BTreeSet<(Option<String>, &str)> = BTreeSet::new();
    for (&(place, kind), group) in &observed.groups {
        let (function, module, offset) = &observed.places[place];
        let total = totals.get(&(function.0, &module[..], *offset)).copied().unwrap_or(0) as f64;
        let kept = observed.kept_ns.get(&place).copied().unwrap_or(0) as f64;
        let site = name(&observed.places[place], symbols);
        let whole = kept >= ALMOST_ALL * total;
        if whole {
            settled.insert((site.clone(), function.name()));
        }
        let same = |row: &&Row| (&row.site, row.kind, row.function) == (&site, kind, function.name());
        if !whole && census.iter().any(|row| same(&row) && row.causing.ranks.is_some()) {
            continue;
        }
        let set = standing_out(kind, group, ranks, (&hosts, &compute, elapsed));
        let named = || group.causes.iter().filter(|(rank, _)| set.contains(rank)).map(|(_, cause)| cause);
        let others = || group.causes.iter().filter(|(rank, _)| !set.contains(rank)).map(|(_, cause)| cause);
        let clocks = |causes: &mut dyn Iterator<Item = &Cause>| {
            let error = causes.map(|cause| cause.error_ns).max().unwrap_or(0);
            (kind != Kind::LastToArrive).then_some(error)
        };
        let mut row = |causes: Vec<&Cause>, causing: Party, extra: u64| {
            let waiting = waiting(causes.iter().copied());
            let longest = waiting.values().copied().max().unwrap_or(0) as f64;
            let ns = waiting.values().sum::<u64>() + extra;
            let share = longest.max(extra as f64 / f64::from(ranks.max(1))) / elapsed;
            if share < WORTH {
                return;
            }
            let error = clocks(&mut causes.iter().copied());
            let exact = kind != Kind::LastToArrive && error == Some(0);
            let needed = (extra > 0 && causing.ranks.is_none()).then_some(Needed::Times);
            rows.push(Row {
                site: site.clone(),
                kind,
                waiting: hosts.party(much(&waiting)),
                causing,
                instances: causes.iter().map(|cause| cause.instances).sum(),
                ns,
                bound: if exact { Bound::Exact } else { Bound::AtLeast },
                basis: Basis::Trace,
                function: function.name(),
                share,
                clock_error_ns: error,
                needed,
            });
        };
        if !set.is_empty() {
            row(named().collect(), hosts.party(set.iter().copied()), 0);
        }
        row(others().collect(), Party::default(), group.unknown_ns);
    }
    let known = |row: &Row, rows: &[Row]| {
        rows.iter().any(|own| {
            let same = (&own.site, own.kind, own.function) == (&row.site, row.kind, row.function);
            same && (own.causing.ranks.is_some() || row.causing.ranks.is_none())
        })
    };
    for row in census {
        if !known(&row, &rows) && !settled.contains(&(row.site.clone(), row.function)) {
            rows.push(row);
        }
    }
    rows.sort_by(|one, other| (other.ns, &one.site, one.kind).cmp(&(one.ns, &other.site, other.kind)));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chances_are_those_of_the_binomial_distribution() {
        let near = |one: f64, other: f64| (one - other).abs() < 1e-9;
        assert!(near(at_least(0, 5, 0.3), 1.0) && near(at_least(5, 5, 0.5), 1.0 / 32.0));
        assert!(near(at_least(4, 5, 0.5), 6.0 / 32.0) && near(at_least(1, 3, 0.1), 0.271));
        assert!(at_least(40, 40, 0.25) < 1e-20);
    }
}
