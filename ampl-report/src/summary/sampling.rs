//! Number of ranks kept, and the reason.

use std::collections::BTreeSet;

use ampl_analysis::coverage::Extent;
use ampl_analysis::decisions::{absolute_groups, by_group};
use ampl_analysis::efficiency::run_times;
use ampl_analysis::followed_steps::followed;
use ampl_analysis::missing_data::ended_none;
use ampl_analysis::window_times::partial_windows;
use ampl_core::config::{Keep, Marker};
use ampl_core::message::Decision;
use ampl_core::plan::Plan;
use ampl_core::units::{Rank, RankSet};
use ampl_core::window_set::WindowSet;
use ampl_reader::model::Level;
use ampl_reader::{RankTrace, Trace};

use crate::coverage::part;
use crate::decisions::{kept, reason};
use crate::human::{count, cut, digits, duration, plural};
use crate::layout::{Page, field, title};

/// Windows of a run, and what ends them: `61 windows, each ends at 5 markers 'mpi:MPI_Allreduce'`.
pub fn windows(trace: &Trace, plan: Option<&Plan>) -> String {
    let windows = plural(trace.windows(), "window");
    let ended = plan.map_or("each ends at ?".into(), |plan| ends(trace, plan));
    format!("{windows}, {ended}")
}

pub(super) fn write(out: &mut Page, trace: &Trace, plan: Option<&Plan>) {
    title(out, &format!("Sampling ({})", windows(trace, plan)));
    let absolute = absolute_groups(trace);
    let groups = &trace.run.groups;
    // More than two have a line each, more than four not even that.
    let shown = if groups.len() > 4 { 3 } else { groups.len() };
    let stores = plan.map_or(Keep::Kept, |plan| match plan.config.trace.stored() {
        Keep::Kept if plan.config.stores_everything() => Keep::All,
        keep => keep,
    });
    let traced = stores == Keep::Kept;
    let stored = match stores {
        Keep::Kept => "traced in an average window",
        Keep::All => "drawn in an average window; calls of all are stored",
        Keep::Off => "drawn in an average window; no calls are stored",
    };
    let measured = run_times(trace).coverage;
    let whole = measured.extent() == Extent::Whole;
    let of = if whole { String::new() } else { format!(" ({} measured)", part(&measured)) };
    let last = by_group(&trace.decisions);
    // The end of the run cuts its last window off: the decision for that one says little of the others.
    let (windows, partial) = (trace.windows(), partial_windows(trace.ranks.iter()));
    let is_whole = |last: &&Decision| last.window < windows && !partial.contains(&last.window);
    for group in &groups[..shown] {
        let members = RankSet::parse(&group.members).unwrap_or_default();
        // Without the windows' summaries it is not known which ranks were drawn but did not have their calls stored.
        let text = match !traced && trace.ranks.iter().any(lacks_draws) {
            true if stores == Keep::Off => {
                "no calls are stored; without summaries who was drawn is not known".into()
            }
            true => "without summaries who was drawn is not known".into(),
            false => format!("{} ranks {stored}{of}", sampled(trace, &members, traced)),
        };
        field(out, &format!("group {}", cut(&group.name, 13)), &text);
        // A window that no rank reported has no decision; one that some ranks did not report was not decided by its
        // values.
        let own = || {
            last.iter().filter(|last| last.group == group.name && last.population > 0 && last.reported > 0)
        };
        let is_whole = |last: &&Decision| is_whole(last) && last.reported == last.population;
        if let Some(last) = own().rfind(is_whole).or_else(|| own().next_back()).filter(|_| groups.len() <= 2)
        {
            // The interval of a window does not hold for a run that was measured in part.
            let stated = Decision { error_attained: last.error_attained.filter(|_| whole), ..last.clone() };
            let why = why(&stated, absolute.contains(&last.group), traced);
            let from = format!("from window {}: {}", last.window, kept(last));
            field(out, "", &format!("{from}; {why}"));
        }
    }
    if shown < groups.len() {
        field(
            out,
            "",
            &format!("{} more: see ampl decisions", plural((groups.len() - shown) as u64, "group")),
        );
    }
    if plan.is_some_and(|plan| plan.config.sampling.partners) {
        let (partner, kept) = (trace.partner_windows(), trace.kept_windows());
        let text = format!(
            "{} of {} kept rank-windows are of ranks that drawn ones talk to",
            count(partner),
            count(kept)
        );
        field(out, "partners", &text);
    }
    if groups.is_empty() {
        field(out, "groups", "not known: what the client wrote is not here");
    }
}

/// Event that ended the windows, which need not be the marker that the job file names.
fn ends(trace: &Trace, plan: &Plan) -> String {
    let window = &plan.config.window;
    if let Some(Ok(following)) = followed(trace, plan) {
        return format!("following time steps from {} on", count(following.steps.window));
    }
    let marker = match window.marker {
        // No time step was found.
        Marker::Auto => Marker::Period(Marker::AUTO_PERIOD_NS),
        _ => window.marker.clone(),
    };
    let marker = cut(&marker.to_string(), 50);
    if ended_none(trace, plan) {
        return format!("all of the run: {marker} ended none");
    }
    let clock = |rank: &RankTrace| {
        rank.process.steps.iter().find(|step| step.level == Level::Clock).map(|step| step.at)
    };
    let by_clock: Vec<u64> = trace.ranks.iter().filter_map(clock).collect();
    if let Some(&first) = by_clock.iter().min()
        && by_clock.len() == trace.ranks.len()
    {
        return format!("by the clock from {} on, for want of {marker}", duration(first as f64));
    }
    let marker = match window.every {
        1 => marker,
        _ if window.marker == Marker::Auto => marker,
        every => format!("{every} markers '{marker}'"),
    };
    match by_clock.len() {
        0 => format!("each ends at {marker}"),
        some => {
            let all = plural(trace.ranks.len() as u64, "rank");
            format!("each ends at {marker}, on {some} of {all} by the clock")
        }
    }
}

/// True where some window of `rank` was not kept.
fn lacks_draws(rank: &RankTrace) -> bool {
    rank.process.windows > 0 && rank.windows.count_of(|window| !window.kept) > 0
}

/// Reason for the size; a group that keeps everything has no error, and needs no `± 0`.
fn why(decision: &Decision, absolute: bool, traced: bool) -> String {
    let exact = u64::from(decision.size) >= decision.population && decision.guide.is_some();
    if exact {
        let asked = Decision { error_attained: None, ..decision.clone() };
        let all = if traced { "everything kept" } else { "everybody drawn" };
        return format!("{all} for {}", reason(&asked, absolute));
    }
    reason(decision, absolute)
}

/// `3.2 of 8`: ranks of `members` in the sample of an average window; with `traced`, whose calls are stored.
fn sampled(trace: &Trace, members: &RankSet, traced: bool) -> String {
    let ranks = trace.ranks.iter().filter(|rank| members.contains(Rank(rank.process.rank)));
    let (mut counted, mut seen) = (0u64, BTreeSet::new());
    for rank in ranks {
        counted += rank.windows.count_of(|window| if traced { window.kept } else { window.is_sampled() });
        seen.extend(rank.windows.entries().iter().map(|entry| (entry.numbers().start, entry.numbers().end)));
    }
    let seen: WindowSet = seen.into_iter().map(|(first, end)| first..end).collect();
    format!("{} of {}", digits(counted as f64 / seen.len().max(1) as f64), members.len())
}
