//! Windows end where regions do; measured sums are those of the program itself.

use std::collections::{BTreeMap, BTreeSet};

use ampl_tests::job::Mpi;
use ampl_tests::place::Scratch;
use ampl_tests::run::{Form, Monitored, monitor, number, text_of};

use crate::{LIBRARIES, job, means};

const RANKS: u32 = 4;
const STEPS: u32 = 24;

const METRICS: &str = r#"
[[metric]]
name = "work"
[[metric]]
name = "work"
event = "region:STEP"
[[metric]]
name = "bytes.sent"
event = "region:INNER"
[[metric]]
name = "calls"
event = "path:STEP>INNER"
[[metric]]
name = "calls"
event = "path:INNER>STEP"
[[metric]]
name = "wall"
event = "region:MAIN"
"#;

/// One rank's report of one step.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Step {
    window: i64,
    traced: i64,
    work: i64,
    visits: i64,
    bytes: i64,
}

fn log(scratch: &Scratch, rank: u32) -> Vec<Step> {
    let text = text_of(&scratch.path().join(format!("log.{rank}")));
    let steps = text.lines().map(|line| {
        let numbers: Vec<i64> = line.split(' ').map(|word| word.parse().expect("a number")).collect();
        let [window, traced, work, visits, bytes] = numbers[..] else { panic!("{line}") };
        Step { window, traced, work, visits, bytes }
    });
    steps.collect()
}

/// Runs the program under `config`; the logs are checked against the windows that `every` makes.
fn run(mpi: Mpi, every: u32, config: &str, scratch: &Scratch) -> (Monitored, Vec<Vec<Step>>) {
    let directory = scratch.path().to_str().expect("a plain path").to_owned();
    let plain = job(mpi, RANKS, scratch, "api_steps.c", &[&STEPS.to_string(), &directory]);
    let without = plain.plain().success();
    for rank in 0..RANKS {
        let told = log(scratch, rank);
        assert!(
            told.len() == STEPS as usize && told.iter().all(|step| (step.window, step.traced) == (-1, -1))
        );
    }
    let config = format!("[window]\nmarker = \"region:STEP\"\nevery = {every}\n{METRICS}{config}");
    let monitored = monitor(&plain, &config, Form::Run).success();
    assert_eq!(monitored.finished.sorted_lines(), without.sorted_lines(), "the program says the same");
    let logs: Vec<Vec<Step>> = (0..RANKS).map(|rank| log(scratch, rank)).collect();
    for log in &logs {
        let windows: Vec<i64> = log.iter().map(|step| step.window).collect();
        let expected: Vec<i64> = (0..STEPS).map(|step| i64::from(step / every)).collect();
        assert_eq!(windows, expected);
    }
    // The rest after the last step, a partial window.
    let partial = 1;
    assert_eq!(number(&monitored.info()["windows"]), f64::from(STEPS / every + partial));
    (monitored, logs)
}

fn exact(mpi: Mpi, every: u32) {
    let scratch = Scratch::new("steps");
    let (monitored, logs) = run(mpi, every, "", &scratch);
    let (mut work, mut visits, mut bytes) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for step in logs.iter().flatten() {
        let window = step.window as u64;
        *work.entry(window).or_insert(0.0) += step.work as f64;
        *visits.entry(window).or_insert(0.0) += step.visits as f64;
        *bytes.entry(window).or_insert(0.0) += step.bytes as f64;
    }
    let last = u64::from(STEPS / every);
    // One observation per rank and window, also of the last, to which nothing was added.
    let found = means(&monitored, "work", "*");
    assert_eq!(found.len() as u64, last + 1, "{found:?}");
    for (window, mean) in &found {
        assert_eq!(mean * f64::from(RANKS), work.get(window).copied().unwrap_or(0.0), "window {window}");
    }
    // One per visit: of STEP there are `every` per rank and window.
    let steps = means(&monitored, "work", "region:STEP");
    assert_eq!(steps.len() as u64, last);
    for (window, mean) in &steps {
        let visits = f64::from(RANKS * every);
        assert!((mean * visits - work[window]).abs() < 1e-6, "window {window}: {mean}");
    }
    let sent = means(&monitored, "bytes.sent", "region:INNER");
    assert_eq!(sent.len() as u64, last);
    for (window, mean) in &sent {
        assert!((mean - bytes[window] / visits[window]).abs() < 1e-9, "window {window}: {mean}");
    }
    let paths = means(&monitored, "calls", "path:STEP>INNER");
    assert_eq!(paths, (0..last).map(|window| (window, 1.0)).collect());
    assert_eq!(means(&monitored, "calls", "path:INNER>STEP"), BTreeMap::new(), "there is no such path");
    assert!(!monitored.finished.stderr.contains("regions were left"), "{}", monitored.finished.stderr);
}

#[test]
fn every_exit_ends_a_window_open_mpi() {
    exact(Mpi::OpenMpi, 1);
}

#[test]
fn every_exit_ends_a_window_mpich() {
    exact(Mpi::Mpich, 1);
}

#[test]
fn every_third_exit_ends_a_window() {
    for mpi in LIBRARIES {
        exact(mpi, 3);
    }
}

#[test]
fn a_rank_knows_whether_it_is_traced() {
    let config = "[[group]]\nname = \"half\"\nmembers = \"0-3\"\nsample_size = 2\n\
                  [sampling]\nwindows_per_update = 1\n";
    for mpi in LIBRARIES {
        let scratch = Scratch::new("traced");
        let (monitored, logs) = run(mpi, 1, config, &scratch);
        let mut answers = BTreeSet::new();
        for (rank, log) in (0..).zip(&logs) {
            let kept: BTreeSet<i64> =
                monitored.decode(rank).iter().filter_map(|line| line["window"].as_i64()).collect();
            for step in log {
                assert_eq!(step.traced == 1, kept.contains(&step.window), "rank {rank}: {step:?}");
                answers.insert(step.traced);
            }
        }
        assert_eq!(answers, BTreeSet::from([0, 1]), "both answers were given");
    }
}
