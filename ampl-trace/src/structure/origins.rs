//! Calls that make requests: which of them make requests of one name.

use std::collections::HashMap;

use ampl_core::mpi::{Direction, FUNCTION_COUNT, Function, Kind, Length};

use super::Signature;
use crate::args::{is_predefined, with_places};
use crate::record::{CALL_ERROR, CALL_MISS, CALL_NO_ARGS, CALL_UNFINISHED};

/// True where a call with that signature makes a request, by its slot in the last word.
fn makes_request(signature: &Signature) -> bool {
    let none = CALL_ERROR | CALL_MISS | CALL_NO_ARGS | CALL_UNFINISHED;
    let spec = Function(signature.function).spec();
    let last = spec.params.last();
    signature.flags & none == 0
        && last.is_some_and(|last| {
            last.kind == Kind::Request && last.direction == Direction::Out && last.length == Length::One
        })
        && signature.words.last().is_some_and(|&word| !is_predefined(word))
}

/// For each signature that makes a request, the first that differs in its slot and in the places of its buffers at most.
pub fn origins(signatures: &[Signature]) -> Vec<Option<u32>> {
    let mut first = HashMap::new();
    let origin = |(terminal, signature): (u32, &Signature)| {
        if signature.function as usize >= FUNCTION_COUNT || !makes_request(signature) {
            return None;
        }
        let spec = Function(signature.function).spec();
        let words = with_places(spec, signature.flags, &signature.words, 0);
        let mut words = words.unwrap_or_else(|| signature.words.clone());
        words.pop();
        let key = (signature.function, signature.flags, signature.site, signature.path, words);
        Some(*first.entry(key).or_insert(terminal))
    };
    (0..).zip(signatures).map(origin).collect()
}
