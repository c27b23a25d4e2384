//! `ampl efficiency` against a program that measures its own imbalance (`programs/loop_imbalance.c`).

use std::process::Command;
use std::time::Duration;

use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::ampl;
use ampl_tests::process;
use ampl_tests::run::{Form, Monitored, monitor, number, parse};
use serde_json::Value;

const RANKS: u32 = 4;
const STEPS: usize = 40;
const SLOW: u64 = 2;

fn ask(run: &Monitored, json: bool) -> String {
    let mut command = Command::new(ampl());
    command.arg("efficiency").arg(&run.run).args(json.then_some("--json"));
    process::run(&mut command, Duration::from_secs(60)).success().stdout
}

fn numbers(row: &Value, name: &str) -> Vec<f64> {
    row[name].as_array().expect("an array").iter().map(number).collect()
}

#[test]
fn a_known_imbalance_is_told() {
    let job =
        Job::of(Mpi::OpenMpi, RANKS, "loop_imbalance", &[&STEPS.to_string(), "20000", &SLOW.to_string()]);
    // Window 0 ends at the first MPI_Allreduce, before the steps; each step is a window; one more is the end.
    let run = monitor(&job, "[window]\nmarker = \"mpi:MPI_Allreduce\"\n", Form::Run).success();
    let rows = parse(&ask(&run, true));
    let rows = rows.as_array().expect("an array");
    let (whole, windows): (Vec<&Value>, Vec<&Value>) = rows.iter().partition(|row| row["window"].is_null());
    assert_eq!((whole.len(), windows.len()), (1, STEPS + 2));
    // The end of the run cut the last one off.
    assert!(windows.iter().enumerate().all(|(at, row)| row["partial"] == (at == STEPS + 1)), "{windows:?}");
    let (mut near, mut slow_in) = (0, 0);
    for (step, text) in run.finished.stdout.lines().enumerate() {
        let (told, row) = (parse(text), windows[step + 1]);
        assert_eq!(row["window"].as_u64(), Some(step as u64 + 1));
        assert!(row["basis"] == "census" && row["reported"] == RANKS && row["population"] == RANKS, "{row}");
        let compute = numbers(&told, "compute");
        let most = compute.iter().copied().fold(0.0, f64::max);
        let balance = compute.iter().sum::<f64>() / f64::from(RANKS) / most;
        let slowest = compute.iter().position(|&one| one == most).expect("one is the greatest");
        slow_in += u64::from(slowest as u64 == SLOW);
        let product = number(&row["load_balance"]) * number(&row["communication"]);
        assert!((number(&row["parallel"]) - product).abs() < 1e-9, "{row}");
        assert!(number(&row["communication"]) <= 1.0, "{row}");
        // A rank that lost its processor between two readings of the clock is the exception.
        let same = row["slowest"]["rank"].as_u64() == Some(slowest as u64);
        near += usize::from(same && (number(&row["load_balance"]) - balance).abs() < 0.02);
    }
    assert!(near * 10 >= STEPS * 9, "as the program measured it in {near} of {STEPS} windows");
    let slowest = &whole[0]["slowest"];
    assert_eq!(slowest["rank"].as_u64(), Some(SLOW), "{slowest}");
    // Four steps of five, unless the machine interferes; and of the two windows besides the steps any rank may
    // be the slowest.
    let (seen, other) = (slowest["windows"].as_u64().expect("a number"), 2 + (STEPS - near) as u64);
    assert!(
        seen + other >= slow_in && seen <= slow_in + other,
        "{slowest}, {slow_in} by the program's clock"
    );
    assert_eq!(whole[0]["slowest_host"]["windows"].as_u64(), Some(STEPS as u64 + 2), "{}", whole[0]);
    let text = ask(&run, false);
    assert!(text.contains("4 of 4 ranks") && text.contains("Worst 10 windows of 42"), "{text}");
}
