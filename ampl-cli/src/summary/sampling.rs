//! How many ranks were kept, and why.

use std::collections::BTreeSet;

use ampl_core::config::Keep;
use ampl_core::message::Decision;
use ampl_core::plan::Plan;
use ampl_core::units::{Rank, RankSet};
use ampl_trace::Trace;

use super::{field, title};
use crate::decisions::{absolute_groups, by_group, reason};
use crate::human::{count, cut, digits, plural};
use crate::info::is_sampled;

pub(super) fn write(out: &mut String, trace: &Trace, plan: Option<&Plan>) {
    let marker = plan.map_or("?".into(), |plan| {
        let window = &plan.config.window;
        match window.every {
            1 => window.marker.to_string(),
            every => format!("{} markers '{}'", every, window.marker),
        }
    });
    let windows = plural(trace.windows(), "window");
    title(out, &format!("Sampling ({windows}, each ends at {})", cut(&marker, 60)));
    let absolute = absolute_groups(trace);
    let groups = &trace.run.groups;
    // More than two have a line each, more than four not even that.
    let shown = if groups.len() > 4 { 3 } else { groups.len() };
    let stores = plan.map_or(Keep::Kept, |plan| match plan.config.trace.stored() {
        Keep::Kept if plan.config.output.verify => Keep::All,
        keep => keep,
    });
    let traced = stores == Keep::Kept;
    let stored = match stores {
        Keep::Kept => "traced in an average window",
        Keep::All => "drawn in an average window; calls of all are stored",
        Keep::Off => "drawn in an average window; no calls are stored",
    };
    let last = by_group(&trace.decisions);
    for group in &groups[..shown] {
        let members = RankSet::parse(&group.members).unwrap_or_default();
        let text = format!("{} ranks {stored}", sampled(trace, &members, traced));
        field(out, &format!("group {}", cut(&group.name, 13)), &text);
        // Of a window that nobody reported nothing was decided.
        let last = last.iter().rfind(|last| last.group == group.name && last.population > 0);
        if let Some(last) = last.filter(|_| groups.len() <= 2) {
            let why = why(last, absolute.contains(&last.group), traced);
            let from = format!("from window {}: {} of {}", last.window, last.size, last.population);
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
            "{} of {} kept rank-windows for the sake of drawn ranks that they exchange messages with",
            count(partner),
            count(kept)
        );
        field(out, "partners", &text);
    }
    if groups.is_empty() {
        field(out, "groups", "not known: what the client wrote is not here");
    }
}

/// What asked for the size; who keeps everything has no error, and needs no `± 0`.
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
    for window in ranks.flat_map(|rank| &rank.windows) {
        counted += u64::from(if traced { window.kept } else { is_sampled(window) });
        seen.insert(window.window);
    }
    format!("{} of {}", digits(counted as f64 / seen.len().max(1) as f64), members.len())
}
