//! Plays the ranks' scripts together: a call of all ranks of a communicator ends when all have arrived.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet, FxHasher};

use super::calls::{Call, Derive, Does, Way};
use super::collective::{Arrival, Between, Collective, CollectiveId, Progress, Series};
use super::groups::Derived;
use super::members::{ListId, Lists, Members};
use super::script::{NONE, Object, Op, Script};
use super::walk::Fuel;

/// The number of a communicator here.
pub type CommId = u32;

/// All ranks of the job.
pub const WORLD: CommId = 0;

/// A communicator of several ranks' scripts.
#[derive(Debug)]
pub struct Comm {
    /// Communicator that it was made of; `None` for the world and for communicators of one rank that MPI makes.
    pub parent: Option<CommId>,
    /// Its ranks; of an intercommunicator, ranks of the first group.
    pub first: ListId,
    /// Ranks of the second group, if it is an intercommunicator.
    pub second: Option<ListId>,
    /// True where the ranks' numbers are known: otherwise they are in the order of the world.
    pub ordered: bool,
    /// Its dimensions, if it is a grid.
    pub dims: Option<Rc<[u32]>>,
    /// Identity, the same whenever the scripts are played.
    pub identity: u64,
}

/// State of a communicator on a rank that makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// The rank has not made the call.
    Later,
    /// Other ranks have not arrived at this collective.
    Waits(CollectiveId),
    /// The communicator.
    Is(CommId),
    /// It cannot be known.
    Not,
}

/// As [`Known`], of a group.
#[derive(Clone, Copy, Debug)]
enum KnownGroup {
    Later,
    Is(ListId),
    Not,
}

/// Progress of one rank.
#[derive(Debug)]
pub(super) struct Player {
    pub(super) at: Vec<usize>,
    made: Vec<Known>,
    groups: Vec<KnownGroup>,
    counts: FxHashMap<Series, u32>,
    leads: FxHashMap<Between, u32>,
    itself: Option<CommId>,
}

/// Facts known before scripts are played.
pub struct Setting<'a> {
    /// Number of ranks of the job.
    pub size: u32,
    /// Scripts, ascending by rank; ranks that make nothing are left out.
    pub scripts: &'a [Script],
    /// Host of each script's rank.
    pub hosts: Vec<&'a str>,
    /// The type of a split among those that share memory.
    pub shared: Option<i64>,
    /// True for a rank that may have made calls that are not recorded.
    pub excused: &'a dyn Fn(u32) -> bool,
    /// Largest number of runs of all lists.
    pub most: usize,
}

/// Scripts while they are played.
pub struct Job<'a> {
    /// Facts known before scripts are played.
    pub setting: &'a Setting<'a>,
    /// Lists of ranks.
    pub lists: Lists,
    /// Communicators.
    pub comms: Vec<Comm>,
    /// Collectives.
    pub collectives: Vec<Collective>,
    /// Leaders that wait for others.
    pub halves: FxHashMap<Between, CollectiveId>,
    /// Identities of series whose counts are distrusted.
    distrusted: &'a FxHashSet<u64>,
    /// Identities of series whose counts have turned out wrong.
    pub wrong: FxHashSet<u64>,
    /// Identities of series that may lack calls of ranks whose group or leader is not known.
    pub unsure: FxHashSet<u64>,
    pub(super) players: Vec<Player>,
    derived: Derived,
    known: FxHashMap<(Series, u32), CollectiveId>,
    pub(super) waiting: FxHashMap<CollectiveId, Vec<u32>>,
    ready: VecDeque<u32>,
}

/// Outcome of an attempt to go on.
enum Step {
    Done,
    Waits(CollectiveId),
    Later,
}

/// A number that equal values share.
pub fn identity(of: impl Hash) -> u64 {
    let mut hasher = FxHasher::default();
    of.hash(&mut hasher);
    hasher.finish()
}

impl<'a> Job<'a> {
    /// A job in which no script has begun.
    pub fn new(setting: &'a Setting<'a>, distrusted: &'a FxHashSet<u64>) -> Self {
        let mut lists = Lists::default();
        let first = lists.number(Members::first(setting.size));
        let world =
            Comm { parent: None, first, second: None, ordered: true, dims: None, identity: identity(0) };
        let player = |script: &Script| Player {
            at: vec![0; script.threads.len()],
            made: vec![Known::Later; script.made.len()],
            groups: vec![KnownGroup::Later; script.groups as usize],
            counts: FxHashMap::default(),
            leads: FxHashMap::default(),
            itself: None,
        };
        Self {
            setting,
            lists,
            comms: vec![world],
            collectives: Vec::new(),
            halves: FxHashMap::default(),
            distrusted,
            wrong: FxHashSet::default(),
            unsure: FxHashSet::default(),
            players: setting.scripts.iter().map(player).collect(),
            derived: Derived::default(),
            known: FxHashMap::default(),
            waiting: FxHashMap::default(),
            ready: (0..setting.scripts.len() as u32).collect(),
        }
    }

    /// Plays all scripts to their ends; `None` where fuel runs out, or lists exceed their limit.
    pub fn play(&mut self, fuel: &mut Fuel) -> Option<()> {
        loop {
            while let Some(rank) = self.ready.pop_front() {
                self.advance(rank, fuel)?;
            }
            if self.waiting.is_empty() {
                break;
            }
            self.give_up(fuel)?;
        }
        for collective in 0..self.collectives.len() as CollectiveId {
            fuel.spend(1)?;
            self.abandon(collective, fuel)?;
        }
        (self.lists.runs() <= self.setting.most).then_some(())
    }

    /// States of the communicators that a rank makes, by number.
    pub fn made(&self, rank: u32) -> &[Known] {
        &self.players[rank as usize].made
    }

    /// Rank in the world of the script of that index.
    pub fn rank(&self, rank: u32) -> u32 {
        self.setting.scripts[rank as usize].rank
    }

    fn advance(&mut self, rank: u32, fuel: &mut Fuel) -> Option<()> {
        let script = &self.setting.scripts[rank as usize];
        loop {
            let mut further = false;
            for (thread, ops) in script.threads.iter().enumerate() {
                while let Some(&op) = ops.get(self.players[rank as usize].at[thread]) {
                    fuel.spend(1)?;
                    match self.step(rank, script, op, fuel)? {
                        Step::Done => {
                            self.players[rank as usize].at[thread] += 1;
                            further = true;
                        }
                        Step::Waits(collective) => {
                            self.waiting.entry(collective).or_default().push(rank);
                            break;
                        }
                        Step::Later => break,
                    }
                }
            }
            // Another thread may have made what one needs.
            if !further || script.threads.len() < 2 {
                return Some(());
            }
        }
    }

    fn step(&mut self, rank: u32, script: &Script, op: Op, fuel: &mut Fuel) -> Option<Step> {
        let call = &script.calls[op.call as usize];
        match call.does {
            Does::Makes(way) => self.make(rank, call, way, op, fuel),
            Does::Derives(how) => {
                let list = match self.derive(rank, call, how, op, fuel) {
                    Ok(list) => list.map_or(KnownGroup::Not, KnownGroup::Is),
                    Err(step) => return Some(step),
                };
                if let Some(group) = self.players[rank as usize].groups.get_mut(op.made as usize) {
                    *group = list;
                }
                (self.lists.runs() <= self.setting.most).then_some(Step::Done)
            }
            _ => Some(Step::Done),
        }
    }

    /// Lists of ranks that calls of a series need: the first group, and the second if there is one.
    pub(super) fn sides(&self, series: Series) -> [Option<ListId>; 2] {
        match series {
            Series::All(comm) => {
                let comm = &self.comms[comm as usize];
                [Some(comm.first), comm.second]
            }
            Series::Group(_, list, _) => [Some(list), None],
        }
    }

    /// Number of ranks that calls of a series need.
    fn needed(&self, series: Series) -> u32 {
        self.sides(series).into_iter().flatten().map(|list| self.lists.get(list).len()).sum()
    }

    /// The communicator that `object` is to the rank; `Ok(None)` where that is not known.
    fn comm(&mut self, rank: u32, object: Object) -> Result<Option<CommId>, Step> {
        match object {
            Object::World => Ok(Some(WORLD)),
            Object::Itself => {
                let own = self.rank(rank);
                let player = &mut self.players[rank as usize];
                let itself = *player.itself.get_or_insert_with(|| {
                    let first = self.lists.number(std::iter::once(own).collect());
                    let identity = identity((1, own));
                    self.comms.push(Comm {
                        parent: None,
                        first,
                        second: None,
                        ordered: true,
                        dims: None,
                        identity,
                    });
                    self.comms.len() as CommId - 1
                });
                Ok(Some(itself))
            }
            Object::Made(number) => match self.players[rank as usize].made[number as usize] {
                Known::Later => Err(Step::Later),
                Known::Waits(collective) => Err(Step::Waits(collective)),
                Known::Is(comm) => Ok(Some(comm)),
                Known::Not => Ok(None),
            },
            Object::Empty | Object::Null | Object::Unknown => Ok(None),
        }
    }

    fn group(&mut self, rank: u32, object: Object) -> Result<Option<ListId>, Step> {
        match object {
            Object::Empty => Ok(Some(self.lists.number(std::iter::empty().collect()))),
            Object::Made(number) => match self.players[rank as usize].groups[number as usize] {
                KnownGroup::Later => Err(Step::Later),
                KnownGroup::Is(list) => Ok(Some(list)),
                KnownGroup::Not => Ok(None),
            },
            _ => Ok(None),
        }
    }

    fn derive(
        &mut self,
        rank: u32,
        call: &Call,
        how: Derive,
        op: Op,
        fuel: &mut Fuel,
    ) -> Result<Option<ListId>, Step> {
        if let Derive::Of | Derive::Remote = how {
            let Some(comm) = self.comm(rank, op.given[0])? else { return Ok(None) };
            let comm = &self.comms[comm as usize];
            let Some(second) = comm.second else {
                return Ok(Some(comm.first).filter(|_| comm.ordered && how == Derive::Of));
            };
            let (first, ordered) = (comm.first, comm.ordered);
            // Where there is no fuel left, the next step says so.
            let _ = fuel.spend(self.lists.get(first).runs() as u64);
            let own = self.lists.get(first).place(self.rank(rank)).is_some();
            return Ok(Some(if own == (how == Derive::Of) { first } else { second }).filter(|_| ordered));
        }
        let Some(one) = self.group(rank, op.given[0])? else { return Ok(None) };
        let other = match how {
            Derive::Union | Derive::Common | Derive::Without => self.group(rank, op.given[1])?,
            _ => Some(one),
        };
        let Some(other) = other else { return Ok(None) };
        Ok(self.derived.of(&mut self.lists, (how, one, other), &call.numbers, fuel))
    }

    fn make(&mut self, rank: u32, call: &Call, way: Way, op: Op, fuel: &mut Fuel) -> Option<Step> {
        let mut needs = || {
            let comm = self.comm(rank, op.given[0])?.filter(|_| way != Way::Elsewhere);
            let between = if way == Way::Between { self.leads(rank, call, comm, op, fuel)? } else { None };
            let Some(comm) = comm else { return Ok(None) };
            let group = match way {
                Way::Create | Way::CreateGroup => self.group(rank, op.given[1])?,
                _ => None,
            };
            // Reading a group takes as long as its list is.
            let list = group.filter(|_| way == Way::CreateGroup);
            let _ = fuel.spend(list.map_or(0, |list| self.lists.get(list).runs() as u64));
            Ok(Some((comm, group, between)))
        };
        let (comm, group, between) = match needs() {
            Ok(Some(needs)) => needs,
            Ok(None) => return Some(self.unknown(rank, op)),
            Err(step) => return Some(step),
        };
        let series = match (way, group) {
            // A rank outside the group may call it, too, and is given nothing.
            (Way::CreateGroup, _) if op.made == NONE => return Some(Step::Done),
            (Way::CreateGroup, None) => {
                self.unsure.extend(self.believed(self.identity_with(comm, call.tag())));
                return Some(self.unknown(rank, op));
            }
            (Way::CreateGroup, Some(group)) => Series::Group(comm, group, call.tag()),
            _ => Series::All(comm),
        };
        // Leaders meet as often as they call, whatever else is believed of the call.
        let between = between.map(|key| {
            let before = self.players[rank as usize].leads.entry(key).or_default();
            *before += 1;
            Between { before: *before, ..key }
        });
        if !self.is_believed(series) {
            return Some(self.unknown(rank, op));
        }
        let count = self.players[rank as usize].counts.entry(series).or_default();
        *count += 1;
        let next = self.collectives.len() as CollectiveId;
        let number = *self.known.entry((series, *count)).or_insert(next);
        if number == next {
            let (progress, arrivals) = (Progress::Open, Vec::new());
            let (count, needed) = (*count, self.needed(series));
            self.collectives.push(Collective { series, count, arrivals, needed, progress, between: None });
        }
        let collective = &mut self.collectives[number as usize];
        if collective.progress != Progress::Open {
            return Some(self.unknown(rank, op));
        }
        collective.arrivals.push(Arrival { rank, call: op.call, made: op.made, group });
        collective.between = collective.between.or(between);
        let needed = collective.needed;
        let complete = collective.arrivals.len() as u32 == needed;
        if let Some(made) = self.players[rank as usize].made.get_mut(op.made as usize) {
            *made = Known::Waits(number);
        }
        if complete {
            fuel.spend(u64::from(needed))?;
            self.complete(number, way);
        }
        Some(Step::Done)
    }

    /// Meeting point of a leader with the other one; `None` for other ranks, and where it is not known. If the caller
    /// may be the leader or not, calls between these two are distrusted: one of them may not be counted.
    fn leads(
        &mut self,
        rank: u32,
        call: &Call,
        comm: Option<CommId>,
        op: Op,
        fuel: &mut Fuel,
    ) -> Result<Option<Between>, Step> {
        let &[leader, other, tag] = &call.numbers[..] else { return Ok(None) };
        let own = self.rank(rank);
        let of = |number| u32::try_from(number).ok();
        let mut at = |job: &Self, comm: CommId, number| {
            let comm = &job.comms[comm as usize];
            let list = Some(job.lists.get(comm.first)).filter(|_| comm.ordered && comm.second.is_none())?;
            // Where there is no fuel left, the next step says so.
            let _ = fuel.spend(list.runs() as u64);
            Some(of(number).and_then(|number| list.get(number)))
        };
        let leader = comm.and_then(|comm| at(self, comm, leader));
        if leader.is_some_and(|leader| leader != Some(own)) {
            return Ok(None);
        }
        let Some(peers) = self.comm(rank, op.given[1])? else { return Ok(None) };
        let Some(other) = at(self, peers, other).flatten() else { return Ok(None) };
        let between = Between { comm: peers, leaders: [own.min(other), own.max(other)], tag, before: 0 };
        let believed = self.believed(self.identity_between(&between));
        if leader.is_none() {
            self.unsure.extend(believed);
            return Ok(None);
        }
        Ok(believed.map(|_| between))
    }

    /// True where the counts of a series are trusted.
    fn is_believed(&self, series: Series) -> bool {
        let groups = match series {
            Series::Group(comm, _, tag) => self.believed(self.identity_with(comm, tag)).is_some(),
            Series::All(_) => true,
        };
        groups && self.believed(self.identity_of(series)).is_some()
    }

    /// An identity, unless it is distrusted already.
    fn believed(&self, identity: u64) -> Option<u64> {
        Some(identity).filter(|identity| !self.distrusted.contains(identity))
    }

    fn unknown(&mut self, rank: u32, op: Op) -> Step {
        if let Some(made) = self.players[rank as usize].made.get_mut(op.made as usize) {
            *made = Known::Not;
        }
        Step::Done
    }

    /// Identity of a series, the same whenever the scripts are played.
    pub fn identity_of(&self, series: Series) -> u64 {
        let of = |comm: CommId| self.comms[comm as usize].identity;
        match series {
            Series::All(comm) => identity((of(comm), 0)),
            Series::Group(comm, list, tag) => identity((of(comm), self.lists.get(list), tag)),
        }
    }

    /// As [`Job::identity_of`], of the calls that any groups of a communicator make with a tag: a rank whose group is
    /// not known may have made one of them.
    fn identity_with(&self, comm: CommId, tag: i64) -> u64 {
        identity((self.comms[comm as usize].identity, tag, 1))
    }

    /// As [`Job::identity_of`], of the calls in which two leaders meet.
    pub fn identity_between(&self, between: &Between) -> u64 {
        identity((self.comms[between.comm as usize].identity, between.leaders, between.tag))
    }

    /// Marks the counts of a series as wrong.
    pub fn distrust(&mut self, series: Series) {
        self.wrong.insert(self.identity_of(series));
    }

    /// Ends a collective: the arrivals in `given` get these communicators, the others' are unknown.
    pub fn end(&mut self, collective: CollectiveId, given: &[(Arrival, CommId)]) {
        let over = &mut self.collectives[collective as usize];
        if let (Progress::Half(_), Some(between)) = (over.progress, over.between)
            && self.halves.get(&between) == Some(&collective)
        {
            self.halves.remove(&between);
        }
        over.progress = Progress::Over;
        for arrival in std::mem::take(&mut over.arrivals) {
            if let Some(made) = self.players[arrival.rank as usize].made.get_mut(arrival.made as usize) {
                *made = Known::Not;
            }
        }
        for (arrival, comm) in given {
            if let Some(made) = self.players[arrival.rank as usize].made.get_mut(arrival.made as usize) {
                *made = Known::Is(*comm);
            }
        }
        self.ready.extend(self.waiting.remove(&collective).into_iter().flatten());
    }
}
