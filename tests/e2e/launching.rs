//! What stands between the user's command line and the program: preloaded tools, prefixes, other launchers.

use std::ffi::OsString;
use std::path::Path;

use ampl_tests::job::{Job, Mpi, compile_shim};
use ampl_tests::place::{Scratch, ampl};
use ampl_tests::process::{self, Finished};
use ampl_tests::run::{counts, parse};

fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

fn assignment(value: &Path) -> OsString {
    let mut word = OsString::from("LD_PRELOAD=");
    word.push(value);
    word
}

/// Options by which that launcher gives ranks an LD_PRELOAD.
fn preloading(mpi: Mpi, library: &Path) -> Vec<OsString> {
    match mpi {
        Mpi::OpenMpi => vec!["-x".into(), assignment(library)],
        _ => vec!["-genv".into(), "LD_PRELOAD".into(), library.into()],
    }
}

/// Calls of MPI_Barrier in the run.
fn barriers(run: &Path) -> u64 {
    let mut info = std::process::Command::new(ampl());
    info.args(["info", "--json"]).arg(run);
    let info = process::run(&mut info, std::time::Duration::from_secs(60)).success();
    counts(&parse(&info.stdout)["functions"])["MPI_Barrier"]
}

/// The tool's own library needs symbols that only the program has.
#[test]
fn a_preloaded_tool_reaches_the_program_and_not_ampl() {
    let tool = compile_shim("barrier_tool");
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let job = Job::of(mpi, 2, "steady", &["20"]);
        let launch = [mpi.launch(2), preloading(mpi, &tool)].concat();
        let by_env = [words(&["env", "-u", "AMPL_DISABLE"]), vec![assignment(&tool)]].concat();
        let scratch = Scratch::new("preload");
        let ours = |name: &str, command: &str| -> Vec<OsString> {
            [vec![ampl().into()], words(&[command, "-o", name, "--"])].concat()
        };
        let run = |line: &[Vec<OsString>]| -> Finished { job.run(&line.concat(), scratch.path()) };
        let alone = run(&[launch.clone(), job.words.clone()]).success();
        assert_eq!(alone.stdout.matches("tool: 20 barriers").count(), 2, "{mpi:?}: {}", alone.stdout);
        for (name, line) in [
            ("run", vec![ours("run", "run"), launch.clone(), job.words.clone()]),
            ("exec", vec![launch.clone(), ours("exec", "exec"), job.words.clone()]),
            ("run-env", vec![ours("run-env", "run"), mpi.launch(2), by_env.clone(), job.words.clone()]),
            ("exec-env", vec![mpi.launch(2), ours("exec-env", "exec"), by_env.clone(), job.words.clone()]),
        ] {
            let watched = run(&line).success();
            assert_eq!(watched.sorted_lines(), alone.sorted_lines(), "{mpi:?} {name}: {}", watched.stderr);
            assert_eq!(barriers(&scratch.path().join(name)), 40, "{mpi:?} {name}");
        }
    }
}

/// The dynamic linker says so once per process, as it does without ampl.
#[test]
fn a_preloaded_library_that_is_not_there_is_ignored() {
    let mpi = Mpi::OpenMpi;
    let job = Job::of(mpi, 2, "steady", &["20"]);
    let scratch = Scratch::new("preload");
    let launch = [mpi.launch(2), preloading(mpi, Path::new("/nowhere/libtool.so"))].concat();
    let exec = [vec![ampl().into()], words(&["exec", "-o", "r", "--"])].concat();
    let alone = job.run(&[launch.clone(), job.words.clone()].concat(), scratch.path()).success();
    let watched = job.run(&[launch, exec, job.words.clone()].concat(), scratch.path()).success();
    assert_eq!(watched.stdout, alone.stdout);
    let ignored = |finished: &Finished| finished.stderr.matches("/nowhere/libtool.so").count();
    assert_eq!((ignored(&alone), ignored(&watched)), (2, 2), "{}", watched.stderr);
    assert_eq!(barriers(&scratch.path().join("r")), 40);
}

#[test]
fn programs_that_start_others_are_looked_through() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let job = Job::of(mpi, 2, "steady", &["20"]);
        let scratch = Scratch::new("prefix");
        let before = [vec![ampl().into()], words(&["run", "-o", "r", "timeout", "-k", "5", "90"])].concat();
        let between = words(&["nice", "-n", "1", "env", "COLOUR=red"]);
        let line = [before, mpi.launch(2), between, job.words.clone()].concat();
        job.run(&line, scratch.path()).success();
        assert_eq!(barriers(&scratch.path().join("r")), 40, "{mpi:?}");
    }
}
