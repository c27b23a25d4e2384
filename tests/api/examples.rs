//! The programs in `integrations/examples`: they run without ampl, and with their job file as it says.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::{Scratch, target};
use ampl_tests::process;
use ampl_tests::run::{Form, monitor, number, text_of};

use crate::{LIBRARIES, build, means, root};

const RANKS: u32 = 3;
const STEPS: f64 = 40.0;

fn check(job: &Job) {
    let plain = job.plain().success();
    assert!(plain.stdout.contains("change after 40 steps"), "{}", plain.stdout);
    let config = text_of(&root().join("integrations/examples/job.toml"));
    let monitored = monitor(job, &config, Form::Run).success();
    assert_eq!(plain.stdout, monitored.finished.stdout);
    assert_eq!(number(&monitored.info()["windows"]), STEPS + 1.0);
    let cells: Vec<f64> = means(&monitored, "cells", "*").into_values().collect();
    assert_eq!(cells, [vec![1000.0; STEPS as usize], vec![0.0]].concat());
    let exchange = means(&monitored, "mpi.time", "region:EXCHANGE");
    assert!(exchange.len() == STEPS as usize && exchange.values().all(|&time| time > 0.0), "{exchange:?}");
}

fn example(mpi: Mpi, sources: &[&str], flags: &[&str]) {
    let scratch = Scratch::new("example");
    let sources: Vec<PathBuf> =
        sources.iter().map(|source| root().join("integrations").join(source)).collect();
    check(&Job::new(mpi, RANKS, build(mpi, &scratch, &sources, flags), &[]));
}

#[test]
fn c() {
    for mpi in Mpi::ALL {
        example(mpi, &["examples/c/stencil.c"], &[]);
    }
}

/// Programs that are not position-independent resolve what is missing once and for all when they are linked.
#[test]
fn c_at_a_fixed_address() {
    for flags in [&["-no-pie", "-fno-pic", "-O0"], &["-no-pie", "-fno-pic", "-O3"], &["-flto", "-O2", "-g"]] {
        example(Mpi::OpenMpi, &["examples/c/stencil.c"], flags);
    }
}

#[test]
fn cxx() {
    for mpi in LIBRARIES {
        example(mpi, &["examples/cxx/stencil.cc"], &[]);
    }
}

#[test]
fn fortran() {
    for mpi in LIBRARIES {
        example(mpi, &["fortran/ampl.f90", "examples/fortran/stencil.f90"], &[]);
    }
}

/// A directory with libclang, which rsmpi's build needs; `None` where there is none.
fn libclang() -> Option<PathBuf> {
    let has = |directory: &Path| {
        let files = std::fs::read_dir(directory).into_iter().flatten().flatten();
        files.map(|file| file.file_name()).any(|name| {
            name.to_str()
                .is_some_and(|name| name.starts_with("libclang.so") || name.starts_with("libclang-1"))
        })
    };
    let named = std::env::var_os("LIBCLANG_PATH").map(PathBuf::from);
    let versions = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten().map(|file| file.path());
    let llvm = versions.filter(|path| path.to_string_lossy().contains("llvm")).map(|path| path.join("lib"));
    let usual = ["/usr/lib", "/usr/lib64", "/usr/lib/x86_64-linux-gnu"].map(PathBuf::from);
    named.into_iter().chain(llvm).chain(usual).find(|directory| has(directory))
}

/// Reports where it is left out: rsmpi builds only with libclang.
#[test]
fn rust() {
    let Some(libclang) = libclang() else {
        eprintln!("left out: no libclang, which rsmpi's build needs");
        return;
    };
    let mpi = Mpi::OpenMpi;
    let built = target().join("test-programs/rust");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    cargo
        .args(["build", "--quiet", "--manifest-path"])
        .arg(root().join("integrations/examples/rust/Cargo.toml"));
    cargo.env("CARGO_TARGET_DIR", &built).env("LIBCLANG_PATH", libclang).env("MPICC", mpi.compiler());
    // What a bare libclang lacks, the C compiler has.
    let mut ask = Command::new("gcc");
    let headers = process::run(ask.arg("-print-file-name=include"), Duration::from_secs(9)).success().stdout;
    cargo.env("BINDGEN_EXTRA_CLANG_ARGS", format!("-I{}", headers.trim()));
    process::run(&mut cargo, Duration::from_secs(600)).success();
    check(&Job::new(mpi, RANKS, built.join("debug/stencil"), &[]));
}
