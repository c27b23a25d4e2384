//! Meetings that wait for ranks in vain, and their end.

use rustc_hash::FxHashSet;

use super::job::Job;
use super::meeting::{Meeting, MeetingId, Progress};
use super::walk::Fuel;

impl Job<'_> {
    /// Ends meetings when every rank waits: those that need a rank that has ended, or all if there are none.
    pub(super) fn give_up(&mut self, fuel: &mut Fuel) -> Option<()> {
        let mut meetings: Vec<MeetingId> = self.waiting.keys().copied().collect();
        meetings.sort_unstable();
        let mut hopeless = Vec::new();
        for &meeting in &meetings {
            let never = match self.meetings[meeting as usize].progress {
                Progress::Half(leader) => self.is_done(leader),
                _ => self.missing(meeting, fuel)?.any(|rank| self.is_done(rank)),
            };
            if never {
                hopeless.push(meeting);
            }
        }
        if hopeless.is_empty() {
            meetings.iter().for_each(|&meeting| self.distrust(self.meetings[meeting as usize].series));
            hopeless = meetings;
        }
        for meeting in hopeless {
            self.abandon(meeting, fuel)?;
        }
        Some(())
    }

    /// Ends a meeting without the missing ranks. Its counts are distrusted if these should have come.
    pub(super) fn abandon(&mut self, meeting: MeetingId, fuel: &mut Fuel) -> Option<()> {
        let Meeting { series, progress, between, .. } = self.meetings[meeting as usize];
        match (progress, between) {
            (Progress::Open, _) if !self.is_excused(meeting, fuel)? => self.distrust(series),
            (Progress::Half(leader), Some(between)) if !(self.setting.excused)(leader) => {
                self.wrong.insert(self.identity_between(&between));
            }
            _ => {}
        }
        if progress != Progress::Over {
            self.end(meeting, &[]);
        }
        Some(())
    }

    /// True where all missing ranks may have come unrecorded.
    fn is_excused(&self, meeting: MeetingId, fuel: &mut Fuel) -> Option<bool> {
        Some(self.missing(meeting, fuel)?.all(|rank| (self.setting.excused)(rank)))
    }

    /// Ranks of the world that have not come.
    fn missing(&self, meeting: MeetingId, fuel: &mut Fuel) -> Option<impl Iterator<Item = u32> + '_> {
        let meeting = &self.meetings[meeting as usize];
        fuel.spend(u64::from(meeting.needed))?;
        let there: FxHashSet<u32> = meeting.arrivals.iter().map(|arrival| self.rank(arrival.rank)).collect();
        let all =
            self.sides(meeting.series).into_iter().flatten().flat_map(|list| self.lists.get(list).iter());
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
