//! `ampl decisions`: how many ranks were kept, from when on, and why.

use std::io::Write;
use std::process::ExitCode;

use ampl_core::config::{ErrorBound, Target};
use ampl_core::message::Decision;
use ampl_trace::Trace;

use crate::human::{Unit, digits, percent};
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
}

/// Prints the decisions of a run.
///
/// # Errors
/// Those of [`RunArg::read`], and failures to write.
pub fn decisions(args: &Args) -> anyhow::Result<ExitCode> {
    let trace = args.run.read()?;
    if args.json {
        output::json(&trace.decisions)?;
    } else {
        output::print(|out| {
            writeln!(
                out,
                "{:>6} {:>7}  {:<12} {:>13}  {:<10} {:<30} {:>9}  reported",
                "update", "window", "group", "kept of ranks", "mechanism", "decided by", "variance"
            )?;
            let absolute = absolute_groups(&trace);
            let line = |decision: &Decision| line(decision, absolute.contains(&decision.group));
            trace.decisions.iter().try_for_each(|decision| writeln!(out, "{}", line(decision)))
        })?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The groups whose bound is in the metric's unit, not relative to the mean.
pub fn absolute_groups(trace: &Trace) -> Vec<String> {
    let absolute = |target| matches!(target, Target::Bound { error: ErrorBound::Absolute(_), .. });
    let groups = rundir::plan(trace).map(|plan| plan.groups).unwrap_or_default();
    groups.into_iter().filter(|group| absolute(group.target)).map(|group| group.name).collect()
}

fn line(decision: &Decision, absolute: bool) -> String {
    let reported = match (decision.reported == decision.population, decision.late) {
        (true, false) => "all".into(),
        (_, late) => {
            format!("{} of {}{}", decision.reported, decision.population, if late { ", late" } else { "" })
        }
    };
    let text = format!(
        "{:>6} {:>7}  {:<12} {:>13}  {:<10} {:<30} {:>9}  {reported}",
        decision.update,
        decision.window,
        decision.group,
        format!("{} of {}", decision.size, decision.population),
        decision.mechanism,
        reason(decision, absolute),
        decision.variance.map_or("-".into(), digits),
    );
    text.trim_end().to_owned()
}

/// What asked for the size: `mpi.time ± 7.1 % (bound 8 %)`; errors are in the metric's unit if `absolute`.
pub fn reason(decision: &Decision, absolute: bool) -> String {
    let limit = decision.limit.as_ref().map(|limit| format!(", cut by the {limit}")).unwrap_or_default();
    let Some(metric) = &decision.guide else {
        return match decision.size {
            size if u64::from(size) == decision.population => "nothing known yet".into(),
            _ => format!("fixed size{limit}"),
        };
    };
    let event = decision.event.as_deref().filter(|&event| event != "*");
    let guide = event.map_or_else(|| metric.clone(), |event| format!("{metric} of {event}"));
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
        }
    }

    #[test]
    fn a_line_says_how_many_and_why() {
        let text = line(&decision(), false);
        for word in ["17 of 64", "subset", "mpi.time ± 7.12 % (bound 8", "0.0123", "all"] {
            assert!(text.contains(word), "{word}: {text}");
        }
        let cut = Decision { limit: Some("budget".into()), ..decision() };
        assert!(line(&cut, false).contains("(bound 8 %, cut by the budget)"));
        let late = Decision { reported: 60, late: true, ..decision() };
        assert!(line(&late, false).ends_with("60 of 64, late"));
        let first = Decision { guide: None, size: 64, ..decision() };
        assert!(line(&first, false).contains("nothing known yet"));
        let absolute = Decision { error_required: Some(2e3), error_attained: Some(1.5e3), ..decision() };
        assert_eq!(reason(&absolute, true), "mpi.time ± 1.50 us (bound 2 us)");
    }
}
