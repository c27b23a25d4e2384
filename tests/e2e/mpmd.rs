//! Jobs of several programs: the ranks of each are known for jobs that ended, died or still run.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::{Scratch, ampl};
use ampl_tests::process;
use ampl_tests::run::{Form, Monitored, monitor};
use serde_json::{Value, json};

use crate::stuck::ask;

/// Copies of the program `name`, called `lead` and `follow`.
fn two_programs(mpi: Mpi, name: &str, scratch: &Scratch) -> [PathBuf; 2] {
    let program = mpi.compile(name);
    ["lead", "follow"].map(|name| {
        let copy = scratch.path().join(name);
        std::fs::copy(&program, &copy).expect("the scratch directory is ours");
        copy
    })
}

/// A job of so many ranks of the first program and of the second, with the same arguments.
fn job(mpi: Mpi, [lead, follow]: &[PathBuf; 2], ranks: [u32; 2], arguments: &[&str]) -> Job {
    let (others, follow) = (ranks[1].to_string(), follow.to_str().expect("a path of ours"));
    let words = [arguments, &[":", "-n", &others, follow], arguments].concat();
    Job::new(mpi, ranks[0], lead, &words)
}

fn programs(lead: &str, follow: &str) -> Value {
    json!([{"program": "lead", "ranks": lead}, {"program": "follow", "ranks": follow}])
}

/// `ampl info RUN`
fn told(run: &Monitored) -> String {
    process::run(Command::new(ampl()).arg("info").arg(&run.run), Duration::from_secs(60)).stdout
}

#[test]
fn a_title_names_every_program() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let scratch = Scratch::new("programs");
        let both = two_programs(mpi, "front", &scratch);
        let run = monitor(&job(mpi, &both, [2, 1], &["x"]), "", Form::Run).success();
        let said = &run.finished.stderr;
        assert!(said.lines().any(|line| line == "ampl: lead (ranks 0-1) : follow (2)"), "{mpi:?}: {said}");
        assert_eq!(run.info()["programs"], programs("0-1", "2"), "{mpi:?}");

        // ampl before each program.
        let here = Scratch::new("each");
        let exec = |program: &PathBuf| {
            let (ampl, run) = (ampl(), here.path().join("result"));
            [ampl.as_path(), "exec".as_ref(), "-o".as_ref(), &run, "--".as_ref(), program]
                .map(|word| word.to_str().expect("text").to_owned())
        };
        let [lead, follow] = [exec(&both[0]), exec(&both[1])];
        let words: Vec<&str> = lead[1..].iter().chain(&follow).map(String::as_str).collect();
        let words = [&words[..5], &[":", "-n", "2"], &words[5..]].concat();
        let finished = Job::new(mpi, 1, &lead[0], &words).plain().success();
        let run = Monitored { finished, run: here.path().join("result"), scratch: here };
        assert_eq!(run.info()["programs"], programs("0", "1-2"), "{mpi:?}");
        assert!(told(&run).contains("ampl: lead (rank 0) : follow (1-2)\n"), "{mpi:?}: {}", told(&run));

        // One program: the whole command line is its title.
        let run = monitor(&Job::new(mpi, 2, &both[0], &["-v"]), "", Form::Exec).success();
        assert_eq!(run.info()["programs"], json!([{"program": "lead", "ranks": "0-1"}]), "{mpi:?}");
        let text = told(&run);
        let title = text.lines().find(|line| !line.is_empty()).expect("a title");
        assert!(title.starts_with("ampl: ") && !title.contains("rank"), "{mpi:?}: {title}");
    }
}

#[test]
fn programs_of_jobs_that_died_or_hang() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let scratch = Scratch::new("dead-programs");
        let log = scratch.path().join("log");
        let log = log.to_str().expect("a path of ours");
        let both = two_programs(mpi, "dies", &scratch);
        let run = monitor(&job(mpi, &both, [3, 2], &[log, "kill", "20"]), "", Form::Run);
        assert!(!run.finished.status.success() && run.run.join("trace.ampl").is_file(), "{mpi:?}");
        assert_eq!(run.info()["programs"], programs("0-2", "3-4"), "{mpi:?}");
        let said = &run.finished.stderr;
        assert!(said.contains("ampl: lead (ranks 0-2) : follow (3-4)\n"), "{mpi:?}: {said}");

        let both = two_programs(mpi, "stuck", &scratch);
        let asked = ask(&job(mpi, &both, [2, 2], &["3"]), &[], "MPI_Recv MPI_Wait");
        for (info, text) in [(asked.live, asked.live_text), (asked.dead, asked.dead_text)] {
            assert_eq!(info["programs"], programs("0-1", "2-3"), "{mpi:?}");
            assert!(text.contains("ampl: lead (ranks 0-1) : follow (2-3)\n"), "{mpi:?}: {text}");
        }
    }
}
