//! Journals whose place is full, from the beginning or in the middle: the job goes on, and known data is reported.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::{Scratch, ampl};
use ampl_tests::process;
use ampl_tests::run::{Form, Monitored, monitor};
use serde_json::Value;

const RANKS: u32 = 2;

/// A file system of its own, in memory.
struct Small {
    path: PathBuf,
    _scratch: Scratch,
}

impl Small {
    /// A file system of that many KiB; `None`, with a message, where it cannot be mounted.
    fn mount(kib: u32) -> Option<Self> {
        let scratch = Scratch::new("small");
        let path = scratch.path().join("place");
        std::fs::create_dir(&path).expect("a directory of ours");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={kib}k"), "ampl-test"]).arg(&path);
        if !mount.status().is_ok_and(|status| status.success()) {
            eprintln!("SKIPPED: no file system can be mounted here (root can)");
            return None;
        }
        Some(Self { path, _scratch: scratch })
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg("-l").arg(&self.path).status();
        assert!(unmounted.is_ok_and(|status| status.success()) || std::thread::panicking());
    }
}

/// The job with its journals in `place`; every barrier ends a window.
fn run(turns: u32, place: &Path, more: &str) -> Monitored {
    let turns = turns.to_string();
    let job = Job::of(Mpi::OpenMpi, RANKS, "steady", &[&turns]);
    let plain = job.plain().success();
    let config = format!(
        "[window]\nmarker = \"mpi:MPI_Barrier\"\n[output]\njournal = \"{}\"\n{more}",
        place.display()
    );
    let run = monitor(&job, &config, Form::Run).success();
    assert_eq!(run.finished.stdout, plain.stdout);
    let info = run.info();
    assert_eq!((&info["complete"], &info["agent_failures"]), (&Value::Bool(true), &0.into()), "{info}");
    assert_eq!(run.functions()["MPI_Barrier"], u64::from(RANKS) * turns.parse::<u64>().expect("a number"));
    run
}

#[test]
fn a_place_that_is_full_is_done_without() {
    let Some(small) = Small::mount(64) else { return };
    // A page or two may be left; a header has no room.
    let _ = std::fs::write(small.path.join("fill"), vec![1; 1 << 20]);
    let run = run(40, &small.path, "");
    let said = &run.finished.stderr;
    assert_eq!(said.matches("cannot make its journal").count(), 1, "{said}");
    assert!(
        said.contains("No space left") && said.contains("in memory") && said.contains("set output.journal")
    );
    assert!(!said.contains("not merged") && !said.contains("goes on without"), "{said}");
    let info = run.info();
    assert_eq!((&info["windows"], &info["windows_without_summary"]), (&41.into(), &0.into()), "{info}");
    assert!(info["kept_windows"].as_u64() > Some(0), "{info}");
}

#[test]
fn a_place_that_cannot_be_made_is_done_without() {
    let scratch = Scratch::new("file");
    let file = scratch.write("file", "no directory");
    let run = run(20, &file, "");
    let said = &run.finished.stderr;
    assert_eq!(said.matches("cannot make its journal").count(), 1, "{said}");
    assert_eq!(run.info()["windows"], 21);
}

#[test]
fn a_place_that_fills_up_takes_no_more_times() {
    let turns = 400;
    let Some(run) = fills_up(440, turns, "all", "structure") else { return };
    // Calls are known to the end.
    for rank in 0..RANKS {
        let calls = run.decode(rank);
        let barriers = calls.iter().filter(|call| call["fn"] == "MPI_Barrier").count();
        assert_eq!(barriers, turns as usize);
        assert_eq!(calls.last().expect("calls")["fn"], "MPI_Finalize");
    }
    let said = &run.finished.stderr;
    assert!(said.contains("were stored without their times from"), "{said}");
}

#[test]
fn a_place_that_fills_up_takes_no_more_calls() {
    let Some(run) = fills_up(512, 1200, "kept", "summaries") else { return };
    let said = &run.finished.stderr;
    assert!(said.contains("were not stored from") && said.contains("there was no room for"), "{said}");
}

/// A run of so many turns, with all times to be stored in so many KiB: room for the beginning of each rank and some
/// hundred turns. `level` is the level that remains with that `structure`.
fn fills_up(kib: u32, turns: u32, structure: &str, level: &str) -> Option<Monitored> {
    let small = Small::mount(kib)?;
    // A decision for every window would take as much room as its calls.
    let trace = format!("[trace]\ntiming = \"all\"\nstructure = \"{structure}\"\n");
    let run = run(turns, &small.path, &format!("[sampling]\nselection = \"predictive\"\n{trace}"));
    let info = run.info();
    let steps = info["overhead"]["steps"].as_array().expect("steps");
    for rank in 0..RANKS {
        let of: Vec<&Value> = steps.iter().filter(|step| step["rank"] == rank).collect();
        let [step] = of[..] else { panic!("{steps:?}") };
        assert_eq!((&step["level"], &step["reason"]), (&level.into(), &"journal".into()), "{step}");
        // Calls up to then are there, and none from then on.
        let since = step["window"].as_u64().expect("a window");
        assert!((10..u64::from(turns) - 50).contains(&since), "{step}");
        let kept: Vec<u64> = run.decode(rank).iter().filter_map(|call| call["window"].as_u64()).collect();
        assert!(kept.iter().any(|&window| window + 2 > since), "{since}: {:?}", kept.last());
        assert!(kept.iter().all(|&window| window <= since || window == u64::from(turns)), "{since}");
    }
    // Summaries have no end.
    assert_eq!((&info["windows"], &info["windows_without_summary"]), (&(turns + 1).into(), &0.into()));
    let whole = |row: &&Value| row["scope"] == "run" && row["basis"] == "census" && row["metric"] == "calls";
    let rows = run.estimate();
    let row = rows.iter().find(whole).expect("the run");
    assert_eq!((&row["kept"], &row["half_width"]), (&RANKS.into(), &0.0.into()), "{row}");
    Some(run)
}

/// `ampl recover RUN`
fn recover(run: &Monitored) {
    process::run(Command::new(ampl()).arg("recover").arg(&run.run), Duration::from_secs(60)).success();
}

/// Where nothing can be mapped any more at finalize, the journals are read later.
#[test]
fn memory_that_is_used_up_leaves_the_journals() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let job = Job::of(mpi, RANKS, "no_address_space", &[]);
        let plain = job.plain().success();
        let run = monitor(&job, "", Form::Exec).success();
        let (said, expected) = (&run.finished, plain.sorted_lines());
        assert_eq!(said.sorted_lines(), expected, "{mpi:?}");
        assert!(said.stderr.contains("2 of 2 ranks could not read their journals"), "{}", said.stderr);
        assert_eq!(run.info()["complete"], Value::Bool(false), "{mpi:?}");
        recover(&run);
        assert!(run.run.join("trace.ampl").is_file(), "{mpi:?}");
        assert_eq!(run.functions()["MPI_Sendrecv"], 2 * 400, "{mpi:?}");
    }
}

/// Neither the journal nor the memory behind it may grow, so there is no room for a record of that either.
#[test]
fn files_that_may_not_grow_are_told_of() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let job = Job::of(mpi, RANKS, "short_files", &[]);
        let run = monitor(&job, "", Form::Exec).success();
        let said = &run.finished.stderr;
        assert!(said.contains("cannot write the trace") && said.contains("stay unmerged"), "{said}");
        recover(&run);
        assert_eq!(run.functions()["MPI_Send"], u64::from(RANKS) * 6000, "{mpi:?}");
        let sends = run.decode(0).iter().filter(|call| call["fn"] == "MPI_Send").count();
        assert!((100..6000).contains(&sends), "{sends}");
        let info = run.info();
        let steps = info["overhead"]["steps"].as_array().expect("steps");
        for rank in 0..RANKS {
            let of: Vec<&Value> = steps.iter().filter(|step| step["rank"] == rank).collect();
            let [step] = of[..] else { panic!("{steps:?}") };
            assert_eq!((&step["level"], &step["reason"]), (&"summaries".into(), &"journal".into()), "{step}");
        }
    }
}
