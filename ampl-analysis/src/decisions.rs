//! Decisions about who is kept: those that hold, and strata joined.

use std::collections::{BTreeMap, BTreeSet};

use ampl_core::config::{ErrorBound, Selection, Target};
use ampl_core::message::Decision;
use ampl_reader::directory;
use ampl_trace::Trace;

/// True for a retrospective decision.
pub fn is_after(decision: &Decision) -> bool {
    decision.selection == Some(Selection::Retrospective)
}

/// True for a retrospective decision without some ranks; for these the earlier draw holds.
pub fn is_of_some(decision: &Decision) -> bool {
    is_after(decision) && decision.reported < decision.population
}

/// Removes earlier draws of updates whose windows were all decided retrospectively: these are for ranks that could
/// not wait for the decision. There are `windows` in the run, and `windows_per_update` in an update.
pub fn in_force(mut decisions: Vec<Decision>, windows_per_update: u64, windows: u64) -> Vec<Decision> {
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
pub fn together(decisions: &[Decision], which: impl Fn(&Decision) -> bool) -> Vec<Decision> {
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
    let groups = directory::plan(&trace.run).map(|plan| plan.groups).unwrap_or_default();
    groups.into_iter().filter(|group| absolute(group.target)).map(|group| group.name).collect()
}

#[cfg(test)]
mod tests {
    use ampl_core::config::Mechanism;

    use super::*;

    fn decision() -> Decision {
        Decision {
            update: 2,
            window: 8,
            group: "all".into(),
            stratum: 0,
            mechanism: Mechanism::Subset,
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
    fn strata_of_a_window_are_one_line_and_hide_what_was_drawn_beforehand() {
        let after = |stratum, population, size| Decision {
            selection: Some(Selection::Retrospective),
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
