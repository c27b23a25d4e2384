//! The application's environment: what `ampl exec` gives the program that it becomes.

use std::ffi::OsString;
use std::path::Path;

use ampl_core::naming::{LAUNCHED_VARIABLE, REFUSED_VARIABLE};

use crate::elf::Executable;
use crate::failure::Failure;
use crate::job::{self, Job, Request, Site};
use crate::{counting, directory, environment, library, marker_site, once, prefix, script, tool_hooks};

/// The application's variables and command line.
#[derive(Debug)]
pub struct Prepared {
    /// The variables that the application gets.
    pub variables: Vec<(&'static str, OsString)>,
    /// Its command line.
    pub command: Vec<OsString>,
}

/// Variables and command line for the application.
///
/// A launcher starts many of these, and other ranks wait in `MPI_Init` for one that ends. So a rank ends here only for
/// errors of the job file and of `--set`, which all have. What one rank alone can find is decided in `MPI_Init`, where
/// all go on without ampl; without a launcher it is an error here. What `ampl run` has `checked` is not checked again.
///
/// # Errors
/// Configuration, run directory or library are at fault.
pub fn prepare(request: &Request, checked: bool, command: &[OsString]) -> Result<Prepared, Failure> {
    let (speaks, launched) = (environment::speaks(), environment::is_launched());
    let site = if checked { Site::Trusted } else { Site::Checked };
    let mut job = Job::load(request, speaks && !checked, site)?;
    // Within a program that ampl started AMPL_DIR is ampl's own.
    if !checked && !environment::is_within() {
        directory::refuse_named(&job)?;
    }
    let (before, own) = command.split_at(prefix::behind(command));
    job.refuse_hidden(before)?;
    let program = environment::which(Path::new(&own[0]));
    let dir = request.output.clone().or_else(environment::dir);
    let dir = match dir {
        // The library takes the next name where this one is taken, and opens the counters itself.
        Some(dir) if !launched => Some(job::new_directory(&dir)?),
        dir => dir.map(std::path::absolute).transpose()?,
    };
    if !launched {
        counting::check(&job.config, program.as_slice())?;
    }
    let library = match library::find() {
        Ok(library) => library,
        Err(error) if launched => {
            goes_on(&error);
            return Ok(Prepared { variables: Vec::new(), command: command.to_vec() });
        }
        Err(error) => return Err(error),
    };
    let mut variables = Vec::new();
    if let Some(program) = &program {
        if speaks {
            warn(program);
            script::overrides(program, own).iter().for_each(|said| notice!("{said}"));
        }
        if let Err(error) = marker_site::resolve(&mut job, std::slice::from_ref(program)) {
            if !launched {
                return Err(error);
            }
            // The first rank's settings are everyone's: other programs need not have the place.
            if speaks {
                goes_on(&error);
            }
            variables.push((REFUSED_VARIABLE, "1".into()));
        }
    }
    variables.push((environment::PRELOAD, prefix::first(&library, environment::preload().as_deref())));
    let (hooks, said) = tool_hooks::variables(&job.config.hooks, &library);
    variables.extend(hooks);
    if speaks {
        said.iter().for_each(|said| notice!("{said}"));
    }
    if let Some(config) = job.for_library()? {
        variables.push((environment::CONFIG, config));
    }
    if let Some(dir) = dir {
        variables.push((environment::DIR, dir.into_os_string()));
    }
    if let Some(world) = environment::world() {
        variables.push((LAUNCHED_VARIABLE, world.into()));
    }
    let command = prefix::with_preload(command, &library, &variables);
    Ok(Prepared { variables, command })
}

/// Reports what keeps this rank from being recorded, and so all others; once on a node.
fn goes_on(error: &Failure) {
    let said = format!("{error}; the job goes on without ampl");
    if once::is_first(&said) {
        notice!("{said}");
    }
}

/// Warns on stderr where ampl may record nothing of this program.
fn warn(program: &Path) {
    // An exec of ampl within another says itself what is wrong with the program behind it.
    if std::env::current_exe().is_ok_and(|ampl| program.canonicalize().ok() == ampl.canonicalize().ok()) {
        return;
    }
    for (what, fix) in Executable::read(program).map(|executable| executable.obstacles()).unwrap_or_default()
    {
        notice!("ampl: {what} ({}): {fix}", program.display());
    }
}
