//! `ampl skeleton`: a program in C that communicates as a run did.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use ampl_export::skeleton::{Refusal, of_run};
use ampl_reader::{Run, Symbols};
use ampl_report::human::plural;

use crate::failure::{DAMAGED, Failure, NOT_FOUND, OTHER};
use crate::rundir::{RunArg, message};

/// Write a C program that communicates as the run did, without what it computes.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
One program stands for all ranks: loops, and partners as functions of the rank. Comments name call sites. A run whose
calls are not all recorded, or that calls what cannot be repeated, is refused.

Example:
  ampl skeleton ampl-lmp-4242-20260101T120000 -o skeleton.c
  mpicc -o skeleton skeleton.c && mpirun -n 8 ./skeleton")]
pub struct Args {
    #[command(flatten)]
    run: RunArg,
    /// File of the program
    #[arg(short, long, value_name = "FILE.c")]
    output: PathBuf,
    /// Keep the processor busy before each call, for the mean time that ranks were outside of MPI there
    #[arg(long)]
    compute: bool,
}

/// Writes the program.
///
/// # Errors
/// A [`Failure`] of status 3 for damaged runs and those that are too large, of status 4 where a skeleton would not be
/// right, of status 1 where the file cannot be written.
pub fn write(args: &Args) -> anyhow::Result<ExitCode> {
    let run = if args.compute { Run::from(args.run.read()?) } else { args.run.open()? };
    let path = &args.run.run;
    if let Some(damage) = run.damage().first() {
        notice!("{}", message(damage, path));
        let what = "the run is damaged";
        return Err(Failure::message(DAMAGED, what, path.display(), "a skeleton needs all of its calls"));
    }
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    let text = of_run(&run, &name, args.compute, &mut Symbols::default()).map_err(|refusal| {
        let (status, fix) = match refusal {
            Refusal::TooLarge(_) => (DAMAGED, "take a smaller run"),
            _ => (NOT_FOUND, "a skeleton needs every call, see docs/guide/skeleton.md"),
        };
        Failure::message(status, refusal, path.display(), fix)
    })?;
    let file = args.output.display();
    fs::write(&args.output, &text).map_err(|error| {
        Failure::message(OTHER, format!("cannot write: {error}"), &file, "name another file")
    })?;
    notice!(
        "ampl: {} for {} in {file}",
        plural(text.lines().count() as u64, "line"),
        plural(run.info().ranks.into(), "rank")
    );
    Ok(ExitCode::SUCCESS)
}
