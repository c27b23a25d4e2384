//! Calls, time and bytes by function and call site, as a table.

use std::fmt::Write;

use ampl_analysis::query::summary::{Basis, Row, Summary};

use crate::calls::label::fitted;
use crate::human::{bytes, count, duration, fit, percent, plural};

/// Columns of everything behind the name.
const NUMBERS: usize = 66;

/// The rows of `summary` in lines of `width` columns; `ranks` and `time` name the part.
pub fn text(summary: &Summary, width: usize) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}", basis(summary));
    if summary.rows.is_empty() && summary.regions.is_empty() {
        out.push_str("no call belongs to this part\n");
        return out;
    }
    let all: f64 = summary.rows.iter().filter_map(|row| row.inclusive_ns).sum();
    let name = width.saturating_sub(NUMBERS).max(24);
    let _ = writeln!(
        out,
        "\n{:<name$}{:>14}{:>18}{:>12}{:>11}{:>11}",
        "function @ site", "calls", "time", "share", "each", "bytes"
    );
    let is_known = |row: &&Row| row.calls.is_some() || row.inclusive_ns.is_some() || row.known_calls > 0;
    for row in summary.rows.iter().filter(is_known) {
        let _ = writeln!(out, "{}", line(row, all, name));
    }
    let others = summary.rows.iter().filter(|row| !is_known(row)).count();
    if others > 0 {
        let _ = writeln!(out, "({} of which nothing is known)", plural(others as u64, "row"));
    }
    if all > 0.0 {
        let _ = writeln!(out, "\nshare: of the time in these rows, {}", duration(all));
    }
    regions(&mut out, &summary.regions, name);
    out
}

/// Adds the regions, with what of their time is in neither a region nor a call of MPI in them.
fn regions(out: &mut String, regions: &[Row], name: usize) {
    if regions.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "\n{:<name$}{:>14}{:>18}{:>18}{:>16}",
        "region", "visits", "time", "without inner", "each"
    );
    for row in regions {
        let title = fit(row.region.as_deref().unwrap_or_default(), name - 1);
        let visits = row.calls.map_or_else(|| "not known".into(), count);
        let known = |ns: Option<f64>| ns.map_or_else(|| "not known".into(), duration);
        let each = row.inclusive_ns.zip(row.calls).filter(|(_, visits)| *visits > 0);
        let each = each.map_or_else(String::new, |(ns, visits)| duration(ns / visits as f64));
        let (time, own) = (known(row.inclusive_ns), known(row.exclusive_ns));
        let _ = writeln!(
            out,
            "{}",
            format!("{title:<name$}{visits:>14}{time:>18}{own:>18}{each:>16}").trim_end()
        );
    }
}

/// Data that times and calls rest on.
fn basis(summary: &Summary) -> String {
    let extent = &summary.extent;
    let ranks = plural(extent.ranks, "rank");
    if summary.from_census {
        return match summary.rows.iter().any(|row| row.basis == Some(Basis::Census)) {
            true => format!("Calls and times of {ranks}: all of them, by the census"),
            false => format!("Calls of {ranks}: all of them, by the census, which did not time all of them"),
        };
    }
    let windows = plural(extent.windows, "rank-window");
    match (extent.timed, summary.is_estimated) {
        (0, _) => format!("Calls of {ranks}; no times are stored of {windows}"),
        (_, false) => format!("Calls and times of {ranks}: those of all {windows}"),
        (timed, true) => format!(
            "Calls and times of {ranks}: times are stored of {} of {windows}, which stand for all; ± at {} confidence",
            count(timed),
            percent(summary.confidence)
        ),
    }
}

fn line(row: &Row, all: f64, name: usize) -> String {
    let function = row.function.unwrap_or("(several)");
    let title = match &row.site {
        Some(site) => format!("{function} @ {site}"),
        None => function.to_owned(),
    };
    let calls = match (row.calls, row.calls_half_width) {
        (Some(calls), Some(0.0)) => count(calls),
        (Some(calls), _) => format!("~{}", count(calls)),
        (None, _) if row.known_calls > 0 => format!(">={}", count(row.known_calls)),
        (None, _) => "not known".into(),
    };
    let time = match (row.inclusive_ns, row.half_width) {
        (None, _) => "not known".into(),
        (Some(ns), Some(0.0)) => duration(ns),
        (Some(ns), Some(half_width)) if ns > 0.0 => {
            format!("{} ±{}", duration(ns), percent(half_width / ns))
        }
        (Some(ns), _) => format!("~{}", duration(ns)),
    };
    let share = row.inclusive_ns.filter(|_| all > 0.0).map_or(String::new(), |ns| percent(ns / all));
    let each = match (row.inclusive_ns, row.calls) {
        (Some(ns), Some(calls)) if calls > 0 => duration(ns / calls as f64),
        _ => String::new(),
    };
    let moved =
        row.bytes.map_or("not known".into(), |sum| if sum > 0 { bytes(sum as f64) } else { String::new() });
    let title = fitted(&title, name - 1);
    format!("{title:<name$}{calls:>14}{time:>18}{share:>12}{each:>11}{moved:>11}").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ampl_analysis::query::Extent;

    fn row(calls: Option<u64>, known_calls: u64, ns: Option<f64>, half_width: Option<f64>) -> Row {
        Row {
            function: Some("MPI_Send"),
            site: Some("halo.c:12".into()),
            region: None,
            calls,
            inclusive_ns: ns,
            exclusive_ns: ns,
            bytes: None,
            half_width,
            basis: ns.map(|_| Basis::Trace),
            calls_half_width: Some(if calls == Some(known_calls) { 0.0 } else { 3.0 }),
            known_calls,
            error_ns: 0.0,
        }
    }

    fn of(rows: Vec<Row>) -> Summary {
        let extent = Extent { ranks: 2, windows: 8, timed: 3, ..Extent::default() };
        Summary { rows, regions: Vec::new(), extent, confidence: 0.9, is_estimated: true, from_census: false }
    }

    #[test]
    fn numbers_say_what_they_rest_on() {
        let text = text(
            &of(vec![
                row(Some(1200), 1200, Some(3e6), Some(3e5)),
                row(Some(70), 40, Some(1e6), None),
                row(None, 5, None, None),
                row(None, 0, None, None),
            ]),
            100,
        );
        let lines: Vec<String> =
            text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(
            lines,
            [
                "Calls and times of 2 ranks: times are stored of 3 of 8 rank-windows, which stand for all; ± at 90 % \
                 confidence",
                "",
                "function @ site calls time share each bytes",
                "MPI_Send @ halo.c:12 1,200 3 ms ±10 % 75 % 2.50 us not known",
                "MPI_Send @ halo.c:12 ~70 ~1 ms 25 % 14.3 us not known",
                "MPI_Send @ halo.c:12 >=5 not known not known",
                "(1 row of which nothing is known)",
                "",
                "share: of the time in these rows, 4 ms",
            ]
        );
    }

    #[test]
    fn a_part_without_times_has_no_shares() {
        let mut summary = of(vec![row(Some(4), 4, None, None)]);
        (summary.extent.timed, summary.is_estimated) = (0, false);
        let text = text(&summary, 100);
        assert!(text.starts_with("Calls of 2 ranks; no times are stored of 8 rank-windows\n"), "{text}");
        assert!(!text.contains("share:"), "{text}");
        assert!(super::text(&of(Vec::new()), 100).contains("no call belongs"));
    }

    #[test]
    fn regions_have_lines_of_their_own() {
        let mut summary = of(vec![row(Some(4), 4, Some(2e6), Some(0.0))]);
        let named =
            |name: &str, row: Row| Row { function: None, site: None, region: Some(name.into()), ..row };
        let step = Row { exclusive_ns: Some(1e6), ..row(Some(4), 4, Some(8e6), Some(0.0)) };
        summary.regions = vec![named("step", step), named("solve", row(Some(9), 9, None, None))];
        let text = text(&summary, 100);
        let words = |name: &str| -> Vec<&str> {
            let line = text.lines().find(|line| line.starts_with(name));
            line.unwrap_or_else(|| panic!("{text}")).split_whitespace().collect()
        };
        assert_eq!(words("step "), ["step", "4", "8", "ms", "1", "ms", "2", "ms"]);
        assert_eq!(words("solve "), ["solve", "9", "not", "known", "not", "known"]);
        assert!(
            text.contains("share: of the time in these rows, 2 ms"),
            "regions are not among them: {text}"
        );
    }
}
