//! Loops over time of real programs, which know their steps.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::{Scratch, home};
use ampl_tests::process;
use ampl_tests::run::{Form, monitor, number};
use serde_json::Value;

const RANKS: u32 = 3;
const STEPS: u64 = 61;

fn found(mpi: Mpi, shape: &str) -> Value {
    let job = Job::of(mpi, RANKS, "step_shapes", &[shape, &STEPS.to_string()]);
    monitor(&job, "", Form::Run).success().timesteps()
}

/// Every rank shows so many steps, and the mix adds up to the calls of a step.
#[track_caller]
fn has_steps(what: &str, row: &Value, steps: u64) {
    assert_eq!((&row["count"], &row["confidence"]), (&steps.into(), &1.0.into()), "{what}: {row}");
    let mix: f64 = row["function_mix"].as_object().expect("an object").values().map(number).sum();
    assert!((mix - number(&row["calls_per_step"])).abs() < 1e-9, "{what}: {row}");
}

#[test]
fn shapes_of_loops_have_the_steps_of_the_program() {
    for (shape, steps) in [
        ("plain", STEPS),
        ("output", STEPS),
        ("solver", STEPS),
        ("uneven", STEPS),
        ("peeled", STEPS - 2),
        ("cases", 3 * STEPS),
    ] {
        let row = found(Mpi::OpenMpi, shape);
        has_steps(shape, &row, steps);
        assert_eq!(row["warm_up"], 0, "{shape}: {row}");
    }
}

#[test]
fn steps_that_do_two_things_in_turns_are_told_of() {
    for (shape, expected) in [("turns", Value::from(2)), ("plain", Value::Null), ("output", Value::Null)] {
        let row = found(Mpi::OpenMpi, shape);
        assert_eq!(row["bodies_may_hold"], expected, "{shape}: {row}");
        let steps = row["count"].as_u64().expect("a loop");
        // A trace does not tell that the program has twice as many.
        let expected = if shape == "turns" { STEPS / 2..=STEPS / 2 + 1 } else { STEPS..=STEPS };
        assert!(expected.contains(&steps), "{shape}: {row}");
    }
}

#[test]
fn a_step_before_the_loop_is_reported_apart() {
    let row = found(Mpi::OpenMpi, "warm");
    has_steps("warm", &row, STEPS);
    assert_eq!(row["warm_up"], 1, "{row}");
    let expected: Value = serde_json::json!({
        "MPI_Allreduce": 1.0, "MPI_Irecv": 1.0, "MPI_Isend": 1.0, "MPI_Waitall": 1.0,
    });
    assert_eq!(row["function_mix"], expected, "{row}");
    // One call of each step ends a window.
    let place = row["marker"].as_str().expect("a marker");
    assert!(place.starts_with("mpi:MPI_") && place.contains("@step_shapes.c:"), "{row}");
}

#[test]
fn recursion_is_a_loop() {
    for mpi in Mpi::ALL {
        has_steps(&format!("{mpi:?}"), &found(mpi, "deep"), STEPS);
    }
}

#[test]
fn a_program_without_a_loop_says_so() {
    let row = found(Mpi::Mpich, "none");
    assert!(row["count"].is_null() && row["reason"].is_string() && row["site"].is_null(), "{row}");
    assert_eq!(row["confidence"], 1.0, "{row}");
}

#[test]
fn fortran_has_steps() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let scratch = Scratch::new("timesteps");
        let program: PathBuf = scratch.path().join("paths");
        let mut compile = Command::new(mpi.fortran_compiler());
        compile.args(["-g", "-O1", "-o"]).arg(&program).arg("-J").arg(scratch.path());
        compile.arg(home().join("programs/paths.f90"));
        process::run(&mut compile, Duration::from_secs(120)).success();
        let row = monitor(&Job::new(mpi, RANKS, &program, &["40"]), "", Form::Run).success().timesteps();
        has_steps(&format!("{mpi:?}"), &row, 40);
        assert!(row["site"].as_str().is_some_and(|site| site.starts_with("paths.f90:")), "{row}");
    }
}
