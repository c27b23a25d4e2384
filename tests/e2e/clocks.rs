//! Ranks that read several clocks: time namespaces have clocks of their own, as nodes do.

use std::process::Command;

use ampl_tests::job::{Job, Mpi, compile_shim};
use ampl_tests::run::{Form, Monitored, monitor, number};
use serde_json::Value;

const RANKS: u32 = 4;
const TURNS: usize = 60;
const DRIFT_PPM: i64 = 2000;

const CONFIGURATION: &str = "[trace]\ntiming = \"all\"\ntime_error = 0\n[agent]\nmax_overhead = 0.9\n";

/// A run whose ranks from `others` on have a clock of their own each; `None` where this machine has no time
/// namespaces for us.
fn apart(mpi: Mpi, others: u32, drifts: bool) -> Option<Monitored> {
    let allowed = Command::new("unshare").args(["--time", "true"]).output();
    if !allowed.is_ok_and(|finished| finished.status.success()) {
        eprintln!(
            "no time namespace can be made here (unshare --time): clocks of several nodes are not tested"
        );
        return None;
    }
    let program = mpi.compile("clocks");
    let script = format!(
        "rank=${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}}\n\
         if [ $rank -lt {others} ]; then unset DRIFT_PPM; exec \"$@\"; fi\n\
         exec unshare --time --monotonic 1000 \"$@\""
    );
    let turns = TURNS.to_string();
    let arguments = ["-c", &script, "sh", program.to_str().expect("a path of ours"), &turns];
    let mut job = Job::new(mpi, RANKS, "sh", &arguments);
    if drifts {
        let drift = DRIFT_PPM.to_string();
        job = job.with("LD_PRELOAD", compile_shim("drift_shim")).with("DRIFT_PPM", drift);
    }
    Some(monitor(&job, CONFIGURATION, Form::Run).success())
}

/// Start and end of calls of a function with each tag, by their rank's clock.
fn times(calls: &[Value], function: &str, argument: &str, peer: u32) -> Vec<(i64, i64)> {
    let of = |call: &&Value| call["fn"] == function && call["args"][argument] == peer;
    let whole = |value: &Value| value.as_i64().expect("every window is kept");
    calls
        .iter()
        .filter(of)
        .map(|call| (whole(&call["start_ns"]), whole(&call["start_ns"]) + whole(&call["duration_ns"])))
        .collect()
}

/// Asserts that messages are sent before they are received, within the run's clock error.
fn causes_come_first(run: &Monitored, others: u32) -> Value {
    let clocks = run.info()["clocks"].clone();
    assert_eq!(clocks["ranks"], RANKS - others, "{clocks}");
    let error = number(&clocks["error_ns"]) as i64;
    assert!(error > 0 && error < 100_000_000, "{clocks}");
    let calls: Vec<Vec<Value>> = (0..RANKS).map(|rank| run.decode(rank)).collect();
    for (from, to) in (1..RANKS).flat_map(|rank| [(0, rank), (rank, 0)]) {
        let sent = times(&calls[from as usize], "MPI_Send", "dest", to);
        let received = times(&calls[to as usize], "MPI_Recv", "source", from);
        assert_eq!((sent.len(), received.len()), (TURNS, TURNS));
        for (turn, ((start, _), (_, end))) in sent.into_iter().zip(received).enumerate() {
            assert!(start <= end + error, "{from} to {to}, turn {turn}: {start} {end}, {clocks}");
        }
    }
    clocks
}

#[test]
fn times_of_several_clocks_fit_each_other() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let Some(run) = apart(mpi, 2, false) else { return };
        let clocks = causes_come_first(&run, 2);
        assert_eq!(number(&clocks["drift_ppm"]), 0.0, "{clocks}");
    }
}

#[test]
fn drift_is_taken_out() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        // One alone: the clock readings of a rank with such a drift are outdated too soon.
        let Some(run) = apart(mpi, 3, true) else { return };
        let clocks = causes_come_first(&run, 3);
        let drift = number(&clocks["drift_ppm"]);
        // Two readings some hundred milliseconds apart, each with the stated error.
        let unsure = 4.0 * number(&clocks["error_ns"]) / (TURNS as f64 * 2e6) * 1e6;
        assert!((drift + DRIFT_PPM as f64).abs() <= unsure + 10.0, "{clocks}");
    }
}
