//! One logical program that stands for all ranks: calls by direction, with guards.
//!
//! Ranks that share a grammar are a class. A class's grammar becomes loops and calls; the classes' programs are laid over
//! each other, and each part keeps the classes that it is for. A partner is a rule over verified coordinates where one
//! gives the partners of all ranks of the part, else a table. So the program of each rank follows from it without
//! loss, however well the classes fit together: a poor fit makes it longer, not wrong.
//!
//! # Source
//! Q. Xu, J. Subhlok, R. Zheng, S. Voss, *Logicalization of communication traces from parallel execution* (2009).
//! Departures: all ranks are read instead of a representative, so that no call is lost where no rank has all neighbours;
//! calls outside the topology stay, by table.

mod calls;
mod check;
mod formula;
mod grid;
mod labels;
mod merge;
mod space;
mod tree;

use ampl_trace::communicators::Communicators;
use ampl_trace::regions::Edge;
use ampl_trace::structure::{JobStructure, RankStructure};

use self::labels::Labels;
use self::tree::Stream;
use crate::messages::Scopes;
use crate::topology::Found;

pub use self::calls::{
    Argument, BUFFER_IN_PLACE, Detail, Meaning, NO_REQUEST, OUTPUT, Oddity, Plain, UNSEEN_REQUEST, oddity,
    predefined,
};
pub use self::check::{Check, Losses, check};
pub use self::formula::{Formula, Formulas, Guard};
pub use self::grid::Grid;
pub use self::labels::{Call, Values};
pub use self::space::{Partner, Space};
pub use self::tree::{Count, Node, Use};

/// Most words of all ranks' calls that are read.
const MOST_WORDS: u64 = 1 << 28;

/// The ranks of a job that take the same way through the program of a thread.
#[derive(Clone, Debug)]
pub struct Class {
    /// Ranks, ascending.
    pub ranks: Vec<u32>,
    /// Counts that differ from one time to the next, by the number of their place.
    streams: Vec<Stream>,
}

impl Class {
    /// Counts of the list of that number, one after the other: a count, and how often it comes in a row.
    pub fn list(&self, number: u32) -> &[(u64, u64)] {
        self.streams.get(number as usize).map_or(&[], Stream::counts)
    }
}

/// The program of the threads of one number.
#[derive(Clone, Debug)]
pub struct Thread {
    /// Number of the thread.
    pub number: u32,
    /// Classes of ranks that have such a thread.
    pub classes: Vec<Class>,
    /// Body.
    pub body: Vec<Node>,
}

/// The logical program of a run.
#[derive(Clone, Debug)]
pub struct Program {
    /// Ranks of the job.
    pub ranks: u32,
    /// Coordinates that partners are named by.
    pub space: Space,
    /// Calls by label.
    pub calls: Vec<Call>,
    /// Threads.
    pub threads: Vec<Thread>,
    /// Ranks without recorded calls, or whose calls make no sense.
    pub missing: Vec<u32>,
}

/// More to read than fits in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMuch;

impl std::fmt::Display for TooMuch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the ranks' calls differ in too many ways for one program")
    }
}

impl std::error::Error for TooMuch {}

impl Program {
    /// The program of the ranks of `structure`, whose patterns were `found`, those of most traffic first.
    ///
    /// # Errors
    /// [`TooMuch`] where the calls of all ranks take too much memory.
    pub fn of(
        structure: &JobStructure,
        comms: &Communicators,
        ranks: u32,
        found: &[Found],
    ) -> Result<Self, TooMuch> {
        Self::with(structure, comms, ranks, found, Detail::Message)
    }

    /// The same, whose calls have their arguments in that detail.
    ///
    /// # Errors
    /// [`TooMuch`].
    pub fn with(
        structure: &JobStructure,
        comms: &Communicators,
        ranks: u32,
        found: &[Found],
        detail: Detail,
    ) -> Result<Self, TooMuch> {
        let ranks = ranks.max(structure.rank_count());
        let space = Space::of(found);
        let scopes = Scopes::new(comms);
        let mut labels = Labels::new(ranks, detail);
        let mut threads: Vec<Thread> = Vec::new();
        let mut present = vec![false; ranks as usize];
        let mut words = 0;
        let mut groups: Vec<_> = structure.groups().collect();
        // The largest first: the others are laid over it.
        groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
        for group in groups {
            let members: Vec<u32> = group.ranks().collect();
            words += u64::from(group.len()) * group.signatures() * 8;
            if words > MOST_WORDS {
                return Err(TooMuch);
            }
            let read: Vec<RankStructure> = members.iter().filter_map(|&rank| structure.rank(rank)).collect();
            if read.len() != members.len() {
                continue;
            }
            members.iter().for_each(|&rank| present[rank as usize] = true);
            for (index, thread) in group.threads().enumerate() {
                let regions: Vec<bool> = thread.calls().map(|call| Edge::of(call.0).is_some()).collect();
                let is_region = |terminal: u32| regions.get(terminal as usize).is_some_and(|&is| is);
                for (span, grammar) in thread.grammars() {
                    let grammar = grammar.without(is_region);
                    let span = span.start as usize..span.end as usize;
                    let own = &read[span.clone()];
                    let by_terminal = labels.class(&scopes, &space, own, index);
                    let (body, streams) = tree::of(&grammar, &by_terminal).ok_or(TooMuch)?;
                    let class = Class { ranks: members[span].to_vec(), streams };
                    let at = match threads.iter().position(|known| known.number == thread.number()) {
                        Some(at) => at,
                        None => {
                            threads.push(Thread {
                                number: thread.number(),
                                classes: Vec::new(),
                                body: Vec::new(),
                            });
                            threads.len() - 1
                        }
                    };
                    let Thread { classes, body: known, .. } = &mut threads[at];
                    let number = classes.len() as u32;
                    classes.push(class);
                    let known_body = std::mem::take(known);
                    *known = merge::merged(known_body, tree::for_class(body, number));
                }
            }
        }
        threads.sort_by_key(|thread| thread.number);
        let missing = (0..).zip(&present).filter(|(_, is)| !**is).map(|(rank, _)| rank).collect();
        let calls = labels.finish(&space);
        Ok(Self { ranks, space, calls, threads, missing })
    }

    /// Calls of `rank` from the program alone, thread by thread: number of the thread, label and repetitions.
    pub fn runs(&self, rank: u32) -> Vec<(u32, u32, u64)> {
        let mut runs = Vec::new();
        for thread in &self.threads {
            let class = thread.classes.iter().position(|class| class.ranks.binary_search(&rank).is_ok());
            let Some(class) = class else { continue };
            let mut streams = thread.classes[class].streams.iter().map(Stream::start).collect::<Vec<_>>();
            tree::walk(&thread.body, class as u32, &mut streams, &mut |call, times| {
                runs.push((thread.number, call, times));
            });
        }
        runs
    }

    /// The call of that label as `rank` makes it.
    pub fn call(&self, label: u32, rank: u32) -> Option<Plain> {
        self.calls.get(label as usize)?.of(rank, &self.space, self.ranks)
    }

    /// Number of calls in the program as it is printed: each once.
    pub fn records(&self) -> u64 {
        fn of(nodes: &[Node]) -> u64 {
            nodes
                .iter()
                .map(|node| match node {
                    Node::Call { .. } => 1,
                    Node::Loop { body, .. } => of(body),
                })
                .sum()
        }
        self.threads.iter().map(|thread| of(&thread.body)).sum()
    }
}
