//! The part of a run that a question is about, and the form of the answer.

use std::process::ExitCode;

use ampl_analysis::query::Extent;
use ampl_reader::Run;
use ampl_reader::selection::Selection;
use ampl_report::query::extent::lacks;
use ampl_report::selection::lacking;

use super::index::{Index, prepare};
use crate::failure::{DAMAGED, Failure, NOT_FOUND, USAGE};
use crate::rundir::{self, RunArg};
use crate::selection;

/// Options that questions share.
#[derive(clap::Args, Debug)]
pub struct Part {
    /// Only from that time since the start, as in 1.5s or 250ms
    #[arg(long, value_name = "T", global = true)]
    from: Option<String>,
    /// Only until that time
    #[arg(long, value_name = "T", global = true, alias = "to")]
    until: Option<String>,
    /// Only these ranks, as in 0-127,200
    #[arg(long, value_name = "SET", global = true)]
    ranks: Option<String>,
    /// Print JSON
    #[arg(long, global = true)]
    pub json: bool,
    /// Index of times beside the trace, which makes questions to times fast
    #[arg(long, value_enum, default_value_t, global = true)]
    index: Index,
}

impl Part {
    /// Ranks and time that are asked for, some of which `run` has.
    ///
    /// # Errors
    /// A [`Failure`] of status 2 for what cannot be read, and of status 4 where the run has nothing of the ranks.
    pub fn selection(&self, run: &Run, named: &RunArg) -> anyhow::Result<Selection> {
        let selection = selection::parse(self.from.as_deref(), self.until.as_deref(), self.ranks.as_deref())?;
        let ranks = run.info().ranks;
        if let Some(absent) = selection.lacks(ranks, run.ranks()) {
            let (what, fix) = lacking(&absent, ranks);
            let status = if run.damage().is_empty() { NOT_FOUND } else { DAMAGED };
            let place =
                format!("{}, --ranks {}", named.run.display(), self.ranks.as_deref().unwrap_or_default());
            return Err(Failure::message(status, what, place, fix));
        }
        Ok(selection)
    }

    /// Takes the index of the times of `run`, where there is one and it is wanted.
    pub fn take_index(&self, run: &mut Run, named: &RunArg) {
        if self.index == Index::Auto {
            run.take_index(&named.run);
        }
    }

    /// The same. Makes one where `selection` needs times: all do with `always`, else those of a part of the time.
    pub fn index(&self, run: &mut Run, named: &RunArg, selection: &Selection, always: bool) {
        match always || selection.cuts_time() || self.index == Index::Build {
            true => prepare(run, named, self.index),
            false => self.take_index(run, named),
        }
    }

    /// Reports on stderr what is not known of a part, and what is damaged.
    ///
    /// # Errors
    /// A [`Failure`] of status 4 where the part has a time at which no window was.
    pub fn notice(&self, extent: &Extent, run: &Run, named: &RunArg) -> anyhow::Result<()> {
        run.damage().iter().for_each(|damage| notice!("{}", rundir::message(damage, &named.run)));
        let timed = self.from.is_some() || self.until.is_some();
        if timed && extent.windows == 0 && extent.ranks > 0 {
            return Err(self.no_window(named));
        }
        for (what, fix) in lacks(extent) {
            notice!("ampl: {what} ({}): {fix}", named.run.display());
        }
        Ok(())
    }

    /// The failure of a time at which these ranks had no window.
    pub fn no_window(&self, named: &RunArg) -> anyhow::Error {
        let (what, fix) = match self.from.is_some() || self.until.is_some() {
            true => (
                "no window of these ranks lies in that time",
                "ask for another --from or --until; 'ampl efficiency' lists the windows",
            ),
            false => ("no window of these ranks was recorded", "name a run that went on for longer"),
        };
        Failure::message(NOT_FOUND, what, named.run.display(), fix)
    }

    /// Exit status of a question to `run` that was answered.
    pub fn status(&self, run: &Run) -> ExitCode {
        if run.damage().is_empty() { ExitCode::SUCCESS } else { ExitCode::from(DAMAGED) }
    }

    /// Refuses a part where only the whole run has an answer; `instead` is what to do.
    ///
    /// # Errors
    /// A [`Failure`] of status 2 where a time or ranks are given.
    pub fn refuse(&self, what: &str, instead: &str) -> anyhow::Result<()> {
        let given = [(&self.from, "--from"), (&self.until, "--until"), (&self.ranks, "--ranks")];
        match given.into_iter().find(|(value, _)| value.is_some()) {
            Some((_, option)) => Err(Failure::message(USAGE, what, option, instead)),
            None => Ok(()),
        }
    }
}
