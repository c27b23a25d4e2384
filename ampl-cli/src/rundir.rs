//! A run as an argument of commands, and the messages about missing or damaged parts.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ampl_core::plan::Plan;
use ampl_launch::recover;
use ampl_reader::directory;
use ampl_reader::{OpenError, Run};
use ampl_trace::{Damage, Trace};

use crate::failure::{DAMAGED, Failure, NOT_FOUND};

/// The run, as every reading command takes it.
#[derive(clap::Args, Debug)]
pub struct RunArg {
    /// A run directory, its trace.ampl, or a directory of journals
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
}

impl RunArg {
    /// The whole trace; missing and damaged parts are reported on stderr.
    ///
    /// # Errors
    /// The [`failure`] of opening it.
    pub fn read(&self) -> anyhow::Result<Trace> {
        self.checked(directory::read(&self.run).map_err(failure)?)
    }

    /// The same of a run that may still be in the memory of other hosts, to which `via` is the way.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_everywhere(&self, via: Option<&str>) -> anyhow::Result<Trace> {
        self.checked(recover::read(&self.run, via)?)
    }

    fn checked(&self, trace: Trace) -> anyhow::Result<Trace> {
        trace.damage.iter().for_each(|damage| notice!("{}", message(damage, &self.run)));
        Ok(trace)
    }

    /// The run, with only the list of sections and the structure read.
    ///
    /// # Errors
    /// The [`failure`] of opening it.
    pub fn open(&self) -> anyhow::Result<Run> {
        Run::open(&self.run).map_err(failure)
    }
}

/// The message and the status of a run that cannot be opened.
pub fn failure(error: OpenError) -> anyhow::Error {
    ampl_launch::failure::Failure::from(error).into()
}

/// The job's plan, from the configuration in the trace; `None` where that cannot be read.
pub fn plan(trace: &Trace) -> Option<Plan> {
    directory::plan(&trace.run)
}

/// Exit status of a command that has printed what could be read of `trace`: damaged input if some could not.
pub fn status(trace: &Trace) -> ExitCode {
    if trace.damage.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(DAMAGED) }
}

/// The plan of a run that has windows, and all ranks' summaries of them; `run` names it.
///
/// # Errors
/// A [`Failure`] that names the missing part.
pub fn summarised(trace: &Trace, run: &Path) -> anyhow::Result<Plan> {
    let place = run.display();
    let Some(plan) = plan(trace) else {
        let fix = "keep run.toml beside the journals of a run that was not merged";
        return Err(Failure::message(DAMAGED, "the run's configuration cannot be read", place, fix));
    };
    if !plan.stores_summary(false) {
        let fix = "use summaries = \"census\" and output.rank_summaries = \"all\" for the next run";
        return Err(Failure::message(NOT_FOUND, "not all ranks' windows were stored", place, fix));
    }
    if trace.windows() == 0 {
        let (status, fix) = match trace.damage.is_empty() {
            true => (NOT_FOUND, "name a run that went on for longer"),
            false => (DAMAGED, "see above what is damaged"),
        };
        return Err(Failure::message(status, "no window was closed", place, fix));
    }
    Ok(plan)
}

/// `damage` as a message about `run`.
pub fn message(damage: &Damage, run: &Path) -> String {
    let place = match damage.rank {
        Some(rank) => format!("{}, rank {rank}", run.display()),
        None => run.display().to_string(),
    };
    format!("ampl: {} ({place}): what could be read is used", damage.what)
}
