//! Requests between their making and their completion.
//!
//! An implementation reuses a request handle as soon as the request is gone, so names for its
//! lifetime need every making and every end, in kept windows and others alike. MPICH even hands
//! out one handle for several operations that finished at once; they end in the order of making.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::slots::{Maker, Slots};
use crate::table::Table;

/// Whom a request's message is exchanged with, where that matters and is not known from the call that made it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Peer {
    /// Nobody.
    #[default]
    None,
    /// That rank of the world, at each start.
    Rank(u32),
    /// Whom the status names, a rank of the communicator of that number; 0 is the world's.
    Any(u32),
}

/// A live request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Its number: by which call it was made, and which of the live ones of that call it is; 0 for none.
    pub number: u64,
    /// Whether a status of it tells source and tag.
    pub receives: bool,
    /// Whether completion leaves it alive, inactive.
    pub persistent: bool,
    /// Whether it is under way: a persistent one from its start to its completion.
    pub active: bool,
    /// Bytes sent at each start of a persistent request.
    pub sent: u64,
    /// Bytes received at each start of a persistent request.
    pub received: u64,
    /// Its message partner.
    pub peer: Peer,
}

impl Request {
    /// What a null handle stands for.
    pub const NONE: Self = Self {
        number: 0,
        receives: false,
        persistent: false,
        active: false,
        sent: 0,
        received: 0,
        peer: Peer::None,
    };
}

/// The live requests of a process (or of its only MPI thread).
#[derive(Debug, Default)]
pub struct Requests {
    live: Table,
    /// Younger requests behind a handle that is live already. Queues stay when they run empty:
    /// the few handles that are shared will be again, and must not allocate each time.
    shared: FxHashMap<u64, VecDeque<Request>>,
    /// How many requests are in those queues.
    younger: usize,
    /// Mentions so far of shared handles in the call being named.
    mentions: FxHashMap<u64, usize>,
    slots: Slots,
}

impl Requests {
    /// A new request behind `handle`, made by `maker`, if that was recorded; returns its number.
    #[inline]
    pub fn make(&mut self, handle: u64, request: Request, maker: Option<Maker>) -> u64 {
        let number = self.slots.take(maker);
        let request = Request { number, ..request };
        if !self.live.insert(handle, request) {
            self.share(handle, request);
        }
        number
    }

    /// One more request behind a handle that is live already.
    #[cold]
    fn share(&mut self, handle: u64, request: Request) {
        self.shared.entry(handle).or_default().push_back(request);
        self.younger += 1;
    }

    /// The request that the mention number `mention` (from 0) of `handle` in one call is about.
    ///
    /// One that nobody was seen making gets its number here.
    #[inline]
    pub fn mentioned(&mut self, handle: u64, mention: usize) -> Request {
        let Some(&mut first) = self.live.get(handle) else {
            let number = self.make(handle, Request::NONE, None);
            return Request { number, ..Request::NONE };
        };
        if mention == 0 {
            return first;
        }
        let younger = mention.checked_sub(1).and_then(|index| self.shared.get(&handle)?.get(index).copied());
        younger.unwrap_or(first)
    }

    /// Appends to `named` the requests that the handles of one call are about, none for `null`.
    #[inline]
    pub fn name(&mut self, handles: &[u64], null: u64, named: &mut Vec<Request>) {
        if self.younger > 0 {
            return self.name_shared(handles, null, named);
        }
        let request = |&handle: &u64| if handle == null { Request::NONE } else { self.mentioned(handle, 0) };
        named.extend(handles.iter().map(request));
    }

    #[cold]
    fn name_shared(&mut self, handles: &[u64], null: u64, named: &mut Vec<Request>) {
        self.mentions.clear();
        for &handle in handles {
            if handle == null {
                named.push(Request::default());
                continue;
            }
            let mention = match self.shared.contains_key(&handle) {
                false => 0,
                true => {
                    let mentions = self.mentions.entry(handle).or_default();
                    *mentions += 1;
                    *mentions - 1
                }
            };
            named.push(self.mentioned(handle, mention));
        }
    }

    /// The persistent request behind `handle` has been started, or completed.
    pub fn set_active(&mut self, handle: u64, active: bool) {
        if let Some(request) = self.live.get(handle).filter(|request| request.persistent) {
            request.active = active;
        }
    }

    /// The request behind `handle` is gone.
    #[inline]
    pub fn free(&mut self, handle: u64) {
        let queue = if self.younger > 0 { self.shared.get_mut(&handle) } else { None };
        let gone = match queue.and_then(VecDeque::pop_front) {
            Some(request) => {
                self.younger -= 1;
                self.live.replace(handle, request)
            }
            None => self.live.remove(handle),
        };
        if let Some(gone) = gone {
            self.slots.give(gone.number);
        }
    }

    /// Forgets all but the persistent ones, and whether those are under way.
    pub fn forget_passing(&mut self) {
        let Self { live, shared, slots, .. } = self;
        live.retain_persistent(|gone| slots.give(gone.number));
        for queue in shared.values_mut() {
            queue.drain(..).for_each(|gone| slots.give(gone.number));
        }
        self.younger = 0;
    }

    /// Whether none is live.
    pub fn is_empty(&self) -> bool {
        self.live.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAKER: Option<Maker> = Some(Maker { thread: 0, terminal: 4 });
    const FIRST: u64 = 5 << 20;

    #[test]
    fn numbers_tell_who_made_a_request() {
        let mut requests = Requests::default();
        assert_eq!(requests.make(7, Request::default(), MAKER), FIRST);
        assert_eq!(requests.make(8, Request::default(), MAKER), FIRST + 1);
        assert_eq!(requests.mentioned(7, 0).number, FIRST);
        requests.free(7);
        assert_eq!(requests.make(9, Request { sent: 8, ..Request::default() }, MAKER), FIRST);
        assert_eq!((requests.mentioned(9, 0).number, requests.mentioned(9, 0).sent), (FIRST, 8));
        requests.free(8);
        requests.free(9);
        assert!(requests.is_empty());
        assert_ne!(requests.mentioned(9, 0).number, FIRST);
    }

    #[test]
    fn one_handle_may_stand_for_several_in_turn() {
        let mut requests = Requests::default();
        for slot in 0..3 {
            assert_eq!(requests.make(5, Request::default(), MAKER), FIRST + slot);
        }
        let mentioned: Vec<u64> = (0..3).map(|mention| requests.mentioned(5, mention).number).collect();
        assert_eq!(mentioned, [0, 1, 2].map(|slot| FIRST + slot));
        let mut named = Vec::new();
        requests.name(&[5, 0, 5, 5], 0, &mut named);
        let numbers: Vec<u64> = named.iter().map(|request| request.number).collect();
        assert_eq!(numbers, [FIRST, 0, FIRST + 1, FIRST + 2]);
        requests.free(5);
        assert_eq!(requests.mentioned(5, 0).number, FIRST + 1);
        requests.free(5);
        assert_eq!(requests.younger, 0);
        requests.free(5);
        assert!(requests.is_empty());
    }

    #[test]
    fn what_is_forgotten_gives_its_number_back() {
        let mut requests = Requests::default();
        requests.make(5, Request { persistent: true, ..Request::default() }, MAKER);
        requests.make(6, Request::default(), MAKER);
        requests.make(6, Request::default(), MAKER);
        requests.forget_passing();
        assert_eq!(requests.make(7, Request::default(), MAKER), FIRST + 1);
        assert_eq!(requests.make(7, Request::default(), MAKER), FIRST + 2);
    }
}
