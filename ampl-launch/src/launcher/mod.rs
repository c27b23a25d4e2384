//! Launchers: the one that a command line starts, and the place of the program in it.

mod detect;
mod end;
mod hydra;
mod openmpi;
mod programs_file;
mod slurm;

use std::ffi::{OsStr, OsString};

pub use crate::options::LauncherError;
use crate::options::{Options, Step, lossy};
use crate::prefix;
pub use detect::{Detected, detect, version};
pub use end::{end_job, wait_for_report};

/// A family of launchers that share their options.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Flavour {
    /// Open MPI's mpirun, mpiexec, orterun; PRRTE's prterun.
    OpenMpi,
    /// Hydra: MPICH, Intel MPI, MVAPICH.
    Hydra,
    /// Slurm's srun.
    Slurm,
}

/// A launcher's command line with something put before every program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inserted {
    /// The new command line.
    pub argv: Vec<OsString>,
    /// The program of every app context, without prefixes that only start it.
    pub programs: Vec<OsString>,
    /// Words of the command line that name a file of programs, and the text of the file to name in its place.
    pub files: Vec<(usize, String)>,
}

impl Flavour {
    /// The flavour that an executable's file name (links resolved) alone decides; `mpirun` and `mpiexec` do not.
    pub fn by_name(file_name: &str) -> Option<Self> {
        Some(match file_name {
            "orterun" | "prterun" | "prun" | "mpirun.openmpi" | "mpiexec.openmpi" | "oshrun" => Self::OpenMpi,
            "mpiexec.hydra" | "mpirun.mpich" | "mpiexec.mpich" | "mpirun_rsh.hydra" => Self::Hydra,
            "srun" => Self::Slurm,
            _ => return None,
        })
    }

    /// True where some launcher has an option that is written so.
    pub fn any_has(option: &OsStr) -> bool {
        let has = |flavour: Self| matches!(flavour.options().step(option), Ok(Step::Option { .. }));
        [Self::OpenMpi, Self::Hydra, Self::Slurm].into_iter().any(has)
    }

    /// True where a program of that name may be a launcher, so that asking it for its version is safe.
    pub fn may_be(file_name: &str) -> bool {
        Self::by_name(file_name).is_some()
            || ["mpirun", "mpiexec"].iter().any(|name| {
                file_name
                    .strip_prefix(name)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-', '_']))
            })
    }

    /// The flavour that the output of `--version` shows.
    pub fn by_version(output: &str) -> Option<Self> {
        let has = |words: &[&str]| words.iter().any(|word| output.contains(word));
        if has(&["Open MPI", "OpenRTE", "PRRTE", "prterun"]) {
            Some(Self::OpenMpi)
        } else if has(&["HYDRA", "Intel(R) MPI"]) {
            Some(Self::Hydra)
        } else if output.starts_with("slurm ") {
            Some(Self::Slurm)
        } else {
            None
        }
    }

    fn options(self) -> &'static Options {
        match self {
            Self::OpenMpi => &openmpi::OPTIONS,
            Self::Hydra => &hydra::OPTIONS,
            Self::Slurm => &slurm::OPTIONS,
        }
    }
}

/// `argv` (launcher first) with `exec_argv` before the program of every app context; contexts are separated by a
/// lone `:`, which every known launcher reserves. A file of programs is read, and gets them in its copy.
///
/// # Errors
/// [`LauncherError`] when it is not certain where a program stands.
pub fn insert_exec(
    flavour: Flavour,
    argv: &[OsString],
    exec_argv: &[OsString],
) -> Result<Inserted, LauncherError> {
    let mut inserted =
        Inserted { argv: argv.iter().take(1).cloned().collect(), programs: Vec::new(), files: Vec::new() };
    for (index, context) in argv.get(1..).unwrap_or_default().split(|word| word == ":").enumerate() {
        if index > 0 {
            inserted.argv.push(":".into());
        }
        let program =
            program_index(flavour.options(), context)?.ok_or(LauncherError::NoProgram(index + 1))?;
        let (options, command) = context.split_at(program);
        inserted.argv.extend_from_slice(options);
        if flavour == Flavour::Slurm && options.iter().any(|word| word == programs_file::OPTION) {
            let file = programs_file::read(&command[0], exec_argv)?;
            if file.programs.is_empty() {
                return Err(LauncherError::NoProgram(index + 1));
            }
            inserted.files.push((inserted.argv.len(), file.text));
            inserted.programs.extend(file.programs);
            inserted.argv.extend_from_slice(command);
            continue;
        }
        inserted.argv.extend_from_slice(exec_argv);
        inserted.argv.extend_from_slice(command);
        inserted.programs.push(command[prefix::behind(command)].clone());
    }
    Ok(inserted)
}

/// Index of the first word that is neither an option nor an option's value.
fn program_index(options: &Options, words: &[OsString]) -> Result<Option<usize>, LauncherError> {
    let mut index = 0;
    while let Some(word) = words.get(index) {
        match options.step(word)? {
            Step::Program => return Ok(Some(index)),
            Step::End => return Ok((index + 1 < words.len()).then_some(index + 1)),
            Step::Option { values } => {
                index += 1 + values;
                if index > words.len() {
                    return Err(LauncherError::NoValue(lossy(word)));
                }
            }
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests;
