//! Reasons for which a run is not replayed, found before MPI is started.

use std::fmt;

use ampl_core::config::Keep;
use ampl_core::mpi::Function;
use ampl_reader::gaps::{MissingCalls, Recorded};
use ampl_reader::{Reason, Run};

use crate::windows;

/// Reason for which a run is not replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The launcher started another number of ranks than the run has.
    Ranks {
        /// Ranks of the run.
        recorded: u32,
        /// Ranks that were started.
        started: u32,
    },
    /// Parts of the trace are damaged or missing.
    Damaged(usize),
    /// The structure of windows that were not kept is not there.
    Kept,
    /// Ranks of which nothing is there.
    Absent(Vec<u32>),
    /// Ranks that did not come to `MPI_Finalize`.
    Unfinished(Vec<u32>),
    /// Calls that were counted and not recorded.
    Gaps {
        /// Number of calls.
        calls: u64,
        /// Reason, by its name in output.
        reason: &'static str,
        /// The ranks.
        ranks: Vec<u32>,
        /// The function with most of those that a replay lacks.
        function: Option<&'static str>,
    },
    /// Queries that functions of the program made while MPI called them: these functions are replaced, so that nothing is
    /// refused for that.
    Callbacks {
        /// Number of calls.
        calls: u64,
        /// The function with most of them.
        function: Option<&'static str>,
    },
    /// A rank with calls of several threads.
    Threads(u32),
    /// A function that no replay can call.
    Function(&'static str),
    /// A function that reaches into memory of another process by its address.
    Address(&'static str),
    /// A function that this MPI lacks.
    Lacking(&'static str),
    /// Functions of whose counts only means are there.
    Aggregated(Vec<&'static str>),
    /// Calls of MPI's extensions, which are not seen.
    Hidden(String),
}

/// Functions that bring in other programs: nothing of these is in the trace.
const OTHER_PROGRAMS: [&str; 9] = [
    "MPI_Close_port",
    "MPI_Comm_accept",
    "MPI_Comm_connect",
    "MPI_Comm_join",
    "MPI_Comm_spawn",
    "MPI_Comm_spawn_multiple",
    "MPI_Lookup_name",
    "MPI_Open_port",
    "MPI_Publish_name",
];

impl Refusal {
    /// True where nothing is amiss: it is only said.
    pub fn is_note(&self) -> bool {
        matches!(self, Self::Callbacks { .. })
    }

    /// True where `--skip-gaps` lifts it.
    pub fn is_skipped(&self) -> bool {
        matches!(self, Self::Gaps { .. } | Self::Unfinished(_) | Self::Damaged(_) | Self::Hidden(_))
    }
}

/// True for functions that make nothing and reach no other rank.
fn only_asks(function: Function) -> bool {
    function.spec().class.only_asks() || ["MPI_Error_string", "MPI_Comm_get_name"].contains(&function.name())
}

/// Ranks in a few words.
struct Ranks<'a>(&'a [u32]);

impl fmt::Display for Ranks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => f.write_str("no rank"),
            [one] => write!(f, "rank {one}"),
            [first, .., last] if self.0.len() as u64 == u64::from(last - first) + 1 => {
                write!(f, "ranks {first}-{last}")
            }
            [first, .., last] => write!(f, "{} ranks between {first} and {last}", self.0.len()),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ranks { recorded, started } => write!(
                f,
                "the run has {recorded} ranks and {started} were started: start {recorded}, because messages and \
                 communicators are those of {recorded}"
            ),
            Self::Damaged(1) => f.write_str("a part of the trace is damaged or missing"),
            Self::Damaged(parts) => write!(f, "{parts} parts of the trace are damaged or missing"),
            Self::Kept => f.write_str(
                "the run was recorded with trace.structure = \"kept\" or \"off\": calls of other windows are not \
                 there; record it with \"all\"",
            ),
            Self::Absent(ranks) => write!(f, "nothing is recorded of {}", Ranks(ranks)),
            Self::Unfinished(ranks) => write!(f, "{} did not reach MPI_Finalize", Ranks(ranks)),
            Self::Gaps { calls, reason, ranks, function } => {
                write!(f, "{calls} calls of {} were counted and not recorded ({reason}", Ranks(ranks))?;
                function.map_or(Ok(()), |name| write!(f, ", mostly {name}"))?;
                f.write_str("): messages would lack their partners; --skip-gaps leaves these calls out")
            }
            Self::Callbacks { calls, function } => {
                write!(f, "{calls} queries within functions of the program that MPI calls")?;
                function.map_or(Ok(()), |name| write!(f, " (most of them {name})"))
            }
            Self::Threads(rank) => write!(
                f,
                "rank {rank} called MPI from several threads: the order of their calls among each other is not \
                 recorded"
            ),
            Self::Function(name) => write!(f, "{name} is called: the other program is not in the trace"),
            Self::Address(name) => write!(
                f,
                "{name} reaches into a window of MPI_Win_create_dynamic: its target_disp is an address of the recorded \
                 process, which a replay does not have"
            ),
            Self::Lacking(name) => write!(f, "{name} is called, which this MPI library lacks"),
            Self::Aggregated(names) => write!(
                f,
                "the run was recorded with trace.values = \"aggregate\": it has only the mean of the counts of {}; \
                 --aggregate-values replays these with counts that ranks agree on",
                names.join(", ")
            ),
            Self::Hidden(names) => write!(f, "the program uses {names}, whose calls are not recorded"),
        }
    }
}

/// Every reason against a replay of `run` with `started` ranks; `lacks` is true for functions that MPI does not have.
pub fn refusals(run: &Run, started: Option<u32>, lacks: impl Fn(Function) -> bool) -> Vec<Refusal> {
    let recorded = run.info().ranks;
    let mut found = Vec::new();
    if let Some(started) = started.filter(|&started| started != recorded) {
        found.push(Refusal::Ranks { recorded, started });
    }
    if run.plan().is_some_and(|plan| plan.config.trace.structure != Keep::All) {
        found.push(Refusal::Kept);
    }
    let aggregated = run.aggregated();
    if !aggregated.is_empty() {
        found.push(Refusal::Aggregated(aggregated.into_iter().map(Function::name).collect()));
    }
    let ranks = run.ranks();
    let absent: Vec<u32> = (0..recorded).filter(|rank| ranks.binary_search(rank).is_err()).collect();
    if !absent.is_empty() {
        found.push(Refusal::Absent(absent));
    }
    let mut functions = std::collections::BTreeSet::new();
    let (mut unfinished, mut threads, mut by_address) = (Vec::new(), None, None);
    let mut missing = Recorded::default();
    let calls = (!run.info().has_gaps).then(|| run.structure().function_calls());
    for &rank in &ranks {
        let Some(process) = run.process(rank) else { continue };
        functions.extend(process.calls.iter().filter(|(_, calls)| *calls > 0).map(|(function, _)| *function));
        if !process.finalized {
            unfinished.push(rank);
        }
        let is_dynamic = |&(function, calls): &(u16, u64)| {
            calls > 0 && Function::name_of(function) == "MPI_Win_create_dynamic"
        };
        if by_address.is_none()
            && process.calls.iter().any(is_dynamic)
            && let Some(own) = run.rank(rank)
        {
            by_address = windows::by_address(own.calls().map_while(Result::ok));
        }
        let Some(trace) = run.rank_trace(rank) else { continue };
        missing.add(&trace, calls.as_ref(), None);
        if run.structure().rank(rank).is_some_and(|structure| structure.threads.len() > 1) {
            threads.get_or_insert(rank);
        }
    }
    found.extend(threads.map(Refusal::Threads));
    found.extend(by_address.map(Refusal::Address));
    if !unfinished.is_empty() {
        found.push(Refusal::Unfinished(unfinished));
    }
    for MissingCalls { reason, ranks, calls, functions, .. } in missing.gaps {
        // What communicates or makes objects has its place in other ranks' calls.
        let is_amiss = |function: u16| reason != Reason::Nested || !only_asks(Function(function));
        let replaced = !functions.keys().any(|&function| is_amiss(function));
        let named = functions.iter().filter(|(function, _)| replaced || is_amiss(**function));
        let function = named.max_by_key(|(_, calls)| **calls).map(|(&function, _)| Function(function).name());
        found.push(match replaced {
            true => Refusal::Callbacks { calls, function },
            false => Refusal::Gaps { calls, reason: reason.name(), ranks, function },
        });
    }
    for function in functions.into_iter().map(Function) {
        if OTHER_PROGRAMS.contains(&function.name()) {
            found.push(Refusal::Function(function.name()));
        } else if lacks(function) {
            found.push(Refusal::Lacking(function.name()));
        }
    }
    if !run.info().extensions.is_empty() {
        found.push(Refusal::Hidden(run.info().extensions.join(", ")));
    }
    if !run.damage().is_empty() {
        found.push(Refusal::Damaged(run.damage().len()));
    }
    found
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn golden() -> Run {
        let place = "../ampl-trace/tests/golden/v1/four-ranks.ampl";
        Run::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join(place)).expect("a golden file")
    }

    #[test]
    fn another_number_of_ranks_and_functions_that_are_lacking_are_refused_by_name() {
        let run = golden();
        let found = refusals(&run, Some(3), |_| false);
        assert!(found.contains(&Refusal::Ranks { recorded: 4, started: 3 }), "{found:?}");
        let whole = refusals(&run, Some(4), |_| false);
        assert!(!whole.iter().any(|found| matches!(found, Refusal::Ranks { .. } | Refusal::Lacking(_))));
        let lacking = refusals(&run, Some(4), |function| function.name() == "MPI_Barrier");
        assert!(lacking.contains(&Refusal::Lacking("MPI_Barrier")), "{lacking:?}");
        assert_eq!(lacking.len(), whole.len() + 1);
    }

    #[test]
    fn ranks_are_named_in_a_few_words() {
        let text = |ranks: &[u32]| Ranks(ranks).to_string();
        assert_eq!((text(&[3]), text(&[2, 3, 4])), ("rank 3".into(), "ranks 2-4".into()));
        assert_eq!(text(&[1, 5, 9]), "3 ranks between 1 and 9");
    }
}
