//! `agent.max_memory`: bytes of a node that ampl takes in the processes of all ranks there.
//!
//! Journals of other ranks are seen in their directory. What ampl allocates in other processes is not: it is taken to be
//! as much as in this one. Times of calls go at half of the limit, calls at seven eighths.

/// Bytes that ampl may take of a node.
#[derive(Clone, Copy, Debug)]
pub struct MemoryLimit {
    /// Bytes.
    pub most: u64,
    /// Bytes that ampl has allocated in this process besides its journal.
    pub allocated: fn() -> u64,
    /// Ranks of the job on this node, as far as they are known; at least 1.
    pub ranks: u64,
}

/// Purpose of more memory, in the order of giving up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Times of calls.
    Times,
    /// Calls.
    Calls,
    /// Windows, and what is missing.
    Summaries,
}

/// Bytes that ampl has taken, as this process sees it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Taken {
    /// Bytes of the journals that are seen.
    pub journals: u64,
    /// Number of these journals.
    pub seen: u64,
    /// Bytes of this process that nobody else sees.
    pub private: u64,
}

impl MemoryLimit {
    /// Bytes up to which memory is taken for `purpose`.
    fn up_to(&self, purpose: Purpose) -> u64 {
        match purpose {
            Purpose::Times => self.most / 2,
            Purpose::Calls => self.most - self.most / 8,
            Purpose::Summaries => self.most,
        }
    }

    /// True where `bytes` more may be taken for `purpose`.
    pub fn allows(&self, taken: Taken, purpose: Purpose, bytes: u64) -> bool {
        let private = taken.private.saturating_add((self.allocated)());
        let of_all = private.saturating_mul(self.ranks.max(taken.seen));
        let all = taken.journals.saturating_add(of_all).saturating_add(bytes);
        all <= self.up_to(purpose)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_go_first_and_summaries_last() {
        let limit = MemoryLimit { most: 1000, allocated: || 10, ranks: 4 };
        let taken = |journals| Taken { journals, seen: 2, private: 5 };
        let most = |purpose| (0..1000).rev().find(|&journals| limit.allows(taken(journals), purpose, 7));
        // Four ranks with 15 bytes each, and 7 more.
        let found = [Purpose::Times, Purpose::Calls, Purpose::Summaries].map(most);
        assert_eq!(found, [Some(433), Some(808), Some(933)]);
        // More journals than ranks that are known.
        let five = Taken { seen: 5, ..taken(0) };
        assert!(limit.allows(five, Purpose::Times, 425) && !limit.allows(five, Purpose::Times, 426));
        assert!(!limit.allows(taken(u64::MAX), Purpose::Summaries, u64::MAX));
    }
}
