//! Runs whose actions cannot be written, for people.

use ampl_analysis::actions::Refusal;
use ampl_core::units::RankSet;

use crate::human::plural;

/// Fault of a run whose actions would not be its own, and its remedy.
pub fn refused(refusal: &Refusal) -> (String, &'static str) {
    match refusal {
        Refusal::NotWhole(lost) => {
            let ranks = RankSet::from_iter(lost.iter().map(|&(rank, ..)| rank));
            (
                format!("calls of ranks {ranks} are not all recorded"),
                "record them with trace.structure = \"all\"",
            )
        }
        Refusal::Unmatched(number) => {
            (format!("{} cannot be matched", plural(*number, "call")), "see 'ampl check'")
        }
        Refusal::Threads => ("several threads of a rank call MPI".into(), "their order is not recorded"),
        Refusal::Function(name) => {
            (format!("{name} is called, which these actions lack"), "replay the run with ampl-replay")
        }
        Refusal::Bytes(name) => (
            format!("the bytes of {name} are not known"),
            "record the making of its datatype, and its counts with trace.values = \"exact\"",
        ),
    }
}
