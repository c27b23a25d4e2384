//! What the threads of a process share: the window that is open, what has been left for it, and
//! what the job agreed on.
//!
//! Whichever thread first sees that the window is over closes it, for all of them: it takes the
//! lock, which is free otherwise. The others notice at their next hook, and leave their totals to
//! be added to the window that is then open.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ampl_core::config::Keep as Timing;
use ampl_core::draw::{Keep, kept};
use ampl_core::message::Directive;
use ampl_core::mpi::Function;
use ampl_core::plan::Plan;
use ampl_core::units::{Rank, WindowId};
use ampl_trace::model::Cell;

use crate::accumulate::{EventMap, Totals};
use crate::journal::Journal;
use crate::window::Boundary;

/// Path of the module of a return address, and the offset in it.
pub type Resolve = fn(u64) -> (String, u64);

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

/// What the threads of a process share.
#[derive(Debug)]
pub struct Shared {
    /// The process's journal.
    pub journal: Arc<Journal>,
    /// What the job agreed on.
    pub plan: Plan,
    /// This process.
    pub rank: Rank,
    pub(crate) events: EventMap,
    pub(crate) boundary: Option<Boundary>,
    /// Number of the open window, to be seen without the lock.
    window: AtomicU64,
    open: Mutex<Open>,
    directive: Mutex<InForce>,
    modules: Mutex<Vec<String>>,
    pub(crate) resolve: Resolve,
}

/// The window now open.
#[derive(Debug)]
pub(crate) struct Open {
    pub window: WindowId,
    pub since: u64,
    /// Ticks at which it ends, if the clock ends windows.
    pub until: u64,
    pub keep: Keep,
    /// The update that decided `keep`.
    pub update: u64,
    /// Markers met.
    pub met: u32,
    /// What threads have left for it.
    pub left: Totals,
    pub closed: VecDeque<ClosedWindow>,
}

/// The directive in force, and the next one if it starts at a later window.
#[derive(Debug, Default)]
struct InForce {
    now: Option<Directive>,
    next: Option<Directive>,
}

impl Shared {
    /// Shared state of the process that is `rank`. No window is open before the first thread is there.
    pub fn new(journal: Arc<Journal>, plan: Plan, rank: Rank, resolve: Resolve) -> Self {
        let events = EventMap::new(&plan);
        let open = Open {
            window: WindowId(0),
            since: 0,
            until: u64::MAX,
            keep: Keep::ALWAYS,
            update: 0,
            met: 0,
            left: Totals::new(&events),
            closed: VecDeque::new(),
        };
        Self {
            boundary: Boundary::new(&plan.config.window.marker, plan.config.window.every),
            events,
            journal,
            plan,
            rank,
            window: AtomicU64::new(0),
            open: Mutex::new(open),
            directive: Mutex::default(),
            modules: Mutex::default(),
            resolve,
        }
    }

    /// The window now open.
    #[inline]
    pub fn window(&self) -> WindowId {
        WindowId(self.window.load(Ordering::Relaxed))
    }

    /// Whether more than its count is to be known of every call of `function`: a metric observes it,
    /// or windows end there.
    pub fn observes(&self, function: Function) -> bool {
        let ends =
            matches!(&self.boundary, Some(Boundary::Call { function: marker, .. }) if *marker == function);
        ends || self.events.observes(function)
    }

    /// A window finished since the last call, oldest first.
    pub fn take_closed(&self) -> Option<ClosedWindow> {
        self.lock().closed.pop_front()
    }

    /// Takes a directive that arrived: in force from its first window, or from the next to open.
    pub fn direct(&self, directive: Directive) {
        let mut held = self.directive.lock().unwrap_or_else(PoisonError::into_inner);
        held.next = Some(directive);
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the window numbered in `open` at `now`.
    pub(crate) fn begin(&self, open: &mut Open, now: u64) {
        open.since = now;
        open.met = 0;
        (open.keep, open.update) = self.draw(open.window);
        if let Some(Boundary::Period { nanos }) = self.boundary {
            let (ticks, first) = self.journal.first_pair();
            let end = (open.window.0 + 1).saturating_mul(nanos) as i64 - first;
            open.until = ticks.saturating_add_signed((end as f64 / self.journal.nanos_per_tick()) as i64);
        }
        self.window.store(open.window.0, Ordering::Relaxed);
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

    /// Whether the calls of a window drawn so are stored.
    pub(crate) fn stores(&self, keep: Keep) -> bool {
        match self.plan.config.trace.timing {
            Timing::Kept => keep.kept,
            Timing::All => true,
            Timing::Off => false,
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
