//! A request's number in signatures: the call that made it, and its slot among the live requests of that call.

/// Bits for the slot.
pub const SLOT_BITS: u32 = 20;
/// Bits below those of the thread.
pub const THREAD_AT: u32 = 48;
/// Number of threads that fit a request's number.
const THREADS: u32 = 1 << 14;
const TERMINALS: u32 = 1 << 27;
/// Bit that is set where the call that made the request was not seen, or does not fit; the other bits identify it.
pub const UNSEEN: u64 = 1 << 62;
/// Bits of such a number below those of the thread that has given it.
const UNSEEN_BITS: u32 = 40;

/// The number of the first request that a call of `terminal` makes on `thread`; `None` where there is no room.
#[inline]
pub fn origin(thread: u32, terminal: u32) -> Option<u64> {
    (thread < THREADS && terminal < TERMINALS)
        .then(|| u64::from(thread) << THREAD_AT | (u64::from(terminal) + 1) << SLOT_BITS)
}

/// The number of the request that a call of `terminal` on `thread` has made, by the word in its signature: a slot, or
/// a whole number that does not depend on the call.
pub fn made(thread: u32, terminal: u32, told: u64) -> u64 {
    match origin(thread, terminal) {
        Some(origin) if told >> SLOT_BITS == 0 => origin | told,
        _ => told,
    }
}

/// Word in the signature of the call that has made the request: see [`made`].
#[inline]
pub fn told(number: u64) -> u64 {
    if number & UNSEEN == 0 { slot(number) } else { number }
}

/// The number of a request whose making was not seen, of those that `thread` has met.
pub fn unseen(thread: u32, number: u64) -> u64 {
    UNSEEN | u64::from(thread) << UNSEEN_BITS | number & ((1 << UNSEEN_BITS) - 1)
}

/// Number that [`unseen`] was given; `None` for other requests.
#[inline]
pub fn unseen_number(number: u64) -> Option<u64> {
    (number & UNSEEN != 0).then_some(number & ((1 << UNSEEN_BITS) - 1))
}

/// The slot in a request's number.
#[inline]
pub fn slot(number: u64) -> u64 {
    number & ((1 << SLOT_BITS) - 1)
}

/// The terminal in it, unless it is [unseen](UNSEEN); `None` in that of no request.
#[inline]
pub fn terminal(number: u64) -> Option<u64> {
    (number >> SLOT_BITS & ((1 << (THREAD_AT - SLOT_BITS)) - 1)).checked_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_maker_tells_what_others_call_its_request() {
        for number in [origin(0, 0).unwrap(), origin(THREADS - 1, TERMINALS - 1).unwrap() | 77] {
            let (thread, terminal) = ((number >> THREAD_AT) as u32, terminal(number).unwrap() as u32);
            assert_eq!(made(thread, terminal, told(number)), number);
            assert_eq!(unseen_number(number), None);
        }
        let number = unseen(THREADS, 5);
        assert_eq!((made(3, 4, told(number)), unseen_number(number)), (number, Some(5)));
        assert_ne!(number, unseen(0, 5));
        assert_eq!((origin(THREADS, 0), origin(0, TERMINALS)), (None, None));
    }
}
