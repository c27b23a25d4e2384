//! The whole table of call sites as text: a line for a place, and its details in the lines below.

use std::fmt::Write;

use ampl_analysis::calls::{Basis, Bytes, CallTable, Late, NOWHERE, Places, Row};

use super::label::{Detail, label};
use super::late;
use crate::human::{bytes, count, duration, percent, plural, wrap};

/// The rows of `table` in lines of `width` columns.
pub fn text(table: &mut CallTable<'_>, width: usize) -> String {
    let CallTable { rows, places } = table;
    let mut out = String::new();
    for row in rows.iter() {
        for (at, line) in wrap(&named(row, places, width), width, "  ").iter().enumerate() {
            let _ = writeln!(out, "{}{line}", if at == 0 && !out.is_empty() { "\n" } else { "" });
        }
        for part in [time(row), messages(row), around(row)].into_iter().flatten() {
            for line in wrap(&format!("    {part}"), width, "      ") {
                let _ = writeln!(out, "{line}");
            }
        }
        // A class of its own says no more than the line above.
        for class in row.sizes.iter().filter(|_| row.sizes.len() > 1) {
            let _ = writeln!(out, "      {}: {}", sizes(&class.bytes), plural(class.calls, "call"));
        }
    }
    if rows.is_empty() {
        out.push_str("no call site has a total\n");
    }
    out
}

/// `MPI_Send @ swap (halo.c:12)`, in `room` columns where it can be shortened so far.
fn named(row: &Row, places: &mut Places<'_>, room: usize) -> String {
    let Some(number) = row.place else { return "(several) @ (further sites)".into() };
    let detail = if row.site.is_some() { Detail::Function } else { Detail::Address };
    label(&places.places[number], &mut places.symbols, detail, room)
}

fn time(row: &Row) -> Option<String> {
    let unreturned = match row.unreturned {
        0 => String::new(),
        calls => {
            let share = row
                .share
                .filter(|_| row.ns == 0)
                .map_or(String::new(), |share| format!(" ({} of the time in MPI)", percent(share)));
            let time = duration(row.unreturned_ns as f64);
            format!(
                "{} that {} not returned, {time}{share}",
                plural(calls, "call"),
                if calls == 1 { "has" } else { "have" }
            )
        }
    };
    match (row.calls, unreturned.as_str()) {
        (0, some) if !some.is_empty() => Some(unreturned),
        (_, "") => returned(row),
        _ => returned(row).map(|text| format!("{text}; {unreturned}")),
    }
}

fn returned(row: &Row) -> Option<String> {
    let mut text = plural(row.calls, "call");
    if let Some(ranks) = row.ranks {
        let _ = write!(text, " of {}", plural(ranks.into(), "rank"));
    }
    let (Some(shortest), Some(longest)) = (row.min_ns, row.max_ns) else {
        return Some(text + "; not timed");
    };
    let _ = write!(text, ", {}", duration(row.ns as f64));
    if let (Some(share), 0) = (row.share, row.unreturned) {
        let _ = write!(text, " ({} of the time in MPI)", percent(share));
    }
    let mean = duration(row.ns as f64 / row.calls.max(1) as f64);
    let _ = write!(text, ", {mean} each ({} to {}", duration(shortest as f64), duration(longest as f64));
    if let Some(rank) = row.max_rank {
        let _ = write!(text, " on rank {rank}");
    }
    text.push(')');
    Some(text)
}

fn messages(row: &Row) -> Option<String> {
    if row.sent == 0 && row.received == 0 && row.bytes.mean.is_none() {
        return None;
    }
    let each = sizes(&row.bytes);
    let mut parts = Vec::new();
    if !each.is_empty() {
        // The message may be shorter than the buffer that a receive posts.
        parts.push(format!("{each} each{}", if row.sent == 0 { " as posted" } else { "" }));
    }
    parts.push(format!("{} sent, {} posted to receive", bytes(row.sent as f64), bytes(row.received as f64)));
    Some(parts.join("; "))
}

/// `8 B`, `8 B to 4.10 kB, mean 512 B`; empty where no size is known.
fn sizes(sizes: &Bytes) -> String {
    let text = |size: u64| bytes(size as f64);
    match *sizes {
        Bytes { min: Some(min), max: Some(max), .. } if min == max => text(min),
        Bytes { min: Some(min), max: Some(max), mean: Some(mean) } => {
            format!("{} to {}, mean {}", text(min), text(max), bytes(mean))
        }
        Bytes { mean: Some(mean), .. } => format!("mean {}", bytes(mean)),
        _ => String::new(),
    }
}

fn around(row: &Row) -> Option<String> {
    let mut parts = Vec::new();
    match (&row.late, row.most_rank, row.most_ns) {
        (Late::Nobody, ..) => parts.push("nobody is late".to_owned()),
        (ranks @ (Late::Ranks { .. } | Late::AllBut { .. }), ..) => parts.extend(late(ranks)),
        (Late::Unknown, Some(rank), Some(ns)) => {
            parts.push(format!("most time on rank {rank}: {}", duration(ns as f64)));
        }
        _ => {}
    }
    match (row.comm_size, row.comm_sizes) {
        (Some(size), _) => parts.push(format!("communicator of {}", plural(size, "rank"))),
        (None, Some([least, most])) => {
            parts.push(format!("communicators of {} to {} ranks", count(least), count(most)))
        }
        _ => {}
    }
    if let Some(peers) = row.peers {
        let number = match (peers.min, peers.max) {
            (min, max) if min == max => plural(max, "peer"),
            (min, max) => format!("{} to {} peers", count(min), count(max)),
        };
        parts.push(format!("{number} a rank{}", if peers.any { ", and anyone" } else { "" }));
    }
    if !row.path.is_empty() {
        let path: Vec<&str> = row.path.iter().map(ampl_reader::sites::Frame::label).collect();
        parts.push(format!("in {}", path.join(" > ")));
    } else if let Some(callers) = row.callers.as_ref().filter(|_| row.site.as_deref() != Some(NOWHERE.0)) {
        let mut names: Vec<&str> = callers.iter().map(String::as_str).collect();
        names.extend(row.several_callers.then_some("several callers"));
        if !names.is_empty() {
            parts.push(format!("called by {} (sampled)", names.join(" < ")));
        }
    }
    if row.calls == 0 {
        return Some(parts.join("; ")).filter(|text| !text.is_empty());
    }
    parts.push(match row.basis {
        Basis::Exact => "exact".into(),
        Basis::Totals => "totals exact, sizes by their sum".into(),
        Basis::Measured => "while measured".into(),
    });
    Some(parts.join("; "))
}
