//! State that the threads of a process share: the open window, the totals left for it, and the plan of the job.
//!
//! Whichever thread first sees that the window is over closes it, for all of them: it takes the
//! lock, which is free otherwise. The others notice at their next hook, and leave their totals to
//! be added to the window that is then open.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use ampl_core::config::{Keep as Timing, Marker, Mechanism};
use ampl_core::draw::{Keep, kept, stratum};
use ampl_core::message::{Directive, MessageLayout, OwnSteps, StepAnnouncement, StepMarker};
use ampl_core::mpi::{Function, ids};
use ampl_core::plan::Plan;
use ampl_core::units::{Rank, WindowId};
use ampl_core::window_growth::WindowGrowth;

use crate::accumulate::{EventMap, Totals};
use crate::closed::{Closed, ClosedWindow};
use crate::counters::{Counters, Counting, counted};
use crate::declared::{Declared, Irregularities};
use crate::floating::Computing;
use crate::gathered::Gathered;
use crate::governor::{Governor, Level, Limits};
use crate::journal::Journal;
use crate::marker_credits::MarkerCredits;
use crate::partners::{Drawn, Partners};
use crate::policies::Policies;
use crate::window::{Boundary, Pause};
use crate::window_decisions::{DecisionTiming, LateDraw, WindowDecisions};

mod code;
mod credits;
mod ends;
mod steps;

pub use code::{FunctionAround, FunctionName, Resolve};

/// How long the region that ends windows may stay unnamed, nanoseconds since T0: the same moment on every rank.
pub const MARKER_WAIT_NS: u64 = 10_000_000_000;

/// State that the threads of a process share.
#[derive(Debug)]
pub struct Shared {
    /// The process's journal.
    pub journal: Arc<Journal>,
    /// The plan that the ranks agreed on.
    pub plan: Plan,
    /// This process.
    pub rank: Rank,
    pub(crate) events: EventMap,
    pub(crate) boundary: Option<Boundary>,
    /// How windows grow.
    pub(crate) growth: WindowGrowth,
    /// Number of the open window, to be seen without the lock.
    window: AtomicU64,
    /// True where it is in the sample, likewise.
    traced: AtomicBool,
    /// True once the program has named the marker's region.
    marker_known: AtomicBool,
    pub(crate) pause: Pause,
    /// Irregular uses of regions by the program.
    pub irregular: Irregularities,
    open: Mutex<OpenWindow>,
    pub(crate) credits: MarkerCredits,
    directive: Mutex<Directives>,
    /// The first window that began before its directive, which may still come.
    late_from: Option<WindowId>,
    /// Message partners, where windows are kept for partners' sake.
    pub partners: Option<Partners>,
    modules: Mutex<Vec<String>>,
    pub(crate) policies: Policies,
    pub(crate) resolve: Resolve,
    /// Calls that the process makes once in each step.
    named_steps: Mutex<Option<OwnSteps>>,
    /// Steps that windows are to follow.
    announced_steps: Mutex<Option<StepAnnouncement>>,
    functions: OnceLock<FunctionAround>,
    function_names: OnceLock<FunctionName>,
}

/// The window now open.
#[derive(Debug)]
pub(crate) struct OpenWindow {
    pub window: WindowId,
    pub since: u64,
    /// Ticks at which it ends, if the clock ends windows.
    pub until: u64,
    pub keep: Keep,
    /// Draw for the rank and its partners, with its probability; equal to `keep` where partners do not matter.
    pub union: Keep,
    /// The update that decided `keep`.
    pub update: u64,
    /// The stratum that it was drawn in, where the rank's group is divided.
    pub stratum: Option<u16>,
    /// True where its calls are stored, all of them so far.
    pub stored: bool,
    /// True where they are buffered until a decision after its end.
    pub buffered: bool,
    /// True where all of them are stored, and a decision after its end is only marked.
    pub marked: bool,
    /// Timing of decisions, as long as the agent can afford it.
    pub after: DecisionTiming,
    pub decisions: WindowDecisions,
    /// True where all of it so far has been summarised.
    pub measured: bool,
    /// Windows before it that are not yet reported, none of which was summarised. They are reported with it.
    pub unreported: u64,
    /// Markers [granted](MarkerCredits).
    pub granted: u64,
    pub governor: Governor,
    pub counting: Option<Counting>,
    /// Markers met in it.
    pub markers_met: u64,
    /// True where the clock ends windows, because the marker's region was not named in time, or steps do not go on.
    pub fallen_back: bool,
    /// When windows follow steps, once they are announced; of the calls the first.
    pub steps: Option<StepMarker>,
    /// True where these replace others: the clock ends no window before the first visit.
    pub replaced: bool,
    /// Ticks paused before it began.
    pub paused_before: u64,
    /// Totals that threads have left for it.
    pub left: Totals,
    pub closed: Closed,
    pub gathered: Gathered,
}

/// The open window, for one thread alone.
pub(crate) type Guard<'a> = Computing<MutexGuard<'a, OpenWindow>>;

/// The directive in force, and the next one if it starts at a later window.
#[derive(Debug, Default)]
struct Directives {
    now: Option<Directive>,
    next: Option<Directive>,
    /// The rank's draw by `now` for one update interval, and the interval, where that is one draw.
    own: Option<(u64, Keep)>,
    /// The draw by `now` for the rank and its partners.
    drawn: Option<Drawn>,
}

impl OpenWindow {
    /// Reads the counters at `now`, when windows are about to be closed.
    pub fn read_counters(&mut self, now: u64) {
        if let Some(counting) = &mut self.counting {
            counting.read(now);
        }
    }
}

impl Shared {
    /// Shared state of the process that is `rank`. No window is open before the first thread is there.
    pub fn new(journal: Arc<Journal>, plan: Plan, rank: Rank, resolve: Resolve) -> Self {
        let events = EventMap::new(&plan);
        let retrospective = MessageLayout::of(&plan).retrospective;
        let policies = Policies::new(&plan);
        let open = OpenWindow {
            window: WindowId(0),
            since: 0,
            until: u64::MAX,
            keep: Keep::ALWAYS,
            union: Keep::ALWAYS,
            update: 0,
            stratum: None,
            stored: false,
            buffered: false,
            marked: false,
            after: DecisionTiming::of(&plan, rank, retrospective.as_ref()),
            decisions: WindowDecisions::default(),
            measured: true,
            unreported: 0,
            granted: 0,
            governor: Governor::new(Limits::of(&plan.config), plan.config.trace.structure == Timing::All),
            counting: None,
            markers_met: 0,
            fallen_back: false,
            steps: None,
            replaced: false,
            paused_before: 0,
            left: Totals::new(&events),
            closed: Closed::default(),
            gathered: Gathered::default(),
        };
        Self {
            boundary: Boundary::new(&plan.config.window.marker, plan.config.window.every),
            growth: WindowGrowth::new(plan.config.window.max),
            events,
            journal,
            partners: plan.config.sampling.partners.then(Partners::default),
            plan,
            rank,
            window: AtomicU64::new(0),
            traced: AtomicBool::new(true),
            marker_known: AtomicBool::new(false),
            pause: Pause::default(),
            irregular: Irregularities::default(),
            open: Mutex::new(open),
            credits: MarkerCredits::default(),
            directive: Mutex::default(),
            late_from: retrospective.and_then(|retrospective| retrospective.until),
            modules: Mutex::default(),
            policies,
            resolve,
            named_steps: Mutex::default(),
            announced_steps: Mutex::default(),
            functions: OnceLock::new(),
            function_names: OnceLock::new(),
        }
    }

    /// Has `source` read at the end of every window; it fills the places that [`counted`] names. To be called before
    /// the first thread registers.
    pub fn count_with(&self, source: Box<dyn Counters>) {
        self.lock().counting = Some(Counting::new(source, counted(&self.plan)));
    }

    /// Number of the window now open, counting those that were passed over.
    pub fn window_now(&self) -> WindowId {
        drop(self.lock());
        self.window()
    }

    /// The window open when the lock was held last.
    #[inline]
    pub fn window(&self) -> WindowId {
        WindowId(self.window.load(Ordering::Relaxed))
    }

    /// True where the open window is in the sample, ampl is not paused, and costs allow storing calls.
    pub fn is_traced(&self) -> bool {
        self.decision_now().1
    }

    /// Number of the window now open, and whether it [is traced](Self::is_traced).
    pub fn decision_now(&self) -> (WindowId, bool) {
        let open = self.lock();
        let traced = match open.gathered.len() {
            0 => self.traced.load(Ordering::Relaxed),
            _ => self.will_draw(self.window()) && open.governor.level() == Level::Kept,
        };
        (self.window(), traced && !self.is_paused())
    }

    /// True where the rank is drawn in `window`, which begins behind others that have no draw yet.
    fn will_draw(&self, window: WindowId) -> bool {
        let held = self.directive.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = |next: &&Directive| next.first_window <= window;
        let directive = held.next.as_ref().filter(begun).or(held.now.as_ref());
        directive.is_none_or(|directive| kept(&self.plan, self.rank, window, directive).kept)
    }

    /// True where the program has paused ampl.
    #[inline]
    pub fn is_paused(&self) -> bool {
        self.pause.is_on()
    }

    /// Ticks until `now` in which the program had not paused ampl.
    pub fn unpaused(&self, now: u64) -> u64 {
        now - self.pause.ticks(now)
    }

    /// Regions and metrics of the program that the configuration names.
    pub fn declared(&self) -> &Declared {
        &self.events.declared
    }

    /// Notes that the program has named a region: if it is the marker's, the marker is waited for.
    pub fn know_region(&self, name: &str) {
        if self.marker_known.load(Ordering::Relaxed) {
            return;
        }
        if matches!(&self.plan.config.window.marker, Marker::Region(marker) if marker == name) {
            self.marker_known.store(true, Ordering::Relaxed);
        }
    }

    /// Lets the first window go on without end where the marker is sure to come.
    pub(crate) fn settle_marker(&self, open: &mut OpenWindow) {
        let waits = matches!(self.boundary, Some(Boundary::Region { .. })) && open.window.0 == 0;
        if waits && self.marker_known.load(Ordering::Relaxed) {
            open.until = u64::MAX;
        }
    }

    /// True where windows end at a marker that the program has not once met. Valid when the run is over.
    pub(crate) fn lacks_marker(&self) -> bool {
        let open = self.lock();
        !matches!(self.boundary, None | Some(Boundary::Period { .. } | Boundary::Steps { .. }))
            && (open.fallen_back || (open.window.0 <= 1 && open.markers_met == 0))
    }

    /// True where the clock ended windows instead.
    pub(crate) fn fell_back(&self) -> bool {
        self.lock().fallen_back
    }

    /// Adds the totals of a thread without a journal to the open window.
    pub(crate) fn leave(&self, totals: &Totals) {
        self.lock().left.merge(totals);
    }

    /// True where calls of `function` need more than a count: a metric observes it, or windows end there.
    pub fn observes(&self, function: Function) -> bool {
        let ends = self.marker().is_some_and(|(marker, _)| marker == function);
        // Its level matters, whatever ends windows.
        ends || function == ids::MPI_PCONTROL || self.events.observes(function)
    }

    /// The function whose calls end windows, and true where only those made in some place do.
    pub fn marker(&self) -> Option<(Function, bool)> {
        match &self.boundary {
            Some(Boundary::Call { function, site, .. }) => Some((*function, site.is_some())),
            _ => None,
        }
    }

    /// A window finished since the last call, oldest first.
    pub fn take_closed(&self) -> Option<ClosedWindow> {
        self.lock().closed.take()
    }

    /// Decides windows without waiting for the client, as they were drawn: there is no more room for calls of
    /// `window`, the oldest that is buffered. Returns whether the open one has been decided, and how.
    pub(crate) fn force(&self, open: &mut OpenWindow, window: WindowId) -> Option<bool> {
        if window < open.window {
            open.decisions.force(window);
            return None;
        }
        if open.buffered {
            open.buffered = false;
            open.stored &= self.stores(open.union);
            open.decisions.force_open(window, open.stored);
        }
        Some(open.stored)
    }

    /// The oldest window that is over and undecided, if it was to be drawn by a directive that has come since; a draw
    /// never covers several that were closed together.
    pub(crate) fn drawn_late(&self) -> Option<(WindowId, Option<LateDraw>)> {
        let from = self.late_from?;
        let (first, last) = self.lock().decisions.oldest().filter(|&(first, _)| first >= from)?;
        let held = self.directive.lock().unwrap_or_else(PoisonError::into_inner);
        let come = |directive: &&Directive| directive.update > 0 && directive.first_window <= first;
        let directive = held.now.iter().chain(&held.next).find(come)?;
        let draw = (first == last).then(|| LateDraw {
            keep: kept(&self.plan, self.rank, first, directive),
            stratum: stratum(&self.plan, self.rank, directive),
            update: directive.update,
        });
        Some((last, draw))
    }

    /// Takes a directive that arrived: in force from its first window, or from the next to open.
    pub fn direct(&self, directive: Directive) {
        let mut held = self.directive.lock().unwrap_or_else(PoisonError::into_inner);
        held.next = Some(directive);
        drop(held);
        // Marker credits were granted without knowing of it.
        drop(self.lock());
    }

    /// The open window, locked, with floating-point state saved. No thread meets markers without the lock until credits
    /// are granted again.
    pub(crate) fn lock(&self) -> Guard<'_> {
        let mut open = Computing::with(self.open.lock().unwrap_or_else(PoisonError::into_inner));
        self.reclaim(&mut open);
        open
    }

    /// How long the windows from the open one on have been watched until `end`, and how long paused; ticks.
    pub(crate) fn length(&self, open: &OpenWindow, end: u64) -> (u64, u64) {
        let paused = self.pause.ticks(end).saturating_sub(open.paused_before);
        (end.saturating_sub(open.since).saturating_sub(paused), paused)
    }

    /// Opens the window numbered in `open` at `now`.
    pub(crate) fn begin(&self, open: &mut OpenWindow, now: u64) {
        self.begin_unseen(open, now);
        self.publish(open);
    }

    /// As [`begin`](Self::begin), but not published to other threads.
    pub(crate) fn begin_unseen(&self, open: &mut OpenWindow, now: u64) {
        open.since = now;
        (open.keep, open.union, open.update, open.stratum) = self.draw(open.window);
        let level = open.governor.level();
        let after = open.after.decides(open.update);
        open.marked = after && self.plan.config.stores_everything();
        open.buffered = after && !open.marked && level == Level::Kept && !self.journal.is_short();
        open.stored = (open.buffered || self.stores(open.union)) && level == Level::Kept;
        open.measured = level < Level::Off;
        open.paused_before = self.pause.ticks(now);
        self.open_next(open, now);
    }

    /// Publishes the open window to other threads, which read it without the lock.
    pub(crate) fn publish(&self, open: &OpenWindow) {
        let traced = open.union.kept && open.governor.level() == Level::Kept;
        self.traced.store(traced, Ordering::Relaxed);
        self.show(open.window);
    }

    /// Publishes the number of the window that is open from here on.
    pub(crate) fn show(&self, window: WindowId) {
        self.window.store(window.0, Ordering::Relaxed);
    }

    /// Ticks at `nanos` since T0.
    pub(crate) fn ticks_at(&self, nanos: u64) -> u64 {
        let (ticks, first) = self.journal.first_pair();
        let since = nanos as i64 - first;
        ticks.saturating_add_signed((since as f64 / self.journal.nanos_per_tick()) as i64)
    }

    /// The first window of a directive that is not in force yet; `u64::MAX` where there is none.
    pub(crate) fn directed(&self) -> u64 {
        let held = self.directive.lock().unwrap_or_else(PoisonError::into_inner);
        held.next.as_ref().map_or(u64::MAX, |next| next.first_window.0)
    }

    /// The rank's own draw for `window`, that for it and its partners, the update that decided them, and the stratum
    /// if there are any; everything is kept before the first directive.
    fn draw(&self, window: WindowId) -> (Keep, Keep, u64, Option<u16>) {
        let mut held = self.directive.lock().unwrap_or_else(PoisonError::into_inner);
        if held.next.as_ref().is_some_and(|next| next.first_window <= window) {
            held.now = held.next.take();
            (held.own, held.drawn) = (None, None);
        }
        let Directives { now: Some(directive), own: known, drawn, .. } = &mut *held else {
            return (Keep::ALWAYS, Keep::ALWAYS, 0, None);
        };
        let interval = self.plan.update_of(window);
        let own = match *known {
            Some((of, keep)) if of == interval && directive.mechanism == Mechanism::Subset => keep,
            _ => kept(&self.plan, self.rank, window, directive),
        };
        *known = Some((interval, own));
        let union = match &self.partners {
            Some(partners) => partners.draw(&self.plan, self.rank, window, directive, drawn),
            None => own,
        };
        let divided = !directive.divided.is_empty();
        let stratum = if divided { stratum(&self.plan, self.rank, directive) } else { None };
        (own, union, directive.update, stratum)
    }

    /// True where the calls of a window with that draw are stored.
    fn stores(&self, keep: Keep) -> bool {
        match self.plan.config.trace.stored() {
            Timing::Off => false,
            _ => keep.kept || self.plan.config.stores_everything(),
        }
    }

    /// The number of the module at `path`, and whether it is new.
    pub(crate) fn module_number(&self, path: &str) -> (u32, bool) {
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
