//! Groups that are derived from groups.

use rustc_hash::{FxHashMap, FxHashSet};

use super::calls::Derive;
use super::members::{ListId, Lists, Members};
use super::walk::Fuel;

/// A derivation: its kind, its lists, its numbers.
type Key = (Derive, ListId, ListId, Box<[i64]>);

/// Groups that have been derived: ranks derive the same ones.
#[derive(Debug, Default)]
pub struct Derived {
    known: FxHashMap<Key, Option<ListId>>,
}

impl Derived {
    /// The group that is derived from one or two by `numbers`; `None` where that is no group, or takes too much work.
    pub fn of(
        &mut self,
        lists: &mut Lists,
        (how, one, other): (Derive, ListId, ListId),
        numbers: &[i64],
        fuel: &mut Fuel,
    ) -> Option<ListId> {
        fuel.spend(1 + numbers.len() as u64)?;
        let key = (how, one, other, numbers.into());
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        let (first, second) = (lists.get(one), lists.get(other));
        fuel.spend(u64::from(first.len()) + u64::from(second.len()))?;
        let list = derive(how, first, second, numbers).map(|members| lists.number(members));
        self.known.insert(key, list);
        list
    }
}

fn derive(how: Derive, one: &Members, other: &Members, numbers: &[i64]) -> Option<Members> {
    let inside = |members: &Members| members.iter().collect::<FxHashSet<u32>>();
    Some(match how {
        Derive::Pick | Derive::PickRanges => {
            let ranks: Vec<u32> = one.iter().collect();
            places(how, numbers, ranks.len())?.into_iter().map(|place| ranks[place]).collect()
        }
        Derive::Drop | Derive::DropRanges => {
            let places: FxHashSet<usize> = places(how, numbers, one.len() as usize)?.into_iter().collect();
            let kept = one.iter().enumerate().filter(|(place, _)| !places.contains(place));
            kept.map(|(_, rank)| rank).collect()
        }
        Derive::Union => {
            let known = inside(one);
            one.iter().chain(other.iter().filter(|rank| !known.contains(rank))).collect()
        }
        Derive::Common => {
            let known = inside(other);
            one.iter().filter(|rank| known.contains(rank)).collect()
        }
        Derive::Without => {
            let known = inside(other);
            one.iter().filter(|rank| !known.contains(rank)).collect()
        }
        Derive::Of | Derive::Remote | Derive::Elsewhere => return None,
    })
}

/// The places that `numbers` name among so many, each once at most.
fn places(how: Derive, numbers: &[i64], length: usize) -> Option<Vec<usize>> {
    let mut places = Vec::new();
    let mut seen = vec![false; length];
    let mut take = |place: i64| {
        let place = usize::try_from(place).ok()?;
        let seen = seen.get_mut(place).filter(|seen| !**seen)?;
        *seen = true;
        places.push(place);
        Some(())
    };
    if matches!(how, Derive::Pick | Derive::Drop) {
        numbers.iter().try_for_each(|&place| take(place))?;
    } else {
        let (ranges, []) = numbers.as_chunks() else { return None };
        for &[first, last, stride] in ranges {
            let mut place = first;
            while stride > 0 && place <= last || stride < 0 && place >= last {
                take(place)?;
                place = place.checked_add(stride)?;
            }
            // Without a stride there is no range.
            (stride != 0).then_some(())?;
        }
    }
    Some(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_derived_as_mpi_does() {
        let of = |ranks: &[u32]| ranks.iter().copied().collect::<Members>();
        let (one, other) = (of(&[10, 11, 12, 13, 14, 15]), of(&[15, 9, 11]));
        let made = |how, numbers: &[i64]| {
            derive(how, &one, &other, numbers).map(|members| members.iter().collect::<Vec<_>>())
        };
        for (how, numbers, expected) in [
            (Derive::Pick, &[5, 0, 2][..], &[15, 10, 12][..]),
            (Derive::Drop, &[5, 0, 2], &[11, 13, 14]),
            (Derive::PickRanges, &[5, 1, -2, 0, 0, 1], &[15, 13, 11, 10]),
            (Derive::DropRanges, &[1, 5, 3], &[10, 12, 13, 15]),
            (Derive::Pick, &[], &[]),
            (Derive::PickRanges, &[3, 1, 1], &[]),
            (Derive::Union, &[], &[10, 11, 12, 13, 14, 15, 9]),
            (Derive::Common, &[], &[11, 15]),
            (Derive::Without, &[], &[10, 12, 13, 14]),
        ] {
            assert_eq!(made(how, numbers).as_deref(), Some(expected), "{how:?}");
        }
        for (how, numbers) in [
            (Derive::Pick, &[0, 0][..]),
            (Derive::Pick, &[6]),
            (Derive::Drop, &[-1]),
            (Derive::PickRanges, &[0, 1]),
            (Derive::PickRanges, &[0, 1, 0]),
            (Derive::PickRanges, &[0, i64::MAX, 1]),
        ] {
            assert_eq!(made(how, numbers), None, "{how:?} {numbers:?}");
        }
    }
}
