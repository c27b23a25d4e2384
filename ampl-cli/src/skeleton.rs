//! `ampl skeleton`: a program in C that communicates as a run did.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use ampl_analysis::logical::Program;
use ampl_analysis::messages::Messages;
use ampl_analysis::topology::{Options, patterns};
use ampl_export::skeleton::{DETAIL, skeleton};
use ampl_reader::Symbols;
use ampl_report::human::plural;

use crate::failure::{DAMAGED, Failure, NOT_FOUND, OTHER};
use crate::rundir::{RunArg, message};

/// Write a C program that communicates as the run did, without its computation.
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
}

/// Writes the program.
///
/// # Errors
/// A [`Failure`] of status 3 for damaged runs and those that are too large, of status 4 where a skeleton would not be
/// right, of status 1 where the file cannot be written.
pub fn write(args: &Args) -> anyhow::Result<ExitCode> {
    let run = args.run.open()?;
    let path = &args.run.run;
    if let Some(damage) = run.damage().first() {
        notice!("{}", message(damage, path));
        let what = "the run is damaged";
        return Err(Failure::message(DAMAGED, what, path.display(), "a skeleton needs all of its calls"));
    }
    let too_much = |error: &dyn std::fmt::Display| {
        Failure::message(DAMAGED, error, path.display(), "take a smaller run")
    };
    let ranks = run.info().ranks;
    let messages = Messages::of(run.structure(), run.communicators(), ranks);
    let found = patterns(&messages, &Options::default()).map_err(|error| too_much(&error))?;
    let program = Program::with(run.structure(), run.communicators(), ranks, &found, DETAIL)
        .map_err(|error| too_much(&error))?;
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    let text =
        skeleton(&program, &name, run.info().abi_family(), &mut Symbols::default()).map_err(|refusal| {
            let fix = "a skeleton needs every call, see docs/guide/skeleton.md";
            Failure::message(NOT_FOUND, refusal, path.display(), fix)
        })?;
    let file = args.output.display();
    fs::write(&args.output, &text).map_err(|error| {
        Failure::message(OTHER, format!("cannot write: {error}"), &file, "name another file")
    })?;
    notice!(
        "ampl: {} for {} in {file}",
        plural(text.lines().count() as u64, "line"),
        plural(ranks.into(), "rank")
    );
    Ok(ExitCode::SUCCESS)
}
