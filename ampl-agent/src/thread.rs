//! One thread of the application: its counts, totals and records.

use std::io;
use std::sync::Arc;

use ampl_core::config::{Keep as Of, SiteTrace};
use ampl_core::mpi::{FUNCTION_COUNT, Function};
use ampl_core::units::WindowId;
use ampl_trace::current::LINE_WORDS;
use ampl_trace::journal::{BlockKind, SITE_WORDS};
use ampl_trace::timing::Settings;
use rustc_hash::FxHashMap;

use crate::accumulate::Totals;
use crate::buffers::Buffers;
use crate::call_end::CallEnd;
use crate::call_sequence::Log;
use crate::current::Current;
use crate::gaps::Gaps;
use crate::governor::Level;
use crate::handles::HandleCache;
use crate::journal::Need;
use crate::known_regions::KnownRegions;
use crate::paths::Paths;
use crate::polls::Polls;
use crate::region_stack::RegionStack;
use crate::regions::Visits;
use crate::repeats::Repeats;
use crate::shared::{OpenWindow, Shared};
use crate::signatures::Signatures;
use crate::sites::{SITE_ENTRIES, SiteTable};
use crate::spin::Spin;
use crate::stream::Stream;
use crate::window::Boundary;

mod close;
mod common_callers;
mod gaps;
mod gather;
mod markers;
mod overhead_check;
mod program;
mod rare;
mod regions;
mod retrospective;
mod short_way;
mod site;
mod steps;
mod structure;

use common_callers::CommonCallers;
pub use overhead_check::CHECK_EVERY;
use overhead_check::LastCheck;
pub use regions::NamedRegion;
pub use short_way::{Settled, Span};
use steps::Steps;

/// One thread's state.
#[derive(Debug)]
pub struct Thread {
    shared: Arc<Shared>,
    counts: &'static mut [u64],
    /// The call that the thread is in, for readers.
    pub current: Current,
    sites: SiteTable,
    /// Functions that the ways to each site have in common.
    common: FxHashMap<u32, CommonCallers>,
    paths: Paths,
    stream: Stream,
    signatures: Signatures,
    repeats: Repeats,
    polls: Polls,
    log: Log,
    buffers: Buffers,
    gaps: Gaps,
    /// Which calls are recorded: all of them, or those of windows that are stored.
    structure: Of,
    /// Cache in front of the process's handles.
    pub handles: HandleCache,
    totals: Totals,
    /// Number of the open window, as this thread has it.
    window: WindowId,
    /// Ticks at which the clock ends that window.
    until: u64,
    /// Ticks until which meeting a marker needs no more than a [credit](crate::marker_credits); 0 where it always does.
    passes_until: u64,
    /// Ticks until which markers [gather](gather) windows.
    gathers_until: u64,
    /// Most windows that gather.
    gathers: usize,
    /// Windows closed since the last [`Thread::take_closings`].
    closings: usize,
    /// True where calls of that window are stored.
    stores: bool,
    /// Level of work done for calls, as far as costs allow.
    level: Level,
    /// The function whose calls end windows.
    marker: Option<u16>,
    marker_sites: Vec<(u32, bool)>,
    /// The program's steps, where windows are to follow them.
    steps: Option<Box<Steps>>,
    /// Position in the sequence: calls, and edges of regions that are recorded.
    sequence: u64,
    nanos_per_tick: f64,
    number: u32,
    /// The agent's own time in windows that are closed, ticks.
    own_before: u64,
    spin: Spin,
    /// Records of calls when this thread joined the open window.
    stored_before: u64,
    /// Memory for the body of a record.
    body: Vec<u64>,
    last_check: LastCheck,
    visits: Visits,
    known_regions: KnownRegions,
    region_stack: RegionStack,
    /// Ticks of rare work, which was measured whole.
    rare_ticks: u64,
    /// Part of `rare_ticks` up to the last window's end.
    rare_before: u64,
    /// Processor time of rare work, ticks.
    rare_own: u64,
    /// Processor time of the agent's calls up to the last [`Thread::was_displaced`], ticks.
    displaced_before: u64,
    /// Ratio of the true cost of calls to the measured one, at least 1.
    surcharge: f64,
    /// True while rare work is under way.
    works_rarely: bool,
    /// True where calls have gone unstored since the last stored one: a pause, a policy.
    skipped: bool,
    /// True where calls of a function are distinguished by call site.
    has_sites: bool,
    /// Policy by site; empty where no policy exists.
    selected: Vec<SiteTrace>,
    /// Metrics that observe a site's calls, one bit each; empty where none does.
    observers: Vec<u64>,
    /// Terminal by site of the latest call there that was looked up.
    latest: Vec<u32>,
    /// Way that the latest call came by.
    way: u8,
    /// Return addresses of each site's ways, from its caller outwards.
    callers: FxHashMap<(u32, u8), Box<[u64]>>,
    /// True where the terminal found last is likely to come again.
    is_likely: bool,
    /// True where repeated calls may take the [short way](short_way).
    is_plain: bool,
    /// True where none may, whatever else holds.
    takes_whole_way: bool,
}

impl Thread {
    /// State for thread `number`; window 0 opens at `now` for thread 0, others join the window then open.
    ///
    /// # Errors
    /// Errors of the journal's file system.
    pub fn new(shared: Arc<Shared>, number: u32, now: u64) -> io::Result<Self> {
        let need = Need::Basic;
        let counters =
            shared.journal.block(need, BlockKind::Counters, number, FUNCTION_COUNT + LINE_WORDS)?;
        let (counters, line) = counters.with_tail(LINE_WORDS);
        let counts = counters.words;
        let sites = shared.journal.block(need, BlockKind::Sites, number, SITE_ENTRIES * SITE_WORDS)?.words;
        let marker = match &shared.boundary {
            Some(Boundary::Call { function, .. }) => Some(function.0),
            _ => None,
        };
        let config = &shared.plan.config;
        let has_paths = config.trace.call_path_depth > 1;
        let exactly = Settings { error: config.trace.time_error, floor_ns: config.trace.time_floor_ns };
        let prices = config.sampling.budget.map(|_| exactly);
        let mut thread = Self {
            counts,
            current: Current::new(line),
            sites: SiteTable::new(sites),
            common: FxHashMap::default(),
            paths: Paths::default(),
            stream: Stream::new(shared.journal.clone(), number, prices)?,
            signatures: Signatures::default(),
            repeats: Repeats::default(),
            polls: Polls::default(),
            log: Log::new(shared.journal.clone(), number)?,
            buffers: Buffers::new(shared.journal.clone(), number, config.trace.addresses),
            gaps: Gaps::new(shared.journal.clone(), number, !has_paths)?,
            structure: shared.plan.config.trace.structure,
            handles: HandleCache::default(),
            totals: Totals::new(&shared.events),
            window: WindowId(0),
            until: u64::MAX,
            passes_until: 0,
            gathers_until: 0,
            gathers: 0,
            closings: 0,
            stores: true,
            level: Level::Kept,
            marker,
            marker_sites: Vec::new(),
            steps: None,
            sequence: 0,
            nanos_per_tick: shared.journal.nanos_per_tick(),
            number,
            own_before: 0,
            spin: Spin::default(),
            rare_own: 0,
            displaced_before: 0,
            stored_before: 0,
            body: Vec::new(),
            last_check: LastCheck::begin(now, shared.journal.nanos_per_tick(), shared.journal.measures()),
            visits: Visits::new(&shared.events.declared),
            known_regions: KnownRegions::default(),
            region_stack: RegionStack::default(),
            rare_ticks: 0,
            rare_before: 0,
            surcharge: 1.0,
            works_rarely: false,
            skipped: false,
            // Metrics and policies of sites need sites to be distinguished.
            has_sites: shared.plan.config.trace.call_sites
                || shared.events.observes_sites()
                || !shared.policies.is_empty(),
            selected: Vec::new(),
            observers: Vec::new(),
            latest: vec![u32::MAX; SITE_ENTRIES],
            way: 0,
            callers: FxHashMap::default(),
            is_likely: false,
            is_plain: false,
            takes_whole_way: false,
            shared,
        };
        thread.search_for_steps();
        let shared = thread.shared.clone();
        let mut open = thread.lock(&shared);
        if number == 0 {
            shared.begin(&mut open, now);
            if let Some(counting) = &mut open.counting {
                counting.restart(now);
            }
        }
        thread.join(&open, now);
        drop(open);
        Ok(thread)
    }

    /// State that the threads of the process share.
    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// True where calls ending now would be stored.
    #[inline]
    pub fn keeps(&self) -> bool {
        self.stores
    }

    /// True where a call that returned at `now` would end a window.
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

    /// The agent's own time in a call, ticks.
    #[inline]
    pub fn add_own(&mut self, ticks: u64) {
        self.totals.own_ticks += ticks;
    }

    /// As [`Thread::add_own`], of the call that led from `start` to `end` and was [noted](Current::polled) last.
    #[inline(always)]
    pub fn add_own_of(&mut self, start: u64, end: u64, ticks: u64) {
        self.totals.own_ticks += ticks;
        self.spin.add(self.current.is_polling(), start, end, ticks);
    }

    /// Before MPI is entered at `now`: counts the call, which may never return, and closes the
    /// windows that end here.
    ///
    /// Returns whether one was closed.
    #[inline]
    pub fn enter(&mut self, function: Function, address: u64, now: u64) -> bool {
        self.begin_call(function, now) && self.end_windows(function, address, now)
    }

    /// As [`Thread::enter`], but leaves the windows to [`Thread::end_windows`], which is to be called if this
    /// returns true. Never panics.
    #[inline]
    pub fn begin_call(&mut self, function: Function, now: u64) -> bool {
        if let Some(count) = self.counts.get_mut(usize::from(function.0)) {
            *count = count.wrapping_add(1);
        }
        now >= self.until || self.shared.window() != self.window || self.marker == Some(function.0)
    }

    /// Takes part in the window open at `now`, closing those that are over; returns whether any was closed.
    #[inline]
    pub fn catch_up(&mut self, now: u64) -> bool {
        if now >= self.until {
            return self.close_periods(now);
        }
        if self.shared.window() != self.window {
            self.follow(now);
        }
        false
    }

    /// After MPI has returned: accumulates and, if kept, records the call.
    ///
    /// Returns whether windows were closed.
    #[inline(always)]
    pub fn leave(&mut self, call: &CallEnd) -> bool {
        if self.shared.is_paused() {
            let of = (call.function, call.address, call.terminal);
            return self.leave_paused(of, [call.start, call.end]);
        }
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
        if call.apart {
            self.totals.sent -= call.sent;
            self.totals.received -= call.received;
        }
        let site = self.visit(call, ticks);
        self.observe_site(site, [ticks, call.sent, call.received]);
        self.record(call, site);
        self.sequence += 1;
        due
    }

    /// Closes the periods that are over at `now`; returns whether this thread closed any.
    #[cold]
    fn close_periods(&mut self, now: u64) -> bool {
        self.rarely(|thread| thread.close_over(now))
    }

    fn close_over(&mut self, now: u64) -> bool {
        let shared = self.shared.clone();
        let mut open = self.lock(&shared);
        let behind = open.window != self.window;
        if behind {
            self.leave_totals(&mut open);
        }
        shared.settle_marker(&mut open);
        let due = now >= open.until;
        let closed = self.close_due(&mut open, now);
        if behind || due {
            self.join(&open, now);
        }
        self.until = open.until;
        closed
    }

    /// Ends the periods that are over at `now`; returns whether any was closed.
    fn close_due(&mut self, open: &mut OpenWindow, now: u64) -> bool {
        let mut closed = false;
        while now >= open.until {
            let end = open.until;
            closed |= self.turn(open, end, now);
            closed |= self.close_empty(open, now, false) > 0;
        }
        closed
    }

    /// Follows another thread to a new window: leaves it this one's totals.
    #[cold]
    fn follow(&mut self, now: u64) {
        let shared = self.shared.clone();
        let mut open = self.lock(&shared);
        self.leave_totals(&mut open);
        self.join(&open, now);
    }

    fn leave_totals(&mut self, open: &mut OpenWindow) {
        self.end_part();
        open.left.merge(&self.totals);
        self.totals.clear();
    }

    /// Ends this thread's part of a window, whose totals go elsewhere.
    fn end_part(&mut self) {
        self.own_before = self.own();
        self.add_stored();
        self.visits.carry(&self.totals);
    }

    /// Adds this thread's totals to the open window: the thread may not make another call.
    pub fn hand_over(&mut self) {
        let shared = self.shared.clone();
        let mut open = self.lock(&shared);
        self.leave_totals(&mut open);
    }

    /// Adds the bytes this thread has stored since it joined the open window.
    fn add_stored(&mut self) {
        let calls = self.stream.calls();
        let stored = calls - std::mem::replace(&mut self.stored_before, calls);
        if self.stream.has_price() {
            let stored = if self.stores { stored } else { 0 };
            let (stored, spent) = self.rarely(|thread| thread.stream.cost(stored));
            self.totals.stored += stored;
            self.totals.spent += spent;
        }
    }

    /// Takes part in the window that is open.
    fn join(&mut self, open: &OpenWindow, now: u64) {
        self.window = open.window;
        self.until = open.until;
        self.passes_until = self.shared.passes_until(open);
        self.nanos_per_tick = self.shared.journal.nanos_per_tick();
        self.gathers_until = self.gathers_until(now);
        self.join_state(open);
        self.begin_stored(open, now);
    }

    /// Begins the thread's window at `now` in the stream: `open`, or one that follows it and is like it.
    fn begin_stored(&mut self, open: &OpenWindow, now: u64) {
        let buffered = self.stores && open.buffered;
        self.stream.begin_window(self.window, buffered, |window| open.decisions.of(window));
        if self.stores {
            let probability = open.union.probability.to_bits();
            self.stream.open(&[self.window.0, now, probability, open.update, self.sequence]);
        }
        self.stored_before = self.stream.calls();
    }

    /// Sets the work done for calls, by the open window and the agent's allowance.
    fn join_state(&mut self, open: &OpenWindow) {
        self.stores = open.stored;
        self.level = open.governor.level();
        self.last_check.stored |= self.stores;
        self.gaps.untimed |= self.is_off();
        self.end_search_if_off();
        self.note_plain();
    }

    /// A newer clock pair has been taken: ticks are converted with it from here on.
    pub fn recalibrate(&mut self) {
        self.nanos_per_tick = self.shared.journal.nanos_per_tick();
    }

    /// `MPI_Finalize` is entered at `now`: the last window ends, flagged partial.
    pub fn finish(&mut self, now: u64) {
        self.close_periods(now);
        let shared = self.shared.clone();
        let mut open = self.lock(&shared);
        open.read_counters(now);
        self.close(&mut open, now, true);
        // No window follows: later calls end none.
        open.until = u64::MAX;
        self.until = u64::MAX;
    }
}
