//! Agreement of ranks about one collective.

use ampl_core::mpi::Function;

use super::{Against, Problem};
use crate::matching::{At, Blocks, Collective, Joined, Pairing, Root};

/// Most pairs of ranks whose blocks are compared.
const MOST_PAIRS: usize = 1 << 16;

/// A rank's call.
pub type Own<'a> = (At, &'a Collective);

/// The value that most calls have, with the first rank that has it.
fn usual<'a, T: PartialEq>(calls: &[Own<'a>], of: impl Fn(&'a Collective) -> Option<T>) -> Option<(u32, T)> {
    let mut values: Vec<(T, u32, u32)> = Vec::new();
    for &(at, call) in calls {
        let Some(value) = of(call) else { continue };
        match values.iter_mut().find(|(known, ..)| *known == value) {
            Some((_, number, rank)) => {
                *number += 1;
                *rank = at.rank.min(*rank);
            }
            None => values.push((value, 1, at.rank)),
        }
    }
    let most = values.into_iter().min_by_key(|&(_, number, rank)| (std::cmp::Reverse(number), rank))?;
    Some((most.2, most.0))
}

/// Calls that have another value than most.
fn unusual<'a, T: PartialEq + Clone>(
    calls: &[Own<'a>],
    of: impl Fn(&'a Collective) -> Option<T>,
    problem: impl Fn(Against<T>) -> Problem,
) -> Vec<(At, Problem)> {
    let Some((rank, other)) = usual(calls, &of) else { return Vec::new() };
    let differs = |&(at, call): &Own<'a>| {
        let own = of(call).filter(|own| *own != other)?;
        Some((at, problem(Against { own, rank, other: other.clone() })))
    };
    calls.iter().filter_map(differs).collect()
}

/// True where all ranks call one function.
pub fn is_one(calls: &[Own<'_>]) -> bool {
    calls.iter().all(|(_, call)| call.function == calls[0].1.function)
}

/// Disagreements of the calls of one instance.
pub fn problems(calls: &[Own<'_>], joined: &Joined<'_>) -> Vec<(At, Problem)> {
    let order = unusual::<Function>(calls, |call| Some(call.function), Problem::Order);
    if !order.is_empty() {
        return order;
    }
    let root = |call: &Collective| match call.root {
        Some(Root::Rank(root)) => Some(root),
        _ => None,
    };
    let roots = unusual(calls, root, Problem::Root);
    if !roots.is_empty() {
        return roots;
    }
    let operations = unusual(calls, |call: &Collective| call.op.clone(), Problem::Operation);
    if !operations.is_empty() || joined.is_between() {
        return operations;
    }
    let types = types(calls, joined);
    if !types.is_empty() {
        return types;
    }
    match calls[0].1.pairing {
        Pairing::Same => unusual(calls, |call: &Collective| total(&call.sends), Problem::Count),
        Pairing::FromRoot | Pairing::ToRoot => with_root(calls, joined),
        Pairing::Between => between(calls, joined),
        Pairing::Free => Vec::new(),
    }
}

/// Calls whose elements are others than those of most ranks. Of a scattering the root alone names what is sent.
fn types(calls: &[Own<'_>], joined: &Joined<'_>) -> Vec<(At, Problem)> {
    let is_root = |call: &Collective, at: At| match call.root {
        Some(Root::Rank(root)) => joined.world(root) == Some(at.rank),
        _ => false,
    };
    let scatters = calls[0].1.function.name().contains("catter") && calls[0].1.pairing == Pairing::FromRoot;
    let judged: Vec<Own<'_>> =
        calls.iter().copied().filter(|&(at, call)| !scatters || is_root(call, at)).collect();
    let Some((rank, other)) = usual(&judged, |call| call.element) else { return Vec::new() };
    let differs = |&(at, call): &Own<'_>| {
        let own = call.element.filter(|own| !own.matches(other))?;
        Some((at, Problem::Types(Against { own, rank, other })))
    };
    judged.iter().filter_map(differs).collect()
}

fn total(blocks: &Blocks) -> Option<u64> {
    match blocks {
        Blocks::Unknown => None,
        Blocks::Each(bytes) => Some(*bytes),
        Blocks::Of(list) => Some(list.iter().fold(0, |sum, &bytes| sum.saturating_add(bytes))),
    }
}

fn with_root(calls: &[Own<'_>], joined: &Joined<'_>) -> Vec<(At, Problem)> {
    let Some(Root::Rank(root)) = calls[0].1.root else { return Vec::new() };
    let Some(&(root_at, root_call)) = calls.iter().find(|(at, _)| joined.world(root) == Some(at.rank)) else {
        return Vec::new();
    };
    let scatters = calls[0].1.pairing == Pairing::FromRoot;
    let differs = |&(at, call): &Own<'_>| {
        let place = joined.place(at.rank)? as usize;
        let (roots, own) =
            if scatters { (&root_call.sends, &call.receives) } else { (&root_call.receives, &call.sends) };
        let (other, own) = (roots.at(place)?, own.at(0)?);
        let against = Against { own, rank: root_at.rank, other };
        (own != other && at.rank != root_at.rank).then_some((at, Problem::Count(against)))
    };
    calls.iter().filter_map(differs).collect()
}

fn between(calls: &[Own<'_>], joined: &Joined<'_>) -> Vec<(At, Problem)> {
    let mut found = Vec::new();
    for (pair, (one, other)) in pairs(calls).enumerate() {
        if pair >= MOST_PAIRS || !found.is_empty() {
            break;
        }
        let places = (joined.place(one.0.rank), joined.place(other.0.rank));
        let (Some(from), Some(to)) = places else { continue };
        let sent = one.1.sends.at(to as usize);
        let room = other.1.receives.at(from as usize);
        if let (Some(sent), Some(room)) = (sent, room)
            && sent != room
        {
            found.push((other.0, Problem::Count(Against { own: room, rank: one.0.rank, other: sent })));
        }
    }
    found
}

fn pairs<'a, 'b>(calls: &'b [Own<'a>]) -> impl Iterator<Item = (&'b Own<'a>, &'b Own<'a>)> {
    calls.iter().flat_map(move |one| calls.iter().map(move |other| (one, other)))
}
