//! Messages about calls that a rank counted, and that are not stored one by one.

use ampl_analysis::unstored::{Reason, in_sequence};
use ampl_core::config::RankSummaries;
use ampl_core::plan::Plan;
use ampl_reader::model::{Limit, Process};

use crate::human::plural;

/// The message that none of the calls of a process is stored, with their number.
pub fn all(process: &Process) -> String {
    match in_sequence(process) {
        0 => "no calls are stored".into(),
        calls => format!("none of {} is stored", plural(calls, "call")),
    }
}

/// `reason` in words.
pub fn words(reason: Reason) -> &'static str {
    match reason {
        Reason::Off => "trace.structure is \"off\"",
        Reason::NoRoom => "there was no room for them",
        Reason::Limit(Limit::MaxMemory) => "agent.max_memory left no room for them",
        Reason::Limit(Limit::MaxBytes) => "output.max_bytes left no room for them",
        Reason::Overhead => "recording them would have cost more than agent.max_structure_overhead",
        Reason::NotRecorded => "nothing of what it called was recorded",
    }
}

/// Ranks' windows that a run did not store: the reason, and the remedy for the next run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptBack {
    /// It stored all.
    Nothing,
    /// It stored a sample's.
    Some(&'static str, &'static str),
    /// It stored none.
    All(&'static str, &'static str),
}

/// Windows that a run of that plan did not store.
pub fn windows_kept_back(plan: &Plan) -> KeptBack {
    match plan.config.output.rank_summaries {
        _ if plan.stores_summary(false) => KeptBack::Nothing,
        RankSummaries::All => KeptBack::Some(
            "only sampled windows were stored, as sampling.summaries says",
            "set it to \"census\" for the next run",
        ),
        RankSummaries::Sample => KeptBack::Some(
            "only sampled windows were stored, as output.rank_summaries says",
            "set it to \"all\" for the next run",
        ),
        RankSummaries::Off => KeptBack::All(
            "no rank's windows were stored, as output.rank_summaries says",
            "set it to \"all\" or \"sample\" for the next run",
        ),
    }
}
