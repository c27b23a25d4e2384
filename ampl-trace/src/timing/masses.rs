//! What is known of magnitudes beside trees of counters: the values themselves, of which one tells about
//! its neighbours too.

use std::cell::OnceCell;

use super::mixing::{OTHERS, odds};
use super::scale::GROUPS;
use super::trees::{HALF, NEAR, NODES};

/// Latest values of a signature that are remembered.
pub const RECENT: usize = 32;
/// How much a value says of bins so far from it, near and far.
const NARROW: [u32; 2] = [2, 1];
const WIDE: [u32; 6] = [6, 5, 4, 3, 2, 1];

/// How often each group occurred.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: [u16; GROUPS],
    all: u32,
}

impl Histogram {
    /// Nothing seen.
    pub const NEW: Self = Self { counts: [0; GROUPS], all: 0 };
    /// What one is counted as, and how much there may be.
    const ONE: u16 = 4;
    const MOST: u32 = 1 << 14;

    /// One more.
    pub fn count(&mut self, group: u8) {
        self.counts[usize::from(group)] += Self::ONE;
        self.all += u32::from(Self::ONE);
        if self.all >= Self::MOST {
            self.counts.iter_mut().for_each(|count| *count -= *count / 2);
            self.all = self.counts.iter().map(|&count| u32::from(count)).sum();
        }
    }
}

/// Sums of what lies below each distance.
#[derive(Clone, Copy, Debug)]
pub struct Masses([u32; GROUPS + 1]);

impl Masses {
    /// Those of some distances, each with what it says of its neighbours.
    fn around(distances: impl Iterator<Item = u8>, kernel: &[u32]) -> Self {
        let mut mass = [0u32; GROUPS + 1];
        for distance in distances {
            let at = usize::from(distance);
            mass[at + 1] += kernel[0];
            for (far, &much) in kernel.iter().enumerate().skip(1) {
                mass[at.saturating_sub(far) + 1] += much;
                mass[(at + far).min(GROUPS - 1) + 1] += much;
            }
        }
        Self::summed(mass)
    }

    /// Those of a histogram of groups, the first of which is at the distance `first`.
    pub fn of(histogram: &Histogram, first: u8, kernel: &[u32]) -> Self {
        let mut mass = [0u32; GROUPS + 1];
        for (group, &count) in histogram.counts.iter().enumerate().filter(|&(_, &count)| count > 0) {
            let at = usize::from((group as u8).wrapping_add(first));
            mass[at + 1] += u32::from(count) * kernel[0];
            for (far, &much) in kernel.iter().enumerate().skip(1) {
                mass[at.saturating_sub(far) + 1] += u32::from(count) * much;
                mass[(at + far).min(GROUPS - 1) + 1] += u32::from(count) * much;
            }
        }
        Self::summed(mass)
    }

    fn summed(mut mass: [u32; GROUPS + 1]) -> Self {
        let mut sum = 0;
        for mass in &mut mass {
            sum += *mass;
            *mass = sum;
        }
        Self(mass)
    }

    /// That something between `from` and `to` is not below `middle`.
    fn upper(&self, from: usize, middle: usize, to: usize) -> i32 {
        odds(self.between(middle, to), self.between(from, middle))
    }

    fn between(&self, from: usize, to: usize) -> u32 {
        self.0[to] - self.0[from]
    }
}

/// Distances that are near.
const NEAR_FROM: usize = (NEAR as usize) << HALF;
const NEAR_TO: usize = NEAR_FROM + NODES;

/// The same of distances that are near only, and how much there is of all.
#[derive(Clone, Copy, Debug)]
struct Near {
    sums: [u32; NODES + 1],
    all: u32,
}

impl Near {
    /// That of some distances, each so often, of all of which there are so many.
    fn around(distances: impl Iterator<Item = (u8, u32)>, all: u32, kernel: &[u32]) -> Self {
        let mut sums = [0; NODES + 1];
        for (distance, times) in distances {
            for (far, &much) in kernel.iter().enumerate() {
                let mut add = |at: usize| {
                    if let Some(mass) = at.checked_sub(NEAR_FROM).and_then(|at| sums[1..].get_mut(at)) {
                        *mass += times * much;
                    }
                };
                add(usize::from(distance) + far);
                if far > 0 {
                    add(usize::from(distance).wrapping_sub(far));
                }
            }
        }
        let mut sum = 0;
        for mass in &mut sums {
            sum += *mass;
            *mass = sum;
        }
        Self { sums, all: all * (2 * kernel.iter().sum::<u32>() - kernel[0]) }
    }
}

/// What is known of the next distance.
#[derive(Debug)]
pub struct Others<'a> {
    recent: &'a [u8],
    like: &'a Histogram,
    first: u8,
    near: [Near; OTHERS],
    /// Of all distances, made when asked for.
    whole: OnceCell<[Masses; OTHERS]>,
}

impl<'a> Others<'a> {
    /// From the latest groups of the signature and groups of its like, the first of which is at the
    /// distance `first`.
    pub fn new(recent: &'a [u8], like: &'a Histogram, first: u8) -> Self {
        let distances = || recent.iter().map(|&group| (group.wrapping_add(first), 1));
        let around = (NEAR_FROM - 1..=NEAR_TO).map(|distance| distance as u8);
        let groups =
            around.map(|distance| (distance, like.counts[usize::from(distance.wrapping_sub(first))].into()));
        let near = [
            Near::around(distances(), recent.len() as u32, &NARROW),
            Near::around(distances(), recent.len() as u32, &WIDE),
            Near::around(groups, like.all, &NARROW),
        ];
        Self { recent, like, first, near, whole: OnceCell::new() }
    }

    /// That it is near.
    pub fn near(&self) -> [i32; OTHERS] {
        self.near.each_ref().map(|masses| {
            let near = masses.sums[NODES].min(masses.all);
            odds(near, masses.all - near)
        })
    }

    /// That the first half of one that is not near is in the upper half of those below the node `at` of
    /// that `level`.
    pub fn upper_first(&self, level: usize, at: usize) -> [i32; OTHERS] {
        let [from, middle, to] = span(level, at).map(|half| half << HALF);
        self.whole().each_ref().map(|masses| {
            let among = |from: usize, to: usize| {
                let [near_from, near_to] = [NEAR_FROM, NEAR_TO].map(|edge| edge.clamp(from, to));
                masses.between(from, to) - masses.between(near_from, near_to)
            };
            odds(among(middle, to), among(from, middle))
        })
    }

    /// The same of its second half, given the first.
    pub fn upper_second(&self, first: u8, level: usize, at: usize) -> [i32; OTHERS] {
        let [from, middle, to] = span(level, at);
        if first == NEAR {
            return self.near.each_ref().map(|masses| {
                let sum = |at: usize| masses.sums[at];
                odds(sum(to) - sum(middle), sum(middle) - sum(from))
            });
        }
        let [from, middle, to] = [from, middle, to].map(|half| half + (usize::from(first) << HALF));
        self.whole().each_ref().map(|masses| masses.upper(from, middle, to))
    }

    fn whole(&self) -> &[Masses; OTHERS] {
        self.whole.get_or_init(|| {
            let distances = || self.recent.iter().map(|group| group.wrapping_add(self.first));
            [
                Masses::around(distances(), &NARROW),
                Masses::around(distances(), &WIDE),
                Masses::of(self.like, self.first, &NARROW),
            ]
        })
    }
}

/// What is known of the first group of a signature.
#[derive(Debug)]
pub struct First([Masses; OTHERS]);

impl First {
    /// From groups of its like and of all.
    pub fn new(like: &Histogram, all: &Histogram) -> Self {
        Self([Masses::of(like, 0, &NARROW), Masses::of(like, 0, &WIDE), Masses::of(all, 0, &WIDE)])
    }

    /// That its first half is in the upper half of those below the node `at` of that `level`.
    pub fn upper_first(&self, level: usize, at: usize) -> [i32; OTHERS] {
        let [from, middle, to] = span(level, at).map(|half| half << HALF);
        self.0.each_ref().map(|masses| masses.upper(from, middle, to))
    }

    /// The same of its second half, given the first.
    pub fn upper_second(&self, first: u8, level: usize, at: usize) -> [i32; OTHERS] {
        let [from, middle, to] = span(level, at).map(|half| half + (usize::from(first) << HALF));
        self.0.each_ref().map(|masses| masses.upper(from, middle, to))
    }
}

/// First, middle and end of the halves below a node of a tree.
fn span(level: usize, at: usize) -> [usize; 3] {
    let wide = NODES >> level;
    let from = (at - (1 << level)) * wide;
    [from, from + wide / 2, from + wide]
}
