//! Seeded permutations and coins: pure functions of a seed and of what is drawn for.
//!
//! # Source
//! Black & Rogaway, *Ciphers with Arbitrary Finite Domains* (2002): a Feistel network with cycle walking.

use rand::{Rng as _, RngCore, rand_core};

use crate::units::{Rank, WindowId};

/// The place of `rank` among all ranks there could be, in a seeded order: a permutation of [0, 2³²).
pub fn order(seed: u64, rank: Rank) -> u32 {
    feistel(hash(SAMPLE, &[seed]), u64::from(rank.0), 16) as u32
}

/// Key of an order of ranks: each key has an order of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// The recorded seed.
    pub seed: u64,
    /// Index of the group in the plan.
    pub group: u16,
    /// Stratum of the group.
    pub stratum: u16,
    /// Update interval.
    pub update: u64,
}

/// The position of member `place` of `members` in the order drawn for `key`, in [0, `members`).
///
/// A permutation of [0, `members`) for every key, computed in constant expected time and space;
/// every position of a member is exactly equally likely over keys.
pub fn position(key: Key, place: u64, members: u64) -> u64 {
    debug_assert!(place < members);
    if members < 2 {
        return 0;
    }
    let words = [key.seed, u64::from(key.group) << 16 | u64::from(key.stratum), key.update];
    let key = hash(ORDER, &words);
    // Half the bits of the smallest even number of bits that holds every place: the network
    // permutes at most four times as many numbers, so cycles leave quickly.
    let half = (u64::BITS - (members - 1).leading_zeros()).div_ceil(2);
    let mut walk = place;
    loop {
        walk = feistel(key, walk, half);
        if walk < members {
            break;
        }
    }
    // The network over a handful of numbers is not quite uniform; the rotation makes a single
    // member's position so, whatever the network did, and inclusion probabilities exact.
    let turn = (u128::from(hash(TURN, &words)) * u128::from(members)) >> 64;
    (walk + turn as u64) % members
}

/// A permutation of [0, 4^`half`), twelve rounds.
fn feistel(key: u64, number: u64, half: u32) -> u64 {
    const ROUNDS: u64 = 12;
    let mask = (1 << half) - 1;
    let (mut left, mut right) = (number >> half, number & mask);
    for round in 0..ROUNDS {
        let mixed = left ^ (hash(key, &[round, right]) >> (64 - half));
        (left, right) = (right, mixed & mask);
    }
    left << half | right
}

/// A number in [0, 1) for one rank and window, uniform over seeds, in steps of 2⁻⁵³.
pub fn coin(seed: u64, rank: Rank, window: WindowId) -> f64 {
    Generator(hash(COIN, &[seed, u64::from(rank.0), window.0])).random()
}

// Different uses of one seed must not see the same numbers: the texts are "order", "turn", "coin", "sample".
const ORDER: u64 = 0x6f72_6465_7200_0001;
const TURN: u64 = 0x7475_726e_0000_0002;
const COIN: u64 = 0x636f_696e_0000_0003;
const SAMPLE: u64 = 0x7361_6d70_6c65_0004;

/// 2⁶⁴ over the golden ratio, odd.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// A generator for the distributions of `rand`. It begins with the number that it is made of; the next ones are those of
/// SplitMix64.
struct Generator(u64);

impl RngCore for Generator {
    fn next_u32(&mut self) -> u32 {
        (self.next_u64() >> 32) as u32
    }

    fn next_u64(&mut self) -> u64 {
        let next = mix(self.0.wrapping_add(GOLDEN));
        std::mem::replace(&mut self.0, next)
    }

    fn fill_bytes(&mut self, bytes: &mut [u8]) {
        rand_core::impls::fill_bytes_via_next(self, bytes);
    }
}

/// 64 bits that look random, a pure function of the words.
///
/// # Source
/// The output function of SplitMix64 (Steele, Lea & Flood, OOPSLA 2014) absorbed word by word.
fn hash(domain: u64, words: &[u64]) -> u64 {
    words.iter().fold(mix(domain.wrapping_add(GOLDEN)), |state, &word| {
        mix(state.wrapping_add(GOLDEN).wrapping_mul(GOLDEN | 1) ^ mix(word.wrapping_add(GOLDEN)))
    })
}

fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::quantile::variance_ratio;

    fn key(seed: u64) -> Key {
        Key { seed, group: 0, stratum: 0, update: 1 }
    }

    #[test]
    fn every_order_is_a_permutation() {
        for members in [1, 2, 3, 5, 16, 17, 100, 1000] {
            for seed in 0..5 {
                let mut seen: Vec<u64> = (0..members).map(|i| position(key(seed), i, members)).collect();
                seen.sort_unstable();
                assert!(seen.iter().copied().eq(0..members), "{members} {seed}");
            }
        }
        let ranks = 1_000_000;
        assert!((0..ranks).step_by(997).all(|i| position(key(9), i, ranks) < ranks));
    }

    /// χ² of counts against equal expectations stays under its .9999 quantile.
    fn uniform(counts: &[u64]) -> bool {
        let expected = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
        let chi: f64 = counts.iter().map(|&c| (c as f64 - expected).powi(2) / expected).sum();
        let freedom = (counts.len() - 1) as f64;
        chi < freedom * variance_ratio(0.9999, freedom)
    }

    #[test]
    fn positions_and_pairs_are_uniform_over_seeds_and_updates() {
        for members in [2u64, 3, 4, 5, 7, 8, 33] {
            let mut single = vec![0; members as usize];
            let mut pairs = vec![0; (members * members) as usize];
            for seed in 0..40_000 {
                let key = Key { seed: seed / 2, group: 3, stratum: 0, update: seed % 2 };
                let (a, b) = (position(key, 0, members), position(key, members - 1, members));
                single[a as usize] += 1;
                pairs[(a * members + b) as usize] += 1;
            }
            assert!(uniform(&single), "{members}: {single:?}");
            let apart: Vec<u64> = (0..members * members)
                .filter(|cell| cell / members != cell % members)
                .map(|cell| pairs[cell as usize])
                .collect();
            assert!(members == 2 || uniform(&apart), "{members}: {apart:?}");
        }
    }
}
