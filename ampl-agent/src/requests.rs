//! Requests between their making and their completion.
//!
//! An implementation reuses a request handle as soon as the request is gone, so lifetimes follow from every making and
//! every end, in kept windows and others alike. MPICH even gives one handle to several operations that finished at
//! once; they end in the order of making.
//!
//! Every thread keeps the requests that it has made on a [table](crate::request_table) of its own, without a lock. A
//! handle is searched for there first, then on the tables of other threads.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::call_requests::{CallRequests, Parts, RequestRef};
use crate::node::{FACTS, NO_HANDLE, Node};
use crate::request_table::{Finder, Owner, RequestTable, Visit};
use crate::slots::Slots;
use crate::sync::yield_now;

/// Most searches of others' tables, as long as they change meanwhile.
const MOST_SEARCHES: u32 = 10_000;
/// Tables that have a number in a [`RequestRef`].
const MOST_TABLES: usize = u16::MAX as usize - 1;

/// The message partner of a request, where that matters and the call that made it does not name it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Peer {
    /// No partner.
    #[default]
    None,
    /// This rank of the world, at each start.
    Rank(u32),
    /// The source in the status, a rank of the communicator of that number; 0 is the world's.
    Any(u32),
}

/// A live request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// True where its status has source and tag.
    pub receives: bool,
    /// True where completion leaves it alive, inactive.
    pub persistent: bool,
    /// True while it is under way: a persistent one from its start to its completion.
    pub active: bool,
    /// Bytes sent at each start of a persistent request.
    pub sent: u64,
    /// Bytes received at each start of a persistent request.
    pub received: u64,
    /// Its message partner.
    pub peer: Peer,
    /// True where MPI gives its handle to no other request while it is live.
    pub alone: bool,
}

/// Mark of a request whose status describes a message, or may.
pub const TELLS: u8 = 1;
/// Mark of a request whose status describes no message: it is under way, and is no receive.
pub const SILENT: u8 = 2;
/// Mark of a persistent request that is under way.
pub const STARTED: u8 = 4;
/// Mark of a request whose status names its message partner.
pub const NAMES_PARTNER: u8 = 8;
const RECEIVES: u8 = 16;
const PERSISTENT: u8 = 32;
const ACTIVE: u8 = 64;
const ALONE: u8 = 128;

// Facts of a node.
const NUMBER: usize = 0;
/// Marks in the low byte, kind of peer in the next, the peer in the upper half.
const MARKS: usize = 1;
const SENT: usize = 2;
const RECEIVED: usize = 3;

/// Marks that follow from what a request is.
fn marked(mut mark: u8) -> u8 {
    mark &= RECEIVES | PERSISTENT | ACTIVE | NAMES_PARTNER | ALONE;
    mark |= match (mark & ACTIVE != 0, mark & RECEIVES != 0) {
        (true, true) => TELLS,
        (true, false) => SILENT,
        (false, _) => 0,
    };
    let started = mark & (ACTIVE | PERSISTENT) == ACTIVE | PERSISTENT;
    mark | if started { STARTED } else { 0 }
}

impl Request {
    fn facts(&self, number: u64) -> [u64; FACTS] {
        let (kind, peer) = match self.peer {
            Peer::None => (0, 0),
            Peer::Rank(rank) => (1, rank),
            Peer::Any(comm) => (2, comm),
        };
        let bit = |is: bool, bit: u8| if is { bit } else { 0 };
        let mark = marked(
            bit(self.receives, RECEIVES)
                | bit(self.persistent, PERSISTENT)
                | bit(self.active, ACTIVE)
                | bit(self.alone, ALONE)
                | bit(kind == 2, NAMES_PARTNER),
        );
        [number, u64::from(mark) | kind << 8 | u64::from(peer) << 32, self.sent, self.received]
    }
}

fn is_persistent(node: &Node) -> bool {
    node.fact(MARKS) as u8 & PERSISTENT != 0
}

fn set_active(node: &Node, active: bool) {
    let marks = node.fact(MARKS);
    let mark = marks as u8;
    if mark & PERSISTENT != 0 {
        let mark = marked(if active { mark | ACTIVE } else { mark & !ACTIVE });
        node.set_fact(MARKS, marks & !0xff | u64::from(mark));
    }
}

/// Names requests up to one that is neither null nor on the thread's own table; returns how many.
#[inline(never)]
fn name_own<const CLAIMS: bool>(
    finder: Finder<'_>,
    handles: &[u64],
    null: u64,
    null_word: u64,
    (words, marks, places): Parts<'_>,
) -> usize {
    let count = handles.len().min(words.len()).min(marks.len()).min(places.len());
    let mut passed = (NO_HANDLE, 0);
    for element in 0..count {
        let handle = handles[element];
        let found = match finder.at_home::<CLAIMS>(handle) {
            None if handle == null => {
                (words[element], marks[element], places[element]) = (null_word, 0, RequestRef::default());
                continue;
            }
            None if CLAIMS => finder.claim(handle, &mut passed),
            None => finder.find(handle),
            found => found,
        };
        let Some((at, node)) = found else { return element };
        words[element] = node.fact(NUMBER);
        marks[element] = node.fact(MARKS) as u8;
        places[element] = RequestRef::own(at);
    }
    count
}

/// Request tables of all threads of a process.
#[derive(Debug, Default)]
pub struct RequestTables {
    /// Locked when a thread registers its table, or copies the list.
    all: Mutex<Vec<Arc<RequestTable>>>,
    count: AtomicUsize,
    /// How often requests have been [forgotten](Requests::forget_passing).
    forgotten: AtomicU64,
    /// True where several threads may be inside of MPI at once.
    at_once: bool,
}

impl RequestTables {
    /// An empty list of tables. `at_once`: several threads may be inside of MPI at once.
    pub fn new(at_once: bool) -> Self {
        Self { at_once, ..Self::default() }
    }
}

/// The live requests, as one thread has them.
#[derive(Debug)]
pub struct Requests {
    mine: Owner,
    slots: Slots,
    tables: Arc<RequestTables>,
    /// Its own place among all tables.
    place: usize,
    /// Tables met so far.
    met: Vec<Arc<RequestTable>>,
    /// Place of the table where a request was found last.
    last: usize,
    /// True where its calls must claim the requests they name: another thread may be given a handle before its old
    /// request's end is noted here, or one handle stands for several requests.
    claims: bool,
    forgotten: u64,
}

impl Requests {
    /// Empty tables for thread `number`.
    pub fn new(tables: Arc<RequestTables>, number: u32) -> Self {
        let mine = Owner::default();
        let forgotten = tables.forgotten.load(Ordering::Acquire);
        mine.set_noted(forgotten);
        let mut all = tables.all.lock().unwrap_or_else(PoisonError::into_inner);
        let place = all.len();
        all.push(mine.table().clone());
        tables.count.store(all.len(), Ordering::Release);
        drop(all);
        let claims = tables.at_once;
        Self { mine, slots: Slots::new(number), tables, place, met: Vec::new(), last: 0, claims, forgotten }
    }

    /// A new request behind `handle`, made by a call of the terminal `maker`, if that was recorded; returns its
    /// number ([`ampl_trace::request`]).
    #[inline]
    pub fn make(&mut self, handle: u64, request: Request, maker: Option<u32>) -> u64 {
        self.catch_up();
        let number = self.slots.take(maker);
        let (at, shares) = self.mine.put(handle, request.facts(number));
        if shares {
            self.claims |= self.shares(handle, at);
        }
        number
    }

    /// True where an earlier request shares the handle of the request `at`. Earlier ones whose handle is never shared
    /// are taken out: they ended unseen, in a callback or by the function's profiling name.
    #[cold]
    fn shares(&mut self, handle: u64, at: u32) -> bool {
        while let Some((eldest, node)) = self.mine.finder().find(handle).filter(|&(eldest, _)| eldest != at) {
            if node.fact(MARKS) as u8 & ALONE == 0 {
                return true;
            }
            self.slots.give(node.fact(NUMBER));
            self.mine.take(eldest, NUMBER);
        }
        false
    }

    /// Applies what other threads have left: dead requests, and requests to forget.
    #[inline(always)]
    fn catch_up(&mut self) {
        if self.mine.has_dead() || self.tables.forgotten.load(Ordering::Relaxed) != self.forgotten {
            self.caught_up();
        }
    }

    #[cold]
    fn caught_up(&mut self) {
        let Self { mine, slots, .. } = self;
        mine.bury(NUMBER, |number| slots.give(number));
        let forgotten = self.tables.forgotten.load(Ordering::Acquire);
        if forgotten == self.forgotten {
            return;
        }
        self.forgotten = forgotten;
        mine.retain(|node| {
            let stays = is_persistent(node);
            if stays {
                set_active(node, false);
            } else {
                slots.give(node.fact(NUMBER));
            }
            stays
        });
        mine.set_noted(forgotten);
    }

    /// Fills `named` with the requests that the handles of one call are about: `null_word` for `null`. The call may
    /// complete them if it `completes`, and then [ends](Requests::end) or [keeps](Requests::give_back) them.
    ///
    /// A request whose making was not seen gets its number here.
    #[inline]
    pub fn name(
        &mut self,
        handles: &[u64],
        (null, null_word): (u64, u64),
        completes: bool,
        named: &mut CallRequests,
    ) {
        self.give_back(named);
        self.catch_up();
        named.begin(handles.len());
        let claims = completes && self.claims;
        named.claimed = claims;
        let mut from = 0;
        while from < handles.len() {
            let (finder, parts) = (self.mine.finder(), named.parts(from));
            from += match claims {
                true => name_own::<true>(finder, &handles[from..], null, null_word, parts),
                false => name_own::<false>(finder, &handles[from..], null, null_word, parts),
            };
            if from < handles.len() {
                self.name_other(handles, completes, named, from);
                from += 1;
            }
        }
        named.put_together();
    }

    /// Names a request of another thread, one whose making was not seen, or one that the call names once more.
    #[cold]
    fn name_other(&mut self, handles: &[u64], completes: bool, named: &mut CallRequests, element: usize) {
        let handle = handles[element];
        if let Some(place) = self.visit(handle, completes) {
            let node = self.met[place.other()].node(place.at());
            named.set(element, node.fact(NUMBER), node.fact(MARKS) as u8, place);
            named.claimed |= completes;
            return;
        }
        if completes && let Some(first) = handles[..element].iter().position(|&other| other == handle) {
            let (number, mark, place) = (named.words()[first], named.marks()[first], named.places()[first]);
            if mark & ALONE != 0 {
                return named.set(element, number, mark, place);
            }
        }
        if !completes && let Some((at, node)) = self.mine.finder().claimed(handle) {
            return named.set(element, node.fact(NUMBER), node.fact(MARKS) as u8, RequestRef::own(at));
        }
        let number = self.slots.take(None);
        let [_, marks, sent, received] = Request::default().facts(number);
        // Its making was not seen: the status of a send holds whatever was there before.
        let mark = TELLS | SILENT;
        let (at, shares) = self.mine.put(handle, [number, marks | u64::from(mark), sent, received]);
        self.claims |= shares;
        if completes && self.claims {
            self.mine.finder().claim(handle, &mut (NO_HANDLE, 0));
            named.claimed = true;
        }
        named.set(element, number, mark, RequestRef::own(at));
    }

    /// A request behind `handle` on the table of another thread.
    #[cold]
    fn visit(&mut self, handle: u64, completes: bool) -> Option<RequestRef> {
        if self.met.len() < self.tables.count.load(Ordering::Acquire) {
            self.met.clone_from(&self.tables.all.lock().unwrap_or_else(PoisonError::into_inner));
        }
        // A request that is not found in the end counts as not seen being made: no thread waits for another for ever.
        for _ in 0..MOST_SEARCHES {
            let mut unsure = false;
            for step in 0..self.met.len() {
                let which = (self.last + step) % self.met.len();
                match self.visit_one(which, handle, completes) {
                    Visit::Found(at, times) => {
                        self.last = which;
                        return Some(RequestRef::others(which, at, times));
                    }
                    Visit::Unsure => unsure = true,
                    Visit::None => {}
                }
            }
            if !unsure {
                break;
            }
            yield_now();
        }
        None
    }

    fn visit_one(&self, which: usize, handle: u64, completes: bool) -> Visit {
        let table = &self.met[which];
        // Requests on a table whose owner has made no call since all was to be forgotten may be long gone.
        let forgotten = self.tables.forgotten.load(Ordering::Acquire);
        if which == self.place || which >= MOST_TABLES || table.noted() != forgotten {
            return Visit::None;
        }
        table.visit(handle, completes)
    }

    #[inline(always)]
    fn node(&self, place: RequestRef) -> Option<&Node> {
        match place.is_own() {
            true => Some(self.mine.table().node(place.at())),
            false => self.met.get(place.other()).map(|table| table.node(place.at())),
        }
    }

    /// The persistent request there has been started, or completed.
    pub fn set_active(&self, place: RequestRef, active: bool) {
        if let Some(node) = self.node(place).filter(|_| place.is_some()) {
            set_active(node, active);
        }
    }

    /// Bytes sent and received at each start of the request there.
    pub fn bytes(&self, place: RequestRef) -> (u64, u64) {
        self.node(place).map_or((0, 0), |node| (node.fact(SENT), node.fact(RECEIVED)))
    }

    /// The message partner of the request there, and whether it is under way.
    pub fn peer(&self, place: RequestRef) -> (Peer, bool) {
        let marks = self.node(place).map_or(0, |node| node.fact(MARKS));
        let peer = (marks >> 32) as u32;
        let peer = match marks >> 8 & 0xff {
            1 => Peer::Rank(peer),
            2 => Peer::Any(peer),
            _ => Peer::None,
        };
        (peer, marks as u8 & ACTIVE != 0)
    }

    /// The request at `place`, which is behind `handle`, is gone.
    #[inline]
    pub fn end(&mut self, place: RequestRef, handle: u64) {
        if !place.is_some() {
            return;
        }
        let there = if place.is_own() {
            let number = self.mine.take(place.at(), NUMBER);
            if let Some(number) = number {
                self.slots.give(number);
            }
            number.is_some()
        } else {
            self.met[place.other()].complete(place.at(), place.times())
        };
        if !there {
            self.end_another(handle);
        }
    }

    /// Ends those of a call's requests whose handles `after` it differ from those `before`; [gives
    /// back](Requests::give_back) the others.
    pub fn end_gone(&mut self, named: &mut CallRequests, before: &[u64], after: &[u64]) {
        let mut kept = false;
        for (&place, (&before, &after)) in named.places().iter().zip(before.iter().zip(after)) {
            if before == after {
                kept |= place.is_some();
            } else {
                self.end(place, before);
            }
        }
        if !kept {
            named.all_gone();
        }
        self.give_back(named);
    }

    /// Ends another request of `handle`: two threads have completed the same one of several that share it.
    #[cold]
    fn end_another(&mut self, handle: u64) {
        let own = self.mine.finder().find(handle).map(|(at, _)| at);
        if let Some(at) = own {
            if let Some(number) = self.mine.take(at, NUMBER) {
                self.slots.give(number);
            }
        } else if let Some(place) = self.visit(handle, true) {
            self.met[place.other()].complete(place.at(), place.times());
        }
    }

    /// Gives back what a call has named and not completed.
    #[inline]
    pub fn give_back(&self, named: &mut CallRequests) {
        if !std::mem::take(&mut named.claimed) {
            return;
        }
        for &place in named.places().iter().filter(|place| place.is_some()) {
            if place.is_own() {
                self.mine.release(place.at());
            } else {
                self.met[place.other()].leave(place.at(), place.times());
            }
        }
    }

    /// Forgets all but the persistent requests, and whether those are under way: on this thread now, on others at their
    /// next call.
    pub fn forget_passing(&mut self) {
        self.tables.forgotten.fetch_add(1, Ordering::AcqRel);
        self.catch_up();
    }

    /// True where no request that this thread has made is live.
    pub fn is_empty(&mut self) -> bool {
        self.catch_up();
        self.mine.len() == 0
    }
}

#[cfg(test)]
mod tests;
