//! Synthetic runs whose calls have times.

use std::collections::BTreeMap;

use ampl_core::mpi::Function;
use ampl_trace::cells::Cell;
use ampl_trace::model::{Aggregate, Process, WindowSummary};
use ampl_trace::structure::JobStructure;
use ampl_trace::timing::{Encoder, Settings, Terminal, Time, Window};
use ampl_trace::totals::Totals;
use ampl_trace::{RankTrace, Trace};

use crate::runs::{Caller, info};

/// A rank with a clock of its own.
pub struct Timed {
    /// The rank.
    pub caller: Caller,
    host: String,
    now_ns: u64,
    /// Terminal, function, line, start and duration.
    calls: Vec<(u32, Function, u64, u64, u64)>,
}

impl Timed {
    /// A rank of a world of `size` ranks, at time 0.
    pub fn new(rank: u32, size: u32, host: &str) -> Self {
        Self { caller: Caller::new(rank, size), host: host.into(), now_ns: 0, calls: Vec::new() }
    }

    /// Its time, nanoseconds.
    pub fn now(&self) -> u64 {
        self.now_ns
    }

    /// Computes so long.
    pub fn compute(&mut self, ns: u64) {
        self.now_ns += ns;
    }

    /// Calls `function` from line `line`, until `end_ns`.
    pub fn until(&mut self, function: &str, line: u64, words: &[u64], end_ns: u64) {
        let terminal = self.caller.call(function, line, words);
        self.made(terminal, function, line, end_ns);
    }

    /// Polls by `function` in vain from line `line`, until `end_ns`.
    pub fn polls_until(&mut self, function: &str, line: u64, words: &[u64], end_ns: u64) {
        let terminal = self.caller.poll(function, line, words);
        self.made(terminal, function, line, end_ns);
    }

    fn made(&mut self, terminal: u32, function: &str, line: u64, end_ns: u64) {
        let end_ns = end_ns.max(self.now_ns);
        let number = Function::by_name(function).expect("a function of MPI");
        self.calls.push((terminal, number, line, self.now_ns, end_ns - self.now_ns));
        self.now_ns = end_ns;
    }
}

/// The run of `ranks`, in one window; the times of those for which `keeps` is true are kept, exactly.
pub fn trace(ranks: Vec<Timed>, keeps: impl Fn(u32) -> bool) -> Trace {
    let size = ranks.len() as u32;
    let mut trace =
        Trace { run: info(size), structure: JobStructure::new(size), complete: true, ..Trace::default() };
    let end_ns = ranks.iter().map(Timed::now).max().unwrap_or(0);
    for (rank, own) in (0..).zip(ranks) {
        let mut encoder = Encoder::new(Settings { error: 0.0, floor_ns: 0 });
        encoder.window(Window { thread: 0, window: 0, first_seq: 0, start_ns: 0 });
        let mut sums: BTreeMap<(u64, Function), Aggregate> = BTreeMap::new();
        let mut mpi = 0;
        for &(terminal, function, line, start_ns, duration_ns) in &own.calls {
            let of = Terminal { number: terminal, like: function.0, folds: own.caller.polls(terminal) };
            encoder.call(of, Time { start_ns: start_ns as i64, duration_ns, count: 1 });
            mpi += duration_ns;
            let sum = sums.entry((line, function)).or_default();
            let ns = duration_ns as f64;
            let min_ns = if sum.calls == 0 { ns } else { sum.min_ns.min(ns) };
            *sum = Aggregate {
                function: function.0,
                calls: sum.calls + 1,
                time_ns: sum.time_ns + ns,
                time_sq: sum.time_sq + ns * ns,
                min_ns,
                max_ns: sum.max_ns.max(ns),
                ..Aggregate::default()
            };
        }
        let cell = |name: &str| {
            let sum = match name {
                "wall" => own.now_ns as f64,
                "mpi.time" => mpi as f64,
                "compute.time" => (own.now_ns - mpi) as f64,
                _ => 0.0,
            };
            Cell { n: 1.0, sum, sum_sq: sum * sum, min: sum, max: sum }
        };
        let cells = trace.run.metrics.iter().map(|metric| cell(&metric.name)).collect();
        let mut counts: BTreeMap<u16, u64> = BTreeMap::new();
        own.calls.iter().for_each(|(_, function, ..)| *counts.entry(function.0).or_default() += 1);
        let host = own.host.clone();
        let process = Process {
            rank,
            host,
            pid: 1000 + rank,
            finalized: true,
            elapsed_ns: end_ns,
            calls: counts.into_iter().collect(),
            ..Process::default()
        };
        let structure = own.caller.finish();
        let site = |line: u64| structure.sites.iter().position(|site| site.offset == line);
        let entries: Vec<Aggregate> = sums
            .into_iter()
            .map(|((line, _), sum)| Aggregate { site: site(line).map(|site| site as u32), ..sum })
            .collect();
        trace.totals.join(Totals::of(rank, &structure.modules, &structure.sites, &entries));
        let kept = keeps(rank);
        let window = WindowSummary {
            end_ns: own.now_ns as i64,
            kept,
            probability: 1.0,
            cells,
            ..WindowSummary::default()
        };
        trace.ranks.push(RankTrace {
            process,
            modules: structure.modules.clone().into(),
            sites: structure.sites.clone().into(),
            windows: vec![window].into(),
            times: if kept { encoder.finish() } else { Vec::new() },
            ..RankTrace::default()
        });
        trace.structure.join(JobStructure::of(structure));
    }
    trace
}
