//! Programs that load MPI late, or try to: the loader answers them as it does without ampl.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::{Scratch, home};
use ampl_tests::process;
use ampl_tests::run::{Form, monitor};

/// A library `name` in `directory` made of `source`, with `flags`.
fn library(compiler: &Path, directory: &Path, name: &str, source: &Path, flags: &[&str]) -> PathBuf {
    let mut compile = Command::new(compiler);
    compile.args(["-shared", "-fPIC", "-o", name]).arg(source).args(flags).current_dir(directory);
    process::run(&mut compile, Duration::from_secs(60)).success();
    directory.join(name)
}

/// Libraries that plug-ins need are gone: the program is refused, asks why, and takes a plug-in that loads.
#[test]
fn plugins_whose_libraries_are_missing() {
    for mpi in Mpi::ALL {
        let scratch = Scratch::new("plugins");
        let here = scratch.path();
        let compiler = mpi.compiler();
        let none = scratch.write("none.c", "int none(void) { return 1; }\n");
        let gcc = Path::new("gcc");
        let absent = library(gcc, here, "libmpi.so.77", &none, &["-Wl,-soname,libmpi.so.77"]);
        let gone = library(gcc, here, "libgone.so", &none, &["-Wl,-soname,libgone.so"]);
        let source = home().join("programs/plugin.c");
        let lacking = library(gcc, here, "lacking.so", &none, &["-Wl,--no-as-needed", "./libmpi.so.77"]);
        let half = library(&compiler, here, "half.so", &source, &["-Wl,--no-as-needed", "./libgone.so"]);
        let good = library(&compiler, here, "good.so", &source, &[]);
        for file in [absent, gone] {
            std::fs::remove_file(file).expect("it was just made");
        }
        let paths = [&lacking, &half, &good].map(|path| path.to_str().expect("a path of ours"));
        let job = Job::of(mpi, 1, "loads", &paths);
        let plain = job.plain().success();
        for form in [Form::Run, Form::Exec] {
            let run = monitor(&job, "", form);
            assert_eq!(run.finished.status.code(), Some(0), "{mpi:?}: {}", run.finished.stderr);
            assert_eq!(run.finished.stdout, plain.stdout, "{mpi:?}");
            assert_eq!(run.functions()["MPI_Allreduce"], 10, "{mpi:?}");
        }
    }
}
