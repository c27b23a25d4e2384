//! Call trees for people: loops in braces with their times, known time, shares.

use std::fmt::Write as _;

use ampl_analysis::callgraph::{Kind, Report, Row, Times};

use crate::human::{capital, count, cut, digits, duration, percent, plural};

/// Trees that are printed: those of most ranks.
const TREES: usize = 4;
/// Lines of each.
const LINES: usize = 120;
/// Least share that is printed.
const LEAST: f64 = 1e-4;
/// Difference from the known time from which on an estimate is printed.
const APART: f64 = 0.005;
/// Columns of numbers before a tree: time, share, calls.
const TIME: usize = 12;
const SHARE: usize = 10;
const CALLS: usize = 14;

/// Facts that are not in the graph.
#[derive(Clone, Copy, Debug, Default)]
pub struct Source {
    /// Bound of the error of each stored duration, as a share of it; `None` where that is not known.
    pub time_error: Option<f64>,
    /// True where a stretch of time was asked for.
    pub is_cut: bool,
}

/// The trees of `report`, in lines of at most `width` columns.
pub fn text(report: &Report, source: Source, width: usize) -> String {
    let mut out = String::new();
    head(&mut out, report, source);
    for tree in report.run.children.iter().take(TREES) {
        let _ = writeln!(out);
        Printer { out: &mut out, width, whole: tree, lines: 0, left: 0 }.tree();
    }
    let more = report.run.children.len().saturating_sub(TREES);
    if more > 0 {
        let ranks = report.run.children.iter().skip(TREES).filter_map(|tree| tree.ranks.as_deref());
        let ranks = ranks.collect::<Vec<_>>().join(",");
        let line = format!("{} more, of ranks {ranks}: name some with --ranks", plural(more as u64, "tree"));
        let _ = writeln!(out, "\n{}", cut(&line, width));
    }
    out
}

fn head(out: &mut String, report: &Report, source: Source) {
    let run = &report.run;
    let ranks = run.ranks.as_deref().unwrap_or_default();
    let _ = writeln!(out, "Call graph of ranks {ranks}: {} calls of MPI", count(run.calls));
    let mut line = |label: &str, text: String| _ = writeln!(out, "  {label:<12}{text}");
    if run.missing_calls > 0 {
        line("not recorded", format!("{}: see 'ampl info'", plural(run.missing_calls, "call")));
    }
    match run.inclusive_ns {
        None => line("times", "of no call: none are stored of these ranks".into()),
        Some(_) => {
            let mut text = format!("of {} of the calls", percent(run.coverage()));
            if source.is_cut {
                text += " that lie in the time asked for; others are left out";
            }
            match source.time_error {
                Some(error) if error > 0.0 => text += &format!(", each stored within {}", percent(error)),
                Some(_) => text += ", stored exactly",
                None => {}
            }
            line("times", text);
        }
    }
    let mut bounds = Vec::new();
    if report.bound > 0.0 {
        bounds.push(percent(report.bound));
    }
    if report.bound_ns > 0 {
        bounds.push(duration(report.bound_ns as f64));
    }
    if !bounds.is_empty() {
        let most = format!("the total is off by {} at most", percent(run.deviation));
        line(
            "bound",
            format!("durations within {} of each other's middle are one; {most}", bounds.join(" or ")),
        );
    }
    line(
        "graph",
        format!(
            "{} for {} of the trees (R_n {}, R_m {})",
            plural(report.nodes, "node"),
            count(report.nodes_uncompressed),
            digits(report.r_n),
            digits(report.r_m)
        ),
    );
    for without in &report.without {
        line("no tree", format!("of rank {}: {}", without.rank, without.reason));
    }
    if !report.damaged_times.is_empty() {
        line("damaged", format!("times of {}", plural(report.damaged_times.len() as u64, "rank")));
    }
}

struct Printer<'a> {
    out: &'a mut String,
    width: usize,
    whole: &'a Row,
    lines: usize,
    /// Rows that were not printed.
    left: usize,
}

impl Printer<'_> {
    fn tree(mut self) {
        let whole = self.whole;
        let name = capital(&whole.name);
        let share = match whole.inclusive_ns {
            Some(known) => {
                let of = if whole.name.starts_with("ranks") { "these ranks" } else { "this rank" };
                let estimate =
                    whole.estimate_ns.filter(|all| (all - known as f64).abs() > APART * known as f64);
                let estimate = estimate.map(|all| format!("; {} estimated of all", duration(all)));
                format!(
                    "share is of {} known time of {of}{}",
                    duration(known as f64),
                    estimate.unwrap_or_default()
                )
            }
            None => "no time is known".into(),
        };
        let is_partly = whole.known_calls > 0 && whole.coverage() < 1.0 - APART;
        let coverage = match is_partly {
            true => format!(" (times of {} of the calls)", percent(whole.coverage())),
            false => String::new(),
        };
        let _ = writeln!(self.out, "{name}: {share}{coverage}");
        let _ = writeln!(self.out, "{:>TIME$}{:>SHARE$}{:>CALLS$}  tree", "time", "share", "calls");
        let indent = 0;
        for row in &whole.children {
            self.row(row, indent);
        }
        if let Some(own) = whole.exclusive_ns.filter(|&own| own > 0) {
            self.line(Some(own), None, "(between calls)", 0);
        }
        if whole.is_cut {
            self.line(None, None, "…", 0);
        }
        if self.left > 0 {
            let more = plural(self.left as u64, "line");
            let _ = writeln!(self.out, "  {more} more: see --json");
        }
    }

    /// A row and its children; a function that holds only another is in one line with it.
    fn row(&mut self, row: &Row, indent: usize) {
        let mut names = vec![row.name.clone()];
        let mut row = row;
        while let [inner] = &row.children[..] {
            if row.kind != Kind::Function || inner.kind != Kind::Function {
                break;
            }
            names.push(inner.name.clone());
            row = inner;
        }
        let is_open = !row.children.is_empty() || row.is_cut;
        let brace = if is_open { " {" } else { "" };
        let times = times(row);
        let label = match row.kind {
            Kind::Loop => format!("{times}{{"),
            Kind::Several => {
                format!("{} summed by place{brace}", plural(row.calls, "call"))
            }
            Kind::Call => match &row.site {
                Some(site) => format!("{times}{} @ {site}", row.name),
                None => format!("{times}{}", row.name),
            },
            Kind::Gap => format!("({} not recorded)", plural(row.missing_calls, "call")),
            _ => format!("{times}{}{brace}", names.join(" > ")),
        };
        let calls = (row.kind != Kind::Gap).then_some(row.calls);
        self.line(row.inclusive_ns, calls, &label, indent);
        for inner in &row.children {
            self.row(inner, indent + 1);
        }
        if row.is_cut {
            self.line(None, None, "…", indent + 1);
        }
        if is_open {
            let own = row.exclusive_ns.filter(|&own| own > 0);
            if let Some(own) = own {
                self.line(Some(own), None, "(between calls)", indent + 1);
            }
            self.line(None, None, "}", indent);
        }
    }

    fn line(&mut self, time_ns: Option<u64>, calls: Option<u64>, label: &str, indent: usize) {
        if self.lines >= LINES {
            self.left += 1;
            return;
        }
        self.lines += 1;
        let time = time_ns.map_or_else(String::new, |time| duration(time as f64));
        let share = match (time_ns, self.whole.inclusive_ns) {
            (Some(time), Some(whole)) if time > 0 && (time as f64) < LEAST * whole as f64 => {
                format!("<{}", percent(LEAST))
            }
            (Some(time), Some(whole)) if whole > 0 => percent(time as f64 / whole as f64),
            _ => String::new(),
        };
        let calls = calls.map_or_else(String::new, count);
        let line = format!(
            "{time:>TIME$}{share:>SHARE$}{calls:>CALLS$}  {:indent$}{label}",
            "",
            indent = 2 * indent
        );
        let _ = writeln!(self.out, "{}", cut(line.trim_end(), self.width));
    }
}

/// `20,000 × `, `2–5 × `; nothing of what comes once.
fn times(row: &Row) -> String {
    match (row.times, row.times_least, row.times_most) {
        (Some(Times::Same(1)) | None, ..) => String::new(),
        (Some(Times::Same(times)), ..) => format!("{} × ", count(times)),
        (Some(Times::Mean(_)), Some(least), Some(most)) => format!("{}–{} × ", count(least), count(most)),
        (Some(Times::Mean(mean)), ..) => format!("{} × ", digits(mean)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, kind: Kind, calls: u64, time_ns: Option<u64>, children: Vec<Row>) -> Row {
        Row {
            name: name.into(),
            kind,
            calls,
            inclusive_ns: time_ns,
            exclusive_ns: time_ns.filter(|_| children.is_empty()),
            deviation: 0.0,
            times: None,
            times_least: None,
            times_most: None,
            visits: None,
            site: (kind == Kind::Call).then(|| "app.c:7".into()),
            ranks: matches!(kind, Kind::Run | Kind::Ranks).then(|| "0-3".into()),
            known_calls: if time_ns.is_some() { calls } else { 0 },
            estimate_ns: time_ns.map(|time| time as f64),
            bytes_sent: Some(0),
            bytes_received: Some(0),
            missing_calls: 0,
            is_cut: false,
            children,
        }
    }

    fn times(row: Row, times: Times, least: u64, most: u64) -> Row {
        Row { times: Some(times), times_least: Some(least), times_most: Some(most), ..row }
    }

    fn report(children: Vec<Row>, time_ns: Option<u64>) -> Report {
        let calls = children.iter().map(|row| row.calls).sum();
        let tree = row("ranks 0-3", Kind::Ranks, calls, time_ns, children);
        let run = row("run", Kind::Run, calls, time_ns, vec![tree]);
        Report {
            nodes: 10,
            nodes_uncompressed: 1000,
            r_n: 100.0,
            r_m: 50.0,
            bytes: 400,
            bytes_uncompressed: 20_000,
            bound: 0.0,
            bound_ns: 0,
            without: Vec::new(),
            damaged_times: Vec::new(),
            run,
        }
    }

    #[test]
    fn loops_have_their_times_and_all_times_a_share_of_what_is_named() {
        let send = times(
            row("MPI_Send", Kind::Call, 60_000, Some(2_000_000_000), Vec::new()),
            Times::Mean(3.0),
            2,
            5,
        );
        let tiny = row("MPI_Wait", Kind::Call, 20_000, Some(20), Vec::new());
        let inner = row("exchange", Kind::Function, 80_000, Some(2_000_000_020), vec![send, tiny]);
        let outer = row("step", Kind::Function, 80_000, Some(2_000_000_020), vec![inner]);
        let body = row("loop", Kind::Loop, 80_000, Some(2_000_000_020), vec![outer]);
        let body = times(body, Times::Same(20_000), 20_000, 20_000);
        let text = text(&report(vec![body], Some(4_000_000_000)), Source::default(), 100);
        assert!(text.contains("share is of 4 s known time of these ranks"), "{text}");
        assert!(text.contains("  20,000 × {\n") && text.contains("step > exchange {\n"), "{text}");
        let line = |part: &str| {
            text.lines().find(|line| line.contains(part)).unwrap().split_whitespace().collect::<Vec<_>>()
        };
        assert_eq!(line("MPI_Send"), ["2", "s", "50", "%", "60,000", "2–5", "×", "MPI_Send", "@", "app.c:7"]);
        assert_eq!(line("MPI_Wait")[2..5], ["<0.0100", "%", "20,000"], "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    }

    #[test]
    fn time_that_is_not_known_is_not_printed() {
        let call = row("MPI_Send", Kind::Call, 8, None, Vec::new());
        let gap = Row { missing_calls: 5, ..row("not recorded", Kind::Gap, 0, None, Vec::new()) };
        let text = text(&report(vec![call, gap], None), Source::default(), 100);
        assert!(text.contains("of no call") && text.contains("no time is known"), "{text}");
        assert!(text.contains("(5 calls not recorded)") && !text.contains('%'), "{text}");
    }
}
