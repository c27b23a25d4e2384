//! Windows that follow the program's steps: the search of a thread, and what it does with an announcement. The clock
//! ticks once a nanosecond.

mod left;

use ampl_agent::{CallEnd, Thread};
use ampl_core::message::{OwnCall, OwnSteps, StepAnnouncement, StepCall, StepMarker};
use ampl_core::mpi::{Function, ids};
use ampl_core::units::WindowId;
use ampl_trace::model::FollowedSteps;
use ampl_trace::record::CALL_NO_ARGS;
use proptest::prelude::*;

use crate::common::{Job, leave};

const AUTO: &str = "[window]\nmarker = \"auto\"\n";
const PERIOD_NS: u64 = 250_000_000;
const STEP_NS: u64 = 30_000_000;

/// A call and its place.
type Call = (Function, u64);

const START: Call = (ids::MPI_BCAST, 0x100);
const RECEIVE: Call = (ids::MPI_IRECV, 0x200);
const SEND: Call = (ids::MPI_ISEND, 0x210);
const WAIT: Call = (ids::MPI_WAITALL, 0x220);
const SUM: Call = (ids::MPI_ALLREDUCE, 0x300);
const TEST: Call = (ids::MPI_TESTALL, 0x400);

/// A program on one thread, which the tree polls after every step.
struct Program {
    job: Job,
    thread: Thread,
    now: u64,
}

impl Program {
    fn new(config: &str) -> Self {
        let job = Job::new(config, 2);
        let thread = job.thread(0);
        Self { job, thread, now: 1 }
    }

    /// Makes `calls`, and takes `ns` for it.
    fn step(&mut self, calls: &[Call], ns: u64) {
        for &(function, address) in calls {
            self.now += ns / calls.len() as u64;
            self.thread.enter(function, address, self.now);
            let (start, end) = (self.now, self.now + 10);
            let call = CallEnd {
                function,
                address,
                start,
                end,
                sent: 0,
                received: 0,
                flags: CALL_NO_ARGS,
                terminal: None,
                timed: true,
                apart: false,
            };
            leave(&mut self.thread, call, &[]);
        }
        self.thread.look_for_steps(self.now);
        self.thread.follow_steps();
    }

    fn named(&self) -> Option<OwnSteps> {
        self.job.shared.named_steps()
    }

    /// The end: first windows of each record, where they begin, and what is followed.
    fn end(mut self) -> (Vec<(u64, u64)>, Option<FollowedSteps>) {
        self.thread.finish(self.now + 1000);
        let rank = self.job.read().rank;
        let windows = rank.windows.entries().iter().map(|window| (window.window, window.start_ns as u64));
        (windows.collect(), rank.process.followed.map(|steps| *steps))
    }
}

fn function(own: &OwnCall) -> u16 {
    own.call.function
}

const STEP: [Call; 4] = [RECEIVE, SEND, WAIT, SUM];

#[test]
fn windows_follow_an_announced_visit() {
    let mut program = Program::new(AUTO);
    program.step(&[START; 3], 1000);
    let mut visits = 0;
    while program.named().is_none() {
        program.step(&STEP, STEP_NS);
        visits += 1;
        assert!(visits < 100, "a loop of a second is named");
    }
    let named = program.named().unwrap();
    let functions: Vec<u16> = named.calls.iter().map(function).collect();
    assert_eq!(functions, STEP.map(|call| call.0.0));
    assert!(named.calls.iter().all(|own| (own.visits, own.before) == (visits, 0)));
    let per_window = (PERIOD_NS / STEP_NS) as f32;
    assert!((per_window - 1.0..=per_window + 2.0).contains(&named.rate), "{named:?}");

    let (call, visit) = (named.calls[3].call, visits + 20);
    let marker = StepMarker { call, visit, window: WindowId(9), every: 2, per_step: 1, timeout_s: 10 };
    program.job.shared.announce_steps(marker, program.now);
    for _ in 0..60 {
        program.step(&STEP, STEP_NS);
    }
    let (windows, followed) = program.end();
    let followed = followed.expect("it follows");
    assert_eq!((followed.first_visit, followed.first_window, followed.every), (visits + 20, 9, 2));
    assert_eq!(
        (&*followed.function, &*followed.module, followed.offset),
        ("MPI_Allreduce", "/bin/app", SUM.1)
    );
    // Periods up to the window before, which lasts until the visit.
    let (before, own): (Vec<_>, Vec<_>) = windows.into_iter().partition(|of| of.0 < 9);
    assert!(
        before.iter().enumerate().all(|(at, of)| *of == (at as u64, at as u64 * PERIOD_NS)),
        "{before:?}"
    );
    assert_eq!(own.iter().map(|of| of.0).collect::<Vec<_>>(), (9..9 + 41u64.div_ceil(2)).collect::<Vec<_>>());
    assert!(own.windows(2).all(|pair| pair[1].1 - pair[0].1 == 2 * STEP_NS), "{own:?}");
}

/// Three exchanges and two sums, at one place each: no call is made once in each step.
#[test]
fn steps_without_a_call_of_their_own_begin_at_the_first_of_equally_many() {
    let mut program = Program::new(AUTO);
    let exchange = [RECEIVE, SEND, WAIT];
    // The tree polls within steps.
    let parts: [&[Call]; 4] = [&exchange, &exchange, &exchange, &[SUM, SUM]];
    program.step(&[START, SUM, START], 1000);
    let mut steps = 0;
    while program.named().is_none() {
        parts.iter().for_each(|part| program.step(part, STEP_NS / 4));
        steps += 1;
        assert!(steps < 100, "a loop of a second is named");
    }
    let named = program.named().unwrap();
    let own = named.calls[0];
    assert_eq!((function(&own), own.per_step, own.before), (ids::MPI_ALLREDUCE.0, 2, 1), "{named:?}");
    assert!(named.calls[1..].iter().all(|own| (own.per_step, own.before) == (3, 0)), "{named:?}");
    let per_window = (PERIOD_NS / STEP_NS) as f32;
    assert!((per_window - 1.0..=per_window + 2.0).contains(&named.rate), "{named:?}");
    let visit = 1 + 2 * (steps + 10) + 1;
    let marker =
        StepMarker { call: own.call, visit, window: WindowId(9), every: 4, per_step: 2, timeout_s: 10 };
    program.job.shared.announce_steps(marker, program.now);
    (0..60).for_each(|_| parts.iter().for_each(|part| program.step(part, STEP_NS / 4)));
    assert_eq!(program.named(), None, "what windows follow is no other loop");
    let (windows, followed) = program.end();
    let followed = followed.expect("it follows");
    assert_eq!((followed.first_visit, followed.first_window, followed.per_step), (visit, 9, 2));
    let own: Vec<(u64, u64)> = windows.into_iter().filter(|of| of.0 >= 9).collect();
    assert_eq!(own.len(), 25, "two steps each: {own:?}");
    let first = own[0].1;
    assert!(own.iter().zip(0..).all(|(of, at)| of.1 - first == at * 2 * (STEP_NS / 4 * 4)), "{own:?}");
}

#[test]
fn a_rank_that_is_past_the_visit_has_the_numbers_of_the_others() {
    let run = |late: u64| {
        let mut program = Program::new(AUTO);
        let marker = |program: &Program| {
            let call = program.named().expect("named after 60 steps").calls[0].call;
            StepMarker { call, visit: 70, window: WindowId(8), every: 3, per_step: 1, timeout_s: 10 }
        };
        for step in 0..160 {
            program.step(&STEP, STEP_NS);
            if step == 60 + late {
                let marker = marker(&program);
                program.job.shared.announce_steps(marker, program.now);
            }
        }
        program.end()
    };
    let (in_time, followed) = run(0);
    assert_eq!(followed.as_ref().map(|own| (own.first_visit, own.first_window)), Some((70, 8)));
    for late in [12, 30, 50] {
        let (windows, followed) = run(late);
        let followed = followed.expect("it follows");
        assert!(followed.first_visit > 70 && followed.first_window > 8, "{followed:?}");
        let own = |windows: &[(u64, u64)]| -> Vec<(u64, u64)> {
            windows.iter().copied().filter(|of| of.0 >= followed.first_window).collect()
        };
        assert_eq!(own(&windows), own(&in_time), "late by {late}");
        assert!(windows.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }
}

#[test]
fn of_several_calls_announced_a_rank_follows_the_first_of_its_own() {
    let mut program = Program::new(AUTO);
    // A visit before the first step, of one call alone.
    program.step(&[RECEIVE, START], 1000);
    (0..60).for_each(|_| program.step(&STEP, STEP_NS));
    let named = program.named().expect("named after 1.8 s").calls;
    assert_eq!(named.iter().map(|own| own.before).collect::<Vec<_>>(), [1, 0, 0, 0]);
    assert!(named.iter().all(|own| own.visits - own.before == named[1].visits), "{named:?}");
    // A call of other ranks alone, and two of this rank's own.
    let elsewhere = StepCall { function: START.0.0, path: 1 };
    let calls = vec![(elsewhere, 7), (named[0].call, 71), (named[1].call, 70)];
    let announced = StepAnnouncement { calls, window: WindowId(9), every: 1, per_step: 1, timeout_s: 10 };
    program.job.shared.announce_steps(announced, program.now);
    (0..40).for_each(|_| program.step(&STEP, STEP_NS));
    let (windows, followed) = program.end();
    let followed = followed.expect("it follows");
    let own = (&*followed.function, followed.visit, followed.first_visit, followed.first_window);
    assert_eq!(own, ("MPI_Irecv", 71, 71, 9));
    assert_eq!(windows.iter().filter(|of| of.0 >= 9).count(), 31);
}

#[test]
fn the_clock_ends_windows_again_where_steps_do_not_go_on() {
    for before in [10, 100] {
        let mut program = Program::new(AUTO);
        (0..60).for_each(|_| program.step(&STEP, STEP_NS));
        let call = program.named().expect("named after 1.8 s").calls[0].call;
        let marker =
            StepMarker { call, visit: 100, window: WindowId(9), every: 1, per_step: 1, timeout_s: 3 };
        program.job.shared.announce_steps(marker, program.now);
        (0..before).for_each(|_| program.step(&STEP, STEP_NS));
        // The loop is over, before the visit or behind it; something else goes on.
        let last = program.now;
        (0..400).for_each(|number| program.step(&[(ids::MPI_BARRIER, 0x1000 + number)], STEP_NS));
        program.step(&STEP, STEP_NS);
        let (windows, followed) = program.end();
        assert_eq!(followed.is_some(), before == 100);
        // Multiples of the timeout are the same on all ranks.
        let timeout = 3_000_000_000;
        let again = (last / timeout + 2) * timeout;
        let (own, clock): (Vec<_>, Vec<_>) = windows.into_iter().partition(|of| of.1 < again);
        assert!(last - own.last().unwrap().1 < 10 * STEP_NS, "{own:?}");
        assert!(
            clock.len() > 20 && clock.windows(2).all(|pair| pair[1].1 - pair[0].1 == PERIOD_NS),
            "{clock:?}"
        );
        assert!(
            clock.windows(2).all(|pair| pair[1].0 == pair[0].0 + 1)
                && clock[0].0 == own.last().unwrap().0 + 1
        );
    }
}

#[test]
fn what_is_no_loop_over_time_is_not_named() {
    let check = |steps: &mut dyn FnMut(&mut Program, u64)| {
        let mut program = Program::new(AUTO);
        for number in 0..100 {
            steps(&mut program, number);
            assert_eq!(program.named(), None, "step {number}");
        }
        let (windows, followed) = program.end();
        assert_eq!(followed, None);
        assert!(windows.iter().all(|of| of.1 == of.0 * PERIOD_NS), "{windows:?}");
    };
    // Calls at ever new places.
    check(&mut |program, number| program.step(&[(ids::MPI_BARRIER, 0x1000 + number)], STEP_NS));
    // A loop to read input, which is over when it is found.
    check(&mut |program, number| {
        let calls: &[Call] = if number < 20 { &[START, SUM] } else { &[] };
        match calls {
            [] => program.step(&[(ids::MPI_BARRIER, 0x1000 + number)], STEP_NS),
            calls => program.step(calls, 1_000_000),
        }
    });
    // Another marker.
    let mut program = Program::new("[window]\nmarker = \"period:50ms\"\n");
    (0..100).for_each(|_| program.step(&STEP, STEP_NS));
    assert_eq!(program.named(), None);
}

#[test]
fn a_loop_inside_of_the_first_step_is_not_named() {
    let output: Vec<Call> = (0..8).map(|place| (ids::MPI_BCAST, 0x500 + place)).collect();
    // An iterative solver of 200 to 800 ms, then the end of the step.
    for iteration_ns in [10_000_000, 20_000_000, 30_000_000, 40_000_000] {
        let mut program = Program::new(AUTO);
        for _ in 0..20 {
            (0..20).for_each(|_| program.step(&[RECEIVE, SEND, WAIT], iteration_ns));
            program.step(&output, 20_000_000);
            if let Some(named) = program.named() {
                assert!(named.calls.iter().all(|call| function(call) == ids::MPI_BCAST.0), "{named:?}");
            }
        }
        assert!(program.named().is_some(), "{iteration_ns}");
    }
}

#[test]
fn steps_that_were_parts_of_longer_ones_are_replaced() {
    // A solver that takes 3 s and more in each step, then the end of the step.
    const INNER: u64 = 100;
    let end: Vec<Call> = (0..4).map(|place| (ids::MPI_BCAST, 0x500 + place)).collect();
    let mut program = Program::new(AUTO);
    let (mut first, mut second) = (None, None);
    let mut ends = Vec::new();
    for step in 1..=20u64 {
        for _ in 0..INNER + 7 * step % 30 {
            program.step(&STEP, STEP_NS);
            if first.is_none()
                && let Some(named) = program.named()
            {
                let call = named.calls[3].call;
                let marker = StepMarker {
                    call,
                    visit: named.calls[3].visits + 10,
                    window: WindowId(9),
                    every: 1,
                    per_step: 1,
                    timeout_s: 10,
                };
                program.job.shared.announce_steps(marker, program.now);
                first = Some(marker);
            }
        }
        ends.push((step, program.now + 20_000_000 / 4));
        program.step(&end, 20_000_000);
        let Some(named) = program.named().filter(|_| first.is_some() && second.is_none()) else { continue };
        // Calls of what windows follow are not named again.
        assert!(named.calls.iter().all(|own| function(own) == ids::MPI_BCAST.0), "{named:?}");
        assert!((0.05..0.2).contains(&named.rate), "{named:?}");
        let window = program.job.shared.window().0 + 5;
        let marker = StepMarker {
            call: named.calls[0].call,
            visit: step + 3,
            window: WindowId(window),
            every: 1,
            per_step: 1,
            timeout_s: 40,
        };
        program.job.shared.announce_steps(marker, program.now);
        // One that begins no later is a copy.
        program.job.shared.announce_steps(first.unwrap(), program.now);
        second = Some(marker);
    }
    let (first, second) = (first.expect("a solver of 3 s is named"), second.expect("its steps are named"));
    assert!(second.visit <= 13, "{second:?}");
    let (windows, followed) = program.end();
    let followed = followed.expect("it follows");
    assert_eq!((&*followed.function, followed.first_visit), ("MPI_Bcast", second.visit));
    assert_eq!((followed.first_window, followed.replaces), (second.window.0, Some(first.window.0)));
    let own: Vec<(u64, u64)> = windows.iter().copied().filter(|of| of.0 >= second.window.0).collect();
    let expected: Vec<(u64, u64)> =
        ends.iter().filter_map(|of| Some((second.begun_by(of.0)?.0, of.1))).collect();
    assert_eq!(own, expected);
    assert!(windows.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1));
}

#[test]
fn a_loop_over_time_behind_another_one_is_named() {
    let mut program = Program::new(AUTO);
    let read: [Call; 2] = [START, (ids::MPI_SCATTER, 0x110)];
    (0..60).for_each(|_| program.step(&read, STEP_NS));
    let named = program.named().expect("input that takes 1.8 s is named");
    let marker = StepMarker {
        call: named.calls[0].call,
        visit: 70,
        window: WindowId(9),
        every: 1,
        per_step: 1,
        timeout_s: 3,
    };
    program.job.shared.announce_steps(marker, program.now);
    (0..20).for_each(|_| program.step(&read, STEP_NS));
    let mut steps = 0;
    while program.named().is_none() && steps < 1000 {
        program.step(&STEP, STEP_NS);
        steps += 1;
    }
    let named = program.named().expect("the loop behind it");
    assert_eq!(named.calls.iter().map(function).collect::<Vec<_>>(), STEP.map(|call| call.0.0));
    let visit = named.calls[3].visits + 10;
    let window = WindowId(program.job.shared.window().0 + 2);
    let call = named.calls[3].call;
    let marker = StepMarker { call, visit, window, every: 1, per_step: 1, timeout_s: 3 };
    program.job.shared.announce_steps(marker, program.now);
    (0..40).for_each(|_| program.step(&STEP, STEP_NS));
    let (windows, followed) = program.end();
    let followed = followed.expect("it follows");
    assert_eq!((followed.first_visit, followed.first_window), (visit, window.0));
    assert_eq!(windows.iter().filter(|of| of.0 >= window.0).count(), 31);
}

#[test]
fn a_search_leaves_the_sequence_as_it_is() {
    let run = |marker: &str| {
        let mut program = Program::new(&format!("[window]\nmarker = \"{marker}\"\n"));
        let mut made = Vec::new();
        for step in 0..60 {
            program.step(&STEP[..3], STEP_NS);
            // The tree is polled between repetitions of a call, too.
            let trips = 2 + step * 5 % 7;
            (0..trips).for_each(|_| program.step(&[SUM], STEP_NS));
            made.extend([(RECEIVE.0, 1), (SEND.0, 1), (WAIT.0, 1), (SUM.0, trips)]);
        }
        program.thread.finish_structure();
        let thread = program.job.read().structure.threads.swap_remove(0);
        let function = |terminal: u32| Function(thread.signatures[terminal as usize].function);
        let runs: Vec<(Function, u64)> =
            thread.grammar.runs().map(|(of, times)| (function(of), times)).collect();
        (runs, made)
    };
    for marker in ["auto", "period:250ms"] {
        let (runs, made) = run(marker);
        assert_eq!(runs, made, "{marker}");
    }
}

#[test]
fn calls_that_are_only_counted_are_not_named() {
    let mut program = Program::new("[window]\nmarker = \"auto\"\n[trace]\nstructure = \"off\"\n");
    (0..100).for_each(|_| program.step(&STEP, STEP_NS));
    assert_eq!(program.named(), None);
    // Polls end no windows: how many find nothing is chance.
    let mut program = Program::new(AUTO);
    (0..100).for_each(|_| program.step(&[TEST, SUM], STEP_NS));
    let named = program.named().expect("a loop");
    assert_eq!(named.calls.iter().map(function).collect::<Vec<_>>(), [SUM.0.0]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whenever the announcement comes, and whatever the lengths of steps, the window of a visit is the marker's.
    #[test]
    fn the_number_of_a_window_is_a_function_of_the_visits(
        comes in 0u64..80,
        visit in 60u64..100,
        window in 3u64..30,
        every in 1u16..5,
        lengths in prop::collection::vec(1_000_000u64..90_000_000, 1..5),
    ) {
        let mut program = Program::new(AUTO);
        (0..50).for_each(|_| program.step(&STEP, STEP_NS));
        let call = program.named().expect("named after 1.5 s").calls[1].call;
        let marker = StepMarker { call, visit, window: WindowId(window), every, per_step: 1, timeout_s: 60 };
        let mut begins = Vec::new();
        for step in 50..220u64 {
            if step == 50 + comes {
                program.job.shared.announce_steps(marker, program.now);
            }
            let ns = lengths[step as usize % lengths.len()];
            // The second of four calls.
            begins.push((step + 1, program.now + ns / 4 * 2));
            program.step(&STEP, ns);
        }
        let (windows, followed) = program.end();
        let Some(followed) = followed else {
            // The clock was ahead of the steps all the time.
            return Ok(());
        };
        prop_assert_eq!(marker.begun_by(followed.first_visit), Some(WindowId(followed.first_window)));
        let expected: Vec<(u64, u64)> = begins
            .iter()
            .filter(|of| of.0 >= followed.first_visit)
            .filter_map(|&(visit, at)| Some((marker.begun_by(visit)?.0, at)))
            .collect();
        let own: Vec<(u64, u64)> = windows.iter().copied().filter(|of| of.0 >= followed.first_window).collect();
        prop_assert_eq!(own, expected);
        prop_assert!(windows.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }
}
