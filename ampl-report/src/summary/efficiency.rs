//! POP efficiencies of the run, and the share of MPI.

use std::collections::BTreeMap;

use ampl_analysis::coverage::Extent;
use ampl_analysis::efficiency::{self, RunTimes, Shares, run_times};
use ampl_analysis::estimate::{Row, mpi_shares};
use ampl_analysis::window_times::Times;
use ampl_analysis::{pauses, phases};
use ampl_core::config::SiteTrace;
use ampl_core::plan::Plan;
use ampl_core::stats::Basis;
use ampl_core::units::Rank;
use ampl_reader::Trace;

use crate::coverage::{paused as paused_words, unknown as not_known, words};
use crate::human::{count, digits, percent, plural};
use crate::layout::{Page, field, paragraph, title};
use crate::phases::lines;

pub(super) fn write(out: &mut Page, trace: &Trace, plan: Option<&Plan>) {
    let read = trace.ranks.len() as u64;
    let whose = if read == u64::from(trace.run.ranks) {
        "all ranks".into()
    } else {
        format!("the {read} ranks read")
    };
    let run = run_times(trace);
    let whole = run.extent() == Extent::Whole;
    let left_out = plan.is_some_and(|plan| plan.config.sites.iter().any(|site| site.trace == SiteTrace::Off));
    let basis = match run.basis {
        _ if !whole => format!("of {}; {whose}", words(&run.coverage)),
        efficiency::Basis::Census => census(trace, &whose),
        efficiency::Basis::Measured => "of windows that all ranks measured".into(),
        // Window summaries are the sample's only, but every rank totals its call sites, unless they are left out.
        _ if left_out => format!("call totals of {whose}: calls that are off count as computing"),
        _ => format!("exact: call totals of {whose}"),
    };
    let paused = pauses::all(trace);
    let basis = paused.map_or(basis.clone(), |pauses| format!("{basis}; {}", paused_words(&pauses)));
    title(out, &format!("Efficiency ({basis})"));
    of_run(out, trace, plan, &run, paused.is_some());
    for (label, text) in lines(&phases::of(trace)) {
        paragraph(out, label, &text);
    }
}

/// Writes the run's numbers; where the program `paused` ampl they are of the time observed.
fn of_run(out: &mut Page, trace: &Trace, plan: Option<&Plan>, run: &RunTimes, paused: bool) {
    let whole = run.extent() == Extent::Whole;
    let programs = efficiency::by_program(trace);
    let Some(shares) = Shares::of(&run.times).filter(|_| run.extent() != Extent::Little) else {
        unknown(out, run, paused);
        crate::efficiency::of_programs(&programs).iter().for_each(|line| paragraph(out, "", line));
        return;
    };
    let time = if paused { "of the time observed" } else { "of all time" };
    // Each number is printed with its basis, where that is not the run.
    let of = if whole { String::new() } else { format!("; of {}", words(&run.coverage)) };
    let line = |share: f64, long: &str, short: &str| {
        format!("{:<9} {}{of}", percent(share), if whole { long } else { short })
    };
    let whose = if paused { "of the time observed" } else { "of the ranks' time" };
    let product = format!("{whose} computes{}", crate::efficiency::product(&programs));
    field(out, "parallel", &line(shares.parallel, &product, "computes"));
    if !programs.is_empty() {
        field(out, "load balance", "not compared across programs, which do different work");
    } else if let (Some(balance), Some(slowest)) = (shares.load_balance, shares.slowest) {
        let host = trace.rank(slowest).map_or("?", |rank| &rank.process.host);
        let busiest = format!("mean/max of compute time; rank {slowest} on {host} has most");
        field(out, "load balance", &line(balance, &busiest, "mean/max compute"));
    } else {
        field(out, "load balance", "no rank computes: all of the time is in MPI");
    }
    let longest = match paused {
        true => "most compute time of a rank / time observed",
        false => "most compute time of a rank / run time",
    };
    field(out, "communication", &line(shares.communication, longest, "most compute/run"));
    crate::efficiency::of_programs(&programs).iter().for_each(|line| paragraph(out, "", line));
    let alone = plan.filter(|_| whole).and_then(|plan| from_sample(trace, plan, run));
    let alone = alone.map_or(String::new(), |text| format!("; {text}"));
    let threads = match (run.of_main, run.threads) {
        (true, _) => " of the ranks' main threads; others are in MPI, too".to_owned(),
        (_, 1) => String::new(),
        (_, several) => format!(" of up to {several} threads a rank"),
    };
    let all = format!("{time}{threads}{alone}");
    field(out, "time in MPI", &line(shares.mpi, &all, time));
}

/// Writes that efficiencies are not known, with their bounds.
fn unknown(out: &mut Page, run: &RunTimes, paused: bool) {
    if run.extent() != Extent::Little {
        field(out, "parallel", "not known: no time was measured");
        return;
    }
    let unknown = not_known(&run.coverage);
    let Some(bounds) = run.bounds else {
        field(out, "parallel", &unknown);
        return;
    };
    let between =
        |[low, high]: [f64; 2]| format!("{unknown}: between {} and {}", percent(low), percent(high));
    for (label, bounds) in [
        ("parallel", bounds.parallel),
        ("load balance", bounds.load_balance),
        ("communication", bounds.communication),
    ] {
        field(out, label, &between(bounds));
    }
    let time = if paused { "of the time observed" } else { "of all time" };
    let estimate = run.mpi_at_mean_cost.map_or(String::new(), |share| {
        format!("; about {} if calls that were only counted took as long as others", percent(share))
    });
    paragraph(out, "time in MPI", &format!("{} {time}{estimate}", between(bounds.mpi)));
}

/// Completeness of a census in which every rank has times of each of its own windows.
fn census(trace: &Trace, whose: &str) -> String {
    // A rank that did not finalize leaves nothing of its open window.
    let exact = if trace.ranks.iter().all(|rank| rank.process.finalized) { "exact: " } else { "" };
    let mut ranks: BTreeMap<u64, usize> = BTreeMap::new();
    for window in trace.ranks.iter().flat_map(|rank| &rank.windows) {
        *ranks.entry(window.window).or_default() += 1;
    }
    let windows = trace.windows();
    // Ranks need not end in the same window, and all their times until then are here.
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

/// Share of MPI by the sample alone in the windows that `run` is of, groups weighted by their time; `None` if it is
/// no sample.
fn from_sample(trace: &Trace, plan: &Plan, run: &RunTimes) -> Option<String> {
    let observed = trace.rank_windows_of(|window| !window.cells.is_empty());
    if trace.kept_windows() == trace.rank_windows() || observed == 0 {
        return None;
    }
    // Where ranks recorded less, windows were drawn whose times are not stored: those left are no such sample.
    let mut all = trace.ranks.iter().flat_map(|rank| &rank.windows);
    if plan.stores_summary(false) && all.any(|window| window.drawn && !window.kept) {
        return None;
    }
    let rows = mpi_shares(trace, plan, &run.lacking);
    let rows: Vec<&Row> = rows.iter().filter(|row| row.drawn).collect();
    // A rank that left nothing is in no sample either.
    let time_of = |row: &Row| -> f64 {
        let group = plan.groups.iter().find(|group| group.name == row.group);
        let is_member = |times: &&Times| group.is_some_and(|group| group.members.contains(Rank(times.rank)));
        run.times.iter().filter(is_member).map(Times::of_program).sum()
    };
    let (mut all, mut mpi, mut variance) = (0.0, 0.0, 0.0);
    for row in &rows {
        let time = time_of(row);
        all += time;
        mpi += time * row.mean?;
        variance += (time * row.half_width?).powi(2);
    }
    let confidence = digits(100.0 * rows.first()?.confidence);
    let basis = match rows.first()?.basis {
        Basis::Sampled => "sampled summaries",
        _ => "kept traces",
    };
    (all > 0.0).then(|| {
        let (share, half) = (percent(mpi / all), percent(variance.sqrt() / all));
        format!("{basis} alone say {share} ± {half} at {confidence} %")
    })
}
