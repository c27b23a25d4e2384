//! Programs and tools that define functions of MPI themselves: ampl reports as not covered what it did not intercept.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ampl_tests::job::{Job, Mpi, compile_shim};
use ampl_tests::place::{Scratch, dist, home, program};
use ampl_tests::process::{self, Finished};
use ampl_tests::run::{Form, Monitored, monitor};

const RANKS: u32 = 2;

/// A job of `program` whose ranks load `tool` before ampl.
fn tool_first(mpi: Mpi, tool: &Path, program: &Path) -> Job {
    let script = format!("LD_PRELOAD={}:$LD_PRELOAD exec {}", tool.display(), program.display());
    Job::new(mpi, RANKS, "sh", &["-c", &script])
}

/// A job of `program` whose ranks load `tool` behind ampl.
fn tool_last(mpi: Mpi, tool: &Path, program: &Path) -> Job {
    let script = format!("LD_PRELOAD=$LD_PRELOAD:{} exec {}", tool.display(), program.display());
    Job::new(mpi, RANKS, "sh", &["-c", &script])
}

/// Runs the job under ampl: it prints as without, and is recorded to its end.
fn whole(job: &Job, form: Form, plain: &Finished) -> Monitored {
    let run = monitor(job, "", form).success();
    assert_eq!(run.finished.sorted_lines(), plain.sorted_lines());
    let (info, said) = (run.info(), &run.finished.stderr);
    assert_eq!((&info["complete"], &info["agent_failures"]), (&true.into(), &0.into()), "{said}");
    assert!(!said.contains("seen no MPI_Init") && !said.contains("did not reach"), "{said}");
    run
}

/// A layer that keeps `MPI_Init` and `MPI_Finalize` to itself, and calls the profiling names, hides nothing else.
/// Nothing is counted twice where ampl comes first.
#[test]
fn a_layer_over_the_beginning_hides_nothing_else() {
    let shared = ["-fPIC", "-shared"];
    for mpi in Mpi::ALL {
        let tool = mpi.compile_as("front_tool.so", "front_tool.c", &shared);
        let upgrade =
            mpi.compile_as("front_upgrade.so", "front_tool.c", &[&shared[..], &["-DUPGRADE"]].concat());
        let program = mpi.compile("front");
        let own = mpi.compile_as("front_own", "front.c", &["-DOWN"]);
        let cases = [
            (tool_first(mpi, &tool, &program), Form::Exec, "MPI_Init"),
            (tool_first(mpi, &upgrade, &program), Form::Run, "MPI_Init_thread"),
            (tool_last(mpi, &upgrade, &program), Form::Run, "MPI_Init"),
            (Job::new(mpi, RANKS, own, &[]), Form::Run, "MPI_Init"),
        ];
        let plain = cases[0].0.plain().success();
        for (job, form, began) in cases {
            let run = whole(&job, form, &plain);
            let calls = run.functions();
            let began: &[(&str, u64)] = &[(began, 2), ("MPI_Finalize", 2), ("MPI_Barrier", 30)];
            for (function, expected) in began.iter().chain(&[("MPI_Allreduce", 30), ("MPI_Comm_rank", 2)]) {
                assert_eq!(calls.get(*function), Some(expected), "{mpi:?} {job:?}: {function} of {calls:?}");
            }
            assert_eq!(calls.len(), 5, "{mpi:?}: {calls:?}");
            let said = &run.finished.stderr;
            assert!(!said.contains("itself"), "{mpi:?}: {said}");
            let last = run.decode(1).pop().expect("calls");
            assert_eq!(last["fn"], "MPI_Finalize", "{mpi:?}: {last}");
        }
    }
}

/// A tool that calls MPI's own functions keeps init from ampl: a message names the tool, and the remedy.
#[test]
fn a_layer_that_goes_past_ampl_is_named() {
    for mpi in Mpi::ALL {
        let flags = ["-fPIC", "-shared", "-DAPART"];
        let tool = mpi.compile_as("front_apart.so", "front_tool.c", &flags);
        let own = mpi.compile_as("front_apart", "front.c", &["-DOWN", "-DAPART"]);
        let program = mpi.compile("front");
        let jobs = [
            (tool_first(mpi, &tool, &program), vec![tool.display().to_string(), "put ampl first".into()]),
            (Job::new(mpi, RANKS, &own, &[]), vec![own.display().to_string(), "the program".into()]),
        ];
        let plain = jobs[0].0.plain().success();
        for (job, words) in jobs {
            let run = monitor(&job, "", Form::Run).success();
            assert_eq!(run.finished.sorted_lines(), plain.sorted_lines(), "{mpi:?}");
            let said = &run.finished.stderr;
            assert!(!run.run.exists(), "{mpi:?}: {said}");
            let lines: Vec<&str> = said.lines().filter(|line| line.contains("seen no MPI_Init")).collect();
            let [line] = lines[..] else { panic!("{mpi:?}: {said}") };
            assert!(words.iter().all(|word| line.contains(word)), "{mpi:?}: {line}");
        }
        // The remedy works.
        let both = format!("{}:{}", dist().join("lib/libampl.so").display(), tool.display());
        let scratch = Scratch::new("first");
        let job = Job::new(mpi, RANKS, &program, &[])
            .with("LD_PRELOAD", both)
            .with("AMPL_DIR", scratch.path().join("result"));
        let run = job.plain().success();
        assert!(scratch.path().join("result/trace.ampl").is_file(), "{mpi:?}: {}", run.stderr);
    }
}

/// `programs/SOURCE` made by the Fortran compiler with `flags`.
fn fortran(mpi: Mpi, scratch: &Scratch, source: &str, flags: &[&str]) -> PathBuf {
    let output = scratch.path().join(source).with_extension(if flags.is_empty() { "bin" } else { "so" });
    let mut compile = Command::new(mpi.fortran_compiler());
    compile.args(["-g", "-o"]).arg(&output).args(flags).arg(home().join("programs").join(source));
    compile.current_dir(scratch.path());
    process::run(&mut compile, Duration::from_secs(120)).success();
    output
}

/// A tool that defines `mpi_init_`, `mpi_send_` and `mpi_finalize_`, before ampl and behind.
#[test]
fn a_tool_in_fortran() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let scratch = Scratch::new("fortran-tool");
        let tool = fortran(mpi, &scratch, "front_tool.f90", &["-shared", "-fPIC"]);
        let program = fortran(mpi, &scratch, "front.f90", &[]);
        let expected = [("MPI_Init", 2), ("MPI_Comm_rank", 2), ("MPI_Recv", 12), ("MPI_Finalize", 2)];
        for (job, is_first) in
            [(tool_first(mpi, &tool, &program), true), (tool_last(mpi, &tool, &program), false)]
        {
            let run = whole(&job, Form::Run, &job.plain().success());
            let calls = run.functions();
            for (function, expected) in expected {
                assert_eq!(calls.get(function), Some(&expected), "{mpi:?}: {function} of {calls:?}");
            }
            let said = &run.finished.stderr;
            assert!(said.is_empty() || run.finished.stdout.contains("the tool saw 6 messages"), "{said}");
            let hidden =
                said.lines().any(|line| line.contains("MPI_Send:") && line.contains("defines them itself"));
            // Either all of them or none, and the latter is reported.
            let sends = calls.get("MPI_Send").copied().unwrap_or(0);
            assert_eq!(
                (sends, hidden),
                if is_first && sends == 0 { (0, true) } else { (12, false) },
                "{mpi:?}: {said}"
            );
        }
    }
}

#[test]
fn only_what_was_not_seen_is_not_covered() {
    let shim = compile_shim("next_shim");
    for mpi in Mpi::ALL {
        let program = mpi.compile("own_end");
        let job = tool_first(mpi, &shim, &program);
        let run = monitor(&job, "", Form::Run).success();
        assert_eq!(run.finished.sorted_lines(), ["0: 1", "1: 2"], "{mpi:?}");
        let info = run.info();
        assert_eq!(info["complete"], true, "{mpi:?}: {}", run.finished.stderr);
        let calls = run.functions();
        assert_eq!(
            (calls["MPI_Barrier"], calls["MPI_Bcast"], calls.get("MPI_Scan")),
            (40, 40, None),
            "{mpi:?}"
        );
        let said = &run.finished.stderr;
        assert!(!said.contains("did not reach MPI_Finalize"), "{mpi:?}: {said}");
        let line = said.lines().find(|line| line.contains("defines them itself"));
        let line = line.unwrap_or_else(|| panic!("{mpi:?}: {said}"));
        assert!(line.contains("MPI_Scan"), "{mpi:?}: {said}");
        assert!(!line.contains("MPI_Barrier") && !line.contains("MPI_Finalize"), "{mpi:?}: {said}");
    }
}

/// Under Valgrind the kernel's facts about the process are Valgrind's, with addresses that the program has not mapped.
#[test]
fn a_program_under_valgrind_is_recorded() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let (valgrind, front) = (program(&["valgrind"]), mpi.compile("front"));
        let script = format!("exec {} -q --tool=none {}", valgrind.display(), front.display());
        let job = Job::new(mpi, 1, "sh", &["-c", &script]);
        let run = whole(&job, Form::Exec, &job.plain().success());
        assert_eq!(run.functions().get("MPI_Barrier"), Some(&15), "{mpi:?}: {}", run.finished.stderr);
    }
}
