//! Waiting in MPI as sentences: who waits for whom, where, how long, by what data.

use ampl_analysis::matching::Stop;
use ampl_analysis::waits::{Basis, Between, Bound, Kind, Needed, Party, Row, Waits};

use crate::human::{count, duration, percent, plain, plural, wrap};

/// Columns of a row's time.
const TIME: usize = 12;

/// The waits of a run in lines of at most `width` characters.
pub fn text(waits: &Waits, width: usize) -> String {
    let mut lines = Vec::new();
    let mut put = |text: &str, indent: &str| lines.extend(wrap(text, width, indent));
    let mpi = duration(waits.mpi_ns as f64);
    let rest = duration(waits.mpi_ns.saturating_sub(waits.waiting_ns) as f64);
    let least = duration(waits.waiting_ns as f64);
    put(
        &match waits.waiting_ns {
            0 => format!("No waiting is known of in the {mpi} that all ranks spent in MPI."),
            _ => format!(
                "Of {mpi} that all ranks spent in MPI, at least {least} were waiting: each line gives a lower \
                 bound. Of the other {rest} it is not known whether they were."
            ),
        },
        "  ",
    );
    for row in &waits.rows {
        put(&format!("{:>TIME$}  {}", duration(row.ns as f64), sentence(row)), &" ".repeat(TIME + 2));
    }
    if !waits.rows.is_empty() && waits.rows.iter().all(|row| row.causing.ranks.is_none()) {
        put("No rank or host stands out as a cause.", "  ");
    }
    lines.extend(matrix(&waits.between, width));
    let mut put = |text: &str, indent: &str| lines.extend(wrap(text, width, indent));
    if waits.unreturned_ns > 0 {
        let more = duration(waits.unreturned_ns as f64);
        put(
            &format!("Besides, ranks were {more} in calls that had not returned: ampl info names them."),
            "  ",
        );
    }
    if !waits.unexamined.is_empty() {
        let of = |&(function, ns): &(&str, u64)| format!("{} in {function}", duration(ns as f64));
        let all: Vec<String> = waits.unexamined.iter().map(of).collect();
        put(&format!("Not examined, though ranks may wait there: {}.", all.join(", ")), "  ");
    }
    let matched = &waits.matched;
    put(
        &format!(
            "Times of both sides are kept for {} of {}, of all ranks for {} of {}.",
            count(matched.timed_messages),
            plural(matched.messages, "message"),
            count(matched.timed_collectives),
            plural(matched.collectives, "collective")
        ),
        "  ",
    );
    if !waits.lost.is_empty() {
        let ranks = plural(waits.lost.len() as u64, "rank");
        put(
            &format!("The calls of {ranks} are not all recorded: behind the first gap they are not matched."),
            "  ",
        );
    }
    for &(reason, operations) in waits.stopped.iter().filter(|(_, operations)| *operations > 0) {
        put(&format!("Not matched: {}, {}.", plural(operations, "operation"), why(reason)), "  ");
    }
    lines.join("\n") + "\n"
}

/// Columns of the matrix of programs.
const MATRIX: usize = 6;

/// Waits between programs: a matrix of few, else a line for each pair, most time first.
fn matrix(between: &[Between], width: usize) -> Vec<String> {
    if between.is_empty() {
        return Vec::new();
    }
    let mut names: Vec<&str> = Vec::new();
    for cell in between {
        for name in [&cell.waiting[..], &cell.causing[..]] {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    let time = |cell: &Between| format!("{} ({})", duration(cell.ns as f64), percent(cell.share));
    let longest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).max(18);
    let mut lines =
        vec!["Waits between programs, at least (share of the time of the ranks that wait):".to_owned()];
    if names.len() > MATRIX || (longest + 2) * (names.len() + 1) > width {
        let mut cells: Vec<&Between> = between.iter().collect();
        cells.sort_by_key(|cell| std::cmp::Reverse(cell.ns));
        let line = |cell: &&Between| {
            let [waiting, causing] = [&cell.waiting, &cell.causing].map(|name| plain(name));
            format!("  {waiting} waits for {causing}: {}", time(cell))
        };
        lines.extend(cells.iter().take(2 * MATRIX).map(line).flat_map(|line| wrap(&line, width, "    ")));
        if cells.len() > 2 * MATRIX {
            let more = plural((cells.len() - 2 * MATRIX) as u64, "more pair");
            lines.push(format!("  and {more}: ampl efficiency RUN --json"));
        }
        return lines;
    }
    let row = |first: &str, cells: Vec<String>| {
        let cells: String = cells.iter().map(|cell| format!("  {cell:>longest$}")).collect();
        format!("  {:<longest$}{cells}", plain(first)).trim_end().to_owned()
    };
    lines.push(row("waits for:", names.iter().map(|name| plain(name)).collect()));
    for waiting in &names {
        let of =
            |causing: &&str| between.iter().find(|cell| cell.waiting == *waiting && cell.causing == *causing);
        lines.push(row(waiting, names.iter().map(|causing| of(causing).map_or("-".into(), time)).collect()));
    }
    lines
}

fn why(reason: Stop) -> &'static str {
    match reason {
        Stop::Cancelled => "behind a cancelled request",
        Stop::Communicator => "on communicators whose ranks are not known",
        Stop::Threads => "in channels that several threads of a rank use",
        Stop::Source => "where a receive from any source does not tell its source",
        Stop::Rank => "with ranks whose calls are not all recorded",
        Stop::Contradiction => "where calls do not fit each other",
    }
}

/// `rank 3 on node7`, `ranks 0-2`; without the host where the other side is there, too.
fn party(party: &Party, other: &Party) -> String {
    let Some(ranks) = &party.ranks else { return "some ranks".into() };
    let noun = if ranks.len() == 1 { "rank" } else { "ranks" };
    match &party.host {
        Some(host) if party.host != other.host => format!("{noun} {ranks} on {host}"),
        _ => format!("{noun} {ranks}"),
    }
}

fn sentence(row: &Row) -> String {
    let verb = match row.kind {
        Kind::LastToArrive => "to arrive",
        Kind::LateRoot => "to send as the root",
        Kind::EarlyRoot => "to send to the root",
        Kind::LateSender => "to send",
        Kind::LateReceiver => "to receive",
    };
    let waiting = party(&row.waiting, &row.causing);
    let waits = match &row.waiting.ranks {
        Some(ranks) if ranks.len() == 1 => "waits",
        _ => "wait",
    };
    let whom = match (&row.causing.ranks, row.needed) {
        (Some(_), _) => party(&row.causing, &row.waiting),
        (None, Some(_)) => "ranks that cannot be told".into(),
        (None, None) => "other ranks, none of which stands out,".into(),
    };
    let place = match &row.site {
        Some(site) => format!("{} @ {site}", row.function),
        None => row.function.to_owned(),
    };
    // Of a cause that is the main one nowhere there are none.
    let instances = match (row.instances, row.basis, row.kind) {
        (0, ..) => String::new(),
        (calls, Basis::Census, _) => plural(calls, "call") + ", ",
        (messages, _, Kind::LateSender | Kind::LateReceiver) => plural(messages, "message") + ", ",
        (collectives, ..) => plural(collectives, "collective") + ", ",
    };
    let basis = match row.basis {
        Basis::Census => "by all ranks' totals",
        Basis::Trace => "by kept times",
    };
    let bound = if row.bound == Bound::Exact { "exact, " } else { "" };
    let clocks = match row.clock_error_ns {
        Some(error) if error > 0 => {
            format!(", less the error of the times, up to {}", duration(error as f64))
        }
        _ => String::new(),
    };
    let needed = match row.needed {
        Some(Needed::Partners) => {
            "; set sampling.partners = \"keep\" or trace.timing = \"all\" to tell the cause"
        }
        Some(Needed::Times) => "; set trace.timing = \"all\" to tell the cause",
        None => "",
    };
    format!(
        "{waiting} {waits} for {whom} {verb} in {place} ({bound}{instances}up to {} of a rank's time; {basis}{clocks}{needed})",
        percent(row.share)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use ampl_core::units::RankSet;

    #[test]
    fn waits_between_programs_are_a_matrix_or_lines() {
        let cell = |waiting: &str, causing: &str, ns| Between {
            waiting: waiting.into(),
            causing: causing.into(),
            ns,
            share: 0.25,
            bound: Bound::AtLeast,
            basis: Basis::Trace,
        };
        let cells = [cell("air", "ocean", 1_500_000_000), cell("server", "air", 20_000_000)];
        let lines = matrix(&cells, 100);
        let words: Vec<Vec<&str>> = lines.iter().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(words[1], ["waits", "for:", "air", "ocean", "server"]);
        assert_eq!(words[2], ["air", "-", "1.50", "s", "(25", "%)", "-"]);
        assert_eq!((words[3].clone(), words.len()), (vec!["ocean", "-", "-", "-"], 5));
        assert!(lines.iter().all(|line| line.chars().count() <= 100), "{lines:?}");
        let lines = matrix(&cells, 60);
        assert_eq!(lines[1].trim(), "air waits for ocean: 1.50 s (25 %)");
        let many: Vec<Between> = (0..20).map(|at| cell(&format!("p{at}"), "ocean", at)).collect();
        let lines = matrix(&many, 100);
        assert!(lines[1].starts_with("  p19 waits") && lines.last().unwrap().contains("8 more pairs"));
        assert!(matrix(&[], 100).is_empty());
    }

    #[test]
    fn rows_name_both_sides_and_what_they_rest_on() {
        let side = |ranks: &str, host: Option<&str>| Party {
            ranks: RankSet::parse(ranks).ok(),
            host: host.map(str::to_owned),
        };
        let row = Row {
            site: Some("solver.c:42".into()),
            kind: Kind::LateSender,
            waiting: side("0-2", None),
            causing: side("3", Some("node7")),
            instances: 40,
            ns: 1_900_000_000,
            bound: Bound::AtLeast,
            basis: Basis::Trace,
            function: "MPI_Recv",
            share: 0.25,
            clock_error_ns: Some(2000),
            needed: None,
        };
        let waits =
            Waits { rows: vec![row], mpi_ns: 3_000_000_000, waiting_ns: 1_900_000_000, ..Waits::default() };
        let text = text(&waits, 90);
        for part in
            ["at least 1.90 s", "ranks 0-2 wait for rank 3 on node7", "MPI_Recv @ solver.c:42", "2 us"]
        {
            assert!(
                text.replace('\n', " ").replace("  ", "").contains(&part.replace("  ", "")),
                "{part}: {text}"
            );
        }
        assert!(text.lines().all(|line| line.chars().count() <= 90), "{text}");
    }
}
