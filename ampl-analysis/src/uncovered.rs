//! Functions that a library before ampl defines, so that ampl does not see their calls.

use ampl_core::mpi::{FUNCTIONS, Function};
use ampl_trace::Trace;

/// Names of functions of which ampl intercepted no call, because the program or a library before ampl defines them. A
/// tool may go on to the next definition, and then ampl intercepts its calls. Init shows by the run itself, and
/// finalize without a call.
pub fn functions(trace: &Trace) -> Vec<String> {
    let seen = trace.function_calls();
    let ended = trace.complete || trace.ranks.iter().all(|rank| rank.process.finalized);
    let is_seen = |name: &&String| {
        let Some(function) = function(name) else { return false };
        let counted = seen.iter().any(|&(of, calls)| of == function.0 && calls > 0);
        let name = function.spec().name;
        counted || ["MPI_Init", "MPI_Init_thread"].contains(&name) || (ended && name == "MPI_Finalize")
    };
    trace.run.hidden.iter().filter(|name| !is_seen(name)).cloned().collect()
}

/// NCCL or RCCL where rank 0 had it mapped and no call of it was recorded: nobody asked for them, or the program found its
/// functions by `dlsym`. File names of the libraries, and true where the job asked for the calls.
pub fn device_calls(trace: &Trace) -> Option<(Vec<String>, bool)> {
    let metadata = &trace.run.metadata;
    let names = metadata.libraries.iter().flatten().filter_map(|library| library.path.rsplit('/').next());
    let is_one = |name: &&str| ["libnccl.", "librccl."].iter().any(|beginning| name.starts_with(beginning));
    let libraries: Vec<String> = names.filter(is_one).map(str::to_owned).collect();
    let calls = metadata.device_calls.as_ref();
    let uncovered = !libraries.is_empty() && calls.is_none_or(Vec::is_empty);
    uncovered.then_some((libraries, calls.is_some()))
}

/// True where the time that `names` take is not known: some of these functions may exchange messages or wait.
pub fn take_time(names: &[String]) -> bool {
    names.iter().any(|name| function(name).is_none_or(|function| !function.spec().class.only_asks()))
}

/// The function of a symbol, in C or in Fortran: `MPI_Send`, `mpi_send_`, `mpi_send_f08_`.
fn function(symbol: &str) -> Option<Function> {
    let base = symbol.trim_end_matches('_').trim_end_matches("_f08ts").trim_end_matches("_f08");
    let found = FUNCTIONS.iter().position(|spec| spec.name.eq_ignore_ascii_case(base))?;
    Some(Function(found as u16))
}

#[cfg(test)]
mod tests {
    use ampl_core::mpi::ids;
    use ampl_trace::RankTrace;

    use super::*;

    #[test]
    fn functions_are_found_by_their_symbols() {
        for symbol in ["MPI_Finalize", "mpi_finalize_", "mpi_finalize_f08_", "MPI_FINALIZE"] {
            assert_eq!(function(symbol).unwrap().spec().name, "MPI_Finalize", "{symbol}");
        }
        assert!(function("mpix_own_").is_none());
    }

    #[test]
    fn functions_with_calls_are_seen() {
        let mut rank = RankTrace::default();
        rank.process.calls = vec![(ids::MPI_SEND.0, 3)];
        let mut trace = Trace { ranks: vec![rank], ..Trace::default() };
        trace.run.hidden = ["MPI_Send", "mpi_send_", "MPI_Recv", "MPI_Init"].map(String::from).to_vec();
        assert_eq!(functions(&trace), ["MPI_Recv"]);
        assert!(take_time(&functions(&trace)));
        assert!(!take_time(&["MPI_Wtime".to_owned()]) && !take_time(&[]));
    }
}
