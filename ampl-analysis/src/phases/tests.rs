//! The finder on made-up runs, whose phases are known.

use std::ops::Range;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::activity::{Activity, Place};
use super::find;

fn body(activity: &Activity) -> Option<Range<usize>> {
    find::body(activity).map(|body| body.windows)
}

/// Numbers that go by a seed.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    fn below(&mut self, most: usize) -> usize {
        (self.next() * most as f64) as usize
    }
}

/// Places of a run, as calls are made in windows.
#[derive(Default)]
struct Calls(Vec<Vec<u64>>);

impl Calls {
    fn new(places: usize, windows: usize) -> Self {
        Self(vec![vec![0; windows]; places])
    }

    fn activity(&self, is_clock: bool) -> Activity {
        let place = |calls: &Vec<u64>| {
            Place::new(0, calls.iter().copied().enumerate().filter(|&(_, calls)| calls > 0).collect())
        };
        let windows = self.0.first().map_or(0, Vec::len);
        Activity { lengths: vec![1.0; windows], places: self.0.iter().map(place).collect(), is_clock }
    }
}

/// Steps of a solver over `windows`, each `period` windows long give or take `jitter`, the places 0 to 2 in each step.
fn solve(calls: &mut Calls, windows: Range<usize>, period: f64, jitter: f64, noise: &mut Noise) {
    let mut at = windows.start as f64;
    loop {
        // The step computes before it calls.
        at += period * (1.0 + jitter * (noise.next() - 0.5));
        if at >= windows.end as f64 {
            return;
        }
        calls.0[0][at as usize] += 2;
        calls.0[1][at as usize] += 2;
        calls.0[2][at as usize] += 1;
    }
}

/// Some calls of that place anywhere in `windows`.
fn scatter(calls: &mut Calls, place: usize, windows: Range<usize>, number: usize, noise: &mut Noise) {
    for _ in 0..number {
        calls.0[place][windows.start + noise.below(windows.len())] += 1;
    }
}

proptest! {
    // A random run may look like a phase once in a thousand runs.
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(2026), ..ProptestConfig::default() })]

    #[test]
    fn planted_phases_are_found(
        seed: u64,
        (before, inside, after) in (12usize..40, 90usize..200, 12usize..40),
        period in 0.01f64..3.0,
        jitter in 0.0f64..0.8,
        wrapped in 0usize..4,
    ) {
        let (noise, all) = (&mut Noise(seed), before + inside + after);
        // Reading that takes half as long as the solver might be another solver.
        prop_assume!(before.max(after) as f64 <= 0.45 * (inside as f64 - 2.0 * period * (1.0 + jitter)));
        let mut calls = Calls::new(7, all);
        // Input comes in parts, up to the solver's begin; set-up calls are made once.
        scatter(&mut calls, 3, 0..before, before, noise);
        calls.0[3][before - 1] += 1;
        calls.0[4][0] += 1;
        solve(&mut calls, before..before + inside, period, jitter, noise);
        // A helper that the solver calls in each step is called now and then before and after.
        scatter(&mut calls, 2, 0..before, wrapped.min((0.02 * inside as f64 / period) as usize), noise);
        calls.0[5][before + inside] += 1;
        scatter(&mut calls, 5, before + inside..all, 10, noise);
        calls.0[6][all - 1] += 1;
        let found = body(&calls.activity(true)).expect("it has phases");
        let near = |found: usize, planted: usize, slack: f64| (found as f64 - planted as f64).abs() <= slack;
        // Calls of the helper that are few steps away cannot be told from the solver's.
        let slack = 1.0 + if wrapped > 0 { 5.0 } else { 2.0 } * period.max(1.0) * (1.0 + jitter);
        prop_assert!(near(found.start, before, slack), "{found:?}, planted {before}, {inside}, {after}");
        prop_assert!(near(found.end, before + inside, slack), "{found:?}, planted {before}, {inside}, {after}");
    }

    #[test]
    fn a_steady_run_is_one_phase(
        seed: u64,
        windows in 1usize..400,
        period in 0.01f64..8.0,
        jitter in 0.0f64..0.8,
        rare in 0usize..8,
        is_clock: bool,
    ) {
        let noise = &mut Noise(seed);
        let mut calls = Calls::new(6, windows);
        solve(&mut calls, 0..windows, period, jitter, noise);
        // A place that is called once, and one that is called now and then.
        calls.0[3][0] += 5;
        calls.0[4][windows - 1] += 5;
        scatter(&mut calls, 5, 0..windows, rare, noise);
        let steps = windows as f64 / period;
        let found = body(&calls.activity(is_clock));
        prop_assert!(found.is_none(), "{found:?} of {windows} windows, {steps} steps");
    }

    /// Solvers that take turns are one body, whichever of them is first.
    #[test]
    fn turns_are_not_phases(seed: u64, parts in prop::collection::vec(30usize..50, 2..6)) {
        let noise = &mut Noise(seed);
        let windows = parts.iter().sum();
        let mut calls = Calls::new(4, windows);
        let mut at = 0;
        for (index, part) in parts.iter().enumerate() {
            let mut own = Calls::new(3, windows);
            solve(&mut own, at..at + part, 0.5, 0.2, noise);
            let to = 2 * (index % 2);
            for window in 0..windows {
                calls.0[to][window] += own.0[0][window];
                calls.0[to + 1][window] += own.0[2][window];
            }
            at += part;
        }
        prop_assert_eq!(body(&calls.activity(true)), None);
    }

    /// A rate that grows or falls is no phase.
    #[test]
    fn a_rate_that_drifts_is_no_phase(seed: u64, windows in 30usize..300, low in 0.3f64..1.0, falls: bool) {
        let noise = &mut Noise(seed);
        let mut calls = Calls::new(2, windows);
        for window in 0..windows {
            let at = if falls { windows - 1 - window } else { window };
            let rate = 20.0 * (low + (2.0 - 2.0 * low) * at as f64 / windows as f64);
            calls.0[0][window] = (rate * (0.5 + noise.next())) as u64;
        }
        calls.0[1][0] = 3;
        prop_assert_eq!(body(&calls.activity(true)), None);
    }

    /// The order of places has no effect.
    #[test]
    fn places_in_another_order_give_the_same(seed: u64, turn in 0usize..6) {
        let noise = &mut Noise(seed);
        let mut calls = Calls::new(6, 120);
        scatter(&mut calls, 3, 0..20, 40, noise);
        solve(&mut calls, 20..100, 0.7, 0.5, noise);
        scatter(&mut calls, 4, 100..120, 40, noise);
        let found = body(&calls.activity(true));
        prop_assert!(found.is_some());
        calls.0.rotate_left(turn);
        prop_assert_eq!(body(&calls.activity(true)), found);
    }
}

#[test]
fn a_window_of_the_program_s_may_be_a_whole_phase() {
    let mut calls = Calls::new(3, 100);
    calls.0[0] = vec![2; 100];
    calls.0[1][0] = 7;
    calls.0[2][99] = 1;
    let mut activity = calls.activity(false);
    (activity.lengths[0], activity.lengths[99]) = (30.0, 20.0);
    assert_eq!(body(&activity), Some(1..99));
    // By the clock it would be one window each, and the solver's part in it is not known.
    activity.is_clock = true;
    assert_eq!(body(&activity), None);
    // Windows as long as all others are the solver's.
    assert_eq!(body(&calls.activity(false)), None);
}

/// A place that calls far more often than the solver, and throughout, is another solver.
#[test]
fn a_short_solver_is_no_wind_down() {
    let mut calls = Calls::new(3, 120);
    (0..100).for_each(|window| calls.0[0][window] = 20);
    (100..120).for_each(|window| calls.0[1][window] = 300);
    calls.0[2][0] = 1;
    assert_eq!(body(&calls.activity(true)), None);
    (100..120).for_each(|window| calls.0[1][window] = 2);
    assert_eq!(body(&calls.activity(true)), Some(0..100));
}

#[test]
fn a_long_silence_is_a_start_up() {
    let mut calls = Calls::new(1, 100);
    (40..100).for_each(|window| calls.0[0][window] = 3);
    assert_eq!(body(&calls.activity(true)), Some(40..100));
    // One such as the body has itself is not.
    (60..95).for_each(|window| calls.0[0][window] = 0);
    assert_eq!(body(&calls.activity(true)), None);
}

#[test]
fn few_windows_or_calls_say_nothing() {
    assert_eq!(body(&Activity::default()), None);
    assert_eq!(body(&Calls::new(3, 100).activity(true)), None);
    let mut calls = Calls::new(1, 100);
    (0..7).for_each(|step| calls.0[0][50 + 7 * step] = 1);
    assert_eq!(body(&calls.activity(true)), None, "seven windows with calls");
}
