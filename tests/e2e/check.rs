//! `ampl check` of programs with planted faults (`programs/faults_planted.c`), and of ones without.

use std::process::Command;
use std::time::Duration;

use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::ampl;
use ampl_tests::process;
use ampl_tests::run::{Form, Monitored, monitor};
use serde_json::{Value, json};

/// Exit status and rows of `ampl check RUN --json`.
fn check(run: &Monitored) -> (i32, Vec<Value>) {
    let mut command = Command::new(ampl());
    command.arg("check").arg(&run.run).arg("--json");
    let finished = process::run(&mut command, Duration::from_secs(60));
    let rows: Value = serde_json::from_str(&finished.stdout).expect("JSON");
    (finished.status.code().expect("it ended"), rows.as_array().expect("rows").clone())
}

fn planted(mpi: Mpi, kinds: &[&str]) -> (i32, Vec<Value>) {
    let job = Job::of(mpi, 3, "faults_planted", kinds);
    check(&monitor(&job, "[agent]\nmax_overhead = 0.5\n", Form::Run).success())
}

#[test]
fn planted_faults_are_named_with_rank_call_and_reason() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let (status, rows) = planted(mpi, &["unreceived", "request", "communicators", "types", "persistent"]);
        assert_eq!(status, 5, "{mpi:?}: {rows:#?}");
        let found: Vec<(u64, &str, &str)> = rows
            .iter()
            .map(|row| {
                let text = |name: &str| row[name].as_str().expect("text");
                assert!(text("site").starts_with("faults_planted.c:") && !text("text").is_empty(), "{row}");
                (row["rank"].as_u64().expect("a rank"), text("function"), text("kind"))
            })
            .collect();
        let leaks = ["MPI_Comm_dup", "MPI_Irecv", "MPI_Recv_init", "MPI_Type_contiguous"];
        for expected in
            leaks.map(|function| (1, function, "leak")).iter().chain(&[(0, "MPI_Send", "unmatched send")])
        {
            assert!(found.contains(expected), "{mpi:?}: {expected:?} in {rows:#?}");
        }
        // Of the two communicators and types one each was freed.
        assert_eq!(found.iter().filter(|own| own.2 == "leak" && own.0 == 1).count(), 4, "{mpi:?}: {rows:#?}");
        assert!(found.iter().all(|own| own.0 < 2), "{mpi:?}: {rows:#?}");
    }
}

#[test]
fn a_message_that_does_not_fit_is_named() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let (status, rows) = planted(mpi, &["truncation"]);
        let named = rows
            .iter()
            .any(|row| row["kind"] == "truncation" && row["rank"] == 1 && row["function"] == "MPI_Recv");
        assert!(status == 5 && named, "{mpi:?}: {rows:#?}");
    }
}

#[test]
fn elements_and_objects_are_named() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        // MPICH aborts a program that leaves a window.
        let kinds = if mpi == Mpi::OpenMpi {
            &["elements", "objects", "window"][..]
        } else {
            &["elements", "objects"]
        };
        let (status, rows) = planted(mpi, kinds);
        let has = |rank: u64, function: &str, kind: &str| {
            let is = |row: &&Value| row["rank"] == rank && row["function"] == function && row["kind"] == kind;
            rows.iter().find(is).is_some_and(|row| row["fault"] == true)
        };
        assert!(has(1, "MPI_Allreduce", "type"), "{mpi:?}: {rows:#?}");
        for function in ["MPI_File_open", "MPI_Comm_group", "MPI_Comm_create_errhandler"] {
            assert!(has(1, function, "leak"), "{mpi:?} {function}: {rows:#?}");
        }
        assert!(has(0, "MPI_File_open", "leak") && has(2, "MPI_File_open", "leak"), "{mpi:?}: {rows:#?}");
        let leaves_window = |rank| has(rank, "MPI_Win_create", "leak");
        assert!(mpi == Mpi::Mpich || leaves_window(0) && leaves_window(1), "{mpi:?}: {rows:#?}");
        assert_eq!(status, 5);
    }
}

#[test]
fn jobs_that_do_not_come_to_their_end_have_a_fault() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let mut job = Job::of(mpi, 3, "faults_planted", &["after"]);
        job.limit = Duration::from_secs(120);
        let rows = crate::stuck::ask(&job, &[], "MPI_Recv MPI_Finalize").checked;
        let [row] = &rows.as_array().expect("rows")[..] else { panic!("{mpi:?}: {rows:#?}") };
        assert_eq!(
            (&row["rank"], &row["function"], &row["kind"]),
            (&json!(1), &json!("MPI_Recv"), &json!("hang"))
        );
        assert!(
            row["text"].as_str().expect("text").contains("rank 0, which had come to MPI_Finalize"),
            "{row}"
        );

        let job = Job::of(mpi, 3, "faults_planted", &["abort"]);
        let (status, rows) = check(&monitor(&job, "[agent]\nmax_overhead = 0.5\n", Form::Run));
        let aborted = rows.iter().find(|row| row["kind"] == "end").expect("an end");
        assert_eq!(
            (&aborted["rank"], &aborted["function"]),
            (&json!(1), &json!("MPI_Abort")),
            "{mpi:?}: {rows:#?}"
        );
        assert_eq!(status, 5);
    }
}

#[test]
fn programs_without_faults_have_none() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        assert_eq!(planted(mpi, &[]), (0, Vec::new()), "{mpi:?}");
        let ways =
            ["20", "1", "sendrecv", "1", "any", "2", "waitall", "1", "persist-any", "2", "mprobe", "1"];
        for (program, arguments) in [("stencil2", &["5", "5"][..]), ("p2p_coll", &[]), ("partners", &ways)] {
            let job = Job::of(mpi, 4, program, arguments);
            let (status, rows) = check(&monitor(&job, "", Form::Run).success());
            let faults: Vec<&Value> = rows.iter().filter(|row| row["kind"] != "leak").collect();
            assert!(faults.is_empty() && [0, 5].contains(&status), "{mpi:?} {program}: {faults:#?}");
        }
    }
}
