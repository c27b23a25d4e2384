//! Numbers and clocks that few jobs have: very many communicators, call sites and windows, ranks that start late, and a wall
//! clock that jumps.

use std::collections::BTreeMap;
use std::time::Duration;

use ampl_tests::job::{Job, Mpi, compile_shim};
use ampl_tests::place::Extent;
use ampl_tests::run::{Form, Monitored, monitor, number};
use serde_json::Value;

const RANKS: u32 = 2;

/// Asserts that `run` is whole and nothing failed; returns its facts.
fn whole(run: &Monitored) -> Value {
    let info = run.info();
    assert_eq!((&info["complete"], &info["agent_failures"]), (&Value::Bool(true), &0.into()), "{info}");
    info
}

/// Largest growth, KiB, among the lines `rank R: KIB`.
fn grown(stdout: &str) -> u64 {
    let growths =
        stdout.lines().map(|line| line.rsplit(' ').next().and_then(|kib| kib.parse().ok()).unwrap());
    growths.max().unwrap()
}

/// Memory and trace do not grow with the number of communicators that a program has made and freed.
#[test]
fn communicators_that_come_and_go_take_no_memory() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        // Two communicators each.
        let turns = Extent::get().of([2_000, 10_000, 50_000]);
        let job = Job::of(mpi, RANKS, "comm_churn", &[&turns.to_string()]);
        // However much of the time it takes: nothing is left out.
        let free = "[trace]\ntiming = \"off\"\n[agent]\nmax_overhead = 0.9\nmax_structure_overhead = 0.99\n";
        let plain = grown(&job.plain().success().stdout);
        let run = monitor(&job, free, Form::Run).success();
        let own = grown(&run.finished.stdout);
        assert!(own <= plain + 1024, "{mpi:?}: {own} KiB, {plain} without ampl");
        let info = whole(&run);
        let functions = run.functions();
        assert_eq!(functions["MPI_Comm_dup"], u64::from(RANKS) * turns);
        assert_eq!(functions["MPI_Comm_free"], 2 * u64::from(RANKS) * turns);
        assert_eq!(info["structure_complete"], true, "{info}");
        let bytes = number(&info["trace_bytes"]["total"]);
        assert!(bytes < 20_000.0, "{mpi:?}: {info}");
    }
}

/// Memory and trace do not grow with the number of windows, behind those that have the first length.
#[test]
fn a_million_windows_take_no_memory() {
    const MOST: u64 = 500;
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let turns = Extent::get().of([100_000, 1_000_000, 1_000_000]);
        let mut job = Job::of(mpi, RANKS, "many_windows", &[&turns.to_string()]);
        // Three seconds of processor time.
        job.limit = Duration::from_secs(400);
        let config = format!(
            "[window]\nmarker = \"mpi:MPI_Barrier\"\nmax = {MOST}\n[trace]\ntiming = \"off\"\n[agent]\n\
             max_overhead = 0.9\nmax_structure_overhead = 0.99\n"
        );
        let plain = grown(&job.plain().success().stdout);
        let run = monitor(&job, &config, Form::Run).success();
        let own = grown(&run.finished.stdout);
        // The rank with the client grows more on a busy machine. Four bytes of each of a million windows would be as much.
        assert!(own <= plain + 4096, "{mpi:?}: {own} KiB, {plain} without ampl");
        let info = whole(&run);
        assert_eq!(run.functions()["MPI_Barrier"], u64::from(RANKS) * turns);
        assert_eq!(
            (&info["windows_without_summary"], &info["structure_complete"]),
            (&0.into(), &true.into())
        );
        // The length doubles every half of so many.
        let windows = number(&info["windows"]) as u64;
        let doubled = u64::from((turns / MOST).ilog2()) + 2;
        assert!((MOST..=MOST + doubled * MOST / 2).contains(&windows), "{mpi:?}: {info}");
        assert!(number(&info["trace_bytes"]["total"]) < 100_000.0, "{mpi:?}: {info}");
    }
}

/// A rank whose program starts a minute after the others, and one whose `ampl exec` does, too.
#[test]
fn ranks_that_start_a_minute_apart_are_one_run() {
    const TURNS: u64 = 20;
    // Longer than ampl waits for a rank that it cannot see.
    let late = Extent::get().of([4, 25, 61]).to_string();
    let script = format!("case ${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}} in 1) sleep {late};; esac; exec \"$@\"");
    let of = |(mpi, form): (Mpi, Form)| {
        let program = mpi.compile("steady").display().to_string();
        let turns = TURNS.to_string();
        let mut job = Job::new(mpi, RANKS, "sh", &["-c", &script, "sh", &program, &turns]);
        job.limit = Duration::from_secs(300);
        let run = monitor(&job, "", form).success();
        assert_eq!(run.finished.stdout, format!("{TURNS} turns\n"), "{mpi:?} {form:?}");
        for untrue in ["without ampl", "has been waiting"] {
            assert!(!run.finished.stderr.contains(untrue), "{mpi:?} {form:?}: {}", run.finished.stderr);
        }
        let info = whole(&run);
        assert_eq!((number(&info["ranks"]), &info["windows_without_summary"]), (2.0, &0.into()), "{info}");
        assert_eq!(run.functions()["MPI_Barrier"], u64::from(RANKS) * TURNS, "{mpi:?} {form:?}");
        // No rank waited for the other within the run.
        let is_early = |call: &Value| call["start_ns"].as_f64().is_none_or(|start| start < 20e9);
        assert!(run.decode(0).iter().all(is_early), "{mpi:?} {form:?}");
    };
    std::thread::scope(|scope| {
        for job in [(Mpi::OpenMpi, Form::Run), (Mpi::OpenMpi, Form::Exec), (Mpi::Mpich, Form::Exec)] {
            scope.spawn(move || of(job));
        }
    });
}

/// Calls of more sites than there is place for are all there; their sites are one, and a line says so.
#[test]
fn ten_thousand_call_sites_are_counted() {
    const SITES: u64 = 10_000;
    const TIMES: u64 = 2;
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        // Without lines: all sites are in one.
        let program = mpi.compile_as("many_sites", "many_sites.c", &["-g0"]);
        let job = Job::new(mpi, RANKS, program, &[&TIMES.to_string()]);
        let free = "[agent]\nmax_overhead = 0.9\nmax_structure_overhead = 0.99\n";
        let run = monitor(&job, free, Form::Run).success();
        assert_eq!(run.finished.stdout, format!("{SITES} sites, {TIMES} times\n"), "{mpi:?}");
        assert!(run.finished.stderr.contains("more call sites than"), "{}", run.finished.stderr);
        let info = whole(&run);
        assert_eq!(info["structure_complete"], true, "{mpi:?}: {info}");
        let mut passed: BTreeMap<String, u64> = BTreeMap::new();
        for call in run.decode(1).iter().filter(|call| call["fn"] == "MPI_Barrier") {
            *passed.entry(call["site"].to_string()).or_default() += 1;
        }
        assert_eq!(passed.values().sum::<u64>(), SITES * TIMES, "{mpi:?}");
        let known: Vec<u64> = passed.values().copied().filter(|&times| times == TIMES).collect();
        assert!(known.len() > 500 && known.len() + 1 == passed.len(), "{mpi:?}: {}", passed.len());
        let rows = run.query(&["sites"]);
        let rows = rows.as_array().expect("call sites");
        let calls: f64 = rows.iter().map(|row| number(&row["calls"])).sum();
        let functions = run.functions();
        // The first call comes before there are sites.
        let counted = functions.values().sum::<u64>() - functions["MPI_Init"];
        assert_eq!(calls as u64, counted, "{mpi:?}");
    }
}

/// The wall clock gives the date of the run, and no time in it.
#[test]
fn a_wall_clock_that_jumps_changes_nothing() {
    const TURNS: u64 = 300;
    for (mpi, seconds) in [(Mpi::OpenMpi, 86_400), (Mpi::OpenMpi, -86_400), (Mpi::Mpich, -86_400)] {
        let job = Job::of(mpi, RANKS, "steady", &[&TURNS.to_string()])
            .with("LD_PRELOAD", compile_shim("jump_shim"))
            .with("JUMP_S", seconds.to_string())
            .with("JUMP_AFTER_MS", "40");
        let config = "[window]\nmarker = \"period:20ms\"\n[trace]\ntiming = \"all\"\n[agent]\nmax_overhead = 0.9\n\
                      [output]\njournal = \"run\"\ncopy = \"1s\"\n";
        let run = monitor(&job, config, Form::Run).success();
        assert_eq!(run.finished.stdout, format!("{TURNS} turns\n"), "{mpi:?}");
        // Nobody waits in MPI_Init for long.
        assert!(!run.finished.stderr.contains("has been waiting"), "{mpi:?}: {}", run.finished.stderr);
        let info = whole(&run);
        assert_eq!(run.functions()["MPI_Barrier"], u64::from(RANKS) * TURNS);
        assert_eq!(info["windows_without_summary"], 0, "{info}");
        // A day is seen nowhere.
        let windows = number(&info["windows"]);
        assert!((7.0..2000.0).contains(&windows), "{mpi:?} {seconds}: {info}");
        for call in run.decode(0) {
            let [start, long] = ["start_ns", "duration_ns"].map(|name| call[name].as_i64().unwrap_or(0));
            let day = 3_600_000_000_000;
            assert!(start > -day && start < day && (0..day).contains(&long), "{mpi:?} {seconds}: {call}");
        }
    }
}
