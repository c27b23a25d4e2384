//! Waits whose cause is planted (`programs/waits.c`), and the run on an ideal network.

use std::ffi::OsString;
use std::process::Command;
use std::time::Duration;

use ampl_tests::hosts::{Hosts, NAMES};
use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::{Scratch, ampl};
use ampl_tests::process::{self, undisturbed};
use ampl_tests::run::{Form, Monitored, monitor, number};
use serde_json::{Value, json};

const MPIS: [Mpi; 2] = [Mpi::OpenMpi, Mpi::Mpich];
const RANKS: u32 = 4;
const STEPS: &str = "40";
/// A busy machine must not make a rank keep less.
const DEFAULT: &str = "[agent]\nmax_overhead = 0.5\n";
const ALL: &str = "[trace]\ntiming = \"all\"\n[agent]\nmax_overhead = 0.5\n";

/// Rows of `ampl query RUN waits`.
pub fn waits(run: &Monitored) -> Vec<Value> {
    let mut command = Command::new(ampl());
    command.arg("query").arg(&run.run).args(["waits", "--json"]);
    let out = process::run(&mut command, Duration::from_secs(60)).success().stdout;
    let rows: Value = serde_json::from_str(&out).expect("JSON");
    rows.as_array().expect("rows").clone()
}

fn planted(mpi: Mpi, kind: &str, slow: &str, config: &str) -> Vec<Value> {
    // Ranks that share processors are late for some of their own: fences, and ranks that have waited before.
    let millis = if ["fence", "sender", "isend", "gather", "reduce"].contains(&kind) { "60" } else { "20" };
    let job = Job::of(mpi, RANKS, "waits", &[kind, STEPS, millis, slow]);
    waits(&monitor(&job, config, Form::Run).success())
}

/// The first row names that rank, a line of the program, and the kind.
#[track_caller]
fn names(what: &str, rows: &[Value], kind: &str, causing: &str, function: &str) {
    let Some(first) = rows.first() else { panic!("{what}: no rows") };
    assert_eq!(
        (&first["kind"], &first["causing"]["ranks"]),
        (&kind.into(), &causing.into()),
        "{what}: {rows:#?}"
    );
    assert_eq!(first["function"], function, "{what}: {first}");
    assert!(first["site"].as_str().is_some_and(|site| site.starts_with("waits.c:")), "{what}: {first}");
    assert!(first["causing"]["host"].is_string() && number(&first["instances"]) > 0.0, "{what}: {first}");
}

fn every(mpi: Mpi, config: &str) {
    let rows = |kind: &str| planted(mpi, kind, "2", config);
    for (kind, found, function) in [
        ("allreduce", "last to arrive", "MPI_Allreduce"),
        ("bcast", "late root", "MPI_Bcast"),
        ("fence", "last to arrive", "MPI_Win_fence"),
    ] {
        undisturbed(|| names(&format!("{mpi:?} {kind} {config}"), &rows(kind), found, "2", function));
    }
    // The two that wait in the barrier wait for the sender, too.
    for (kind, function) in [("sender", "MPI_Recv"), ("isend", "MPI_Wait")] {
        let what = format!("{mpi:?} {kind} {config}");
        undisturbed(|| {
            let rows = rows(kind);
            let mut named = rows.iter().map(|row| &row["causing"]["ranks"]).filter(|ranks| !ranks.is_null());
            assert!(named.all(|ranks| ranks == "2"), "{what}: {rows:#?}");
            names(&what, &of_kind(&rows, "late sender"), "late sender", "2", function);
        });
    }
}

/// The rows of one kind.
fn of_kind(rows: &[Value], kind: &str) -> Vec<Value> {
    rows.iter().filter(|row| row["kind"] == kind).cloned().collect()
}

#[test]
fn planted_causes_are_named_first_with_defaults() {
    every(Mpi::OpenMpi, DEFAULT);
}

#[test]
fn planted_causes_are_named_first_with_everything_kept() {
    every(Mpi::OpenMpi, ALL);
    undisturbed(|| {
        names("receiver", &planted(Mpi::OpenMpi, "receiver", "2", ALL), "late receiver", "2", "MPI_Ssend");
    });
}

#[test]
fn planted_causes_are_named_first_under_mpich() {
    every(Mpi::Mpich, DEFAULT);
    every(Mpi::Mpich, ALL);
}

#[test]
fn a_balanced_program_has_no_cause() {
    for (mpi, kind) in
        MPIS.into_iter().flat_map(|mpi| ["allreduce", "bcast", "fence"].map(|kind| (mpi, kind)))
    {
        for config in [DEFAULT, ALL] {
            // All sleep so long that what a busy machine adds is little, mostly.
            undisturbed(|| {
                let rows = planted(mpi, kind, "0,1,2,3", config);
                let named = rows.iter().find(|row| !row["causing"]["ranks"].is_null());
                assert_eq!(named, None, "{mpi:?} {kind} {config}");
            });
        }
    }
}

#[test]
fn late_ranks_of_communicators_of_some_ranks_are_named() {
    for (mpi, config) in MPIS.into_iter().zip([DEFAULT, ALL]) {
        for (kind, function) in [
            ("rows", "MPI_Allreduce"),
            ("grid", "MPI_Barrier"),
            ("copies", "MPI_Allreduce"),
            ("rowfence", "MPI_Win_fence"),
        ] {
            let what = format!("{mpi:?} {kind} {config}");
            let job = Job::of(mpi, RANKS, "waits", &[kind, STEPS, "60", "2"]);
            undisturbed(|| {
                let run = monitor(&job, config, Form::Run).success();
                let rows = waits(&run);
                names(&what, &rows, "last to arrive", "2", function);
                // The other half waits for nobody of this one.
                assert_eq!(rows[0]["waiting"]["ranks"], "3", "{what}: {rows:#?}");
                let late: Vec<Value> = calls(&run)
                    .into_iter()
                    .filter(|row| row["function"] == function && number(&row["calls"]) >= 160.0)
                    .collect();
                assert_eq!((late.len(), &late[0]["late_ranks"]), (1, &json!([2])), "{what}: {late:#?}");
            });
        }
    }
}

/// Rows of `ampl info RUN --calls`.
fn calls(run: &Monitored) -> Vec<Value> {
    let mut command = Command::new(ampl());
    command.arg("info").arg(&run.run).args(["--calls", "--json"]);
    let out = process::run(&mut command, Duration::from_secs(60)).success().stdout;
    let rows: Value = serde_json::from_str(&out).expect("JSON");
    rows.as_array().expect("rows").clone()
}

#[test]
fn a_late_leaf_makes_the_root_wait_and_a_late_root_of_a_gather_nobody() {
    for mpi in MPIS {
        for (kind, function) in [("gather", "MPI_Gather"), ("reduce", "MPI_Reduce")] {
            let what = format!("{mpi:?} {kind}");
            undisturbed(|| {
                let rows = planted(mpi, kind, "2", ALL);
                let early = of_kind(&rows, "early root");
                names(&what, &early, "early root", "2", function);
                assert_eq!(early[0]["waiting"]["ranks"], "0", "{what}: {early:#?}");
                // Those that meet the root later wait for the leaf, not for the root.
                names(&what, &rows, "last to arrive", "2", "MPI_Barrier");
            });
            undisturbed(|| {
                let rows = planted(mpi, kind, "0", ALL);
                assert!(rows.iter().all(|row| row["function"] != function), "{what}: {rows:#?}");
            });
        }
        for config in [DEFAULT, ALL] {
            let what = format!("{mpi:?} scatter {config}");
            undisturbed(|| {
                names(&what, &planted(mpi, "scatter", "2", config), "late root", "2", "MPI_Scatter");
            });
        }
    }
}

#[test]
fn a_slow_host_is_named() {
    let Some(hosts) = Hosts::start() else { return };
    for (mpi, config) in MPIS.into_iter().flat_map(|mpi| [DEFAULT, ALL].map(|config| (mpi, config))) {
        undisturbed(|| {
            let scratch = Scratch::new("slow-host");
            let run = scratch.path().join("result");
            let job = Job::of(mpi, RANKS, "waits", &["allreduce", STEPS, "20", "2,3"]);
            let config = scratch.write("job.toml", config);
            let words: Vec<OsString> =
                vec![ampl().into(), "run".into(), "-c".into(), config.into(), "-o".into()];
            let launch = hosts.launch(mpi, RANKS / 2);
            let words = [words, vec![(&run).into(), "--".into()], launch, job.words.clone()].concat();
            let finished = job.run(&hosts.on(0, &words), scratch.path());
            let rows = waits(&Monitored { finished, run, scratch }.success());
            names(&format!("{mpi:?} host"), &rows, "last to arrive", "2-3", "MPI_Allreduce");
            assert_eq!(rows[0]["causing"]["host"], NAMES[1], "{rows:#?}");
        });
    }
}

/// A rank on an ideal network, call by call, by gaps between its calls: its time before the barrier, which ends at `begin`,
/// its end, and when it began each send. Messages to it were sent at `sent`.
fn walked(calls: &[Value], begin: f64, sent: &[f64]) -> (f64, f64, Vec<f64>) {
    let (mut now, mut end, mut received, mut sends, mut before) = (0.0, 0.0, 0, Vec::new(), 0.0);
    for call in calls {
        let Some(start) = call["start_ns"].as_f64() else { continue };
        now += (start - end).max(0.0);
        end = start + call["duration_ns"].as_f64().unwrap_or(0.0);
        match call["fn"].as_str() {
            Some("MPI_Recv") => {
                now = f64::max(now, sent.get(received).copied().unwrap_or(0.0));
                received += 1;
            }
            Some("MPI_Send") => sends.push(now),
            Some("MPI_Barrier") => (before, now) = (now, begin),
            _ => {}
        }
    }
    (before, now, sends)
}

/// Length of a pipeline on an ideal network.
fn length(run: &Monitored) -> f64 {
    let calls: Vec<Vec<Value>> = (0..RANKS).map(|rank| run.decode(rank)).collect();
    let begin = calls.iter().map(|calls| walked(calls, 0.0, &[]).0).fold(0.0, f64::max);
    let (mut sent, mut longest) = (Vec::new(), 0.0);
    for calls in &calls {
        let (_, end, sends) = walked(calls, begin, &sent);
        longest = f64::max(longest, end);
        sent = sends;
    }
    longest
}

#[test]
fn a_pipeline_waits_for_itself_on_any_network() {
    for mpi in MPIS {
        let job = Job::of(mpi, RANKS, "waits", &["pipeline", "30", "8", ""]);
        let run = monitor(&job, &ALL.replace("[agent]", "time_error = 0\n[agent]"), Form::Run).success();
        let mut command = Command::new(ampl());
        command.arg("whatif").arg(&run.run).args(["--network", "ideal", "--json"]);
        let out = process::run(&mut command, Duration::from_secs(60)).success().stdout;
        let found: Value = serde_json::from_str(&out).expect("JSON");
        let ideal = number(&found["ideal_ns"]);
        assert!((ideal / length(&run) - 1.0).abs() < 0.05, "{} {found}", length(&run));
        let most = number(&found["most_compute_ns"]);
        assert!(
            (number(&found["serialisation"]) - most / ideal).abs() < 1e-6 && most < 0.98 * ideal,
            "{found}"
        );
        assert!(number(&found["modelled"]) < 0.1 && number(&found["transfer"]) <= 1.0, "{found}");
        let path = &found["critical_path"];
        assert_eq!(path["ns"], found["ideal_ns"], "{found}");
        let of_ranks: f64 =
            path["ranks"].as_array().expect("ranks").iter().map(|own| number(&own["ns"])).sum();
        assert!((of_ranks - ideal).abs() < 1.0, "{found}");
    }
}
