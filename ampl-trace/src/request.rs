//! A request's number in signatures: by which call it was made, and which of the live ones of that call it is.

/// Bits for the slot.
pub const SLOT_BITS: u32 = 20;
/// Bits below those of the thread.
pub const THREAD_AT: u32 = 48;
/// A thread's number in a request's: those beyond share.
const THREADS: u64 = (1 << 14) - 1;
/// Set where nobody was seen making the request; the other bits tell it from others.
pub const UNSEEN: u64 = 1 << 62;

/// The number of the request in `slot` of those that a call of `terminal` makes on `thread`.
pub fn number(thread: u32, terminal: u32, slot: u64) -> u64 {
    (u64::from(thread) & THREADS) << THREAD_AT | (u64::from(terminal) + 1) << SLOT_BITS | slot
}

/// The slot in a request's number.
pub fn slot(number: u64) -> u64 {
    number & ((1 << SLOT_BITS) - 1)
}

/// The terminal in it, unless it is [unseen](UNSEEN); `None` in that of no request.
pub fn terminal(number: u64) -> Option<u64> {
    (number >> SLOT_BITS & ((1 << (THREAD_AT - SLOT_BITS)) - 1)).checked_sub(1)
}

/// The thread in it.
pub fn thread(number: u64) -> u64 {
    number >> THREAD_AT & THREADS
}
