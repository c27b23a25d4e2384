//! Communicators as calls name them.

use ampl_trace::communicators::{Communicators, Follower};
use rustc_hash::FxHashMap;

use crate::messages::{Comm, Scope, Scopes};

/// A communicator, for one of its ranks.
#[derive(Clone, Copy, Debug)]
pub struct Joined<'a> {
    /// Its number among those met.
    pub number: u32,
    scope: Scope<'a>,
    /// Ranks of the job.
    ranks: u32,
}

impl Joined<'_> {
    /// Rank of the world of a rank that a call names.
    pub fn world(&self, rank: i64) -> Option<u32> {
        self.scope.world(rank, self.ranks)
    }

    /// Number of ranks that call collectives together.
    pub fn size(&self) -> u32 {
        match self.scope {
            Scope::World => self.ranks,
            Scope::Itself(_) => 1,
            Scope::Made(comm, _) => {
                let length = |members: &Option<ampl_trace::communicators::Members>| {
                    members.as_ref().map_or(0, ampl_trace::communicators::Members::len)
                };
                length(&comm.ranks) + length(&comm.remote)
            }
        }
    }

    /// Place of a rank of the world among the ranks that a call names; `None` where it has none.
    pub fn place(&self, world: u32) -> Option<u32> {
        match self.scope {
            Scope::World => (world < self.ranks).then_some(world),
            Scope::Itself(own) => (world == own).then_some(0),
            Scope::Made(_, members) => members.place(world),
        }
    }

    /// True where it joins two groups.
    pub fn is_between(&self) -> bool {
        matches!(self.scope, Scope::Made(comm, _) if comm.remote.is_some())
    }

    /// True where `world` is one of its ranks.
    pub fn has(&self, world: u32) -> bool {
        let in_group = |members: &Option<ampl_trace::communicators::Members>| {
            members.as_ref().is_some_and(|members| members.place(world).is_some())
        };
        match self.scope {
            Scope::Made(comm, _) => in_group(&comm.ranks) || in_group(&comm.remote),
            _ => self.place(world).is_some(),
        }
    }

    /// The communicator.
    pub fn comm(&self) -> Comm {
        self.scope.comm()
    }
}

/// All communicators met.
#[derive(Debug)]
pub struct Table<'a> {
    scopes: Scopes<'a>,
    ranks: u32,
    numbers: FxHashMap<(Comm, u32), u32>,
}

impl<'a> Table<'a> {
    /// Communicators of a job of `ranks` ranks.
    pub fn new(comms: &'a Communicators, ranks: u32) -> Self {
        Self { scopes: Scopes::new(comms), ranks, numbers: FxHashMap::default() }
    }

    /// The communicator that `word` stands for now; `None` where its ranks are not known.
    pub fn joined(&mut self, rank: u32, word: u64, follower: &Follower<'_>) -> Option<Joined<'a>> {
        let scope = match Scopes::predefined(rank, word) {
            Some(scope) => scope,
            None => self.scopes.named(rank, follower.name(word)?)?,
        };
        let own = if let Scope::Itself(own) = scope { own } else { 0 };
        let next = self.numbers.len() as u32;
        let number = *self.numbers.entry((scope.comm(), own)).or_insert(next);
        Some(Joined { number, scope, ranks: self.ranks })
    }

    /// The communicators met, by their numbers; of `MPI_COMM_SELF` with the rank.
    pub fn met(&self) -> Vec<(Comm, u32)> {
        let mut met: Vec<_> = self.numbers.iter().map(|(&comm, &number)| (number, comm)).collect();
        met.sort_unstable_by_key(|&(number, _)| number);
        met.into_iter().map(|(_, comm)| comm).collect()
    }
}
