//! The ways of all calls of a place by those of samples.

use rustc_hash::FxHashMap;

use super::refined::around;
use crate::totals::{FIRST_SAMPLES, Turns};

/// Share of a place's calls that must be around as a sample's are.
const KNOWN: f64 = 0.9;
/// Farthest calls around one that are looked at.
const FARTHEST: usize = 8;
/// Longest turn that numbers tell: two are among the first calls.
const LONGEST: u64 = 5;
/// Way of the first calls, which come by others than those behind them.
pub(super) const FIRST: u8 = 16;
/// Way of calls around which is what is around no sample.
const UNSEEN: u8 = 17;

/// Ways of a shape's calls.
pub(super) struct Ways {
    /// Calls before those that come in turns.
    pub(super) first: u64,
    /// Numbers and labels of the samples behind them.
    pub(super) samples: Vec<(u64, u8)>,
}

/// The ways of all calls of a shape.
pub(super) struct Told {
    pub(super) labels: Vec<u8>,
    /// True where nothing tells that of the last call.
    pub(super) is_open: bool,
    /// True where nothing but their numbers tells them.
    pub(super) is_by_number: bool,
}

impl Ways {
    /// The ways that `calls` calls of a shape came by; `None` where they came by one, but for the first ones.
    pub(super) fn of(turns: Turns, calls: u64) -> Option<Self> {
        let labels = turns.labels(calls)?;
        let (before, last) = (|at: usize| &labels[..at], |at: usize| &labels[at..]);
        let disjoint =
            |at: &usize| before(*at).iter().all(|one| last(*at).iter().all(|other| one.1 != other.1));
        let most = labels.iter().take_while(|of| of.0 < FIRST_SAMPLES).count();
        let first = (0..=most.min(labels.len().saturating_sub(1))).rev().find(disjoint)?;
        let kinds =
            |of: &[(u64, u8)]| of.iter().map(|of| of.1).collect::<std::collections::BTreeSet<u8>>().len();
        let samples = last(first).to_vec();
        (kinds(&samples) > 1 || kinds(before(first)) > 1).then_some(Self { first: first as u64, samples })
    }
}

/// The labels of the calls at the places `at`, where something tells them by those of the samples.
pub(super) fn told(sequence: &[u32], at: &[usize], ways: &Ways) -> Option<Told> {
    let (_, label) = *ways.samples.first()?;
    if ways.samples.iter().all(|of| of.1 == label) {
        return by(at.len(), ways, &|_| Vec::new());
    }
    let around = |place: usize, before: usize, after: usize| around(sequence, place, before, after);
    let by_calls = |before: usize, after: usize| {
        by(at.len(), ways, &|number| around(at[number as usize - 1], before, after))
    };
    let sides = |far: usize| [(0, far), (far, 0), (far, far)];
    let calls = (1..=FARTHEST).flat_map(sides).find_map(|(before, after)| by_calls(before, after));
    let in_turn = |turn: &u64| ways.first + 2 * turn <= FIRST_SAMPLES;
    let numbers = || {
        (1..=LONGEST)
            .filter(in_turn)
            .find_map(|turn| by(at.len(), ways, &|number| vec![((number - 1 - ways.first) % turn) as u32]))
    };
    calls.or_else(|| numbers().map(|told| Told { is_by_number: true, ..told }))
}

/// The labels of calls by a `key` of their numbers, a list; `None` where it is the same for samples of different labels, or
/// those of many calls are not among those of samples. These have the label whose keys begin most like their own.
fn by(calls: usize, ways: &Ways, key: &dyn Fn(u64) -> Vec<u32>) -> Option<Told> {
    let mut known: FxHashMap<Vec<u32>, u8> = FxHashMap::default();
    for &(number, label) in &ways.samples {
        if *known.entry(key(number)).or_insert(label) != label {
            return None;
        }
    }
    let same =
        |one: &[u32], other: &[u32]| one.iter().zip(other).take_while(|(one, other)| one == other).count();
    let nearest = |key: &[u32]| {
        let most = known.keys().map(|other| same(key, other)).max()?;
        let mut labels = known.iter().filter(|of| same(key, of.0) == most).map(|of| *of.1);
        let label = labels.next()?;
        labels.all(|other| other == label).then_some(label)
    };
    let (mut found, mut unknown) = (FxHashMap::<Vec<u32>, u8>::default(), 0u64);
    let mut label = |number: u64| {
        if number <= ways.first {
            return FIRST;
        }
        let key = key(number);
        known.get(&key).copied().unwrap_or_else(|| {
            unknown += 1;
            *found.entry(key).or_insert_with_key(|key| nearest(key).unwrap_or(UNSEEN))
        })
    };
    let mut labels: Vec<u8> = (1..=calls as u64).map(&mut label).collect();
    let is_open = labels.last() == Some(&UNSEEN);
    follow(&mut labels);
    (unknown as f64 <= (1.0 - KNOWN) * calls as f64).then_some(Told { labels, is_open, is_by_number: false })
}

/// Gives calls that nothing tells, as the last ones of a sequence, the label that comes most often behind that of the call
/// before.
fn follow(labels: &mut [u8]) {
    let mut pairs: FxHashMap<(u8, u8), u64> = FxHashMap::default();
    for pair in labels.windows(2).filter(|pair| pair[1] != UNSEEN) {
        *pairs.entry((pair[0], pair[1])).or_default() += 1;
    }
    for at in 1..labels.len() {
        if labels[at] == UNSEEN {
            let behind = pairs.iter().filter(|of| of.0.0 == labels[at - 1]);
            let most = behind.max_by_key(|&(pair, &calls)| (calls, pair.1));
            labels[at] = most.map_or(UNSEEN, |of| of.0.1);
        }
    }
}
