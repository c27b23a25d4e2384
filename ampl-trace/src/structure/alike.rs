//! Ranks whose calls are equal but for the caller's own number, and the number of calls of each signature.
//!
//! What follows from the words and the number of calls is computed once for all such ranks. Rules of a grammar are
//! visited once for each list of repetition counts in the group, however many ranks have them.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::ops::Range;

use rustc_hash::{FxHashMap, FxHasher};

use super::{Comm, Group, GroupThread, JobStructure, RankGroup, Signature};

/// Spans of positions: the first, and one more than the last.
type Spans = Vec<(u32, u32)>;

/// Largest number of differing words that are held to find ranks that are alike.
const MOST_WORDS: usize = 1 << 22;

/// Ranks of a group that make equal calls as often. Their calls name ranks at equal distances from the caller, in
/// communicators of equal sizes, in which the callers' own ranks may differ.
#[derive(Clone, Debug)]
pub struct Alike<'a> {
    group: &'a Group,
    /// Positions in the group, ascending.
    positions: Spans,
}

impl<'a> Alike<'a> {
    /// Number of ranks, at least 1.
    pub fn len(&self) -> u64 {
        self.positions.iter().map(|&(first, end)| u64::from(end - first)).sum()
    }

    /// True where there is no rank; never of what [`RankGroup::alike`] returns.
    pub fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }

    /// Position of the first in [`RankGroup::ranks`].
    pub fn position(&self) -> u32 {
        self.positions[0].0
    }

    /// The first rank.
    pub fn first(&self) -> u32 {
        self.ranks().next().unwrap_or_default()
    }

    /// The ranks, ascending.
    pub fn ranks(&self) -> impl Iterator<Item = u32> + '_ {
        let mut members = self.group.members();
        let mut next = 0;
        self.positions.iter().flat_map(|&(first, end)| first..end).filter_map(move |position| {
            let skipped = position - std::mem::replace(&mut next, position + 1);
            members.nth(skipped as usize)
        })
    }

    /// The signatures of each thread of `rank`, one of them.
    pub fn signatures(&self, rank: u32) -> Vec<Vec<Signature>> {
        self.group.signatures(rank).unwrap_or_default()
    }

    /// The communicators that calls of `rank` name, one of them.
    pub fn comms(&self, rank: u32) -> Vec<Comm> {
        let Group { body, first, words, .. } = self.group;
        let Some(position) = self.group.position(rank) else { return Vec::new() };
        let mut own = first.words[..body.comms * 3].to_vec();
        let varying = if own.is_empty() { Vec::new() } else { self.group.varying(position, rank) };
        for (&(index, _), value) in words.iter().zip(varying) {
            if let Some(word) = own.get_mut(index as usize) {
                *word = value;
            }
        }
        body.comms_of(&own)
    }
}

/// Calls of ranks by function: index in the function table, or [`GAP`](crate::record::GAP), and number.
#[derive(Debug)]
pub struct FunctionCalls<'a>(Vec<(&'a Group, Vec<CallsOfSpan>)>);

/// End of a span of positions, and calls by function of each rank in it.
type CallsOfSpan = (u32, Option<BTreeMap<u16, u64>>);

impl FunctionCalls<'_> {
    /// Calls of `rank`; `None` where there are none, or what is stored of it makes no sense.
    pub fn of(&self, rank: u32) -> Option<&BTreeMap<u16, u64>> {
        let (spans, position) =
            self.0.iter().find_map(|(group, spans)| Some((spans, group.position(rank)?)))?;
        spans.get(spans.partition_point(|&(end, _)| end <= position))?.1.as_ref()
    }
}

impl Group {
    /// Signatures of each thread of `rank`; `None` if that is not one of the group.
    fn signatures(&self, rank: u32) -> Option<Vec<Vec<Signature>>> {
        Some(self.calls(rank)?.1)
    }

    /// Communicators of `rank`, and its signatures.
    pub(super) fn calls(&self, rank: u32) -> Option<(Vec<Comm>, Vec<Vec<Signature>>)> {
        let words = self.row(self.position(rank)?, rank).words;
        let comms = self.body.comms_of(&words);
        let signatures = self.body.signatures(&words, &comms);
        Some((comms, signatures))
    }

    /// Ends of the spans of positions with equal repetition counts, ascending.
    pub(super) fn count_ends(&self) -> Vec<u32> {
        let mut ends: Vec<u32> =
            self.lists.iter().flat_map(|(_, lists)| lists).map(|&(end, _)| end).collect();
        ends.push(self.len());
        ends.sort_unstable();
        ends.dedup();
        ends
    }
}

impl<'a> RankGroup<'a> {
    /// Number of words and positions of the structure of one of its ranks.
    pub fn extent(&self) -> u64 {
        (self.group.first.words.len() + self.group.body.positions()) as u64
    }

    /// True where some of its calls are of a function that is `wanted`.
    pub fn calls_any(&self, wanted: impl Fn(u16) -> bool) -> bool {
        self.threads().any(|thread| thread.calls().any(|(function, ..)| wanted(function)))
    }

    /// Its ranks divided into those that are alike; each rank by itself where there is too much in which they differ.
    pub fn alike(&self) -> Vec<Alike<'a>> {
        let group = self.group;
        let alike = |positions| Alike { group, positions };
        if group.words.is_empty() && group.lists.is_empty() {
            return vec![alike(vec![(0, group.len())])];
        }
        // Of a communicator's three words the last is the caller's rank there.
        let is_own = |index: u32| index < group.body.comms as u32 * 3 && index % 3 == 2;
        let size = |index: u32, values: &[u64]| {
            let known = group.words.binary_search_by_key(&(index - 1), |&(at, _)| at);
            known.map_or(group.first.words[index as usize - 1], |at| values[at])
        };
        let ends = group.count_ends();
        let mut found: Vec<(Vec<u64>, Spans)> = Vec::new();
        let mut by_hash: FxHashMap<u64, Vec<usize>> = FxHashMap::default();
        let mut held = 0;
        for (position, rank) in (0..).zip(group.members()) {
            let values = group.varying(position, rank);
            let mut key = vec![ends.partition_point(|&end| end <= position) as u64];
            key.extend(group.words.iter().zip(&values).map(|(&(index, _), &value)| {
                // Only a rank that exists is one that words are relative to.
                if is_own(index) && value < size(index, &values) { 0 } else { value }
            }));
            let mut hasher = FxHasher::default();
            key.hash(&mut hasher);
            let same = by_hash.entry(hasher.finish()).or_default();
            match same.iter().find(|&&index| found[index].0 == key) {
                Some(&index) => match found[index].1.last_mut() {
                    Some((_, end)) if *end == position => *end += 1,
                    _ => found[index].1.push((position, position + 1)),
                },
                None => {
                    held += key.len();
                    if held <= MOST_WORDS {
                        same.push(found.len());
                    } else {
                        key.clear();
                    }
                    found.push((key, vec![(position, position + 1)]));
                }
            }
        }
        found.into_iter().map(|(_, positions)| alike(positions)).collect()
    }
}

impl GroupThread<'_> {
    /// Number of calls of each signature, for spans of positions in [`RankGroup::ranks`] with equal ones; `None` for
    /// ranks of which what is stored makes no sense.
    pub fn totals(&self) -> Vec<(Range<u32>, Option<Vec<u64>>)> {
        let totals = |(span, grammar): (Range<u32>, crate::grammar::Grammar)| {
            let mut calls = vec![0u64; self.len()];
            let is_sound = grammar.is_sound();
            for (terminal, count) in is_sound.then(|| grammar.totals()).into_iter().flatten() {
                if let Some(sum) = calls.get_mut(terminal as usize) {
                    *sum = sum.saturating_add(count);
                }
            }
            (span, is_sound.then_some(calls))
        };
        self.grammars().into_iter().map(totals).collect()
    }
}

impl JobStructure {
    /// Signatures of each thread of `rank`, without their sequence; `None` where there are none.
    pub fn signatures_of(&self, rank: u32) -> Option<Vec<Vec<Signature>>> {
        self.groups.iter().find_map(|group| group.signatures(rank))
    }

    /// Calls by function of every rank; of ranks whose calls are as many they are counted once.
    pub fn function_calls(&self) -> FunctionCalls<'_> {
        self.function_calls_of(|_| true)
    }

    /// The same of the groups that are `wanted`.
    pub fn function_calls_of(&self, wanted: impl Fn(&RankGroup<'_>) -> bool) -> FunctionCalls<'_> {
        let of_group = |group: RankGroup<'_>| {
            let totals: Vec<_> = group.threads().map(|thread| (thread, thread.totals())).collect();
            let calls_to = |end: u32| {
                let mut calls: BTreeMap<u16, u64> = BTreeMap::new();
                for (thread, spans) in &totals {
                    let at = spans.partition_point(|(span, _)| span.end < end);
                    let own = spans.get(at)?.1.as_ref()?;
                    for ((function, ..), number) in thread.calls().zip(own).filter(|(_, number)| **number > 0)
                    {
                        let sum = calls.entry(function).or_default();
                        *sum = sum.saturating_add(*number);
                    }
                }
                Some(calls)
            };
            group.group.count_ends().into_iter().map(|end| (end, calls_to(end))).collect()
        };
        FunctionCalls(self.groups().filter(wanted).map(|group| (group.group, of_group(group))).collect())
    }

    /// Number of rules of grammars that have been read from it. A query with one answer for each group reads as many
    /// of few ranks as of many.
    pub fn rules_read(&self) -> u64 {
        self.groups.iter().map(|group| group.rules_read.number()).sum()
    }
}
