//! A program in C that communicates as a recorded run did, without its computation.
//!
//! It is one program for all ranks, as its logical program is: partners are functions of the rank where one gives
//! them all, else tables. Requests are variables named by the call that makes them.
//!
//! # Source
//! Q. Xu, J. Subhlok, R. Zheng, S. Voss, *Logicalization of communication traces from parallel execution* (2009).
//! Departures: coordinates are computed from the rank, and what no formula gives is a table, so that no rank is
//! represented by another.

mod arguments;
mod body;
mod expression;
mod lists;
mod refusal;
mod tables;
mod text;

use std::collections::BTreeSet;

use ampl_analysis::computation::{Computed, before_calls};
use ampl_analysis::logical::{Detail, Formulas, Node, Program};
use ampl_analysis::messages::Messages;
use ampl_analysis::topology::{Options, patterns};
use ampl_core::mpi::Function;
use ampl_core::mpi::constants::AbiFamily;
use ampl_reader::{Run, Symbols};
use ampl_trace::record::GAP;

pub use refusal::Refusal;

use arguments::Calls;
use body::Body;

/// The skeleton of `run` as the text of a C program; with `computes` it lets time pass between calls, of which the run
/// must have been read whole.
///
/// # Errors
/// A [`Refusal`] where the program would not communicate as the run did.
pub fn of_run(run: &Run, name: &str, computes: bool, symbols: &mut Symbols) -> Result<String, Refusal> {
    let aggregated = run.aggregated();
    if !aggregated.is_empty() {
        return Err(Refusal::Aggregated(aggregated.into_iter().map(Function::name).collect()));
    }
    let ranks = run.info().ranks;
    let messages = Messages::of(run.structure(), run.communicators(), ranks);
    let found =
        patterns(&messages, &Options::default()).map_err(|error| Refusal::TooLarge(error.to_string()))?;
    let program = Program::with(run.structure(), run.communicators(), ranks, &found, Detail::Whole)
        .map_err(|error| Refusal::TooLarge(error.to_string()))?;
    let computed = match (computes, run.whole()) {
        (true, Some(trace)) => before_calls(trace, &program).ok_or(Refusal::NoTimes)?,
        (true, None) => return Err(Refusal::NoTimes),
        (false, _) => Vec::new(),
    };
    skeleton(&program, name, run.info().abi_family(), &computed, symbols)
}

/// Functions and variables of the skeleton itself that it needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Helpers {
    attached: bool,
    computes: bool,
    coordinates: bool,
    flag: bool,
    flip: bool,
    gather: bool,
    lists: bool,
    local: bool,
    no_request: bool,
    nothing: bool,
    shift: bool,
    status: bool,
    transposed: bool,
}

/// The skeleton of a run of that name; constants are those of `family`, and computation is `computed` by label.
fn skeleton(
    program: &Program,
    run: &str,
    family: Option<AbiFamily>,
    computed: &[Computed],
    symbols: &mut Symbols,
) -> Result<String, Refusal> {
    if !program.missing.is_empty() {
        return Err(Refusal::Missing(program.missing.clone()));
    }
    let thread = match &program.threads[..] {
        [] => return Err(Refusal::Empty),
        [one] => one,
        _ => return Err(Refusal::Threads),
    };
    let formulas = Formulas::new(&program.space, program.ranks);
    let calls = Calls { program, formulas: &formulas, family };
    let mut body = Body::new(calls, thread, computed, symbols);
    let all: BTreeSet<u32> = (0..program.ranks).collect();
    begins(program, &thread.body, &body, &all)?;
    body.nodes(&thread.body, &all, 0, 1)?;
    Ok(text::whole(&body, &formulas, run))
}

/// Refuses programs whose ranks ask for their number before MPI has begun.
fn begins(program: &Program, nodes: &[Node], body: &Body<'_>, all: &BTreeSet<u32>) -> Result<(), Refusal> {
    for node in nodes {
        let Node::Call { label, uses } = node else { return Err(Refusal::NoInit) };
        let function = program.calls[*label as usize].function;
        if function == GAP {
            return Err(Refusal::Gap);
        }
        let name = Function::name_of(function);
        let ranks: usize = uses.iter().map(|used| body.classes[used.class as usize].len()).sum();
        if ranks != all.len() {
            return Err(Refusal::NoInit);
        }
        if name.starts_with("MPI_Init") && name != "MPI_Initialized" {
            return Ok(());
        }
    }
    Err(if nodes.is_empty() { Refusal::Empty } else { Refusal::NoInit })
}
