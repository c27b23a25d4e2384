//! Calls from threads to the trace: every call is there, whatever is kept, and reads the same on every rank that has
//! done the same.

use ampl_core::mpi::ids;
use ampl_core::value::Value;
use ampl_trace::decode::{Call, Calls};
use ampl_trace::from_journal::{Compacted, Within, compact, compact_within};
use ampl_trace::timing::Settings;
use proptest::prelude::*;

use crate::model::{Look, Process, Step, check, program};

const EXACT: Settings = Settings { error: 0.0, floor_ns: 0 };
const LOOK: Look = Look { base: 0x40_0000, handles: (0x9800, 1), last_first: true, drawn: 0.5 };

fn run(after: bool, look: Look, steps: &[(usize, Step)]) -> Process {
    run_gathering(0, after, look, steps)
}

/// As [`run`], where up to `most` windows gather before they are closed.
fn run_gathering(most: usize, after: bool, look: Look, steps: &[(usize, Step)]) -> Process {
    let mut process = Process::new(after, "", look);
    process.gather(most);
    for &(thread, step) in steps {
        process.step(thread, step);
    }
    process.finish();
    process
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_call_comes_back_with_the_times_of_kept_windows(after: bool, steps in program()) {
        let process = run(after, LOOK, &steps);
        check(&process.bytes(), &process.made, |_| None);
    }

    #[test]
    fn windows_that_gather_are_told_as_if_each_had_been_closed_at_its_end(
        most in 2..9usize,
        drawn in 0.0..1.0f64,
        steps in program(),
    ) {
        let [each, gathered] = [0, most].map(|most| {
            let process = run_gathering(most, true, Look { drawn, ..LOOK }, &steps);
            check(&process.bytes(), &process.made, |_| None)
        });
        prop_assert_eq!(&each.rank.windows, &gathered.rank.windows);
        prop_assert_eq!(&each.structure, &gathered.structure);
        let calls = |read: &Compacted| Calls::new(&read.structure, &read.rank).collect::<Result<Vec<_>, _>>();
        prop_assert_eq!(format!("{:?}", calls(&each)), format!("{:?}", calls(&gathered)));
    }

    /// Whatever comes in whatever order: pauses, windows, policies, failed polls and calls that need more.
    #[test]
    fn the_short_way_leaves_the_same_journal(after: bool, drawn in 0.0..1.0f64, steps in program()) {
        let [whole, short] = [None, Some(0)].map(|short| {
            let mut process = Process::new(after, "", Look { drawn, ..LOOK });
            process.short = short;
            for &(thread, step) in &steps {
                process.step(thread, step);
            }
            process.finish();
            process.bytes()
        });
        prop_assert!(whole == short, "journals differ");
    }

    /// So many threads that their numbers do not fit, or as many live requests: their names come back all the same.
    #[test]
    fn requests_without_a_slot_are_told_from_each_other(steps in program()) {
        let mut process = Process::new(false, "", LOOK);
        process.crowd();
        for &(thread, step) in &steps {
            process.step(thread, step);
        }
        process.finish();
        check(&process.bytes(), &process.made, |_| None);
    }

    /// Where the program is loaded, what MPI gives out, which windows are drawn: the structure has nothing of it.
    #[test]
    fn ranks_that_do_the_same_have_equal_structures(steps in program()) {
        let handles = (0x5555_0000_1000, 0xfffe_8ac0);
        let other = Look { base: 0x7f12_3456_7000, handles, last_first: false, drawn: 0.1 };
        let [one, other] = [LOOK, other].map(|look| {
            let process = run(false, look, &steps);
            check(&process.bytes(), &process.made, |_| None)
        });
        prop_assert_eq!(one.structure, other.structure);
    }
}

#[test]
fn repeated_calls_take_the_short_way() {
    let mut process = Process::new(true, "", LOOK);
    process.short = Some(0);
    for turn in 0..1000 {
        for tag in 0..3 {
            process.step(0, Step::Send { tag, site: tag, fails: false, buffer: 0 });
            process.step(0, Step::Poll { tag });
        }
        // Its site has a policy.
        process.step(0, Step::Receive);
        if turn % 100 == 99 {
            process.step(0, Step::Barrier);
        }
    }
    let calls = process.short.expect("set above");
    // Not those behind the receive, the first ones, and every 32nd run of the sequence.
    assert!((4_800..5_000).contains(&calls), "{calls} of 6,000");
    process.finish();
    check(&process.bytes(), &process.made, |_| None);
}

/// Two buffers in turns take the short way, too; where they are left out the rest is as it was, names of requests included.
#[test]
fn buffers_in_turns_come_back_unless_they_are_left_out() {
    let mut process = Process::new(true, "", LOOK);
    process.short = Some(0);
    for turn in 0..600 {
        process.step(0, Step::Send { tag: 0, site: 0, fails: false, buffer: turn % 2 });
        process.step(0, Step::Send { tag: 1, site: 1, fails: false, buffer: 2 });
        process.step(0, Step::Make { tag: 0, site: 1, buffer: turn % 3 });
        process.step(0, Step::Make { tag: 0, site: 1, buffer: 3 });
        process.step(0, Step::WaitAll { most: 2 });
    }
    let calls = process.short.expect("set above");
    assert!(calls > 1_000, "{calls} of 1,200");
    process.finish();
    let whole = check(&process.bytes(), &process.made, |_| None);
    assert_eq!(whole.structure.threads[0].signatures.len(), 5);
    let within = Within { buffers: false, ..Within::default() };
    let less = compact_within(&process.bytes(), EXACT, within).expect("a whole header");
    assert!(less.rank.buffers.is_empty() && !whole.rank.buffers.is_empty());
    let (mut absent, mut all) = (0, 0);
    for (whole, less) in calls_of(&whole).zip(calls_of(&less)) {
        let (mut whole, less) = (whole.expect("decodable"), less.expect("decodable"));
        all += 1;
        if less.args.contains(&("buf", Value::Absent)) {
            absent += 1;
            whole.args[0].1 = Value::Absent;
        }
        assert_eq!(whole, less);
    }
    // Those from one buffer alone have it still: every second call with one.
    assert_eq!((absent, all), (600 + 600, 5 * 600));
}

fn calls_of(read: &Compacted) -> Calls<'_> {
    Calls::new(&read.structure, &read.rank)
}

/// Four windows, of which the first and the last are kept.
fn four_windows(structure: &str) -> Vec<Call> {
    let config = format!("[trace]\nstructure = \"{structure}\"\n");
    let mut process = Process::new(true, &config, Look { drawn: 0.0, ..LOOK });
    for window in 0..4 {
        process.step(0, Step::Send { tag: window, site: 0, fails: false, buffer: 0 });
        process.step(1, Step::Send { tag: window, site: 0, fails: false, buffer: 0 });
        if window < 3 {
            process.step(0, Step::Barrier);
        }
    }
    process.step(0, Step::Barrier);
    for kept in [true, false, false, true] {
        process.step(0, Step::Judge(Some(kept)));
    }
    process.finish();
    let read = compact(&process.bytes(), Settings { error: 0.0, floor_ns: 0 }).expect("a whole header");
    Calls::new(&read.structure, &read.rank).map(|call| call.expect("decodable")).collect()
}

#[test]
fn the_key_says_of_which_windows_calls_are_recorded() {
    let seqs = |structure: &str| {
        let calls = four_windows(structure);
        let of = |thread, timed: bool| {
            let calls =
                calls.iter().filter(move |call| call.thread == thread && (!timed || call.timed.is_some()));
            calls.map(|call| call.seq).collect::<Vec<_>>()
        };
        (of(0, false), of(0, true), of(1, false), of(1, true))
    };
    let all = seqs("all");
    assert_eq!(all, (vec![0, 1, 2, 3, 4, 5, 6, 7], vec![0, 5, 6], vec![0, 1, 2, 3], vec![0, 3]));
    // They wait in the buffer until they are decided.
    assert_eq!(seqs("kept"), all);
    assert_eq!(seqs("off"), (vec![], vec![], vec![], vec![]));
    // Decided before they begin.
    for (structure, recorded) in [("all", vec![0, 1, 2, 3]), ("kept", vec![0]), ("off", vec![])] {
        let config = format!("[trace]\nstructure = \"{structure}\"\n");
        let mut process = Process::new(false, &config, Look { drawn: 0.0, ..LOOK });
        for step in
            [0, 1].map(|tag| [Step::Send { tag, site: 0, fails: false, buffer: 0 }, Step::Barrier]).concat()
        {
            process.step(0, step);
        }
        process.finish();
        let read = check(&process.bytes(), &process.made, |window| Some(window == 0 && structure != "off"));
        let calls: Vec<u64> = Calls::new(&read.structure, &read.rank).map(|call| call.unwrap().seq).collect();
        assert_eq!(calls, recorded, "{structure}");
    }
}

#[test]
fn times_are_as_exact_as_the_keys_ask() {
    let times = |config: &str| {
        let mut process = Process::new(false, &format!("[trace]\n{config}"), Look { drawn: 1.0, ..LOOK });
        let thread = &mut process.threads[0];
        let mut at = 0;
        let durations: Vec<u64> = (0..2000u64).map(|index| 1 + index * index * 7 % 20_011).collect();
        for &duration in &durations {
            let (function, address, sent, received, flags) = (ids::MPI_BARRIER, 0x40_0040, 0, 0, 0);
            // A marker would open a window, whose start is exact.
            let function = if duration == 0 { function } else { ids::MPI_SEND };
            thread.enter(function, address, at);
            let terminal = thread.terminal(function, address, flags, &[0x1000, 1, 1, 0, 1, 1], &[]);
            let (start, end, timed) = (at, at + duration, true);
            at = end + 3000;
            let call = ampl_agent::CallEnd {
                function,
                address,
                start,
                end,
                sent,
                received,
                flags,
                terminal,
                timed,
                apart: false,
            };
            thread.leave(&call);
        }
        process.finish();
        let trace = &process.shared.plan.config.trace;
        let settings = Settings { error: trace.time_error, floor_ns: trace.time_floor_ns };
        let Compacted { rank, structure, .. } = compact(&process.bytes(), settings).expect("a whole header");
        let stored =
            Calls::new(&structure, &rank).map(|call| call.unwrap().timed.unwrap().duration_ns.unwrap());
        let off: Vec<(f64, u64)> =
            durations.iter().zip(stored).map(|(&one, other)| (one as f64, one.abs_diff(other))).collect();
        assert_eq!(off.len(), durations.len());
        (off, rank.times.len())
    };
    let (exact, most) = times("time_error = 0\ntime_floor = \"0us\"");
    assert!(exact.iter().all(|&(_, off)| off == 0));
    let mut bytes = vec![most];
    for (config, error, floor) in [
        ("time_error = 0.02", 0.02, 0.0),
        ("", 0.1, 0.0),
        ("time_error = 0.4", 0.4, 0.0),
        ("time_error = 0.4\ntime_floor = \"9us\"", 0.4, 9000.0),
    ] {
        let (found, length) = times(config);
        let within = |factor: f64| {
            found.iter().all(|&(time, off)| off as f64 <= (factor * error * time).max(factor * floor))
        };
        assert!(within(1.0), "{config}");
        assert!(!within(0.5), "{config}: no more than is asked for");
        bytes.push(length);
    }
    assert!(bytes.is_sorted_by(|more, less| less < more), "{bytes:?}");
}
