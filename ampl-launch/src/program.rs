//! A program as `ampl doctor` shows it: its MPI, and what stands in the way of ampl.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::elf::{self, Executable};
use crate::failure::Failure;
use crate::mpi::{self, Linked};

/// Kind of a program's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ProgramKind {
    /// An executable that loads libraries.
    Dynamic,
    /// An executable that loads none.
    Static,
    /// A script, or a file of another format.
    #[serde(rename = "script or unknown")]
    Opaque,
}

impl fmt::Display for ProgramKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Dynamic => "dynamic",
            Self::Static => "static",
            Self::Opaque => "script or unknown",
        })
    }
}

/// The program that would be run.
#[derive(Debug, Serialize)]
pub struct App {
    /// Its file.
    pub path: PathBuf,
    /// Its kind.
    pub kind: ProgramKind,
    /// True where it contains MPI itself.
    pub defines_mpi: bool,
    /// MPI functions that it defines itself.
    pub own_functions: Vec<String>,
    /// Extensions of its MPI that it refers to: they are not recorded.
    pub extensions: Vec<String>,
}

/// The program and its MPI libraries; obstacles for ampl go to `problems`.
///
/// # Errors
/// Errors of the system.
pub fn examine(
    file: &Path,
    library: Option<&Path>,
    problems: &mut Vec<String>,
) -> Result<(App, Linked), Failure> {
    let opaque = Executable { opaque: true, ..Executable::default() };
    let executable = Executable::read(file).unwrap_or(opaque);
    let place = file.display();
    for (what, fix) in executable.obstacles() {
        problems.push(format!("ampl: {what} ({place}): {fix}"));
    }
    let kind = match (executable.opaque, executable.is_static) {
        (true, _) => ProgramKind::Opaque,
        (_, true) => ProgramKind::Static,
        _ => ProgramKind::Dynamic,
    };
    let linked = match kind {
        ProgramKind::Dynamic => {
            let wrapped = library.and_then(elf::exported).unwrap_or_default();
            mpi::of_program(file, &wrapped)
        }
        ProgramKind::Static => Linked::default(),
        ProgramKind::Opaque => Linked { mpi: mpi::installed(), ..Linked::default() },
    };
    for name in &linked.missing {
        problems.push(format!(
            "ampl: the dynamic linker does not find {name} ({place}): set LD_LIBRARY_PATH, or load the \
             MPI's module"
        ));
    }
    if kind == ProgramKind::Dynamic
        && linked.mpi.is_empty()
        && linked.missing.is_empty()
        && !executable.defines_mpi
    {
        problems.push(format!(
            "ampl: no MPI among its libraries ({place}): nothing, if it loads MPI at run time or has none; \
             else check LD_LIBRARY_PATH"
        ));
    }
    if kind == ProgramKind::Dynamic && linked.mpi.len() > 1 {
        let paths: Vec<String> = linked.mpi.iter().map(|mpi| mpi.path.display().to_string()).collect();
        let paths = paths.join(" and ");
        problems
            .push(format!("ampl: it is linked to several MPI libraries, {paths} ({place}): link it to one"));
    }
    let path = std::path::absolute(file)?;
    let Executable { defines_mpi, own_functions, extensions, .. } = executable;
    Ok((App { path, kind, defines_mpi, own_functions, extensions }, linked))
}
