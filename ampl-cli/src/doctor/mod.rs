//! `ampl doctor`: what would happen on this machine, with this program.

mod config;

use std::ffi::OsString;
use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use ampl_launch::leftovers::{self, Leftover};
use ampl_launch::machine::{self, Clock, Counters, FileSystem, Launcher};
use ampl_launch::mpi::{self, FortranLibrary, Linked, MpiLibrary};
use ampl_launch::program::{self, App};
use ampl_launch::{counting, environment, library};
use serde::Serialize;

use crate::failure::{Failure, NOT_FOUND};
use crate::output;

/// Say what would happen here: MPI, symbols, clock, file system, launchers.
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  ampl doctor ./app\n  ampl doctor --config -c job.toml")]
pub struct Args {
    /// The program that would be run
    #[arg(value_name = "APP")]
    app: Option<PathBuf>,
    /// One JSON document instead of lines
    #[arg(long)]
    json: bool,
    /// Only free the memory of this node that journals take whose processes are gone
    #[arg(long, conflicts_with_all = ["app", "json"])]
    clean: bool,
    /// Only print every setting of a job started here, and the layer that it comes from
    #[arg(long, conflicts_with_all = ["app", "clean"])]
    config: bool,
    /// Job file or recipe, for --config
    #[arg(short = 'c', value_name = "JOB.toml", requires = "config")]
    job_file: Option<OsString>,
    /// Set one key, for --config
    #[arg(long = "set", value_name = "KEY=VALUE", requires = "config")]
    set: Vec<String>,
    /// Hooks, for --config
    #[arg(long, value_name = "NAME", value_delimiter = ',', requires = "config")]
    hooks: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Report {
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

/// Prints the report to stdout; 0 also when it names problems.
///
/// # Errors
/// The program named does not exist (4), or the configuration is wrong (2).
pub fn doctor(args: &Args) -> anyhow::Result<ExitCode> {
    if args.clean {
        leftovers::clean().iter().for_each(|line| tell!("{line}"));
        return Ok(ExitCode::SUCCESS);
    }
    if args.config {
        config::print(args)?;
        return Ok(ExitCode::SUCCESS);
    }
    let report = examine(args)?;
    if args.json {
        output::json(&report)?;
    } else {
        let text = lines(&report)?;
        output::print(|out| std::io::Write::write_all(out, text.as_bytes()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn examine(args: &Args) -> anyhow::Result<Report> {
    let mut problems = Vec::new();
    let library = library::find().map_err(|error| problems.push(error.to_string())).ok();
    let (mut app, mut linked) = (None, Linked::default());
    match &args.app {
        None => linked.mpi = mpi::installed(),
        Some(path) => {
            let Some(file) = environment::which(path) else {
                let what = if path.exists() { "this is no program" } else { "there is no such program" };
                return Err(Failure::message(NOT_FOUND, what, path.display(), "name a program, or nothing"));
            };
            let (found, uses) = program::examine(&file, library.as_deref(), &mut problems)?;
            (app, linked) = (Some(found), uses);
        }
    }
    let launchers = machine::launchers();
    if launchers.is_empty() {
        problems.push("ampl: no launcher found (PATH): install an MPI, or extend PATH".into());
    }
    let leftovers = leftovers::found();
    problems.extend(leftovers::message(&leftovers, 0));
    Ok(Report {
        version: env!("CARGO_PKG_VERSION"),
        is_static: cfg!(target_feature = "crt-static"),
        library,
        app,
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

fn lines(report: &Report) -> Result<String, std::fmt::Error> {
    let mut out = String::new();
    let o = &mut out;
    writeln!(o, "ampl          {}", report.version)?;
    if !report.is_static {
        writeln!(
            o,
            "              dynamically linked: a library in LD_PRELOAD that needs an MPI keeps 'ampl exec' from"
        )?;
        writeln!(o, "              starting; the command that 'cargo xtask dist' builds takes it")?;
    }
    let library = report.library.as_ref().map_or("not found".into(), |path| path.display().to_string());
    writeln!(o, "libampl.so    {library}")?;
    if let Some(app) = &report.app {
        writeln!(o, "program       {} ({})", app.path.display(), app.kind)?;
    }
    if report.mpi.is_empty() {
        writeln!(o, "MPI           none found")?;
    }
    for mpi in &report.mpi {
        titled(o, "MPI", &mpi.lines())?;
    }
    for library in &report.fortran {
        writeln!(o, "Fortran       {} ({} symbols wrapped)", library.path.display(), library.wrapped)?;
    }
    titled(o, "clock", &[report.clock.line()])?;
    titled(o, "journals", &[report.journal.line()])?;
    titled(o, "counters", &report.counters.lines())?;
    for launcher in &report.launchers {
        let known = if launcher.flavour.is_some() { "" } else { "; use the 'ampl exec' form" };
        writeln!(o, "launcher      {} ({}{known})", launcher.path.display(), launcher.version)?;
    }
    for problem in &report.problems {
        writeln!(o, "{problem}")?;
    }
    Ok(out)
}

/// Lines with a title before the first.
fn titled(out: &mut String, title: &str, lines: &[String]) -> std::fmt::Result {
    for (index, line) in lines.iter().enumerate() {
        writeln!(out, "{:<14}{line}", if index == 0 { title } else { "" })?;
    }
    Ok(())
}
