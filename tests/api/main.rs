//! The C API, from C, C++ and Fortran: markers, user metrics, visits, questions.

mod control;
mod edges;
mod examples;
mod steps;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::{Scratch, home};
use ampl_tests::process;
use ampl_tests::run::{Monitored, number};

/// The libraries with compilers for every language.
const LIBRARIES: [Mpi; 2] = [Mpi::OpenMpi, Mpi::Mpich];

/// The repository.
fn root() -> PathBuf {
    home().join("..")
}

/// `sources` compiled together in `scratch`; the language is that of the last.
///
/// # Panics
/// With the compiler's output if there is any.
fn build(mpi: Mpi, scratch: &Scratch, sources: &[PathBuf], flags: &[&str]) -> PathBuf {
    let last = sources.last().expect("a source");
    let (compiler, own): (PathBuf, &[&str]) = match last.extension().and_then(|text| text.to_str()) {
        Some("cc") => (mpi.cxx_compiler(), &["-std=c++11", "-Wall", "-Wextra", "-Wno-cast-function-type"]),
        Some("f90") => (mpi.fortran_compiler(), &["-Wall", "-Wno-unused-dummy-argument"]),
        _ => (mpi.compiler(), &["-std=c99", "-Wall", "-Wextra", "-pedantic"]),
    };
    let output = scratch.path().join(last.file_stem().expect("a file's name"));
    let mut compile = Command::new(compiler);
    compile.args(own).args(["-O1", "-g"]).args(flags).arg("-I").arg(root().join("include"));
    if last.extension().is_some_and(|text| text == "f90") {
        compile.arg("-J").arg(scratch.path());
    } else {
        compile.args(["-Werror", "-pthread"]);
    }
    compile.args(sources).arg("-o").arg(&output);
    process::run(&mut compile, Duration::from_secs(120)).success();
    output
}

/// The census mean of that metric and event in every window that has one.
fn means(monitored: &Monitored, metric: &str, event: &str) -> BTreeMap<u64, f64> {
    let rows = monitored.estimate();
    let of = rows.iter().filter(|row| {
        (&row["metric"], &row["event"]) == (&metric.into(), &event.into())
            && (&row["scope"], &row["basis"]) == (&"window".into(), &"census".into())
            && !row["mean"].is_null()
    });
    of.map(|row| (number(&row["window"]) as u64, number(&row["mean"]))).collect()
}

/// A job of `tests/programs/SOURCE`.
fn job(mpi: Mpi, ranks: u32, scratch: &Scratch, source: &str, arguments: &[&str]) -> Job {
    let program = build(mpi, scratch, &[home().join("programs").join(source)], &[]);
    Job::new(mpi, ranks, program, arguments)
}
