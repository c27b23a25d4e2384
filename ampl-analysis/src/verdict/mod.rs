//! Verdict on a run: at most five findings, those that cost most time first.
//!
//! A finding is evidence in numbers: no cause that was not measured, and no repair. One that the data cannot support is
//! not made. Facts that say how far other numbers hold come before all others.

mod balance;
mod calls;
mod cost;
mod counted;
mod course;
mod finding;
mod overlap;
mod senders;
mod steps;
#[cfg(test)]
mod tests;
mod unreturned;
mod waited;

use std::collections::BTreeSet;

use ampl_core::units::{Rank, RankSet};
use ampl_trace::Trace;

use crate::coverage::Extent;
use crate::efficiency::{Row, RunTimes, Shares, rows, run_times};
use crate::phases::{self, Phase};
use crate::processors::Sharing;

pub use finding::{Basis, Detail, Evidence, Finding, Kind, Next, Place, Unranked};
pub use senders::Senders;
pub use steps::InTurn;

/// Most findings of a verdict.
const MOST: usize = 5;
/// Least share of the ranks' time at which ranks are compared, in (0, 1).
const LEAST: f64 = 0.05;
/// Least share of the ranks' time from which waiting, transfer or a phase stands out, in (0, 1).
const NOTABLE: f64 = 0.1;
/// Part of the time in calls that a change explains, from which on it stands before them.
const MOST_OF_IT: f64 = 0.6;
/// Fewest ranks that are compared with each other.
const RANKS: u32 = 4;
/// Fewest windows in which ranks are compared.
const WINDOWS: u64 = 10;

/// Libraries whose work on a device shows as computing: parts of file names.
const DEVICE: &[&str] =
    &["libcuda.", "libcudart.", "libnccl.", "libamdhip64.", "librccl.", "libhsa-runtime64."];

/// Parts of an analysis that findings are made of.
struct Facts<'a> {
    trace: &'a Trace,
    run: RunTimes,
    rows: Vec<Row>,
    phases: Vec<Phase>,
    sharing: Option<Sharing>,
    shares: Option<Shares>,
}

impl Facts<'_> {
    /// The run's row.
    fn of_run(&self) -> Option<&Row> {
        self.rows.first()
    }

    fn basis(&self) -> Basis {
        self.run.basis.into()
    }

    /// True where the system gave the processor to others often: lengths of computing are not the program's.
    fn is_disturbed(&self) -> bool {
        self.sharing.as_ref().is_some_and(|sharing| sharing.disturbed.is_some())
    }

    /// Reason why ranks are not compared; `None` where they are.
    fn unranked(&self) -> Option<Unranked> {
        match (self.trace.run.ranks, self.trace.windows()) {
            (ranks, _) if ranks < RANKS => Some(Unranked::FewRanks(ranks)),
            (_, windows) if windows < WINDOWS => Some(Unranked::FewWindows(windows)),
            _ => None,
        }
    }

    /// Hosts of `ranks`, in alphabetical order.
    fn hosts(&self, ranks: &RankSet) -> Vec<String> {
        let of = ranks.iter().filter_map(|rank| self.trace.rank(rank.0));
        let hosts: BTreeSet<&str> = of.map(|rank| rank.process.host.as_str()).collect();
        hosts.into_iter().map(str::to_owned).collect()
    }
}

/// Findings of `trace`, the most important first; never empty.
pub fn of(trace: &Trace) -> Vec<Finding> {
    let (run, sharing) = (run_times(trace), Sharing::of(trace));
    let mut findings = Vec::new();
    if let Some(sharing) = &sharing {
        findings.push(Finding::shared(sharing));
    }
    let devices = devices(trace);
    if !devices.is_empty() {
        findings.push(Finding::new(Evidence::Device { libraries: devices }, Basis::Recorded, Next::Info));
    }
    findings.extend(unreturned::of(trace));
    let shares = Shares::of(&run.times).filter(|_| run.extent() != Extent::Little);
    let Some(shares) = shares else {
        findings.extend(counted::of(trace).filter(|_| !run.coverage.unseen && run.coverage.of_windows > 0));
        let evidence = Evidence::NotMeasured(run.coverage);
        findings.push(Finding::new(evidence, Basis::Recorded, Next::Info));
        // A server that polls leaves the run's numbers open, and not those of the other programs.
        let facts = Facts { trace, run, rows: Vec::new(), phases: Vec::new(), sharing, shares: None };
        findings.extend(balance::of_programs(&facts));
        return findings;
    };
    let (rows, phases) = (rows(trace), phases::of(trace));
    let facts = Facts { trace, run, rows, phases, sharing, shares: Some(shares) };
    let mut costly = Vec::new();
    costly.extend(balance::of(&facts));
    costly.extend(balance::of_programs(&facts));
    costly.extend(calls::of(&facts));
    costly.extend(course::of(&facts));
    tell_turns_once(&mut costly);
    without_polling_ranks(&facts, &mut costly);
    if costly.is_empty() {
        costly.push(nothing(&facts, shares));
    }
    let of_run = |finding: &&mut Finding| finding.kind() != Kind::BusiestProgram;
    costly.iter_mut().filter(of_run).for_each(|finding| finding.coverage = facts.run.coverage.of_run());
    costly.sort_by(|a, b| b.cost_share.unwrap_or(0.0).total_cmp(&a.cost_share.unwrap_or(0.0)));
    before_waits(&mut costly);
    before_calls(&mut costly);
    before_most(&mut costly);
    before_waiting(&mut costly, facts.sharing.is_some());
    before_ranks_of_phase(&mut costly);
    before_computing(&mut costly);
    findings.extend(costly);
    findings.truncate(MOST);
    findings
}

/// Leaves out turns over windows where turns in each step are told: these are the same.
fn tell_turns_once(findings: &mut Vec<Finding>) {
    let of_steps = |finding: &Finding| {
        matches!(finding.evidence, Evidence::Calls { .. }) && finding.kind() == Kind::Turns
    };
    if findings.iter().any(of_steps) {
        findings.retain(|finding| finding.kind() != Kind::Turns || of_steps(finding));
    }
}

/// Moves ranks that compute more before waiting in the same call: what they cost is a lower bound, as turns within a
/// window count as waiting. Ranks that compute longest in turn wait there for them, too, if these cost half as much.
fn before_waits(findings: &mut [Finding]) {
    let ranks = |finding: &Finding| {
        matches!(finding.kind(), Kind::SlowRank | Kind::SlowHost | Kind::SlowStratum | Kind::MovingImbalance)
    };
    let Some(later) = findings.iter().position(ranks) else { return };
    let cost = |finding: &Finding| finding.cost_share.unwrap_or(0.0);
    let is_wait = |finding: &Finding| match finding.kind() {
        Kind::Waiting | Kind::LateRank | Kind::LateSender => true,
        Kind::Turns => {
            let is_of_calls = matches!(finding.evidence, Evidence::Calls { .. });
            is_of_calls && cost(&findings[later]) >= cost(finding) / 2.0
        }
        _ => false,
    };
    let same = |finding: &Finding| is_wait(finding) && finding.place == findings[later].place;
    if let Some(earlier) = findings[..later].iter().position(same) {
        findings[earlier..=later].rotate_right(1);
    }
}

/// Moves start-up and wind-down before ranks that compute more in these, for the most part: it is the cause.
fn before_ranks_of_phase(findings: &mut [Finding]) {
    let within = |slow: &Finding, phase: &Finding| match (&slow.evidence, &phase.evidence) {
        (Evidence::Slow { phase: Some(own), .. }, Evidence::Phase { windows, .. }) => {
            let both = (own[1].min(windows[1]) + 1).saturating_sub(own[0].max(windows[0]));
            2 * both > own[1] - own[0] + 1
        }
        _ => false,
    };
    let of_phase = |later: usize| findings[..later].iter().position(|slow| within(slow, &findings[later]));
    let pair = (0..findings.len()).find_map(|later| Some((of_phase(later)?, later)));
    if let Some((earlier, later)) = pair {
        findings[earlier..=later].rotate_right(1);
    }
}

/// Moves a change before calls that take the time, if the part of the run behind or before it has most of that: the window
/// says more than the calls.
fn before_calls(findings: &mut [Finding]) {
    let Some(later) = findings.iter().position(|finding| finding.kind() == Kind::Change) else { return };
    let change = findings[later].cost_share.unwrap_or(0.0);
    let is_call = |finding: &Finding| matches!(finding.evidence, Evidence::Calls { .. });
    let most = |finding: &Finding| change >= MOST_OF_IT * finding.cost_share.unwrap_or(1.0);
    let earlier = findings[..later].iter().rposition(|finding| !is_call(finding) || !most(finding));
    findings[earlier.map_or(0, |at| at + 1)..=later].rotate_right(1);
}

/// Moves ranks that poll all the time before the finding that others compute more.
fn before_most(findings: &mut [Finding]) {
    let is_slow = |finding: &Finding| matches!(finding.evidence, Evidence::Slow { .. });
    let is_poll = |finding: &Finding| finding.kind() == Kind::Polling && finding.ranks.is_some();
    let Some(slow) = findings.iter().position(is_slow) else { return };
    if let Some(polls) = findings.iter().position(is_poll).filter(|&polls| polls > slow) {
        findings[slow..=polls].rotate_right(1);
    }
}

/// Moves polls before all others if much time passes between them: the others take it for computing.
fn before_computing(findings: &mut [Finding]) {
    let is_between = |finding: &Finding| {
        let Evidence::Calls { detail: Some(Detail::BetweenPolls(share)), .. } = finding.evidence else {
            return false;
        };
        share >= NOTABLE
    };
    if let Some(polls) = findings.iter().position(is_between) {
        findings[..=polls].rotate_right(1);
    }
}

/// Leaves out ranks that compute more only as long as the time between their polls counts as computing.
fn without_polling_ranks(facts: &Facts<'_>, findings: &mut Vec<Finding>) {
    let between = |finding: &Finding| match finding.evidence {
        Evidence::Calls { detail: Some(Detail::BetweenPolls(share)), .. } => Some(share),
        _ => None,
    };
    let Some(share) = findings.iter().find_map(between) else { return };
    let polls = counted::polls(facts.trace);
    let all: f64 = facts.run.times.iter().map(|times| times.of_program()).sum();
    let each = share * all / polls.values().sum::<u64>().max(1) as f64;
    let computes: Vec<(u32, f64)> = facts
        .run
        .times
        .iter()
        .map(|times| {
            let own = polls.get(&times.rank).copied().unwrap_or(0) as f64;
            (times.rank, (times.compute - each * own).max(0.0))
        })
        .collect();
    let mean = |of: &dyn Fn(u32) -> bool| {
        let own: Vec<f64> = computes.iter().filter(|own| of(own.0)).map(|own| own.1).collect();
        own.iter().sum::<f64>() / own.len().max(1) as f64
    };
    findings.retain(|finding| match (&finding.evidence, &finding.ranks) {
        (Evidence::Slow { .. }, Some(ranks)) => {
            mean(&|rank| ranks.contains(Rank(rank))) > calls::ALIKE * mean(&|_| true)
        }
        _ => true,
    });
}

/// Moves calls with a cause before waiting in a collective without one, or for the rank that leaves them last, unless
/// these take far less: all wait there for what the ranks did before. Where ranks share processors they wait for these,
/// too: any cause, and ranks that compute more, stand before such waiting.
fn before_waiting(findings: &mut [Finding], are_shared: bool) {
    let is_waiting = |finding: &Finding| matches!(finding.kind(), Kind::Waiting | Kind::LateRank);
    let cost = |finding: &Finding| finding.cost_share.unwrap_or(0.0);
    let Some(first) = findings.iter().position(is_waiting) else { return };
    let half = cost(&findings[first]) / 2.0;
    let has_cause = |finding: &Finding| match finding.kind() {
        Kind::Pipeline | Kind::LateSender | Kind::OneSided | Kind::Files => {
            are_shared || cost(finding) >= half
        }
        Kind::SlowRank | Kind::SlowHost | Kind::SlowStratum | Kind::MovingImbalance => are_shared,
        Kind::Turns => cost(finding) >= half,
        _ => false,
    };
    if let Some(later) = findings[first..].iter().position(has_cause) {
        findings[first..=first + later].rotate_right(1);
    }
}

/// Finding of a run in which no cause takes enough time to be named.
fn nothing(facts: &Facts<'_>, shares: Shares) -> Finding {
    let lost = facts.of_run().and_then(|row| row.lost).filter(|lost| lost.run_ns > 0.0);
    let of_run = |ns: f64, run_ns: f64| (ns / run_ns).clamp(0.0, 1.0);
    let evidence = Evidence::Nothing {
        parallel: shares.parallel,
        imbalance: lost.map(|lost| of_run(lost.imbalance_ns, lost.run_ns)),
        mpi: lost.map(|lost| of_run(lost.mpi_ns, lost.run_ns)),
        unranked: facts.unranked(),
    };
    Finding::new(evidence, facts.basis(), Next::Efficiency)
}

/// File names of mapped libraries whose work on a device counts as computing.
fn devices(trace: &Trace) -> Vec<String> {
    let libraries = trace.run.metadata.libraries.iter().flatten();
    let names = libraries.filter_map(|library| library.path.rsplit('/').next());
    let names = names.filter(|name| DEVICE.iter().any(|part| name.starts_with(part)));
    names.map(str::to_owned).collect()
}
