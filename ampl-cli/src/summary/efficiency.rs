//! POP efficiencies of the run, and the share of MPI.
//!
//! # Source
//! POP standard metrics for parallel performance analysis: load balance = mean/max of compute time over ranks,
//! communication efficiency = max compute time / run time, parallel efficiency = their product.

use ampl_core::config::{Quantity, Summaries};
use ampl_core::plan::Plan;
use ampl_core::stats::Basis;
use ampl_trace::{RankTrace, Trace};

use super::{field, title};
use crate::estimate::{Row, run_rows};
use crate::human::{digits, percent};

/// One rank's time, nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Times {
    rank: u32,
    wall: f64,
    mpi: f64,
    compute: f64,
}

/// The three efficiencies and what they rest on.
#[derive(Debug)]
struct Efficiency {
    parallel: f64,
    load_balance: f64,
    communication: f64,
    mpi_share: f64,
    slowest: u32,
}

pub(super) fn write(out: &mut String, trace: &Trace, plan: Option<&Plan>) {
    let sampled = plan.is_some_and(|plan| plan.config.sampling.summaries == Summaries::Sampled);
    let read = trace.ranks.len() as u64;
    let whose = if read == u64::from(trace.run.ranks) {
        "all ranks".into()
    } else {
        format!("the {read} ranks read")
    };
    let (times, basis): (Vec<Times>, String) = if sampled {
        // Window summaries are the sample's only, but every rank totals its call sites.
        (trace.ranks.iter().map(from_totals).collect(), format!("exact: call totals of {whose}"))
    } else {
        (trace.ranks.iter().map(from_windows).collect(), format!("exact: census of {whose} in every window"))
    };
    title(out, &format!("Efficiency ({basis})"));
    let Some(efficiency) = Efficiency::of(&times) else {
        field(out, "parallel", "not known: no time was measured");
        return;
    };
    let host = trace.rank(efficiency.slowest).map_or("?", |rank| &rank.process.host);
    let line = |share: f64, meaning: &str| format!("{:<9} {meaning}", percent(share));
    field(
        out,
        "parallel",
        &line(efficiency.parallel, "of the ranks' time computes: the product of the next two"),
    );
    let busiest = format!("mean/max of compute time; rank {} on {host} has most", efficiency.slowest);
    field(out, "load balance", &line(efficiency.load_balance, &busiest));
    field(out, "communication", &line(efficiency.communication, "most compute time of a rank / run time"));
    let alone = plan.and_then(|plan| from_sample(trace, plan, &times));
    let alone = alone.map_or(String::new(), |text| format!("; {text}"));
    field(out, "time in MPI", &line(efficiency.mpi_share, &format!("of all time{alone}")));
}

impl Efficiency {
    /// Of ranks with these times; `None` where none were measured.
    fn of(times: &[Times]) -> Option<Self> {
        let most = times.iter().copied().reduce(|a, b| if b.compute > a.compute { b } else { a })?;
        let runtime = times.iter().map(|times| times.wall).fold(0.0, f64::max);
        let sum = |value: fn(&Times) -> f64| times.iter().map(value).sum::<f64>();
        if runtime <= 0.0 || most.compute <= 0.0 {
            return None;
        }
        let load_balance = sum(|times| times.compute) / times.len() as f64 / most.compute;
        let communication = most.compute / runtime;
        Some(Self {
            parallel: load_balance * communication,
            load_balance,
            communication,
            mpi_share: sum(|times| times.mpi) / sum(|times| times.wall),
            slowest: most.rank,
        })
    }
}

fn from_windows(rank: &RankTrace) -> Times {
    let index = |quantity| Quantity::ALL.iter().position(|&have| have == quantity).expect("it is one of all");
    let sum = |quantity| {
        let cells = rank.windows.iter().filter_map(|window| window.cells.get(index(quantity)));
        cells.map(|cell| cell.sum).sum()
    };
    Times {
        rank: rank.process.rank,
        wall: sum(Quantity::Wall),
        mpi: sum(Quantity::MpiTime),
        compute: sum(Quantity::ComputeTime),
    }
}

fn from_totals(rank: &RankTrace) -> Times {
    let wall = rank.process.elapsed_ns as f64;
    let mpi: f64 = rank.aggregates.iter().map(|entry| entry.time_ns).sum();
    // Several threads may be in MPI at once.
    let compute = (wall - mpi - rank.process.own_ns as f64).max(0.0);
    Times { rank: rank.process.rank, wall, mpi, compute }
}

/// What the sample alone says of the share of MPI, groups weighted by their sizes; `None` if it is no sample.
fn from_sample(trace: &Trace, plan: &Plan, times: &[Times]) -> Option<String> {
    let index = plan.metrics.iter().position(|metric| metric.quantity == Quantity::MpiTime)?;
    let rows: Vec<Row> =
        run_rows(trace, plan, index).into_iter().filter(|row| row.basis != Basis::Census).collect();
    let population: f64 = rows.iter().map(|row| row.population as f64).sum();
    let (mut mean, mut variance) = (0.0, 0.0);
    for row in &rows {
        let weight = row.population as f64 / population;
        mean += weight * row.mean?;
        variance += (weight * row.half_width?).powi(2);
    }
    // An average rank's window, known of all of them.
    let windows: usize = trace.ranks.iter().map(|rank| rank.windows.len()).sum();
    if trace.kept_windows() == windows as u64 {
        return None;
    }
    let wall = times.iter().map(|times| times.wall).sum::<f64>() / windows as f64;
    let confidence = digits(100.0 * rows.first()?.confidence);
    let basis = match rows.first()?.basis {
        Basis::Sampled => "sampled summaries",
        _ => "kept traces",
    };
    (wall > 0.0).then(|| {
        let (share, half) = (percent(mean / wall), percent(variance.sqrt() / wall));
        format!("{basis} alone say {share} ± {half} at {confidence} %")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn efficiencies_follow_their_definitions() {
        let times = |rank, compute| Times { rank, wall: 10.0, mpi: 10.0 - compute, compute };
        let found = Efficiency::of(&[times(0, 4.0), times(1, 8.0), times(2, 6.0)]).unwrap();
        assert!((found.load_balance - 0.75).abs() < 1e-12);
        assert!((found.communication - 0.8).abs() < 1e-12);
        assert!((found.parallel - 0.6).abs() < 1e-12);
        assert!((found.mpi_share - 0.4).abs() < 1e-12);
        assert_eq!(found.slowest, 1);
        assert!(Efficiency::of(&[]).is_none() && Efficiency::of(&[Times::default()]).is_none());
    }
}
