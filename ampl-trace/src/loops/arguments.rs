//! Hashes of arguments, which tell calls of one shape apart.

use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;

use crate::structure::{Role, layout};

/// Index of the first parameter of the exit part.
const EXIT: u8 = 64;

/// Hashes of a call's arguments, given as role, parameter, element and value, if that is known: which ranks and communicators, `None` of
/// a call that names no rank; and these with roots, and the numbers and types of what is sent.
pub fn hashes(words: impl Iterator<Item = (Role, u8, u32, Option<u64>)>) -> (Option<u64>, u64) {
    let (mut partners, mut all) = (FxHasher::default(), FxHasher::default());
    let mut has_rank = false;
    for (role, param, element, value) in words.filter(|word| word.1 < EXIT) {
        let (is_partner, counts) = match role {
            Role::Rank => (true, true),
            Role::Root | Role::Comm => (false, true),
            Role::Number | Role::Datatype | Role::Plain => (false, true),
            _ => (false, false),
        };
        let value = (param, element, value);
        if is_partner || role == Role::Comm {
            has_rank |= is_partner;
            value.hash(&mut partners);
        }
        if counts {
            value.hash(&mut all);
        }
    }
    (has_rank.then(|| partners.finish()), all.finish())
}

/// The same of a call of `function` whose signature has `flags` and `words`.
pub fn raw_hashes(function: u16, flags: u8, words: &[u64]) -> (Option<u64>, u64) {
    let slots = layout(function, flags, words);
    hashes(slots.iter().zip(words).map(|(slot, &word)| (slot.role, slot.param, slot.element, Some(word))))
}
