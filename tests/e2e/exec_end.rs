//! Messages of `ampl exec` when a job is over: at most one line of a kind per job, whatever the number of ranks. What follows
//! the job can be stopped.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::{Scratch, ampl};
use ampl_tests::process::Finished;
use ampl_tests::run::{Form, Monitored, monitor};

const RANKS: u32 = 3;

/// Lines that ampl has written.
fn said(finished: &Finished) -> Vec<&str> {
    finished.stderr.lines().filter(|line| line.contains("ampl")).collect()
}

/// A job whose agent may take almost no time: every rank steps down at its first check.
fn stepped_down(mpi: Mpi, form: Form) -> Monitored {
    let job = Job::of(mpi, RANKS, "steady", &["400"]);
    monitor(&job, "[agent]\nmax_overhead = 0.000001\nmax_structure_overhead = 0.000001\n", form).success()
}

/// Ranks that recorded less than was asked for, as `ampl info` has it.
fn ranks_below(run: &Monitored) -> usize {
    let info = run.info();
    let steps = info["overhead"]["steps"].as_array().expect("an array");
    let less = ["structure", "summaries", "off"];
    let is_less = |level: &serde_json::Value| less.iter().any(|less| level == less);
    let below = |rank: u32| steps.iter().any(|step| step["rank"] == rank && is_less(&step["level"]));
    (0..RANKS).filter(|&rank| below(rank)).count()
}

#[test]
fn ranks_that_recorded_less_are_told_in_one_line() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let run = stepped_down(mpi, Form::Exec);
        let below = ranks_below(&run);
        assert!(below > 0, "{mpi:?}: {}", run.info());
        let lines = said(&run.finished);
        let [line] = lines[..] else { panic!("{mpi:?}: {lines:?}") };
        let begins = format!("ampl: {below} of {RANKS} ranks recorded less than was asked for, from ");
        assert!(
            line.starts_with(&begins) && line.contains("to stay within agent.max_structure_overhead ("),
            "{line}"
        );
        let way_out = format!("see what is missing with 'ampl info {}'", run.run.display());
        assert!(line.ends_with(&way_out) && !line.contains("room"), "{line}");
        // `ampl run` prints a summary instead.
        let run = stepped_down(mpi, Form::Run);
        assert!(!run.finished.stderr.contains("recorded less"), "{mpi:?}: {}", run.finished.stderr);
        assert!(run.finished.stderr.contains("were only counted from"), "{mpi:?}: {}", run.finished.stderr);
    }
}

#[test]
fn nothing_is_said_where_all_is_as_asked() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let job = Job::of(mpi, RANKS, "steady", &["20"]);
        let run = monitor(&job, "[trace]\ntiming = \"all\"\n", Form::Exec).success();
        assert!(said(&run.finished).is_empty(), "{mpi:?}: {}", run.finished.stderr);
        // Without `-o` a message names the run directory.
        let scratch = Scratch::new("unnamed");
        let words =
            [job.launch(), vec![ampl().into(), "exec".into(), "--".into()], job.words.clone()].concat();
        let finished = job.run(&words, scratch.path()).success();
        let lines = said(&finished);
        let [line] = lines[..] else { panic!("{mpi:?}: {lines:?}") };
        let run =
            line.split_once("'ampl info ").and_then(|(_, rest)| rest.strip_suffix('\'')).expect("its place");
        assert!(Path::new(run).join("trace.ampl").is_file(), "{mpi:?}: {line}");
    }
}

/// Threads without room for their first data end the agent of their ranks, not the job.
#[test]
fn ranks_without_room_are_told_in_one_line() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        for (from, ranks, count) in [("0", "0-2", 3), ("2", "2", 1)] {
            let job = Job::of(mpi, RANKS, "late_thread", &[from]);
            let run = monitor(&job, "", Form::Exec).success();
            assert_eq!(run.finished.sorted_lines(), ["0: 3", "1: 3", "2: 3"], "{mpi:?}");
            let lines = said(&run.finished);
            let [line] = lines[..] else { panic!("{mpi:?}: {lines:?}") };
            let begins = format!("ampl: {count} of {RANKS} ranks ({ranks}) found no room for their journals");
            assert!(line.starts_with(&begins) && line.contains("set output.journal"), "{mpi:?}: {line}");
            assert_eq!((&run.info()["complete"], &run.info()["agent_failures"]), (&false.into(), &0.into()));
        }
        let run = monitor(&Job::of(mpi, RANKS, "late_thread", &["1"]), "", Form::Run).success();
        let text = run.finished.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        let gap = "2 ranks (1-2) found no room for their journals (output.journal) and went on without ampl";
        assert_eq!(text.matches(gap).count(), 1, "{mpi:?}: {text}");
        assert!(!text.contains("did not reach"), "{mpi:?}: {text}");
    }
}

/// Whoever reads the messages does not, so that they take for ever.
#[test]
fn a_command_whose_job_is_over_ends_by_a_signal() {
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    writer.write_all(&[b'-'; 1 << 16]).expect("as much as it holds");
    let scratch = Scratch::new("stopped");
    let done = scratch.path().join("done");
    let mut run = Command::new(ampl());
    run.args(["run", "-o", "result", "--"]).args(Mpi::Mpich.launch(1)).arg("touch").arg(&done);
    let mut run = run.current_dir(scratch.path()).stderr(writer).spawn().expect("it starts");
    while !done.exists() {
        std::thread::sleep(Duration::from_millis(20));
    }
    let ended = (0..600).find_map(|_| {
        let mut send = Command::new("kill");
        let _ = send.arg(run.id().to_string()).stderr(Stdio::null()).status();
        std::thread::sleep(Duration::from_millis(100));
        run.try_wait().expect("it is ours")
    });
    if ended.is_none() {
        let _ = run.kill();
    }
    drop(reader);
    assert!(ended.is_some(), "it went on for a minute");
}
