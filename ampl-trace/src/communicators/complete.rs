//! Outcome of a call that all of its ranks have made: communicators, checked against all that is known of them.

use super::calls::Way;
use super::collective::{Arrival, Collective, CollectiveId, Progress};
use super::job::{Comm, CommId, Job, identity};
use super::members::{ListId, Members};
use super::parts::{Caller, Part, Trouble, Whole};
use super::script::{Facts, NONE};

/// Communicator given to each arrival.
type Given = Vec<(Arrival, CommId)>;

impl Job<'_> {
    /// Completes a collective at which all ranks have arrived.
    pub fn complete(&mut self, collective: CollectiveId, way: Way) {
        let series = self.collectives[collective as usize].series;
        let mut arrivals = std::mem::take(&mut self.collectives[collective as usize].arrivals);
        // Scripts are in the order of ranks.
        arrivals.sort_unstable_by_key(|arrival| arrival.rank);
        let outcome = match way {
            Way::Between => match self.half(collective, &arrivals) {
                Some(outcome) => outcome,
                // The others are still to come.
                None => {
                    self.collectives[collective as usize].arrivals = arrivals;
                    return;
                }
            },
            _ => self.divided(collective, &arrivals, way),
        };
        self.collectives[collective as usize].arrivals = arrivals;
        match outcome {
            Ok(given) => self.end(collective, &given),
            Err(trouble) => {
                if trouble == Trouble::Wrong {
                    self.distrust(series);
                }
                self.end(collective, &[]);
            }
        }
    }

    fn caller(&self, arrival: &Arrival) -> Caller<'_> {
        let script = &self.setting.scripts[arrival.rank as usize];
        let made = script.made.get(arrival.made as usize);
        Caller {
            rank: script.rank,
            call: &script.calls[arrival.call as usize],
            given: made.is_some(),
            facts: made.map_or(Facts::NOTHING, |made| made.facts),
            group: arrival.group,
            host: self.setting.hosts[arrival.rank as usize],
        }
    }

    /// Index of the arrival of a rank of the world.
    fn place(&self, arrivals: &[Arrival], rank: u32) -> Option<usize> {
        arrivals.binary_search_by_key(&rank, |arrival| self.rank(arrival.rank)).ok()
    }

    fn arrival<'b>(&self, arrivals: &'b [Arrival], rank: u32) -> Option<&'b Arrival> {
        self.place(arrivals, rank).map(|index| &arrivals[index])
    }

    /// Callers in the order of a list; `None` where one of its ranks is not among them.
    fn callers(&self, arrivals: &[Arrival], list: ListId) -> Option<Vec<Caller<'_>>> {
        let ranks = self.lists.get(list).iter();
        ranks.map(|rank| self.arrival(arrivals, rank).map(|arrival| self.caller(arrival))).collect()
    }

    /// True where all made the same call, false where all failed in it; an error where their calls differ.
    fn alike(&self, arrivals: &[Arrival]) -> Result<bool, Trouble> {
        let mut calls = arrivals.iter().map(|arrival| self.caller(arrival).call);
        let first = calls.next().ok_or(Trouble::Wrong)?;
        let same = calls.all(|call| (call.function, call.failed()) == (first.function, first.failed()));
        if same { Ok(!first.failed()) } else { Err(Trouble::Wrong) }
    }

    fn divided(
        &mut self,
        collective: CollectiveId,
        arrivals: &[Arrival],
        way: Way,
    ) -> Result<Given, Trouble> {
        if !self.alike(arrivals)? {
            return Ok(Vec::new());
        }
        let Collective { series, count, .. } = self.collectives[collective as usize];
        let (parent, lists) = (series.comm(), self.sides(series));
        let whole = Whole {
            first: lists[0].and_then(|list| self.callers(arrivals, list)).ok_or(Trouble::Wrong)?,
            second: match lists[1] {
                Some(list) => Some(self.callers(arrivals, list).ok_or(Trouble::Wrong)?),
                None => None,
            },
            ordered: self.comms[parent as usize].ordered,
            dims: self.comms[parent as usize].dims.clone(),
            shared: self.setting.shared,
            lists: &self.lists,
        };
        let parts = whole.divide(way)?;
        let mut of = vec![NONE; arrivals.len()];
        for (number, part) in (0..).zip(&parts) {
            self.fits(arrivals, part, number, &mut of)?;
        }
        // A rank in no part was given no communicator.
        let left_out = arrivals.iter().zip(&of).filter(|&(_, &part)| part == NONE);
        if left_out.map(|(arrival, _)| arrival).any(|arrival| arrival.made != NONE) {
            return Err(Trouble::Wrong);
        }
        let seed = (self.identity_of(series), count);
        let comms: Vec<CommId> = parts.into_iter().map(|part| self.add(parent, part, seed)).collect();
        let given = arrivals.iter().zip(&of).filter(|&(_, &part)| part != NONE);
        Ok(given.map(|(&arrival, &part)| (arrival, comms[part as usize])).collect())
    }

    /// Checks that every rank of `part` was given one communicator, and that its facts fit.
    fn fits(&self, arrivals: &[Arrival], part: &Part, number: u32, of: &mut [u32]) -> Result<(), Trouble> {
        let sides = [Some(&part.first), part.second.as_ref()];
        for (index, side) in sides.iter().enumerate() {
            let Some(side) = side else { continue };
            let remote = sides[1 - index].map(|other| other.len());
            for (place, &rank) in side.iter().enumerate() {
                let at = self.place(arrivals, rank).ok_or(Trouble::Wrong)?;
                let caller = self.caller(&arrivals[at]);
                let place = part.ordered.then_some(place);
                if of[at] != NONE || !caller.given || !caller.facts.fit(side.len(), place, remote) {
                    return Err(Trouble::Wrong);
                }
                of[at] = number;
            }
        }
        Ok(())
    }

    fn add(&mut self, parent: CommId, part: Part, seed: (u64, u32)) -> CommId {
        let Part { first, second, ordered, dims } = part;
        let mut first: Members = first.into_iter().collect();
        let mut second: Option<Members> = second.map(|second| second.into_iter().collect());
        // The group of the lowest rank is the first, whichever came first.
        if let Some(second) = &mut second
            && second.lowest() < first.lowest()
        {
            std::mem::swap(&mut first, second);
        }
        let identity = identity((seed, &first, &second));
        let first = self.lists.number(first);
        let second = second.map(|second| self.lists.number(second));
        self.comms.push(Comm { parent: Some(parent), first, second, ordered, dims, identity });
        self.comms.len() as CommId - 1
    }

    /// Completes one group of an intercommunicator; `None` where the other group has not arrived.
    fn half(&mut self, collective: CollectiveId, arrivals: &[Arrival]) -> Option<Result<Given, Trouble>> {
        match self.alike(arrivals) {
            Ok(true) => {}
            Ok(false) => return Some(Ok(Vec::new())),
            Err(trouble) => return Some(Err(trouble)),
        }
        let leader = |arrival: &Arrival| self.caller(arrival).call.numbers.first().copied();
        let same = arrivals.iter().all(|arrival| leader(arrival) == leader(&arrivals[0]));
        let given = arrivals.iter().all(|arrival| arrival.made != NONE);
        if !same || !given {
            return Some(Err(Trouble::Wrong));
        }
        let Some(between) = self.collectives[collective as usize].between else {
            return Some(Err(Trouble::Unknown));
        };
        let Some(other) = self.halves.remove(&between) else {
            let own = between.leaders.map(|leader| self.arrival(arrivals, leader).is_some());
            // Both in one group.
            if own[0] && own[1] {
                return Some(Err(Trouble::Wrong));
            }
            self.halves.insert(between, collective);
            let leader = if own[0] { between.leaders[1] } else { between.leaders[0] };
            self.collectives[collective as usize].progress = Progress::Half(leader);
            return None;
        };
        let theirs = std::mem::take(&mut self.collectives[other as usize].arrivals);
        let outcome = self.joined([collective, other], [arrivals, &theirs]);
        self.collectives[other as usize].arrivals = theirs;
        match &outcome {
            Ok((_, given)) => {
                let given = given.clone();
                self.end(other, &given);
            }
            Err(_) => {
                self.wrong.insert(self.identity_between(&between));
                self.distrust(self.collectives[other as usize].series);
                self.end(other, &[]);
            }
        }
        Some(outcome.map(|(given, _)| given))
    }

    /// Communicators given to two groups that have met.
    fn joined(
        &mut self,
        collectives: [CollectiveId; 2],
        arrivals: [&[Arrival]; 2],
    ) -> Result<(Given, Given), Trouble> {
        let parents = collectives.map(|collective| self.collectives[collective as usize].series.comm());
        let ranks = parents
            .map(|parent| self.lists.get(self.comms[parent as usize].first).iter().collect::<Vec<u32>>());
        let sizes = [ranks[0].len(), ranks[1].len()];
        for (side, ranks) in ranks.iter().enumerate() {
            for (place, &rank) in ranks.iter().enumerate() {
                let arrival = self.arrival(arrivals[side], rank).ok_or(Trouble::Wrong)?;
                let facts = self.caller(arrival).facts;
                let elsewhere = self.arrival(arrivals[1 - side], rank).is_some();
                if elsewhere || !facts.fit(sizes[side], Some(place), Some(sizes[1 - side])) {
                    return Err(Trouble::Wrong);
                }
            }
        }
        let [one, other] = ranks;
        let lowest = parents.map(|parent| self.lists.get(self.comms[parent as usize].first).lowest());
        let parent = if lowest[1] < lowest[0] { parents[1] } else { parents[0] };
        let mut seeds = collectives.map(|collective| {
            let Collective { series, count, .. } = self.collectives[collective as usize];
            identity((self.identity_of(series), count))
        });
        seeds.sort_unstable();
        let part = Part { first: one, second: Some(other), ordered: true, dims: None };
        let comm = self.add(parent, part, (identity(seeds), 0));
        let [one, other] =
            arrivals.map(|side| side.iter().map(|&arrival| (arrival, comm)).collect::<Vec<_>>());
        Ok((one, other))
    }
}
