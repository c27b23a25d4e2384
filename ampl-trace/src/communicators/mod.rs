//! The communicators of a job: which ranks made which together, and who is in them.
//!
//! A rank numbers its communicators for itself, and takes numbers again. Which of them are one is told by what a
//! trace has of all ranks: each counts the calls that make communicators of another, and those that all of that
//! make together are the ones with the same count. So ranks' calls are played to their ends ([`job`]), which gives
//! every communicator its members, and these are compared with all that ranks were told: sizes, their own numbers,
//! and whether they were given a communicator at all. What does not fit, or cannot be told, is each rank's own.

mod calls;
mod groups;
mod job;
mod meet;
mod meeting;
mod members;
mod parts;
mod scope;
mod script;
mod wait;
mod walk;

use std::fmt::{Display, Formatter};

use ampl_core::config::{Config, Keep};
use ampl_core::mpi::constants;
use rustc_hash::{FxHashMap, FxHashSet};

use self::calls::{Does, Read, Weight, read, weight};
use self::job::{CommId, Job, Known, Setting, WORLD};
pub use self::members::Members;
use self::scope::Scope;
use self::script::{NONE, Names, Object, Script, script};
use self::walk::Fuel;
use crate::model::{Process, RunInfo, Trace};
use crate::structure::{JobStructure, Signature};

/// True where calls of `function` make or free communicators or groups: without them what later calls name is not known.
pub fn acts(function: u16) -> bool {
    weight(function) == Weight::Acts
}

/// What a communicator is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Name {
    /// On all ranks: from 1, in the order of their lowest ranks, and of what these make.
    Agreed(u32),
    /// On one rank, of which it is not known who else has it: its communicator of that number, from 1.
    Own {
        /// The rank.
        rank: u32,
        /// The number.
        number: u32,
    },
}

impl Display for Name {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Agreed(number) => write!(f, "comm:{number}"),
            Self::Own { rank, number } => write!(f, "comm:{rank}.{number}"),
        }
    }
}

/// What a communicator was made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parent {
    /// That of all ranks.
    World,
    /// That of one rank.
    Itself,
    /// One that was made.
    Made(Name),
}

impl Display for Parent {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::World => f.write_str("world"),
            Self::Itself => f.write_str("self"),
            Self::Made(name) => name.fmt(f),
        }
    }
}

/// A communicator that the program made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Communicator {
    /// What decoded calls call it.
    pub name: Name,
    /// The function that made it: index in the function table.
    pub function: u16,
    /// What it was made of, where that is known; of one between two what the first group comes from.
    pub parent: Option<Parent>,
    /// Its ranks, of both groups if it is one between two; `None` where that is not known.
    pub size: Option<u32>,
    /// Ranks of the world in the order of their numbers, of one between two those of the first group, which has the
    /// lowest; `None` where that is not known.
    pub ranks: Option<Members>,
    /// Those of the second group of one between two.
    pub remote: Option<Members>,
}

impl Communicator {
    /// Whether it is known which ranks have it.
    pub fn is_agreed(&self) -> bool {
        matches!(self.name, Name::Agreed(_))
    }
}

/// The communicators that the program made.
#[derive(Debug, Default)]
pub struct Communicators {
    list: Vec<Communicator>,
    ranks: FxHashMap<u32, RankNames>,
    complete: bool,
}

/// Those of one rank.
#[derive(Debug)]
struct RankNames {
    words: Names,
    /// By the rank's own number, less 1: the agreed one, or 0.
    agreed: Vec<u32>,
}

/// Calls of so many are followed, where nothing else is said.
const MOST: usize = 1 << 23;
/// More ranks are not looked at.
const MOST_RANKS: u32 = 1 << 22;
/// How often the scripts are played again when they contradict themselves.
const ATTEMPTS: usize = 8;

impl Communicators {
    /// Communicators of a run.
    pub fn of(trace: &Trace) -> Self {
        Self::within(trace, MOST)
    }

    /// As [`Communicators::of`], but looking at no more than `most` calls of all ranks, nor for longer than these
    /// allow: communicators that are made later are not in it.
    pub fn within(trace: &Trace, most: usize) -> Self {
        let process = |rank: u32| trace.rank(rank).map(|found| &found.process);
        Self::made(&trace.run, &trace.structure, &process, most)
    }

    /// Communicators of a job whose ranks call `structure`, where `process` has the facts of a rank.
    pub fn of_job<'a>(
        run: &RunInfo,
        structure: &JobStructure,
        process: &dyn Fn(u32) -> Option<&'a Process>,
    ) -> Self {
        Self::made(run, structure, process, MOST)
    }

    fn made<'a>(
        run: &RunInfo,
        structure: &JobStructure,
        process: &dyn Fn(u32) -> Option<&'a Process>,
        most: usize,
    ) -> Self {
        let mut fuel = Fuel(most as u64 * 128);
        let Some(scripts) = scripts(run, structure, process, most, &mut fuel) else { return Self::default() };
        let cut = scripts.iter().any(|script| script.cut);
        let excused = |rank: u32| match scripts.binary_search_by_key(&rank, |script| script.rank) {
            Ok(index) => !scripts[index].complete,
            Err(_) => !process(rank).is_some_and(|process| process.finalized),
        };
        let host = |script: &Script| process(script.rank).map_or("", |process| &process.host);
        let setting = Setting {
            size: run.ranks.max(structure.job()).min(MOST_RANKS),
            scripts: &scripts,
            hosts: scripts.iter().map(host).collect(),
            shared: run
                .abi_family()
                .and_then(|family| constants::value(family, "MPI_COMM_TYPE_SHARED"))
                .map(i64::from),
            excused: &excused,
            most,
        };
        let mut distrusted = FxHashSet::default();
        for _ in 0..ATTEMPTS {
            let mut job = Job::new(&setting, &distrusted);
            if job.play(&mut fuel).is_none() {
                break;
            }
            if job.wrong.is_empty() {
                return Self { complete: !cut, ..Self::named(&job) };
            }
            let wrong = std::mem::take(&mut job.wrong);
            distrusted.extend(wrong);
        }
        // Nothing is played: nobody agrees with anybody.
        Self { complete: !cut, ..Self::named(&Job::new(&setting, &distrusted)) }
    }

    fn named(job: &Job<'_>) -> Self {
        let scripts = job.setting.scripts;
        let mut numbers = vec![0; job.comms.len()];
        let mut makers = Vec::new();
        for (at, script) in (0..).zip(scripts) {
            for (&known, made) in job.made(at).iter().zip(&script.made) {
                if let Known::Is(comm) = known
                    && numbers[comm as usize] == 0
                {
                    makers.push((comm, made.function));
                    numbers[comm as usize] = makers.len() as u32;
                }
            }
        }
        let parent = |comm: CommId| match (comm, numbers[comm as usize]) {
            (WORLD, _) => Parent::World,
            (_, 0) => Parent::Itself,
            (_, number) => Parent::Made(Name::Agreed(number)),
        };
        let agreed = |(number, &(comm, function)): (u32, &(CommId, u16))| {
            let comm = &job.comms[comm as usize];
            let list = |list| Some(job.lists.get(list).clone()).filter(|_| comm.ordered);
            let others = comm.second.map_or(0, |second| job.lists.get(second).len());
            Communicator {
                name: Name::Agreed(number),
                function,
                parent: comm.parent.map(parent),
                size: Some(job.lists.get(comm.first).len() + others),
                ranks: list(comm.first),
                remote: comm.second.and_then(list),
            }
        };
        let mut list: Vec<Communicator> = (1..).zip(&makers).map(agreed).collect();
        let mut ranks = FxHashMap::default();
        for (at, script) in (0..).zip(scripts) {
            let number = |known: &Known| match known {
                Known::Is(comm) => numbers[*comm as usize],
                _ => 0,
            };
            let agreed: Vec<u32> = job.made(at).iter().map(number).collect();
            let names = RankNames { words: script.names.clone(), agreed };
            for (own, made) in (0..).zip(&script.made) {
                if names.agreed[own as usize] != 0 {
                    continue;
                }
                let parent = match made.on {
                    Object::World => Some(Parent::World),
                    Object::Itself => Some(Parent::Itself),
                    Object::Made(parent) => Some(Parent::Made(names.name(script.rank, parent))),
                    _ => None,
                };
                let known = |fact: u32| Some(fact).filter(|&fact| fact != NONE && !made.facts.wrong);
                list.push(Communicator {
                    name: names.name(script.rank, own),
                    function: made.function,
                    parent,
                    size: known(made.facts.size).map(|size| size + known(made.facts.remote).unwrap_or(0)),
                    ranks: None,
                    remote: None,
                });
            }
            ranks.insert(script.rank, names);
        }
        Self { list, ranks, complete: false }
    }

    /// All of them: the agreed ones by number, then others by rank.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Communicator> {
        self.list.iter()
    }

    /// Whether none that a rank made was left out because there are too many.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// The communicator that a word of `rank` stands for; `None` where it has stood for several.
    pub fn only(&self, rank: u32, word: u64) -> Option<&Communicator> {
        let names = self.ranks.get(&rank)?;
        let name = names.name(rank, names.words.words.only(word).filter(|&made| made != NONE)?);
        self.list.iter().find(|comm| comm.name == name)
    }

    /// What `rank` calls communicators, call by call.
    pub fn follow(&self, rank: u32) -> Follower<'_> {
        let names = self.ranks.get(&rank);
        Follower { rank, names, scope: Scope::new(0, false), next: 0, end: 0 }
    }
}

impl RankNames {
    fn name(&self, rank: u32, made: u32) -> Name {
        match self.agreed.get(made as usize) {
            Some(&number @ 1..) => Name::Agreed(number),
            _ => Name::Own { rank, number: made.saturating_add(1) },
        }
    }
}

/// Names of communicators in the calls of one rank, thread by thread, each in its order.
#[derive(Debug)]
pub struct Follower<'a> {
    rank: u32,
    names: Option<&'a RankNames>,
    scope: Scope,
    /// The communicator that the thread makes next, and the first of the next thread's.
    next: u32,
    end: u32,
}

impl Follower<'_> {
    /// What follows are calls of that thread, from its first.
    pub fn thread(&mut self, thread: u32) {
        self.scope = Scope::new(thread, false);
        let threads = self.names.map_or(&[][..], |names| &names.words.threads);
        let own = threads.iter().find(|&&(number, ..)| number == thread);
        (self.next, self.end) = own.map_or((0, 0), |&(_, first, count)| (first, first + count));
    }

    /// A call has returned: what it has made has a name from now on.
    pub fn made(&mut self, signature: &Signature) {
        match self.read(signature) {
            Read::Known(call) if matches!(call.does, Does::Makes(_)) => {
                let Some(word) = call.made() else { return };
                // Those that were not looked at.
                if self.next >= self.end {
                    self.scope.made(word, NONE);
                    return;
                }
                self.scope.made(word, self.next);
                self.next += 1;
            }
            Read::Lost if self.names.is_some_and(|names| names.words.gaps_matter) => self.scope.lose(),
            _ => {}
        }
    }

    /// It has been told: what it has freed has no name from now on.
    pub fn freed(&mut self, signature: &Signature) {
        if let Read::Known(call) = self.read(signature)
            && let (Does::Frees, Some(word)) = (call.does, call.made())
        {
            self.scope.freed(word);
        }
    }

    fn read(&self, signature: &Signature) -> Read {
        let matters = weight(signature.function) == Weight::Acts;
        if matters { read(signature) } else { Read::Nothing }
    }

    /// What a word of a communicator that the program made stands for now.
    pub fn name(&self, word: u64) -> Option<Name> {
        let names = self.names?;
        let made = self.scope.get(&names.words.words, word).filter(|&made| made != NONE)?;
        Some(names.name(self.rank, made))
    }

    /// The rank.
    pub fn rank(&self) -> u32 {
        self.rank
    }
}

/// What the ranks do that make communicators; `None` where looking takes more than there is.
fn scripts<'a>(
    run: &RunInfo,
    structure: &JobStructure,
    process: &dyn Fn(u32) -> Option<&'a Process>,
    most: usize,
    fuel: &mut Fuel,
) -> Option<Vec<Script>> {
    let makes = |function| matches!(calls::does(function), Some(Does::Makes(_)));
    let mut number = 0usize;
    for selected in structure.select(makes) {
        fuel.spend(1 + selected.extent)?;
        number += 1;
    }
    let share = most.checked_div(number).unwrap_or(0).max(1);
    let (mut scripts, keeps) = (Vec::new(), keeps(run));
    for selected in structure.select(makes) {
        let Some(structure) = selected.structure() else { continue };
        scripts.extend(script(&structure, process(selected.rank), keeps, share, fuel));
    }
    scripts.sort_unstable_by_key(|script| script.rank);
    scripts.dedup_by_key(|script| script.rank);
    Some(scripts)
}

/// True where every call that makes or frees communicators or groups was to be recorded, whatever else was not. An agent
/// that does so says which interface it saw.
fn keeps(run: &RunInfo) -> bool {
    let config = run.abi.and_then(|_| Config::parse(&run.config).ok());
    config.is_some_and(|(config, _)| config.trace.structure == Keep::All && config.sites.is_empty())
}
