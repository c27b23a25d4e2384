//! One run of a scaling study.

use std::collections::{BTreeMap, BTreeSet};

use ampl_reader::gaps::Recorded;
use ampl_reader::sites::Symbols;
use ampl_trace::Trace;
use ampl_trace::communicators::Communicators;

use super::sites::{Sizes, sizes};
use crate::comparison::{Key, Profile, RunQuantity, Scope};
use crate::messages::Messages;
use crate::processors::Sharing;
use crate::timesteps::timesteps;

/// Counters over the whole run and all ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counters {
    /// Instructions.
    pub instructions: Option<f64>,
    /// Cycles.
    pub cycles: Option<f64>,
}

/// One run of a scaling study.
#[derive(Clone, Debug, Default)]
pub struct Point {
    /// Quantities as comparisons have them.
    pub profile: Profile,
    /// Ranks of the job.
    pub ranks: u32,
    /// Hosts.
    pub nodes: u32,
    /// Time outside of MPI of all ranks, nanoseconds; `None` where it was not measured.
    pub compute_ns: Option<f64>,
    /// Counters.
    pub counters: Counters,
    /// Bytes sent by a rank, mean.
    pub bytes_per_rank: Option<f64>,
    /// Messages sent by a rank, mean; `None` where not every call is recorded.
    pub messages_per_rank: Option<f64>,
    /// Steps of the timestep loop.
    pub steps: Option<u64>,
    /// Sizes at call sites; empty where not every call is recorded.
    pub sizes: Sizes,
    /// Calls that were counted and not recorded.
    pub not_recorded: u64,
    /// True where ranks had to share processors: times are then about the machine.
    pub shares_processors: bool,
}

impl Point {
    /// The run in `trace`.
    pub fn of(trace: &Trace) -> Self {
        let profile = Profile::of(trace);
        let ranks = trace.run.ranks;
        let hosts: BTreeSet<&str> = trace.ranks.iter().map(|rank| rank.process.host.as_str()).collect();
        let per_rank = |what: RunQuantity| {
            let value = profile.counts.get(&Key::run(what))?;
            Some(*value as f64 / f64::from(ranks.max(1)))
        };
        let mut symbols = Symbols::default();
        let found = timesteps(&trace.structure, &mut |module, offset| {
            let function = symbols.function(module, offset)?;
            offset.checked_sub(function.offset?)
        });
        let steps = found.outcome.ok().map(|of_loop| of_loop.steps);
        let recorded = Recorded::of(trace, None);
        let not_recorded = recorded.gaps.iter().map(|gap| gap.calls).sum();
        let compute = profile.times.get(&Key::run(RunQuantity::ComputeTime));
        let bytes_per_rank = per_rank(RunQuantity::BytesSent).or_else(|| sent(trace));
        Self {
            ranks,
            nodes: hosts.len() as u32,
            compute_ns: compute.map(|mean| mean * f64::from(ranks)),
            counters: counters(trace),
            bytes_per_rank,
            messages_per_rank: per_rank(RunQuantity::Messages),
            steps,
            sizes: if not_recorded == 0 { sizes(trace, steps) } else { Sizes::new() },
            not_recorded,
            shares_processors: Sharing::of(trace).is_some(),
            profile,
        }
    }

    /// A time or efficiency of the run.
    pub fn time(&self, what: RunQuantity) -> Option<f64> {
        self.profile.times.get(&Key::run(what)).copied()
    }

    /// Share of the ranks' time that is spent in MPI at each place.
    pub fn shares(&self) -> BTreeMap<&Scope, f64> {
        let mpi = self.time(RunQuantity::MpiTime);
        let Some(all) = mpi.zip(self.time(RunQuantity::ComputeTime)).map(|(mpi, compute)| mpi + compute)
        else {
            return BTreeMap::new();
        };
        let sites =
            self.profile.times.iter().filter(|(key, _)| {
                key.what == RunQuantity::MpiTime && matches!(key.scope, Scope::Site { .. })
            });
        sites.map(|(key, ns)| (&key.scope, ns / all)).collect()
    }
}

/// Bytes of messages, where totals have none.
fn sent(trace: &Trace) -> Option<f64> {
    let comms = Communicators::of(trace);
    let messages = Messages::of(&trace.structure, &comms, trace.run.ranks);
    let known = messages.is_complete() && messages.unsized_messages == 0;
    known.then(|| messages.total().bytes as f64 / f64::from(trace.run.ranks.max(1)))
}

fn counters(trace: &Trace) -> Counters {
    let sum = |name: &str| {
        let at = trace.run.metrics.iter().position(|metric| metric.name == name && metric.event == "*")?;
        let windows = || trace.ranks.iter().flat_map(|rank| &rank.windows);
        let whole = windows().all(|window| window.cells.get(at).is_some());
        let sum: f64 = windows().filter_map(|window| window.cells.get(at)).map(|cell| cell.sum).sum();
        (whole && sum.is_finite() && sum > 0.0).then_some(sum)
    };
    Counters { instructions: sum("perf.instructions"), cycles: sum("perf.cycles") }
}
