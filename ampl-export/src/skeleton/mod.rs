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

use ampl_analysis::logical::{Detail, Formulas, Node, Program};
use ampl_core::mpi::Function;
use ampl_core::mpi::constants::AbiFamily;
use ampl_reader::Symbols;
use ampl_trace::record::GAP;

pub use refusal::Refusal;

use arguments::Calls;
use body::Body;

/// Detail that the logical program must have.
pub const DETAIL: Detail = Detail::Whole;

/// Functions and variables of the skeleton itself that it needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Helpers {
    attached: bool,
    coordinates: bool,
    flag: bool,
    flip: bool,
    gather: bool,
    lists: bool,
    local: bool,
    no_request: bool,
    nothing: bool,
    shift: bool,
    transposed: bool,
}

/// The skeleton of a run of that name as the text of a C program; constants are those of `family`.
///
/// # Errors
/// A [`Refusal`] where the program would not communicate as the run did.
pub fn skeleton(
    program: &Program,
    run: &str,
    family: Option<AbiFamily>,
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
    let mut body = Body::new(calls, thread, symbols);
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
