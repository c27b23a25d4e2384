//! `ampl exec`: becomes the application, with `libampl.so` loaded first.

use std::ffi::OsString;
use std::io::{ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use ampl_core::naming::{LAUNCHED_VARIABLE, REFUSED_VARIABLE, STARTED_VARIABLE};

use crate::elf::Executable;
use crate::job::{self, Job, JobArgs, Site};
use crate::{
    counting, environment, inherited, launcher, library, marker_site, once, prefix, script, tool_hooks,
};

/// Become the application, with ampl loaded; for use after any launcher.
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  mpirun -n 8 ampl exec -c job.toml -- ./app input.txt")]
pub struct Args {
    #[command(flatten)]
    job: JobArgs,
    /// Print the environment that the application would get, and stop
    #[arg(long)]
    dry_run: bool,
    /// `ampl run` has read the configuration and said what is to be said about it
    #[arg(long, hide = true)]
    checked: bool,
    /// The application's command line, after --
    #[arg(trailing_var_arg = true, required = true, value_name = "APP")]
    command: Vec<OsString>,
}

/// Replaces this process by the application; returns only if that fails, or for `--dry-run`.
///
/// # Errors
/// The application was not started: configuration, run directory or library are at fault.
pub fn exec(args: Args) -> anyhow::Result<ExitCode> {
    let Prepared { variables, command } = match environment::disabled() {
        true => Prepared { variables: Vec::new(), command: args.command.clone() },
        false => prepare(&args)?,
    };
    if args.dry_run {
        let mut out = std::io::stdout().lock();
        for (name, value) in &variables {
            out.write_all(&[name.as_bytes(), b"=", value.as_bytes(), b"\n"].concat())?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let mut program = Command::new(&command[0]);
    program.args(&command[1..]).envs(variables);
    program.env(STARTED_VARIABLE, environment::processor_ns().to_string());
    let error = inherited::hand_on(&mut program).exec();
    // The numbers that shells use.
    let (status, fix) = match error.kind() {
        ErrorKind::NotFound => (127, "check its path"),
        _ => (126, "check that it is a program for this machine that you may execute"),
    };
    let name = args.command[0].to_string_lossy();
    let said = format!("ampl: cannot start the application: {error} ({name}): {fix}");
    if once::is_first(&said) {
        tell!("{said}");
        launcher::end_job(status);
    } else {
        launcher::wait_for_report();
    }
    Ok(ExitCode::from(status))
}

/// The application's variables and command line.
struct Prepared {
    /// The variables that the application gets.
    variables: Vec<(&'static str, OsString)>,
    /// Its command line.
    command: Vec<OsString>,
}

/// Variables and command line for the application.
///
/// A launcher starts many of these, and other ranks wait in `MPI_Init` for one that ends. So a rank ends here only for
/// errors of the job file and of `--set`, which all have. What one rank alone can find is decided in `MPI_Init`, where
/// all go on without ampl; without a launcher it is an error here.
fn prepare(args: &Args) -> anyhow::Result<Prepared> {
    let (speaks, launched) = (environment::speaks(), environment::is_launched());
    let site = if args.checked { Site::Trusted } else { Site::Checked };
    let mut job = Job::load(&args.job, speaks && !args.checked, site)?;
    let own = &args.command[prefix::behind(&args.command)..];
    let program = environment::which(Path::new(&own[0]));
    let dir = args.job.output.clone().or_else(environment::dir);
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
            return Ok(Prepared { variables: Vec::new(), command: args.command.clone() });
        }
        Err(error) => return Err(error),
    };
    let mut variables = Vec::new();
    if let Some(program) = &program {
        if speaks {
            warn(program);
            script::overrides(program, own).iter().for_each(|said| tell!("{said}"));
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
        said.iter().for_each(|said| tell!("{said}"));
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
    let command = prefix::with_preload(&args.command, &library, &variables);
    Ok(Prepared { variables, command })
}

/// Reports what keeps this rank from being recorded, and so all others; once on a node.
fn goes_on(error: &anyhow::Error) {
    let said = format!("{error}; the job goes on without ampl");
    if once::is_first(&said) {
        tell!("{said}");
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
        tell!("ampl: {what} ({}): {fix}", program.display());
    }
}
