//! The whole table of call sites, a row each.

use ampl_core::mpi::FUNCTIONS;
use ampl_reader::sites::{Frame, Symbols};
use ampl_trace::Trace;
use ampl_trace::totals::Extreme;
use serde::Serialize;

use super::late_ranks::LateRanks;
use super::lateness::Late;
use super::places::{self, NOWHERE, Number, Parts, Places, time_ns};
use super::recorded::{self, Comms, Recorded};
use super::unreturned::{Unreturned, unreturned};
use crate::counted::is_only_counted;
use crate::coverage::{Coverage, Extent};
use crate::efficiency::measured_share;
use crate::pauses;

/// Data that a row rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// Every call was counted, timed and recorded.
    Exact,
    /// Every call was counted and timed; of message sizes only the sum is known.
    Totals,
    /// Some calls of the run were counted by function only: the row has those that were measured.
    Measured,
}

/// Sizes of messages, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Bytes {
    /// The least; none where it is not known.
    pub min: Option<u64>,
    /// The mean.
    pub mean: Option<f64>,
    /// The most.
    pub max: Option<u64>,
}

/// Calls whose messages are between two powers of two.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SizeClass {
    /// Their sizes.
    pub bytes: Bytes,
    /// Number of calls.
    pub calls: u64,
}

/// The ranks that a rank's calls name as the other ends of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Peers {
    /// The fewest of a rank.
    pub min: u64,
    /// The most of a rank.
    pub max: u64,
    /// True where some call receives from any source.
    pub any: bool,
}

/// A call site; the order of fields is part of the format.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The function; none for calls beyond the table of sites.
    pub function: Option<&'static str>,
    /// Call site; none where sites were not told apart.
    pub site: Option<String>,
    /// From `main` to the call; empty where paths were not told apart.
    pub path: Vec<Frame>,
    /// Calls of all ranks.
    pub calls: u64,
    /// Time in them, nanoseconds.
    pub ns: u64,
    /// `ns` and `unreturned_ns` over the time in MPI of all rows; none without such time, or where calls were only
    /// counted for too long.
    pub share: Option<f64>,
    /// Share of the ranks' time in which calls were measured.
    pub coverage: f64,
    /// Calls that had not returned at the end of the observation; they are in no other number.
    pub unreturned: u64,
    /// Their time until then, nanoseconds.
    pub unreturned_ns: u64,
    /// The shortest call; none where calls are not timed.
    pub min_ns: Option<u64>,
    /// The longest.
    pub max_ns: Option<u64>,
    /// The rank of the longest call.
    pub max_rank: Option<u32>,
    /// The rank that the others wait for; none where no rank is late, or it is not known.
    pub late_rank: Option<u32>,
    /// All ranks that are late, as far as they are known by name, the one that waits least first.
    pub late_ranks: Vec<u32>,
    /// True where more ranks may be late than are known by name.
    pub late_more: bool,
    /// True where lateness is known, even if no rank is late.
    pub late_known: bool,
    /// The rank that took the most time here in all.
    pub most_rank: Option<u32>,
    /// Time that it took, nanoseconds.
    pub most_ns: Option<u64>,
    /// Ranks that call here; none where that is not known.
    pub ranks: Option<u32>,
    /// Sizes of messages: what a call sends, or receives where it sends nothing; of collectives of all blocks.
    pub bytes: Bytes,
    /// The same by size, a row for each power of two.
    pub sizes: Vec<SizeClass>,
    /// Bytes sent in all.
    pub sent: u64,
    /// Bytes received in all.
    pub received: u64,
    /// Size of the communicator; none where that is not known, or there are several sizes.
    pub comm_size: Option<u64>,
    /// The least and the most where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comm_sizes: Option<[u64; 2]>,
    /// Peers of messages; none for calls that name no peer.
    pub peers: Option<Peers>,
    /// Callers outwards from the caller of the site's own function; none where they are not known.
    pub callers: Option<Vec<String>>,
    /// True where calls differ beyond `callers`.
    pub several_callers: bool,
    /// Data that the row rests on.
    pub basis: Basis,
    /// Number of the place; none for calls beyond the table of sites.
    #[serde(skip)]
    pub place: Number,
    /// The ranks that are late.
    #[serde(skip)]
    pub late: Late,
}

/// The call sites of a run, a row each, and their places.
pub struct CallTable<'a> {
    /// The rows, most time first, then most calls.
    pub rows: Vec<Row>,
    /// The places by number.
    pub places: Places<'a>,
}

/// All call sites of `trace`.
pub fn table(trace: &Trace) -> CallTable<'_> {
    let mut places = Places::default();
    let parts = places.parts(trace);
    let mut open = unreturned(trace, &mut places);
    let open_ns: f64 = open.values().map(|calls| calls.ns as f64).sum();
    let all: f64 = parts.values().map(time_ns).sum::<f64>() + open_ns;
    let recorded = recorded::of(trace, |_| true).unwrap_or_default();
    let late = LateRanks::of(trace);
    let measured = is_only_counted(trace) || !pauses::of(trace).is_empty();
    let coverage = measured_share(trace);
    let mut rows: Vec<(Number, Row)> = Vec::with_capacity(parts.len());
    for (&number, parts) in &parts {
        let known = places::recorded(parts, &recorded);
        let row = Row::of(parts, &known, &late, all, measured);
        rows.push((number, row.with(&open.remove(&number).unwrap_or_default(), all)));
    }
    for (&number, calls) in &open {
        let none = Row::of(&Vec::new(), &Recorded::default(), &late, all, measured);
        rows.push((number, none.with(calls, all)));
    }
    let finish = |(number, mut row): (Number, Row)| {
        row.coverage = coverage;
        if Coverage::extent_of(coverage) == Extent::Little {
            row.share = None;
        }
        match number {
            Some(number) => row.named(number, &mut places),
            None => row,
        }
    };
    let mut rows: Vec<Row> = rows.into_iter().map(finish).collect();
    rows.sort_by(|a, b| {
        let time = |row: &Row| row.ns.saturating_add(row.unreturned_ns);
        let order = (time(b), b.calls).cmp(&(time(a), a.calls));
        order.then_with(|| {
            (a.function, &a.site, a.callers_outward()).cmp(&(b.function, &b.site, b.callers_outward()))
        })
    });
    CallTable { rows, places }
}

impl Row {
    fn of(parts: &Parts<'_>, recorded: &Recorded, late: &LateRanks<'_>, all: f64, measured: bool) -> Self {
        let sum = |of: &dyn Fn(&ampl_trace::totals::Total) -> u64| {
            parts.iter().fold(0u64, |sum, part| sum.saturating_add(of(part.total)))
        };
        let (calls, ns) = (sum(&|total| total.calls), sum(&|total| total.time_ns));
        let (sent, received) = (sum(&|total| total.sent), sum(&|total| total.received));
        let timed = || parts.iter().map(|part| part.total).filter(|total| total.time_ns > 0);
        let longest = timed().map(|total| total.longest).max_by_key(most_of);
        let most = timed().map(|total| total.most).max_by_key(most_of);
        // The recorded calls are all only if their number and bytes are the same.
        let whole = recorded.calls == calls && recorded.bytes == Some((sent, received));
        let late = late.at(parts, recorded);
        let sizes: Vec<SizeClass> = match whole {
            true => recorded.sizes.values().map(|sizes| sizes.into()).collect(),
            false => Vec::new(),
        };
        let (comm_size, comm_sizes) = match recorded.comms {
            Comms::Of(least, most) if least == most => (Some(least), None),
            Comms::Of(least, most) => (None, Some([least, most])),
            _ => (None, None),
        };
        Self {
            function: None,
            site: None,
            path: Vec::new(),
            calls,
            ns,
            share: (all > 0.0).then(|| ns as f64 / all),
            coverage: 1.0,
            unreturned: 0,
            unreturned_ns: 0,
            min_ns: timed().map(|total| total.shortest.ns).min(),
            max_ns: longest.map(|one| one.ns),
            max_rank: longest.map(|one| one.rank),
            late_rank: late.first(),
            late_ranks: late.ranks().to_vec(),
            late_more: late.has_more(),
            late_known: late != Late::Unknown,
            most_rank: most.filter(|_| parts.len() == 1).map(|one| one.rank),
            most_ns: most.filter(|_| parts.len() == 1).map(|one| one.ns),
            ranks: match &parts[..] {
                [part] => part.spread.map(|spread| spread.ranks),
                _ => None,
            },
            bytes: match whole {
                true => Bytes::all(&sizes),
                false => Bytes { mean: mean(calls, sent, received), ..Bytes::default() },
            },
            sizes,
            sent,
            received,
            comm_size,
            comm_sizes,
            peers: recorded.peers.map(|(min, max)| Peers { min, max, any: recorded.from_anyone }),
            callers: None,
            several_callers: false,
            basis: match (measured, whole) {
                (true, _) => Basis::Measured,
                (false, true) => Basis::Exact,
                (false, false) => Basis::Totals,
            },
            place: None,
            late,
        }
    }

    /// The row with these calls of its place, where all rows have `all` nanoseconds.
    fn with(self, open: &Unreturned, all: f64) -> Self {
        let ns = self.ns as f64 + open.ns as f64;
        let share = (all > 0.0).then(|| ns / all);
        Self { unreturned: open.calls, unreturned_ns: open.ns, share, ..self }
    }

    /// Names of the frames around the call, the innermost first.
    fn callers_outward(&self) -> Vec<&str> {
        self.path.iter().rev().map(Frame::label).collect()
    }

    /// The row with the site and path of the place `number`.
    fn named(mut self, number: usize, places: &mut Places<'_>) -> Self {
        let Places { places, symbols, .. } = places;
        let place = &places[number];
        let &(module, offset) = place.addresses.first().unwrap_or(&NOWHERE);
        let frame = |symbols: &mut Symbols, (module, offset)| {
            let function = symbols.function(module, offset).map(|function| function.name);
            Frame { function, site: symbols.name(module, offset) }
        };
        self.function = FUNCTIONS.get(usize::from(place.function)).map(|spec| spec.name);
        self.site = (place.addresses != [NOWHERE]).then(|| symbols.name(module, offset));
        if !place.callers.is_empty() {
            let inner = std::iter::once((module, offset)).chain(place.callers.iter().copied());
            self.path = inner.map(|address| frame(symbols, address)).collect();
            self.path.reverse();
        }
        if let Some((functions, several)) = &place.common_callers {
            let name = |&(module, offset): &(&str, u64)| match symbols.function(module, offset) {
                Some(function) => function.name,
                None => symbols.name(module, offset),
            };
            let mut names: Vec<String> = functions.iter().map(name).collect();
            // Frames outside of `main` start programs, and are the same for all.
            if let Some(end) = names.iter().position(|name| name == "main") {
                names.truncate(end + 1);
            }
            self.callers = Some(names);
            self.several_callers = *several;
        }
        self.place = Some(number);
        self
    }
}

fn most_of(one: &Extreme) -> (u64, std::cmp::Reverse<u32>) {
    (one.ns, std::cmp::Reverse(one.rank))
}

/// Mean size of messages by their sum alone: where calls only send, only receive, or as much as they receive.
fn mean(calls: u64, sent: u64, received: u64) -> Option<f64> {
    let bytes = sent.max(received);
    let alone = sent == 0 || received == 0 || sent == received;
    (alone && bytes > 0 && calls > 0).then(|| bytes as f64 / calls as f64)
}

impl Bytes {
    /// Sizes over all `classes`; without numbers where there is no class.
    fn all(classes: &[SizeClass]) -> Self {
        let calls: u64 = classes.iter().map(|class| class.calls).sum();
        let bytes = |class: &SizeClass| class.bytes.mean.unwrap_or(0.0) * class.calls as f64;
        Self {
            min: classes.iter().filter_map(|class| class.bytes.min).min(),
            mean: (calls > 0).then(|| classes.iter().map(bytes).sum::<f64>() / calls as f64),
            max: classes.iter().filter_map(|class| class.bytes.max).max(),
        }
    }
}

impl From<&recorded::Sizes> for SizeClass {
    fn from(sizes: &recorded::Sizes) -> Self {
        let mean = Some(sizes.bytes as f64 / sizes.calls.max(1) as f64);
        Self { bytes: Bytes { min: Some(sizes.least), mean, max: Some(sizes.most) }, calls: sizes.calls }
    }
}
