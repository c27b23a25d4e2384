//! Regions of the program: which of them matter, and the visits that a thread makes.
//!
//! A *visit* of a path such as `A>B` is a span in which B runs somewhere inside A on one thread; that of a
//! single region is a path of one. Equal call paths fold: while a path is open, entering its last region once more is
//! part of the visit. Exits without entries and entries without exits are mended as far as possible, and counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ampl_core::config::{Event, Marker, Quantity};
use ampl_core::plan::Plan;
use ampl_core::units::WindowId;

use crate::accumulate::Totals;
use crate::shared::{MARKER_WAIT_NS, Shared};
use crate::window::Boundary;

/// Frames of a thread's stack; a program that enters and never leaves must not fill the memory.
const DEEPEST: usize = 1 << 12;

/// Regions, paths and metrics of the program that the configuration names.
#[derive(Debug, Default)]
pub struct Declared {
    /// Regions that matter, by index.
    regions: Vec<String>,
    /// Paths to watch, as indices of regions.
    paths: Vec<Vec<u16>>,
    /// Per region: the paths that it is part of.
    paths_of: Vec<Vec<u16>>,
    /// The path whose end is the window's marker.
    marker: Option<u16>,
    /// Metrics of the program.
    users: Vec<String>,
}

impl Declared {
    /// Regions, paths and metrics that `plan` names.
    pub fn new(plan: &Plan) -> Self {
        let mut declared = Self::default();
        if let Marker::Region(name) = &plan.config.window.marker {
            declared.marker = Some(declared.path(std::slice::from_ref(name)));
        }
        for metric in &plan.metrics {
            if let Some(names) = path_names(&metric.event) {
                declared.path(names);
            }
            if let Quantity::User(name) = &metric.quantity
                && declared.user(name).is_none()
            {
                declared.users.push(name.clone());
            }
        }
        declared.paths_of = (0..declared.regions.len() as u16)
            .map(|region| {
                let holds = |path: &u16| declared.paths[usize::from(*path)].contains(&region);
                (0..declared.paths.len() as u16).filter(holds).collect()
            })
            .collect();
        declared
    }

    fn path(&mut self, names: &[String]) -> u16 {
        let mut path = Vec::new();
        for name in names {
            path.push(self.region(name).unwrap_or_else(|| {
                self.regions.push(name.clone());
                self.regions.len() as u16 - 1
            }));
        }
        let known = self.paths.iter().position(|known| *known == path);
        known.unwrap_or_else(|| {
            self.paths.push(path);
            self.paths.len() - 1
        }) as u16
    }

    /// Index of the region of that name, if it matters.
    pub fn region(&self, name: &str) -> Option<u16> {
        self.regions.iter().position(|known| known == name).map(|index| index as u16)
    }

    /// Index of the program's metric of that name, if it is measured.
    pub fn user(&self, name: &str) -> Option<u16> {
        self.users.iter().position(|known| known == name).map(|index| index as u16)
    }

    /// Number of the program's metrics.
    pub fn users(&self) -> usize {
        self.users.len()
    }

    /// The path that `event` observes.
    pub fn path_of(&self, event: &Event) -> Option<u16> {
        let names = path_names(event)?;
        let path: Vec<u16> = names.iter().map(|name| self.region(name)).collect::<Option<_>>()?;
        self.paths.iter().position(|known| *known == path).map(|index| index as u16)
    }

    /// The path whose end is the window's marker.
    pub fn marker(&self) -> Option<u16> {
        self.marker
    }
}

fn path_names(event: &Event) -> Option<&[String]> {
    match event {
        Event::Region(name) => Some(std::slice::from_ref(name)),
        Event::Path(names) => Some(names),
        _ => None,
    }
}

/// Work of a thread until some moment, and the moment; only ever grows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// The moment, less the time in which the program had paused ampl; ticks.
    pub at: u64,
    /// Time inside MPI, ticks.
    pub mpi_ticks: u64,
    /// The agent's own time, ticks.
    pub own_ticks: u64,
    /// Bytes sent.
    pub sent: u64,
    /// Bytes received.
    pub received: u64,
    /// Calls.
    pub calls: u64,
    /// The program's metrics.
    pub users: Vec<f64>,
}

impl Reading {
    /// A reading of no work, with room for `users` metrics.
    pub fn new(users: usize) -> Self {
        Self { users: vec![0.0; users], ..Self::default() }
    }

    /// Adds a thread's work in a window that it leaves.
    pub fn carry(&mut self, totals: &Totals) {
        self.mpi_ticks += totals.mpi_ticks;
        self.own_ticks += totals.own_ticks;
        self.sent += totals.sent;
        self.received += totals.received;
        self.calls += totals.calls;
        self.users.iter_mut().zip(&totals.users).for_each(|(all, here)| *all += here);
    }

    /// Becomes `before` plus what `totals` add to it, at `at`.
    fn set(&mut self, before: &Self, totals: &Totals, at: u64) {
        self.users.copy_from_slice(&before.users);
        let users = std::mem::take(&mut self.users);
        *self = Self { users, at, ..*before };
        self.carry(totals);
    }
}

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

/// Irregular uses of regions by the program, for its author.
#[derive(Debug, Default)]
pub struct Irregularities {
    /// Exits without entries, entries without exits.
    pub unbalanced: AtomicU64,
    /// Ends of the marker's region on threads that make no MPI calls, which end no window.
    pub elsewhere: AtomicU64,
}

impl Irregularities {
    /// Counts one more of `what`.
    pub fn count(what: &AtomicU64) {
        what.fetch_add(1, Ordering::Relaxed);
    }
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
}

impl Bystander {
    /// Another thread of the process.
    pub fn new(shared: Arc<Shared>) -> Self {
        let totals = Totals::new(&shared.events);
        let visits = Visits::new(&shared.events.declared);
        Self { window: shared.window(), totals, visits, shared }
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

    /// Moves its visits to the thread's new state, as the thread makes its first MPI call.
    pub fn give(&mut self, to: &mut crate::Thread) {
        self.hand_over();
        to.take_over(&mut self.visits);
    }
}
