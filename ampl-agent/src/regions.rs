//! Regions of the program: which of them matter, and the visits that a thread makes.
//!
//! A *visit* of a path such as `A>B` is a span in which B runs somewhere inside A on one thread; that of a
//! single region is a path of one. Equal call paths fold: while a path is open, entering its last region once more is
//! part of the visit. Exits without entries and entries without exits are mended as far as possible, and counted.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use ampl_core::config::Marker;
use ampl_core::units::WindowId;

use crate::accumulate::Totals;
use crate::declared::{Declared, Irregularities};
use crate::reading::Reading;
use crate::shared::{MARKER_WAIT_NS, Shared};
use crate::window::Boundary;

/// Frames of a thread's stack; a program that enters and never leaves must not fill the memory.
const DEEPEST: usize = 1 << 12;

/// One entered region.
#[derive(Clone, Copy, Debug)]
struct Frame {
    region: u16,
    /// How often it was entered in a row.
    times: u64,
}

/// A thread's regions.
#[derive(Debug)]
pub struct Visits {
    frames: Vec<Frame>,
    /// Per path: the frames that fit it so far, outermost first.
    fits: Vec<Vec<u32>>,
    /// Per path: where the thread stood when the visit began.
    begun: Vec<Reading>,
    /// Work of the thread before the open window.
    before: Reading,
    now: Reading,
    /// Paths that have just ended.
    ended: Vec<u16>,
}

impl Visits {
    /// A thread that is in no region.
    pub fn new(declared: &Declared) -> Self {
        let reading = Reading::new(declared.users());
        Self {
            frames: Vec::with_capacity(64),
            fits: declared.paths.iter().map(|path| Vec::with_capacity(path.len())).collect(),
            begun: vec![reading.clone(); declared.paths.len()],
            before: reading.clone(),
            now: reading,
            ended: Vec::with_capacity(declared.paths.len()),
        }
    }

    /// Adds `totals`, the thread's work in the window that it leaves.
    pub fn carry(&mut self, totals: &Totals) {
        self.before.carry(totals);
    }

    /// The region is entered at `at`; `totals` are the thread's of the open window.
    ///
    /// Returns whether that was in order.
    pub fn enter(&mut self, declared: &Declared, region: u16, totals: &Totals, at: u64) -> bool {
        let depth = self.frames.len();
        let mut fits = false;
        for &path in &declared.paths_of[usize::from(region)] {
            let (names, fit) = (&declared.paths[usize::from(path)], &mut self.fits[usize::from(path)]);
            if names.get(fit.len()) == Some(&region) && depth < DEEPEST {
                fits = true;
                fit.push(depth as u32);
                if fit.len() == names.len() {
                    self.begun[usize::from(path)].set(&self.before, totals, at);
                }
            }
        }
        match self.frames.last_mut() {
            Some(top) if !fits && top.region == region => top.times += 1,
            _ if depth >= DEEPEST => return false,
            _ => self.frames.push(Frame { region, times: 1 }),
        }
        true
    }

    /// Leaves the region at `at`: every visit that ends with it is added to `totals`, unless the program has paused
    /// ampl. Regions entered since and not left end with it.
    pub fn exit(&mut self, region: u16, totals: &mut Totals, at: u64, shared: &Shared) -> Exit {
        let Some(depth) = self.frames.iter().rposition(|frame| frame.region == region) else {
            return Exit { entered: false, in_order: false, marker: false };
        };
        let in_order = depth + 1 == self.frames.len();
        self.frames.truncate(depth + 1);
        let frame = &mut self.frames[depth];
        frame.times -= 1;
        let left = depth + usize::from(frame.times > 0);
        self.frames.truncate(left);
        let declared = &shared.events.declared;
        self.ended.clear();
        for ((path, names), fit) in (0u16..).zip(&declared.paths).zip(&mut self.fits) {
            let whole = fit.len() == names.len();
            while fit.last().is_some_and(|&frame| frame as usize >= left) {
                fit.pop();
            }
            if whole && fit.len() < names.len() {
                self.ended.push(path);
            }
        }
        if !self.ended.is_empty() && !shared.is_paused() {
            self.now.set(&self.before, totals, at);
            for &path in &self.ended {
                totals.visit(path, &self.begun[usize::from(path)], &self.now, &shared.events);
            }
        }
        let marker = declared.marker.is_some_and(|path| self.ended.contains(&path));
        Exit { entered: true, in_order, marker }
    }

    /// Ends the thread: regions that it has not left are forgotten. Returns whether there was none.
    pub fn end(&mut self) -> bool {
        let none = self.frames.is_empty();
        self.frames.clear();
        self.fits.iter_mut().for_each(Vec::clear);
        none
    }

    /// Goes on with the visits of `other`, on a thread whose work until `at` is `totals`.
    pub fn take_over(&mut self, other: &mut Self, totals: &Totals) {
        std::mem::swap(&mut self.frames, &mut other.frames);
        std::mem::swap(&mut self.fits, &mut other.fits);
        for (mine, theirs) in self.begun.iter_mut().zip(&other.begun) {
            // The other has made no calls: its visits are taken to have begun where this thread stands.
            let (at, users) = (theirs.at, &theirs.users);
            mine.set(&self.before, totals, at);
            for (index, user) in mine.users.iter_mut().enumerate() {
                let since = other.before.users[index] - users[index];
                *user -= since;
            }
        }
        other.end();
    }
}

/// Result of leaving a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// True where it had been entered.
    pub entered: bool,
    /// True where it was the one entered last.
    pub in_order: bool,
    /// True where the window's marker is met.
    pub marker: bool,
}

impl Shared {
    /// Notes on irregular uses of regions, one sentence each, for the program's author; once the run is over.
    pub fn irregularities(&self) -> Vec<String> {
        let marker = &self.plan.config.window.marker;
        let mut said = Vec::new();
        if self.lacks_marker() {
            let rank = self.rank.0;
            let has = match marker {
                Marker::Region(_) => "a region that the program has",
                _ => "one that it meets",
            };
            said.push(if self.fell_back() {
                format!(
                    "the program did not name the region of the marker \"{marker}\" within {} s on rank \
                     {rank}: from there on windows end every 250 ms; name a region that the program has, \
                     or use \"period:250ms\"",
                    MARKER_WAIT_NS / 1_000_000_000
                )
            } else {
                format!(
                    "the marker \"{marker}\" was not met on rank {rank}: all of its run is one window, marked \
                     partial; name {has}, or use \"period:250ms\""
                )
            });
        }
        let unbalanced = self.irregular.unbalanced.load(Ordering::Relaxed);
        if unbalanced > 0 {
            said.push(format!(
                "regions were left that had not been entered, or entered and not left, {unbalanced} times on \
                 rank {}: visits end with the region around them",
                self.rank.0
            ));
        }
        let elsewhere = self.irregular.elsewhere.load(Ordering::Relaxed);
        if elsewhere > 0 {
            said.push(format!(
                "the marker \"{marker}\" was met {elsewhere} times by threads of rank {} that make no \
                 MPI calls: this ends no windows",
                self.rank.0
            ));
        }
        said
    }
}

/// A thread that has made no MPI calls: it has visits and metrics, no journal and no requests.
#[derive(Debug)]
pub struct Bystander {
    shared: Arc<Shared>,
    totals: Totals,
    window: WindowId,
    visits: Visits,
    /// Numbers of the names of regions that it is in, which the trace has not.
    open: Vec<u32>,
}

impl Bystander {
    /// Another thread of the process.
    pub fn new(shared: Arc<Shared>) -> Self {
        let totals = Totals::new(&shared.events);
        let visits = Visits::new(&shared.events.declared);
        Self { window: shared.window(), totals, visits, shared, open: Vec::new() }
    }

    /// Adds its totals of a window that is over by now to the one that is open.
    fn follow(&mut self) {
        let open = self.shared.window();
        if open != self.window {
            self.hand_over();
            self.window = open;
        }
    }

    /// Leaves everything to the open window.
    pub fn hand_over(&mut self) {
        self.visits.carry(&self.totals);
        self.shared.leave(&self.totals);
        self.totals.clear();
    }

    /// A region is entered whose name has that number.
    pub fn note_entry(&mut self, name: u32) {
        if self.open.len() < DEEPEST {
            self.open.push(name);
        }
    }

    /// It is left.
    pub fn note_exit(&mut self, name: u32) {
        if let Some(at) = self.open.iter().rposition(|&open| open == name) {
            self.open.truncate(at);
        }
    }

    /// The regions noted that it is in: they go over to the thread's new state.
    pub fn take_open(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.open)
    }

    /// The region of that index is entered at `now`.
    pub fn enter(&mut self, region: u16, now: u64) {
        self.follow();
        let at = self.shared.unpaused(now);
        if !self.visits.enter(&self.shared.events.declared, region, &self.totals, at) {
            Irregularities::count(&self.shared.irregular.unbalanced);
        }
    }

    /// The region is left at `now`. Returns whether it had been entered.
    pub fn exit(&mut self, region: u16, now: u64) -> bool {
        self.follow();
        let at = self.shared.unpaused(now);
        let exit = self.visits.exit(region, &mut self.totals, at, &self.shared);
        if exit.entered && !exit.in_order {
            Irregularities::count(&self.shared.irregular.unbalanced);
        }
        if exit.marker {
            Irregularities::count(&self.shared.irregular.elsewhere);
        }
        exit.entered
    }

    /// Adds to a metric of the program.
    pub fn add(&mut self, user: u16, value: f64) {
        self.follow();
        if !self.shared.is_paused() {
            self.totals.users[usize::from(user)] += value;
        }
    }

    /// A marker that is no region's exit.
    pub fn marker(&self) {
        if matches!(self.shared.boundary, Some(Boundary::Pcontrol { .. })) {
            Irregularities::count(&self.shared.irregular.elsewhere);
        }
    }

    /// The thread ends.
    pub fn end(&mut self) {
        self.hand_over();
        if !self.visits.end() {
            Irregularities::count(&self.shared.irregular.unbalanced);
        }
    }

    /// Its visits, for the thread's new state.
    pub(crate) fn visits(&mut self) -> &mut Visits {
        &mut self.visits
    }
}
