//! Division of the callers of one call into the communicators that it makes.

use std::collections::BTreeMap;
use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::calls::{Call, Way};
use super::members::{ListId, Lists};
use super::script::{Facts, NONE};

/// A caller.
#[derive(Clone, Copy, Debug)]
pub struct Caller<'a> {
    /// Its rank in the world.
    pub rank: u32,
    /// Its call.
    pub call: &'a Call,
    /// True where it was given a communicator, false where the null handle.
    pub given: bool,
    /// Facts that MPI returned about that communicator.
    pub facts: Facts,
    /// The group that it passed, if that is known.
    pub group: Option<ListId>,
    /// The host that it runs on; empty where that is not known.
    pub host: &'a str,
}

/// Callers of one call: all ranks of the parent, in the order of their numbers there.
#[derive(Debug)]
pub struct Whole<'a> {
    /// Its ranks; of an intercommunicator, ranks of the first group.
    pub first: Vec<Caller<'a>>,
    /// Ranks of the second group, if it is an intercommunicator.
    pub second: Option<Vec<Caller<'a>>>,
    /// True where numbers are known: otherwise ranks are in the order of the world.
    pub ordered: bool,
    /// Its dimensions, if it is a grid.
    pub dims: Option<Rc<[u32]>>,
    /// The type of a split among those that share memory.
    pub shared: Option<i64>,
    /// The groups that are passed.
    pub lists: &'a Lists,
}

/// A communicator that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its ranks; of an intercommunicator, ranks of the first group.
    pub first: Vec<u32>,
    /// Ranks of the second group, if it is an intercommunicator.
    pub second: Option<Vec<u32>>,
    /// True where the ranks' numbers are known: otherwise they are in the order of the world.
    pub ordered: bool,
    /// Its dimensions, if it is a grid.
    pub dims: Option<Rc<[u32]>>,
}

/// Reason for which the division of callers is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The record does not determine it.
    Unknown,
    /// The record contradicts itself.
    Wrong,
}

use Trouble::{Unknown, Wrong};

impl<'a> Whole<'a> {
    fn all(&self) -> impl Iterator<Item = &Caller<'a>> {
        self.first.iter().chain(self.second.iter().flatten())
    }

    /// The communicators that a call of that way makes of all callers.
    ///
    /// # Errors
    /// [`Trouble`].
    pub fn divide(&self, way: Way) -> Result<Vec<Part>, Trouble> {
        match way {
            Way::Dup => {
                let side = |callers: &Vec<Caller<'_>>| callers.iter().map(|caller| caller.rank).collect();
                let (first, second) = (side(&self.first), self.second.as_ref().map(side));
                Ok(vec![Part { first, second, ordered: self.ordered, dims: self.dims.clone() }])
            }
            Way::Split => self.split(|caller| caller.call.numbers.first().copied()),
            Way::SplitType => self.led().unwrap_or_else(|| self.shared()),
            Way::Merge => self.merged(),
            _ if self.second.is_some() => Err(Unknown),
            Way::Create => self.created(),
            Way::CreateGroup => {
                let first = self.first.iter().map(|caller| caller.rank).collect();
                Ok(vec![Part { first, second: None, ordered: true, dims: None }])
            }
            Way::Cart => self.grid(),
            Way::CartSub => self.sub_grids(),
            Way::Graph => {
                let nodes = self.same(|call| call.numbers.first().copied()).ok_or(Wrong)?;
                let nodes = u64::try_from(nodes).map_err(|_| Wrong)?;
                self.placed(nodes, None)
            }
            Way::DistGraph => self.placed(self.first.len() as u64, None),
            Way::Between | Way::Elsewhere => Err(Unknown),
        }
    }

    /// Value that all calls have in common; `None` where they differ.
    fn same<T: PartialEq>(&self, of: impl Fn(&Call) -> Option<T>) -> Option<T> {
        let first = of(self.first.first()?.call)?;
        self.all().all(|caller| of(caller.call).as_ref() == Some(&first)).then_some(first)
    }

    /// Division by colours, in the order of keys.
    fn split<K: std::hash::Hash + Eq + Copy>(
        &self,
        colour: impl Fn(&Caller<'a>) -> Option<K>,
    ) -> Result<Vec<Part>, Trouble> {
        type Keyed = Vec<(i64, u32)>;
        let mut parts: Vec<[Keyed; 2]> = Vec::new();
        let mut known: FxHashMap<K, usize> = FxHashMap::default();
        let second = self.second.iter().flatten().map(|caller| (1, caller));
        for (side, caller) in self.first.iter().map(|caller| (0, caller)).chain(second) {
            if caller.call.is_left_out() {
                continue;
            }
            let &[_, key] = &caller.call.numbers[..] else { return Err(Wrong) };
            let at = *known.entry(colour(caller).ok_or(Unknown)?).or_insert(parts.len());
            if at == parts.len() {
                parts.push(Default::default());
            }
            parts[at][side].push((key, caller.rank));
        }
        let mut out = Vec::new();
        for mut sides in parts {
            // An order by numbers in the parent is known if these are.
            let mut ordered = true;
            for side in &mut sides {
                side.sort_by_key(|&(key, _)| key);
                ordered &= self.ordered || side.windows(2).all(|two| two[0].0 < two[1].0);
            }
            let ranks = |side: &Keyed| side.iter().map(|&(_, rank)| rank).collect::<Vec<u32>>();
            let [mut first, mut other] = [ranks(&sides[0]), ranks(&sides[1])];
            if !ordered {
                [&mut first, &mut other].into_iter().for_each(|side| side.sort_unstable());
            }
            let second = match self.second {
                // A colour of one side only gives no communicator.
                Some(_) if first.is_empty() || other.is_empty() => continue,
                Some(_) => Some(other),
                None => None,
            };
            out.push(Part { first, second, ordered, dims: None });
        }
        Ok(out)
    }

    /// Division by recorded leaders, in the order of recorded numbers; `None` where a caller has neither on record.
    fn led(&self) -> Option<Result<Vec<Part>, Trouble>> {
        let mut parts: BTreeMap<u32, Vec<(u32, u32)>> = BTreeMap::new();
        for Caller { rank, facts, .. } in self.all().filter(|caller| caller.given) {
            if self.second.is_some() || facts.leader == NONE || facts.number == NONE {
                return None;
            }
            parts.entry(facts.leader).or_default().push((facts.number, *rank));
        }
        let part = |(leader, mut numbered): (u32, Vec<(u32, u32)>)| {
            numbered.sort_unstable();
            let fits = (0..).zip(&numbered).all(|(place, &(number, _))| place == number);
            let first: Vec<u32> = numbered.into_iter().map(|(_, rank)| rank).collect();
            let is_led = fits && first[0] == leader;
            if is_led { Ok(Part { first, second: None, ordered: true, dims: None }) } else { Err(Wrong) }
        };
        Some(parts.into_iter().map(part).collect())
    }

    /// Division by hosts for a split by shared memory, if recorded sizes or numbers confirm each part.
    fn shared(&self) -> Result<Vec<Part>, Trouble> {
        let shared = self.shared.ok_or(Unknown)?;
        let mut callers = self.all().filter(|caller| !caller.call.is_left_out());
        if self.second.is_some() || !callers.all(|caller| caller.call.numbers.first() == Some(&shared)) {
            return Err(Unknown);
        }
        let parts = self.split(|caller| Some(caller.host).filter(|host| !host.is_empty()))?;
        let facts: FxHashMap<u32, Facts> =
            self.first.iter().map(|caller| (caller.rank, caller.facts)).collect();
        // No part is larger than a host's: one of that size, or with that highest number, is all of it.
        let is_told = |part: &Part| {
            let size = part.first.len() as u32;
            let tells = |rank| facts[rank].size == size || facts[rank].number == size - 1;
            size == 1 || part.first.iter().any(tells)
        };
        if parts.iter().all(is_told) { Ok(parts) } else { Err(Unknown) }
    }

    fn merged(&self) -> Result<Vec<Part>, Trouble> {
        let second = self.second.as_ref().ok_or(Wrong)?;
        let says = |caller: &Caller<'_>| caller.call.numbers.first().map(|&high| high != 0);
        let high = |side: &[Caller<'_>]| {
            let high = says(side.first()?)?;
            side.iter().all(|caller| says(caller) == Some(high)).then_some(high)
        };
        let highs = (high(&self.first).ok_or(Wrong)?, high(second).ok_or(Wrong)?);
        let orders = [[&self.first, second], [second, &self.first]];
        let fits = |order: &[&Vec<Caller<'_>>; 2]| {
            let all = order.iter().copied().flatten();
            all.zip(0..).all(|(caller, number)| [NONE, number].contains(&caller.facts.number))
        };
        let order = match highs {
            _ if !self.ordered => None,
            (false, true) => Some(orders[0]),
            (true, false) => Some(orders[1]),
            // By the library's choice: one of the two, unless ranks' recorded numbers fit both.
            _ => match orders.map(|order| fits(&order)) {
                [true, false] => Some(orders[0]),
                [false, true] => Some(orders[1]),
                [true, true] => None,
                [false, false] => return Err(Wrong),
            },
        };
        let mut first: Vec<u32> =
            order.unwrap_or(orders[0]).into_iter().flatten().map(|caller| caller.rank).collect();
        if order.is_none() {
            first.sort_unstable();
        }
        Ok(vec![Part { first, second: None, ordered: order.is_some(), dims: None }])
    }

    /// Division by groups: all ranks of each passed it, and no other rank was given a communicator.
    fn created(&self) -> Result<Vec<Part>, Trouble> {
        let mut groups: Vec<(ListId, Vec<u32>)> = Vec::new();
        let mut known: FxHashMap<ListId, usize> = FxHashMap::default();
        for caller in self.first.iter().filter(|caller| caller.given) {
            let group = caller.group.ok_or(Unknown)?;
            let at = *known.entry(group).or_insert(groups.len());
            if at == groups.len() {
                groups.push((group, Vec::new()));
            }
            groups[at].1.push(caller.rank);
        }
        let part = |(group, mut callers): (ListId, Vec<u32>)| {
            let first: Vec<u32> = self.lists.get(group).iter().collect();
            let mut all = first.clone();
            all.sort_unstable();
            callers.sort_unstable();
            let part = Part { first, second: None, ordered: true, dims: None };
            if all == callers { Ok(part) } else { Err(Wrong) }
        };
        groups.into_iter().map(part).collect()
    }

    fn grid(&self) -> Result<Vec<Part>, Trouble> {
        // Dimensions, then whether numbers may change.
        let dims = self.same(|call| call.numbers.split_last().map(|(_, dims)| dims.to_vec())).ok_or(Wrong)?;
        let dims: Option<Vec<u32>> = dims.iter().map(|&extent| u32::try_from(extent).ok()).collect();
        let dims = dims.ok_or(Wrong)?;
        let nodes = dims.iter().try_fold(1u64, |nodes, &extent| nodes.checked_mul(extent.into()));
        self.placed(nodes.ok_or(Wrong)?, Some(dims.into()))
    }

    /// The first `nodes` callers, or, where numbers may change, the callers that were given a communicator.
    fn placed(&self, nodes: u64, dims: Option<Rc<[u32]>>) -> Result<Vec<Part>, Trouble> {
        let reordered = self.first.iter().any(|caller| caller.call.numbers.last() != Some(&0));
        let given = self.first.iter().filter(|caller| caller.given);
        let mut first: Vec<u32> = given.clone().map(|caller| caller.rank).collect();
        if first.len() as u64 != nodes {
            return Err(Wrong);
        }
        let mut ordered = self.ordered && !reordered;
        if ordered && !self.first[..first.len()].iter().all(|caller| caller.given) {
            return Err(Wrong);
        }
        if !ordered {
            let mut numbered: Vec<(u32, u32)> =
                given.map(|caller| (caller.facts.number, caller.rank)).collect();
            numbered.sort_unstable();
            ordered = (0..).zip(&numbered).all(|(place, &(number, _))| place == number);
            match ordered {
                true => first = numbered.into_iter().map(|(_, rank)| rank).collect(),
                false => first.sort_unstable(),
            }
        }
        if first.is_empty() {
            return Ok(Vec::new());
        }
        Ok(vec![Part { first, second: None, ordered, dims }])
    }

    /// Division into callers that agree in the coordinates dropped.
    fn sub_grids(&self) -> Result<Vec<Part>, Trouble> {
        let dims = self.dims.as_ref().filter(|_| self.ordered).ok_or(Unknown)?;
        let kept = self.same(|call| Some(call.numbers.iter().map(|&keep| keep != 0).collect::<Vec<_>>()));
        let kept = kept.filter(|kept| kept.len() == dims.len()).ok_or(Wrong)?;
        let mut parts: Vec<Vec<u32>> = Vec::new();
        let mut known: FxHashMap<u64, usize> = FxHashMap::default();
        for (place, caller) in (0u64..).zip(&self.first) {
            let (mut rest, mut dropped, mut scale) = (place, 0, 1);
            for (&extent, &keep) in dims.iter().zip(&kept).rev() {
                let extent = u64::from(extent);
                if !keep {
                    dropped += rest % extent * scale;
                    scale *= extent;
                }
                rest /= extent;
            }
            let at = *known.entry(dropped).or_insert(parts.len());
            if at == parts.len() {
                parts.push(Vec::new());
            }
            // MPICH makes a grid without dimensions of the first rank only.
            if kept.contains(&true) || caller.given {
                parts[at].push(caller.rank);
            }
        }
        parts.retain(|part| !part.is_empty());
        let dims: Rc<[u32]> =
            dims.iter().zip(&kept).filter(|&(_, &keep)| keep).map(|(&extent, _)| extent).collect();
        let part = |first| Part { first, second: None, ordered: true, dims: Some(dims.clone()) };
        Ok(parts.into_iter().map(part).collect())
    }
}

impl Facts {
    /// True where the facts fit a communicator of those sizes in which the caller has that number.
    pub fn fit(&self, size: usize, number: Option<usize>, remote: Option<usize>) -> bool {
        let is = |fact: u32, value: Option<usize>| {
            fact == NONE || value.is_none_or(|value| fact as usize == value)
        };
        let remote_fits = remote.is_some() || self.remote == NONE;
        let within = self.number == NONE || (self.number as usize) < size;
        !self.wrong
            && remote_fits
            && within
            && is(self.size, Some(size))
            && is(self.number, number)
            && is(self.remote, remote)
    }
}
