//! The communicators of a job: the ranks that made each together, and its members.
//!
//! Each rank numbers its communicators for itself, and reuses numbers. To match them, calls are counted: each rank
//! counts its calls that make communicators of another, and calls of all its ranks with the same count are one. So
//! ranks' calls are played to their ends ([`job`]), which gives every communicator its members. These are compared
//! with all that MPI returned to the ranks: sizes, ranks, and whether a communicator was given at all. A communicator
//! that does not fit, or is not determined, stays each rank's own.

mod calls;
mod collective;
mod complete;
mod groups;
mod job;
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

/// True where calls of `function` make or free communicators or groups: later calls cannot be followed without them.
pub fn acts(function: u16) -> bool {
    weight(function) == Weight::Acts
}

/// Name of a communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Name {
    /// On all ranks: from 1, in the order of their lowest ranks, then of the calls of these.
    Agreed(u32),
    /// On one rank, where its other members are not known: its communicator of that number, from 1.
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

/// Parent of a communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parent {
    /// `MPI_COMM_WORLD`.
    World,
    /// `MPI_COMM_SELF`.
    Itself,
    /// A communicator that the program made.
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
    /// Name in decoded calls.
    pub name: Name,
    /// The function that made it: index in the function table.
    pub function: u16,
    /// Parent, where it is known; of an intercommunicator, the parent of the first group.
    pub parent: Option<Parent>,
    /// Number of its ranks, in both groups of an intercommunicator; `None` where it is not known.
    pub size: Option<u32>,
    /// Ranks of the world in the order of their numbers; of an intercommunicator the first group, which has the lowest
    /// rank. `None` where they are not known.
    pub ranks: Option<Members>,
    /// Ranks of the second group of an intercommunicator.
    pub remote: Option<Members>,
}

impl Communicator {
    /// True where it is known which ranks have it.
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

/// Names of one rank's communicators.
#[derive(Debug)]
struct RankNames {
    words: Names,
    /// Agreed number, or 0, by the rank's own number less 1.
    agreed: Vec<u32>,
}

/// Largest number of calls that are followed, unless the caller sets one.
const MOST: usize = 1 << 23;
/// Largest number of ranks that are followed.
const MOST_RANKS: u32 = 1 << 22;
/// Number of times that scripts are played at most, when they contradict themselves.
const ATTEMPTS: usize = 8;

impl Communicators {
    /// Communicators of a run.
    pub fn of(trace: &Trace) -> Self {
        Self::within(trace, MOST)
    }

    /// As [`Communicators::of`], but reads at most `most` calls of all ranks, and stops after steps in proportion:
    /// communicators that are made later are not in it.
    pub fn within(trace: &Trace, most: usize) -> Self {
        let process = |rank: u32| trace.rank(rank).map(|found| &found.process);
        Self::made(&trace.run, &trace.structure, &process, most, false)
    }

    /// Communicators of a job whose ranks call `structure`, where `process` has the facts of a rank.
    pub fn of_job<'a>(
        run: &RunInfo,
        structure: &JobStructure,
        process: &dyn Fn(u32) -> Option<&'a Process>,
    ) -> Self {
        Self::made(run, structure, process, MOST, false)
    }

    /// As [`Communicators::of_job`], but calls are matched in their order even where ranks contradict each other, as MPI
    /// matches them: a program that lacks a call has the communicators that it made before.
    pub fn in_order<'a>(
        run: &RunInfo,
        structure: &JobStructure,
        process: &dyn Fn(u32) -> Option<&'a Process>,
    ) -> Self {
        Self::made(run, structure, process, MOST, true)
    }

    fn made<'a>(
        run: &RunInfo,
        structure: &JobStructure,
        process: &dyn Fn(u32) -> Option<&'a Process>,
        most: usize,
        in_order: bool,
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
            size: run.ranks.max(structure.rank_count()).min(MOST_RANKS),
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
            let mut wrong = std::mem::take(&mut job.unsure);
            if !in_order {
                wrong.extend(std::mem::take(&mut job.wrong));
            }
            if wrong.is_empty() {
                return Self { complete: !cut, ..Self::named(&job) };
            }
            distrusted.extend(wrong);
        }
        // Nothing is played: no communicator is agreed.
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

    /// True unless communicators were left out because there are too many.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// The communicator that a word of `rank` stands for; `None` where it has stood for several.
    pub fn only(&self, rank: u32, word: u64) -> Option<&Communicator> {
        let name = self.only_name(rank, word)?;
        self.list.iter().find(|comm| comm.name == name)
    }

    /// Name of the communicator that a word of `rank` stands for; `None` where it has stood for several.
    pub fn only_name(&self, rank: u32, word: u64) -> Option<Name> {
        let names = self.ranks.get(&rank)?;
        Some(names.name(rank, names.words.words.only(word).filter(|&made| made != NONE)?))
    }

    /// Follower of the names of communicators in the calls of `rank`.
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
    /// Begins a thread: calls that follow are its own, from its first.
    pub fn thread(&mut self, thread: u32) {
        self.scope = Scope::new(thread, false);
        let threads = self.names.map_or(&[][..], |names| &names.words.threads);
        let own = threads.iter().find(|&&(number, ..)| number == thread);
        (self.next, self.end) = own.map_or((0, 0), |&(_, first, count)| (first, first + count));
    }

    /// Notes a call that has returned: the communicator it made has a name from now on.
    pub fn made(&mut self, signature: &Signature) {
        match self.read(signature) {
            Read::Known(call) if matches!(call.does, Does::Makes(_)) => {
                let Some(word) = call.made() else { return };
                // Made behind the calls that were read.
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

    /// Notes a call that has been decoded: the communicator it freed has no name from now on.
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

    /// Name of the communicator that a word of the program stands for now; `None` where it is not known.
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

/// Scripts of the ranks that make communicators; `None` where reading them takes more fuel than there is.
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

/// True where every call that makes or frees communicators or groups was to be recorded, whatever else was not. An
/// agent that does so reports the interface of the program.
fn keeps(run: &RunInfo) -> bool {
    let config = run.abi.and_then(|_| Config::parse(&run.config).ok());
    config.is_some_and(|(config, _)| config.trace.structure == Keep::All && config.sites.is_empty())
}
