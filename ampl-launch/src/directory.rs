//! The run directory of a job that starts.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use ampl_core::naming::{Names, untaken};
use ampl_trace::Trace;

use crate::environment;
use crate::failure::{Failure, Kind};
use crate::job::{Job, Request, new_directory};

/// Refuses `AMPL_DIR` where the site locks the name of run directories.
///
/// # Errors
/// A [`Failure`] that names the site's file.
pub fn refuse_named(job: &Job) -> Result<(), Failure> {
    match job.site().filter(|site| site.locks("output.dir") && environment::dir().is_some()) {
        Some(site) => {
            let (what, fix) = ("'output.dir' is locked by the site", format!("unset {}", environment::DIR));
            Err(Failure::message(Kind::Usage, what, site.path.display(), fix))
        }
        None => Ok(()),
    }
}

/// The scheduler's name of this job, or the number of this process.
pub fn job_id() -> String {
    environment::job_name().unwrap_or_else(|| std::process::id().to_string())
}

/// The scheduler's job that `trace` is of; without one the name of `run`, its directory, which nobody else has.
pub fn job_of(trace: &Trace, run: &Path) -> String {
    let job = trace.run.metadata.job.as_ref().map(|job| job.id.clone());
    job.filter(|id| !id.is_empty()).unwrap_or_else(|| {
        let run = std::path::absolute(run).unwrap_or_else(|_| run.to_owned());
        let directory = if run.is_file() { run.parent() } else { Some(run.as_path()) };
        let name = directory.and_then(|directory| directory.file_name());
        name.unwrap_or_default().to_string_lossy().into_owned()
    })
}

/// Message about a job that left nothing in `dir`.
pub fn unrecorded(dir: &Path) -> String {
    format!(
        "ampl: no run was recorded ({} does not exist): a message above says why, or the program made no \
         MPI_Init that ampl saw, as it has no MPI, a script set LD_PRELOAD anew, or a tool calls MPI past ampl; \
         'ampl doctor ./app' says what ampl sees of it",
        dir.display()
    )
}

/// The run directory: `-o`, `AMPL_DIR`, or a name from the template that is not taken.
///
/// # Errors
/// A directory that is named and exists.
pub fn choose(request: &Request, job: &Job, programs: &[OsString]) -> Result<PathBuf, Failure> {
    if let Some(dir) = request.output.clone().or_else(environment::dir) {
        return new_directory(&dir);
    }
    let jobid = job_id();
    let program = programs.first().cloned().unwrap_or_default();
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let name = Names::new(&program, &jobid, seconds).fill(&job.config.output.dir);
    let path = std::path::absolute(name)?;
    Ok(untaken(&path, |path| path.symlink_metadata().is_ok()))
}
