//! Counts of collectives of which a run has only means.
//!
//! Ranks that know of each other how much they send and receive in all agree on how much goes from each to each.

/// Sums over a rank's arguments of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Own {
    /// Bytes that the rank sends to all.
    pub sends: u64,
    /// Bytes that it receives from all.
    pub receives: u64,
    /// Bytes of which all that it sends and receives are multiples.
    pub unit: u64,
}

/// Sums of all ranks of a call, in the order of their ranks.
#[derive(Clone, Debug)]
pub struct Shares {
    ranks: Vec<Own>,
    unit: u128,
    total: u128,
}

/// Least number of bytes that is a multiple of both; largest number where there is none.
pub fn common_unit(one: u64, other: u64) -> u64 {
    let (mut divisor, mut rest) = (one, other);
    while rest > 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    (one / divisor.max(1)).saturating_mul(other)
}

impl Shares {
    /// The shares of `ranks`.
    pub fn new(ranks: Vec<Own>) -> Self {
        let unit = ranks.iter().map(|own| own.unit.max(1)).fold(1, common_unit);
        let total = ranks.iter().map(|own| u128::from(own.sends)).sum();
        Self { ranks, unit: unit.into(), total }
    }

    /// Sums of that rank.
    pub fn of(&self, rank: usize) -> Own {
        self.ranks[rank]
    }

    /// Bytes from one rank to another: `sends * receives / all bytes`, rounded to a multiple of every rank's unit.
    ///
    /// Summed over receivers it is what the rank sends, and over senders what it receives, up to rounding. Both ends
    /// compute the same.
    pub fn between(&self, from: usize, to: usize) -> u64 {
        let product = u128::from(self.ranks[from].sends) * u128::from(self.ranks[to].receives);
        let exact = product.checked_div(self.total).unwrap_or(0);
        let rounded = (exact + self.unit / 2) / self.unit * self.unit;
        rounded.try_into().unwrap_or(0)
    }
}

/// The number at place `at` of `count` whole numbers that add up to `sum` and differ by at most 1.
pub fn even(sum: u64, count: u64, at: u64) -> u64 {
    let count = count.max(1);
    sum / count + u64::from(at < sum % count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ranks_send_and_receive_in_all_stays() {
        let own = |sends, receives| Own { sends, receives, unit: 4 };
        let shares = Shares::new(vec![own(4000, 8000), own(12000, 4000), own(0, 4000)]);
        let (to, from): (Vec<u64>, Vec<u64>) = (0..3)
            .map(|rank| {
                let to = (0..3).map(|other| shares.between(rank, other)).sum::<u64>();
                (to, (0..3).map(|other| shares.between(other, rank)).sum::<u64>())
            })
            .unzip();
        assert_eq!((to, from), (vec![4000, 12000, 0], vec![8000, 4000, 4000]));
    }

    #[test]
    fn shares_are_whole_elements_of_every_rank() {
        let own = |sends, unit| Own { sends, receives: sends, unit };
        let shares = Shares::new(vec![own(100, 4), own(50, 6), own(31, 1)]);
        for (from, to) in (0..9).map(|at| (at / 3, at % 3)) {
            assert_eq!(shares.between(from, to) % 12, 0, "{from} {to}");
        }
        let nothing = Shares::new(vec![own(0, 8), own(0, 0)]);
        assert_eq!(nothing.between(0, 1), 0);
        let extreme = Shares::new(vec![own(u64::MAX, u64::MAX), own(u64::MAX, u64::MAX - 1)]);
        assert!(extreme.between(0, 1).is_multiple_of(u64::MAX));
    }

    #[test]
    fn even_numbers_add_up() {
        let all = [0, 1, 2, 3].map(|at| even(10, 4, at));
        assert_eq!((all, all.iter().sum::<u64>()), ([3, 3, 2, 2], 10));
        assert_eq!(even(0, 0, 0), 0);
    }
}
