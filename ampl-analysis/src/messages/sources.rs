//! Sources of received messages, as far as statuses have them.

use ampl_core::mpi::{Function, Kind, Param};
use ampl_core::value::{ANY_SOURCE, PROC_NULL};
use ampl_trace::args::{self, NO_STATUS, is_output};
use ampl_trace::request;
use ampl_trace::structure::Signature;

/// The words of a call's parameters that succeeded, inputs and then outputs.
pub type Parts<'a> = Vec<(&'static Param, &'a [u64])>;

/// First word of the parameter of that name.
pub fn one(parts: &Parts<'_>, name: &str) -> Option<u64> {
    all(parts, name)?.first().copied()
}

/// Words of the parameter of that name: of one that is read and overwritten, those that were read.
pub fn all<'a>(parts: &Parts<'a>, name: &str) -> Option<&'a [u64]> {
    parts.iter().find(|(param, _)| param.name == name).map(|&(_, words)| words)
}

/// Source in a status word; `None` where there is none.
pub fn of_status(word: u64) -> Option<i64> {
    let source = i64::from((word >> 32) as u32 as i32);
    (word != NO_STATUS && source != ANY_SOURCE && source != PROC_NULL).then_some(source)
}

/// Requests that a call has completed, each with the status it came with.
pub fn completed(function: Function, parts: &Parts<'_>) -> Vec<(u64, u64)> {
    let Some(requests) = all(parts, "request").or_else(|| all(parts, "array_of_requests")) else {
        return Vec::new();
    };
    let outputs = || parts.iter().filter(|(param, _)| param.kind == Kind::Status && is_output(param));
    let statuses: Vec<u64> = outputs().flat_map(|(_, words)| words.iter().copied()).collect();
    let indices = parts.iter().filter(|(param, _)| matches!(param.name, "index" | "array_of_indices"));
    let indices: Vec<u64> = indices.flat_map(|(_, words)| words.iter().copied()).collect();
    let picks = matches!(function.name(), "MPI_Waitany" | "MPI_Testany" | "MPI_Waitsome" | "MPI_Testsome");
    let pair = |(place, &status): (usize, &u64)| {
        let at = if picks { usize::try_from(*indices.get(place)?).ok()? } else { place };
        Some((*requests.get(at)?, status))
    };
    statuses.iter().enumerate().filter_map(pair).collect()
}

/// Thread and terminal of the call that made a request.
pub fn maker(request: u64) -> Option<(u32, u32)> {
    if request & request::UNSEEN != 0 || args::is_predefined(request) {
        return None;
    }
    let thread = (request >> request::THREAD_AT) as u32;
    Some((thread, request::terminal(request)? as u32))
}

/// Thread and terminal of the calls that made the requests which a call starts; `None` where its words do not fit, or a
/// request's maker was not seen.
pub fn started(signature: &Signature) -> Option<Vec<(u32, u32)>> {
    let parts = parts(signature)?;
    let requests = all(&parts, "request").or_else(|| all(&parts, "array_of_requests"))?;
    requests.iter().map(|&request| maker(request)).collect()
}

/// True where a call that sends names no rank to send to.
pub fn goes_nowhere(signature: &Signature) -> bool {
    let dest = parts(signature).and_then(|parts| one(&parts, "dest"));
    dest.is_none_or(|dest| i64::from(dest as i32) == PROC_NULL)
}

/// The words of a call that succeeded.
pub fn parts(signature: &Signature) -> Option<Parts<'_>> {
    args::parts(Function(signature.function).spec(), &signature.words)
}
