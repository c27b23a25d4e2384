//! `ampl query`: questions to the calls of a run.
//!
//! A question is a module with a function that takes the [`RunArg`], the [`Part`] and options of its own.

pub mod callgraph;
pub mod index;
pub mod matrix;
pub mod part;
pub mod sites;
pub mod summary;
pub mod tables;
pub mod timeline;
mod waits;

use std::process::ExitCode;

use self::part::Part;
use crate::rundir::RunArg;

/// Ask a run: calls, times and bytes of any ranks and time, a timeline, messages between ranks, call trees, sites, waits.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
--from and --until cut calls: time counts as far as it lies between them, and a call counts where it ends.

Examples:
  ampl query ampl-lmp-4242-20260101T120000 summary --from 10s --until 20s --ranks 0-7
  ampl query ampl-lmp-4242-20260101T120000 timeline --ranks 0-7
  ampl query ampl-lmp-4242-20260101T120000 matrix --by host
  ampl query ampl-lmp-4242-20260101T120000 sites --json
  ampl query ampl-lmp-4242-20260101T120000 waits --ranks 0-15")]
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
    /// Calls, time and bytes by function and call site
    Summary,
    /// Shares of time by function, pixel by pixel, of each rank
    Timeline(timeline::Args),
    /// Calls, time and bytes of each rank
    Ranks,
    /// Durations of calls by function, call site and size of the message
    Durations,
    /// Sums of every metric, window by window
    Volume,
    /// Messages and bytes from every rank to every other
    Matrix(matrix::Args),
    /// Every call site: calls, times, who is late, sizes of messages, communicators and peers
    Sites,
    /// The complete call tree of every rank: loops, regions, calls in their order, with times
    Callgraph(callgraph::Args),
    /// Waits in MPI: who waits for whom, where, and for how long
    Waits,
}

/// Answers the question.
///
/// # Errors
/// Errors of opening the run, a [`Failure`](crate::failure::Failure) of status 2 for options that make no sense, of
/// status 4 where nothing of the part was recorded.
pub fn query(args: &Args) -> anyhow::Result<ExitCode> {
    let Args { run, part, question } = args;
    match question {
        Question::Summary => summary::summary_of(run, part),
        Question::Timeline(args) => timeline::timeline_of(run, part, args),
        Question::Ranks => tables::ranks_of(run, part),
        Question::Durations => tables::durations_of(run, part),
        Question::Volume => tables::volume_of(run, part),
        Question::Matrix(args) => matrix::matrix_of(run, part, args),
        Question::Sites => sites::of_query(run, part),
        Question::Callgraph(args) => callgraph::callgraph(run, part, args),
        Question::Waits => waits::of_query(run, part),
    }
}
