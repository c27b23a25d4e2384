//! Timeline for Perfetto: a track per rank with its timed calls, the stretches whose times are not kept, and metrics.
//!
//! The file is a `perfetto.protos.Trace`, written in one pass. Field numbers are those of Perfetto's
//! `trace_packet.proto`, `track_event.proto` and `track_descriptor.proto`.

mod names;
mod wire;

use std::io::{self, Write};
use std::path::Path;

use ampl_core::plan::Plan;
use ampl_reader::selection::Selection;
use ampl_trace::communicators::Communicators;
use ampl_trace::model::WindowSummary;
use ampl_trace::{RankTrace, Trace};

use crate::call_rows::{CallRow, CallRows, Written};
use crate::messages::{self, Side};
use crate::stretch::{Stretch, not_kept};
use names::{Kind, Names};
use wire::Message;

/// Fields of `TracePacket`.
mod packet {
    pub const TIMESTAMP: u32 = 8;
    pub const SEQUENCE: u32 = 10;
    pub const EVENT: u32 = 11;
    pub const INTERNED: u32 = 12;
    pub const SEQUENCE_FLAGS: u32 = 13;
    pub const TRACK: u32 = 60;
}

/// Fields of `TrackDescriptor`.
mod track {
    pub const UUID: u32 = 1;
    pub const NAME: u32 = 2;
    pub const PARENT: u32 = 5;
    pub const COUNTER: u32 = 8;
    pub const CHILD_ORDER: u32 = 11;
    pub const RANK_AMONG_SIBLINGS: u32 = 12;
    pub const DESCRIPTION: u32 = 14;
    /// Children are shown by their rank among siblings.
    pub const EXPLICIT: u64 = 3;
}

/// Fields and values of `TrackEvent`.
mod event {
    pub const ANNOTATION: u32 = 4;
    pub const TYPE: u32 = 9;
    pub const NAME: u32 = 10;
    pub const TRACK: u32 = 11;
    pub const DOUBLE_COUNTER: u32 = 44;
    pub const FLOW: u32 = 47;
    pub const FLOW_ENDS: u32 = 48;
    pub const BEGIN: u64 = 1;
    pub const END: u64 = 2;
    pub const COUNTER: u64 = 4;
}

/// Track of the program; those of ranks are in it.
const PROGRAM: u64 = 1;

/// A track of a rank.
#[derive(Clone, Copy)]
enum Track {
    /// The rank, with the calls of its first thread.
    Rank,
    /// Calls of another thread.
    Thread(u32),
    /// Stretches whose times are not kept.
    NotKept,
    /// A metric, by its index.
    Metric(usize),
}

impl Track {
    fn uuid(self, rank: u32) -> u64 {
        let (kind, index) = match self {
            Self::Rank => (0, 0),
            Self::NotKept => (1, 0),
            Self::Thread(thread) => (2, u64::from(thread)),
            Self::Metric(index) => (3, index as u64),
        };
        // Below the sign of a number of 64 bits, which some readers take it for.
        (u64::from(rank) + 1) << 30 | kind << 28 | index & 0xfff_ffff
    }
}

/// Writes the timed calls of `trace` that are asked for. `rank_done` is called behind each rank. Times count from the
/// start of the run, or from the first call where that begins earlier. Messages that do not fit in memory are in a file in
/// `directory` until then.
///
/// # Errors
/// Errors of `out`.
pub fn write(
    trace: &Trace,
    plan: &Plan,
    selection: &Selection,
    out: impl Write,
    directory: &Path,
    mut rank_done: impl FnMut(),
) -> io::Result<Written> {
    let comms = Communicators::of(trace);
    let mut rows = CallRows::new(trace, &comms, plan, selection, true);
    let mut file = File { out, names: Names::default(), zero_ns: rows.zero_ns(), first: true };
    file.program(trace)?;
    let mut sides = messages::sides(trace, &comms, selection, directory)?;
    for rank in rows.ranks() {
        file.rank(rank)?;
        file.windows(trace, rank, selection)?;
        let sides = sides.take(rank.process.rank)?;
        let mut threads = 1;
        rows.of_rank(rank, |row| {
            // Threads come one after the other.
            if row.call.thread >= threads {
                threads = row.call.thread + 1;
                file.thread(row.rank, row.call.thread)?;
            }
            file.call(row, sides.of(row.call.thread, row.call.seq))
        })?;
        rank_done();
    }
    file.out.flush()?;
    Ok(rows.written)
}

struct File<W> {
    out: W,
    names: Names,
    /// Time of the file's zero, nanoseconds since T0.
    zero_ns: i64,
    first: bool,
}

impl<W: Write> File<W> {
    /// Writes a packet with the names that it is the first to use.
    fn packet(&mut self, packet: Message) -> io::Result<()> {
        // The first one begins the state of the sequence, the others need it.
        let flags = if std::mem::take(&mut self.first) { 1 } else { 2 };
        let mut packet = packet.int(packet::SEQUENCE, 1).int(packet::SEQUENCE_FLAGS, flags);
        let new = self.names.take_new();
        if !new.is_empty() {
            packet = packet.message(packet::INTERNED, &new);
        }
        self.out.write_all(Message::default().message(1, &packet).bytes())
    }

    fn event(&mut self, at_ns: i64, event: &Message) -> io::Result<()> {
        let at = at_ns.saturating_sub(self.zero_ns).max(0) as u64;
        self.packet(Message::default().int(packet::TIMESTAMP, at).message(packet::EVENT, event))
    }

    fn track(&mut self, track: &Message) -> io::Result<()> {
        self.packet(Message::default().message(packet::TRACK, track))
    }

    fn program(&mut self, trace: &Trace) -> io::Result<()> {
        let name = trace.run.command.first().map_or("program", String::as_str);
        let name = name.rsplit('/').next().unwrap_or(name);
        let text = format!("ampl: {}", trace.run.command.join(" "));
        let track = Message::default()
            .int(track::UUID, PROGRAM)
            .text(track::NAME, &format!("{name}, {} ranks", trace.run.ranks))
            .text(track::DESCRIPTION, &text)
            .int(track::CHILD_ORDER, track::EXPLICIT);
        self.track(&track)
    }

    fn rank(&mut self, rank: &RankTrace) -> io::Result<()> {
        let process = &rank.process;
        let track = Message::default()
            .int(track::UUID, Track::Rank.uuid(process.rank))
            .text(track::NAME, &format!("rank {} ({})", process.rank, process.host))
            .int(track::PARENT, PROGRAM)
            .int(track::RANK_AMONG_SIBLINGS, process.rank.into());
        self.track(&track)
    }

    fn thread(&mut self, rank: u32, thread: u32) -> io::Result<()> {
        let track = Message::default()
            .int(track::UUID, Track::Thread(thread).uuid(rank))
            .text(track::NAME, &format!("thread {thread}"))
            .int(track::PARENT, Track::Rank.uuid(rank));
        self.track(&track)
    }

    /// Writes the stretches of windows whose times are not kept, and the metrics of all windows.
    fn windows(&mut self, trace: &Trace, rank: &RankTrace, selection: &Selection) -> io::Result<()> {
        let number = rank.process.rank;
        let windows = rank.windows.spread();
        let taken = || windows.iter().filter(|window| selection.takes_window(window));
        if taken().any(|window| !window.kept) {
            let track = Message::default()
                .int(track::UUID, Track::NotKept.uuid(number))
                .text(track::NAME, "times not kept")
                .int(track::PARENT, Track::Rank.uuid(number));
            self.track(&track)?;
        }
        for stretch in not_kept(taken()) {
            self.not_kept(number, &stretch)?;
        }
        for (index, metric) in trace.run.metrics.iter().enumerate() {
            // Times are shares of the window, everything else is per second.
            let (per, unit) = match metric.name.ends_with(".time") || metric.name == "wall" {
                true => ("share of the window", 1.0),
                false => ("per second", 1e-9),
            };
            let value = |window: &WindowSummary| {
                let length = window.end_ns.saturating_sub(window.start_ns).max(0) as f64 * unit;
                let cell = window.cells.iter().nth(index)?;
                (length > 0.0).then(|| cell.sum / length)
            };
            if !taken().any(|window| value(window).is_some()) {
                continue;
            }
            let event = if metric.event == "*" { String::new() } else { format!(" of {}", metric.event) };
            let track = Message::default()
                .int(track::UUID, Track::Metric(index).uuid(number))
                .text(track::NAME, &format!("{}{event}, {per}", metric.name))
                .int(track::PARENT, Track::Rank.uuid(number))
                .message(track::COUNTER, &Message::default());
            self.track(&track)?;
            for window in taken() {
                if let Some(value) = value(window) {
                    let event = Message::default()
                        .int(event::TYPE, event::COUNTER)
                        .int(event::TRACK, Track::Metric(index).uuid(number))
                        .double(event::DOUBLE_COUNTER, value);
                    self.event(window.start_ns, &event)?;
                }
            }
        }
        Ok(())
    }

    fn not_kept(&mut self, rank: u32, stretch: &Stretch) -> io::Result<()> {
        let Stretch { start_ns, end_ns, first, last } = *stretch;
        let name = self.names.number(Kind::Event, "times not kept");
        let windows = self.names.text("windows", &format!("{first}-{last}"));
        let begin = Message::default()
            .int(event::TYPE, event::BEGIN)
            .int(event::TRACK, Track::NotKept.uuid(rank))
            .int(event::NAME, name)
            .message(event::ANNOTATION, &windows);
        self.event(start_ns, &begin)?;
        self.end(Track::NotKept.uuid(rank), end_ns)
    }

    fn end(&mut self, track: u64, at_ns: i64) -> io::Result<()> {
        self.event(at_ns, &Message::default().int(event::TYPE, event::END).int(event::TRACK, track))
    }

    fn call(&mut self, row: &CallRow<'_>, sides: &[Side]) -> io::Result<()> {
        let Some(timed) = row.call.timed else { return Ok(()) };
        let track = match row.call.thread {
            0 => Track::Rank,
            thread => Track::Thread(thread),
        };
        let track = track.uuid(row.rank);
        let mut begin = Message::default()
            .int(event::TYPE, event::BEGIN)
            .int(event::TRACK, track)
            .int(event::NAME, self.names.number(Kind::Event, row.call.function.name()));
        let numbers = [
            ("seq", Some(row.call.seq as i64)),
            ("window", Some(timed.window as i64)),
            ("peer", row.peer()),
            ("tag", row.tag()),
            ("bytes", row.bytes().map(|bytes| bytes as i64)),
            ("count", (row.call.count > 1).then_some(row.call.count as i64)),
        ];
        for (name, value) in numbers {
            if let Some(value) = value {
                begin = begin.message(event::ANNOTATION, &self.names.int(name, value));
            }
        }
        for (name, value) in [("comm", row.comm.as_deref()), ("site", row.site)] {
            if let Some(value) = value {
                begin = begin.message(event::ANNOTATION, &self.names.text(name, value));
            }
        }
        if let Some(weight) = row.weight {
            begin = begin.message(event::ANNOTATION, &self.names.double("weight", weight));
        }
        // Arrows lead from the call that sends to the one that completes the receive.
        for side in sides {
            let field = if side.sends { event::FLOW } else { event::FLOW_ENDS };
            begin = begin.fixed(field, side.number);
        }
        self.event(timed.start_ns, &begin)?;
        // A call that has not returned has no end.
        match timed.duration_ns {
            Some(nanos) => self.end(track, timed.start_ns.saturating_add_unsigned(nanos)),
            None => Ok(()),
        }
    }
}
