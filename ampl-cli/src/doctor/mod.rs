//! `ampl doctor`: what would happen on this machine, with this program.

mod machine;
mod mpi;

use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use serde::Serialize;

use crate::elf::Executable;
use crate::environment;
use crate::failure::{Failure, NOT_FOUND};
use crate::library;
use machine::{Clock, FileSystem, Launcher};
use mpi::MpiLibrary;

/// Say what would happen here: MPI, symbols, clock, file system, launchers.
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  ampl doctor ./app")]
pub struct Args {
    /// The program that would be run
    #[arg(value_name = "APP")]
    app: Option<PathBuf>,
    /// One JSON document instead of lines
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Report {
    version: &'static str,
    /// `libampl.so`, null when it is not there.
    library: Option<PathBuf>,
    app: Option<App>,
    mpi: Vec<MpiLibrary>,
    clock: Clock,
    /// Where `journal = "node"` writes.
    journal: FileSystem,
    /// `kernel.perf_event_paranoid`; null where the kernel has no counters.
    perf_event_paranoid: Option<i64>,
    launchers: Vec<Launcher>,
    /// What stands in ampl's way, as printed messages.
    problems: Vec<String>,
}

#[derive(Debug, Serialize)]
struct App {
    path: PathBuf,
    kind: &'static str,
    defines_mpi: bool,
}

/// Prints the report to stdout; 0 also when it names problems.
///
/// # Errors
/// The program named does not exist (4).
pub fn doctor(args: &Args) -> anyhow::Result<ExitCode> {
    let report = examine(args)?;
    if args.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print!("{}", lines(&report)?);
    }
    Ok(ExitCode::SUCCESS)
}

fn examine(args: &Args) -> anyhow::Result<Report> {
    let mut problems = Vec::new();
    let library = library::find().map_err(|error| problems.push(error.to_string())).ok();
    let mut app = None;
    let mut mpi = Vec::new();
    match &args.app {
        None => mpi = mpi::installed(),
        Some(path) => {
            let Some(file) = environment::which(path) else {
                let fix = "name a program, or nothing";
                return Err(Failure::message(NOT_FOUND, "there is no such program", path.display(), fix));
            };
            let executable =
                Executable::read(&file).unwrap_or(Executable { opaque: true, ..Executable::default() });
            for (what, fix) in executable.obstacles() {
                problems.push(format!("ampl: {what} ({}): {fix}", file.display()));
            }
            let kind = match (executable.opaque, executable.is_static) {
                (true, _) => "script or unknown",
                (_, true) => "static",
                _ => "dynamic",
            };
            if kind == "dynamic" {
                mpi = mpi::of_program(&file);
                if mpi.is_empty() && !executable.defines_mpi {
                    let fix = "nothing, if it loads MPI at run time or has none; else check LD_LIBRARY_PATH";
                    problems.push(format!("ampl: no MPI among its libraries ({}): {fix}", file.display()));
                }
            }
            let path = std::path::absolute(file)?;
            app = Some(App { path, kind, defines_mpi: executable.defines_mpi });
        }
    }
    let launchers = machine::launchers();
    if launchers.is_empty() {
        problems.push("ampl: no launcher found (PATH): install an MPI, or extend PATH".into());
    }
    Ok(Report {
        version: env!("CARGO_PKG_VERSION"),
        library,
        app,
        mpi,
        clock: machine::clock(),
        journal: machine::journal(),
        perf_event_paranoid: machine::perf_event_paranoid(),
        launchers,
        problems,
    })
}

fn lines(report: &Report) -> Result<String, std::fmt::Error> {
    let mut out = String::new();
    let o = &mut out;
    writeln!(o, "ampl          {}", report.version)?;
    let library = report.library.as_ref().map_or("not found".into(), |path| path.display().to_string());
    writeln!(o, "libampl.so    {library}")?;
    if let Some(app) = &report.app {
        writeln!(o, "program       {} ({})", app.path.display(), app.kind)?;
    }
    if report.mpi.is_empty() {
        writeln!(o, "MPI           none found")?;
    }
    for mpi in &report.mpi {
        writeln!(o, "MPI           {} ({})", mpi.path.display(), mpi.implementation)?;
        writeln!(o, "              {} of {} MPI functions are there", mpi.functions, mpi.known)?;
        if !mpi.missing.is_empty() {
            let shown = mpi.missing.iter().take(4).cloned().collect::<Vec<_>>().join(", ");
            let more = mpi.missing.len().saturating_sub(4);
            let more = if more > 0 { format!(" and {more} more (--json names all)") } else { String::new() };
            writeln!(
                o,
                "              absent, so a program that probes for them would be misled: {shown}{more}"
            )?;
        }
    }
    let invariant = if report.clock.invariant { "invariant" } else { "not invariant: clock_gettime is used" };
    writeln!(o, "clock         {} ({invariant})", report.clock.source)?;
    let journal = &report.journal;
    match (journal.size_bytes, journal.free_bytes) {
        (Some(size), Some(free)) => {
            writeln!(
                o,
                "journals      {} ({} MiB, {} MiB free)",
                journal.path.display(),
                size >> 20,
                free >> 20
            )?;
        }
        _ => writeln!(o, "journals      {} is not there: the run directory is used", journal.path.display())?,
    }
    match report.perf_event_paranoid {
        Some(level) => writeln!(o, "counters      perf_event_paranoid is {level}; not used in this version")?,
        None => writeln!(o, "counters      the kernel offers none; not used in this version")?,
    }
    for launcher in &report.launchers {
        let known = if launcher.flavour.is_some() { "" } else { "; use the 'ampl exec' form" };
        writeln!(o, "launcher      {} ({}{known})", launcher.path.display(), launcher.version)?;
    }
    for problem in &report.problems {
        writeln!(o, "{problem}")?;
    }
    Ok(out)
}
