//! The run directory of a job that starts.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use ampl_core::naming::{Names, untaken};

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
