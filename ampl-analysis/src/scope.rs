//! Ranks of communicators as ranks of the world.

use ampl_core::mpi::PREDEFINED;
use ampl_trace::args::index_of_predefined;
use ampl_trace::communicators::{Communicator, Communicators, Members, Name};
use rustc_hash::FxHashMap;

/// A communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Comm {
    /// `MPI_COMM_WORLD`.
    World,
    /// `MPI_COMM_SELF`.
    Itself,
    /// A communicator that the program made.
    Made(Name),
}

/// A communicator with its members, as the ranks' calls name it.
#[derive(Clone, Copy, Debug)]
pub enum Scope<'a> {
    /// `MPI_COMM_WORLD`.
    World,
    /// `MPI_COMM_SELF` of that rank.
    Itself(u32),
    /// A communicator that the program made, and the group that its ranks name.
    Made(&'a Communicator, &'a Members),
}

impl Scope<'_> {
    /// The communicator.
    pub fn comm(self) -> Comm {
        match self {
            Self::World => Comm::World,
            Self::Itself(_) => Comm::Itself,
            Self::Made(comm, _) => Comm::Made(comm.name),
        }
    }

    /// Rank of the world that `rank` of the communicator is; `None` where there is no such rank.
    pub fn world(self, rank: i64, ranks: u32) -> Option<u32> {
        let rank = u32::try_from(rank).ok()?;
        match self {
            Self::World => (rank < ranks).then_some(rank),
            Self::Itself(own) => (rank == 0).then_some(own),
            Self::Made(_, members) => members.get(rank),
        }
    }

    /// Members in their order.
    pub fn members(self, ranks: u32) -> Members {
        match self {
            Self::World => Members::first(ranks),
            Self::Itself(own) => [own].into_iter().collect(),
            Self::Made(_, members) => members.clone(),
        }
    }
}

/// The communicators of a job by their names.
#[derive(Debug)]
pub struct Scopes<'a> {
    comms: &'a Communicators,
    by_name: FxHashMap<Name, &'a Communicator>,
}

impl<'a> Scopes<'a> {
    /// The communicators of a job.
    pub fn new(comms: &'a Communicators) -> Self {
        Self { comms, by_name: comms.iter().map(|comm| (comm.name, comm)).collect() }
    }

    /// All that is known of communicators.
    pub fn comms(&self) -> &'a Communicators {
        self.comms
    }

    /// The predefined communicator that `word` names for `rank`.
    pub fn predefined(rank: u32, word: u64) -> Option<Scope<'a>> {
        match PREDEFINED.get(index_of_predefined(word)?)?.1 {
            "MPI_COMM_WORLD" => Some(Scope::World),
            "MPI_COMM_SELF" => Some(Scope::Itself(rank)),
            _ => None,
        }
    }

    /// The communicator of that name, for `rank`; `None` where its members are not known.
    pub fn named(&self, rank: u32, name: Name) -> Option<Scope<'a>> {
        let comm = *self.by_name.get(&name)?;
        let first = comm.ranks.as_ref()?;
        let named = match &comm.remote {
            None => first,
            Some(second) if first.place(rank).is_some() => second,
            Some(_) => first,
        };
        Some(Scope::Made(comm, named))
    }
}
