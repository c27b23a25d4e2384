//! A list of runs for people.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use ampl_analysis::history::{Change, FEWEST, Row, SIGNIFICANCE};
use ampl_analysis::record::{Fact, Record};
use ampl_core::naming::utc;

use crate::human::{count, cut, duration, percent, plain, plural};

/// A change in a list of runs, and what differs between the runs around it.
#[derive(Clone, Debug)]
pub struct Mark {
    /// Index of the first row after the change.
    pub row: usize,
    /// The change of the elapsed time.
    pub change: Change,
    /// Facts that differ: `program: build 12ab, before 34cd`.
    pub differences: Vec<String>,
}

/// Differences that are named.
const NAMED: usize = 6;

/// Facts of two runs that differ, a sentence each.
pub fn differences(before: Vec<Fact>, after: Vec<Fact>) -> Vec<String> {
    let by_key = |facts: Vec<Fact>| -> BTreeMap<(String, String), String> {
        facts.into_iter().map(|Fact { kind, name, value }| ((kind, name), value)).collect()
    };
    let (before, after) = (by_key(before), by_key(after));
    let keys: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    let difference = |key: &(String, String)| {
        let (old, new) = (before.get(key), after.get(key));
        let text = |value: Option<&String>| value.map_or("none", String::as_str).to_owned();
        let (kind, name) = (key.0.replace('_', " "), &key.1);
        let gap = if name.is_empty() { "" } else { " " };
        (old != new).then(|| format!("{kind}{gap}{name}: {}, before {}", text(new), text(old)))
    };
    keys.into_iter().filter_map(difference).collect()
}

/// Writes `rows`, a line each, with the `marks` above their rows.
///
/// # Errors
/// Errors of `out`.
pub fn write(out: &mut impl Write, rows: &[Row], marks: &[Mark]) -> io::Result<()> {
    let widest = |of: fn(&Row) -> &str, title: &str, most: usize| {
        rows.iter().map(|row| of(row).chars().count()).max().unwrap_or(0).clamp(title.len(), most)
    };
    let user = widest(|row| &row.user, "user", 16);
    let app = widest(|row| &row.app, "program", 24);
    writeln!(
        out,
        "{:<19}  {:<user$}  {:<app$}  {:>7}  {:>8}  {:>8}  {:>8}  {:>8}  job",
        "started (UTC)", "user", "program", "ranks", "elapsed", "parallel", "balance", "comm."
    )?;
    let share = |value: Option<f64>| value.map_or_else(|| "-".into(), percent);
    for (index, row) in rows.iter().enumerate() {
        for mark in marks.iter().filter(|mark| mark.row == index) {
            writeln!(out, "{}", sentence(&mark.change))?;
            let named = mark.differences.iter().take(NAMED);
            named.into_iter().try_for_each(|text| writeln!(out, "      {}", plain(text)))?;
            if mark.differences.len() > NAMED {
                let more = (mark.differences.len() - NAMED) as u64;
                writeln!(out, "      and {}", plural(more, "more difference"))?;
            }
        }
        writeln!(
            out,
            "{:<19}  {:<user$}  {:<app$}  {:>7}  {:>8}  {:>8}  {:>8}  {:>8}  {}{}",
            started(row.started_ns),
            cut(&plain(&row.user), user),
            cut(&plain(&row.app), app),
            count(row.ranks.into()),
            duration(row.elapsed_ns as f64),
            share(row.parallel),
            share(row.load_balance),
            share(row.communication),
            plain(&row.job),
            if row.complete { "" } else { " (unfinished)" },
        )?;
    }
    Ok(())
}

/// Facts that may differ between runs which are like `record` as far as what it stores goes; `None` where none may.
pub fn unknown_of(record: &Record) -> Option<&'static str> {
    if record.arguments_private {
        return Some(
            "output.arguments keeps words of the command line out of the records: runs of other programs or inputs may be \
             among these, and a change may be one of theirs",
        );
    }
    (record.programs.len() > 1).then_some(
        "records have the arguments of rank 0's program: runs whose other programs had other arguments may be among these",
    )
}

/// Parts of an archive that are not in its list: `denied` records and `closed` directories, which may not be read, and what
/// is `passed` over; a message and a remedy each.
pub fn left_out(denied: u64, closed: u64, passed: u64) -> Vec<(String, &'static str)> {
    let some = |number: u64, one: &str, many: &str| match number {
        0 => None,
        1 => Some(format!("1 {one}")),
        number => Some(format!("{} {many}", count(number))),
    };
    let parts = [some(denied, "record", "records"), some(closed, "directory", "directories")];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let unread = (!parts.is_empty())
        .then(|| (format!("{} cannot be read", parts.join(" and ")), "ask their owners for permission"));
    let passed = some(
        passed,
        "link, directory too deep or name that is no text is left out",
        "links, directories too deep or names that are no text are left out",
    );
    let fix = "name directories themselves, and give records other names";
    unread.into_iter().chain(passed.map(|what| (what, fix))).collect()
}

/// The line under a list of runs of one kind.
pub fn verdict(rows: &[Row], marks: &[Mark]) -> String {
    let whole = rows.iter().filter(|row| row.complete && row.elapsed_ns > 0).count();
    match (marks.len(), whole) {
        (0, whole) if whole < FEWEST => {
            format!("{}: a change can be told from {FEWEST} on", plural(whole as u64, "finished run"))
        }
        (0, whole) => format!(
            "no change of the elapsed time in {} (test of ranks, {})",
            plural(whole as u64, "finished run"),
            percent(SIGNIFICANCE)
        ),
        (changes, whole) => format!(
            "{} of the elapsed time in {} (test of ranks, {} each)",
            plural(changes as u64, "change"),
            plural(whole as u64, "finished run"),
            percent(SIGNIFICANCE)
        ),
    }
}

/// The change in words: medians of both sides.
fn sentence(change: &Change) -> String {
    let Change { before, after, p, .. } = *change;
    let (word, by) = match after >= before {
        true => ("slower", after / before - 1.0),
        false => ("faster", 1.0 - after / before),
    };
    let p = if p < 0.001 { "p < 0.001".to_owned() } else { format!("p = {p:.3}") };
    format!(
        "  --> {} {word} from here on: {} instead of {} (medians, {p})",
        percent(by),
        duration(after),
        duration(before)
    )
}

/// Start of a run: `2026-11-27 21:30:00`.
pub fn started(ns: u64) -> String {
    let text = utc(ns / 1_000_000_000);
    let part = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
    format!("{}-{}-{} {}:{}:{}", part(0, 4), part(4, 6), part(6, 8), part(9, 11), part(11, 13), part(13, 15))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(started: u64, complete: bool) -> Row {
        Row {
            started_ns: started * 1_000_000_000,
            user: "ann".into(),
            app: "app".into(),
            job: "77".into(),
            ranks: 8,
            elapsed_ns: 2_000_000_000,
            parallel: Some(0.5),
            complete,
            ..Row::default()
        }
    }

    #[test]
    fn runs_are_lines_and_changes_stand_above_theirs() {
        let rows = [row(1_767_225_600, true), row(1_767_225_661, false)];
        let change = Change { at: 1, before: 2e9, after: 3e9, p: 0.002 };
        let differences = (0..8).map(|at| format!("module m{at}")).collect();
        let marks = [Mark { row: 1, change, differences }];
        let mut out = Vec::new();
        write(&mut out, &rows, &marks).unwrap();
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2 + 1 + NAMED + 1 + 1, "{text}");
        assert!(lines[1].starts_with("2026-01-01 00:00:00  ann   app"), "{text}");
        assert!(lines[1].contains("50 %") && lines[1].ends_with("  77"), "{text}");
        let change = lines[2];
        assert!(change.contains("50 % slower from here on: 3 s instead of 2 s"), "{text}");
        assert!(change.contains("p = 0.002") && lines[9].contains("2 more differences"), "{text}");
        assert!(
            lines[10].starts_with("2026-01-01 00:01:01") && lines[10].ends_with("77 (unfinished)"),
            "{text}"
        );
        assert!(verdict(&rows, &marks).starts_with("1 change of"), "{}", verdict(&rows, &marks));
        assert!(verdict(&rows, &[]).contains("from 12 on"), "{}", verdict(&rows, &[]));
        let many = vec![row(1, true); 12];
        assert!(verdict(&many, &[]).starts_with("no change"), "{}", verdict(&many, &[]));
    }

    #[test]
    fn what_likeness_does_not_rest_on_is_said() {
        let of = |programs: &[&str], arguments_private| {
            let programs = programs.iter().map(|&name| name.to_owned()).collect();
            Record { programs, arguments_private, ..Record::default() }
        };
        assert_eq!(unknown_of(&of(&["app"], false)), None);
        assert!(unknown_of(&of(&["app"], true)).is_some_and(|what| what.starts_with("output.arguments")));
        assert!(
            unknown_of(&of(&["sea on 2", "air on 3"], false)).is_some_and(|what| what.contains("rank 0"))
        );
    }

    #[test]
    fn what_is_left_out_is_counted() {
        assert_eq!(left_out(0, 0, 0), []);
        let words = |denied, closed, passed| -> Vec<String> {
            left_out(denied, closed, passed).into_iter().map(|(what, _)| what).collect()
        };
        assert_eq!(words(1, 2_000, 0), ["1 record and 2,000 directories cannot be read"]);
        let both = words(0, 1, 3);
        assert!(both.len() == 2 && both[1].starts_with("3 links, directories"), "{both:?}");
    }

    #[test]
    fn records_of_others_steer_no_terminal() {
        let mut hostile = row(1, true);
        for text in [&mut hostile.user, &mut hostile.app, &mut hostile.job] {
            *text = "\u{1b}[2Ja\rb\u{9b}31m".into();
        }
        let change = Change { at: 0, before: 2e9, after: 3e9, p: 0.002 };
        let marks = [Mark { row: 0, change, differences: vec!["module \u{1b}]0;x\u{7}".into()] }];
        let mut out = Vec::new();
        write(&mut out, &[hostile], &marks).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(!text.replace('\n', "").contains(char::is_control), "{text:?}");
    }
}
