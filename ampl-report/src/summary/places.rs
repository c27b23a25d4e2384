//! Calls that the ranks of an unfinished run are in.

use std::collections::BTreeMap;

use ampl_analysis::in_call::{self, Named, Pending, Role, Row, Stopped, Where};
use ampl_analysis::stop::Stop;
use ampl_core::units::RankSet;
use ampl_reader::model::{End, EndBasis, Liveness};
use ampl_reader::{Communicators, Symbols, Trace};

use crate::human::{count, duration, percent, plural, ranks as who};
use crate::layout::{Page, field, paragraph, title};

/// Places that are shown, those of most ranks first.
const SHOWN: usize = 6;
/// Peers that are named for one place.
const PEERS: usize = 3;

pub(super) fn write(out: &mut Page, trace: &Trace) {
    let comms = Communicators::of(trace);
    let rows = in_call::rows(trace, &comms, &mut Symbols::default());
    let Some(end) = trace.run.end.filter(|_| !rows.is_empty()) else { return };
    let when = match end.basis {
        EndBasis::Now => "are now",
        EndBasis::Launcher => "were when the launcher returned",
        EndBasis::LastCall => "were at the last call of all; when the job ended is not known",
    };
    title(out, &format!("Where the ranks {when}"));
    let places = together(&rows);
    for place in places.iter().take(SHOWN) {
        paragraph(out, &place.label(), &place.text(end.basis));
    }
    if places.len() > SHOWN {
        let more = count((places.len() - SHOWN) as u64);
        field(out, "", &format!("{more} more places: ampl info --json lists them all"));
    }
    if let Some(share) = in_call::unfinished_share(trace).filter(|&share| share > 0.0) {
        let (unfinished, threads) = (in_call::unfinished_ns(trace) as f64, in_call::threads(trace));
        let share = percent(share);
        let whose = match threads == trace.ranks.len() {
            true => "the ranks' time".to_owned(),
            false => format!("the time of the ranks' {}", plural(threads as u64, "thread")),
        };
        let text = format!("{} in calls that have not returned, {share} of {whose}", duration(unfinished));
        paragraph(out, "unfinished", &text);
    }
    if let Some(stop) = Stop::of(trace, &rows, &comms) {
        stopped(out, &stop, end);
    }
}

fn stopped(out: &mut Page, stop: &Stop, end: End) {
    let ago = |at_ns: i64| {
        let before = match end.basis {
            EndBasis::Now => "ago",
            EndBasis::Launcher => "before the end",
            EndBasis::LastCall => "before the last call of all",
        };
        format!("{} {before}", duration((end.at_ns - at_ns) as f64))
    };
    let (label, text) = match stop {
        Stop::Aborted(ranks) => ("aborted by", format!("{}, which called MPI_Abort", who(ranks))),
        Stop::Outside(Stopped { ranks, at_ns, .. }) => (
            "first to stop",
            format!("{}: not in MPI while others are, the last call was {}", who(ranks), ago(*at_ns)),
        ),
        Stop::Awaited { ranks, by } => {
            let wait = if by.len() == 1 { "waits" } else { "wait" };
            ("waited for", format!("{}: {} {wait} for it, directly or through others", who(ranks), who(by)))
        }
        Stop::Circle { ranks, by } => {
            let circle = match ranks.len() {
                1 => format!("{} waits for itself", who(ranks)),
                _ => format!("{} wait for each other", who(ranks)),
            };
            let wait = if by.len() == 1 { "waits" } else { "wait" };
            let behind = match by.is_empty() {
                true => String::new(),
                false => format!("; {} {wait} for that, directly or through others", who(by)),
            };
            ("in a circle", circle + &behind)
        }
        Stop::First(Stopped { ranks, at_ns, .. }) => {
            ("first to stop", format!("{}: entered or left a call last {}", who(ranks), ago(*at_ns)))
        }
    };
    paragraph(out, label, &text);
}

/// Rows that differ in peers alone, as one.
pub(crate) struct Together<'a> {
    rows: Vec<&'a Row>,
    /// Ranks of all of them.
    pub members: RankSet,
}

/// `rows` with those joined that differ in peers alone; most ranks first.
pub(crate) fn together(rows: &[Row]) -> Vec<Together<'_>> {
    type Key<'a> = (Option<u32>, Option<&'a str>, Option<&'a str>, bool, Option<&'a str>, Option<Liveness>);
    let mut places: BTreeMap<Key<'_>, Vec<&Row>> = BTreeMap::new();
    for row in rows {
        let Where { function, site, polling, last, process, .. } = &row.place;
        let key = (row.thread, function.as_deref(), site.as_deref(), *polling, last.as_deref(), *process);
        places.entry(key).or_default().push(row);
    }
    let mut all: Vec<Together<'_>> = places.into_values().map(Together::of).collect();
    all.sort_by_key(|place| (std::cmp::Reverse(place.members.len()), place.since()));
    all
}

impl<'a> Together<'a> {
    fn of(rows: Vec<&'a Row>) -> Self {
        let members = rows.iter().map(|row| row.members.clone()).collect();
        Self { rows, members }
    }

    /// `ranks 0-3`, or their number where the list is long.
    fn label(&self) -> String {
        let ranks = self.members.to_string();
        match ranks.len() {
            0..=12 => format!("{} {ranks}", if self.members.len() == 1 { "rank" } else { "ranks" }),
            _ => plural(self.members.len(), "rank"),
        }
    }

    /// True where the processes are stopped or gone.
    pub fn is_process_lost(&self) -> bool {
        self.rows.iter().any(|row| row.place.process.is_some())
    }

    fn since(&self) -> i64 {
        self.rows.iter().map(|row| row.since_ns).min().unwrap_or(0)
    }

    /// The call, its peers, and its time so far.
    pub fn text(&self, basis: EndBasis) -> String {
        let Some(first) = self.rows.first() else { return String::new() };
        let place = &first.place;
        let mut text = match (&place.function, &place.last, place.polling) {
            (Some(function), _, true) => format!("polling {function}, which finds nothing"),
            (Some(function), ..) => format!("in {function}"),
            (None, last, _) => {
                let last = last.as_ref().map(|last| format!(" (last: {last})")).unwrap_or_default();
                format!("not in MPI{last}")
            }
        };
        if let Some(site) = &place.site {
            text += &format!(" @ {site}");
        }
        text += &self.whom();
        let longest = self.rows.iter().map(|row| row.for_ns).max().unwrap_or(0);
        let most = self.rows.iter().any(|row| row.at_most);
        let several = self.members.len() > 1;
        let how = match (most, several) {
            (true, _) => "at most ",
            (false, true) => "up to ",
            (false, false) => "",
        };
        text += &match basis {
            EndBasis::LastCall => format!(", since {} after the start", duration(self.since() as f64)),
            _ => format!(", for {how}{}", duration(longest as f64)),
        };
        if let Some(thread) = first.thread {
            text += &format!("; thread {thread}");
        }
        if let Some(process) = place.process {
            text += &format!("; the process is {}", process.name());
        }
        text
    }

    /// Peers of the calls.
    fn whom(&self) -> String {
        let peers: Vec<String> = self.rows.iter().map(|row| whom(&row.place)).collect();
        let mut different = peers.clone();
        different.sort();
        different.dedup();
        match &different[..] {
            [one] if one.is_empty() => String::new(),
            [one] => format!(" {one}"),
            _ => {
                let each = self.rows.iter().zip(&peers).take(PEERS);
                let each: Vec<String> = each.map(|(row, peer)| format!("{}: {peer}", row.ranks)).collect();
                let more = if peers.len() > PEERS { "; …" } else { "" };
                format!(" ({}{more})", each.join("; "))
            }
        }
    }
}

fn whom(place: &Where) -> String {
    let mut parts = Vec::new();
    if let Some(maker) = &place.request_of {
        parts.push(format!("for an {maker}"));
    } else if place.requests > 0 {
        parts.push(format!("for {}{}", plural(place.requests, "request"), pending(&place.pending)));
    }
    parts.extend(peer(&place.peer, place.role));
    if let Some(rank) = place.rank_in_window {
        parts.push(format!("target {rank} of its window"));
    }
    if let Some(dest) = &place.dest {
        parts.push(format!("to {}", named(dest)));
    }
    if let Some(tag) = &place.tag {
        parts.push(format!("tag {}", named(tag)));
    }
    if let Some(comm) = &place.comm {
        parts.push(format!("on {comm}"));
    }
    parts.join(" ")
}

fn named(named: &Named) -> String {
    match named {
        Named::Number(number) => number.to_string(),
        Named::Constant(name) => name.clone(),
    }
}

fn peer(peer: &Option<Named>, role: Option<Role>) -> Option<String> {
    let peer = named(peer.as_ref()?);
    Some(match role? {
        Role::Source => format!("from {peer}"),
        Role::Dest => format!("to {peer}"),
        Role::Root => format!("root {peer}"),
        Role::Target => format!("target {peer}"),
    })
}

/// `: 2 from 1 tag 7, to 3 tag 8`.
fn pending(all: &[Pending]) -> String {
    let one = |one: &Pending| {
        let count = (one.count > 1).then(|| one.count.to_string());
        let whom = peer(&one.peer, one.role).or_else(|| one.function.clone());
        let tag = one.tag.as_ref().map(|tag| format!("tag {}", named(tag)));
        [count, whom, tag].into_iter().flatten().collect::<Vec<_>>().join(" ")
    };
    let each: Vec<String> = all.iter().take(PEERS).map(one).collect();
    match each.is_empty() {
        true => String::new(),
        false => format!(": {}{}", each.join(", "), if all.len() > PEERS { ", …" } else { "" }),
    }
}
