//! Requests between their making and their completion.
//!
//! An implementation reuses a request handle as soon as the request is gone, so a name for its
//! lifetime needs every making and every end, in kept windows and others alike. MPICH even hands
//! out one handle for several operations that finished at once; they end in the order of making.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

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
    /// Its number: one per lifetime, in order of making, from 1.
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
    made: u64,
}

impl Requests {
    /// A new request behind `handle`, with the next number; returns that number.
    #[inline]
    pub fn make(&mut self, handle: u64, request: Request) -> u64 {
        self.made += 1;
        let request = Request { number: self.made, ..request };
        if !self.live.insert(handle, request) {
            self.share(handle, request);
        }
        self.made
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
            let number = self.make(handle, Request::NONE);
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
        match queue.and_then(VecDeque::pop_front) {
            Some(request) => {
                self.younger -= 1;
                self.live.replace(handle, request);
            }
            None => self.live.remove(handle),
        }
    }

    /// Forgets all but the persistent ones, and whether those are under way.
    pub fn forget_passing(&mut self) {
        self.live.retain_persistent();
        for queue in self.shared.values_mut() {
            queue.clear();
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

    #[test]
    fn numbers_are_per_lifetime() {
        let mut requests = Requests::default();
        assert_eq!(requests.make(7, Request::default()), 1);
        assert_eq!(requests.mentioned(7, 0).number, 1);
        requests.free(7);
        assert_eq!(requests.make(7, Request { sent: 8, ..Request::default() }), 2);
        assert_eq!((requests.mentioned(7, 0).number, requests.mentioned(7, 0).sent), (2, 8));
        requests.free(7);
        assert!(requests.is_empty());
        assert_eq!(requests.mentioned(9, 0).number, 3);
    }

    #[test]
    fn one_handle_may_stand_for_several_in_turn() {
        let mut requests = Requests::default();
        for number in 1..=3 {
            assert_eq!(requests.make(5, Request::default()), number);
        }
        let mentioned: Vec<u64> = (0..3).map(|mention| requests.mentioned(5, mention).number).collect();
        assert_eq!(mentioned, [1, 2, 3]);
        let mut named = Vec::new();
        requests.name(&[5, 0, 5, 5], 0, &mut named);
        assert_eq!(named.iter().map(|request| request.number).collect::<Vec<_>>(), [1, 0, 2, 3]);
        requests.free(5);
        assert_eq!(requests.mentioned(5, 0).number, 2);
        requests.free(5);
        assert_eq!(requests.younger, 0);
        requests.free(5);
        assert!(requests.is_empty());
    }
}
