//! Shared part of the ranks of one group, and the rest of each rank: a row of words and lists of counts.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use rustc_hash::FxHasher;

use super::relative_args::RelativeArgs;
use super::symbols::Rules;
use super::{Comm, RankStructure, Signature, ThreadStructure};
use crate::grammar::{Counts, Grammar, Item, Symbol};
use crate::site::Site;

/// Call sites of ranks that have equal ones, and the modules that these lie in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct CallSites {
    /// Paths.
    pub modules: Arc<[String]>,
    /// Sites.
    pub sites: Arc<[Site]>,
}

/// A signature without its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Head {
    /// Index in the function table.
    pub function: u16,
    /// Flags of the call.
    pub flags: u8,
    /// 0 for none, else one more than the index in [`CallSites::sites`].
    pub site: u32,
    /// 0 for none, else one more than the index of the site with its callers.
    pub path: u32,
    /// Number of its words.
    pub words: u32,
}

/// One thread without its words and counts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ThreadBody {
    /// Its number.
    pub thread: u32,
    /// Its signatures.
    pub heads: Vec<Head>,
    /// Symbols of its rules.
    pub rules: Rules,
}

/// Part that is equal on all ranks of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Body {
    /// Modules and sites.
    pub table: Arc<CallSites>,
    /// Number of communicators.
    pub comms: usize,
    /// Threads.
    pub threads: Vec<ThreadBody>,
}

/// Counts of a position that comes once whenever its rule does.
pub const ONCE: [(u64, u64); 1] = [(1, 0)];

/// A rank apart from its body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Word, size and rank of every communicator, then the turned words of every signature.
    pub words: Vec<u64>,
    /// Counts of positions that are not [`ONCE`], ascending; the last run's length is what is left of the rule's
    /// expansions.
    pub lists: Vec<(u32, Counts)>,
}

impl Row {
    /// Words of a rank with these communicators and signatures of its threads.
    pub fn turned(comms: &[Comm], threads: Vec<Vec<Signature>>) -> Vec<u64> {
        let mut words: Vec<u64> = comms.iter().flat_map(|comm| [comm.word, comm.size, comm.rank]).collect();
        for signatures in threads {
            let mut turner = RelativeArgs::new(comms, false);
            for mut signature in signatures {
                turner.turn(&mut signature);
                words.append(&mut signature.words);
            }
        }
        words
    }

    /// The counts of a position.
    pub fn list(&self, position: u32) -> &[(u64, u64)] {
        let found = self.lists.binary_search_by_key(&position, |&(at, _)| at);
        found.map_or(&ONCE, |index| &self.lists[index].1)
    }

    /// Adds the counts of a position behind all others.
    pub fn push_list(&mut self, position: u32, counts: Counts) {
        if counts[..] != ONCE {
            self.lists.push((position, counts));
        }
    }
}

impl Body {
    /// A number that equal bodies share.
    pub fn hash(&self) -> u64 {
        let mut hasher = FxHasher::default();
        Hash::hash(self, &mut hasher);
        hasher.finish()
    }

    /// Positions of all rules.
    pub fn positions(&self) -> usize {
        self.threads.iter().map(|thread| thread.rules.positions()).sum()
    }

    /// Body and row of `rank`.
    pub fn split(rank: RankStructure) -> (Self, Row) {
        let mut row = Row::default();
        for comm in &rank.comms {
            row.words.extend([comm.word, comm.size, comm.rank]);
        }
        let mut threads = Vec::with_capacity(rank.threads.len());
        let mut positions = 0u32;
        for thread in rank.threads {
            let mut turner = RelativeArgs::new(&rank.comms, false);
            let mut heads = Vec::with_capacity(thread.signatures.len());
            for mut signature in thread.signatures {
                turner.turn(&mut signature);
                let Signature { function, flags, site, path, words } = signature;
                heads.push(Head { function, flags, site, path, words: words.len() as u32 });
                row.words.extend(words);
            }
            let of = &thread.grammar.rules;
            let rules: Vec<Vec<u32>> =
                of.iter().map(|rule| rule.iter().map(|item| item.symbol.0).collect()).collect();
            let expansions = expansions(&rules, |rule, index, _| {
                of.at(rule).get(index).map_or(0, |item| repetitions(&item.counts))
            });
            let mut at = positions;
            for (rule, &expansions) in of.iter().zip(&expansions) {
                for item in rule.iter() {
                    let mut counts = Counts::from(&item.counts[..]);
                    let left = left(&counts, expansions);
                    if let Some((_, last)) = counts.last_mut() {
                        *last = last.wrapping_sub(left);
                    }
                    row.push_list(at, counts);
                    at += 1;
                }
            }
            let rules = Rules::of(&rules);
            positions += rules.positions() as u32;
            threads.push(ThreadBody { thread: thread.thread, heads, rules });
        }
        let table = Arc::new(CallSites { modules: rank.modules.into(), sites: rank.sites.into() });
        (Self { table, comms: rank.comms.len(), threads }, row)
    }

    /// Communicators in the words of a row.
    pub fn comms_of(&self, words: &[u64]) -> Vec<Comm> {
        let comm = |&[word, size, rank]: &[u64; 3]| Comm { word, size, rank };
        words[..self.comms * 3].as_chunks().0.iter().map(comm).collect()
    }

    /// Signatures of each thread in the words of a row with these communicators.
    pub fn signatures(&self, words: &[u64], comms: &[Comm]) -> Vec<Vec<Signature>> {
        let mut rest = &words[self.comms * 3..];
        let of_thread = |thread: &ThreadBody| {
            let mut turner = RelativeArgs::new(comms, true);
            let mut signatures = Vec::with_capacity(thread.heads.len());
            for head in &thread.heads {
                let (words, behind) = rest.split_at(head.words as usize);
                rest = behind;
                let Head { function, flags, site, path, .. } = *head;
                let mut signature = Signature { function, flags, site, path, words: words.to_vec() };
                turner.turn(&mut signature);
                signatures.push(signature);
            }
            signatures
        };
        self.threads.iter().map(of_thread).collect()
    }

    /// The rank of this body that has that row.
    pub fn join(&self, rank: u32, row: Row) -> RankStructure {
        let comms = self.comms_of(&row.words);
        let signatures = self.signatures(&row.words, &comms);
        let mut begin = 0u32;
        let mut threads = Vec::with_capacity(self.threads.len());
        for (thread, signatures) in self.threads.iter().zip(signatures) {
            let grammar = grammar(&thread.rules, |at| row.list(begin + at));
            begin += thread.rules.positions() as u32;
            threads.push(ThreadStructure { thread: thread.thread, signatures, grammar });
        }
        let CallSites { modules, sites } = &*self.table;
        RankStructure { rank, threads, modules: modules.to_vec(), sites: sites.to_vec(), comms }
    }
}

/// The grammar of `rules` whose positions, one behind the other, have these counts.
pub fn grammar<'a>(rules: &Rules, counts: impl Fn(u32) -> &'a [(u64, u64)]) -> Grammar {
    let rules = rules.unpacked();
    let begins = rules.iter().scan(0, |at, rule| Some(std::mem::replace(at, *at + rule.len() as u32)));
    let begins: Vec<u32> = begins.collect();
    let whole = |rule: usize, index: usize, expansions| {
        let mut counts = Counts::from(counts(begins[rule] + index as u32));
        let left = left(&counts, expansions);
        if let Some((_, last)) = counts.last_mut() {
            *last = last.wrapping_add(left);
        }
        counts
    };
    let expansions =
        expansions(&rules, |rule, index, expansions| repetitions(&whole(rule, index, expansions)));
    let rules = rules.iter().enumerate().map(|(rule, symbols)| {
        let items = symbols.iter().enumerate();
        items.map(move |(index, &symbol)| (rule, index, symbol))
    });
    let rules = rules.map(|items| {
        items.map(|(rule, index, symbol)| Item {
            symbol: Symbol(symbol),
            counts: whole(rule, index, expansions[rule]),
        })
    });
    Grammar { rules: rules.collect() }
}

/// Expansions of a rule that are not those of a position's runs before the last: in a row, the last run has so many
/// less, which is mostly none.
fn left(counts: &[(u64, u64)], expansions: u64) -> u64 {
    counts.iter().rev().skip(1).fold(expansions, |left, &(_, often)| left.wrapping_sub(often))
}

/// Sum of the repetitions of a position.
fn repetitions(counts: &[(u64, u64)]) -> u64 {
    counts.iter().fold(0, |sum: u64, &(count, often)| sum.wrapping_add(count.wrapping_mul(often)))
}

/// Expansions of each rule; `repetitions` of a rule's position follow from the expansions of that rule.
fn expansions(rules: &[Vec<u32>], repetitions: impl Fn(usize, usize, u64) -> u64) -> Vec<u64> {
    let mut expansions = vec![0u64; rules.len()];
    if let Some(first) = expansions.first_mut() {
        *first = 1;
    }
    for rule in users_first(rules) {
        for (index, &symbol) in rules[rule].iter().enumerate().filter(|(_, symbol)| is_rule(symbol)) {
            let more = repetitions(rule, index, expansions[rule]);
            if let Some(sum) = expansions.get_mut(symbol as usize >> 1) {
                *sum = sum.wrapping_add(more);
            }
        }
    }
    expansions
}

/// The rules in an order in which every one comes behind those that use it; those in a cycle are left out.
fn users_first(rules: &[Vec<u32>]) -> Vec<usize> {
    let mut users = vec![0u32; rules.len()];
    for &symbol in rules.iter().flatten().filter(is_rule) {
        if let Some(users) = users.get_mut(symbol as usize >> 1) {
            *users += 1;
        }
    }
    let mut order: Vec<usize> = (0..rules.len()).filter(|&rule| users[rule] == 0).collect();
    let mut next = 0;
    while let Some(&rule) = order.get(next) {
        next += 1;
        for &symbol in rules[rule].iter().filter(is_rule) {
            let other = symbol as usize >> 1;
            if let Some(users) = users.get_mut(other) {
                *users -= 1;
                if *users == 0 {
                    order.push(other);
                }
            }
        }
    }
    order
}

/// True where a symbol of a grammar is a rule.
fn is_rule(symbol: &&u32) -> bool {
    **symbol & 1 != 0
}

/// True where the rules end, exist, are all used, and name terminals below `signatures` only.
pub fn is_sound(rules: &[Vec<u32>], signatures: usize) -> bool {
    let within = |&symbol: &u32| {
        let number = symbol as usize >> 1;
        if symbol & 1 != 0 { number != 0 && number < rules.len() } else { number < signatures }
    };
    let exists = rules.iter().flatten().all(within);
    exists && {
        let order = users_first(rules);
        // Unused rules begin it: only the first rule may be one.
        let mut used = vec![false; rules.len()];
        for &symbol in rules.iter().flatten().filter(is_rule) {
            used[symbol as usize >> 1] = true;
        }
        order.len() == rules.len() && used.iter().filter(|&&used| !used).count() <= 1
    }
}
