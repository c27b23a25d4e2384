//! Start-up, body and wind-down, compared with the program's clock in the same run.

use ampl_tests::job::{Job, Mpi};
use ampl_tests::process::alone;
use ampl_tests::run::{Form, Monitored, monitor, number};
use serde_json::Value;

const RANKS: u32 = 2;
/// Share of the run's time by which a phase that ends between windows may differ from the program's clock, beside the
/// error of its ends by the run.
const SLACK: f64 = 0.03;

/// Start and end of the solver on each rank, and end of the rank, nanoseconds: `solver FROM UNTIL of WALL`.
fn clocked(run: &Monitored) -> Vec<[f64; 3]> {
    let lines = run.finished.stdout.lines().filter_map(|line| line.strip_prefix("solver "));
    let numbers = lines.map(|line| line.replace(" of ", " "));
    let parse = |line: String| {
        let all: Vec<f64> = line.split_whitespace().map(|text| text.parse().expect("a number")).collect();
        <[f64; 3]>::try_from(all).expect("three numbers")
    };
    numbers.map(parse).collect()
}

fn phases(info: &Value) -> Vec<&Value> {
    info["phases"].as_array().map(|all| all.iter().collect()).unwrap_or_default()
}

fn names(info: &Value) -> Vec<&str> {
    phases(info).iter().map(|phase| phase["phase"].as_str().expect("a name")).collect()
}

/// Every phase lasts as long as the program's, and its numbers are of its own.
fn phases_are_as_clocked(mpi: Mpi, marker: &str) {
    let job = Job::of(mpi, RANKS, "phased", &["50", "200", "50", "10000"]);
    let config = format!("[window]\nmarker = \"{marker}\"\n");
    let run = {
        let _machine = alone();
        monitor(&job, &config, Form::Run).success()
    };
    let info = run.info();
    let what = format!("{mpi:?} {marker}: {info}");
    let clocks = clocked(&run);
    let mean = |of: fn(&[f64; 3]) -> f64| clocks.iter().map(of).sum::<f64>() / clocks.len() as f64;
    let truth = [mean(|of| of[0]), mean(|of| of[1] - of[0]), mean(|of| of[2] - of[1])];
    let wall = mean(|of| of[2]);
    let named = names(&info);
    // Beside other jobs the solver may take so long that the others are too short, or they may look like another
    // solver.
    for (name, truth_ns) in [("start-up", truth[0]), ("wind-down", truth[2])] {
        let clear = truth_ns >= 0.1 * wall && truth_ns <= 0.4 * truth[1];
        assert!(!clear || named.contains(&name), "{name} of {truth_ns} ns, {truth:?}: {what}");
    }
    let all = named.len() == 3;
    for phase in phases(&info) {
        let (truth, waits_in) = match phase["phase"].as_str() {
            Some("start-up") => (truth[0], Some("MPI_Bcast")),
            Some("wind-down") => (truth[2], Some("MPI_Gather")),
            _ => (truth[1], None),
        };
        let off = (number(&phase["ns"]) - truth).abs();
        // Both ends of the body may be off.
        let most = 2.0 * number(&phase["boundary_ns"]) + SLACK * wall;
        assert!(off <= most || (waits_in.is_none() && !all), "{truth} of {wall}: {phase}");
        assert_eq!((&phase["coverage"], &phase["found_by"]), (&1.0.into(), &RANKS.into()), "{phase}");
        assert_eq!(phase["basis"], "census", "{phase}");
        let functions = || phase["top"].as_array().expect("a list").iter().map(|of| &of["function"]);
        match waits_in {
            // While rank 0 reads and writes, the other waits.
            Some(function) => {
                assert_eq!(
                    (&phase["slowest"]["rank"], &phase["top"][0]["function"]),
                    (&0.into(), &function.into())
                );
                assert!(number(&phase["load_balance"]) < 0.8 && number(&phase["mpi"]) > 0.2, "{phase}");
            }
            None => {
                assert!(functions().any(|name| name == "MPI_Allreduce"), "{phase}");
                assert!(!all || functions().all(|name| name != "MPI_Gather"), "{phase}");
            }
        }
    }
    let shares: f64 = phases(&info).iter().map(|phase| number(&phase["share"])).sum();
    assert!(named.is_empty() || (shares - 1.0).abs() < 1e-6, "{what}");

    // The same in `ampl efficiency`, beside the numbers of the whole run, and a line each in the summary.
    let efficiency = run.efficiency();
    assert_eq!(efficiency[0].get("phases"), info.get("phases"));
    assert!(efficiency[1..].iter().all(|row| row.get("phases").is_none()));
    // The verdict above it may name a phase, too.
    let said = run.finished.stderr.split_once("\nEfficiency").map_or("", |(_, behind)| behind);
    for name in named {
        let lines = said.lines().filter(|line| line.starts_with(&format!("  {name}  "))).count();
        assert_eq!(lines, 1, "{name}: {said}");
    }
}

#[test]
fn phases_of_time_windows_are_as_clocked() {
    for mpi in Mpi::ALL {
        phases_are_as_clocked(mpi, "period:25ms");
    }
}

#[test]
fn phases_of_marked_windows_are_as_clocked() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        phases_are_as_clocked(mpi, "mpi:MPI_Allreduce");
    }
}

/// A run that is one phase throughout, and one of few windows.
#[test]
fn nothing_is_said_of_a_run_without_phases() {
    for (mpi, marker, arguments) in [
        (Mpi::OpenMpi, "period:25ms", ["0", "150", "0", "8000"]),
        (Mpi::Mpich, "mpi:MPI_Allreduce", ["0", "150", "0", "3000"]),
        (Mpi::OpenMpi, "period:10s", ["20", "20", "20", "4000"]),
    ] {
        let config = format!("[window]\nmarker = \"{marker}\"\n");
        let run = monitor(&Job::of(mpi, RANKS, "phased", &arguments), &config, Form::Run).success();
        let said = &run.finished.stderr;
        assert!(run.info().get("phases").is_none() && !said.contains("start-up"), "{marker}: {said}");
        assert!(run.efficiency()[0].get("phases").is_none());
    }
}
