//! Windows of long jobs: `window.max` of one length, then longer ones, at numbers that every rank knows.

use ampl_agent::{CallEnd, Thread};
use ampl_core::config::Quantity;
use ampl_core::mpi::{Function, ids};
use ampl_core::window_growth::WindowGrowth;
use ampl_trace::model::WindowSummaries;

use crate::common::{Job, leave};

const MOST: u32 = 8;

fn make(thread: &mut Thread, function: Function, start: u64, end: u64) {
    thread.enter(function, 0x40, start);
    let (sent, received, flags, terminal, timed) = (8, 0, 0, None, true);
    leave(
        thread,
        CallEnd { function, address: 0x40, start, end, sent, received, flags, terminal, timed, apart: false },
        &[1],
    );
}

/// Windows of a rank that makes a call of so many nanoseconds every so many, until `end`.
fn windows(config: &str, function: Function, [every, long]: [u64; 2], end: u64) -> WindowSummaries {
    let job = Job::new(&format!("[window]\n{config}"), 1);
    let mut thread = job.thread(0);
    let mut now = 10;
    while now + long < end {
        make(&mut thread, function, now, now + long);
        now += every;
    }
    thread.finish(end);
    job.read().rank.windows
}

/// Windows of 100 ns, 200 ns …: on a rank that calls often, one that calls rarely, one that is in one call for long, and
/// one that is away while hundreds of windows end.
#[test]
fn windows_grow_alike_on_every_rank() {
    let ranks = [
        (MOST, 3000, [30, 10]),
        (MOST, 3000, [1170, 900]),
        (MOST, 3000, [200_000, 150_000]),
        (1000, 100_000, [9_000_000, 10]),
        (1000, 100_000, [9_000_000, 8_000_000]),
    ];
    for (most, units, calls) in ranks {
        let growth = WindowGrowth::new(most);
        let config = format!("max = {most}\nmarker = \"period:100ns\"\n");
        let found = windows(&config, ids::MPI_SEND, calls, 100 * units);
        assert_eq!(found.count(), growth.window_of(units - 1) + 1, "{calls:?}");
        for window in &found {
            let begin = |number| 100 * growth.begin(number) as i64;
            let number = window.window;
            let end = begin(number + 1).min(100 * units as i64);
            assert_eq!((window.start_ns, window.end_ns), (begin(number), end), "{calls:?} {number}");
        }
        let bytes: f64 = found.iter().map(|window| window.cells.get(3).expect("bytes").sum).sum();
        let made = (10..).step_by(calls[0] as usize).take_while(|now| now + calls[1] < 100 * units).count();
        assert_eq!(bytes, 8.0 * made as f64, "{calls:?}");
    }
}

/// Windows of 3 markers, 6 markers …
#[test]
fn windows_of_markers_grow_likewise() {
    const MARKERS: u64 = 2000;
    let growth = WindowGrowth::new(MOST);
    for pace in [40, 900] {
        let config = format!("max = {MOST}\nmarker = \"mpi:MPI_Barrier\"\nevery = 3\n");
        let found = windows(&config, ids::MPI_BARRIER, [pace, 20], 10 + pace * MARKERS);
        assert_eq!(found.count(), growth.window_of(MARKERS / 3) + 1, "{pace}");
        for window in &found {
            let calls =
                window.cells.get(Quantity::Calls.slot().expect("built in")).expect("calls").sum as u64;
            let markers = 3 * growth.units(window.window);
            // A marker belongs to the window that it begins.
            let expected = if window.window == 0 { markers - 1 } else { markers };
            assert!(calls == expected || window.partial, "{pace} {} {calls} {expected}", window.window);
        }
    }
}

/// A day of windows of 250 ms, and a year.
#[test]
fn the_journal_of_a_long_job_grows_slowly() {
    let words = |units: u64| {
        let job = Job::new(&format!("[window]\nmax = {MOST}\nmarker = \"period:100ns\"\n"), 1);
        let mut thread = job.thread(0);
        for unit in 0..units {
            make(&mut thread, ids::MPI_SEND, 100 * unit + 10, 100 * unit + 20 + unit * unit % 61);
        }
        thread.finish(100 * units);
        job.read().rank.windows.entries().len() as u64
    };
    let [short, long] = [1 << 7, 1 << 14].map(words);
    assert_eq!(long - short, 7 * u64::from(MOST) / 2);
}
