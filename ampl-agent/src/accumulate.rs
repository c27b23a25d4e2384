//! Accumulators of a window: what every call adds, whether its window is kept or not.

use ampl_core::config::{Event, Quantity};
use ampl_core::mpi::{FUNCTION_COUNT, Function};
use ampl_core::plan::Plan;
use ampl_trace::model::Cell;

/// n, Σ, Σ², min and max of single observations, in ticks or units.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Running {
    n: u64,
    sum: f64,
    sum_sq: f64,
    min: f64,
    max: f64,
}

impl Running {
    fn add(&mut self, value: f64) {
        self.min = if self.n == 0 { value } else { self.min.min(value) };
        self.max = if self.n == 0 { value } else { self.max.max(value) };
        self.n += 1;
        self.sum += value;
        self.sum_sq += value * value;
    }

    fn merge(&mut self, other: &Self) {
        if other.n == 0 {
            return;
        }
        self.min = if self.n == 0 { other.min } else { self.min.min(other.min) };
        self.max = if self.n == 0 { other.max } else { self.max.max(other.max) };
        self.n += other.n;
        self.sum += other.sum;
        self.sum_sq += other.sum_sq;
    }

    fn cell(&self, scale: f64) -> Cell {
        Cell {
            n: self.n as f64,
            sum: self.sum * scale,
            sum_sq: self.sum_sq * scale * scale,
            min: self.min * scale,
            max: self.max * scale,
        }
    }
}

/// Which metrics observe single calls of which function.
#[derive(Debug)]
pub struct EventMap {
    /// Per function: first of its metrics in `metrics` plus one, 0 for none.
    first: Box<[u16]>,
    /// Sorted by function: function, quantity, slot in the summary.
    metrics: Vec<(u16, Quantity, usize)>,
    slots: usize,
}

impl EventMap {
    /// The single-call metrics of `plan`.
    pub fn new(plan: &Plan) -> Self {
        let mut metrics: Vec<(u16, Quantity, usize)> = plan
            .metrics
            .iter()
            .enumerate()
            .filter_map(|(slot, metric)| match &metric.event {
                Event::Function(name) => Some((Function::by_name(name)?.0, metric.quantity, slot)),
                Event::Window => None,
            })
            .collect();
        metrics.sort_by_key(|&(function, _, slot)| (function, slot));
        let mut first = vec![0; FUNCTION_COUNT].into_boxed_slice();
        for (index, &(function, ..)) in metrics.iter().enumerate().rev() {
            first[usize::from(function)] = index as u16 + 1;
        }
        Self { first, metrics, slots: plan.metrics.len() }
    }

    /// Whether a metric observes calls of `function`.
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
    events: Vec<Running>,
}

impl Totals {
    /// Empty totals for the metrics of `map`.
    pub fn new(map: &EventMap) -> Self {
        Self { events: vec![Running::default(); map.metrics.len()], ..Self::default() }
    }

    /// Back to empty, keeping its memory.
    pub fn clear(&mut self) {
        self.events.fill(Running::default());
        let events = std::mem::take(&mut self.events);
        *self = Self { events, ..Self::default() };
    }

    /// Adds one call: its time in ticks, for events only (see [`Totals::add_time`]), bytes sent and received.
    #[inline]
    pub fn add(&mut self, function: Function, ticks: u64, sent: u64, received: u64, map: &EventMap) {
        self.calls += 1;
        self.sent += sent;
        self.received += received;
        let first = map.first[usize::from(function.0)];
        if first != 0 {
            self.observe(function, [ticks, sent, received], usize::from(first) - 1, map);
        }
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
        for (index, &(of, quantity, _)) in map.metrics.iter().enumerate().skip(first) {
            if of != function.0 {
                break;
            }
            let value = match quantity {
                Quantity::Wall | Quantity::MpiTime => ticks as f64,
                Quantity::BytesSent => sent as f64,
                Quantity::BytesReceived => received as f64,
                Quantity::Calls => 1.0,
                Quantity::ComputeTime => 0.0,
            };
            self.events[index].add(value);
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
        self.events.iter_mut().zip(&other.events).for_each(|(mine, theirs)| mine.merge(theirs));
    }

    /// The summary's cells, in the order of the plan's metrics.
    ///
    /// `wall_ticks` is the window's length; `nanos_per_tick` turns ticks into nanoseconds. Whole
    /// windows are one observation each; compute time is what is neither MPI nor the agent.
    pub fn cells(&self, map: &EventMap, wall_ticks: u64, nanos_per_tick: f64) -> Vec<Cell> {
        let mut cells = vec![Cell::default(); map.slots];
        let compute = wall_ticks.saturating_sub(self.mpi_ticks).saturating_sub(self.own_ticks);
        for (slot, quantity) in Quantity::ALL.into_iter().enumerate() {
            let value = match quantity {
                Quantity::Wall => wall_ticks as f64 * nanos_per_tick,
                Quantity::MpiTime => self.mpi_ticks as f64 * nanos_per_tick,
                Quantity::ComputeTime => compute as f64 * nanos_per_tick,
                Quantity::BytesSent => self.sent as f64,
                Quantity::BytesReceived => self.received as f64,
                Quantity::Calls => self.calls as f64,
            };
            cells[slot] = Cell { n: 1.0, sum: value, sum_sq: value * value, min: value, max: value };
        }
        for (running, &(_, quantity, slot)) in self.events.iter().zip(&map.metrics) {
            let scale = match quantity {
                Quantity::Wall | Quantity::MpiTime | Quantity::ComputeTime => nanos_per_tick,
                _ => 1.0,
            };
            cells[slot] = running.cell(scale);
        }
        cells
    }
}
