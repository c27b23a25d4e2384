//! Cost to push a run, nanoseconds, and size of the grammar.
//!
//! Each sequence is pushed into builders of its own; every grammar must give its sequence back.

use std::hint::black_box;
use std::time::Instant;

use ampl_trace::grammar::{Builder, Grammar};
use ampl_trace::varint::Reader;

/// Runs pushed into each builder, about.
const RUNS: usize = 2_000_000;
/// Builders of which the fastest counts.
const REPETITIONS: usize = 5;

/// A pseudorandom number from another: the same in every run.
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// `depth` loops in each other around three calls; the inner ones run `trips(…)` times.
fn nest(depth: u32, trips: &mut impl FnMut() -> u64, runs: &mut Vec<u32>) {
    for _ in 0..trips() {
        runs.push(10 * depth);
        if depth > 1 {
            nest(depth - 1, trips, runs);
        }
        runs.extend([10 * depth + 1, 10 * depth + 2]);
    }
}

fn nested(depth: u32, mut trips: impl FnMut() -> u64) -> Vec<u32> {
    let mut runs = Vec::new();
    while runs.len() < RUNS {
        nest(depth, &mut trips, &mut runs);
        runs.push(5);
    }
    runs
}

fn main() {
    let mut state = 88172645463325252;
    let looped = |period: u32| (0..RUNS as u32).map(|call| call % period).collect::<Vec<_>>();
    let random = |symbols: u64, mut state: u64| {
        (0..RUNS / 2).map(|_| (next(&mut state) % symbols) as u32).collect::<Vec<_>>()
    };
    let mut branches = Vec::new();
    while branches.len() < RUNS {
        branches.extend([1, 2, 3, if next(&mut state).is_multiple_of(10) { 4 } else { 5 }, 6, 7, 8, 9]);
    }
    let table = [
        ("one terminal", looped(1)),
        ("loop of 2", looped(2)),
        ("loop of 9", looped(9)),
        ("loop of 100", looped(100)),
        ("loop of 1000", looped(1000)),
        ("3 nested loops", nested(3, || 10)),
        ("5 nested loops", nested(5, || 4)),
        ("3 nested, trips vary", nested(3, || next(&mut state) % 9 + 1)),
        ("one call in 8 varies", branches),
        ("random, 4 symbols", random(4, 9)),
        ("random, 100 symbols", random(100, 9)),
        ("random, 20000 symbols", random(20_000, 9)),
    ];
    println!(
        "{:<22} {:>9} {:>9} {:>10} {:>10} {:>9} {:>9}",
        "", "ns/push", "positions", "export, us", "bytes", "write, us", "read, us"
    );
    for (name, runs) in table {
        let (mut fastest, mut size, mut grammar) = (f64::INFINITY, 0, Grammar::default());
        for _ in 0..REPETITIONS {
            let mut builder = Builder::new();
            let start = Instant::now();
            for &terminal in &runs {
                builder.push(black_box(terminal), 1);
            }
            fastest = fastest.min(start.elapsed().as_nanos() as f64 / runs.len() as f64);
            size = builder.size();
            grammar = black_box(builder).into_grammar();
        }
        let timed = Instant::now();
        let again = Builder::restore(&grammar).into_grammar();
        let export = timed.elapsed().as_secs_f64() * 1e6;
        assert!(again == grammar, "{name}");
        let (timed, mut bytes) = (Instant::now(), Vec::new());
        grammar.write(&mut bytes);
        let write = timed.elapsed().as_secs_f64() * 1e6;
        let timed = Instant::now();
        let read = Grammar::read(&mut Reader::new(&bytes));
        let read_us = timed.elapsed().as_secs_f64() * 1e6;
        assert!(read.as_ref() == Some(&grammar), "{name}");
        let calls = grammar.runs().flat_map(|(terminal, count)| (0..count).map(move |_| terminal));
        assert!(calls.eq(runs.iter().copied()), "{name}");
        println!(
            "{name:<22} {fastest:>9.1} {size:>9} {export:>10.0} {:>10} {write:>9.0} {read_us:>9.0}",
            bytes.len()
        );
    }
}
