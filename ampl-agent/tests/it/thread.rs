//! A thread's life without MPI: its calls come out of the journal, window by window.

use ampl_agent::{CallEnd, Thread};
use ampl_core::config::{Event, Mechanism, Quantity};
use ampl_core::message::{Directive, StratumDirective};
use ampl_core::mpi::{Function, ids};
use ampl_core::units::WindowId;
use ampl_trace::decode::{Call, Calls};
use ampl_trace::from_journal::Compacted;
use ampl_trace::record::CALL_MISS;
use proptest::prelude::*;

use crate::common::{Job, leave};

/// Windows are decided before they begin.
const BEFOREHAND: &str = "[sampling]\nselection = \"predictive\"\n[window]\nmarker = \"mpi:MPI_Barrier\"\n[trace]\ntiming = \"kept\"\n";

fn call(function: Function, start: u64, end: u64, sent: u64) -> CallEnd {
    let (received, flags, terminal, timed) = (0, 0, None, true);
    CallEnd { function, address: 0x40, start, end, sent, received, flags, terminal, timed, apart: false }
}

/// Words of `MPI_Send(buf, count, MPI_BYTE-like, dest, tag, comm)`.
fn send_words(tag: u64) -> [u64; 6] {
    [0x1000, 1, 1, 0, tag, 1]
}

fn make(thread: &mut Thread, function: Function, start: u64, end: u64, sent: u64, words: &[u64]) {
    thread.enter(function, 0x40, start);
    leave(thread, call(function, start, end, sent), words);
}

fn calls(read: &Compacted) -> Vec<Call> {
    Calls::new(&read.structure, &read.rank).collect::<Result<_, _>>().expect("decodable calls")
}

/// The windows whose times are stored.
fn windows(calls: &[Call]) -> Vec<u64> {
    calls.iter().filter_map(|call| Some(call.timed?.window)).collect()
}

fn slot(quantity: &Quantity) -> usize {
    quantity.slot().expect("a built-in quantity")
}

/// Sums of a quantity in the windows as they are stored.
fn column(read: &Compacted, quantity: Quantity) -> Vec<f64> {
    let windows = read.rank.windows.entries().iter();
    windows.map(|window| window.cells.get(slot(&quantity)).expect("a cell").sum).collect()
}

#[test]
fn a_marker_call_belongs_to_the_next_window() {
    let job = Job::new("[window]\nmarker = \"mpi:MPI_Allreduce\"\n", 1);
    let mut thread = job.thread(0);
    let reduce = [0x10, 0x20, 1, 1, 1, 1];
    make(&mut thread, ids::MPI_SEND, 10, 15, 100, &send_words(1));
    make(&mut thread, ids::MPI_ALLREDUCE, 40, 60, 8, &reduce);
    make(&mut thread, ids::MPI_SEND, 70, 72, 1000, &send_words(2));
    make(&mut thread, ids::MPI_ALLREDUCE, 100, 130, 8, &reduce);
    thread.finish(150);
    let read = job.read();
    assert_eq!(column(&read, Quantity::BytesSent), [100.0, 1008.0, 8.0]);
    let cell = |window: usize, quantity: Quantity| column(&read, quantity)[window];
    assert_eq!(cell(0, Quantity::Wall), 40.0);
    assert_eq!(cell(0, Quantity::MpiTime), 5.0);
    assert_eq!(cell(1, Quantity::MpiTime), 22.0);
    assert_eq!(cell(1, Quantity::ComputeTime), 38.0);
    assert_eq!(cell(1, Quantity::Calls), 2.0);
    assert_eq!(
        read.rank.windows.entries().iter().map(|w| w.partial).collect::<Vec<_>>(),
        [false, false, true]
    );
    assert_eq!(windows(&calls(&read)), [0, 1, 1, 2]);
    assert_eq!(read.rank.process.calls, [(ids::MPI_ALLREDUCE.0, 2), (ids::MPI_SEND.0, 2)]);
}

#[test]
fn time_of_others_during_the_agents_part_is_no_computing() {
    let job = Job::new("[window]\nmarker = \"mpi:MPI_Allreduce\"\n", 1);
    let mut thread = job.thread(0);
    let mut at = 0;
    for (own, displaced) in [(100, 4.0), (100, 0.0), (50, 2.0)] {
        make(&mut thread, ids::MPI_SEND, at + 10, at + 110, 0, &send_words(1));
        thread.add_own(own);
        thread.was_displaced(displaced);
        at += 1000;
        make(&mut thread, ids::MPI_ALLREDUCE, at, at, 8, &[0x10, 0x20, 1, 1, 1, 1]);
    }
    thread.finish(at + 10);
    let read = job.read();
    // 1000 ticks a window, of which 100 are in MPI; the agent's part lasts as long as it ran, and others did meanwhile.
    assert_eq!(column(&read, Quantity::ComputeTime)[..3], [400.0, 800.0, 750.0]);
    // It took the processor for no more.
    assert_eq!(read.rank.process.own_ns, 250);
}

#[test]
fn periods_split_time_but_not_calls() {
    let job = Job::new("[window]\nmarker = \"period:100ns\"\n", 1);
    let mut thread = job.thread(0);
    // Entered in window 0, left in window 3: its time is spread, its bytes and record are window 3's.
    make(&mut thread, ids::MPI_SEND, 50, 330, 7, &send_words(1));
    // Nothing for two windows, then a call in window 6.
    make(&mut thread, ids::MPI_SEND, 620, 630, 9, &send_words(2));
    thread.finish(650);
    let read = job.read();
    let column = |quantity| column(&read, quantity);
    assert_eq!(column(Quantity::MpiTime), [50.0, 100.0, 100.0, 30.0, 0.0, 0.0, 10.0]);
    assert_eq!(column(Quantity::BytesSent), [0.0, 0.0, 0.0, 7.0, 0.0, 0.0, 9.0]);
    assert_eq!(column(Quantity::ComputeTime), [50.0, 0.0, 0.0, 70.0, 100.0, 100.0, 40.0]);
    assert_eq!(windows(&calls(&read)), [3, 6]);
}

#[test]
fn dropped_windows_leave_summaries_and_their_place_in_the_sequence() {
    let job = Job::new(BEFOREHAND, 64);
    let mut thread = job.thread(0);
    let directive = |update, first, probability| Directive {
        update,
        first_window: WindowId(first),
        seed: 1,
        mechanism: Mechanism::Global,
        strata: vec![StratumDirective { group: 0, stratum: 0, size: 64, probability, policy: 1 }],
        divided: Vec::new(),
    };
    job.shared.direct(directive(1, 1, 0.0));
    for window in 0..4 {
        if window == 1 {
            job.shared.direct(directive(2, 3, 1.0));
        }
        let at = window * 100;
        make(&mut thread, ids::MPI_SEND, at + 10, at + 20, 1, &send_words(window));
        make(&mut thread, ids::MPI_BARRIER, at + 90, at + 95, 0, &[1]);
    }
    thread.finish(500);
    let read = job.read();
    let windows = read.rank.windows.entries();
    assert_eq!(windows.iter().map(|w| w.kept).collect::<Vec<_>>(), [true, false, false, true, true]);
    assert_eq!(windows.iter().map(|w| w.update).collect::<Vec<_>>(), [0, 1, 1, 2, 2]);
    assert_eq!(windows[1].probability, 0.0);
    assert_eq!(windows[1].cells.get(slot(&Quantity::BytesSent)).unwrap().sum, 1.0);
    // The barrier that closes window 0 is the first call of window 1, which is dropped.
    let all = calls(&read);
    assert_eq!(all.iter().map(|call| call.seq).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5, 6, 7]);
    let timed = all.iter().filter(|call| call.timed.is_some());
    assert_eq!(timed.map(|call| call.seq).collect::<Vec<_>>(), [0, 5, 6, 7]);
}

#[test]
fn failed_polls_in_a_row_are_one_entry() {
    let job = Job::new("", 1);
    let mut thread = job.thread(0);
    let words = |tag: u64| [0, tag, 1];
    for (index, tag) in [3, 3, 3, 4, 3].into_iter().enumerate() {
        let at = 10 * index as u64 + 10;
        let words = words(tag);
        thread.enter(ids::MPI_IPROBE, 0x40, at);
        leave(&mut thread, CallEnd { flags: CALL_MISS, ..call(ids::MPI_IPROBE, at, at + 2, 0) }, &words);
    }
    thread.finish(100);
    let read = job.read();
    let polls: Vec<(u64, u64)> = calls(&read).iter().map(|call| (call.seq, call.count)).collect();
    assert_eq!(polls, [(0, 3), (3, 1), (4, 1)]);
    assert_eq!(read.rank.process.calls, [(ids::MPI_IPROBE.0, 5)]);
}

#[test]
fn single_call_events_count_every_call_of_their_function() {
    let config = "[[metric]]\nname = \"mpi.time\"\nevent = \"MPI_Send\"\nrole = \"guide\"\n";
    let job = Job::new(config, 1);
    let slot = job.shared.plan.metrics.iter().position(|m| m.event != Event::Window).expect("configured");
    let mut thread = job.thread(0);
    for (start, end) in [(10, 13), (20, 24), (30, 32)] {
        make(&mut thread, ids::MPI_SEND, start, end, 1, &send_words(0));
    }
    make(&mut thread, ids::MPI_BARRIER, 40, 90, 0, &[1]);
    thread.finish(100);
    let cell = job.read().rank.windows.entries()[0].cells.get(slot).unwrap();
    assert_eq!((cell.n, cell.sum, cell.sum_sq, cell.min, cell.max), (3.0, 9.0, 29.0, 2.0, 4.0));
}

#[test]
fn other_threads_add_to_the_window_that_is_open() {
    let job = Job::new("[window]\nmarker = \"mpi:MPI_Barrier\"\n", 1);
    let (mut first, mut second) = (job.thread(0), job.thread(1));
    make(&mut second, ids::MPI_SEND, 10, 20, 5, &send_words(1));
    make(&mut first, ids::MPI_BARRIER, 30, 40, 0, &[1]);
    // The second thread notices the new window here, and leaves its 5 bytes to it.
    make(&mut second, ids::MPI_SEND, 50, 60, 6, &send_words(2));
    make(&mut first, ids::MPI_BARRIER, 70, 80, 0, &[1]);
    second.hand_over();
    first.finish(90);
    let read = job.read();
    let sent = column(&read, Quantity::BytesSent);
    assert_eq!(sent, [0.0, 5.0, 6.0]);
    assert_eq!(calls(&read).iter().filter(|call| call.thread == 1).count(), 2);
}

#[test]
fn local_calls_are_counted_and_not_timed() {
    let job = Job::new("[window]\nmarker = \"period:100ns\"\n[trace]\ntiming = \"off\"\n", 1);
    let mut thread = job.thread(0);
    assert!(!thread.local(ids::MPI_COMM_RANK, 0x40, 50));
    assert!(thread.local(ids::MPI_COMM_RANK, 0x40, 150), "the clock ends windows here too");
    let rank = [1, 0];
    let seen = CallEnd { timed: false, ..call(ids::MPI_COMM_RANK, 160, 190, 0) };
    thread.enter(ids::MPI_COMM_RANK, 0x40, 160);
    leave(&mut thread, seen, &rank);
    thread.finish(200);
    let read = job.read();
    let of = |quantity| column(&read, quantity);
    assert_eq!(of(Quantity::Calls)[..2], [1.0, 2.0]);
    assert_eq!(of(Quantity::MpiTime)[..2], [0.0, 0.0]);
    assert_eq!(read.rank.process.calls, [(ids::MPI_COMM_RANK.0, 3)]);
}

#[test]
fn any_thread_closes_windows() {
    let job = Job::new("[window]\nmarker = \"period:100ns\"\n", 1);
    let (mut first, mut second) = (job.thread(0), job.thread(1));
    make(&mut first, ids::MPI_SEND, 10, 20, 1, &send_words(1));
    // The first thread is not in MPI when windows end: the second closes three, one of them inside its call.
    make(&mut second, ids::MPI_SEND, 150, 250, 2, &send_words(2));
    make(&mut second, ids::MPI_SEND, 310, 320, 4, &send_words(3));
    // It learns here that it is in window 3, and leaves its byte there.
    make(&mut first, ids::MPI_SEND, 330, 340, 8, &send_words(4));
    second.hand_over();
    first.finish(350);
    let read = job.read();
    let sent = column(&read, Quantity::BytesSent);
    assert_eq!(sent, [0.0, 0.0, 2.0, 13.0]);
    let time = column(&read, Quantity::MpiTime);
    assert_eq!(time, [0.0, 50.0, 50.0, 30.0]);
    let mut all = calls(&read);
    all.sort_by_key(|call| call.timed.map(|timed| timed.start_ns));
    let windows: Vec<_> =
        all.iter().map(|call| (call.thread, call.timed.map(|timed| timed.window))).collect();
    assert_eq!(windows, [(0, Some(0)), (1, Some(2)), (1, Some(3)), (0, Some(3))]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whatever is recorded comes back call by call, across block borders too.
    #[test]
    fn recorded_calls_come_back(tags in prop::collection::vec(0u64..1000, 0..3000)) {
        let job = Job::new("[window]\nmarker = \"period:3600s\"\n", 1);
        let mut thread = job.thread(0);
        for (index, &tag) in tags.iter().enumerate() {
            let at = 100 * index as u64;
            make(&mut thread, ids::MPI_SEND, at, at + 1 + tag, tag, &send_words(tag));
        }
        thread.finish(100 * tags.len() as u64 + 2000);
        let read = job.read();
        prop_assert!(read.damage.is_empty());
        let back = calls(&read);
        prop_assert_eq!(back.len(), tags.len());
        for (index, (call, &tag)) in back.iter().zip(&tags).enumerate() {
            prop_assert_eq!(call.seq, index as u64);
            let times = call.timed.map(|timed| (timed.window, timed.start_ns, timed.duration_ns));
            prop_assert_eq!(times, Some((0, 100 * index as i64, Some(1 + tag))));
            prop_assert_eq!(&call.args[4].1, &ampl_core::value::tag_value(tag as i64));
        }
        let total: u64 = read.aggregates.iter().map(|site| site.sent).sum();
        prop_assert_eq!(total, tags.iter().sum::<u64>());
    }
}

/// Windows that wait for the tree, added up.
fn closed(job: &Job) -> (u64, u64, f64, f64) {
    let (mut records, mut windows, mut mpi, mut wall) = (0, 0, 0.0, 0.0);
    while let Some(window) = job.shared.take_closed() {
        assert_eq!(window.window.0, windows, "in order, none left out");
        windows = window.last.0 + 1;
        records += 1;
        mpi += window.cells.get(slot(&Quantity::MpiTime)).unwrap().sum;
        wall += window.cells.get(slot(&Quantity::Wall)).unwrap().sum;
        assert_eq!(
            window.cells.get(slot(&Quantity::Wall)).unwrap().n,
            (window.last.0 - window.window.0 + 1) as f64
        );
    }
    (records, windows, mpi, wall)
}

#[test]
fn a_long_absence_costs_no_more_than_a_short_one() {
    for inside in [true, false] {
        let job = Job::new("[window]\nmarker = \"period:1us\"\nmax = 2000000\n", 1);
        let mut thread = job.thread(0);
        let windows = 1_000_000;
        if inside {
            make(&mut thread, ids::MPI_RECV, 10, windows * 1000 + 10, 0, &[]);
        } else {
            make(&mut thread, ids::MPI_SEND, 10, 20, 0, &send_words(1));
            make(&mut thread, ids::MPI_SEND, windows * 1000 + 10, windows * 1000 + 20, 0, &send_words(2));
        }
        let (records, closed, mpi, wall) = closed(&job);
        assert!(records < 200, "{records}");
        assert_eq!((closed, wall), (windows, windows as f64 * 1000.0));
        let expected = if inside { windows as f64 * 1000.0 - 10.0 } else { 10.0 };
        assert!((mpi - expected).abs() < 1.0, "{mpi}");
        assert!(std::fs::metadata(&job.path).unwrap().len() < 1 << 20);
        let stored = job.read().rank.windows;
        assert!(stored.entries().len() < 200, "{}", stored.entries().len());
        assert_eq!(stored.count(), windows);
        let at = |window: u64| stored.get(window).unwrap();
        let mpi = if inside { 1000.0 } else { 0.0 };
        for window in [100, 4711, 999_000] {
            assert_eq!(at(window).window, window);
            assert_eq!(at(window).start_ns, window as i64 * 1000);
            assert_eq!(at(window).cells.get(slot(&Quantity::MpiTime)).unwrap().sum, mpi);
            assert_eq!(at(window).cells.get(slot(&Quantity::Wall)).unwrap().sum, 1000.0);
        }
    }
}

#[test]
fn windows_that_nobody_takes_are_added_up() {
    let job = Job::new("[window]\nmarker = \"mpi:MPI_Barrier\"\n", 1);
    let mut thread = job.thread(0);
    for turn in 0..5000 {
        make(&mut thread, ids::MPI_BARRIER, 100 * turn, 100 * turn + 40, 0, &[1]);
    }
    let (records, windows, mpi, _) = closed(&job);
    assert!(records <= 512, "{records}");
    // Each call belongs to the window after it, and the last of those is open.
    assert_eq!((windows, mpi), (5000, 4999.0 * 40.0));
}

#[test]
fn what_is_left_out_of_a_full_queue_is_in_no_range() {
    let job = Job::new(BEFOREHAND, 64);
    let mut thread = job.thread(0);
    // A coin per window: neighbours are drawn differently, and cannot be added up.
    job.shared.direct(Directive {
        update: 1,
        first_window: WindowId(1),
        seed: 1,
        mechanism: Mechanism::Global,
        strata: vec![StratumDirective { group: 0, stratum: 0, size: 32, probability: 0.5, policy: 1 }],
        divided: Vec::new(),
    });
    for turn in 0..2000 {
        make(&mut thread, ids::MPI_BARRIER, 100 * turn, 100 * turn + 40, 0, &[1]);
    }
    let mut covered = 0;
    while let Some(closed) = job.shared.take_closed() {
        let windows = closed.last.0 - closed.window.0 + 1;
        assert_eq!(closed.cells.get(slot(&Quantity::Wall)).unwrap().n, windows as f64, "{closed:?}");
        covered += windows;
    }
    assert!((512..2000).contains(&covered), "{covered}");
}
