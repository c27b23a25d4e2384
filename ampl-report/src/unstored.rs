//! Messages about calls that a rank counted, and that are not stored one by one.

use ampl_analysis::unstored::{Reason, in_sequence};
use ampl_reader::model::Process;

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
        Reason::Overhead => "recording them would have cost more than agent.max_structure_overhead",
        Reason::NotRecorded => "nothing of what it called was recorded",
    }
}
