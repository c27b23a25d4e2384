//! POP efficiencies of the run, and the share of MPI.

use std::collections::BTreeMap;

use ampl_core::config::{Quantity, SiteTrace, Summaries};
use ampl_core::plan::Plan;
use ampl_core::stats::Basis;
use ampl_trace::Trace;

use super::{field, title};
use crate::efficiency::{self, Shares, Times, run_times};
use crate::estimate::{Row, run_rows};
use crate::human::{count, digits, percent, plural};

pub(super) fn write(out: &mut String, trace: &Trace, plan: Option<&Plan>) {
    let read = trace.ranks.len() as u64;
    let whose = if read == u64::from(trace.run.ranks) {
        "all ranks".into()
    } else {
        format!("the {read} ranks read")
    };
    let (times, basis) = run_times(trace);
    let basis = match basis {
        efficiency::Basis::Census => census(trace, &whose),
        efficiency::Basis::Measured => {
            "of windows that all measured: elsewhere calls were only counted, or ampl paused".into()
        }
        // Window summaries are the sample's only, but every rank totals its call sites, unless they are left out.
        _ if plan.is_some_and(|plan| plan.config.sites.iter().any(|site| site.trace == SiteTrace::Off)) => {
            format!("call totals of {whose}: calls that are off count as computing")
        }
        _ => format!("exact: call totals of {whose}"),
    };
    title(out, &format!("Efficiency ({basis})"));
    let Some(shares) = Shares::of(&times) else {
        field(out, "parallel", "not known: no time was measured");
        return;
    };
    let host = trace.rank(shares.slowest).map_or("?", |rank| &rank.process.host);
    let line = |share: f64, meaning: &str| format!("{:<9} {meaning}", percent(share));
    field(
        out,
        "parallel",
        &line(shares.parallel, "of the ranks' time computes: the product of the next two"),
    );
    let busiest = format!("mean/max of compute time; rank {} on {host} has most", shares.slowest);
    field(out, "load balance", &line(shares.load_balance, &busiest));
    field(out, "communication", &line(shares.communication, "most compute time of a rank / run time"));
    let alone = plan.and_then(|plan| from_sample(trace, plan, &times));
    let alone = alone.map_or(String::new(), |text| format!("; {text}"));
    field(out, "time in MPI", &line(shares.mpi, &format!("of all time{alone}")));
}

/// How whole a census is in which every rank has times of each of its own windows.
fn census(trace: &Trace, whose: &str) -> String {
    // Who did not come to its end leaves nothing of the window that was open.
    let exact = if trace.ranks.iter().all(|rank| rank.process.finalized) { "exact: " } else { "" };
    let mut ranks: BTreeMap<u64, usize> = BTreeMap::new();
    for window in trace.ranks.iter().flat_map(|rank| &rank.windows) {
        *ranks.entry(window.window).or_default() += 1;
    }
    let windows = trace.windows();
    // Ranks need not end in the same window, and what they did until then is all here.
    let whole = ranks.values().filter(|&&ranks| ranks == trace.ranks.len()).count() as u64;
    match whole == windows {
        true => format!("{exact}census of {whose} in every window"),
        false => format!(
            "{exact}census of {whose}; all were there in {} of {}",
            count(whole),
            plural(windows, "window")
        ),
    }
}

/// What the sample alone says of the share of MPI, groups weighted by their sizes; `None` if it is no sample.
fn from_sample(trace: &Trace, plan: &Plan, times: &[Times]) -> Option<String> {
    let index = plan.metrics.iter().position(|metric| metric.quantity == Quantity::MpiTime)?;
    let rows: Vec<Row> = run_rows(trace, plan, index).into_iter().filter(|row| row.drawn).collect();
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
    // In a census the times are those of summarised windows, and a rank that stepped down has others too.
    let census = plan.config.sampling.summaries == Summaries::Census;
    let all = trace.ranks.iter().flat_map(|rank| &rank.windows);
    let timed = all.filter(|window| !census || !window.cells.is_empty()).count();
    // As for all ranks: what passed in ampl is not the program's.
    let whole = times.iter().map(|times| times.of_program()).sum::<f64>() / timed as f64;
    let confidence = digits(100.0 * rows.first()?.confidence);
    let basis = match rows.first()?.basis {
        Basis::Sampled => "sampled summaries",
        _ => "kept traces",
    };
    (whole > 0.0).then(|| {
        let (share, half) = (percent(mean / whole), percent(variance.sqrt() / whole));
        format!("{basis} alone say {share} ± {half} at {confidence} %")
    })
}
