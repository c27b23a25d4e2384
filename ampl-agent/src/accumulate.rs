//! Accumulators of a window: what every call adds, whether its window is kept or not.

use ampl_core::config::site::CodeRange;
use ampl_core::config::{Event, Quantity};
use ampl_core::message::MetricSummary;
use ampl_core::mpi::{FUNCTION_COUNT, Function};
use ampl_core::plan::Plan;
use ampl_trace::cells::Cell;

use crate::declared::Declared;
use crate::floating::Environment;
use crate::reading::Reading;
use crate::window::holds;

/// Cell of a window's record for `events`, whose unit is `scale` of the metric's.
fn cell(events: &MetricSummary, scale: f64) -> Cell {
    match events.n {
        0 => Cell::default(),
        1 => Cell::one(events.sum * scale),
        n => Cell {
            n: n as f64,
            sum: events.sum * scale,
            sum_sq: events.sum_sq * scale * scale,
            min: events.min * scale,
            max: events.max * scale,
        },
    }
}

/// More metrics over call sites than this have no bit.
const MOST_SITES: usize = 64;

/// Which metrics observe single calls and visits, and which of the program's own whole windows.
#[derive(Debug)]
pub struct EventMap {
    /// Per function: first of its metrics in `metrics` plus one, 0 for none.
    first: Box<[u16]>,
    /// Sorted by function: function, quantity, slot in the summary.
    metrics: Vec<(u16, Quantity, usize)>,
    /// Visits of paths: path, quantity, slot. Their accumulators follow those of `metrics`.
    visits: Vec<(u16, Observed, usize)>,
    /// Calls from sites: where, quantity, slot. Their accumulators follow those of `visits`.
    sites: Vec<(Vec<CodeRange>, Quantity, usize)>,
    /// The program's metrics over whole windows: which one, slot.
    users: Vec<(u16, usize)>,
    slots: usize,
    /// Regions and metrics of the program that the configuration names.
    pub(crate) declared: Declared,
}

/// Quantity observed over a visit.
#[derive(Clone, Debug)]
enum Observed {
    /// A built-in quantity.
    BuiltIn(Quantity),
    /// A metric that the program adds to, by its index.
    User(u16),
}

impl EventMap {
    /// The events of `plan`. Counters are measured elsewhere, if at all.
    pub fn new(plan: &Plan) -> Self {
        let declared = Declared::new(plan);
        let (mut metrics, mut visits) = (Vec::new(), Vec::new());
        let (mut users, mut sites) = (Vec::new(), Vec::new());
        for (slot, metric) in plan.metrics.iter().enumerate() {
            let built_in = metric.quantity.slot().is_some();
            let user = match &metric.quantity {
                Quantity::User(name) => declared.user(name),
                _ => None,
            };
            match (&metric.event, declared.path_of(&metric.event)) {
                (Event::Function(name), _) if built_in => {
                    let function = Function::by_name(name);
                    metrics.extend(function.map(|function| (function.0, metric.quantity.clone(), slot)));
                }
                // A source line without its code holds no call: `ampl exec` resolves it before the program starts.
                (Event::Site(site), _) if built_in && !site.code().is_empty() => {
                    sites.push((site.code().to_vec(), metric.quantity.clone(), slot));
                }
                (Event::Window, _) => users.extend(user.map(|user| (user, slot))),
                (_, Some(path)) => {
                    let observed = match user {
                        Some(user) => Some(Observed::User(user)),
                        None => built_in.then(|| Observed::BuiltIn(metric.quantity.clone())),
                    };
                    visits.extend(observed.map(|observed| (path, observed, slot)));
                }
                _ => {}
            }
        }
        metrics.sort_by_key(|&(function, _, slot)| (function, slot));
        let mut first = vec![0; FUNCTION_COUNT].into_boxed_slice();
        for (index, &(function, ..)) in metrics.iter().enumerate().rev() {
            first[usize::from(function)] = index as u16 + 1;
        }
        sites.truncate(MOST_SITES);
        Self { first, metrics, visits, sites, users, slots: plan.metrics.len(), declared }
    }

    /// True where metrics observe call sites.
    pub fn observes_sites(&self) -> bool {
        !self.sites.is_empty()
    }

    /// The metrics that observe calls returning to `offset` of the module at `path`, one bit each.
    pub fn at_site(&self, path: &str, offset: u64) -> u64 {
        let holding = self.sites.iter().enumerate().filter(|(_, (ranges, ..))| holds(ranges, path, offset));
        holding.fold(0, |bits, (index, _)| bits | 1 << index)
    }

    /// True where a metric observes calls of `function`.
    pub fn observes(&self, function: Function) -> bool {
        self.first[usize::from(function.0)] != 0
    }
}

/// Totals of one thread in one window.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Time inside MPI, ticks.
    pub mpi_ticks: u64,
    /// The agent's own time, ticks.
    pub own_ticks: u64,
    /// Part of that in which another process had the processor.
    pub waited_ticks: u64,
    /// Bytes sent.
    pub sent: u64,
    /// Bytes received.
    pub received: u64,
    /// Calls.
    pub calls: u64,
    /// Bytes that storing them takes in the trace, or would take.
    pub stored: u64,
    /// Bytes that were kept meanwhile, of this window or others.
    pub spent: u64,
    /// The program's metrics, in the order in which the configuration names them.
    pub users: Vec<f64>,
    events: Vec<MetricSummary>,
}

impl Totals {
    /// Empty totals for the metrics of `map`.
    pub fn new(map: &EventMap) -> Self {
        let events = vec![MetricSummary::default(); map.metrics.len() + map.visits.len() + map.sites.len()];
        Self { events, users: vec![0.0; map.declared.users()], ..Self::default() }
    }

    /// Empty ones for the same metrics.
    pub fn emptied(&self) -> Self {
        let mut empty = self.clone();
        empty.clear();
        empty
    }

    /// Back to empty, keeping its memory.
    pub fn clear(&mut self) {
        self.events.fill(MetricSummary::default());
        self.users.fill(0.0);
        let (events, users) = (std::mem::take(&mut self.events), std::mem::take(&mut self.users));
        *self = Self { events, users, ..Self::default() };
    }

    /// Adds one call: its time in ticks, for events only (see [`Totals::add_time`]), bytes sent and received.
    #[inline]
    pub fn add(&mut self, function: Function, ticks: u64, sent: u64, received: u64, map: &EventMap) {
        self.calls += 1;
        self.sent += sent;
        self.received += received;
        // Fast path: without metrics there is nothing to add.
        if map.metrics.is_empty() {
            return;
        }
        let first = map.first[usize::from(function.0)];
        if first != 0 {
            self.observe(function, [ticks, sent, received], usize::from(first) - 1, map);
        }
    }

    /// Adds one call that no metric observes, of so many ticks inside MPI.
    #[inline(always)]
    pub fn count_call(&mut self, ticks: u64) {
        self.calls += 1;
        self.mpi_ticks += ticks;
    }

    /// Adds the bytes of a call's messages.
    #[inline(always)]
    pub fn add_bytes(&mut self, sent: u64, received: u64) {
        self.sent += sent;
        self.received += received;
    }

    /// Adds time inside MPI to the window's total; a call that crosses a period's end has part in each.
    #[inline]
    pub fn add_time(&mut self, ticks: u64) {
        self.mpi_ticks += ticks;
    }

    fn observe(
        &mut self,
        function: Function,
        [ticks, sent, received]: [u64; 3],
        first: usize,
        map: &EventMap,
    ) {
        let _as_it_was = Environment::begin();
        for (index, (of, quantity, _)) in map.metrics.iter().enumerate().skip(first) {
            if *of != function.0 {
                break;
            }
            self.events[index].observe(of_call(quantity, [ticks, sent, received]));
        }
    }

    /// Adds one call that the metrics with bits in `observers` observe by its site.
    #[cold]
    pub fn add_at_site(&mut self, observers: u64, call: [u64; 3], map: &EventMap) {
        let _as_it_was = Environment::begin();
        let before = map.metrics.len() + map.visits.len();
        for (index, (_, quantity, _)) in map.sites.iter().enumerate() {
            if observers & 1 << index != 0 {
                self.events[before + index].observe(of_call(quantity, call));
            }
        }
    }

    /// Adds a visit of `path` that led from `begun` to `ended`.
    pub(crate) fn visit(&mut self, path: u16, begun: &Reading, ended: &Reading, map: &EventMap) {
        let wall = ended.at.saturating_sub(begun.at);
        let mpi = ended.mpi_ticks - begun.mpi_ticks;
        let own = ended.own_ticks - begun.own_ticks;
        for (index, (of, observed, _)) in map.visits.iter().enumerate() {
            if *of != path {
                continue;
            }
            let value = match observed {
                Observed::User(user) => ended.users[usize::from(*user)] - begun.users[usize::from(*user)],
                Observed::BuiltIn(quantity) => match quantity {
                    Quantity::Wall => wall as f64,
                    Quantity::MpiTime => mpi as f64,
                    Quantity::ComputeTime => wall.saturating_sub(mpi).saturating_sub(own) as f64,
                    Quantity::BytesSent => (ended.sent - begun.sent) as f64,
                    Quantity::BytesReceived => (ended.received - begun.received) as f64,
                    Quantity::Calls => (ended.calls - begun.calls) as f64,
                    Quantity::Perf(_) | Quantity::Papi(_) | Quantity::User(_) => continue,
                },
            };
            self.events[map.metrics.len() + index].observe(value);
        }
    }

    /// Adds another thread's totals.
    pub fn merge(&mut self, other: &Self) {
        self.mpi_ticks += other.mpi_ticks;
        self.own_ticks += other.own_ticks;
        self.waited_ticks += other.waited_ticks;
        self.sent += other.sent;
        self.received += other.received;
        self.calls += other.calls;
        self.stored += other.stored;
        self.spent += other.spent;
        self.users.iter_mut().zip(&other.users).for_each(|(mine, theirs)| *mine += theirs);
        self.events.iter_mut().zip(&other.events).for_each(|(mine, theirs)| mine.merge(theirs));
    }

    /// The summary's cells, in the order of the plan's metrics: first those of [`Quantity::ALL`].
    ///
    /// `wall_ticks` is the window's length; `nanos_per_tick` turns ticks into nanoseconds. Quantities of whole windows
    /// are one observation each, in whole nanoseconds: the clock is no finer. Compute time excludes MPI and the agent.
    pub fn cells(&self, map: &EventMap, wall_ticks: u64, nanos_per_tick: f64) -> Vec<Cell> {
        let mut cells = vec![Cell::default(); map.slots];
        // Not by `round`, which is a call into a library; times are not negative.
        let whole = |ticks: u64| (ticks as f64 * nanos_per_tick + 0.5) as u64 as f64;
        let [wall, mpi, own] = [wall_ticks, self.mpi_ticks, self.own_ticks].map(whole);
        let compute = (wall - mpi - own).max(0.0);
        let [sent, received, calls] = [self.sent, self.received, self.calls].map(|count| count as f64);
        let built_in: [f64; Quantity::ALL.len()] = [wall, mpi, compute, sent, received, calls];
        for (cell, value) in cells.iter_mut().zip(built_in) {
            *cell = Cell::one(value);
        }
        for &(user, slot) in &map.users {
            cells[slot] = Cell::one(self.users[usize::from(user)]);
        }
        let calls = map.metrics.iter().map(|(_, quantity, slot)| (is_time(quantity), *slot));
        let visits = map.visits.iter().map(|(_, observed, slot)| {
            (matches!(observed, Observed::BuiltIn(quantity) if is_time(quantity)), *slot)
        });
        let sites = map.sites.iter().map(|(_, quantity, slot)| (is_time(quantity), *slot));
        for (running, (is_time, slot)) in self.events.iter().zip(calls.chain(visits).chain(sites)) {
            cells[slot] = cell(running, if is_time { nanos_per_tick } else { 1.0 });
        }
        cells
    }
}

/// Value that a metric over single calls takes from one call, given its ticks, bytes sent and bytes received.
fn of_call(quantity: &Quantity, [ticks, sent, received]: [u64; 3]) -> f64 {
    match quantity {
        Quantity::Wall | Quantity::MpiTime => ticks as f64,
        Quantity::BytesSent => sent as f64,
        Quantity::BytesReceived => received as f64,
        Quantity::Calls => 1.0,
        Quantity::ComputeTime | Quantity::Perf(_) | Quantity::Papi(_) | Quantity::User(_) => 0.0,
    }
}

fn is_time(quantity: &Quantity) -> bool {
    matches!(quantity, Quantity::Wall | Quantity::MpiTime | Quantity::ComputeTime)
}

impl Reading {
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
    pub fn set(&mut self, before: &Self, totals: &Totals, at: u64) {
        self.users.copy_from_slice(&before.users);
        let users = std::mem::take(&mut self.users);
        *self = Self { users, at, ..*before };
        self.carry(totals);
    }
}

#[cfg(test)]
mod tests {
    use ampl_core::config::Config;

    use super::*;

    #[test]
    fn times_are_whole_and_add_up_to_the_windows_length() {
        let plan = Plan::new(Config::default(), 4).unwrap();
        let map = EventMap::new(&plan);
        let mut totals = Totals::new(&map);
        (totals.mpi_ticks, totals.own_ticks) = (1001, 17);
        let sums: Vec<f64> = totals.cells(&map, 30_001, 0.37).iter().map(|cell| cell.sum).collect();
        assert_eq!(sums[..3], [11_100.0, 370.0, 10_724.0]);
        // Threads may be in MPI at the same time.
        totals.mpi_ticks = 40_000;
        assert_eq!(totals.cells(&map, 30_001, 0.37)[2].sum, 0.0);
    }

    #[test]
    fn a_single_call_is_a_single_observation() {
        let mut running = MetricSummary::default();
        running.observe(3.0);
        assert_eq!(cell(&running, 0.37), Cell::one(3.0 * 0.37));
        running.observe(1.0);
        assert_eq!((cell(&running, 1.0).n, cell(&running, 1.0).sum_sq), (2.0, 10.0));
    }
}
