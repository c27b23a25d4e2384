//! Places of a thread's buffers, where calls of one signature have several: [`ampl_trace::buffers`] is the other side.

use std::sync::Arc;

use ampl_trace::buffers::{Followers, Turn};
use ampl_trace::journal::BlockKind;
use rustc_hash::FxHashMap;

use crate::call_sequence::Log;
use crate::journal::Journal;

/// Set of calls without places that may vary.
pub const NO_SET: u32 = u32::MAX;
/// Stands in a signature for a place that may vary.
pub const VARIES: u64 = 0x4e8d_1f7a_93c5_6b21;
/// Most sets of buffers, and most kinds of moves: some 16 MiB of each.
const MOST: usize = 1 << 18;

/// A call as its thread's sequence has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminal {
    /// Number of its signature.
    pub number: u32,
    /// Number of its set of buffers; [`NO_SET`] where it has none.
    pub set: u32,
}

/// Position of a terminal in its sets of buffers.
#[derive(Clone, Copy, Debug)]
struct State {
    /// Its only set so far; [`SEVERAL`] once it has moved.
    only: u32,
    /// Its first set, and where the places of that begin.
    first: u32,
    begins: u32,
    turn: Turn,
}

/// In place of the only set of a terminal that has several.
const SEVERAL: u32 = NO_SET - 1;
/// State of a terminal that has no buffers.
const NONE: State = State {
    only: NO_SET,
    first: NO_SET,
    begins: 0,
    turn: Turn { latest: NO_SET, expected: NO_SET, since: 0 },
};

/// Buffers of a thread's calls.
#[derive(Debug)]
pub struct Buffers {
    journal: Arc<Journal>,
    thread: u32,
    /// By terminal.
    states: Vec<State>,
    followers: Followers,
    /// Places of first sets, one behind the other.
    firsts: Vec<u64>,
    /// Numbers of other sets by terminal and places.
    known: FxHashMap<Box<[u64]>, u32>,
    /// Numbers in the journal by set, from 1; 0 for the first of a terminal.
    stored: Vec<u32>,
    /// Sets in the journal.
    in_journal: u32,
    /// Kinds of moves by the set that they lead to and the calls since the move before.
    moves: FxHashMap<(u32, u64), u32>,
    kinds: u32,
    log: Option<Box<Log>>,
    /// True once no places are told apart any more: there are too many.
    lost: bool,
    key: Vec<u64>,
}

/// A set of buffers that was looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its number.
    pub number: u32,
    /// True where the journal has yet to be told of it.
    pub is_new: bool,
}

/// A move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Number of its kind.
    pub kind: u32,
    /// Of a new kind what its record says: calls since the move before, or the position of the first one; and where to.
    pub new: Option<(u64, u32)>,
    /// True for the first move of the terminal.
    pub is_first: bool,
}

impl Buffers {
    /// No buffers of `thread`. Places are not told apart unless they are `wanted`.
    pub fn new(journal: Arc<Journal>, thread: u32, wanted: bool) -> Self {
        let (states, firsts, known, stored, moves, key) = Default::default();
        Self {
            journal,
            thread,
            states,
            followers: Followers::default(),
            firsts,
            known,
            stored,
            in_journal: 0,
            moves,
            kinds: 0,
            log: None,
            lost: !wanted,
            key,
        }
    }

    /// True where places are told apart.
    #[inline(always)]
    pub fn are_known(&self) -> bool {
        !self.lost
    }

    /// Tells no places apart from here on.
    pub fn give_up(&mut self) {
        self.lost = true;
    }

    /// True where there should be no more sets or moves.
    pub fn is_full(&self) -> bool {
        let is_long = |log: &Log| log.is_lost() || log.positions() > MOST;
        self.in_journal as usize >= MOST
            || self.moves.len() >= MOST
            || self.log.as_deref().is_some_and(is_long)
    }

    /// The set of buffers of a call of `terminal` with these `places`.
    pub fn find(&mut self, terminal: u32, places: &[u64]) -> Found {
        if places.is_empty() {
            return Found { number: NO_SET, is_new: false };
        }
        let is_known = self.states.get(terminal as usize).filter(|own| own.first != NO_SET);
        let Some(own) = is_known else { return self.first(terminal, places) };
        let begins = own.begins as usize;
        if self.firsts.get(begins..begins + places.len()) == Some(places) {
            return Found { number: own.first, is_new: false };
        }
        self.key.clear();
        self.key.push(terminal.into());
        self.key.extend_from_slice(places);
        if let Some(&number) = self.known.get(&self.key[..]) {
            return Found { number, is_new: false };
        }
        let number = self.followers.add();
        self.known.insert(self.key[..].into(), number);
        self.in_journal += 1;
        self.stored.push(self.in_journal);
        Found { number, is_new: true }
    }

    /// The first set of `terminal`, which its signature has.
    fn first(&mut self, terminal: u32, places: &[u64]) -> Found {
        let (number, begins) = (self.followers.add(), self.firsts.len() as u32);
        self.firsts.extend_from_slice(places);
        self.stored.push(0);
        if self.states.len() <= terminal as usize {
            self.states.resize(terminal as usize + 1, NONE);
        }
        self.states[terminal as usize] =
            State { only: number, first: number, begins, turn: Turn::new(number) };
        Found { number, is_new: false }
    }

    /// True where the call has no buffers, or the only set that its terminal has had: it needs no [pass](Self::pass).
    #[inline(always)]
    pub fn is_settled(&self, call: Terminal) -> bool {
        call.set == NO_SET || self.states.get(call.number as usize).is_some_and(|own| own.only == call.set)
    }

    /// True where the call has the buffers that are expected.
    #[inline(always)]
    pub fn expect(&self, call: Terminal) -> bool {
        self.states.get(call.number as usize).is_some_and(|own| own.turn.expected == call.set)
    }

    /// A call that is not [settled](Self::is_settled), with the buffers that are [expected](Self::expect), goes into the
    /// sequence.
    #[inline(always)]
    pub fn pass(&mut self, call: Terminal) {
        if let Some(own) = self.states.get_mut(call.number as usize) {
            own.turn.pass(&self.followers);
        }
    }

    /// A call with buffers that are not expected goes into the sequence, at that `position`. The move is yet to be
    /// [pushed](Self::push).
    #[cold]
    pub fn take(&mut self, call: Terminal, position: u64) -> Option<Moved> {
        let own = self.states.get_mut(call.number as usize)?;
        let is_first = own.only != SEVERAL;
        let since = if is_first { position } else { own.turn.since };
        own.only = SEVERAL;
        own.turn.take(&mut self.followers, call.set);
        let next = self.kinds;
        // A first move is of no kind that others are of: its number of calls is a position.
        let kind = if is_first { next } else { *self.moves.entry((call.set, since)).or_insert(next) };
        let is_new = kind == next;
        self.kinds += u32::from(is_new);
        let to = self.stored.get(call.set as usize).copied().unwrap_or(0);
        Some(Moved { kind, new: is_new.then_some((since, to)), is_first })
    }

    /// Puts a move of that kind behind those so far. Returns whether there was room.
    #[must_use]
    pub fn push(&mut self, kind: u32) -> bool {
        if self.log.is_none() {
            let kinds = [BlockKind::MoveSnapshot, BlockKind::MoveLog];
            self.log = Log::of(self.journal.clone(), self.thread, kinds).ok().map(Box::new);
        }
        self.log.as_mut().is_some_and(|log| log.push(kind, 1))
    }

    /// Ends the sequence of moves.
    pub fn finish(&mut self) {
        if let Some(log) = &mut self.log {
            log.finish();
        }
    }
}
