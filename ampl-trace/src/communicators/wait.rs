//! Who waits for whom, and for whom in vain.

use rustc_hash::FxHashSet;

use super::job::Job;
use super::meeting::{Meeting, MeetingId, Progress};
use super::walk::Fuel;

impl Job<'_> {
    /// Everybody waits: meetings end to which somebody will not come, and all of them if that is none.
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

    /// A meeting ends without those that have not come. Its counts are not believed if they should have.
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

    /// Whether all that have not come may have done so where nothing is recorded.
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

    /// Whether a rank of the world has come to its end.
    fn is_done(&self, rank: u32) -> bool {
        let found = self.setting.scripts.binary_search_by_key(&rank, |script| script.rank);
        found.is_ok_and(|index| {
            let threads = self.setting.scripts[index].threads.iter();
            threads.zip(&self.players[index].at).all(|(ops, &at)| at == ops.len())
        }) || found.is_err()
    }
}
