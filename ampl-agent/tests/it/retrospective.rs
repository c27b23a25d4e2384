//! Windows that are decided after they are over: kept ones are in the stream whole and in order, others are gone,
//! memory is bounded, and a process that dies leaves the undecided ones.

use std::ops::Range;

use ampl_agent::{CallEnd, Thread};
use ampl_core::config::Mechanism;
use ampl_core::draw::Keep;
use ampl_core::message::{Directive, StratumDirective};
use ampl_core::mpi::ids;
use ampl_core::units::WindowId;
use ampl_core::value::Value;
use ampl_trace::decode::Calls;
use ampl_trace::from_journal::Compacted;

use crate::common::{Job, leave};

/// Sends as read from the trace.
struct Stored {
    /// Windows and numbers of those with times.
    timed: Vec<(u64, u64)>,
    /// Tags of all.
    tags: Vec<u64>,
    /// True for each window that is kept.
    kept: Vec<bool>,
}

fn job() -> Job {
    Job::new("[window]\nmarker = \"mpi:MPI_Barrier\"\n", 64)
}

/// Draws beforehand from `first` on: with certainty, or never.
fn beforehand(job: &Job, first: u64, probability: f64) {
    job.shared.direct(directive(first, probability));
}

fn directive(first: u64, probability: f64) -> Directive {
    Directive {
        update: first + 1,
        first_window: WindowId(first),
        seed: 1,
        mechanism: Mechanism::Global,
        strata: vec![StratumDirective { group: 0, stratum: 0, size: 8, probability, policy: 1 }],
        divided: Vec::new(),
    }
}

fn stored(job: &Job) -> Stored {
    let Compacted { rank, structure, .. } = job.read();
    let (mut timed, mut tags) = (Vec::new(), Vec::new());
    for call in Calls::new(&structure, &rank).map(|call| call.expect("decodable")) {
        if call.function != ids::MPI_SEND {
            continue;
        }
        let ("tag", Value::Int(tag)) = call.args[4] else { panic!("{call:?}") };
        tags.push(tag as u64);
        if let Some(found) = call.timed {
            let number = (found.start_ns as u64 - 1000) / 2;
            assert_eq!(number % TAGS, tag as u64, "times are those of the call");
            timed.push((found.window, number));
        }
    }
    Stored { timed, tags, kept: rank.windows.entries().iter().map(|window| window.kept).collect() }
}

/// So many tags are in use: windows are much alike.
const TAGS: u64 = 251;

fn call(thread: &mut Thread, function: ampl_core::mpi::Function, start: u64, words: &[u64]) {
    thread.enter(function, 0x40, start);
    let (end, terminal) = (start + 1, None);
    let call = CallEnd {
        function,
        address: 0x40,
        start,
        end,
        sent: 0,
        received: 0,
        flags: 0,
        terminal,
        timed: true,
        apart: false,
    };
    leave(thread, call, words);
}

/// The first thread, where windows gather before they are closed.
fn gathering(job: &Job) -> Thread {
    let mut thread = job.thread(0);
    thread.gather_up_to(4);
    thread
}

/// Takes a decision; windows are decided only after they are reported.
fn judge(thread: &mut Thread, window: WindowId, decided: Option<(Keep, u16)>) {
    thread.close_gathered();
    thread.judged(window, decided);
}

fn barrier(thread: &mut Thread, at: u64) {
    call(thread, ids::MPI_BARRIER, at, &[1]);
}

/// Sends of these numbers.
fn sends(thread: &mut Thread, numbers: Range<u64>) {
    for number in numbers {
        call(thread, ids::MPI_SEND, 1000 + 2 * number, &[0x1000, 1, 1, 0, number % TAGS, 1]);
    }
}

/// Their tags.
fn tags(numbers: impl IntoIterator<Item = Range<u64>>) -> Vec<u64> {
    numbers.into_iter().flatten().map(|number| number % TAGS).collect()
}

fn keep(kept: bool) -> Option<(Keep, u16)> {
    Some((Keep { kept, probability: 0.25 }, 2))
}

#[test]
fn what_a_decision_keeps_is_there_whole_and_in_order() {
    let job = job();
    let mut thread = gathering(&job);
    beforehand(&job, 1, 0.0);
    let numbers = |window: u64| window * 10_000..window * 10_000 + (window * window * 7) % 3000;
    for window in 0..60 {
        // Windows of very different length, so that they begin and end anywhere in a block.
        sends(&mut thread, numbers(window));
        barrier(&mut thread, 1000 + 20_000 * (window + 1));
        if let Some(over) = window.checked_sub(2) {
            judge(&mut thread, WindowId(over), keep(over % 7 == 3));
        }
    }
    thread.finish(10_000_000);
    // The last two are not decided when the run ends, nor were they drawn.
    job.shared.journal.mark_finalized();
    let Stored { timed: found, tags: sent, kept } = stored(&job);
    let expected = |window: u64| numbers(window).map(move |number| (window, number));
    let all: Vec<(u64, u64)> = (0..58).filter(|window| window % 7 == 3).flat_map(expected).collect();
    assert_eq!(found, all);
    assert_eq!(sent, tags((0..60).map(numbers)));
    assert_eq!(kept, (0..61).map(|window| window < 58 && window % 7 == 3).collect::<Vec<_>>());
    let windows = job.read().rank.windows.entries().to_vec();
    assert!(windows[..58].iter().all(|w| w.stratum == Some(2) && w.probability == 0.25 && w.drawn == w.kept));
    assert!(windows[58..].iter().all(|w| w.stratum.is_none() && w.probability == 0.0));
    let size = std::fs::metadata(&job.path).expect("the journal").len();
    let kept_bytes = 32 * all.len() as u64;
    assert!(size < kept_bytes + (6 << 20), "{size} bytes for {kept_bytes} kept");
}

#[test]
fn where_nobody_decides_what_was_drawn_holds_and_memory_is_bounded() {
    for (name, probability) in [("never", 0.0), ("always", 1.0)] {
        let job = job();
        let mut thread = gathering(&job);
        beforehand(&job, 1, probability);
        for window in 0..40 {
            sends(&mut thread, window * 10_000..window * 10_000 + 8000);
            barrier(&mut thread, 1000 + 20_000 * (window + 1));
        }
        // Too late for the first windows, which had to make room.
        judge(&mut thread, WindowId(3), keep(probability == 0.0));
        thread.finish(10_000_000);
        job.shared.journal.mark_finalized();
        let Stored { timed: found, tags: sent, kept } = stored(&job);
        // Window 0 is before any directive: everyone keeps it.
        let windows = if probability == 0.0 { 1 } else { 40 };
        assert_eq!(found.len(), windows * 8000, "{name}");
        assert_eq!(sent.len(), 40 * 8000, "{name}");
        assert_eq!(kept.iter().filter(|&&kept| kept).count(), windows + usize::from(probability == 1.0));
        let size = std::fs::metadata(&job.path).expect("the journal").len();
        assert!(size < (32 * found.len() as u64) * 5 / 4 + (12 << 20), "{name}: {size}");
    }
}

#[test]
fn what_is_drawn_beforehand_is_known_in_every_window() {
    let [each, gathered] = [0, 8].map(|most| {
        let job = job();
        let mut thread = job.thread(0);
        thread.gather_up_to(most);
        beforehand(&job, 1, 0.5);
        let traced = |window: u64| {
            if window == 30 {
                beforehand(&job, 34, 0.9);
            }
            sends(&mut thread, window * 1000..window * 1000 + 3);
            let traced = job.shared.is_traced();
            barrier(&mut thread, 1000 + 2000 * (window + 1));
            traced
        };
        (0..60).map(traced).collect::<Vec<bool>>()
    });
    assert_eq!(each, gathered);
    assert!(each[1..34].contains(&false) && each[1..34].contains(&true));
}

#[test]
fn windows_do_not_gather_where_room_is_scarce() {
    let job = job();
    let mut thread = job.thread(0);
    thread.gather_up_to(16);
    beforehand(&job, 1, 0.0);
    let mut told = 0;
    for window in 0..14 {
        sends(&mut thread, window * 20_000..window * 20_000 + 18_000);
        barrier(&mut thread, 1000 + 40_000 * (window + 1));
        told += thread.take_closings();
    }
    // Half of the buffer is full by then.
    assert!(told >= 7, "{told}");
}

#[test]
fn a_window_larger_than_the_buffer_is_decided_while_it_is_open() {
    for (name, probability) in [("large-out", 0.0), ("large-in", 1.0)] {
        let job = job();
        let mut thread = gathering(&job);
        beforehand(&job, 1, probability);
        sends(&mut thread, 0..10);
        barrier(&mut thread, 5000);
        sends(&mut thread, 1_000_000..1_270_000);
        barrier(&mut thread, 3_000_000);
        judge(&mut thread, WindowId(1), keep(probability == 0.0));
        sends(&mut thread, 2_000_000..2_000_010);
        barrier(&mut thread, 4_500_000);
        judge(&mut thread, WindowId(2), keep(true));
        thread.finish(5_000_000);
        job.shared.journal.mark_finalized();
        let Stored { timed: found, tags: sent, kept } = stored(&job);
        let large = probability == 1.0;
        let count = |window| found.iter().filter(|&&(of, _)| of == window).count();
        assert_eq!([0, 1, 2].map(count), [10, if large { 270_000 } else { 0 }, 10], "{name}");
        assert_eq!(sent, tags([0..10, 1_000_000..1_270_000, 2_000_000..2_000_010]), "{name}");
        assert_eq!(kept[..3], [true, large, true], "{name}");
    }
}

#[test]
fn a_dead_process_leaves_what_was_undecided() {
    let job = job();
    let mut thread = gathering(&job);
    beforehand(&job, 1, 0.0);
    for window in 0..8 {
        sends(&mut thread, window * 10_000..window * 10_000 + 3000);
        barrier(&mut thread, 1000 + 20_000 * (window + 1));
        if let Some(over) = window.checked_sub(3) {
            judge(&mut thread, WindowId(over), keep(over == 2));
        }
    }
    sends(&mut thread, 80_000..80_100);
    // Windows 0, 1, 3 and 4 are decided; 5, 6 and 7 are over; 8 is open.
    let Stored { timed: found, tags: sent, kept } = stored(&job);
    let count = |window| found.iter().filter(|&&(of, _)| of == window).count();
    let counts: Vec<usize> = (0..9).map(count).collect();
    assert_eq!(counts, [0, 0, 3000, 0, 0, 3000, 3000, 3000, 100]);
    let all =
        (0..8).map(|window| window * 10_000..window * 10_000 + 3000).chain(std::iter::once(80_000..80_100));
    assert_eq!(sent, tags(all));
    assert_eq!(kept, [false, false, true, false, false, true, true, true]);
}

/// With predictive selection only the first interval's windows are decided so. Windows that begin before the first
/// directive has come are drawn by it later, as if it had come in time.
#[test]
fn what_begins_before_its_directive_comes_is_drawn_by_it() {
    for (probability, dies) in [(0.0, false), (1.0, false), (1.0, true)] {
        let windows = "windows_per_update = 4\nselection = \"predictive\"";
        let job = Job::new(&format!("[sampling]\n{windows}\n[window]\nmarker = \"mpi:MPI_Barrier\"\n"), 64);
        let mut thread = gathering(&job);
        job.shared.direct(Directive { update: 0, ..directive(0, 1.0) });
        for window in 0..12 {
            if window == 6 {
                // It was to be in force from window 4 on.
                job.shared.direct(directive(4, probability));
            }
            sends(&mut thread, window * 10_000..window * 10_000 + 500);
            barrier(&mut thread, 1000 + 20_000 * (window + 1));
            thread.draw_late();
            // What is decided by what happened comes later still.
            if let Some(over @ 0..4) = window.checked_sub(6) {
                judge(&mut thread, WindowId(over), keep(over == 2));
                thread.draw_late();
            }
            if dies && window == 8 {
                break;
            }
        }
        if !dies {
            thread.finish(10_000_000);
            job.shared.journal.mark_finalized();
        }
        let Stored { timed: found, tags: sent, kept } = stored(&job);
        let count = |window| found.iter().filter(|&&(of, _)| of == window).count();
        let counts: Vec<usize> = (0..12).map(count).collect();
        let all = if probability == 1.0 { 500 } else { 0 };
        if dies {
            // Nothing is known of 3 to 6; 7 and 8 were stored at once.
            assert_eq!(counts, [0, 0, 500, 500, 500, 500, 500, 500, 500, 0, 0, 0]);
            continue;
        }
        assert_eq!(counts, [0, 0, 500, 0, all, all, all, all, all, all, all, all]);
        assert_eq!(sent.len(), 12 * 500);
        assert_eq!(kept[..4], [false, false, true, false]);
        let read = job.read().rank.windows.entries().to_vec();
        let of = |window: usize| (read[window].update, read[window].stratum, read[window].probability);
        assert_eq!([of(0), of(3)], [(0, Some(2), 0.25); 2]);
        assert!((4..12).all(|window| of(window) == (5, None, probability)), "{read:?}");
    }
}

#[test]
fn every_thread_s_calls_of_a_window_share_its_fate() {
    let job = job();
    let mut main = gathering(&job);
    let mut other = job.thread(1);
    beforehand(&job, 1, 0.0);
    for window in 0..12 {
        sends(&mut main, window * 10_000..window * 10_000 + 500);
        if window < 9 {
            sends(&mut other, window * 10_000 + 5000..window * 10_000 + 5500);
        }
        barrier(&mut main, 1000 + 20_000 * (window + 1));
        if let Some(over) = window.checked_sub(2) {
            main.judged(WindowId(over), keep(over % 3 == 0));
        }
    }
    main.finish(10_000_000);
    main.judged(WindowId(11), keep(true));
    job.shared.journal.mark_finalized();
    let Stored { timed: found, tags: sent, .. } = stored(&job);
    let count = |window| found.iter().filter(|&&(of, _)| of == window).count();
    // 10 is passed over by the last decision, and was not drawn. The other thread never came back to its
    // buffer.
    assert_eq!(sent.len(), 12 * 500 + 9 * 500);
    assert_eq!((0..12).map(count).collect::<Vec<_>>(), [1000, 0, 0, 1000, 0, 0, 1000, 0, 0, 500, 0, 500]);
}
