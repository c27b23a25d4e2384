//! Rows as a table for people.

use std::io::{self, Write};

use ampl_analysis::coverage::{Coverage, Extent};
use ampl_analysis::estimate::{Row, Scope};
use ampl_core::config::RankSummaries;
use ampl_core::plan::Plan;
use ampl_core::stats::Basis;

use crate::human::{Unit, digits, of_event, percent, plural};

/// Limit on estimates because `output.rank_summaries` kept summaries out of the trace; `None` where all are there.
pub fn limits(plan: &Plan) -> Option<&'static str> {
    match plan.config.output.rank_summaries {
        RankSummaries::All => None,
        RankSummaries::Sample => {
            Some("output.rank_summaries = \"sample\": means are the sample's, none is a census")
        }
        RankSummaries::Off => {
            Some("output.rank_summaries = \"off\": no rank's windows are there to estimate from")
        }
    }
}

/// Writes `rows`; `more` adds a hint at other scopes.
///
/// # Errors
/// Errors of `out`.
pub fn write(out: &mut impl Write, rows: &[Row], more: bool) -> io::Result<()> {
    writeln!(
        out,
        "{:<11} {:<10} {:<24} {:<7} {:>11}  {:<24} {:<14} guarantee",
        "scope", "group", "metric", "basis", "mean", "interval", "ranks"
    )?;
    for row in rows {
        writeln!(out, "{}", line(row))?;
    }
    if rows.is_empty() {
        writeln!(out, "(no rank's window is in the trace)")?;
    }
    missing(out, rows)?;
    checked(out, rows)?;
    if more {
        writeln!(out, "\nPer window or update interval: --scope window, --scope update. All of it: --json.")?;
    }
    Ok(())
}

/// Writes how many summaries are missing in the row that lacks most.
fn missing(out: &mut impl Write, rows: &[Row]) -> io::Result<()> {
    match rows.iter().map(|row| row.missing_windows).max() {
        None | Some(0) => Ok(()),
        Some(most) => writeln!(
            out,
            "\nUp to {} without a summary: means are of the others, without an interval. Of less than 90 % of the \
             ranks' time there is none.",
            plural(most, "rank-window")
        ),
    }
}

/// Writes how often estimates from the sample were within their bounds, under `output.verify`.
fn checked(out: &mut impl Write, rows: &[Row]) -> io::Result<()> {
    let checks = rows.iter().filter_map(|row| Some((row, row.check.as_ref()?)));
    let runs: Vec<_> = checks.filter_map(|(row, check)| Some((row, check, check.c_trace?))).collect();
    if runs.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\nAgainst everything recorded (output.verify); c_trace: share of the time inside the bound"
    )?;
    writeln!(
        out,
        "{:<10} {:<24} {:>11} {:>11} {:>8} {:>15} {:>9} {:>18}",
        "group", "guide", "estimated", "exact", "off by", "windows inside", "c_trace", "of those sampled"
    )?;
    for (row, check, c_trace) in runs {
        let unit = Unit::of(&row.metric);
        let text = |value: Option<f64>| value.map_or("-".into(), |value| unit.text(value));
        let off = row.mean.zip(check.truth).map(|(mean, truth)| (mean - truth).abs() / truth.abs());
        writeln!(
            out,
            "{:<10} {:<24} {:>11} {:>11} {:>8} {:>15} {:>9} {:>18}",
            row.group,
            metric(row),
            text(row.mean),
            text(check.truth),
            off.filter(|off| off.is_finite()).map_or("-".into(), percent),
            format!(
                "{} of {}",
                check.windows_inside.unwrap_or_default(),
                check.windows_checked.unwrap_or_default()
            ),
            digits(c_trace),
            check.c_trace_sampled.map_or("all were kept".into(), digits),
        )?;
    }
    Ok(())
}

/// `mpi.time`, `calls of MPI_Send`.
fn metric(row: &Row) -> String {
    of_event(&row.metric, &row.event)
}

fn line(row: &Row) -> String {
    let scope = match (row.scope, row.window) {
        (Scope::Window, Some(window)) => format!("window {window}"),
        (Scope::Update, Some(window)) => format!("from {window}"),
        _ => "run".into(),
    };
    let metric = metric(row);
    let ranks = format!("{} of {}", row.kept, row.population);
    let mean = row.mean.map_or("-".into(), |mean| Unit::of(&row.metric).text(mean));
    let guarantee = match row.guaranteed {
        // Exact numbers need no bound.
        _ if row.basis == Basis::Census && row.mean.is_some() => "exact",
        true => "guaranteed",
        false if row.mean.is_none() => "-",
        false => "no guarantee",
    };
    format!(
        "{scope:<11} {:<10} {metric:<24} {:<7} {mean:>11}  {:<24} {ranks:<14} {guarantee}",
        row.group,
        row.basis.name(),
        interval(row)
    )
}

/// The interval in words: `exact`, `± 1.2 us (3.1 %) at 90 %`.
pub fn interval(row: &Row) -> String {
    let at = || format!("at {} %", digits(100.0 * row.confidence));
    let [whole, all] = row.windows;
    let part = format!("{whole} of {}", plural(all, "window"));
    let extent = Coverage::extent_of(row.coverage);
    match (row.mean, row.half_width, row.error) {
        (None, ..) if extent != Extent::Whole => match row.low.zip(row.high) {
            Some((low, high)) => {
                let [low, high] = [low, high].map(|end| Unit::of(&row.metric).text(end));
                match low == high {
                    true => format!("{low}, by the length of all windows"),
                    false => format!("not known ({part}): between {low} and {high}"),
                }
            }
            None => format!("not known ({part})"),
        },
        (None, ..) => "no observation".into(),
        _ if row.basis == Basis::Census => "exact".into(),
        _ if extent == Extent::Part => format!("of {part}, {} of the time", percent(row.coverage)),
        _ if !row.drawn => "of windows summarised".into(),
        (_, Some(_), Some(error)) => format!("± {} {}", percent(error), at()),
        (_, Some(half_width), None) => format!("± {} {}", Unit::of(&row.metric).text(half_width), at()),
        (_, None, _) if row.missing_windows > 0 => "of windows summarised".into(),
        (_, None, _) => "unknown: one rank only".into(),
    }
}

#[cfg(test)]
mod tests {
    use ampl_analysis::estimate::rows;
    use ampl_testkit::synthetic::Synthetic;

    use super::*;

    #[test]
    fn a_line_says_what_is_known_and_from_whom() {
        let mut row = Row {
            window: Some(3),
            group: "all".into(),
            stratum: 0,
            metric: "mpi.time".into(),
            event: "*".into(),
            population: 64,
            kept: 16,
            mean: Some(1.25e6),
            half_width: Some(5e4),
            low: None,
            high: None,
            coverage: 1.0,
            windows: [1, 1],
            confidence: 0.9,
            error: Some(0.04),
            scope: Scope::Window,
            basis: Basis::Trace,
            drawn: true,
            guaranteed: true,
            partial: Some(false),
            missing_windows: 0,
            check: None,
        };
        let text = line(&row);
        for word in ["window 3", "mpi.time", "trace", "1.25 ms", "± 4 % at 90 %", "16 of 64", " guaranteed"]
        {
            assert!(text.contains(word), "{word}: {text}");
        }
        (row.basis, row.kept, row.guaranteed) = (Basis::Census, 64, false);
        assert!(line(&row).contains("exact ") && line(&row).ends_with("exact"), "{}", line(&row));
        (row.basis, row.drawn) = (Basis::Sampled, false);
        (row.kept, row.half_width, row.missing_windows) = (63, None, 1);
        assert_eq!(interval(&row), "of windows summarised");
        let mut text = Vec::new();
        write(&mut text, &[row.clone()], false).unwrap();
        assert!(String::from_utf8(text).unwrap().contains("Up to 1 rank-window without a summary"));
        (row.coverage, row.windows) = (0.95, [3, 4]);
        assert_eq!(interval(&row), "of 3 of 4 windows, 95 % of the time");
        row.mean = None;
        row.coverage = 1.0;
        assert_eq!(interval(&row), "no observation");
        row.coverage = 0.4;
        assert_eq!(interval(&row), "not known (3 of 4 windows)");
        (row.low, row.high) = (Some(2e6), Some(5e6));
        assert_eq!(interval(&row), "not known (3 of 4 windows): between 2 ms and 5 ms");
        assert!(line(&row).ends_with(" -"), "{}", line(&row));
    }

    #[test]
    fn checks_against_everything_recorded_have_a_table() {
        let config = "[output]\nverify = true\n[[metric]]\nname = 'mpi.time'\nrole = 'guide'\n".into();
        let job = Synthetic { config, ranks: 20, size: 8, ..Synthetic::default() };
        let rows = rows(&job.trace(), &job.plan());
        let runs = rows.iter().filter(|row| row.scope == Scope::Run);
        let inside = runs.filter_map(|row| row.check.as_ref()?.windows_inside).next().unwrap();
        let mut text = Vec::new();
        write(&mut text, &rows, false).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("c_trace") && text.contains(&format!("{inside} of 12")), "{text}");
    }
}
