//! Remedies for runs that cannot be opened.

use ampl_reader::OpenError;
use ampl_reader::directory::TRACE;

/// Advice to the user whose run cannot be opened.
pub fn remedy(error: &OpenError) -> String {
    match error {
        OpenError::Absent { .. } => format!("name a run directory or its {TRACE}"),
        OpenError::Empty { .. } => {
            format!("name a directory that ampl made, its {TRACE}, or a directory of journals")
        }
        OpenError::JournalsOff { .. } => {
            "only a job that reaches MPI_Finalize leaves a trace then: set output.journal = \"node\"".into()
        }
        OpenError::JournalsGone { .. } => {
            "journals of a node's own memory can only be read on that node, until it is cleaned".into()
        }
        OpenError::Denied { .. } => {
            "read it as the user who ran the job, who alone may read its journals, or ask that user for access".into()
        }
        OpenError::BadJournals { .. } => "journals are read by the version of ampl that wrote them".into(),
        _ => "check that it was written by this version of ampl and copied whole".into(),
    }
}
