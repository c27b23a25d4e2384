//! `ampl decisions`: how many ranks were kept, from when on, and why.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::process::ExitCode;

use ampl_core::config::{ErrorBound, Target};
use ampl_core::message::Decision;
use ampl_trace::Trace;

use crate::estimate::windows_per_update;
use crate::human::{Unit, digits, of_event, percent, plural};
use crate::output;
use crate::rundir::{self, RunArg};

/// List every decision about who is kept.
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  ampl decisions ampl-lmp-4242-20260101T120000")]
pub struct Args {
    #[command(flatten)]
    run: RunArg,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Also what was drawn beforehand of windows that were decided when they were over
    #[arg(long)]
    all: bool,
}

/// Prints the decisions of a run.
///
/// # Errors
/// Errors of [`RunArg::read`], and failures to write.
pub fn decisions(args: &Args) -> anyhow::Result<ExitCode> {
    let mut trace = args.run.read()?;
    if !args.all {
        let windows_per_update = rundir::plan(&trace).map_or(1, |plan| windows_per_update(&plan));
        trace.decisions = in_force(std::mem::take(&mut trace.decisions), windows_per_update, trace.windows());
    }
    // A window may be decided after those behind it.
    trace.decisions.sort_by_key(|decision| decision.window);
    if args.json {
        output::json(&trace.decisions)?;
    } else {
        output::print(|out| {
            let absolute = absolute_groups(&trace);
            let decisions = together(&trace.decisions, is_after);
            let mut divided = BTreeSet::new();
            for two in decisions.windows(2).filter(|two| two[0].window == two[1].window) {
                if two[0].group == two[1].group && !is_after(&two[1]) {
                    divided.insert((two[0].window, two[0].group.clone()));
                }
            }
            let reasons: Vec<String> = decisions
                .iter()
                .map(|decision| reason(decision, absolute.contains(&decision.group)))
                .collect();
            let wide = reasons.iter().map(|reason| reason.chars().count()).max().unwrap_or(0).max(10);
            let groups: Vec<String> = decisions
                .iter()
                .map(|decision| name(decision, divided.contains(&(decision.window, decision.group.clone()))))
                .collect();
            let named = groups.iter().map(|group| group.chars().count()).max().unwrap_or(0).max(12);
            writeln!(
                out,
                "{:>6} {:>7}  {:<named$} {:>13}  {:<10} {:<wide$} {:>9}  reported",
                "update", "window", "group", "kept of ranks", "mechanism", "decided by", "variance"
            )?;
            decisions.iter().zip(groups.iter().zip(&reasons)).try_for_each(|(decision, (group, reason))| {
                writeln!(out, "{}", line(decision, &format!("{group:<named$}"), &format!("{reason:<wide$}")))
            })
        })?;
    }
    Ok(rundir::status(&trace))
}

/// True for a retrospective decision.
fn is_after(decision: &Decision) -> bool {
    decision.selection.as_deref() == Some("retrospective")
}

/// True for a retrospective decision without some ranks; for these the earlier draw holds.
fn is_of_some(decision: &Decision) -> bool {
    is_after(decision) && decision.reported < decision.population
}

/// Removes earlier draws of updates whose windows were all decided retrospectively: these are for ranks that could
/// not wait for the decision. There are `windows` in the run, and `windows_per_update` in an update.
fn in_force(mut decisions: Vec<Decision>, windows_per_update: u64, windows: u64) -> Vec<Decision> {
    let mut after: BTreeMap<(String, u64), BTreeSet<u64>> = BTreeMap::new();
    for decision in decisions.iter().filter(|decision| is_after(decision)) {
        after.entry((decision.group.clone(), decision.update)).or_default().insert(decision.window);
    }
    let is_replaced = |decision: &Decision| {
        let first = decision.update.saturating_mul(windows_per_update);
        let there = windows_per_update.min(windows.saturating_sub(first));
        let decided = after.get(&(decision.group.clone(), decision.update));
        decided.is_some_and(|decided| decided.len() as u64 >= there)
    };
    decisions.retain(|decision| is_after(decision) || !is_replaced(decision));
    decisions
}

/// Decisions with the strata of each group and moment joined.
pub fn by_group(decisions: &[Decision]) -> Vec<Decision> {
    together(decisions, |_| true)
}

/// The same for the decisions that `which` accepts; others stay apart.
fn together(decisions: &[Decision], which: impl Fn(&Decision) -> bool) -> Vec<Decision> {
    let mut all: Vec<Decision> = Vec::new();
    for decision in decisions {
        let same = |last: &&mut Decision| {
            which(decision)
                && is_after(decision) == is_after(last)
                && (last.window, &last.group) == (decision.window, &decision.group)
        };
        match all.last_mut().filter(same) {
            Some(last) => {
                last.size += decision.size;
                last.population += decision.population;
                last.reported += decision.reported;
                last.probability = f64::from(last.size) / (last.population as f64).max(1.0);
                last.variance = None;
            }
            None => all.push(decision.clone()),
        }
    }
    all
}

/// The groups whose bound is in the metric's unit, not relative to the mean.
pub fn absolute_groups(trace: &Trace) -> Vec<String> {
    let absolute = |target| matches!(target, Target::Bound { error: ErrorBound::Absolute(_), .. });
    let groups = rundir::plan(trace).map(|plan| plan.groups).unwrap_or_default();
    groups.into_iter().filter(|group| absolute(group.target)).map(|group| group.name).collect()
}

/// `all`, or `all/3` where the group has `several` strata.
fn name(decision: &Decision, several: bool) -> String {
    match several {
        true => format!("{}/{}", decision.group, decision.stratum),
        false => decision.group.clone(),
    }
}

fn line(decision: &Decision, group: &str, reason: &str) -> String {
    let mut reported = match (decision.reported == decision.population, decision.late) {
        (true, false) => "all".into(),
        (_, late) => {
            format!("{} of {}{}", decision.reported, decision.population, if late { ", late" } else { "" })
        }
    };
    if decision.merged_windows > 0 {
        reported.push_str(&format!(", {} merged", plural(decision.merged_windows, "window")));
    }
    let text = format!(
        "{:>6} {:>7}  {group} {:>13}  {:<10} {reason} {:>9}  {reported}",
        decision.update,
        decision.window,
        kept(decision),
        decision.mechanism,
        decision.variance.map_or("-".into(), digits),
    );
    text.trim_end().to_owned()
}

/// `3 of 64`: number of ranks kept; `3+? of 64` where some ranks did not report.
pub fn kept(decision: &Decision) -> String {
    let unheard = if is_of_some(decision) { "+?" } else { "" };
    format!("{}{unheard} of {}", decision.size, decision.population)
}

/// Reason for the size: `mpi.time ± 7.1 % (bound 8 %)`; errors are in the metric's unit if `absolute`.
pub fn reason(decision: &Decision, absolute: bool) -> String {
    let limit = decision.limit.as_ref().map(|limit| format!(", cut by the {limit}")).unwrap_or_default();
    let Some(metric) = &decision.guide else {
        return match decision.size {
            _ if is_of_some(decision) => format!("ranks that reported do not differ{limit}"),
            // A retrospective decision has all values: no metric's bound asks for a rank.
            _ if is_after(decision) => format!("no rank differs{limit}"),
            size if u64::from(size) == decision.population => "nothing known yet".into(),
            _ => format!("fixed size{limit}"),
        };
    };
    let guide = of_event(metric, decision.event.as_deref().unwrap_or("*"));
    let text = |error: f64| if absolute { Unit::of(metric).text(error) } else { percent(error) };
    match (decision.error_attained, decision.error_required) {
        (Some(attained), Some(required)) => {
            format!("{guide} ± {} (bound {}{limit})", text(attained), text(required))
        }
        (None, Some(required)) => format!("{guide} (bound {}{limit})", text(required)),
        _ => guide,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decision() -> Decision {
        Decision {
            update: 2,
            window: 8,
            group: "all".into(),
            stratum: 0,
            mechanism: "subset".into(),
            population: 64,
            reported: 64,
            late: false,
            size: 17,
            probability: 0.25,
            guide: Some("mpi.time".into()),
            policy: 2,
            event: Some("*".into()),
            mean: Some(1e6),
            variance: Some(0.0123),
            error_required: Some(0.08),
            error_attained: Some(0.0712),
            limit: None,
            merged_windows: 0,
            selection: None,
        }
    }

    #[test]
    fn a_line_says_how_many_and_why() {
        let of = |decision: &Decision, several| {
            super::line(decision, &name(decision, several), &reason(decision, false))
        };
        let line = |decision: &Decision| of(decision, false);
        let text = line(&decision());
        assert!(of(&Decision { stratum: 3, ..decision() }, true).contains(" all/3 "));
        for word in ["17 of 64", "subset", "mpi.time ± 7.12 % (bound 8", "0.0123", "all"] {
            assert!(text.contains(word), "{word}: {text}");
        }
        let cut = Decision { limit: Some("budget".into()), ..decision() };
        assert!(line(&cut).contains("(bound 8 %, cut by the budget)"));
        let late = Decision { reported: 60, late: true, ..decision() };
        assert!(line(&late).ends_with("60 of 64, late"));
        let after = Decision { selection: Some("retrospective".into()), guide: None, size: 1, ..late };
        let said = line(&after);
        assert!(said.contains(" 1+? of 64 ") && said.contains("ranks that reported do not differ"), "{said}");
        let merged = Decision { merged_windows: 5, ..decision() };
        assert!(line(&merged).ends_with("all, 5 windows merged"));
        let first = Decision { guide: None, size: 64, ..decision() };
        assert!(line(&first).contains("nothing known yet"));
        let absolute = Decision { error_required: Some(2e3), error_attained: Some(1.5e3), ..decision() };
        assert_eq!(reason(&absolute, true), "mpi.time ± 1.50 us (bound 2 us)");
    }

    #[test]
    fn strata_of_a_window_are_one_line_and_hide_what_was_drawn_beforehand() {
        let after = |stratum, population, size| Decision {
            selection: Some("retrospective".into()),
            window: 9,
            stratum,
            population,
            reported: population,
            size,
            ..decision()
        };
        let all = vec![decision(), after(0, 1, 1), after(1, 63, 6), Decision { update: 3, ..decision() }];
        // There are two windows of update 2 in a run of ten, and one has been decided by its own values.
        assert_eq!(in_force(all.clone(), 4, 10), all);
        assert_eq!(in_force(all.clone(), 4, 9).len(), 3);
        let shown = in_force(all, 1, 10);
        assert_eq!(shown.iter().map(|decision| decision.size).collect::<Vec<_>>(), [1, 6, 17]);
        let lines = by_group(&shown);
        assert_eq!(lines.len(), 2);
        assert_eq!((lines[0].size, lines[0].population, lines[0].variance), (7, 64, None));
        assert_eq!(lines[0].reported, 64);
        // Those of a divided group are lines of their own, and one where only the group matters.
        let divided = [decision(), Decision { stratum: 4, size: 3, ..decision() }];
        assert_eq!(together(&divided, is_after), divided);
        assert_eq!(by_group(&divided)[0].size, 20);
    }
}
