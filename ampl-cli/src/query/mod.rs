//! `ampl query`: questions to the calls of a run.
//!
//! A question is a module with a function that takes the [`RunArg`], the [`Part`] and options of its own.

pub mod part;
pub mod sites;

use std::process::ExitCode;

use self::part::Part;
use crate::rundir::RunArg;

/// Ask a run: its call sites.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  ampl query ampl-lmp-4242-20260101T120000 sites --json")]
pub struct Args {
    #[command(flatten)]
    run: RunArg,
    #[command(flatten)]
    part: Part,
    #[command(subcommand)]
    question: Question,
}

#[derive(clap::Subcommand, Debug)]
enum Question {
    /// Every call site: calls, times, who is late, sizes of messages, communicators and peers
    Sites,
}

/// Answers the question.
///
/// # Errors
/// Errors of opening the run, a [`Failure`](crate::failure::Failure) of status 2 for options that make no sense, of
/// status 4 where nothing of the part was recorded.
pub fn query(args: &Args) -> anyhow::Result<ExitCode> {
    let Args { run, part, question } = args;
    match question {
        Question::Sites => sites::of_query(run, part),
    }
}
