//! Requests that a rank's calls have made and none has completed, by counts of calls alone.

use std::collections::BTreeMap;

use ampl_core::mpi::{Class, FUNCTIONS, Kind};

use super::threads::{maker, peer_of_maker};
use crate::args;
use crate::model::Pending;
use crate::record::{CALL_ERROR, CALL_MISS, CALL_NO_ARGS, CALL_UNFINISHED, GAP};
use crate::request::{SLOT_BITS, UNSEEN, origin};
use crate::structure::{RankStructure, Signature};

/// Most kinds of requests that are told apart.
const MOST: usize = 16;

/// Requests of all threads that are pending, by the calls that made them, in the order of threads and terminals.
///
/// `None` where that is not known: calls were only counted, requests are persistent or their making was not seen, calls
/// complete some of the requests that they name, or the requests are of more than 16 kinds.
pub fn of(structure: &RankStructure) -> Option<Vec<Pending>> {
    // By the number of a call's first request.
    let mut made: BTreeMap<u64, u64> = BTreeMap::new();
    let mut completed: BTreeMap<u64, u64> = BTreeMap::new();
    for thread in &structure.threads {
        for (terminal, times) in thread.grammar.totals() {
            match effect(thread.signatures.get(terminal as usize)?)? {
                Effect::Makes => {
                    *made.entry(origin(thread.thread, terminal)?).or_default() += times;
                }
                Effect::Completes(requests) => {
                    for request in requests {
                        *completed.entry(request >> SLOT_BITS << SLOT_BITS).or_default() += times;
                    }
                }
                Effect::None => {}
            }
        }
    }
    let mut pending: Vec<Pending> = Vec::new();
    for (first, times) in made {
        let count = times.checked_sub(completed.remove(&first).unwrap_or(0))?;
        if count == 0 {
            continue;
        }
        let made = peer_of_maker(maker(structure, first)?)?;
        match pending.iter().position(|one| one.made == made) {
            Some(at) => pending[at].count += count,
            None if pending.len() < MOST => pending.push(Pending { count, made }),
            None => return None,
        }
    }
    completed.is_empty().then_some(pending)
}

/// Effect of a call on requests.
enum Effect {
    None,
    Makes,
    /// It has completed these.
    Completes(Vec<u64>),
}

/// Effect of the calls that are as `signature`; `None` where it is not known.
fn effect(signature: &Signature) -> Option<Effect> {
    if signature.function == GAP {
        return None;
    }
    // Edges of regions are beyond the table.
    let Some(spec) = FUNCTIONS.get(usize::from(signature.function)) else { return Some(Effect::None) };
    if !spec.params.iter().any(|param| param.kind == Kind::Request)
        || signature.flags & (CALL_UNFINISHED | CALL_MISS) != 0
    {
        return Some(Effect::None);
    }
    if signature.flags & (CALL_ERROR | CALL_NO_ARGS) != 0 {
        return None;
    }
    match spec.class {
        Class::Nonblocking => Some(Effect::Makes),
        _ if matches!(spec.name, "MPI_Wait" | "MPI_Waitall" | "MPI_Test" | "MPI_Testall") => {
            let parts = args::inputs(spec, &mut &signature.words[..])?;
            let of = parts.iter().find(|(param, _)| param.kind == Kind::Request)?;
            let requests = of.1.iter().copied().filter(|&word| !args::is_predefined(word));
            let requests: Vec<u64> = requests.collect();
            requests.iter().all(|request| request & UNSEEN == 0).then_some(Effect::Completes(requests))
        }
        _ => None,
    }
}
