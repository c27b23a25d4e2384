//! The longest exact repetition of a sequence, found by comparing hashes of its pieces.

use super::sequence::{Part, Sequence, Slice};

/// Share of a sequence that a repetition must have.
const LEAST_SHARE: f64 = 0.5;
/// Share of a sequence from which on a part is looked into.
const LARGE: f64 = 0.3;
/// A prime; hashes are polynomials modulo it.
const PRIME: u64 = (1 << 61) - 1;
const BASE: u64 = 0x1234_5678_9ABC_DEF1 % PRIME;

/// A repetition.
#[derive(Clone, Debug)]
pub struct Repetition {
    /// Number of times.
    pub times: u64,
    /// The sequence before it, the repetition, and what follows.
    pub slices: [Slice; 3],
}

/// A hash of calls, and the power of the base that their number gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hash {
    value: u64,
    power: u64,
}

const EMPTY: Hash = Hash { value: 0, power: 1 };

fn multiply(one: u64, other: u64) -> u64 {
    (u128::from(one) * u128::from(other) % u128::from(PRIME)) as u64
}

impl Hash {
    fn then(self, next: Self) -> Self {
        let value = (multiply(self.value, next.power) + next.value) % PRIME;
        Self { value, power: multiply(self.power, next.power) }
    }

    fn repeat(self, mut times: u64) -> Self {
        let (mut sum, mut power) = (EMPTY, self);
        while times > 0 {
            if times & 1 == 1 {
                sum = sum.then(power);
            }
            power = power.then(power);
            times >>= 1;
        }
        sum
    }

    /// The hash of what follows `first` in what this is the hash of.
    fn without(self, first: Self, power: u64) -> Self {
        let value = (self.value + PRIME - multiply(first.value, power)) % PRIME;
        Self { value, power }
    }
}

struct Hashes<'a> {
    sequence: &'a Sequence,
    whole: &'a Slice,
    of: Vec<Hash>,
    lengths: Vec<u64>,
}

/// The exact repetition that has the most of `whole`, at least half; three times at least.
pub fn longest(sequence: &Sequence, whole: &Slice) -> Option<Repetition> {
    let hashes = Hashes::new(sequence, whole);
    let length = hashes.length(whole);
    let mut candidates = Vec::new();
    hashes.candidates(whole, 0, LARGE * length as f64, &mut candidates);
    let mut best: Option<(u64, u64, u64)> = None;
    for (offset, period) in candidates {
        let (begin, end) = hashes.extent(offset, period, length);
        let better = best.is_none_or(|(from, to, old)| (end - begin, old) > (to - from, period));
        if (end - begin) / period >= 3 && (end - begin) as f64 >= LEAST_SHARE * length as f64 && better {
            best = Some((begin, end, period));
        }
    }
    let (begin, end, period) = best?;
    let times = (end - begin) / period;
    // A part of one more at the end is behind it.
    let (rest, after) = hashes.split(whole, begin + times * period);
    let (before, inside) = hashes.split(&rest, begin);
    Some(Repetition { times, slices: [before, inside, after] })
}

impl<'a> Hashes<'a> {
    fn new(sequence: &'a Sequence, whole: &'a Slice) -> Self {
        let mut hashes = Self { sequence, whole, of: Vec::new(), lengths: Vec::new() };
        for part in 0..sequence.parts_in_all() as Part {
            let parts = sequence.parts(part);
            let (hash, length) = match parts {
                [] => (Hash { value: u64::from(part) + 1, power: BASE }, 1),
                _ => (hashes.hash(parts), hashes.length(parts)),
            };
            hashes.of.push(hash);
            hashes.lengths.push(length);
        }
        hashes
    }

    fn hash(&self, parts: &[(Part, u64)]) -> Hash {
        parts.iter().fold(EMPTY, |sum, &(part, times)| sum.then(self.of[part as usize].repeat(times)))
    }

    fn length(&self, parts: &[(Part, u64)]) -> u64 {
        parts.iter().fold(0, |sum: u64, &(part, times)| {
            sum.saturating_add(self.lengths[part as usize].saturating_mul(times))
        })
    }

    /// Repetitions that parts show, of at least so many calls: where they begin, and calls of one.
    fn candidates(&self, parts: &[(Part, u64)], mut offset: u64, least: f64, found: &mut Vec<(u64, u64)>) {
        for &(part, times) in parts {
            let length = self.lengths[part as usize];
            if times > 1 && (length.saturating_mul(times)) as f64 >= least {
                found.push((offset, length));
            }
            if length as f64 >= least {
                self.candidates(self.sequence.parts(part), offset, least, found);
            }
            offset += length * times;
        }
    }

    /// Hash of the first `length` calls.
    fn first(&self, mut length: u64) -> Hash {
        let (mut parts, mut sum) = (&self.whole[..], EMPTY);
        'down: loop {
            for &(part, times) in parts {
                let own = self.lengths[part as usize];
                let copies = times.min(length / own);
                sum = sum.then(self.of[part as usize].repeat(copies));
                length -= copies * own;
                if copies < times {
                    if length == 0 {
                        return sum;
                    }
                    parts = self.sequence.parts(part);
                    continue 'down;
                }
            }
            return sum;
        }
    }

    fn piece(&self, begin: u64, end: u64) -> Hash {
        let power = Hash { value: 0, power: BASE }.repeat(end - begin).power;
        self.first(end).without(self.first(begin), power)
    }

    /// The longest piece around `offset` whose calls are those `period` later, as far as there are such.
    fn extent(&self, offset: u64, period: u64, length: u64) -> (u64, u64) {
        let same = |begin: u64, end: u64| self.piece(begin, end) == self.piece(begin + period, end + period);
        // The largest number up to `most` for which it holds.
        let most_with = |most: u64, holds: &dyn Fn(u64) -> bool| {
            let (mut low, mut high) = (0, most);
            while low < high {
                let middle = high - (high - low) / 2;
                match holds(middle) {
                    true => low = middle,
                    false => high = middle - 1,
                }
            }
            low
        };
        let more = most_with(length - period - offset, &|more| same(offset, offset + more));
        let less = most_with(offset, &|less| same(offset - less, offset));
        (offset - less, offset + more + period)
    }

    /// `slice` before and from call `length` on.
    fn split(&self, slice: &[(Part, u64)], mut length: u64) -> (Slice, Slice) {
        let (mut before, mut after) = (Slice::new(), Slice::new());
        for &(part, times) in slice {
            let own = self.lengths[part as usize];
            let copies = times.min(length / own);
            length -= copies * own;
            if copies > 0 {
                before.push((part, copies));
            }
            if copies == times {
                continue;
            }
            let mut rest = times - copies;
            if length > 0 {
                let (inner, behind) = self.split(self.sequence.parts(part), length);
                before.extend(inner);
                after.extend(behind);
                rest -= 1;
                length = 0;
            }
            if rest > 0 {
                after.push((part, rest));
            }
        }
        (before, after)
    }
}
