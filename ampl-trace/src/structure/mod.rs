//! The structure of all ranks: their signatures and grammars in one compact string of bytes.
//!
//! Ranks that make the same calls but for argument words and counts share one body. Differences are columns, one value
//! of each rank of the group, kept as runs while ranks are joined up a tree, and fitted where they are encoded.

mod alike;
mod callers;
mod column;
mod fit;
mod formula;
mod grid;
mod groups;
mod guess;
mod mix;
mod names;
mod origins;
mod read;
mod relative_args;
mod select;
mod shared_part;
mod split_streams;
mod stream;
mod symbols;
mod unify;
mod write;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use column::Column;
use fit::Fit;
use rustc_hash::FxHashMap;
use shared_part::{Body, ONCE, Row};

use crate::error::ReadError;
use crate::grammar::{Counts, Grammar};
use crate::site::Site;
pub use alike::{Alike, FunctionCalls};
pub use groups::{Argument, GroupTerminal, GroupThread, RankGroup, Values, Word};
pub use origins::origins;
pub use relative_args::{Role, Slot, layout};
pub use select::Selected;
pub use shared_part::CallSites;
pub use stream::Effort;

/// A call without its time, for which a terminal of a grammar stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Signature {
    /// Index in the function table; [`GAP`](crate::record::GAP) for calls that were counted but not recorded, or that of
    /// an [edge](crate::regions::Edge) of a region.
    pub function: u16,
    /// Flags of [`crate::record`].
    pub flags: u8,
    /// 0 for none, else one more than the index in [`RankStructure::sites`].
    pub site: u32,
    /// The site with the callers that it was reached from, which tell calls of one site apart: 0 for none, else one more than
    /// the index in [`RankStructure::sites`]. Calls are shown by their site.
    pub path: u32,
    /// Its arguments as [`crate::args`] has them; an error's code before them.
    pub words: Vec<u64>,
}

impl Signature {
    /// Index in [`RankStructure::sites`] of the path, or of the site alone where the path is not known.
    pub fn way(&self) -> Option<u32> {
        way(self.site, self.path)
    }
}

/// Index of the path of a call, or of its site alone where the path is not known; both are one more, or 0 for none.
fn way(site: u32, path: u32) -> Option<u32> {
    path.checked_sub(1).or(site.checked_sub(1))
}

/// The calls of one thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadStructure {
    /// Its number.
    pub thread: u32,
    /// Its signatures by terminal.
    pub signatures: Vec<Signature>,
    /// Their sequence.
    pub grammar: Grammar,
}

/// A communicator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Comm {
    /// Its word in arguments.
    pub word: u64,
    /// Its size.
    pub size: u64,
    /// This rank's number in it.
    pub rank: u64,
}

/// The calls of one rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankStructure {
    /// Its number in `MPI_COMM_WORLD`.
    pub rank: u32,
    /// Its threads.
    pub threads: Vec<ThreadStructure>,
    /// Modules that call sites lie in: paths.
    pub modules: Vec<String>,
    /// Call sites.
    pub sites: Vec<Site>,
    /// Communicators that its calls name.
    pub comms: Vec<Comm>,
}

/// The calls of several ranks.
#[derive(Clone, Debug, Default)]
pub struct JobStructure {
    /// Ranks of the job.
    ranks: u32,
    groups: Vec<Group>,
}

/// Ranks that share a body.
#[derive(Clone, Debug)]
struct Group {
    body: Arc<Body>,
    hash: u64,
    /// Ranks of the job that its fits are for.
    job: u32,
    /// Spans of ranks: first, and how many.
    ranks: Vec<(u32, u32)>,
    /// The row of its first rank.
    first: Row,
    /// Words that differ between ranks, ascending.
    words: Vec<(u32, Varying)>,
    /// Lists that differ, ascending.
    lists: Vec<(u32, Lists)>,
    rules_read: RulesRead,
}

/// Number of rules that have been read.
#[derive(Debug, Default)]
struct RulesRead(AtomicU64);

impl RulesRead {
    fn add(&self, grammar: &Grammar) {
        self.0.fetch_add(grammar.rules.len() as u64, Ordering::Relaxed);
    }

    fn number(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Clone for RulesRead {
    fn clone(&self) -> Self {
        Self(self.number().into())
    }
}

/// A list for each rank: the end of each span of ranks with the same, and the list.
type Lists = Vec<(u32, Counts)>;

/// A word that differs between the ranks of a group.
#[derive(Clone, Debug)]
enum Varying {
    /// Values by position.
    Column(Column),
    /// Formula of the rank, as it was decoded.
    Fit(Fit),
}

impl Group {
    fn len(&self) -> u32 {
        self.ranks.iter().map(|&(_, length)| length).sum()
    }

    /// All ranks, ascending.
    fn members(&self) -> impl Iterator<Item = u32> + '_ {
        self.ranks.iter().flat_map(|&(first, length)| first..first + length)
    }

    /// Number of its ranks below `rank`; `None` if that is not one of them.
    fn position(&self, rank: u32) -> Option<u32> {
        let mut before = 0;
        for &(first, length) in &self.ranks {
            if (first..first + length).contains(&rank) {
                return Some(before + rank - first);
            }
            before += length;
        }
        None
    }

    /// Turns varying words into columns.
    fn settle(&mut self) {
        if self.words.iter().all(|(_, varying)| matches!(varying, Varying::Column(_))) {
            return;
        }
        let mut columns = vec![Column::default(); self.words.len()];
        for (position, rank) in self.members().enumerate() {
            let values = self.varying(position as u32, rank);
            columns.iter_mut().zip(values).for_each(|(column, value)| column.push(value));
        }
        let words = self.words.iter_mut().zip(columns);
        words.for_each(|((_, varying), column)| *varying = Varying::Column(column));
    }

    /// The values of all varying words of a rank.
    fn varying(&self, position: u32, rank: u32) -> Vec<u64> {
        let mut values = Vec::with_capacity(self.words.len());
        for (_, varying) in &self.words {
            values.push(match varying {
                Varying::Column(column) => column.value(position),
                Varying::Fit(fit) => fit.value(self.job, position, rank, &values),
            });
        }
        values
    }

    /// The value of one varying word of a rank; `None` if it is computed from another that it does not equal.
    fn varying_at(&self, index: usize, position: u32, rank: u32) -> Option<u64> {
        match &self.words[index].1 {
            Varying::Column(column) => Some(column.value(position)),
            Varying::Fit(Fit::Equal(of)) if *of < index => self.varying_at(*of, position, rank),
            Varying::Fit(Fit::Equal(_) | Fit::Difference { .. } | Fit::Map { .. }) => None,
            Varying::Fit(fit) => Some(fit.value(self.job, position, rank, &[])),
        }
    }

    fn row(&self, position: u32, rank: u32) -> Row {
        let mut row = self.first.clone();
        for (&(index, _), value) in self.words.iter().zip(self.varying(position, rank)) {
            row.words[index as usize] = value;
        }
        if !self.lists.is_empty() {
            let varying = |at| self.lists.binary_search_by_key(&at, |&(index, _)| index).is_ok();
            row.lists.retain(|&(at, _)| !varying(at));
            for (index, lists) in &self.lists {
                let span = lists.partition_point(|&(end, _)| end <= position);
                row.push_list(*index, lists.get(span).map_or(Counts::from(ONCE), |(_, list)| list.clone()));
            }
            row.lists.sort_unstable_by_key(|&(at, _)| at);
        }
        row
    }

    /// Calls of a rank; `None` where the stored bytes make no sense.
    fn structure(&self, position: u32, rank: u32) -> Option<RankStructure> {
        let structure = self.body.join(rank, self.row(position, rank));
        structure.threads.iter().for_each(|thread| self.rules_read.add(&thread.grammar));
        structure.threads.iter().all(|thread| thread.grammar.is_sound()).then_some(structure)
    }

    /// Appends the ranks of `other`, all higher, with an equal body.
    fn join(&mut self, mut other: Self) {
        self.settle();
        other.settle();
        let (own, others) = (self.len(), other.len());
        let take = |words: Vec<(u32, Varying)>| {
            words.into_iter().map(|(index, varying)| match varying {
                Varying::Column(column) => (index, column),
                Varying::Fit(_) => unreachable!("settled"),
            })
        };
        let mut left = take(std::mem::take(&mut self.words)).peekable();
        let mut right = take(std::mem::take(&mut other.words)).peekable();
        for (index, (&one, &two)) in self.first.words.iter().zip(&other.first.words).enumerate() {
            let index = index as u32;
            let (first, second) =
                (left.next_if(|&(at, _)| at == index), right.next_if(|&(at, _)| at == index));
            if one == two && first.is_none() && second.is_none() {
                continue;
            }
            let mut column = first.map_or_else(|| Column::constant(one, own), |(_, column)| column);
            match second {
                Some((_, second)) => second.pieces().for_each(|(length, start, step)| {
                    column.append(length, start, step);
                }),
                None => column.append(others, two, 0),
            }
            self.words.push((index, Varying::Column(column)));
        }
        let varying: Vec<u32> = self.lists.iter().chain(&other.lists).map(|&(at, _)| at).collect();
        let mut left = std::mem::take(&mut self.lists).into_iter().peekable();
        let mut right = other.lists.into_iter().peekable();
        let given = self.first.lists.iter().chain(&other.first.lists).map(|&(at, _)| at);
        let mut positions: Vec<u32> = given.chain(varying).collect();
        positions.sort_unstable();
        positions.dedup();
        for index in positions {
            let (one, two) = (self.first.list(index), other.first.list(index));
            let (first, second) =
                (left.next_if(|&(at, _)| at == index), right.next_if(|&(at, _)| at == index));
            if first.is_none() && second.is_none() && one == two {
                continue;
            }
            let mut lists = first.map_or_else(|| vec![(own, Counts::from(one))], |(_, lists)| lists);
            for (end, list) in second.map_or_else(|| vec![(others, Counts::from(two))], |(_, lists)| lists) {
                match lists.last_mut() {
                    Some((last, same)) if *same == list => *last = own + end,
                    _ => lists.push((own + end, list)),
                }
            }
            self.lists.push((index, lists));
        }
        for (first, length) in other.ranks {
            match self.ranks.last_mut() {
                Some((last, have)) if *last + *have == first => *have += length,
                _ => self.ranks.push((first, length)),
            }
        }
    }
}

impl JobStructure {
    /// A structure without ranks, of a job of so many.
    pub fn new(ranks: u32) -> Self {
        Self { ranks, groups: Vec::new() }
    }

    /// A structure of one rank.
    pub fn of(rank: RankStructure) -> Self {
        let number = rank.rank;
        let (body, first) = Body::split(rank);
        let hash = body.hash();
        let (words, lists, rules_read) = Default::default();
        let (body, ranks) = (Arc::new(body), vec![(number, 1)]);
        let group = Group { body, hash, job: 0, ranks, first, words, lists, rules_read };
        Self { ranks: number.saturating_add(1), groups: vec![group] }
    }

    /// Joins `other`, whose ranks are all higher.
    pub fn join(&mut self, other: Self) {
        debug_assert!(self.ranks().max() < other.ranks().min() || other.groups.is_empty());
        self.ranks = self.ranks.max(other.ranks);
        let mut known: FxHashMap<u64, Vec<usize>> = FxHashMap::default();
        for (index, group) in self.groups.iter().enumerate() {
            known.entry(group.hash).or_default().push(index);
        }
        for group in other.groups {
            let alike = known.get(&group.hash).into_iter().flatten();
            match alike.copied().find(|&index| self.groups[index].body == group.body) {
                Some(index) => self.groups[index].join(group),
                None => self.groups.push(group),
            }
        }
    }

    /// The ranks there are, those of one body after those of another.
    pub fn ranks(&self) -> impl Iterator<Item = u32> + '_ {
        self.groups.iter().flat_map(Group::members)
    }

    /// Ranks of the job.
    pub fn rank_count(&self) -> u32 {
        self.ranks
    }

    /// The calls of `rank`; `None` where there are none, or what is stored of it makes no sense.
    pub fn rank(&self, rank: u32) -> Option<RankStructure> {
        let (group, position) = self.groups.iter().find_map(|group| Some((group, group.position(rank)?)))?;
        group.structure(position, rank)
    }

    /// Modules and call sites of that rank, as in its [structure](Self::rank), without the rest of it.
    pub fn sites(&self, rank: u32) -> Option<&CallSites> {
        let group = self.groups.iter().find(|group| group.position(rank).is_some())?;
        Some(&group.body.table)
    }

    /// Signatures of all bodies.
    pub fn signatures(&self) -> u64 {
        let threads = self.groups.iter().flat_map(|group| &group.body.threads);
        threads.map(|thread| thread.heads.len() as u64).sum()
    }

    /// Distinct bodies.
    pub fn grammars(&self) -> u64 {
        self.groups.len() as u64
    }

    /// All of it as bytes that [`JobStructure::decode`] reads, as short as they get in reasonable time.
    pub fn encode(&self) -> Vec<u8> {
        write::write(self, Effort::Best).encode_fast()
    }

    /// As [`JobStructure::encode`], but quickly: for the way to another process.
    pub fn encode_fast(&self) -> Vec<u8> {
        write::write(self, Effort::Quick).encode_fast()
    }

    /// The structure that [`JobStructure::encode`] or [`JobStructure::encode_fast`] wrote.
    ///
    /// # Errors
    /// [`ReadError`] if the bytes contradict themselves, or describe a function otherwise than this version.
    pub fn decode(bytes: &[u8]) -> Result<Self, ReadError> {
        read::read(bytes)
    }
}
