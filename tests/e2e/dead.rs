//! Jobs that die: their journals are recovered and the memory of the node is freed, by any of ampl's commands.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use ampl_tests::hosts::on_small;
use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::{Scratch, ampl};
use ampl_tests::process::{self, Finished};
use ampl_tests::run::{Form, monitor, number, parse, text_of};
use serde_json::Value;

const RANKS: u32 = 3;

/// Directory of the run's journals, which may be removed already.
fn journals(run: &Path) -> PathBuf {
    let text = text_of(&run.join("run.toml"));
    let line = text.lines().find_map(|line| line.strip_prefix("journals = ")).expect("they are named");
    parse(line).as_str().expect("a text").into()
}

fn ask(words: &[&str], run: &Path) -> Finished {
    process::run(Command::new(ampl()).args(words).arg(run), Duration::from_secs(60))
}

/// Numbers of the processes that have begun, from the run directory.
fn processes(run: &Path) -> Vec<String> {
    let files = std::fs::read_dir(run.join("nodes")).into_iter().flatten().flatten();
    let text: String = files.map(|file| text_of(&file.path())).collect();
    text.split_whitespace().filter_map(|word| word.strip_prefix("pid=")).map(str::to_owned).collect()
}

fn signal(which: &str, processes: &[String]) {
    let sent = Command::new("kill").arg(which).args(processes).status();
    assert!(sent.is_ok_and(|status| status.success()), "{which} {processes:?}");
}

/// Barriers that rank 0 has made by the trace.
fn barriers(run: &Path) -> usize {
    let told = ask(&["decode", "--rank", "0", "--json"], run);
    told.stdout.lines().filter(|line| line.contains("\"MPI_Barrier\"")).count()
}

#[test]
fn a_run_recovers_what_died() {
    for mpi in Mpi::ALL {
        for place in ["node", "run"] {
            let config = format!("[output]\njournal = \"{place}\"\n[agent]\nmax_overhead = 0.5\n");
            let run = monitor(&Job::of(mpi, RANKS, "steady", &["60", "kill-1"]), &config, Form::Run);
            let said = &run.finished.stderr;
            assert!(!run.finished.status.success(), "{said}");
            assert!(said.contains("3 of 3 ranks") && said.contains("journals have been removed"), "{said}");
            assert!(!journals(&run.run).exists() && !run.run.join("nodes").exists(), "{mpi:?}: {said}");
            assert!(
                run.run.join("trace.ampl").is_file() && said.contains("did not reach MPI_Finalize"),
                "{said}"
            );
            assert!(barriers(&run.run) >= 28, "{mpi:?}");
            // Once more there is nothing to do, and nothing is lost.
            let again = ask(&["recover"], &run.run);
            assert_eq!(again.status.code(), Some(4), "{}", again.stderr);
            assert!(barriers(&run.run) >= 28, "{mpi:?}");
        }
    }
}

/// Rank 1 is silent, and then it is killed or aborts the job, while the others wait for it.
#[test]
fn who_stopped_first_is_told_of_a_job_that_is_ended() {
    // The sleep of the program, nanoseconds.
    const SILENT: f64 = 1.3e9;
    for (mpi, end) in
        [Mpi::OpenMpi, Mpi::Mpich].into_iter().flat_map(|mpi| [(mpi, "late-kill-1"), (mpi, "late-abort-1")])
    {
        let run = monitor(&Job::of(mpi, RANKS, "steady", &["20", end]), "", Form::Run);
        let (info, said) = (run.info(), &run.finished.stderr);
        assert!(!run.finished.status.success(), "{mpi:?} {end}: {said}");
        let of = |rank: &str| {
            let mut rows = info["in_call"].as_array().expect("rows").iter();
            rows.find(|row| row["ranks"] == rank).unwrap_or_else(|| panic!("{mpi:?} {end}: {rank}: {info}"))
        };
        let (end_ns, basis) = (number(&info["end"]["at_ns"]), &info["end"]["basis"]);
        assert_eq!(basis, "launcher", "{mpi:?} {end}: {info}");
        // Rank 2 receives from rank 1, rank 0 waits for both.
        for (rank, function, peer) in [("0", "MPI_Barrier", Value::Null), ("2", "MPI_Sendrecv", 1.into())] {
            let row = of(rank);
            assert_eq!((&row["function"], &row["peer"]), (&function.into(), &peer), "{mpi:?} {end}: {row}");
            let (since, time) = (number(&row["since_ns"]), number(&row["for_ns"]));
            assert!(time > 0.0 && since + time == end_ns, "{mpi:?} {end}: {row} {info}");
        }
        // It sleeps before it is killed.
        let silent = of("1")["function"].is_string() || number(&of("1")["for_ns"]) >= SILENT;
        assert!(silent, "{mpi:?} {end}: {info}");
        // The time in these calls is in the run's: the share of it is that of their times.
        let findings = info["verdict"].as_array().expect("findings");
        let found = findings.iter().find(|found| found["kind"] == "unreturned").expect("it stands out");
        assert_eq!(found["ranks"], "1", "{mpi:?} {end}: {found}");
        let inside = ["0", "1", "2"].map(of).into_iter().filter(|row| row["function"].is_string());
        let inside: f64 = inside.map(|row| number(&row["for_ns"])).sum();
        let share = inside / (f64::from(RANKS) * end_ns);
        assert!((number(&found["cost_share"]) - share).abs() < 1e-6, "{mpi:?} {end}: {share}: {found}");
        let (row, words) = match end {
            "late-abort-1" => ("MPI_Abort", ["aborted by", "rank 1, which called MPI_Abort"]),
            _ => ("not in MPI", ["first to stop", "rank 1: not in MPI while others are, the last call was"]),
        };
        assert_eq!(of("1")["function"].as_str().unwrap_or("not in MPI"), row, "{mpi:?} {end}: {info}");
        let line = said.lines().find(|line| line.trim_start().starts_with(words[0])).unwrap_or_default();
        assert!(line.contains(words[1]), "{mpi:?} {end}: {said}");
        let text = found["text"].as_str().expect("a sentence");
        let why = match end {
            "late-abort-1" => "; rank 1 called MPI_Abort; all calls",
            _ => "; rank 1 was not in MPI meanwhile; all calls",
        };
        assert!(text.contains(why) && text.ends_with(" of the ranks' time"), "{mpi:?} {end}: {text}");
        let time = said.lines().find(|line| line.trim_start().starts_with("run time")).unwrap_or_default();
        assert!(time.contains(" until the launcher returned; ") && time.ends_with(" counted"), "{said}");
    }
}

/// No command follows `ampl exec`: commands that read the run name the remedy.
#[test]
fn journals_alone_are_no_trace_file() {
    let config = "[agent]\nmax_overhead = 0.5\n";
    let run = monitor(&Job::of(Mpi::OpenMpi, RANKS, "steady", &["60", "kill-1"]), config, Form::Exec);
    let told = ask(&["info"], &run.run);
    let text = format!("{}{}", told.stdout, told.stderr);
    assert!(text.contains("ampl recover") && text.contains("trace file          none"), "{text}");
    let kept = ask(&["recover", "--keep-journals"], &run.run).success().stderr;
    assert!(kept.contains("still there") && journals(&run.run).exists(), "{kept}");
    let freed = ask(&["recover"], &run.run).success().stderr;
    assert!(freed.contains("have been removed") && !journals(&run.run).exists(), "{freed}");
    assert!(barriers(&run.run) >= 28);
}

/// Journals in the node's memory are found by the run that they name, where its directory is gone or had no room.
#[test]
fn journals_that_no_run_directory_leads_to_are_found() {
    let config = "[agent]\nmax_overhead = 0.5\n";
    for (mpi, gone) in [(Mpi::OpenMpi, true), (Mpi::Mpich, false)] {
        let run = monitor(&Job::of(mpi, RANKS, "steady", &["60", "kill-1"]), config, Form::Exec);
        match gone {
            true => std::fs::remove_dir_all(&run.run),
            false => std::fs::write(run.run.join("run.toml"), ""),
        }
        .expect("it is ours");
        let told = ask(&["info"], &run.run).success().stdout;
        assert!(told.contains("MPI_Barrier") && told.contains("ampl recover"), "{mpi:?}: {told}");
        let freed = ask(&["recover"], &run.run).success().stderr;
        assert!(freed.contains("3 of 3 ranks") && freed.contains("have been removed"), "{mpi:?}: {freed}");
        assert!(barriers(&run.run) >= 28, "{mpi:?}");
        assert_eq!(ask(&["recover"], &run.run).status.code(), Some(4), "{mpi:?}");
    }
}

#[test]
fn a_job_that_runs_is_not_recovered() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let scratch = Scratch::new("alive");
        let run = scratch.path().join("result");
        let job = Job::of(mpi, 2, "steady", &["1000"]);
        let exec = [ampl().into(), "exec".into(), "-o".into(), (&run).into(), "--".into()];
        let words: Vec<OsString> = [job.launch(), exec.to_vec(), job.words.clone()].concat();
        let place = scratch.path().to_owned();
        let running = std::thread::spawn(move || job.run(&words, &place));
        // Both ranks have begun, and stay where they are.
        let until = Instant::now() + Duration::from_secs(60);
        let ranks = loop {
            let ranks = processes(&run);
            if ranks.len() == 2 || Instant::now() > until {
                break ranks;
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        signal("-STOP", &ranks);
        let told = ask(&["recover"], &run);
        assert_eq!(told.status.code(), Some(1), "{mpi:?}: {}", told.stderr);
        assert!(told.stderr.contains("still runs") && !run.join("trace.ampl").exists(), "{}", told.stderr);
        assert_eq!(ask(&["recover", "--node"], &run).status.code(), Some(1));
        signal("-CONT", &ranks);
        running.join().expect("the job is waited for").success();
        assert!(run.join("trace.ampl").is_file());
        assert!(ask(&["recover"], &run).stderr.contains("nothing to recover"));
    }
}

/// The whole tree is killed, `ampl run` too: `ampl doctor` reports the journals, and cleans them.
#[test]
fn what_nobody_recovers_is_cleaned() {
    let scratch = Scratch::new("left");
    let job = Job::of(Mpi::OpenMpi, 2, "steady", &["100000"]);
    let words = [vec![ampl().into(), "run".into(), "-o".into(), "result".into(), "--".into()], job.launch()];
    // In the memory of a namespace, without other jobs' journals.
    let script = "setsid \"$@\" & job=$!
        until grep -q rank=1 result/nodes/* 2> none; do sleep 0.02; done
        $0 doctor --clean 2> early
        ranks=$(sed 's/.* pid=\\([0-9]*\\).*/\\1/' result/nodes/*)
        kill -KILL -- -$job; kill -KILL $ranks
        for rank in $ranks; do while grep -q '^State:.[^Z]' /proc/$rank/status 2> none; do sleep 0.02; done; done
        $0 doctor > before; $0 doctor --clean 2> clean; $0 doctor > after; ls -A /dev/shm > listed";
    let start = vec!["sh".into(), "-c".into(), script.into(), ampl().into()];
    let words = [&[start][..], &words, std::slice::from_ref(&job.words)].concat().concat();
    let Some(words) = on_small("512m", Path::new("/dev/shm"), &words) else { return };
    job.run(&words, scratch.path());
    let text = |name: &str| text_of(&scratch.path().join(name));
    assert!(text("early").contains("its job runs"), "{}", text("early"));
    assert!(
        text("before").contains("ampl doctor --clean") && text("before").contains("/result"),
        "{}",
        text("before")
    );
    assert!(text("clean").contains("freed"), "{}", text("clean"));
    assert!(!text("after").contains("--clean"), "{}", text("after"));
    assert!(!text("listed").contains("ampl"), "{}", text("listed"));
}
