//! A place for one request on a [table](super::request_table).

use Ordering::{AcqRel, Acquire, Relaxed};

use super::sync::{AtomicU32, AtomicU64, Ordering};

/// Stands for no node: the first is never used.
pub const NOWHERE: u32 = 0;
/// No request has this handle.
pub const NO_HANDLE: u64 = u64::MAX;

/// Mask of a node's stage, the two low bits of its state. The bits above count the requests that it has been.
pub const STAGE: u64 = 3;
/// Used by no request.
pub const FREE: u64 = 0;
/// A request that no call may be completing.
pub const LIVE: u64 = 1;
/// A visitor has completed it.
pub const DEAD: u64 = 2;
/// A call may be completing it.
pub const CLAIMED: u64 = 3;

/// Words that are kept of a request beside its handle.
pub const FACTS: usize = 4;

/// One request; a cache line of its own.
#[derive(Debug)]
#[repr(align(64))]
pub struct Node {
    /// Of the request.
    pub handle: AtomicU64,
    /// Stage in the low bits ([`STAGE`]), generation above.
    pub state: AtomicU64,
    /// Facts kept of the request.
    pub facts: [AtomicU64; FACTS],
    /// The one behind it in its list.
    pub next: AtomicU32,
    /// The owner's: the one before it in its list, or of those that are free.
    pub before: AtomicU32,
}

impl Node {
    /// One that has never been used.
    pub fn new() -> Self {
        Self {
            handle: AtomicU64::new(NO_HANDLE),
            state: AtomicU64::new(FREE),
            facts: std::array::from_fn(|_| AtomicU64::new(0)),
            next: AtomicU32::new(NOWHERE),
            before: AtomicU32::new(NOWHERE),
        }
    }

    /// Fact number `which`.
    #[inline(always)]
    pub fn fact(&self, which: usize) -> u64 {
        self.facts[which].load(Relaxed)
    }

    /// Changes fact number `which`; called only by the request's current user.
    #[inline(always)]
    pub fn set_fact(&self, which: usize, fact: u64) {
        self.facts[which].store(fact, Relaxed);
    }

    /// Its stage, as the owner knows it.
    #[inline(always)]
    pub fn stage(&self) -> u64 {
        self.state.load(Relaxed) & STAGE
    }

    /// How many requests it has been, in 16 bits.
    pub fn times(state: u64) -> u16 {
        (state >> 2) as u16
    }

    /// Moves the node from one stage to another as a visitor, unless it has changed.
    pub fn moves(&self, times: u16, from: u64, to: u64) -> bool {
        let state = self.state.load(Acquire);
        state & STAGE == from
            && Self::times(state) == times
            && self.state.compare_exchange(state, state & !STAGE | to, AcqRel, Relaxed).is_ok()
    }
}
