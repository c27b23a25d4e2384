//! Ranks by the time that they compute, over the run.

use std::collections::BTreeMap;

use ampl_trace::Trace;

use crate::window_times::Columns;

/// Compute time over the mean from which a rank computes more than others.
const MORE: f64 = 1.05;

/// Ranks by their compute time.
#[derive(Debug)]
pub struct Compute {
    by_rank: BTreeMap<u32, f64>,
    mean: f64,
    most: f64,
}

impl Compute {
    /// Compute times of the ranks of `trace`, by their windows.
    pub fn of(trace: &Trace) -> Self {
        let columns = Columns::of(trace);
        let of_rank = |rank: &ampl_trace::RankTrace| {
            let own = columns.of_rank(rank);
            let times = rank.windows.iter().filter_map(|window| own.times(&window));
            (rank.process.rank, times.map(|times| times.compute).sum::<f64>())
        };
        let by_rank: BTreeMap<u32, f64> = trace.ranks.iter().map(of_rank).collect();
        let mean = by_rank.values().sum::<f64>() / by_rank.len().max(1) as f64;
        let most = by_rank.values().copied().fold(0.0, f64::max);
        Self { by_rank, mean, most }
    }

    /// True where the rank computes more than most others do.
    pub fn is_slow(&self, rank: u32) -> bool {
        let own = self.by_rank.get(&rank).copied().unwrap_or(0.0);
        self.mean > 0.0 && own >= MORE * self.mean && own >= self.mean + (self.most - self.mean) / 2.0
    }
}
