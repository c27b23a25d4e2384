//! Runs of given times.

use ampl_trace::cells::Cell;
use ampl_trace::model::{MetricInfo, Process, WindowSummary};
use ampl_trace::{RankTrace, Trace};

/// A run whose rank r computes `compute[w][r]` ns of `wall` in window w; `None` where it has no such window.
pub fn run(hosts: &[&str], wall: f64, compute: &[Vec<Option<f64>>]) -> Trace {
    let mut trace = Trace::default();
    trace.run.ranks = hosts.len() as u32;
    // Not in the order of the built-in ones: columns go by name.
    trace.run.metrics = ["calls", "compute.time", "wall", "mpi.time"]
        .map(|name| MetricInfo { name: name.into(), event: "*".into(), guide: false })
        .to_vec();
    for (rank, host) in hosts.iter().enumerate() {
        let (rank_number, host) = (rank as u32, (*host).into());
        let process = Process { rank: rank_number, host, finalized: true, ..Process::default() };
        let window = |(window, ranks): (usize, &Vec<Option<f64>>)| {
            let compute = ranks[rank]?;
            let cell = |sum| Cell { n: 1.0, sum, ..Cell::default() };
            let cells = [3.0, compute, wall, wall - compute].map(cell).into_iter().collect();
            let (window, end_ns) = (window as u64, (window as i64 + 1) * wall as i64);
            let start_ns = end_ns - wall as i64;
            Some(WindowSummary {
                window,
                start_ns,
                end_ns,
                cells,
                probability: 0.5,
                ..WindowSummary::default()
            })
        };
        let windows = compute.iter().enumerate().filter_map(window).collect();
        trace.ranks.push(RankTrace { process, windows, ..RankTrace::default() });
    }
    trace
}
