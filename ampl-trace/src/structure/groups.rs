//! Ranks that share a grammar, and the columns in which they differ.
//!
//! A query with one answer for each group reads its grammar once, however many ranks there are.

use super::relative_args::{Role, Slot, layout};
use super::shared_part::{CallSites, Head, ONCE, grammar};
use super::{Fit, Group, JobStructure, Varying};
use crate::grammar::Grammar;
use crate::site::Site;

/// Ranks that share a grammar.
#[derive(Clone, Copy, Debug)]
pub struct RankGroup<'a> {
    pub(super) group: &'a Group,
}

/// One thread of the ranks of a group.
#[derive(Clone, Copy, Debug)]
pub struct GroupThread<'a> {
    of: RankGroup<'a>,
    index: usize,
}

/// A call of one thread, without its time: a terminal of the thread's grammar.
#[derive(Clone, Debug)]
pub struct GroupTerminal<'a> {
    /// Index in the function table; [`GAP`](crate::record::GAP) for calls that were counted but not recorded, or that of
    /// an [edge](crate::regions::Edge) of a region.
    pub function: u16,
    /// Flags of [`crate::record`].
    pub flags: u8,
    /// Index into [`RankGroup::sites`].
    pub site: Option<u32>,
    /// Its words: an error's code, then its arguments.
    pub words: Vec<Word<'a>>,
}

/// A word of a call. Ranks are distances from the caller in the call's communicator, but for roots.
#[derive(Clone, Copy, Debug)]
pub struct Word<'a> {
    /// Meaning.
    pub role: Role,
    /// Index of the parameter; those of the exit part from 64.
    pub param: u8,
    /// Index of the array element.
    pub element: u32,
    /// Its values over the ranks of the group.
    pub argument: Argument<'a>,
}

/// The values of a word over the ranks of a group.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Argument<'a> {
    /// One value for all ranks.
    Same(u64),
    /// A formula of the rank.
    Formula(Values<'a>),
    /// A value of each rank, as runs of arithmetic progressions.
    PerRank(Values<'a>),
}

/// The values of a word that differs between ranks.
#[derive(Clone, Copy, Debug)]
pub struct Values<'a> {
    of: RankGroup<'a>,
    /// Index among the words that differ.
    index: usize,
}

impl Argument<'_> {
    /// The value of `rank`; `None` where that is not in the group.
    pub fn of(&self, rank: u32) -> Option<u64> {
        match self {
            Self::Same(value) => Some(*value),
            Self::Formula(values) | Self::PerRank(values) => values.of(rank),
        }
    }

    /// The value that all ranks have; `None` where they differ.
    pub fn same(&self) -> Option<u64> {
        if let Self::Same(value) = self { Some(*value) } else { None }
    }
}

impl Values<'_> {
    /// The value of `rank`; `None` where that is not in the group.
    pub fn of(&self, rank: u32) -> Option<u64> {
        let group = self.of.group;
        let position = group.position(rank)?;
        if let Some(value) = group.varying_at(self.index, position, rank) {
            return Some(value);
        }
        // It follows from others.
        group.varying(position, rank).get(self.index).copied()
    }
}

impl<'a> RankGroup<'a> {
    /// Number of ranks.
    pub fn len(&self) -> u32 {
        self.group.len()
    }

    /// True where there is no rank; never of a sound structure.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The ranks, ascending.
    pub fn ranks(&self) -> impl Iterator<Item = u32> + 'a {
        self.group.members()
    }

    /// True where `rank` is one of them.
    pub fn contains(&self, rank: u32) -> bool {
        self.group.position(rank).is_some()
    }

    /// Paths of the modules that call sites lie in.
    pub fn modules(&self) -> &'a [String] {
        &self.group.body.table.modules
    }

    /// Call sites.
    pub fn sites(&self) -> &'a [Site] {
        &self.group.body.table.sites
    }

    /// Modules and call sites, to be shared.
    pub fn table(&self) -> &'a CallSites {
        &self.group.body.table
    }

    /// Number of signatures of all threads.
    pub fn signatures(&self) -> u64 {
        self.group.body.threads.iter().map(|thread| thread.heads.len() as u64).sum()
    }

    /// Its threads, ascending.
    pub fn threads(&self) -> impl Iterator<Item = GroupThread<'a>> + use<'a> {
        let of = *self;
        (0..self.group.body.threads.len()).map(move |index| GroupThread { of, index })
    }

    /// Word `number` of all words of the group's rows.
    fn argument(&self, number: usize) -> Argument<'a> {
        let Ok(index) = self.group.words.binary_search_by_key(&number, |&(at, _)| at as usize) else {
            return Argument::Same(self.group.first.words[number]);
        };
        let values = Values { of: *self, index };
        let mut varying = &self.group.words[index].1;
        while let Varying::Fit(Fit::Equal(of)) = varying {
            varying = &self.group.words[*of].1;
        }
        match varying {
            Varying::Column(_) | Varying::Fit(Fit::Column(_) | Fit::Difference { .. }) => {
                Argument::PerRank(values)
            }
            Varying::Fit(_) => Argument::Formula(values),
        }
    }
}

impl<'a> GroupThread<'a> {
    /// Its number: 0 for the one that called `MPI_Init`.
    pub fn number(&self) -> u32 {
        self.of.group.body.threads[self.index].thread
    }

    /// Number of terminals.
    pub fn len(&self) -> usize {
        self.heads().len()
    }

    /// True where it made no calls that are known.
    pub fn is_empty(&self) -> bool {
        self.heads().is_empty()
    }

    fn heads(&self) -> &'a [Head] {
        &self.of.group.body.threads[self.index].heads
    }

    /// Function, flags and site of every terminal, by number, without words.
    pub fn calls(&self) -> impl Iterator<Item = (u16, u8, Option<u32>)> + use<'a> {
        self.heads().iter().map(|head| (head.function, head.flags, head.site.checked_sub(1)))
    }

    /// Paths by which the calls of every terminal came to their site, by number; those of a site alone where they are not known.
    pub fn paths(&self) -> impl Iterator<Item = Option<u32>> + use<'a> {
        self.heads().iter().map(|head| super::way(head.site, head.path))
    }

    /// Every terminal with its words, by number.
    pub fn terminals(&self) -> impl Iterator<Item = GroupTerminal<'a>> + use<'a> {
        let of = self.of;
        let words = |heads: &[Head]| heads.iter().map(|head| head.words as usize).sum::<usize>();
        let before = of.group.body.threads[..self.index].iter().map(|thread| words(&thread.heads));
        let begin = of.group.body.comms * 3 + before.sum::<usize>();
        self.heads().iter().scan(begin, move |at, head| {
            let own = *at..*at + head.words as usize;
            *at = own.end;
            let slots = layout(head.function, head.flags, &of.group.first.words[own.clone()]);
            let word = |(number, Slot { role, param, element })| Word {
                role,
                param,
                element,
                argument: of.argument(number),
            };
            Some(GroupTerminal {
                function: head.function,
                flags: head.flags,
                site: head.site.checked_sub(1),
                words: own.zip(slots).map(word).collect(),
            })
        })
    }

    /// Its sequence of terminals: one grammar for all ranks whose repetition counts are equal. Ranks are given as
    /// spans of positions in [`RankGroup::ranks`].
    pub fn grammars(&self) -> Vec<(std::ops::Range<u32>, Grammar)> {
        let group = self.of.group;
        let mut begin = 0;
        let mut grammars: Vec<(std::ops::Range<u32>, Grammar)> = Vec::new();
        for end in group.count_ends() {
            let grammar = self.grammar(begin);
            match grammars.last_mut() {
                // Another thread's counts differ.
                Some((span, same)) if *same == grammar => span.end = end,
                _ => grammars.push((begin..end, grammar)),
            }
            begin = end;
        }
        grammars
    }

    /// The grammar of the rank at `position`.
    fn grammar(&self, position: u32) -> Grammar {
        let group = self.of.group;
        let before = group.body.threads[..self.index].iter().map(|thread| thread.rules.positions());
        let begin = before.sum::<usize>() as u32;
        let rules = &group.body.threads[self.index].rules;
        let counts = |at| {
            let Ok(index) = group.lists.binary_search_by_key(&at, |&(index, _)| index) else {
                return group.first.list(at);
            };
            let lists = &group.lists[index].1;
            let span = lists.partition_point(|&(end, _)| end <= position);
            lists.get(span).map_or(&ONCE[..], |(_, list)| list)
        };
        let grammar = grammar(rules, |at| counts(begin + at));
        group.rules_read.add(&grammar);
        grammar
    }
}

impl JobStructure {
    /// Groups of ranks that share a grammar.
    pub fn groups(&self) -> impl Iterator<Item = RankGroup<'_>> {
        self.groups.iter().map(|group| RankGroup { group })
    }
}
