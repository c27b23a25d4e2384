//! Retrospective decisions: ranks by bin, and places in strata.

use std::ops::Range;

use ampl_core::draw::{Keep, kept_after};
use ampl_core::message::{
    CellKey, CensusWindow, Decision, GroupDecision, MOST_STRATA, PartialSums, Reference,
    RetrospectiveDecision,
};
use ampl_core::stats::bins::{Point, bin};
use ampl_core::units::{Rank, WindowId};

use super::{CHUNK, Draws, Job, Window};
use crate::policy::Policy;

/// Stands for a rank that is in no bin.
const NOWHERE: u8 = u8::MAX;

/// Some ranks of a window by bin.
#[derive(Clone, Debug)]
pub struct Binned {
    partial: PartialSums,
    /// Ranks that are in a bin.
    reported: u64,
    /// Bin of every rank, or [`NOWHERE`].
    bins: Vec<u8>,
}

/// References of one seed, and its decision about the window under way.
#[derive(Clone, Debug, Default)]
pub(super) struct RetrospectivePass {
    references: Vec<Reference>,
    judgement: Option<Judgement>,
}

/// A decision, and the place of every rank under it.
#[derive(Clone, Debug)]
struct Judgement {
    decision: RetrospectiveDecision,
    /// Per piece of the job: every rank's bin, and ranks of every stratum in the pieces before.
    pieces: Vec<(Vec<u8>, Vec<[u64; MOST_STRATA]>)>,
}

impl RetrospectivePass {
    /// Takes a reference, and forgets those that end before `window`.
    pub fn refer(&mut self, reference: Option<Reference>, window: u64) {
        self.references.retain(|reference| reference.last_window.0 >= window);
        self.references.extend(reference);
    }

    /// Some ranks of `window` by bin.
    pub fn bin(&self, job: &Job, window: &Window, ranks: Range<u32>) -> Binned {
        let mut binned =
            Binned { partial: job.shape.binned(), reported: 0, bins: Vec::with_capacity(ranks.len()) };
        let places = places(job);
        let reference = self.references.iter().find(|reference| {
            reference.first_window.0 <= window.number && window.number <= reference.last_window.0
        });
        let mut points = vec![Point::default(); job.guides.len()];
        for rank in ranks {
            let place = places[usize::from(job.cells[rank as usize])];
            let of_group = reference.zip(place).and_then(|(reference, place)| {
                Some((reference.groups.get(place)?.as_ref()?, &mut binned.partial.binned[place]))
            });
            let Some((reference, histogram)) = of_group else {
                binned.bins.push(NOWHERE);
                continue;
            };
            for ((point, origin), guide) in points.iter_mut().zip(&reference.origins).zip(&window.guides) {
                let seen = &guide[rank as usize];
                *point = origin.point(seen.n, if seen.n == 0 { 0.0 } else { seen.sum });
            }
            let at = bin(points[usize::from(reference.guide)].z / reference.error, histogram.bins());
            histogram.add(at, &points);
            binned.reported += 1;
            binned.bins.push(at as u8);
        }
        binned
    }

    /// Has the policy judge a window by the bins of all its ranks, piece by piece.
    pub fn judge(
        &mut self,
        job: &Job,
        policy: &mut Policy,
        window: u64,
        pieces: Vec<Binned>,
    ) -> Vec<Decision> {
        let window = WindowId(window);
        let mut binned = CensusWindow::binned(&job.shape, window, window);
        for piece in &pieces {
            binned.reported += piece.reported;
            binned.partial.merge(&piece.partial);
        }
        let Some((decision, decisions)) = policy.judge(&binned) else {
            self.judgement = None;
            return Vec::new();
        };
        let mut before = vec![[0; MOST_STRATA]; decision.groups.len()];
        let pieces = pieces.into_iter().map(|piece| {
            let so_far = before.clone();
            for ((counts, group), histogram) in
                before.iter_mut().zip(&decision.groups).zip(&piece.partial.binned)
            {
                let Some(group) = group else { continue };
                for occupied in histogram.occupied() {
                    if let Some(stratum) = group.stratum(occupied.bin) {
                        counts[stratum] += occupied.ranks;
                    }
                }
            }
            (piece.bins, so_far)
        });
        let pieces = pieces.collect();
        self.judgement = Some(Judgement { decision, pieces });
        decisions
    }

    /// Calls `each` for those of a piece's `ranks` that keep the window, with their stratum if a decision gives one;
    /// `beforehand` draws the ranks that no decision covers.
    pub fn kept(
        &self,
        job: &Job,
        ranks: Range<u32>,
        beforehand: impl Fn(Rank) -> Keep,
        mut each: impl FnMut(u32, Keep, Option<usize>),
    ) {
        let places = places(job);
        let mechanism = job.plan.config.sampling.update_mechanism;
        let judgement = self.judgement.as_ref();
        let decision = judgement.map(|judgement| &judgement.decision);
        let piece = judgement.map(|judgement| &judgement.pieces[(ranks.start / CHUNK) as usize]);
        let mut next = piece.map_or_else(Vec::new, |(_, before)| before.clone());
        let strata = decision.map_or_else(Vec::new, |decision| strata(job, decision));
        for rank in ranks.clone() {
            let cell = usize::from(job.cells[rank as usize]);
            let at = piece.map_or(NOWHERE, |(bins, _)| bins[(rank - ranks.start) as usize]);
            let of_group = decision.zip(places[cell]).filter(|_| at != NOWHERE);
            let of_group = of_group
                .and_then(|(decision, place)| Some((decision, place, decision.groups[place].as_ref()?)));
            let (keep, stratum) = match of_group {
                None => (beforehand(Rank(rank)), None),
                Some((decision, place, group)) => match strata[place][usize::from(at)] {
                    None => (Keep::ALWAYS, None),
                    Some(stratum) => {
                        let index = usize::from(stratum);
                        let before = next[place][index];
                        next[place][index] += 1;
                        let of_plan = job.shape.cells[cell].group;
                        let named = (index, group.strata[index]);
                        (kept_after(mechanism, Rank(rank), of_plan, named, before, decision), Some(index))
                    }
                },
            };
            if keep.kept {
                each(rank, keep, stratum);
            }
        }
    }

    /// Sets in `draws` how many ranks the drawn ones of a stratum stand for.
    pub fn report(&self, job: &Job, draws: &mut Draws) {
        let groups = job.shape.retrospective.iter().flat_map(|retrospective| &retrospective.groups);
        let decisions = self.judgement.iter().flat_map(|judgement| &judgement.decision.groups);
        for (&index, group) in groups.zip(decisions) {
            let strata = group.iter().flat_map(|group| group.strata.iter().enumerate());
            for (stratum, of) in strata.filter(|(_, of)| of.size < of.ranks) {
                draws.sums[usize::from(index)].stratum(stratum, u64::from(of.ranks));
            }
        }
    }
}

/// Per cell, the index of its group in `RetrospectiveShape::groups`; `None` for pinned ranks and other groups.
fn places(job: &Job) -> Vec<Option<usize>> {
    let retrospective = job.shape.retrospective.as_ref();
    let place = |cell: &CellKey| {
        retrospective
            .filter(|_| !cell.pinned)
            .and_then(|retrospective| retrospective.group(usize::from(cell.group)))
    };
    job.shape.cells.iter().map(place).collect()
}

/// Per group of the decision, the stratum of every bin.
fn strata(job: &Job, decision: &RetrospectiveDecision) -> Vec<Vec<Option<u8>>> {
    let bins = job.shape.retrospective.as_ref().map_or(0, |retrospective| usize::from(retrospective.bins));
    let of_group = |group: &Option<GroupDecision>| {
        let Some(group) = group else { return Vec::new() };
        (0..bins).map(|bin| group.stratum(bin).map(|index| index as u8)).collect()
    };
    decision.groups.iter().map(of_group).collect()
}
