//! One thread of the application: what it counts, accumulates and records.

use std::io;
use std::sync::Arc;

use ampl_core::config::Summaries;
use ampl_core::config::site::CodeRange;
use ampl_core::mpi::{FUNCTION_COUNT, Function};
use ampl_core::units::WindowId;
use ampl_trace::journal::{BlockKind, SITE_WORDS};
use ampl_trace::record::{Kind, WINDOW_DRAWN, WINDOW_KEPT, WINDOW_PARTIAL, put_text};

use crate::accumulate::Totals;
use crate::handles::HandleCache;
use crate::shared::{ClosedWindow, Open, Shared};
use crate::sites::{SITE_ENTRIES, SiteTable};
use crate::stream::{CallRecord, Stream};
use crate::window::{Boundary, holds};

/// A call that has returned.
#[derive(Clone, Copy, Debug)]
pub struct CallEnd<'a> {
    /// The function.
    pub function: Function,
    /// Return address into the caller.
    pub address: u64,
    /// Ticks just before MPI was entered and just after it returned.
    pub start: u64,
    /// See `start`.
    pub end: u64,
    /// Bytes sent.
    pub sent: u64,
    /// Bytes received.
    pub received: u64,
    /// Call flags of [`ampl_trace::record`].
    pub flags: u8,
    /// Arguments as of [`ampl_trace::args`]; used only while the thread [keeps](Thread::keeps).
    pub words: &'a [u64],
    /// Whether its time is part of the time in MPI.
    pub timed: bool,
}

/// One thread's state.
#[derive(Debug)]
pub struct Thread {
    shared: Arc<Shared>,
    counts: &'static mut [u64],
    sites: SiteTable,
    stream: Stream,
    /// Cache in front of the process's handles.
    pub handles: HandleCache,
    totals: Totals,
    /// The open window as this thread knows it: its number, when the clock ends it, whether calls are stored.
    window: WindowId,
    until: u64,
    stores: bool,
    /// The function whose calls end windows.
    marker: Option<u16>,
    marker_sites: Vec<(u32, bool)>,
    sequence: u64,
    nanos_per_tick: f64,
}

impl Thread {
    /// State for thread `number`; window 0 opens at `now` for thread 0, others join the window then open.
    ///
    /// # Errors
    /// That of the journal's file system.
    pub fn new(shared: Arc<Shared>, number: u32, now: u64) -> io::Result<Self> {
        let counts = shared.journal.block(BlockKind::Counters, number, FUNCTION_COUNT)?.words;
        let sites = shared.journal.block(BlockKind::Sites, number, SITE_ENTRIES * SITE_WORDS)?.words;
        let marker = match &shared.boundary {
            Some(Boundary::Call { function, .. }) => Some(function.0),
            _ => None,
        };
        let mut thread = Self {
            counts,
            sites: SiteTable::new(sites),
            stream: Stream::new(shared.journal.clone(), number)?,
            handles: HandleCache::default(),
            totals: Totals::new(&shared.events),
            window: WindowId(0),
            until: u64::MAX,
            stores: true,
            marker,
            marker_sites: Vec::new(),
            sequence: 0,
            nanos_per_tick: shared.journal.nanos_per_tick(),
            shared,
        };
        let shared = thread.shared.clone();
        let mut open = shared.lock();
        if number == 0 {
            shared.begin(&mut open, now);
        }
        thread.join(&open, now);
        drop(open);
        Ok(thread)
    }

    /// What the threads of the process share.
    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Whether calls ending now would be stored.
    #[inline]
    pub fn keeps(&self) -> bool {
        self.stores
    }

    /// Whether a call that returned at `now` would end a window.
    #[inline]
    pub fn is_due(&self, now: u64) -> bool {
        now >= self.until
    }

    /// Counts a call that was made before the agent existed, or is only ever counted.
    #[inline]
    pub fn count(&mut self, function: Function, calls: u64) {
        self.counts[usize::from(function.0)] += calls;
    }

    /// Appends a text record.
    pub fn text(&mut self, flags: u8, text: &str) {
        self.stream.text(flags, text);
    }

    /// Appends a record about an object met for the first time.
    pub fn object(&mut self, body: &[u64]) {
        self.stream.record(Kind::Object, 0, body);
    }

    /// The agent's own time in a call, ticks.
    #[inline]
    pub fn add_own(&mut self, ticks: u64) {
        self.totals.own_ticks += ticks;
    }

    /// The agent's own time between calls: `ticks` on the clock, of which the processor worked
    /// `cpu_ns` nanoseconds; it may have gone to another process meanwhile.
    pub fn add_slow(&mut self, ticks: u64, cpu_ns: u64) {
        self.totals.own_ticks += ticks;
        let cpu_ticks = (cpu_ns as f64 / self.nanos_per_tick) as u64;
        self.totals.waited_ticks += ticks.saturating_sub(cpu_ticks);
    }

    /// Before MPI is entered at `now`: counts the call, which may never return, and closes the
    /// windows that end here.
    ///
    /// Returns whether one was closed.
    #[inline]
    pub fn enter(&mut self, function: Function, address: u64, now: u64) -> bool {
        self.counts[usize::from(function.0)] += 1;
        if now >= self.until {
            return self.close_periods(now);
        }
        if self.shared.window() != self.window {
            self.follow(now);
        }
        self.marker == Some(function.0) && self.meets_marker(address, now)
    }

    /// A local call at `now` whose arguments are not recorded: counted, and never timed.
    ///
    /// Returns whether a window was closed.
    #[inline]
    pub fn local(&mut self, function: Function, address: u64, now: u64) -> bool {
        let closed = self.enter(function, address, now);
        self.totals.calls += 1;
        let (site, new) = self.sites.find(address, function.0);
        self.sites.add(site, function.0, 0, 0, 0);
        if new {
            self.new_site(site, address);
        }
        self.sequence += 1;
        closed
    }

    #[cold]
    fn meets_marker(&mut self, address: u64, now: u64) -> bool {
        let shared = self.shared.clone();
        let Some(Boundary::Call { every, site, .. }) = &shared.boundary else { return false };
        if site.as_ref().is_some_and(|ranges| !self.marker_accepts(address, ranges)) {
            return false;
        }
        let mut open = shared.lock();
        open.met += 1;
        if open.met < *every {
            return false;
        }
        self.close(&mut open, now, false);
        shared.begin(&mut open, now);
        self.join(&open, now);
        true
    }

    fn marker_accepts(&mut self, address: u64, ranges: &[CodeRange]) -> bool {
        let marker = self.marker.unwrap_or_default();
        let (index, _) = self.sites.find(address, marker);
        if let Some(&(_, accepts)) = self.marker_sites.iter().find(|(known, _)| *known == index) {
            return accepts;
        }
        let (path, offset) = (self.shared.resolve)(address);
        let accepts = holds(ranges, &path, offset);
        self.define_site(index, &path, offset);
        self.marker_sites.push((index, accepts));
        accepts
    }

    /// Records the call that made this thread's process a rank; window 0 starts behind it.
    pub fn initialised(&mut self, call: &CallEnd<'_>) {
        self.counts[usize::from(call.function.0)] += 1;
        let (site, new) = self.sites.find(call.address, call.function.0);
        if new {
            self.new_site(site, call.address);
        }
        self.record(call, site);
        self.sequence += 1;
    }

    #[inline]
    fn record(&mut self, call: &CallEnd<'_>, site: u32) {
        if self.stores {
            self.stream.call(&CallRecord {
                function: call.function.0,
                flags: call.flags,
                start: call.start,
                duration: call.end.saturating_sub(call.start),
                site,
                words: call.words,
            });
        }
    }

    /// After MPI has returned: accumulates and, if kept, records the call.
    ///
    /// Returns whether windows were closed.
    #[inline]
    pub fn leave(&mut self, call: &CallEnd<'_>) -> bool {
        let mut start = call.start;
        let due = call.end >= self.until;
        if due {
            start = self.split(call);
        }
        // The time of local calls counts nowhere: they are timed only where they are recorded.
        let ticks = if call.timed { call.end.saturating_sub(call.start) } else { 0 };
        if call.timed {
            self.totals.add_time(call.end.saturating_sub(start));
        }
        self.totals.add(call.function, ticks, call.sent, call.received, &self.shared.events);
        let site = self.visit(call, ticks);
        self.record(call, site);
        self.sequence += 1;
        due
    }

    #[inline]
    fn visit(&mut self, call: &CallEnd<'_>, ticks: u64) -> u32 {
        let (site, new) = self.sites.find(call.address, call.function.0);
        self.sites.add(site, call.function.0, ticks, call.sent, call.received);
        if new {
            self.new_site(site, call.address);
        }
        site
    }

    #[cold]
    fn new_site(&mut self, index: u32, address: u64) {
        let (path, offset) = (self.shared.resolve)(address);
        self.define_site(index, &path, offset);
    }

    fn define_site(&mut self, index: u32, path: &str, offset: u64) {
        let (module, new) = self.shared.module_number(path);
        if new {
            let mut body = vec![u64::from(module)];
            put_text(&mut body, path);
            self.stream.record(Kind::Module, 0, &body);
        }
        self.stream.record(Kind::Site, 0, &[u64::from(index), u64::from(module), offset]);
    }

    /// Gives each period that ended inside `call` its part of the call's time; returns where the last part starts.
    #[cold]
    fn split(&mut self, call: &CallEnd<'_>) -> u64 {
        let shared = self.shared.clone();
        let mut open = shared.lock();
        let mut from = call.start;
        if open.window == self.window {
            while call.end >= open.until {
                let end = open.until;
                if call.timed {
                    self.totals.add_time(end.saturating_sub(from));
                }
                from = from.max(end);
                self.close(&mut open, end, false);
                shared.begin(&mut open, end);
            }
        } else {
            // Other threads have closed windows meanwhile: this one's part comes late, whole.
            self.leave_totals(&mut open);
            self.close_due(&mut open, call.end);
        }
        self.join(&open, from);
        from
    }

    /// Closes the periods that are over at `now`; returns whether this thread closed any.
    #[cold]
    fn close_periods(&mut self, now: u64) -> bool {
        let shared = self.shared.clone();
        let mut open = shared.lock();
        let behind = open.window != self.window;
        if behind {
            self.leave_totals(&mut open);
        }
        let closed = self.close_due(&mut open, now);
        if behind || closed {
            self.join(&open, now);
        }
        closed
    }

    fn close_due(&mut self, open: &mut Open, now: u64) -> bool {
        let due = now >= open.until;
        while now >= open.until {
            let end = open.until;
            self.close(open, end, false);
            self.shared.clone().begin(open, end);
        }
        due
    }

    /// Another thread has moved on to a new window: leaves it what this one has.
    #[cold]
    fn follow(&mut self, now: u64) {
        let shared = self.shared.clone();
        let mut open = shared.lock();
        self.leave_totals(&mut open);
        self.join(&open, now);
    }

    fn leave_totals(&mut self, open: &mut Open) {
        open.left.merge(&self.totals);
        self.totals.clear();
    }

    /// Hands what this thread has accumulated to the open window: it may not come by again.
    pub fn hand_over(&mut self) {
        let shared = self.shared.clone();
        self.leave_totals(&mut shared.lock());
    }

    /// Takes part in the window that is open.
    fn join(&mut self, open: &Open, now: u64) {
        self.window = open.window;
        self.until = open.until;
        self.nanos_per_tick = self.shared.journal.nanos_per_tick();
        self.stores = self.shared.stores(open.keep);
        if self.stores {
            let probability = open.keep.probability.to_bits();
            self.stream.record(Kind::Open, 0, &[open.window.0, now, probability, open.update, self.sequence]);
        }
    }

    /// Ends the open window at `end`, with what all threads have left and this one has.
    fn close(&mut self, open: &mut Open, end: u64, partial: bool) {
        self.totals.merge(&open.left);
        open.left.clear();
        let shared = self.shared.clone();
        let wall = end.saturating_sub(open.since);
        let cells = self.totals.cells(&shared.events, wall, self.nanos_per_tick);
        let own = self.totals.own_ticks;
        shared.journal.add_own_ticks(own.saturating_sub(self.totals.waited_ticks));
        let sampled = shared.plan.config.sampling.summaries == Summaries::Sampled;
        let stated = if sampled && !open.keep.kept { &[][..] } else { &cells[..] };
        let mut body = Vec::with_capacity(8 + cells.len() * 5);
        let probability = open.keep.probability.to_bits();
        body.extend([open.window.0, open.since, end, own, probability, open.update, stated.len() as u64]);
        for cell in stated {
            body.extend([cell.n, cell.sum, cell.sum_sq, cell.min, cell.max].map(f64::to_bits));
        }
        let kept = shared.stores(open.keep) && !self.stream.is_full();
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        let flags =
            flag(kept, WINDOW_KEPT) | flag(open.keep.kept, WINDOW_DRAWN) | flag(partial, WINDOW_PARTIAL);
        self.stream.record(Kind::Window, flags, &body);
        open.closed.push_back(ClosedWindow { window: open.window, cells, keep: open.keep });
        self.totals.clear();
        open.window = open.window.next();
    }

    /// A newer clock pair has been taken: ticks are converted with it from here on.
    pub fn recalibrate(&mut self) {
        self.nanos_per_tick = self.shared.journal.nanos_per_tick();
    }

    /// `MPI_Finalize` is entered at `now`: the last window ends, flagged partial.
    pub fn finish(&mut self, now: u64) {
        self.close_periods(now);
        let shared = self.shared.clone();
        let mut open = shared.lock();
        self.close(&mut open, now, true);
        // Nothing follows: what comes too late changes no window any more.
        open.until = u64::MAX;
        self.until = u64::MAX;
    }
}
