//! Groups that are divided while the job runs: the part that every rank of a live job does for itself.

use std::collections::VecDeque;

use ampl_core::cluster::Metric;
use ampl_core::message::{
    CensusWindow, Directive, MOST_STRATA, Own, Sampled, Stratification, StratifiedGroup, StratumSums,
};
use ampl_core::permute::order;
use ampl_core::stats::Moments;
use ampl_core::units::Rank;

use super::census::Seen;
use super::{Census, Draws, Job, Window};

/// Windows that are remembered: as many as medoids may be old.
const REMEMBERED: usize = 96;

/// Divisions as the ranks of one seed know them.
#[derive(Clone, Debug)]
pub(super) struct Stratifications {
    seen: VecDeque<(u64, Seen)>,
    /// Divisions of each group that is to be divided.
    groups: Vec<Group>,
}

#[derive(Clone, Debug)]
struct Group {
    /// Index in the plan.
    index: u16,
    /// Ranks whose observations go up, with their places in the seeded order, ascending.
    sample: Vec<(u32, u32)>,
    /// The newest divisions, at most two.
    known: VecDeque<Known>,
}

#[derive(Clone, Debug)]
struct Known {
    division: Stratification,
    /// Stratum, by rank of the job.
    strata: Vec<u8>,
    /// Place in the stratum of a rank that is not pinned, by rank of the job.
    places: Vec<u32>,
}

impl Stratifications {
    /// Divisions of `job` under `seed`; `None` where no group is to be divided.
    pub fn new(job: &Job, seed: u64) -> Option<Self> {
        let divisions = job.shape.divisions.as_ref()?;
        let group = |&index: &u16| {
            let group = &job.plan.groups[usize::from(index)];
            let drawn = group.members.iter().filter(|&rank| !group.pinned.contains(rank));
            let mut sample: Vec<(u32, u32)> = drawn.map(|rank| (order(seed, rank), rank.0)).collect();
            let most = usize::from(divisions.sample);
            if sample.len() > most {
                sample.select_nth_unstable(most);
                sample.truncate(most);
            }
            sample.sort_unstable();
            Group { index, sample, known: VecDeque::new() }
        };
        Some(Self { seen: VecDeque::new(), groups: divisions.groups.iter().map(group).collect() })
    }

    /// Puts into `reported` what ranks report of `window`.
    pub fn report(&mut self, job: &Job, window: &Window, census: &Census, reported: &mut CensusWindow) {
        self.seen.push_back((window.number, census.seen.clone()));
        if self.seen.len() > REMEMBERED {
            self.seen.pop_front();
        }
        for (group, sums) in self.groups.iter().zip(&mut reported.partial.divided) {
            let in_force = group.known.iter().rev().find(|known| known.division.from.0 <= window.number);
            sums.number = in_force.map_or(0, |known| known.division.number);
            sums.sample = group
                .sample
                .iter()
                .map(|&(place, rank)| Sampled {
                    place,
                    stratum: in_force.map(|known| known.strata[rank as usize]),
                    seen: window.guides.iter().map(|guide| numbers(&guide[rank as usize])).collect(),
                })
                .collect();
            let Some(known) = in_force else { continue };
            let none = StratumSums {
                guides: vec![Moments::default(); window.guides.len()],
                ..StratumSums::default()
            };
            sums.strata = vec![none; MOST_STRATA];
            let plan = &job.plan.groups[usize::from(group.index)];
            for rank in plan.members.iter() {
                let stratum = &mut sums.strata[usize::from(known.strata[rank.0 as usize]) % MOST_STRATA];
                if plan.pinned.contains(rank) {
                    stratum.pinned += 1;
                    continue;
                }
                stratum.ranks += 1;
                for (moments, guide) in stratum.guides.iter_mut().zip(&window.guides) {
                    let seen = &guide[rank.0 as usize];
                    moments.merge(&Moments::of_rank(seen.n, seen.sum, 0.0, 0.0, 0.0));
                }
            }
        }
    }

    /// Takes a directive: every rank finds its strata in divisions that are new.
    pub fn learn(&mut self, job: &Job, directive: &Directive) {
        for divided in &directive.divided {
            let Some(group) = self.groups.iter_mut().find(|group| group.index == divided.group) else {
                continue;
            };
            let newest = group.known.back().map_or(0, |known| known.division.number);
            let Some(division) = divided.newest.as_ref().filter(|division| division.number > newest) else {
                continue;
            };
            let known = Known::of(job, group.index, division, &self.seen);
            group.known.push_back(known);
            if group.known.len() > 2 {
                group.known.pop_front();
            }
        }
    }

    /// Place of `rank` in the strata that `divided` draws from.
    pub fn own(&self, rank: Rank, divided: &StratifiedGroup) -> Option<Own> {
        let group = self.groups.iter().find(|group| group.index == divided.group)?;
        let known = group.known.iter().find(|known| known.division.number == divided.number)?;
        let at = rank.0 as usize;
        Some(Own { stratum: known.strata[at], place: Some(known.places[at]) })
    }

    /// Sets in `draws` how many ranks the drawn ones of a stratum stand for.
    pub fn stand_for(directive: &Directive, draws: &mut Draws) {
        for divided in directive.divided.iter().filter(|divided| divided.counts.len() > 1) {
            let strata = divided.counts.iter().zip(directive.of_group(divided.group));
            let drawn = strata.enumerate().filter(|(_, (_, part))| part.probability < 1.0);
            for (index, (count, _)) in drawn {
                draws.sums[usize::from(divided.group)].stratum(index, count.ranks.into());
            }
        }
    }
}

fn numbers(seen: &ampl_core::message::MetricSummary) -> [f32; 2] {
    [seen.n as f32, seen.sum as f32]
}

impl Known {
    fn of(job: &Job, group: u16, division: &Stratification, seen: &VecDeque<(u64, Seen)>) -> Self {
        let ranks = job.plan.ranks as usize;
        let (mut strata, mut places) = (vec![0; ranks], vec![0; ranks]);
        let mut next = [0; MOST_STRATA];
        let windows: Vec<Option<&Seen>> = division
            .windows()
            .map(|window| seen.iter().find(|(have, _)| *have == window).map(|(_, seen)| seen))
            .collect();
        let plan = &job.plan.groups[usize::from(group)];
        let mut own = vec![vec![(0.0, 0.0); windows.len()]; job.guides.len()];
        for rank in plan.members.iter() {
            for (guide, own) in own.iter_mut().enumerate() {
                for (to, window) in own.iter_mut().zip(&windows) {
                    let [n, y] = window.map_or([0.0; 2], |window| window.of(guide, rank.0));
                    *to = (f64::from(n), f64::from(y));
                }
            }
            let stratum = division.reference.stratum_of(&own, &Metric::Euclidean) % MOST_STRATA;
            let at = rank.0 as usize;
            strata[at] = stratum as u8;
            if !plan.pinned.contains(rank) {
                places[at] = next[stratum];
                next[stratum] += 1;
            }
        }
        Self { division: division.clone(), strata, places }
    }
}
