//! Ranks that compute more than others.

use ampl_core::units::{Rank, RankSet};
use ampl_reader::directory;

use super::finding::{Basis, Evidence, Finding, Kind, Next, Unranked};
use super::{Facts, LEAST, NOTABLE};
use crate::efficiency::{Bound, Course, Imbalance, OfProgram, busiest, by_program, sleeps};
use crate::waits::{Between, between_programs};

/// Share of another program's time that it waits for a program, from which on that one is no server that idles.
const AWAITED: f64 = 0.01;
/// Share of the windows in which ranks compute more than the mean throughout, in (0, 1).
const MOSTLY: f64 = 0.6;
/// Correlation of compute time in successive windows from which on the program moves the imbalance, though ranks lose
/// their processors: the system gives and takes them without regard to the window before.
const FOLLOWS: f64 = 0.4;
/// Greatest compute time of a window over its mean from which on the same holds; and from which on imbalance that moves
/// is the program's where ranks share processors, and may begin to compute late.
const CLEAR: f64 = 1.3;
/// Ranks that make a stratum at least.
const STRATUM: u64 = 3;
/// Gap between a stratum and all others, over the difference of their means, in (0, 1).
const GAP: f64 = 0.5;

/// The program that computes most, in a job of several; one that idles is never named.
pub fn of_programs(facts: &Facts<'_>) -> Option<Finding> {
    let mut rows = by_program(facts.trace);
    // One that sleeps may be slow or idle: others wait for a slow one.
    let mut between = None;
    while let Some(first) = busiest(&rows).filter(|first| sleeps(facts.trace, first, &facts.run.times)) {
        let between = between.get_or_insert_with(|| between_programs(facts.trace));
        let is_for = |of: &Between| of.causing == first.program && of.waiting != first.program;
        if between.iter().any(|of| is_for(of) && of.share >= AWAITED) {
            break;
        }
        let idle = first.program.clone();
        rows.retain(|row| row.program != idle);
    }
    let first = busiest(&rows)?;
    let share = |row: &OfProgram| Some((row.program.clone(), row.communication?));
    let others = rows.iter().filter(|row| *row != first).filter_map(share).collect();
    let ranks = RankSet::parse(&first.ranks).ok()?;
    let evidence = Evidence::Programs { most: share(first)?, others };
    let hosts = facts.hosts(&ranks);
    let coverage = first.coverage;
    let finding = Finding::new(evidence, facts.basis(), Next::Efficiency);
    Some(Finding { ranks: Some(ranks), hosts, coverage, ..finding })
}

/// The imbalance of the run, if it costs enough.
pub fn of(facts: &Facts<'_>) -> Vec<Finding> {
    let Some(row) = facts.of_run() else { return Vec::new() };
    let (Some(lost), Some(found)) = (row.lost, row.imbalance.as_ref()) else { return Vec::new() };
    let cost = lost.imbalance_ns / lost.run_ns;
    if cost < LEAST {
        return Vec::new();
    }
    if let Some(why) = facts.unranked() {
        let over_mean = found.over_mean.max(found.most_over_mean);
        let evidence = Evidence::Unequal { over_mean, why, bound: lost.bound };
        let finding = Finding::new(evidence, facts.basis(), Next::Efficiency).costing(cost);
        return if cost >= NOTABLE { vec![finding] } else { Vec::new() };
    }
    let moves = matches!(found.course, Course::Drift | Course::Turns);
    let lasting = if moves { lasting(facts, found, lost.run_ns) } else { cost };
    let mut findings = Vec::new();
    // A rank that the system gives the processor late each time seems to compute more, too.
    let least = if facts.sharing.is_some() { NOTABLE } else { LEAST };
    if lasting >= least {
        findings.push(slow(facts, found, lost.bound).costing(lasting));
    }
    // On a disturbed machine the system may decide who computes longest in a window.
    let rest = cost - lasting;
    let is_clear = found.most_over_mean >= CLEAR;
    let follows = found.course == Course::Drift && found.correlation.is_some_and(|of| of >= FOLLOWS);
    let is_its_own = match (facts.is_disturbed(), &facts.sharing) {
        (true, _) => is_clear && follows,
        (false, Some(_)) => is_clear,
        (false, None) => true,
    };
    if moves && is_its_own && rest >= LEAST {
        findings.push(moving(facts, found, lost.bound).costing(rest));
    } else if moves && facts.is_disturbed() && rest >= NOTABLE {
        let why = Unranked::Disturbed;
        let evidence = Evidence::Unequal { over_mean: found.most_over_mean, why, bound: lost.bound };
        findings.push(Finding::new(evidence, facts.basis(), Next::Efficiency).costing(rest));
    }
    let waited = super::calls::most_waited(facts, cost);
    for finding in &mut findings {
        // A call that takes less is not the one that they wait in.
        let least = finding.cost_share.unwrap_or(0.0) / 2.0;
        finding.place = waited.as_ref().filter(|(_, share)| *share >= least).map(|(place, _)| place.clone());
    }
    findings
}

/// Share of the run that imbalance of the whole run takes, where most of it moves; 0 where its ranks do not compute more
/// in most windows.
fn lasting(facts: &Facts<'_>, found: &Imbalance, run_ns: f64) -> f64 {
    if (found.windows as f64) < MOSTLY * found.of_windows as f64 {
        return 0.0;
    }
    let times = || facts.run.times.iter().map(|times| times.compute);
    let mean = times().sum::<f64>() / facts.run.times.len().max(1) as f64;
    (times().fold(0.0, f64::max) - mean) / run_ns
}

/// Mean compute time of `ranks` over that of all.
fn over_mean(facts: &Facts<'_>, ranks: &RankSet) -> f64 {
    let mean = |of: &dyn Fn(u32) -> bool| {
        let own: Vec<f64> =
            facts.run.times.iter().filter(|times| of(times.rank)).map(|times| times.compute).collect();
        own.iter().sum::<f64>() / own.len().max(1) as f64
    };
    mean(&|rank| ranks.contains(Rank(rank))) / mean(&|_| true)
}

fn slow(facts: &Facts<'_>, found: &Imbalance, bound: Bound) -> Finding {
    let of_host = found.host.is_some();
    let group = group(facts, &found.ranks);
    let kind = match of_host {
        true => Kind::SlowHost,
        false if group.is_some() || is_stratum(facts, &found.ranks) => Kind::SlowStratum,
        false => Kind::SlowRank,
    };
    let next = if kind == Kind::SlowStratum { Next::Strata } else { Next::Efficiency };
    let most = 2 * found.ranks.len() > u64::from(facts.trace.run.ranks);
    let evidence = Evidence::Slow {
        kind,
        group,
        over_mean: match found.course {
            Course::Drift | Course::Turns => over_mean(facts, &found.ranks),
            _ => found.over_mean,
        },
        phase: found.phase,
        recurs: found.course == Course::Recurrent,
        bound,
        windows: [found.windows, found.of_windows],
        least: most.then(|| least(facts)).flatten(),
    };
    let basis = if found.of_windows == 0 { Basis::Totals } else { facts.basis() };
    let hosts = facts.hosts(&found.ranks);
    Finding { ranks: Some(found.ranks.clone()), hosts, ..Finding::new(evidence, basis, next) }
}

fn moving(facts: &Facts<'_>, found: &Imbalance, bound: Bound) -> Finding {
    let evidence = Evidence::Moving {
        is_slow: found.course == Course::Drift,
        in_window: found.most_over_mean,
        in_run: found.over_mean,
        windows: found.of_windows,
        bound,
    };
    Finding::new(evidence, facts.basis(), Next::Efficiency)
}

/// The rank that computes least, and its compute time over the mean of all.
fn least(facts: &Facts<'_>) -> Option<(u32, f64)> {
    let times = &facts.run.times;
    let mean = times.iter().map(|times| times.compute).sum::<f64>() / times.len().max(1) as f64;
    let least = times.iter().min_by(|a, b| a.compute.total_cmp(&b.compute))?;
    (mean > 0.0).then(|| (least.rank, least.compute / mean))
}

/// The configured group that has these ranks and no others, where there are several groups.
fn group(facts: &Facts<'_>, ranks: &RankSet) -> Option<String> {
    let plan = directory::plan(&facts.trace.run)?;
    let groups = plan.groups.iter().filter(|_| plan.groups.len() > 1);
    let mut same = groups.filter(|group| group.members == *ranks);
    same.next().map(|group| group.name.clone())
}

/// True where the compute times of at least three ranks lie apart from those of all others.
fn is_stratum(facts: &Facts<'_>, ranks: &RankSet) -> bool {
    let (inner, outer): (Vec<f64>, Vec<f64>) = {
        let parts = facts.run.times.iter().partition::<Vec<_>, _>(|times| ranks.contains(Rank(times.rank)));
        let compute = |times: Vec<&crate::window_times::Times>| times.iter().map(|of| of.compute).collect();
        (compute(parts.0), compute(parts.1))
    };
    let mean = |times: &[f64]| times.iter().sum::<f64>() / times.len().max(1) as f64;
    let gap = inner.iter().copied().fold(f64::MAX, f64::min) - outer.iter().copied().fold(0.0, f64::max);
    let apart = gap >= GAP * (mean(&inner) - mean(&outer)) && gap > 0.0;
    inner.len() as u64 >= STRATUM && outer.len() as u64 >= STRATUM && apart
}
