//! `ampl topology --place`: an order of ranks that sends less between nodes, and its files.

use std::path::{Path, PathBuf};

use ampl_analysis::messages::Messages;
use ampl_analysis::placement::{LEAST_SAVING, Report, Unplaceable};
use ampl_analysis::topology::Found;
use ampl_export::rank_files;
use ampl_reader::Run;

use crate::failure::{Failure, NOT_FOUND, OTHER, USAGE};

/// Options of a placement.
#[derive(clap::Args, Debug)]
#[group(id = "placement")]
pub struct Args {
    /// Compute an order of ranks that sends fewer bytes and messages between nodes, and write it for Open MPI, Slurm and
    /// Cray MPICH
    #[arg(long, conflicts_with = "edges")]
    place: bool,
    /// Ranks on a node, instead of those of the recorded hosts
    #[arg(long, value_name = "N", requires = "place", value_parser = clap::value_parser!(u32).range(1..))]
    ranks_per_node: Option<u32>,
    /// Directory of the files; the current one if it is left out
    #[arg(short, long, value_name = "DIR", requires = "place")]
    output: Option<PathBuf>,
}

impl Args {
    /// The placement that was asked for, with its files written; `None` where none was.
    ///
    /// # Errors
    /// A [`Failure`] where hosts are not known, or a file cannot be written.
    pub fn placement(
        &self,
        run: &Run,
        messages: &Messages,
        found: &[Found],
    ) -> anyhow::Result<Option<Report>> {
        if !self.place {
            return Ok(None);
        }
        let placed = Report::of(run, messages, found, self.ranks_per_node);
        let (mut report, nodes) = placed.map_err(|reason| match reason {
            Unplaceable::UnknownHosts => {
                let fix = "give --ranks-per-node";
                Failure::message(NOT_FOUND, "hosts of some ranks are not known", "--place", fix)
            }
            Unplaceable::TooManyNodes => {
                let fix = "give a larger number";
                Failure::message(USAGE, "too many nodes", "--ranks-per-node", fix)
            }
        })?;
        if report.saving >= LEAST_SAVING {
            let directory = self.output.as_deref().unwrap_or(Path::new("."));
            let written = rank_files::write(directory, &nodes.nodes, &nodes.names);
            let files = written.map_err(|(path, error)| {
                let fix = "name another directory by -o";
                Failure::message(OTHER, format!("cannot write: {error}"), path.display(), fix)
            })?;
            report.files = files.iter().map(|file| file.display().to_string()).collect();
        }
        Ok(Some(report))
    }
}
