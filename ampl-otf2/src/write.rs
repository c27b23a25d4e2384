//! Writes the timed calls of a run: regions, messages, collectives, and the stretches without times.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use ampl_analysis::messages::Comm;
use ampl_core::plan::Plan;
use ampl_export::Selection;
use ampl_export::call_rows::{CallRow, CallRows, Written as Calls};
use ampl_export::messages::{self, AtCalls, Side};
use ampl_export::stretch::{Stretch, not_kept};
use ampl_trace::Trace;
use ampl_trace::communicators::Communicators;

use crate::archive::Names;
use crate::library::{CollectiveEnd, Definition, Events, Library, Transfer, UNDEFINED};
use crate::operations::collective;

/// Numbers of what was written.
#[derive(Clone, Copy, Debug, Default)]
pub struct Written {
    /// Calls.
    pub calls: Calls,
    /// Sides of messages.
    pub messages: u64,
}

/// A thread, as the definitions have it.
struct Location {
    number: u64,
    rank: u32,
    thread: u32,
    events: u64,
}

/// Writes the archive into `directory`, which must not exist.
///
/// # Errors
/// Errors of the library, and of writing.
pub fn write(
    library: &Library,
    trace: &Trace,
    plan: &Plan,
    selection: &Selection,
    directory: &Path,
) -> io::Result<Written> {
    let comms = Communicators::of(trace);
    let mut sides = messages::sides(trace, &comms, selection, directory)?;
    let mut rows = CallRows::new(trace, &comms, plan, selection, true);
    let zero_ns = rows.zero_ns();
    let files = library.create(directory)?;
    let (mut names, mut locations) = (Names::default(), Vec::new());
    let mut written = Written::default();
    let mut last = 0;
    for rank in rows.ranks() {
        let number = rank.process.rank;
        let windows = rank.windows.spread();
        let taken = windows.iter().filter(|window| selection.takes_window(window));
        let stretches = not_kept(taken);
        let of_rank = sides.take(number)?;
        let mut open: Option<Thread<'_>> = None;
        let mut all = Vec::new();
        rows.of_rank(rank, |row| {
            if open.as_ref().is_none_or(|thread| thread.thread != row.call.thread) {
                all.extend(open.take());
                open = Some(Thread::new(&files, number, row.call.thread, zero_ns, &stretches)?);
            }
            let thread = open.as_mut().expect("it was just opened");
            let context =
                Context { names: &mut names, comms: &comms, met: &sides.comms, ranks: trace.run.ranks };
            thread.call(row, &of_rank, context, &mut written.messages)
        })?;
        all.extend(open);
        for thread in all {
            last = last.max(thread.last);
            let (location, own) = (thread.location, thread.thread);
            let events = thread.close()?;
            locations.push(Location { number: location, rank: number, thread: own, events });
        }
    }
    // A rank of the world is a location even where it has no event.
    let present: BTreeSet<u64> = locations.iter().map(|location| location.number).collect();
    for rank in 0..trace.run.ranks {
        if !present.contains(&u64::from(rank)) {
            let events = files.events(u64::from(rank))?.close()?;
            locations.push(Location { number: u64::from(rank), rank, thread: 0, events });
        }
    }
    locations.sort_by_key(|location| (location.rank, location.thread));
    let numbers: Vec<u64> = locations.iter().map(|location| location.number).collect();
    files.end_events(&numbers)?;
    define(&files, trace, &mut names, &locations, last, zero_ns)?;
    files.close()?;
    written.calls = rows.written;
    Ok(written)
}

fn define(
    files: &crate::library::Files<'_>,
    trace: &Trace,
    names: &mut Names,
    locations: &[Location],
    last: u64,
    zero_ns: i64,
) -> io::Result<()> {
    let mut to = files.definitions()?;
    let start_ns = trace.run.started_ns.saturating_add_signed(zero_ns);
    to.write(0, &Definition::Clock { resolution: 1_000_000_000, length: last.saturating_add(1), start_ns })?;
    let [all, machine, node, mpi, ranks, unknown] =
        ["all hosts", "machine", "node", "MPI", "ranks", "host not known"].map(|text| names.text(text));
    // Numbers of hosts are those of their names' texts, which no other node has.
    let host_of: Vec<u32> = (0..trace.run.ranks)
        .map(|rank| trace.rank(rank).map_or(unknown, |rank| names.text(&rank.process.host)))
        .collect();
    let process_names: Vec<u32> =
        (0..trace.run.ranks).map(|rank| names.text(&format!("rank {rank}"))).collect();
    let thread_names: Vec<u32> =
        locations.iter().map(|location| names.text(&format!("thread {}", location.thread))).collect();
    names.write_texts(&mut to)?;
    to.write(all, &Definition::Node(all, machine, UNDEFINED))?;
    for host in host_of.iter().copied().collect::<BTreeSet<_>>() {
        to.write(host, &Definition::Node(host, node, all))?;
    }
    for (rank, (&host, &name)) in (0..).zip(host_of.iter().zip(&process_names)) {
        to.write(rank, &Definition::Process(name, host))?;
    }
    for (location, &name) in locations.iter().zip(&thread_names) {
        to.write(0, &Definition::Thread(location.number, name, location.events, location.rank))?;
    }
    let firsts: Vec<u64> = (0..trace.run.ranks).map(u64::from).collect();
    names.write(&mut to, &firsts, mpi, ranks)
}

/// Sources of the numbers of communicators.
struct Context<'a> {
    names: &'a mut Names,
    comms: &'a Communicators,
    /// Communicators of messages.
    met: &'a [(Comm, u32)],
    ranks: u32,
}

impl Context<'_> {
    fn comm(&mut self, comm: Comm, own: u32) -> Option<u32> {
        self.names.comm(comm, own, self.ranks, self.comms)
    }

    /// The communicator that a call names.
    fn named(&mut self, name: &str, rank: u32) -> Option<u32> {
        let comm = match name {
            "world" => Comm::World,
            "self" => Comm::Itself,
            _ => Comm::Made(self.comms.iter().find(|comm| comm.name.to_string() == name)?.name),
        };
        self.comm(comm, rank)
    }
}

/// A thread whose events are written.
struct Thread<'a> {
    events: Events<'a>,
    location: u64,
    thread: u32,
    zero_ns: i64,
    /// Time of the last event.
    last: u64,
    /// Bounds of stretches without times that are still to come: time, true where calls are recorded from there on.
    bounds: std::vec::IntoIter<(i64, bool)>,
    next: Option<(i64, bool)>,
}

impl<'a> Thread<'a> {
    fn new(
        files: &'a crate::library::Files<'_>,
        rank: u32,
        thread: u32,
        zero_ns: i64,
        stretches: &[Stretch],
    ) -> io::Result<Self> {
        // The world's ranks are the locations of their first threads.
        let location = u64::from(thread) << 32 | u64::from(rank);
        let bounds = stretches.iter().flat_map(|stretch| [(stretch.start_ns, false), (stretch.end_ns, true)]);
        let mut bounds = bounds.collect::<Vec<_>>().into_iter();
        let next = bounds.next();
        Ok(Self { events: files.events(location)?, location, thread, zero_ns, last: 0, bounds, next })
    }

    /// Time of the archive, which never goes back.
    fn at(&mut self, ns: i64) -> u64 {
        self.last = self.last.max(ns.saturating_sub(self.zero_ns).max(0) as u64);
        self.last
    }

    /// Marks the bounds of stretches up to a time.
    fn advance(&mut self, until_ns: i64) -> io::Result<()> {
        while let Some((ns, on)) = self.next.filter(|&(ns, _)| ns <= until_ns) {
            let at = self.at(ns);
            self.events.measured(at, on)?;
            self.next = self.bounds.next();
        }
        Ok(())
    }

    fn call(
        &mut self,
        row: &CallRow<'_>,
        sides: &AtCalls,
        mut context: Context<'_>,
        messages: &mut u64,
    ) -> io::Result<()> {
        let Some(timed) = row.call.timed else { return Ok(()) };
        self.advance(timed.start_ns)?;
        let region = context.names.function(row.call.function);
        let at = self.at(timed.start_ns);
        self.events.enter(at, region)?;
        let sides = sides.of(row.call.thread, row.call.seq);
        for side in sides.iter().filter(|side| side.sends) {
            *messages += u64::from(self.message(at, side, &mut context)?);
        }
        let operation = collective(row.call.function).zip(row.comm.as_deref());
        let operation =
            operation.and_then(|(operation, comm)| Some((operation, context.named(comm, row.rank)?)));
        if operation.is_some() {
            self.events.collective_begin(at)?;
        }
        // A call that has not returned has no end.
        let Some(nanos) = timed.duration_ns else { return Ok(()) };
        let end_ns = timed.start_ns.saturating_add_unsigned(nanos);
        self.advance(end_ns)?;
        let at = self.at(end_ns);
        if let Some((operation, comm)) = operation {
            let (sent, received) = row.moved.unwrap_or_default();
            let root = row.root().unwrap_or(UNDEFINED);
            self.events.collective_end(at, &CollectiveEnd { operation, comm, root, sent, received })?;
        }
        for side in sides.iter().filter(|side| !side.sends) {
            *messages += u64::from(self.message(at, side, &mut context)?);
        }
        self.events.leave(at, region)
    }

    fn message(&mut self, at: u64, side: &Side, context: &mut Context<'_>) -> io::Result<bool> {
        let Some(&(comm, own)) = context.met.get(side.comm as usize) else { return Ok(false) };
        // Both sides leave it out then: OTF2 names no ranks of another group.
        let Some(comm) = context.comm(comm, own) else { return Ok(false) };
        let Some(other) = context.names.place(comm, side.other) else { return Ok(false) };
        let tag = u32::try_from(side.tag).unwrap_or_default();
        self.events.message(
            at,
            side.sends,
            &Transfer { other, comm, tag, bytes: side.bytes.unwrap_or_default() },
        )?;
        Ok(true)
    }

    fn close(mut self) -> io::Result<u64> {
        self.advance(i64::MAX)?;
        self.events.close()
    }
}
