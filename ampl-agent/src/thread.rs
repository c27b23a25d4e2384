//! One thread of the application: what it counts, accumulates and records.
//!
//! The thread that called `MPI_Init` closes the windows; others notice at their next hook and
//! leave their totals to be added to the window that is then open.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use ampl_core::config::{Keep as Timing, Summaries};
use ampl_core::draw::{Keep, kept};
use ampl_core::message::Directive;
use ampl_core::mpi::{FUNCTION_COUNT, Function};
use ampl_core::plan::Plan;
use ampl_core::units::{Rank, WindowId};
use ampl_trace::journal::{BlockKind, SITE_WORDS};
use ampl_trace::model::Cell;
use ampl_trace::record::{Kind, WINDOW_DRAWN, WINDOW_KEPT, WINDOW_PARTIAL, put_text};

use crate::accumulate::{EventMap, Totals};
use crate::handles::HandleCache;
use crate::journal::Journal;
use crate::sites::{SITE_ENTRIES, SiteTable};
use crate::stream::{CallRecord, Stream};
use crate::window::{Boundary, holds};

/// Path of the module of a return address, and the offset in it.
pub type Resolve = fn(u64) -> (String, u64);

/// What the threads of a process share.
#[derive(Debug)]
pub struct Shared {
    /// The process's journal.
    pub journal: Arc<Journal>,
    /// What the job agreed on.
    pub plan: Plan,
    /// This process.
    pub rank: Rank,
    events: EventMap,
    window: AtomicU64,
    others: Mutex<Option<Totals>>,
    directive: Mutex<InForce>,
    modules: Mutex<Vec<String>>,
    resolve: Resolve,
}

/// The directive in force, and the next one if it starts at a later window.
#[derive(Debug, Default)]
struct InForce {
    now: Option<Directive>,
    next: Option<Directive>,
}

impl Shared {
    /// Shared state of the process that is `rank`.
    pub fn new(journal: Arc<Journal>, plan: Plan, rank: Rank, resolve: Resolve) -> Self {
        Self {
            events: EventMap::new(&plan),
            journal,
            plan,
            rank,
            window: AtomicU64::new(0),
            others: Mutex::new(None),
            directive: Mutex::default(),
            modules: Mutex::default(),
            resolve,
        }
    }

    /// Takes a directive that arrived: in force from its first window, or from the next to open.
    pub fn direct(&self, directive: Directive) {
        let mut held = self.directive.lock().unwrap_or_else(PoisonError::into_inner);
        held.next = Some(directive);
    }

    /// The draw for `window`, and the update that decided it; everything is kept before the first directive.
    fn draw(&self, window: WindowId) -> (Keep, u64) {
        let mut held = self.directive.lock().unwrap_or_else(PoisonError::into_inner);
        if held.next.as_ref().is_some_and(|next| next.first_window <= window) {
            held.now = held.next.take();
        }
        match &held.now {
            Some(directive) => (kept(&self.plan, self.rank, window, directive), directive.update),
            None => (Keep::ALWAYS, 0),
        }
    }

    fn module_number(&self, path: &str) -> (u32, bool) {
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        match modules.iter().position(|have| have == path) {
            Some(index) => (index as u32, false),
            None => {
                modules.push(path.into());
                (modules.len() as u32 - 1, true)
            }
        }
    }
}

/// A window that this rank has finished.
#[derive(Clone, Debug, PartialEq)]
pub struct ClosedWindow {
    /// Its number.
    pub window: WindowId,
    /// One cell per metric of the plan.
    pub cells: Vec<Cell>,
    /// Whether its calls are stored, and how likely that was.
    pub keep: Keep,
}

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
}

/// One thread's state.
#[derive(Debug)]
pub struct Thread {
    shared: Arc<Shared>,
    number: u32,
    counts: &'static mut [u64],
    sites: SiteTable,
    stream: Stream,
    /// Cache in front of the process's handles.
    pub handles: HandleCache,
    totals: Totals,
    window: WindowId,
    opened_at: u64,
    keep: Keep,
    update: u64,
    stores: bool,
    sequence: u64,
    boundary: Option<Boundary>,
    boundary_tick: u64,
    marker_sites: Vec<(u32, bool)>,
    nanos_per_tick: f64,
    /// Part of the totals' own ticks in which another process had the processor.
    waited_ticks: u64,
    closed: VecDeque<ClosedWindow>,
}

impl Thread {
    /// State for thread `number`; window 0 opens at `now` for thread 0, the window then open for others.
    ///
    /// # Errors
    /// That of the journal's file system.
    pub fn new(shared: Arc<Shared>, number: u32, now: u64) -> io::Result<Self> {
        let counts = shared.journal.block(BlockKind::Counters, number, FUNCTION_COUNT)?.words;
        let sites = shared.journal.block(BlockKind::Sites, number, SITE_ENTRIES * SITE_WORDS)?.words;
        let window = &shared.plan.config.window;
        let boundary = if number == 0 { Boundary::new(&window.marker, window.every) } else { None };
        let mut thread = Self {
            number,
            counts,
            sites: SiteTable::new(sites),
            stream: Stream::new(shared.journal.clone(), number)?,
            handles: HandleCache::default(),
            totals: Totals::new(&shared.events),
            window: WindowId(shared.window.load(Ordering::Relaxed)),
            opened_at: now,
            keep: Keep::ALWAYS,
            update: 0,
            stores: true,
            sequence: 0,
            boundary,
            boundary_tick: u64::MAX,
            marker_sites: Vec::new(),
            nanos_per_tick: shared.journal.nanos_per_tick(),
            waited_ticks: 0,
            closed: VecDeque::new(),
            shared,
        };
        thread.open(now);
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
        now >= self.boundary_tick
    }

    /// Number of the thread, 0 for the one that called `MPI_Init`.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The window now open.
    pub fn window(&self) -> WindowId {
        self.window
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
        self.waited_ticks += ticks.saturating_sub(cpu_ticks);
    }

    /// Before MPI is entered at `now`: counts the call, which may never return, and closes the
    /// windows that end here.
    ///
    /// Returns whether one was closed.
    #[inline]
    pub fn enter(&mut self, function: Function, address: u64, now: u64) -> bool {
        self.counts[usize::from(function.0)] += 1;
        match &mut self.boundary {
            Some(Boundary::Period { .. }) => {
                let due = now >= self.boundary_tick;
                if due {
                    self.close_periods(now);
                }
                due
            }
            Some(Boundary::Call { function: marker, .. }) if *marker == function => self.marker(address, now),
            _ => {
                if self.number != 0 && self.shared.window.load(Ordering::Relaxed) != self.window.0 {
                    self.follow(now);
                }
                false
            }
        }
    }

    #[cold]
    fn marker(&mut self, address: u64, now: u64) -> bool {
        let site = self.marker_accepts(address);
        let Some(Boundary::Call { every, met, .. }) = &mut self.boundary else { return false };
        if !site {
            return false;
        }
        *met += 1;
        if *met < *every {
            return false;
        }
        *met = 0;
        self.close(now, false);
        self.open(now);
        true
    }

    fn marker_accepts(&mut self, address: u64) -> bool {
        let Some(Boundary::Call { function, site: Some(ranges), .. }) = &self.boundary else { return true };
        let (index, _) = self.sites.find(address, function.0);
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
        let due = call.end >= self.boundary_tick;
        if due {
            start = self.split(call);
        }
        let ticks = call.end.saturating_sub(call.start);
        self.totals.add_time(call.end.saturating_sub(start));
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
        let mut from = call.start;
        while call.end >= self.boundary_tick {
            let end = self.boundary_tick;
            self.totals.add_time(end.saturating_sub(from));
            from = from.max(end);
            self.close(end, false);
            self.open(end);
        }
        from
    }

    #[cold]
    fn close_periods(&mut self, now: u64) {
        while now >= self.boundary_tick {
            let end = self.boundary_tick;
            self.close(end, false);
            self.open(end);
        }
    }

    /// Another thread has moved on to a new window: leave it what this one has.
    #[cold]
    fn follow(&mut self, now: u64) {
        let mut others = self.shared.others.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *others {
            Some(totals) => totals.merge(&self.totals),
            None => *others = Some(self.totals.clone()),
        }
        drop(others);
        self.totals.clear();
        self.window = WindowId(self.shared.window.load(Ordering::Relaxed));
        self.open(now);
    }

    fn close(&mut self, end: u64, partial: bool) {
        if let Some(others) = self.shared.others.lock().unwrap_or_else(PoisonError::into_inner).take() {
            self.totals.merge(&others);
        }
        let wall = end.saturating_sub(self.opened_at);
        let cells = self.totals.cells(&self.shared.events, wall, self.nanos_per_tick);
        let worked = self.totals.own_ticks.saturating_sub(std::mem::take(&mut self.waited_ticks));
        self.shared.journal.add_own_ticks(worked);
        let sampled = self.shared.plan.config.sampling.summaries == Summaries::Sampled;
        let stated = if sampled && !self.keep.kept { &[][..] } else { &cells[..] };
        let mut body = Vec::with_capacity(8 + cells.len() * 5);
        body.extend([
            self.window.0,
            self.opened_at,
            end,
            self.totals.own_ticks,
            self.keep.probability.to_bits(),
            self.update,
            stated.len() as u64,
        ]);
        for cell in stated {
            body.extend([cell.n, cell.sum, cell.sum_sq, cell.min, cell.max].map(f64::to_bits));
        }
        let kept = self.stores && !self.stream.is_full();
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        let flags =
            flag(kept, WINDOW_KEPT) | flag(self.keep.kept, WINDOW_DRAWN) | flag(partial, WINDOW_PARTIAL);
        self.stream.record(Kind::Window, flags, &body);
        self.closed.push_back(ClosedWindow { window: self.window, cells, keep: self.keep });
        self.totals.clear();
        self.window = self.window.next();
        self.shared.window.store(self.window.0, Ordering::Relaxed);
    }

    fn open(&mut self, now: u64) {
        self.opened_at = now;
        (self.keep, self.update) = self.shared.draw(self.window);
        self.stores = match self.shared.plan.config.trace.timing {
            Timing::Kept => self.keep.kept,
            Timing::All => true,
            Timing::Off => false,
        };
        if self.stores {
            let probability = self.keep.probability.to_bits();
            self.stream.record(Kind::Open, 0, &[self.window.0, now, probability, self.update, self.sequence]);
        }
        if let Some(Boundary::Period { nanos }) = self.boundary {
            let journal = &self.shared.journal;
            let (ticks, first) = journal.first_pair();
            let end = (self.window.0 + 1).saturating_mul(nanos) as i64 - first;
            self.boundary_tick = ticks.saturating_add_signed((end as f64 / journal.nanos_per_tick()) as i64);
        }
    }

    /// A newer clock pair has been taken: ticks are converted with it from here on.
    pub fn recalibrate(&mut self) {
        self.nanos_per_tick = self.shared.journal.nanos_per_tick();
    }

    /// A window finished since the last call, oldest first.
    pub fn take_closed(&mut self) -> Option<ClosedWindow> {
        self.closed.pop_front()
    }

    /// `MPI_Finalize` is entered at `now`: the last window ends, flagged partial.
    pub fn finish(&mut self, now: u64) {
        if self.number == 0 {
            self.close_periods(now);
            self.close(now, true);
        } else {
            self.follow(now);
        }
    }
}
