//! Message partners of calls, where windows are kept for their sake.
//!
//! Nothing of this runs otherwise: plans then have no partners. A rank of a communicator is translated to the world's
//! once, by local calls of MPI, and then found in the thread's own cache.

use ampl_agent::handles::Group;
use ampl_agent::requests::{NAMES_PARTNER, Peer};
use ampl_core::mpi::Kind;
use ampl_core::value::ObjectKind;

use super::facts::object;
use super::requests::indexed;
use crate::hook_plan::HookPlan;
use crate::process::Process;
use crate::thread_state::ThreadState;
use ampl_core::mpi::traffic::Ends;

/// True, before the call, where only its status can name the source of a message.
pub fn needs_status(state: &ThreadState, plan: &HookPlan, words: &[usize]) -> bool {
    match &plan.ends {
        Some(ends) => ends.is_open(words, state.process.abi.any_source),
        None => state.named.any(NAMES_PARTNER),
    }
}

/// After a call that succeeded: notes the partners that it names. Persistent requests are noted at every start.
///
/// # Safety
/// `words` must be the arguments of a call with that plan that has just returned, and has not missed.
pub unsafe fn exchanged(state: &mut ThreadState, plan: &HookPlan, ends: &Ends, words: &[usize]) {
    if plan.makes_persistent {
        return;
    }
    let named = ends.named(words);
    let word = comm_word(state, named.comm);
    meet(state, Some(named.comm), word, named.dest);
    let source = if named.source == state.process.abi.any_source {
        // SAFETY: the caller's promise.
        unsafe { told(state, plan, words, 0) }
    } else {
        named.source
    };
    meet(state, Some(named.comm), word, source);
}

/// The partner of a request that a call has just made, as far as the call itself does not name it.
pub fn of_request(state: &mut ThreadState, plan: &HookPlan, words: &[usize]) -> Peer {
    let Some(ends) = &plan.ends else { return Peer::None };
    let named = ends.named(words);
    let word = comm_word(state, named.comm);
    let process = state.process;
    if named.source == process.abi.any_source {
        if word == process.world.1 {
            return Peer::Any(WORLD);
        }
        // The communicator may be gone when the message comes: its group is asked for now.
        let known = group(process, Some(named.comm), word).is_some();
        return u32::try_from(word).ok().filter(|_| known).map_or(Peer::None, Peer::Any);
    }
    if !plan.makes_persistent {
        return Peer::None;
    }
    let rank = u32::try_from(named.dest.max(named.source)).ok();
    let world = rank.and_then(|rank| translate(process, Some(named.comm), word, rank));
    world.map_or(Peer::None, Peer::Rank)
}

/// Stands for the world's communicator in [`Peer::Any`]: no other has that number.
const WORLD: u32 = 0;

/// After a call that has started the requests it names.
pub fn started(state: &mut ThreadState) {
    let world = state.process.world.1;
    for element in 0..state.named.len() {
        if let (Peer::Rank(rank), _) = state.requests.peer(state.named.places()[element]) {
            meet(state, None, world, rank as i32);
        }
    }
}

/// After a call that has completed some of the requests it names: notes the sources in their statuses.
///
/// # Safety
/// `words` must be the arguments of a call with that plan that has just returned, without an error or a miss.
pub unsafe fn completed(state: &mut ThreadState, plan: &HookPlan, words: &[usize]) {
    if !state.named.any(NAMES_PARTNER) {
        return;
    }
    // SAFETY: the caller's promise.
    let count = unsafe { indexed(state, plan, words) }.unwrap_or(state.named.len());
    for number in 0..count {
        let element = match plan.rest.index {
            None => Some(number),
            Some(index) => {
                // SAFETY: the call has written as many indices.
                let said = unsafe { state.reader.load(Kind::Int, words[usize::from(index)], number) };
                said.and_then(|said| usize::try_from(state.reader.index(said)).ok())
            }
        };
        let place = element.and_then(|element| state.named.places().get(element)).copied();
        if let (Peer::Any(comm), true) = state.requests.peer(place.unwrap_or_default()) {
            // SAFETY: there are as many statuses as completions.
            let source = unsafe { told(state, plan, words, number) };
            let word = if comm == WORLD { state.process.world.1 } else { u64::from(comm) };
            meet(state, None, word, source);
        }
    }
}

/// The source in status `number` of a call; negative where there is none.
///
/// # Safety
/// `words` must be the arguments of a call that has written so many statuses, unless it was told to ignore them.
unsafe fn told(state: &ThreadState, plan: &HookPlan, words: &[usize], number: usize) -> i32 {
    match plan.status.map(|index| words[usize::from(index)]) {
        // SAFETY: the caller's promise.
        Some(at) if !state.reader.ignores_status(at) => unsafe { state.process.abi.status(at, number).0 },
        _ => -1,
    }
}

fn comm_word(state: &mut ThreadState, comm: usize) -> u64 {
    let handle = state.process.abi.handle_word(Kind::Comm, comm);
    object(state, ObjectKind::Comm, handle).word
}

/// Notes a message to or from `rank` of the communicator that `word` stands for; none if `rank` is negative.
#[inline]
fn meet(state: &mut ThreadState, comm: Option<usize>, word: u64, rank: i32) {
    let process = state.process;
    let (Some(partners), Some(recent)) = (&process.shared.partners, &mut state.recent) else { return };
    let Ok(rank) = u32::try_from(rank) else { return };
    let world = recent.meet(word, rank, process.shared.window(), || translate(process, comm, word, rank));
    if let Some(world) = world {
        partners.note(world);
    }
}

/// The rank of this world that is `rank` of the communicator; `None` for this process itself, and those of other
/// worlds. `comm` is the communicator, where it is known to live.
#[cold]
fn translate(process: &Process, comm: Option<usize>, word: u64, rank: u32) -> Option<u32> {
    let world = if word == process.world.1 { Some(rank) } else { in_world(process, comm, word, rank) };
    world.filter(|&world| world < process.shared.plan.ranks && world != process.shared.rank.0)
}

/// One rank at a time: a whole group would take Open MPI time with the square of its size.
fn in_world(process: &Process, comm: Option<usize>, word: u64, rank: u32) -> Option<u32> {
    if let Some(known) = process.with_handles(|handles| handles.world_rank(word, rank)) {
        return known;
    }
    let (handle, world) = process.world;
    group(process, comm, word)?;
    group(process, Some(handle as usize), world)?;
    process.with_handles(|handles| {
        // Under the lock: another thread may just now free the communicator, and its group goes too.
        let (from, to) = (handles.group(word)?, handles.group(world)?);
        if rank >= from.ranks {
            return None; // the status of something cancelled may say anything
        }
        let mut found = process.abi.undefined;
        // SAFETY: groups of our own, a rank of the first, and a place for one.
        let code = unsafe {
            (process.pmpi.group_translate_ranks)(
                from.handle as usize,
                1,
                &raw const rank as usize,
                to.handle as usize,
                &raw mut found as usize,
            )
        };
        let told = code == 0 && found != process.abi.undefined;
        let found = u32::try_from(found).ok().filter(|_| told);
        handles.note_world_rank(word, rank, found);
        found
    })
}

/// The group of the communicator that `word` stands for, the other one where it joins two; asked for once.
fn group(process: &Process, comm: Option<usize>, word: u64) -> Option<Group> {
    if let Some(group) = process.with_handles(|handles| handles.group(word)) {
        return Some(group);
    }
    let comm = comm?;
    let (mut inter, mut group, mut ranks) = (0i32, 0usize, 0i32);
    // SAFETY: a communicator of a call that succeeded, and places for a handle and ints.
    let code = unsafe {
        (process.pmpi.comm_test_inter)(comm, &raw mut inter as usize);
        let ask = if inter == 0 { process.pmpi.comm_group } else { process.pmpi.comm_remote_group };
        ask(comm, &raw mut group as usize)
    };
    if code != 0 {
        return None;
    }
    // SAFETY: the group just given, and a place for an int.
    unsafe { (process.pmpi.group_size)(group, &raw mut ranks as usize) };
    let group = Group { handle: group as u64, ranks: ranks.max(0) as u32 };
    Some(process.with_handles(|handles| handles.put_group(word, group)))
}
