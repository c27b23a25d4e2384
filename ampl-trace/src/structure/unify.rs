//! Groups of ranks that call the same functions at the same sites in the same order, whatever they pass, as one group.
//!
//! Bodies differ where calls that are equal on one rank differ on another: counts or partners that follow from the rank.
//! Such groups get common terminals, one for each combination of their own that stand at one place. A rank may then
//! have several terminals with one signature.

use std::hash::{BuildHasher as _, BuildHasherDefault, Hasher as _};
use std::rc::Rc;
use std::sync::Arc;

use ampl_core::mpi::FUNCTION_COUNT;
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};

use super::relative_args::{Role, layout};
use super::shared_part::{Body, CallSites, Head, ONCE, Row, grammar};
use super::{Comm, Group, JobStructure, Lists, RankStructure, Signature, ThreadStructure, origins};
use crate::grammar::{Builder, Grammar};
use crate::record::CALL_MISS;
use crate::request::{self, SLOT_BITS, THREAD_AT, UNSEEN};

/// Largest number of runs in a sequence that is compared.
const MOST_RUNS: u64 = 1 << 20;
/// Common terminals that groups may have beyond the number of their own.
const MORE: usize = 64;
/// Largest number of parts with different counts that are compared.
const MOST_PARTS: usize = 64;
/// Groups with equal calls that a group is compared with.
const MOST_TRIED: usize = 2;

/// Calls of a group without their words: sequences can be equal only where these are.
#[derive(PartialEq, Eq, Hash)]
struct Outline {
    table: Arc<CallSites>,
    comms: usize,
    /// Number of each thread, and a hash of its calls in their order.
    threads: Vec<(u32, u64)>,
}

/// One thread of parts with common terminals.
struct Common {
    thread: u32,
    grammar: Grammar,
    /// Calls by terminal.
    heads: Vec<Head>,
    /// Terminals of each part by common terminal.
    own: Vec<Vec<u32>>,
}

/// Ranks of a group with equal counts: spans of positions, the first and one more than the last.
struct Part {
    group: Rc<Group>,
    spans: Vec<(u32, u32)>,
}

/// Ranks whose calls have common terminals.
struct Union {
    parts: Vec<Part>,
    threads: Vec<Common>,
}

impl JobStructure {
    /// Joins groups of ranks that call the same functions at the same sites in the same order. Signatures of their ranks
    /// may then occur several times.
    pub fn unify(&mut self) {
        if self.groups.iter().all(|group| group.lists.is_empty()) && self.groups.len() < 2 {
            return;
        }
        let mut unions: Vec<Union> = Vec::new();
        let mut known: FxHashMap<Outline, Vec<usize>> = FxHashMap::default();
        for group in std::mem::take(&mut self.groups) {
            let group = Rc::new(group);
            let Some((outline, new)) = Union::of(&group) else {
                let parts = vec![Part { spans: vec![(0, group.len())], group }];
                unions.push(Union { parts, threads: Vec::new() });
                continue;
            };
            let alike = known.entry(outline).or_default();
            let found = alike.iter().find_map(|&at| Some((at, unions[at].refined(&new)?)));
            match found {
                Some((at, refined)) => unions[at].add(new, refined),
                None => {
                    if alike.len() < MOST_TRIED {
                        alike.push(unions.len());
                    }
                    unions.push(new);
                }
            }
        }
        self.groups = unions.into_iter().flat_map(Union::finish).collect();
    }
}

impl Part {
    /// The ranks of `group` by their counts; `None` where there are too many with other ones.
    fn all(group: &Rc<Group>) -> Option<Vec<Self>> {
        let mut parts: Vec<Self> = Vec::new();
        let mut begin = 0;
        for end in group.count_ends() {
            let equal = parts.iter().position(|part| {
                let first = part.spans[0].0;
                group.lists.iter().all(|(_, lists)| list_at(lists, first) == list_at(lists, begin))
            });
            match equal {
                Some(at) => parts[at].spans.push((begin, end)),
                None if parts.len() == MOST_PARTS => return None,
                None => parts.push(Self { group: group.clone(), spans: vec![(begin, end)] }),
            }
            begin = end;
        }
        Some(parts)
    }

    /// Its ranks.
    fn ranks(&self) -> impl Iterator<Item = u32> + '_ {
        let within = |position: u32| self.spans.iter().any(|&(begin, end)| (begin..end).contains(&position));
        (0..).zip(self.group.members()).filter(move |&(position, _)| within(position)).map(|(_, rank)| rank)
    }

    /// Outline and threads; `None` where the sequences are too long or make no sense.
    fn outlined(&self) -> Option<(Outline, Vec<Common>)> {
        let Group { body, first, lists, rules_read, .. } = &*self.group;
        let mut outline = Outline { table: body.table.clone(), comms: body.comms, threads: Vec::new() };
        let (mut threads, mut begin) = (Vec::new(), 0);
        for thread in &body.threads {
            let end = begin + thread.rules.positions() as u32;
            let counts = |at| match lists.binary_search_by_key(&at, |&(index, _)| index) {
                Ok(index) => list_at(&lists[index].1, self.spans[0].0),
                Err(_) => first.list(at),
            };
            let grammar = grammar(&thread.rules, |at| counts(begin + at));
            begin = end;
            rules_read.add(&grammar);
            let runs = grammar.rules.all().filter(|item| item.symbol.as_terminal().is_some());
            let expansions = runs
                .map(|item| item.counts.iter().fold(0, |sum: u64, &(_, often)| sum.saturating_add(often)));
            if !grammar.is_sound() || expansions.fold(0, u64::saturating_add) > MOST_RUNS {
                return None;
            }
            outline.threads.push((thread.thread, hash_of_calls(&grammar, &thread.heads)?));
            let own = vec![(0..thread.heads.len() as u32).collect()];
            threads.push(Common { thread: thread.thread, grammar, heads: thread.heads.clone(), own });
        }
        Some((outline, threads))
    }
}

/// A number that sequences of equal calls share, whatever their words; `None` where a terminal has no call.
fn hash_of_calls(grammar: &Grammar, heads: &[Head]) -> Option<u64> {
    let builder = BuildHasherDefault::<FxHasher>::default();
    let hashes: Vec<u64> = heads.iter().map(|head| builder.hash_one(head)).collect();
    let mut hasher = builder.build_hasher();
    let mut put = |call, times| {
        hasher.write_u64(call);
        hasher.write_u64(times);
    };
    let (mut call, mut times) = (0, 0u64);
    for (terminal, count) in grammar.runs() {
        let next = *hashes.get(terminal as usize)?;
        if next == call {
            times += count;
        } else {
            put(call, times);
            (call, times) = (next, count);
        }
    }
    put(call, times);
    Some(hasher.finish())
}

/// The counts of a position in the sequence of the rank at `position`.
fn list_at(lists: &Lists, position: u32) -> &[(u64, u64)] {
    let span = lists.partition_point(|&(end, _)| end <= position);
    lists.get(span).map_or(&ONCE, |(_, list)| list)
}

/// A sequence of common terminals, and the two that each of them stands for.
type Refined = (Grammar, Vec<(u32, u32)>);

impl Common {
    /// Common terminals with `other`; `None` where calls differ, or there would be more than `most`.
    fn refined(&self, other: &Self, most: usize) -> Option<Refined> {
        // Whether there are too many is known before a grammar is begun.
        let pairs = self.paired(other, most, |_, _| {})?;
        // Runs of failed polls, of gaps and of edges mean something: none of them is to be cut.
        let mut seen: [FxHashSet<u32>; 2] = Default::default();
        let whole = pairs.iter().all(|&(one, two)| {
            let head = self.heads[one as usize];
            let may_be_cut = usize::from(head.function) < FUNCTION_COUNT && head.flags & CALL_MISS == 0;
            may_be_cut || seen[0].insert(one) && seen[1].insert(two)
        });
        if !whole {
            return None;
        }
        let mut builder = Builder::new();
        let pairs = self.paired(other, most, |number, count| builder.push(number, count))?;
        Some((builder.into_grammar(), pairs))
    }

    /// Pairs of terminals that stand at one place, in the order in which they come; `None` where calls differ, or there
    /// are more than `most`. Calls `each` for every run of a pair, with its number and length.
    fn paired(&self, other: &Self, most: usize, mut each: impl FnMut(u32, u64)) -> Option<Vec<(u32, u32)>> {
        let mut numbers: FxHashMap<(u32, u32), u32> = FxHashMap::default();
        let mut pairs = Vec::new();
        let (mut ours, mut theirs) = (self.grammar.runs(), other.grammar.runs());
        let (mut one, mut two) = ((0, 0), (0, 0));
        loop {
            if one.1 == 0 {
                let Some(next) = ours.next() else { break };
                one = next;
            }
            if two.1 == 0 {
                two = theirs.next()?;
            }
            let pair = (one.0, two.0);
            let number = *numbers.entry(pair).or_insert(pairs.len() as u32);
            if number as usize == pairs.len() {
                if self.heads.get(pair.0 as usize)? != other.heads.get(pair.1 as usize)?
                    || number as usize == most
                {
                    return None;
                }
                pairs.push(pair);
            }
            let count = one.1.min(two.1);
            each(number, count);
            (one.1, two.1) = (one.1 - count, two.1 - count);
        }
        (two.1 == 0 && theirs.next().is_none()).then_some(pairs)
    }
}

impl Union {
    /// Outline of the group's ranks, and these with common terminals where counts differ; `None` where there are none.
    fn of(group: &Rc<Group>) -> Option<(Outline, Self)> {
        let mut all: Option<(Outline, Self)> = None;
        for part in Part::all(group)? {
            let (outline, threads) = part.outlined()?;
            let new = Self { parts: vec![part], threads };
            match &mut all {
                None => all = Some((outline, new)),
                Some((known, union)) => {
                    let refined = if *known == outline { union.refined(&new)? } else { return None };
                    union.add(new, refined);
                }
            }
        }
        all
    }

    /// Common terminals of all threads with those of `other`.
    fn refined(&self, other: &Self) -> Option<Vec<Refined>> {
        let own = self.parts.iter().chain(&other.parts).flat_map(|part| &part.group.body.threads);
        let most = MORE + own.map(|thread| thread.heads.len()).sum::<usize>();
        self.threads.iter().zip(&other.threads).map(|(one, two)| one.refined(two, most)).collect()
    }

    /// Adds `other`.
    fn add(&mut self, other: Self, refined: Vec<Refined>) {
        for ((thread, other), (grammar, pairs)) in self.threads.iter_mut().zip(other.threads).zip(refined) {
            for own in &mut thread.own {
                *own = pairs.iter().map(|&(one, _)| own[one as usize]).collect();
            }
            let others = other.own.iter();
            thread.own.extend(others.map(|own| pairs.iter().map(|&(_, two)| own[two as usize]).collect()));
            thread.heads = pairs.iter().map(|&(one, _)| thread.heads[one as usize]).collect();
            thread.grammar = grammar;
        }
        self.parts.extend(other.parts);
    }

    /// One group of all ranks, or the groups as they were where that cannot be made.
    fn finish(mut self) -> Vec<Group> {
        if self.parts.len() > 1 {
            for thread in &mut self.threads {
                thread.grammar = std::mem::take(&mut thread.grammar).shorter();
            }
            if let Some(joined) = self.joined() {
                return vec![joined];
            }
        }
        let mut groups: Vec<Rc<Group>> = self.parts.into_iter().map(|part| part.group).collect();
        groups.dedup_by(|one, other| Rc::ptr_eq(one, other));
        groups.into_iter().map(Rc::unwrap_or_clone).collect()
    }

    fn joined(&self) -> Option<Group> {
        let mut ranks: Vec<(u32, usize)> = Vec::new();
        for (index, part) in self.parts.iter().enumerate() {
            ranks.extend(part.ranks().map(|rank| (rank, index)));
        }
        ranks.sort_unstable();
        let &(first, index) = ranks.first()?;
        let (comms, signatures) = self.rank(first, index)?;
        let threads = self.threads.iter().zip(signatures).map(|(thread, signatures)| ThreadStructure {
            thread: thread.thread,
            signatures,
            grammar: thread.grammar.clone(),
        });
        let lowest = &self.parts[index].group;
        let table = &lowest.body.table;
        let (modules, sites) = (table.modules.to_vec(), table.sites.to_vec());
        let (body, Row { lists, .. }) =
            Body::split(RankStructure { rank: first, threads: threads.collect(), modules, sites, comms });
        let body = Arc::new(Body { table: table.clone(), ..body });
        let hash = body.hash();
        // Ranks that are the lowest and have these terminals already stay as they are.
        let stay = lowest.lists.is_empty() && lowest.body == body;
        let stay = if stay { ranks.iter().take_while(|&&(_, part)| part == index).count() } else { 0 };
        let (mut all, from) = match stay == lowest.len() as usize {
            true => (Some(Group::clone(lowest)), stay),
            false => (None, 0),
        };
        for &(rank, index) in &ranks[from..] {
            let (comms, signatures) = self.rank(rank, index)?;
            let first = Row { words: Row::turned(&comms, signatures), lists: lists.clone() };
            let (words, lists, rules_read) = Default::default();
            let (body, ranks) = (body.clone(), vec![(rank, 1)]);
            let one = Group { body, hash, job: 0, ranks, first, words, lists, rules_read };
            match &mut all {
                Some(all) => all.join(one),
                None => all = Some(one),
            }
        }
        all
    }

    /// Communicators of `rank`, of part number `index`, and its signatures by common terminal; `None` where a request
    /// is of a call that is not in the sequence.
    fn rank(&self, rank: u32, index: usize) -> Option<(Vec<Comm>, Vec<Vec<Signature>>)> {
        let (comms, signatures) = self.parts[index].group.calls(rank)?;
        let makers: Vec<_> =
            self.threads.iter().zip(&signatures).map(|(thread, own)| thread.makers(index, own)).collect();
        let renamed = |word: u64| {
            let Some(terminal) = request::terminal(word).filter(|_| word < UNSEEN) else { return Some(word) };
            let thread = (word >> THREAD_AT) as u32;
            let Some(at) = self.threads.iter().position(|known| known.thread == thread) else {
                return Some(word);
            };
            let maker = u64::from(*makers[at].get(&u32::try_from(terminal).ok()?)?);
            Some(u64::from(thread) << THREAD_AT | (maker + 1) << SLOT_BITS | request::slot(word))
        };
        let of_thread = |(thread, own): (&Common, &Vec<Signature>)| -> Option<Vec<Signature>> {
            let signature = |&terminal: &u32| {
                let mut signature = own.get(terminal as usize)?.clone();
                let slots = layout(signature.function, signature.flags, &signature.words);
                for (word, slot) in signature.words.iter_mut().zip(slots) {
                    // What a call leaves of its requests names them, too; a slot alone stays as it is.
                    if matches!(slot.role, Role::Request | Role::Made) {
                        *word = renamed(*word)?;
                    }
                }
                Some(signature)
            };
            thread.own[index].iter().map(signature).collect()
        };
        let signatures = self.threads.iter().zip(&signatures).map(of_thread).collect::<Option<_>>()?;
        Some((comms, signatures))
    }
}

impl Common {
    /// Common terminal by which the requests are called that calls of a terminal of part number `index` make, of a rank
    /// with these signatures.
    fn makers(&self, index: usize, signatures: &[Signature]) -> FxHashMap<u32, u32> {
        let origins = origins(signatures);
        let mut makers = FxHashMap::default();
        let own = || (0..).zip(&self.own[index]);
        for (number, &terminal) in own() {
            if let Some(&Some(origin)) = origins.get(terminal as usize) {
                makers.entry(origin).or_insert(number);
            }
        }
        for (number, &terminal) in own() {
            makers.entry(terminal).or_insert(number);
        }
        makers
    }
}
