//! A process whose calls cost more than it may take gives up as much as needed, on a clock that the test drives.

use ampl_agent::{CallEnd, Thread};
use ampl_core::mpi::ids;
use ampl_trace::model::Level;

use crate::common::{Job, leave};

/// Share of the time that the agent may take.
const ALLOWED: f64 = 0.01;
/// Calls of a stretch.
const CALLS: u64 = 1000;
/// Length of a stretch, nanoseconds.
const STRETCH_NS: f64 = 1e8;

/// Two seconds of calls that cost the agent `share` of the time.
fn busy(job: &Job, thread: &mut Thread, share: f64) {
    let ticks = (STRETCH_NS / job.shared.journal.nanos_per_tick()) as u64;
    for stretch in 0..20 {
        for call in 0..CALLS {
            let start = stretch * ticks + call * ticks / CALLS;
            thread.enter(ids::MPI_SEND, 0x40, start);
            let call = CallEnd {
                function: ids::MPI_SEND,
                address: 0x40,
                start,
                end: start + 1,
                sent: 0,
                received: 0,
                flags: 0,
                terminal: None,
                timed: true,
                apart: false,
            };
            leave(thread, call, &[0x1000, 1, 1, 0, 7, 1]);
            thread.add_own((share * ticks as f64 / CALLS as f64) as u64);
        }
        thread.check_overhead((stretch + 1) * ticks);
    }
}

/// The first level given up where calls cost `times` as much as they may, if any is.
fn first(config: &str, agent: &str, times: f64) -> Option<Level> {
    let marker = "[window]\nmarker = \"mpi:MPI_Barrier\"\n";
    let job = Job::new(&format!("{marker}{config}[agent]\nmax_overhead = {ALLOWED}\n{agent}"), 64);
    let mut thread = job.thread(0);
    busy(&job, &mut thread, times * ALLOWED);
    let steps = job.read().rank.process.steps;
    let first = steps.first()?;
    assert!((first.share / (times * ALLOWED) - 1.0).abs() < 0.01, "{first:?}");
    Some(first.level)
}

/// One limit for times and for calls.
const ONE_LIMIT: &str = "max_structure_overhead = 0.01\n";

/// Storing every window until it is decided is given up first, unless that alone cannot be enough.
#[test]
fn draws_beforehand_before_it_stores_nothing() {
    for (times, level) in [
        (0.9, None),
        (2.0, Some(Level::Drawn)),
        (3.9, Some(Level::Drawn)),
        (4.1, Some(Level::Summaries)),
        (8.1, Some(Level::Off)),
    ] {
        assert_eq!(first("", ONE_LIMIT, times), level, "{times}");
    }
    // Calls without times may take ten times as much, and would take a quarter at least.
    for (times, level) in
        [(0.9, None), (2.0, Some(Level::Drawn)), (39.0, Some(Level::Drawn)), (41.0, Some(Level::Off))]
    {
        assert_eq!(first("", "", times), level, "{times}");
    }
}

/// Where windows are drawn beforehand anyway, times are given up in its place.
#[test]
fn gives_up_times_where_windows_are_drawn_beforehand() {
    let predictive = "[sampling]\nselection = \"predictive\"\n";
    for (times, level) in [(2.0, Level::Structure), (4.1, Level::Summaries), (8.1, Level::Off)] {
        assert_eq!(first(predictive, ONE_LIMIT, times), Some(level), "{times}");
    }
    for (times, level) in [(2.0, Level::Structure), (39.0, Level::Structure), (41.0, Level::Off)] {
        assert_eq!(first(predictive, "", times), Some(level), "{times}");
    }
}
