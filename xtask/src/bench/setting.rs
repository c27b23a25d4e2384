//! Requirements of benchmarks of whole jobs: an MPI, an installation, and a place to work.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::dist;
use crate::shell::{find, is_root, root, run as run_command, target};

/// Directories and programs of a benchmark.
#[derive(Debug)]
pub struct Setting {
    /// Open MPI's launcher.
    pub launcher: PathBuf,
    /// The command of the installation that is measured.
    pub ampl: PathBuf,
    /// An empty directory.
    pub scratch: PathBuf,
    compiler: PathBuf,
}

impl Setting {
    /// Setting of the benchmark `name`, with the installation `dist`, or one that is built.
    ///
    /// # Errors
    /// When Open MPI is missing or something does not compile.
    pub fn prepare(name: &str, dist: Option<&Path>) -> Result<Self> {
        let missing = "Open MPI is missing: run `cargo xtask setup`";
        let launcher = find(&["mpirun.openmpi", "mpirun"]).context(missing)?;
        let compiler = find(&["mpicc.openmpi", "mpicc"]).context(missing)?;
        let dist = match dist {
            Some(dist) => dist.to_owned(),
            None => dist::run()?,
        };
        let scratch = target().join(format!("bench-{name}"));
        let _ = std::fs::remove_dir_all(&scratch);
        std::fs::create_dir_all(&scratch)?;
        Ok(Self { launcher, ampl: dist.join("bin/ampl"), scratch, compiler })
    }

    /// The program compiled from `source`, which may include `ampl.h`.
    ///
    /// # Errors
    /// When it does not compile.
    pub fn compile(&self, source: &Path) -> Result<PathBuf> {
        let program = self.scratch.join(source.file_stem().unwrap_or_default());
        let mut compile = Command::new(&self.compiler);
        let header = root().join("include");
        run_command(compile.args(["-O2", "-I"]).arg(header).arg("-o").args([&program, source]))?;
        Ok(program)
    }

    /// A job of so many ranks that share the processors, and yield them while they wait.
    #[must_use]
    pub fn crowd(&self, ranks: usize) -> Command {
        let mut job = Command::new(&self.launcher);
        job.args(["-n", &ranks.to_string(), "--bind-to", "none", "--oversubscribe"]);
        job.args(["--mca", "mpi_yield_when_idle", "1"]);
        job
    }

    /// Run directory of a watched job.
    #[must_use]
    pub fn run(&self) -> PathBuf {
        self.scratch.join("run")
    }

    /// Prepares `job` with [`settle`], and adds the words before the program that watch it with these `options` of
    /// `ampl exec`; none where they are `None`.
    pub fn watch(&self, job: &mut Command, options: Option<&[&str]>) {
        settle(job);
        let Some(options) = options else { return };
        let _ = std::fs::remove_dir_all(self.run());
        job.arg(&self.ampl).args(["exec", "-o"]).arg(self.run()).args(options).arg("--");
    }
}

/// Lets `job` run for root too, and without the user's own settings of ampl.
pub fn settle(job: &mut Command) {
    if is_root() {
        job.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    }
    for name in ["AMPL_CONFIG", "AMPL_DIR", "AMPL_DISABLE", "LD_PRELOAD"] {
        job.env_remove(name);
    }
}
