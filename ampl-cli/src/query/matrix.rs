//! `ampl query RUN matrix`.

use std::process::ExitCode;

use ampl_analysis::query::matrix::matrix;
use ampl_report::human::plural;
use ampl_report::layout::width;
use ampl_report::query::matrix as text;
use clap::ValueEnum;

use super::part::Part;
use crate::output;
use crate::progress::Progress;
use crate::rundir::RunArg;
use ampl_launch::environment;

/// Options of `matrix`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Key of the sums
    #[arg(long, value_enum, default_value_t = By::Rank)]
    by: By,
}

/// Key of the sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum By {
    /// Pairs of ranks.
    Rank,
    /// Pairs of hosts.
    Host,
    /// Communicators.
    Communicator,
    /// Sizes, a row for each power of two.
    Size,
}

/// Prints the messages of a part.
///
/// # Errors
/// As [`summary_of`](super::summary::summary_of).
pub fn matrix_of(named: &RunArg, part: &Part, args: &Args) -> anyhow::Result<ExitCode> {
    let mut run = named.open()?;
    let selection = part.selection(&run, named)?;
    part.index(&mut run, named, &selection, false);
    let mut progress = Progress::of(run.ranks().len() as u64, "ranks");
    let found = matrix(&run, &selection, || progress.one_more());
    drop(progress);
    part.notice(&found.extent, &run, named)?;
    let place = named.run.display();
    if found.unplaced.messages > 0 {
        let messages = plural(found.unplaced.messages, "message");
        notice!("ampl: {messages} left out ({place}): the members of their communicators are not known");
    }
    if found.unsized_messages > 0 {
        let messages = plural(found.unsized_messages, "message");
        notice!("ampl: {messages} count as 0 bytes ({place}): the sizes of their datatypes are not known");
    }
    let host = |rank: u32| run.process(rank).map_or_else(|| "?".into(), |process| process.host.clone());
    if part.json {
        match args.by {
            By::Rank => output::json(&found.rows)?,
            By::Host => output::json(&found.by_host(host))?,
            By::Communicator => output::json(&found.communicators)?,
            By::Size => output::json(&found.sizes)?,
        }
        return Ok(part.status(&run));
    }
    let text = match args.by {
        By::Rank => text::text(&found, run.info().ranks, width(environment::columns())),
        By::Host => text::hosts(&found.by_host(host)),
        By::Communicator => text::communicators(&found.communicators),
        By::Size => text::sizes(&found.sizes),
    };
    output::text(&text)?;
    Ok(part.status(&run))
}
