//! Counters are read when windows end, once for all that end together.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ampl_agent::CallEnd;
use ampl_agent::counters::{Counters, counted};
use ampl_core::config::Quantity;
use ampl_core::mpi::{Function, ids};
use ampl_core::plan::Plan;
use ampl_trace::model::WindowSummary;

use crate::common::{Job, leave};

/// Counts 100 from one reading to the next in its first column, and nothing in its second.
#[derive(Debug)]
struct Steady(Arc<AtomicU64>);

impl Counters for Steady {
    fn take(&mut self, into: &mut [Option<f64>]) {
        self.0.fetch_add(1, Ordering::Relaxed);
        into.copy_from_slice(&[Some(100.0), None]);
    }
}

const METRICS: &str = "[[metric]]\nname = \"perf.cycles\"\noptional = true\n\
                       [[metric]]\nname = \"papi.PAPI_FP_INS\"\noptional = true\n";

/// The windows that `calls` (function, start, end; ticks are nanoseconds) make, and how often was read.
fn windows(config: &str, calls: &[(Function, u64, u64)], end: u64) -> (Plan, Vec<WindowSummary>, u64) {
    let job = Job::new(&format!("{config}{METRICS}"), 1);
    let readings = Arc::new(AtomicU64::new(0));
    job.shared.count_with(Box::new(Steady(readings.clone())));
    let mut thread = job.thread(0);
    for &(function, start, end) in calls {
        thread.enter(function, 0x40, start);
        let (address, sent, received, flags, terminal, timed) = (0x40, 0, 0, 0, None, true);
        let call =
            CallEnd { function, address, start, end, sent, received, flags, terminal, timed, apart: false };
        leave(&mut thread, call, &[0x10, 0x20, 1, 1, 1, 1]);
    }
    thread.finish(end);
    (job.shared.plan.clone(), job.read().rank.windows.entries().to_vec(), readings.load(Ordering::Relaxed))
}

#[test]
fn every_window_has_what_was_counted_in_it() {
    let calls = [(ids::MPI_ALLREDUCE, 40, 60), (ids::MPI_SEND, 70, 72), (ids::MPI_ALLREDUCE, 100, 130)];
    let (plan, windows, readings) = windows("[window]\nmarker = \"mpi:MPI_Allreduce\"\n", &calls, 150);
    let slots = counted(&plan);
    let built_in = Quantity::ALL.len();
    assert_eq!(slots, [built_in, built_in + 1]);
    assert_eq!(windows.len(), 3);
    for window in &windows {
        let [cycles, flops] = [slots[0], slots[1]].map(|slot| window.cells.get(slot).unwrap());
        assert_eq!((cycles.n, cycles.sum, cycles.sum_sq, cycles.min), (1.0, 100.0, 1e4, 100.0));
        assert_eq!((flops.n, flops.sum), (0.0, 0.0), "no observation where a counter does not count");
    }
    // The first reading is where counting begins.
    assert_eq!(readings, 1 + 3);
}

#[test]
fn windows_that_end_in_one_call_share_by_length() {
    let calls = [(ids::MPI_SEND, 50, 330), (ids::MPI_SEND, 620, 630)];
    let (plan, windows, readings) = windows("[window]\nmarker = \"period:100ns\"\n", &calls, 640);
    let slot = counted(&plan)[0];
    let sums: Vec<f64> = windows.iter().map(|window| window.cells.get(slot).unwrap().sum).collect();
    assert_eq!(sums.len(), 7);
    // 100 counted from 0 to 330, when the call returned; 100 more from there to 620, and to the end at 640.
    let near = |value: f64, expected: f64| (value - expected).abs() < 1e-9;
    assert!(sums[..3].iter().all(|&sum| near(sum, 10_000.0 / 330.0)), "{sums:?}");
    assert!(near(sums.iter().sum::<f64>(), 300.0), "{sums:?}");
    assert_eq!(readings, 1 + 3);
}
