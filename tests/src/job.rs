//! MPI libraries, and jobs under them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use crate::place::{Scratch, home, program, target};
use crate::process::{self, Finished, Machine};

/// An MPI library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mpi {
    /// Open MPI. Waiting ranks yield, so many fit on few processors.
    OpenMpi,
    /// MPICH with its own ABI. Waiting ranks of programs compiled here yield, those of others spin: at most 8.
    Mpich,
    /// MPICH behind the ABI of MPI 5. Its ranks wait in the same way.
    Abi,
}

impl Mpi {
    /// Every library that the tests know.
    pub const ALL: [Self; 3] = [Self::OpenMpi, Self::Mpich, Self::Abi];

    fn name(self) -> &'static str {
        match self {
            Self::OpenMpi => "openmpi",
            Self::Mpich => "mpich",
            Self::Abi => "abi",
        }
    }

    /// The C compiler.
    pub fn compiler(self) -> PathBuf {
        match self {
            Self::OpenMpi => program(&["mpicc.openmpi", "mpicc"]),
            Self::Mpich => program(&["mpicc.mpich"]),
            Self::Abi => standard_abi("mpicc_abi"),
        }
    }

    /// The Fortran compiler. The standard ABI has none.
    ///
    /// # Panics
    /// For [`Mpi::Abi`].
    pub fn fortran_compiler(self) -> PathBuf {
        match self {
            Self::OpenMpi => program(&["mpif90.openmpi", "mpif90"]),
            Self::Mpich => program(&["mpif90.mpich"]),
            Self::Abi => panic!("MPI 5 standardises the ABI of C only"),
        }
    }

    fn launcher(self) -> PathBuf {
        match self {
            Self::OpenMpi => program(&["mpirun.openmpi", "mpirun"]),
            Self::Mpich => program(&["mpiexec.mpich"]),
            Self::Abi => standard_abi("mpiexec"),
        }
    }

    /// The launcher's command line for that many ranks, without the program.
    pub fn launch(self, ranks: u32) -> Vec<OsString> {
        self.launch_with(ranks, true)
    }

    fn launch_with(self, ranks: u32, yields: bool) -> Vec<OsString> {
        let mut words: Vec<OsString> = vec![self.launcher().into(), "-n".into(), ranks.to_string().into()];
        if self == Self::OpenMpi {
            let yields = if yields { "1" } else { "0" };
            words.extend(["--oversubscribe", "--mca", "mpi_yield_when_idle", yields].map(OsString::from));
        }
        words
    }

    /// The C++ compiler.
    pub fn cxx_compiler(self) -> PathBuf {
        match self {
            Self::OpenMpi => program(&["mpicxx.openmpi", "mpicxx"]),
            Self::Mpich => program(&["mpicxx.mpich"]),
            Self::Abi => standard_abi("mpicxx_abi"),
        }
    }

    /// The compiled `programs/NAME.c` or `programs/NAME.cc`; compiled again only when a source is newer.
    ///
    /// # Panics
    /// With the compiler's output when it does not compile.
    pub fn compile(self, name: &str) -> PathBuf {
        let c = format!("{name}.c");
        let source = if home().join("programs").join(&c).is_file() { c } else { format!("{name}.cc") };
        self.compile_as(name, &source, &[])
    }

    /// `programs/SOURCE` compiled as `output` with `flags` besides the usual ones, C or C++ by its name.
    ///
    /// # Panics
    /// As [`compile`](Self::compile).
    pub fn compile_as(self, output: &str, source: &str, flags: &[&str]) -> PathBuf {
        let output = output_of(self.name(), output);
        let _making = making();
        if newer_than_sources(&output) {
            return output;
        }
        let (compiler, standard) = match source.ends_with(".cc") {
            true => (self.cxx_compiler(), "-std=c++17"),
            false => (self.compiler(), "-std=c11"),
        };
        let mut compile = Command::new(compiler);
        compile.args(["-g", "-O1", standard]).args(flags).arg("-o").arg(&output);
        compile.arg("-I").arg(home().join("../include")).arg(home().join("programs").join(source));
        compile.args(self.besides());
        process::run(&mut compile, Duration::from_secs(120)).success();
        output
    }

    /// Source that programs are compiled with besides their own.
    fn besides(self) -> Option<PathBuf> {
        (self != Self::OpenMpi).then(|| home().join("programs/yields.c"))
    }

    /// The compiled Fortran program for `interface`; compiled again only when a source is newer.
    ///
    /// # Panics
    /// As [`compile_fortran_as`](Self::compile_fortran_as).
    pub fn compile_fortran(self, interface: Fortran) -> PathBuf {
        let (name, source, defined) = interface.program();
        self.compile_fortran_as(name, &["fortran_record.f90", source], defined)
    }

    /// `programs/SOURCES` in Fortran compiled as `output` with `flags` besides the usual ones; compiled again only when a
    /// source is newer.
    ///
    /// # Panics
    /// With the compiler's output when it does not compile, and for [`Mpi::Abi`].
    pub fn compile_fortran_as(self, output: &str, sources: &[&str], flags: &[&str]) -> PathBuf {
        let output = output_of(self.name(), output);
        let _making = making();
        if newer_than_sources(&output) {
            return output;
        }
        let modules = output.with_extension("modules");
        std::fs::create_dir_all(&modules).unwrap_or_else(|error| panic!("{}: {error}", modules.display()));
        let programs = home().join("programs");
        let mut compile = Command::new(self.fortran_compiler());
        // mpif.h declares no interfaces: buffers of several types look like mistakes.
        compile.args(["-g", "-O1", "-ffree-line-length-none", "-fallow-argument-mismatch"]).args(flags);
        compile.arg("-J").arg(&modules).arg("-I").arg(&programs).arg("-o").arg(&output);
        compile.args(sources.iter().map(|source| programs.join(source))).args(self.besides());
        process::run(&mut compile, Duration::from_secs(120)).success();
        output
    }
}

/// An interface of MPI for Fortran programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fortran {
    /// `include 'mpif.h'`
    Mpif,
    /// `use mpi`
    Mpi,
    /// `use mpi_f08`
    F08,
    /// `use mpi_f08`, and no call has an `ierror` argument.
    F08WithoutIerror,
}

impl Fortran {
    /// Every interface.
    pub const ALL: [Self; 4] = [Self::Mpif, Self::Mpi, Self::F08, Self::F08WithoutIerror];

    /// The program for it, its source and what is defined.
    fn program(self) -> (&'static str, &'static str, &'static [&'static str]) {
        match self {
            Self::Mpif => ("fortran_mpif", "fortran_mpi.F90", &["-DINCLUDE_MPIF"]),
            Self::Mpi => ("fortran_mpi", "fortran_mpi.F90", &[]),
            Self::F08 => ("fortran_f08", "fortran_f08.F90", &[]),
            Self::F08WithoutIerror => ("fortran_f08_short", "fortran_f08.F90", &["-DWITHOUT_IERROR"]),
        }
    }
}

/// The library `programs/NAME.c`, to be preloaded.
///
/// Linked against no MPI, so that it also loads into the launcher and programs in between.
pub fn compile_shim(name: &str) -> PathBuf {
    let output = output_of("shim", &format!("{name}.so"));
    let _making = making();
    if !newer_than_sources(&output) {
        let mut compile = Command::new(program(&["gcc", "cc"]));
        compile.args(["-O1", "-fPIC", "-shared", "-Wl,-z,lazy", "-o"]).arg(&output);
        compile.arg(home().join("programs").join(name).with_extension("c"));
        process::run(&mut compile, Duration::from_secs(120)).success();
    }
    output
}

/// The library `NAME` of `programs/SOURCE` in C++, for programs to be linked with.
///
/// # Panics
/// With the compiler's output when it does not compile.
pub fn compile_library(name: &str, source: &str) -> PathBuf {
    let output = output_of("shim", name);
    let _making = making();
    if !newer_than_sources(&output) {
        let mut compile = Command::new(program(&["g++", "c++"]));
        compile.args(["-O1", "-fPIC", "-shared", "-o"]).arg(&output);
        compile.arg(format!("-Wl,-soname,{name}")).arg(home().join("programs").join(source));
        process::run(&mut compile, Duration::from_secs(120)).success();
    }
    output
}

/// Path of the compiled program of that name.
fn output_of(library: &str, name: &str) -> PathBuf {
    let directory = target().join("test-programs").join(library);
    std::fs::create_dir_all(&directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    directory.join(name)
}

fn standard_abi(name: &str) -> PathBuf {
    let path = target().join("mpi-abi/bin").join(name);
    assert!(
        path.is_file(),
        "no MPI with the standard ABI, {} is missing: run `cargo xtask setup`",
        path.display()
    );
    path
}

/// Lock that is held while a file is made that tests share.
///
/// The machine first, as a test that has it alone makes files, too.
pub fn making() -> (Option<Machine>, MutexGuard<'static, ()>) {
    static ONE: Mutex<()> = Mutex::new(());
    let share = process::beside();
    (share, ONE.lock().unwrap_or_else(PoisonError::into_inner))
}

fn newer_than_sources(output: &Path) -> bool {
    let changed = |path: &Path| path.metadata().and_then(|data| data.modified());
    let Ok(made) = changed(output) else {
        return false;
    };
    let sources =
        std::fs::read_dir(home().join("programs")).expect("the programs are part of the repository");
    sources.flatten().all(|source| changed(&source.path()).unwrap_or(SystemTime::UNIX_EPOCH) < made)
}

/// A program and its arguments under an MPI library.
#[derive(Clone, Debug)]
pub struct Job {
    /// The library.
    pub mpi: Mpi,
    /// Ranks.
    pub ranks: u32,
    /// Program and arguments.
    pub words: Vec<OsString>,
    /// Variables of every rank (and of the launcher).
    pub variables: Vec<(String, OsString)>,
    /// Working directory; the test's own if none.
    pub directory: Option<PathBuf>,
    /// Time it may take.
    pub limit: Duration,
    /// True where ranks under Open MPI give the processor away whenever MPI has nothing to do for them. A rank that only
    /// sends to itself does so at every call, and beside other programs has no time for anything else.
    pub yields: bool,
}

impl Job {
    /// A job of `programs/NAME.c` with `arguments`.
    pub fn of(mpi: Mpi, ranks: u32, name: &str, arguments: &[&str]) -> Self {
        Self::new(mpi, ranks, mpi.compile(name), arguments)
    }

    /// A job of an installed program.
    pub fn new(mpi: Mpi, ranks: u32, program: impl Into<OsString>, arguments: &[&str]) -> Self {
        let words = std::iter::once(program.into()).chain(arguments.iter().map(OsString::from)).collect();
        Self {
            mpi,
            ranks,
            words,
            variables: Vec::new(),
            directory: None,
            limit: Duration::from_secs(120),
            yields: true,
        }
    }

    /// The same job with a variable set in every rank.
    pub fn with(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.variables.push((name.to_owned(), value.into()));
        self
    }

    /// The launcher with the options that hand variables on, without the program.
    pub fn launch(&self) -> Vec<OsString> {
        let mut words = self.mpi.launch_with(self.ranks, self.yields);
        if self.mpi == Mpi::OpenMpi {
            for (name, _) in &self.variables {
                words.extend(["-x".into(), OsString::from(name)]);
            }
        }
        words
    }

    /// Runs the job without ampl.
    pub fn plain(&self) -> Finished {
        let scratch = Scratch::new("plain");
        let mut words = self.launch();
        words.extend(self.words.iter().cloned());
        self.run(&words, scratch.path())
    }

    /// Runs `words` as this job would be: its directory (or `otherwise`), variables and limit.
    pub fn run(&self, words: &[OsString], otherwise: &Path) -> Finished {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).current_dir(self.directory.as_deref().unwrap_or(otherwise));
        for name in ["AMPL_CONFIG", "AMPL_DIR", "AMPL_DISABLE", "LD_PRELOAD"] {
            command.env_remove(name);
        }
        if process::run(Command::new("id").arg("-u"), Duration::from_secs(9)).stdout.trim() == "0" {
            // Open MPI's launcher refuses root otherwise.
            command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        }
        for (name, value) in &self.variables {
            command.env(name, value);
        }
        process::run(&mut command, self.limit)
    }
}
