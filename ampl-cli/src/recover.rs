//! `ampl recover`: the trace of a job that did not finalize.

use std::path::PathBuf;
use std::process::ExitCode;

use ampl_launch::recover as journals;

/// Rebuild the trace of a job that died, from its ranks' journals, and free the memory that these take.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
'ampl run' does this by itself when its launcher returns. Journals in the memory of other hosts come home by --node, which
is started on each of them: by srun in the run's Slurm job, else by ssh or --via. Hosts that do not answer are named.

Examples:
  ampl recover ampl-lmp-4242-20260101T120000
  ampl recover ampl-lmp-4242-20260101T120000 --via 'ssh -p 2222 {host}'")]
pub struct Args {
    /// The run directory, or a directory of journals
    run: PathBuf,
    /// Further directories of journals, copied from other nodes
    #[arg(value_name = "JOURNALS")]
    others: Vec<PathBuf>,
    /// The trace file to write, instead of the run's trace.ampl; the journals stay
    #[arg(short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Leave the journals where they are
    #[arg(long)]
    keep_journals: bool,
    /// Only bring the journals in this node's memory into the run directory
    #[arg(long, conflicts_with_all = ["others", "output"])]
    node: bool,
    /// Command before one that is to start on another host; {host} in it is the host's name
    #[arg(long, value_name = "COMMAND")]
    via: Option<String>,
}

/// Writes the trace file, reports what it lacks, and removes the journals.
///
/// # Errors
/// A failure of status 4 when there is no journal, of status 3 when none can be read, of status 1 where the job still
/// runs or the file cannot be written.
pub fn recover(args: &Args) -> anyhow::Result<ExitCode> {
    let Args { run, others, output, keep_journals, node, via } = args;
    match node {
        true => journals::node(run, *keep_journals)?,
        false => journals::recover(run, others, output.as_deref(), *keep_journals, via.as_deref())?,
    }
    Ok(ExitCode::SUCCESS)
}
