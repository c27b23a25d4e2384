//! Questions to runs of real programs, against their decoded calls.

use std::collections::BTreeMap;

use ampl_tests::job::{Job, Mpi};
use ampl_tests::run::{Form, Monitored, add_counts, counts, monitor, number};
use serde_json::Value;

const RANKS: u32 = 3;
const TURNS: u64 = 40;
const EXACT: &str = "[window]\nmarker = \"period:10ms\"\n[trace]\ntiming = \"all\"\ntime_error = 0\n";

/// Rows of an answer.
fn rows(answer: Value) -> Vec<Value> {
    match answer {
        Value::Array(rows) => rows,
        other => panic!("an array: {other}"),
    }
}

/// Calls by function in a summary.
fn calls(summary: &[Value]) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for row in summary {
        let name = row["function"].as_str().expect("a function").to_owned();
        *sums.entry(name).or_default() += row["calls"].as_u64().expect("a number");
    }
    sums
}

/// Calls that end in a time, and nanoseconds of calls in it, by function, from the decoded calls of all ranks.
fn naive(run: &Monitored, from: i64, until: i64) -> BTreeMap<String, (u64, i64)> {
    let mut sums: BTreeMap<String, (u64, i64)> = BTreeMap::new();
    for call in (0..RANKS).flat_map(|rank| run.decode(rank)) {
        let (Some(start), Some(length)) = (call["start_ns"].as_i64(), call["duration_ns"].as_i64()) else {
            continue;
        };
        let end = start + length;
        let inside = (end.min(until) - start.max(from)).max(0);
        let ends = (from..until).contains(&end);
        if inside > 0 || ends {
            let sum = sums.entry(call["fn"].as_str().expect("a function").to_owned()).or_default();
            *sum = (sum.0 + u64::from(ends) * call["count"].as_u64().unwrap_or(1), sum.1 + inside);
        }
    }
    sums
}

#[test]
fn answers_are_those_of_the_calls_one_by_one() {
    for mpi in Mpi::ALL {
        let job = Job::of(mpi, RANKS, "steady", &[&TURNS.to_string()]);
        let run = monitor(&job, EXACT, Form::Run).success();
        let whole = rows(run.query(&["summary"]));
        let mut counted = run.functions();
        counted.retain(|_, &mut calls| calls > 0);
        assert_eq!(calls(&whole), counted, "{mpi:?}");
        let barrier = whole.iter().find(|row| row["function"] == "MPI_Barrier").expect("a row");
        assert_eq!((&barrier["basis"], &barrier["half_width"]), (&"census".into(), &0.0.into()), "{barrier}");
        assert!(barrier["site"].as_str().expect("a site").starts_with("steady.c:"), "{barrier}");

        // A time that begins and ends among the calls.
        let starts: Vec<i64> = run.decode(1).iter().filter_map(|call| call["start_ns"].as_i64()).collect();
        let (from, until) = (starts[starts.len() / 4] + 50, starts[starts.len() / 2] + 50);
        let (from_text, until_text) = (format!("{from}ns"), format!("{until}ns"));
        let part = ["summary", "--from", &from_text, "--until", &until_text];
        let found: BTreeMap<String, (u64, i64)> = rows(run.query(&part))
            .iter()
            .map(|row| {
                assert_eq!(row["calls_half_width"], 0.0, "{mpi:?}: {row}");
                let sum = (row["calls"].as_u64().expect("a number"), number(&row["inclusive_ns"]) as i64);
                (row["function"].as_str().expect("a function").to_owned(), sum)
            })
            .collect();
        assert_eq!(found, naive(&run, from, until), "{mpi:?}: {from} to {until}");

        let matrix = rows(run.query(&["matrix"]));
        let ring: Vec<_> = (0..u64::from(RANKS)).map(|rank| (rank, (rank + 1) % u64::from(RANKS))).collect();
        let pair = |row: &Value| (row["source"].as_u64().unwrap(), row["dest"].as_u64().unwrap());
        assert_eq!(matrix.iter().map(pair).collect::<Vec<_>>(), ring, "{mpi:?}");
        assert!(matrix.iter().all(|row| row["calls"] == TURNS && row["bytes"] == 4 * TURNS), "{mpi:?}");

        let timeline = run.query(&["timeline", "--width", "20"]);
        let of_ranks = timeline["rows"].as_array().expect("rows");
        assert_eq!(of_ranks.len() as u32, RANKS, "{mpi:?}");
        let (t0, pixel_ns) = (number(&timeline["t0_ns"]), number(&timeline["pixel_ns"]));
        for row in of_ranks {
            let pixels = row["shares"].as_array().expect("pixels");
            assert_eq!(pixels.len(), 20, "{mpi:?}");
            // Ranks begin and end when they come to it: between, every moment is in some share.
            let windows = rows(run.query(&["volume", "--ranks", &row["rank"].to_string()]));
            let (first, last) = (&windows[0], &windows[windows.len() - 1]);
            let (begin, end) = (number(&first["start_ns"]), number(&last["end_ns"]));
            for (at, pixel) in pixels.iter().enumerate() {
                let shares = pixel.as_array().expect("shares").iter();
                let sum: f64 = shares.map(|share| number(&share["share"])).sum();
                assert!(sum <= 1.0 + 1e-6, "{mpi:?}: {pixel}");
                let from = t0 + pixel_ns * at as f64;
                let inside = from >= begin && from + pixel_ns <= end;
                assert!(!inside || sum > 0.999, "{mpi:?}: pixel {at} of {begin} to {end}: {row}");
            }
            let text = row["shares"].to_string();
            let has = |name: &str| text.contains(name);
            assert!(has("\"MPI_Barrier\"") && has("\"compute\"") && !has("\"unsampled\""), "{row}");
        }
    }
}

#[test]
fn a_killed_run_answers_with_what_it_has() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let run = monitor(&Job::of(mpi, RANKS, "steady", &["60", "kill-1"]), EXACT, Form::Run);
        let whole = rows(run.query(&["summary"]));
        // Ranks go on until the job is ended; none makes more than it was told.
        let barriers = calls(&whole)["MPI_Barrier"];
        assert!((28 * u64::from(RANKS)..60 * u64::from(RANKS)).contains(&barriers), "{mpi:?}: {whole:?}");
        for question in ["timeline", "matrix", "ranks", "durations", "volume", "sites"] {
            let answer = run.query(&[question]);
            assert!(!answer.is_null(), "{mpi:?}: {question}");
        }
    }
}

#[test]
fn calls_that_were_not_recorded_are_counted_and_have_no_time() {
    let config =
        format!("{EXACT}[agent]\nmax_overhead = 0.9\n[[site]]\nmatch = \"MPI_Iprobe\"\ntrace = \"off\"\n");
    let run = monitor(&Job::of(Mpi::OpenMpi, 2, "skips", &["10"]), &config, Form::Run).success();
    let whole = calls(&rows(run.query(&["summary"])));
    assert_eq!(whole, run.functions());
    // Of a rank likewise, whose recorded calls and gaps add up.
    let mut expected: BTreeMap<String, u64> = BTreeMap::new();
    for line in run.events(1) {
        match line["fn"].as_str() {
            Some(function) => {
                *expected.entry(function.to_owned()).or_default() += line["count"].as_u64().unwrap_or(1);
            }
            None => add_counts(&mut expected, &counts(&line["gap"]["functions"])),
        }
    }
    expected.insert("MPI_Wtime".into(), 1);
    assert_eq!(calls(&rows(run.query(&["summary", "--ranks", "1"]))), expected);
}

#[test]
fn one_rank_that_only_begins_and_ends_has_answers() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let run = monitor(&Job::of(mpi, 1, "steady", &["0"]), "", Form::Run).success();
        let whole = calls(&rows(run.query(&["summary"])));
        assert_eq!(whole.get("MPI_Comm_size"), Some(&1), "{mpi:?}: {whole:?}");
        assert!(rows(run.query(&["matrix"])).is_empty());
        let ranks = rows(run.query(&["ranks"]));
        assert_eq!((ranks.len(), &ranks[0]["rank"]), (1, &0.into()), "{mpi:?}");
        let timeline = run.query(&["timeline", "--width", "5"]);
        assert_eq!(timeline["rows"][0]["shares"].as_array().map(Vec::len), Some(5), "{timeline}");
    }
}
