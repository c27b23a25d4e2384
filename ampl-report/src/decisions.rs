//! Decisions for people: how many ranks were kept, from when on, and why.

use std::collections::BTreeSet;
use std::io::{self, Write};

use ampl_analysis::decisions::{is_after, is_of_some, together};
use ampl_core::message::Decision;

use crate::human::{Unit, digits, of_event, percent, plural};

/// Writes `decisions` as a table. The bounds of `absolute` groups are in the metric's unit.
///
/// # Errors
/// Errors of `out`.
pub fn table(out: &mut impl Write, decisions: &[Decision], absolute: &[String]) -> io::Result<()> {
    let decisions = together(decisions, is_after);
    let mut divided = BTreeSet::new();
    for two in decisions.windows(2).filter(|two| two[0].window == two[1].window) {
        if two[0].group == two[1].group && !is_after(&two[1]) {
            divided.insert((two[0].window, two[0].group.clone()));
        }
    }
    let reasons: Vec<String> =
        decisions.iter().map(|decision| reason(decision, absolute.contains(&decision.group))).collect();
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
        decision.mechanism.name(),
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
    let limit = decision.limit.map(|limit| format!(", cut by the {}", limit.name())).unwrap_or_default();
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
    use ampl_core::config::{Mechanism, Selection};
    use ampl_core::message::DecisionLimit;

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
        let cut = Decision { limit: Some(DecisionLimit::Budget), ..decision() };
        assert!(line(&cut).contains("(bound 8 %, cut by the budget)"));
        let late = Decision { reported: 60, late: true, ..decision() };
        assert!(line(&late).ends_with("60 of 64, late"));
        let after = Decision { selection: Some(Selection::Retrospective), guide: None, size: 1, ..late };
        let said = line(&after);
        assert!(said.contains(" 1+? of 64 ") && said.contains("ranks that reported do not differ"), "{said}");
        let merged = Decision { merged_windows: 5, ..decision() };
        assert!(line(&merged).ends_with("all, 5 windows merged"));
        let first = Decision { guide: None, size: 64, ..decision() };
        assert!(line(&first).contains("nothing known yet"));
        let absolute = Decision { error_required: Some(2e3), error_attained: Some(1.5e3), ..decision() };
        assert_eq!(reason(&absolute, true), "mpi.time ± 1.50 us (bound 2 us)");
    }
}
