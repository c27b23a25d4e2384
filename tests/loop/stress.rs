//! Many jobs without manners (`programs/loop_stress.c`): none hangs, all is counted, every interval is
//! decided once.
//!
//! `AMPL_STRESS_RUNS` says how many, `AMPL_STRESS_FIRST` from which number on.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Instant;

use ampl_tests::place::Scratch;
use ampl_tests::run::{Form, Monitored, add_counts, counts, monitor, number, parse, text_of};
use serde_json::Value;

use crate::scenario::{Marker, Scenario};

/// Runs of one test where nothing else is asked for: under a minute.
const RUNS: u64 = 12;

/// Ranks from which on the status of Open MPI's launcher is not taken at its word.
///
/// Open MPI 4.1.4 on two processors at a load of over 100, without ampl: in 3 of 3 jobs of 200 ranks it said of one or
/// another that it had exited without `MPI_Finalize`, and returned 1. What the ranks leave after that call is looked
/// at instead, with everything else.
const CROWD: u32 = 200;

fn asked(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name}={text}")))
}

#[test]
fn random_jobs_end_and_are_told_right() {
    let (first, runs) = (asked("AMPL_STRESS_FIRST").unwrap_or(0), asked("AMPL_STRESS_RUNS"));
    // Whoever asks has the time for the big ones.
    let big = runs.is_some();
    let mut failures = Vec::new();
    for run in first..first + runs.unwrap_or(RUNS) {
        let scenario = Scenario::new(run, big);
        let started = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| once(&scenario)));
        let seconds = started.elapsed().as_secs_f64();
        let Scenario { mpi, ranks, marker, .. } = &scenario;
        let said = match outcome {
            Ok(said) => said,
            Err(_) => {
                failures.push(run);
                format!("FAILED, configured so:\n{}", scenario.config)
            }
        };
        eprintln!("run {run}: {ranks} ranks, {mpi:?}, {marker:?}: {said} ({seconds:.1} s)");
    }
    assert!(failures.is_empty(), "runs {failures:?} failed, see above; repeat one with AMPL_STRESS_FIRST");
}

/// One run; what came of it in a few words.
fn once(scenario: &Scenario) -> String {
    let logs = Scratch::new("stress");
    let log = logs.path().join("log");
    let job = scenario.job(log.to_str().expect("the path is text"));
    let form = if scenario.number.is_multiple_of(2) { Form::Run } else { Form::Exec };
    let mut run = monitor(&job, &scenario.config, form);
    if scenario.ranks < CROWD || !run.finished.stderr.contains("exiting improperly") {
        run = run.success();
    }
    right_output(&run.finished.stdout);
    // Each rank leaves them after MPI_Finalize.
    let ranks = counted(scenario, &log);
    let info = run.info();
    let context = || format!("{info}\n{}", run.finished.stderr);
    assert!(info["complete"] == true && info["agent_failures"] == 0, "{}", context());
    let mut all = BTreeMap::new();
    ranks.iter().for_each(|counts| add_counts(&mut all, counts));
    assert_eq!(counts(&info["functions"]), all, "{}", context());
    assert_eq!(info["calls"].as_u64(), Some(all.values().sum()));
    let windows = info["windows"].as_u64().expect("a number");
    let decisions = run.decisions();
    decided_once(scenario, &decisions, windows);
    right_windows(scenario, &run, &ranks, windows);
    format!("{windows} windows, {} decisions, {} calls", decisions.len(), info["calls"])
}

/// The program checks every message and result itself; each part of the job that stayed together says so.
fn right_output(stdout: &str) {
    let lines: BTreeSet<&str> = stdout.lines().collect();
    let parts: BTreeSet<&str> =
        lines.iter().filter_map(|line| line.split_once(" leave: ")).map(|of| of.0).collect();
    assert!(!lines.is_empty() && lines.len() <= 2 && parts.len() == lines.len(), "{stdout}");
    for line in lines {
        assert!(line.ends_with(", 0 wrong") && !line.contains(": 0 checked"), "{stdout}");
    }
}

/// Calls per function and rank, as the ranks counted them.
fn counted(scenario: &Scenario, log: &Path) -> Vec<BTreeMap<String, u64>> {
    let of = |rank: u32| {
        let told = parse(&text_of(&log.with_extension(rank.to_string())));
        assert_eq!(told["rank"], rank);
        counts(&told["counts"])
    };
    (0..scenario.ranks).map(of).collect()
}

/// Every interval is decided once per group, in order; sizes and probabilities are possible ones.
fn decided_once(scenario: &Scenario, decisions: &[Value], windows: u64) {
    let named: BTreeSet<&str> = decisions.iter().filter_map(|row| row["group"].as_str()).collect();
    let members: u32 = scenario.groups.iter().map(|&(_, first, last, _)| last - first + 1).sum();
    let expected = scenario.groups.len() + usize::from(members < scenario.ranks);
    assert_eq!(named.len(), expected, "{named:?}");
    let mut last: BTreeMap<&str, u64> = BTreeMap::new();
    for row in decisions {
        let [update, window, population, reported, size] =
            ["update", "window", "population", "reported", "size"]
                .map(|name| row[name].as_u64().unwrap_or_else(|| panic!("{name}: {row}")));
        let group = row["group"].as_str().expect("a name");
        let before = last.insert(group, update);
        assert!(before.is_none_or(|before| before < update), "decided twice, or out of order: {row}");
        assert!(window == update * scenario.windows_per_update, "{row}");
        assert!(window <= windows + scenario.windows_per_update, "of {windows} windows: {row}");
        assert!(reported <= population && size <= population, "{row}");
        let probability = number(&row["probability"]);
        assert!((0.0..=1.0).contains(&probability), "{row}");
        if let Some(&(_, first, last, pinned)) = scenario.groups.iter().find(|named| named.0 == group) {
            assert_eq!(population, u64::from(last - first + 1), "{row}");
            assert!(size >= u64::from(pinned), "{row}");
            let fixed = group != "fixed" || update == 0 || size == population.div_ceil(2).max(pinned.into());
            assert!(fixed, "{row}");
        }
    }
    // Where no message is lost and windows are few enough, no interval is passed over.
    let updates: BTreeSet<u64> = decisions.iter().filter_map(|row| row["update"].as_u64()).collect();
    assert!(updates.contains(&0), "the start is a decision");
    assert_eq!(decisions.len(), updates.len() * expected, "each interval, each group, once");
}

/// Windows are as many as markers, and hold every call once.
fn right_windows(scenario: &Scenario, run: &Monitored, ranks: &[BTreeMap<String, u64>], windows: u64) {
    let (function, every) = match scenario.marker {
        Marker::Barrier(every) => ("MPI_Barrier", every),
        Marker::Sendrecv(every) => ("MPI_Sendrecv", every),
        Marker::Period(_) => return assert!(windows > 0),
    };
    let of = |counts: &BTreeMap<String, u64>| counts.get(function).copied().unwrap_or(0) / every + 1;
    assert_eq!(windows, ranks.iter().map(of).max().expect("there are ranks"), "windows of the busiest rank");
    if !scenario.census || !scenario.groups.is_empty() {
        return;
    }
    let rows = run.estimate();
    let whole = rows.iter().find(|row| {
        row["scope"] == "run" && row["basis"] == "census" && row["metric"] == "calls" && row["event"] == "*"
    });
    let mean = number(&whole.expect("the census of the run")["mean"]);
    let (rank_windows, calls) =
        (ranks.iter().map(of).sum::<u64>(), ranks.iter().flat_map(BTreeMap::values).sum::<u64>());
    // All but MPI_Init, which ends where the first window begins.
    let expected = calls - ranks.len() as u64;
    assert_eq!((mean * rank_windows as f64).round() as u64, expected, "calls in all windows together");
}
