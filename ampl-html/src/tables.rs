//! Rows of tables, as text.

use std::collections::BTreeSet;

use ampl_analysis::calls::{self, Basis, starts_programs};
use ampl_analysis::coverage::Extent;
use ampl_analysis::efficiency;
use ampl_analysis::efficiency::{RunTimes, Shares};
use ampl_analysis::verdict::{self, Finding};
use ampl_reader::Trace;
use ampl_report::calls::label;
use ampl_report::human::{bytes, count, duration, percent};
use ampl_report::verdict as words;
use serde::Serialize;

/// A finding.
#[derive(Debug, Serialize)]
pub struct Found {
    title: &'static str,
    text: String,
    basis: String,
    /// Command that examines it; none where it is that of a finding before.
    next: Option<String>,
    /// Cost in percent of the ranks' time, for a bar.
    cost: Option<f64>,
    cost_text: Option<String>,
}

/// Findings of the verdict on `trace`, which is in `run`.
pub fn findings(trace: &Trace, run: &str) -> Vec<Found> {
    let mut named = BTreeSet::new();
    let found = |finding: Finding| Found {
        title: words::title(finding.kind()),
        text: words::sentence(&finding),
        basis: words::basis(&finding),
        next: named.insert(words::next(finding.next, run)).then(|| words::next(finding.next, run)),
        cost: finding.cost_share.map(|share| (1e3 * share).round() / 10.0),
        cost_text: finding.cost_share.map(percent),
    };
    verdict::of(trace).into_iter().map(found).collect()
}

/// A call site; numbers for sorting beside their texts.
#[derive(Debug, Serialize)]
pub struct Site {
    name: String,
    callers: String,
    ns: u64,
    time: String,
    share: String,
    calls: u64,
    calls_text: String,
    mean_ns: f64,
    mean: String,
    longest_ns: u64,
    longest: String,
    late: String,
    bytes_number: f64,
    bytes: String,
    basis: &'static str,
}

/// Every call site of `trace`, most time first.
pub fn sites(trace: &Trace) -> Vec<Site> {
    calls::table(trace).rows.iter().map(site).collect()
}

fn site(row: &calls::Row) -> Site {
    let function = row.function.unwrap_or("(further sites)");
    let mean_ns = row.ns as f64 / row.calls.max(1) as f64;
    let late = match (&row.late_ranks[..], row.late_known) {
        ([], true) => "no rank".into(),
        ([], false) => "not known".into(),
        (ranks, _) => ranks.iter().map(|rank| format!("rank {rank}")).collect::<Vec<_>>().join(", "),
    };
    let host = row.max_rank.map_or(String::new(), |rank| format!(" (rank {rank})"));
    let mut callers: Vec<String> = row.path.iter().rev().map(|frame| frame.label().to_owned()).collect();
    if callers.is_empty() {
        callers = row.callers.clone().unwrap_or_default();
    }
    // What starts every program says nothing of this one.
    let start = callers.iter().position(|name| label::is_start(name) || starts_programs(name));
    callers.truncate(start.unwrap_or(callers.len()));
    Site {
        name: row.site.as_ref().map_or(function.to_owned(), |site| format!("{function} @ {site}")),
        callers: callers.join(" < "),
        ns: row.ns,
        time: if row.ns > 0 { duration(row.ns as f64) } else { "not timed".into() },
        share: match row.ns {
            0 => "-".into(),
            _ => row.share.map_or("not known".into(), percent),
        },
        calls: row.calls,
        calls_text: count(row.calls),
        mean_ns,
        mean: if row.ns > 0 { duration(mean_ns) } else { "-".into() },
        longest_ns: row.max_ns.unwrap_or(0),
        longest: row.max_ns.map_or("-".into(), |ns| duration(ns as f64) + &host),
        late,
        bytes_number: row.bytes.mean.unwrap_or(-1.0),
        bytes: row.bytes.mean.map_or("-".into(), bytes),
        basis: match row.basis {
            Basis::Exact | Basis::Totals => "all calls",
            Basis::Measured => "measured calls",
        },
    }
}

/// One of the efficiencies.
#[derive(Debug, Serialize)]
pub struct Factor {
    id: &'static str,
    name: &'static str,
    value: String,
    meaning: &'static str,
    worst: String,
}

/// The efficiencies of the run: parallel, then its two factors.
pub fn tree(row: Option<&efficiency::Row>, run: &RunTimes) -> Vec<Factor> {
    let Some(row) = row else { return Vec::new() };
    let bounds = row.bounds.filter(|_| run.extent() == Extent::Little);
    let value = |known: Option<f64>, bounds: Option<[f64; 2]>| match (known, bounds) {
        (Some(share), _) => percent(share),
        (None, Some([low, high])) => format!("not known: between {} and {}", percent(low), percent(high)),
        (None, None) => "not known".into(),
    };
    let rank = row
        .slowest
        .as_ref()
        .map_or(String::new(), |slowest| format!("rank {} on {} computes most", slowest.rank, slowest.host));
    let host = row
        .slowest_host
        .as_ref()
        .filter(|host| host.ranks < row.reported)
        .map_or(String::new(), |host| format!("; of hosts {}", host.host));
    let least = run.times.iter().max_by(|a, b| a.mpi.total_cmp(&b.mpi));
    let longest = least.map_or(String::new(), |times| {
        format!("rank {} is in MPI longest, {}", times.rank, duration(times.mpi))
    });
    let mpi = Shares::of(&run.times).filter(|_| run.extent() != Extent::Little);
    vec![
        Factor {
            id: "parallel",
            name: "parallel efficiency",
            value: value(row.parallel, bounds.map(|of| of.parallel)),
            meaning: "share of the ranks' time that computes; the product of the next two",
            worst: String::new(),
        },
        Factor {
            id: "balance",
            name: "load balance",
            value: value(row.load_balance, bounds.map(|of| of.load_balance)),
            meaning: "mean compute time of the ranks / greatest",
            worst: rank + &host,
        },
        Factor {
            id: "communication",
            name: "communication efficiency",
            value: value(row.communication, bounds.map(|of| of.communication)),
            meaning: "greatest compute time of a rank / run time",
            worst: String::new(),
        },
        Factor {
            id: "mpi",
            name: "time in MPI",
            value: value(mpi.map(|shares| shares.mpi), bounds.map(|of| of.mpi)),
            meaning: "share of the ranks' time: waiting and transfer together",
            worst: longest,
        },
    ]
}

/// A rank, for readers without scripts.
#[derive(Debug, Serialize)]
pub struct RankRow {
    rank: u32,
    host: String,
    compute: String,
    mpi: String,
}

/// Ranks of a table, at most `most`.
pub fn ranks(trace: &Trace, run: &RunTimes, most: usize) -> Vec<RankRow> {
    let row = |times: &ampl_analysis::window_times::Times| RankRow {
        rank: times.rank,
        host: trace.rank(times.rank).map_or("?".into(), |rank| rank.process.host.clone()),
        compute: duration(times.compute),
        mpi: duration(times.mpi),
    };
    run.times.iter().take(most).map(row).collect()
}

/// A window, for readers without scripts.
#[derive(Debug, Serialize)]
pub struct WindowRow {
    window: u64,
    parallel: String,
    balance: String,
    communication: String,
    slowest: String,
}

/// Windows of a table, at most `most`.
pub fn windows(rows: &[efficiency::Row], most: usize) -> Vec<WindowRow> {
    let text = |share: Option<f64>| share.map_or("not known".into(), percent);
    let row = |row: &efficiency::Row| WindowRow {
        window: row.window.unwrap_or_default(),
        parallel: text(row.parallel),
        balance: text(row.load_balance),
        communication: text(row.communication),
        slowest: row.slowest.as_ref().map_or("-".into(), |of| format!("{} on {}", of.rank, of.host)),
    };
    rows.iter().filter(|row| row.window.is_some()).take(most).map(row).collect()
}
