//! Bytes of each call of a rank.

use ampl_core::mpi::{Class, FUNCTION_COUNT, Function, Traffic};
use ampl_trace::record::{CALL_ERROR, CALL_MISS, GAP};
use ampl_trace::structure::{RankStructure, Signature};

use crate::calls::{Objects, message_bytes};
use crate::messages::started;

/// Bytes that a call of each terminal moves, by thread: those that it sends, or receives where it sends none; `None`
/// where they cannot be computed. Persistent operations move theirs at each start.
pub fn bytes(structure: &RankStructure, ranks: u32) -> Vec<Vec<Option<u64>>> {
    let mut objects = Objects::of(structure, ranks);
    let threads = structure.threads.iter();
    threads
        .map(|thread| {
            let of = |signature| of_call(structure, signature, &mut objects);
            thread.signatures.iter().map(of).collect()
        })
        .collect()
}

fn of_call(structure: &RankStructure, signature: &Signature, objects: &mut Objects<'_>) -> Option<u64> {
    let known = signature.function != GAP && usize::from(signature.function) < FUNCTION_COUNT;
    if !known || signature.flags & (CALL_ERROR | CALL_MISS) != 0 {
        return Some(0);
    }
    let spec = Function(signature.function).spec();
    if spec.class == Class::Start {
        let mut bytes = 0u64;
        for (thread, terminal) in started(signature)? {
            let thread = structure.threads.iter().find(|own| own.thread == thread)?;
            let maker = thread.signatures.get(terminal as usize)?;
            bytes = bytes.saturating_add(message_bytes(maker, objects)?);
        }
        return Some(bytes);
    }
    let at_start = matches!(spec.traffic, Traffic::SendInit | Traffic::RecvInit)
        || spec.class == Class::PersistentCollective;
    if spec.traffic == Traffic::None || at_start { Some(0) } else { message_bytes(signature, objects) }
}
