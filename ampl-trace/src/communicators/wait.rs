//! Collectives that wait for ranks in vain, and their end.

use rustc_hash::FxHashSet;

use super::collective::{Collective, CollectiveId, Progress};
use super::job::Job;
use super::walk::Fuel;

impl Job<'_> {
    /// Ends collectives when every rank waits: those that need a rank that has ended, or all if there are none.
    pub(super) fn give_up(&mut self, fuel: &mut Fuel) -> Option<()> {
        let mut collectives: Vec<CollectiveId> = self.waiting.keys().copied().collect();
        collectives.sort_unstable();
        let mut hopeless = Vec::new();
        for &collective in &collectives {
            let never = match self.collectives[collective as usize].progress {
                Progress::Half(leader) => self.is_done(leader),
                _ => self.missing(collective, fuel)?.any(|rank| self.is_done(rank)),
            };
            if never {
                hopeless.push(collective);
            }
        }
        if hopeless.is_empty() {
            collectives
                .iter()
                .for_each(|&collective| self.distrust(self.collectives[collective as usize].series));
            hopeless = collectives;
        }
        for collective in hopeless {
            self.abandon(collective, fuel)?;
        }
        Some(())
    }

    /// Ends a collective without the missing ranks. Its counts are distrusted if these should have come.
    pub(super) fn abandon(&mut self, collective: CollectiveId, fuel: &mut Fuel) -> Option<()> {
        let Collective { series, progress, between, .. } = self.collectives[collective as usize];
        match (progress, between) {
            (Progress::Open, _) if !self.is_excused(collective, fuel)? => self.distrust(series),
            (Progress::Half(leader), Some(between)) if !(self.setting.excused)(leader) => {
                self.wrong.insert(self.identity_between(&between));
            }
            _ => {}
        }
        if progress != Progress::Over {
            self.end(collective, &[]);
        }
        Some(())
    }

    /// True where all missing ranks may have come unrecorded.
    fn is_excused(&self, collective: CollectiveId, fuel: &mut Fuel) -> Option<bool> {
        Some(self.missing(collective, fuel)?.all(|rank| (self.setting.excused)(rank)))
    }

    /// Ranks of the world that have not come.
    fn missing(&self, collective: CollectiveId, fuel: &mut Fuel) -> Option<impl Iterator<Item = u32> + '_> {
        let collective = &self.collectives[collective as usize];
        fuel.spend(u64::from(collective.needed))?;
        let there: FxHashSet<u32> =
            collective.arrivals.iter().map(|arrival| self.rank(arrival.rank)).collect();
        let all =
            self.sides(collective.series).into_iter().flatten().flat_map(|list| self.lists.get(list).iter());
        Some(all.filter(move |rank| !there.contains(rank)))
    }

    /// True where a rank of the world has come to its end, or has no script.
    fn is_done(&self, rank: u32) -> bool {
        let found = self.setting.scripts.binary_search_by_key(&rank, |script| script.rank);
        found.is_ok_and(|index| {
            let threads = self.setting.scripts[index].threads.iter();
            threads.zip(&self.players[index].at).all(|(ops, &at)| at == ops.len())
        }) || found.is_err()
    }
}
