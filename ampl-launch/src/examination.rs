//! Examination of this machine and of a program, for `ampl doctor`.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::failure::{Failure, Kind};
use crate::leftovers::{self, Leftover};
use crate::machine::{self, Clock, Counters, FileSystem, Launcher};
use crate::mpi::{self, FortranLibrary, Linked, MpiLibrary};
use crate::program::{self, App};
use crate::{counting, environment, library};

/// MPI, symbols, clock, file system, counters and launchers; the order of fields is part of the format.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Version of ampl.
    version: &'static str,
    /// True where the `ampl` command has no dynamic linker, and so ignores LD_PRELOAD.
    is_static: bool,
    /// `libampl.so`, null when it is not there.
    library: Option<PathBuf>,
    app: Option<App>,
    /// The program's; without a program, or for a script, those in the usual places.
    mpi: Vec<MpiLibrary>,
    /// The program's.
    fortran: Vec<FortranLibrary>,
    clock: Clock,
    /// File system of `journal = "node"`.
    journal: FileSystem,
    /// `kernel.perf_event_paranoid`; null where the kernel has no counters.
    perf_event_paranoid: Option<i64>,
    counters: Counters,
    launchers: Vec<Launcher>,
    /// Journals in this node's memory.
    leftovers: Vec<Leftover>,
    /// Obstacles for ampl, as printed messages.
    problems: Vec<String>,
}

impl Report {
    /// Examination of this machine, and of `app`, by the `ampl` of that version.
    ///
    /// # Errors
    /// The program does not exist.
    pub fn of(app: Option<&Path>, version: &'static str, is_static: bool) -> Result<Self, Failure> {
        let mut problems = Vec::new();
        let library = library::find().map_err(|error| problems.push(error.to_string())).ok();
        let (mut found, mut linked) = (None, Linked::default());
        match app {
            None => linked.mpi = mpi::installed(),
            Some(path) => {
                let Some(file) = environment::which(path) else {
                    let what = if path.exists() { "this is no program" } else { "there is no such program" };
                    return Err(Failure::message(
                        Kind::NotFound,
                        what,
                        path.display(),
                        "name a program, or nothing",
                    ));
                };
                let (program, uses) = program::examine(&file, library.as_deref(), &mut problems)?;
                (found, linked) = (Some(program), uses);
            }
        }
        let launchers = machine::launchers();
        if launchers.is_empty() {
            problems.push("ampl: no launcher found (PATH): install an MPI, or extend PATH".into());
        }
        let leftovers = leftovers::found();
        problems.extend(leftovers::message(&leftovers, 0));
        Ok(Self {
            version,
            is_static,
            library,
            app: found,
            mpi: linked.mpi,
            fortran: linked.fortran,
            clock: machine::clock(),
            journal: machine::journal(),
            perf_event_paranoid: counting::paranoid(),
            counters: machine::counters(),
            launchers,
            leftovers,
            problems,
        })
    }

    /// Lines about all of it.
    pub fn lines(&self) -> Vec<String> {
        let mut out = Vec::new();
        let mut titled = |title: &str, lines: &[String]| {
            for (index, line) in lines.iter().enumerate() {
                out.push(format!("{:<14}{line}", if index == 0 { title } else { "" }));
            }
        };
        let mut version = vec![self.version.to_owned()];
        if !self.is_static {
            version.push(
                "dynamically linked: a library in LD_PRELOAD that needs an MPI keeps 'ampl exec' from".into(),
            );
            version.push("starting; the command that 'cargo xtask dist' builds takes it".into());
        }
        titled("ampl", &version);
        let library = self.library.as_ref().map_or("not found".into(), |path| path.display().to_string());
        titled("libampl.so", &[library]);
        if let Some(app) = &self.app {
            titled("program", &[format!("{} ({})", app.path.display(), app.kind)]);
        }
        if self.mpi.is_empty() {
            titled("MPI", &["none found".into()]);
        }
        self.mpi.iter().for_each(|mpi| titled("MPI", &mpi.lines()));
        for library in &self.fortran {
            titled("Fortran", &[format!("{} ({} symbols wrapped)", library.path.display(), library.wrapped)]);
        }
        titled("clock", &[self.clock.line()]);
        titled("journals", &[self.journal.line()]);
        titled("counters", &self.counters.lines());
        for launcher in &self.launchers {
            let known = if launcher.flavour.is_some() { "" } else { "; use the 'ampl exec' form" };
            titled("launcher", &[format!("{} ({}{known})", launcher.path.display(), launcher.version)]);
        }
        out.extend(self.problems.iter().cloned());
        out
    }
}
