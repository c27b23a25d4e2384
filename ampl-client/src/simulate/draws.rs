//! The ranks that keep a window, and estimates from them.

use ampl_core::draw::Keep;
use ampl_core::message::{MOST_STRATA, MetricSummary};
use ampl_core::stats::Moments;

use super::Job;

/// The ranks that keep a window.
#[derive(Clone, Debug)]
pub struct Draws {
    /// Kept ranks per cell of the shape.
    pub(super) kept: Vec<u64>,
    /// Unweighted moments of the kept ranks, per cell and guide.
    pub(super) moments: Vec<Vec<Moments>>,
    /// Weighted sums of the kept ranks, per group.
    pub(super) sums: Vec<GroupDraws>,
    /// The kept ranks, where interval totals need them.
    pub(super) ranks: Vec<u32>,
}

/// The kept ranks of a group.
#[derive(Clone, Debug)]
pub(super) struct GroupDraws {
    /// Number of ranks.
    pub(super) size: u64,
    /// Ranks among them that are kept with certainty.
    certain: u64,
    /// Per guide: Σ n and Σ y of those.
    guides: Vec<[f64; 2]>,
    /// The others: those drawn beforehand, then those of every stratum of a decision, or of the group.
    lots: Vec<Lot>,
}

/// Ranks that are drawn with one and the same probability.
#[derive(Clone, Debug)]
struct Lot {
    /// Ranks that they stand for; 0 for those drawn beforehand, which stand for all that are left.
    ranks: u64,
    /// Σ 1/p.
    inverse: f64,
    /// Per guide: Σ n/p and Σ y/p.
    guides: Vec<[f64; 2]>,
}

impl GroupDraws {
    fn none(job: &Job) -> Self {
        let guides = vec![[0.0; 2]; job.guides.len()];
        let lot = Lot { ranks: 0, inverse: 0.0, guides: guides.clone() };
        let strata = job.shape.retrospective.is_some() || job.shape.divisions.is_some();
        let lots = 1 + if strata { MOST_STRATA } else { 0 };
        Self { size: 0, certain: 0, guides, lots: vec![lot; lots] }
    }

    /// Sets the number of ranks in a stratum of which not all are kept.
    pub(super) fn stratum(&mut self, index: usize, ranks: u64) {
        self.lots[index + 1].ranks = ranks;
    }

    fn merge(&mut self, other: &Self) {
        self.size += other.size;
        self.certain += other.certain;
        merge(&mut self.guides, &other.guides);
        for (lot, more) in self.lots.iter_mut().zip(&other.lots) {
            lot.ranks = lot.ranks.max(more.ranks);
            lot.inverse += more.inverse;
            merge(&mut lot.guides, &more.guides);
        }
    }

    /// Estimated totals n and y of the whole group, `population` ranks; `None` where no drawn rank stands for the
    /// missing ones.
    ///
    /// The ratio of the two is [`ampl_core::stats::estimate::ratio_estimate`]'s mean for ranks that were drawn
    /// beforehand: Hájek weights, which sum to the number of ranks that are not certain. Weights of a stratum sum to
    /// its ranks; a stratum from which coins drew no rank is estimated by the others.
    pub(super) fn totals(&self, guide: usize, population: u64) -> Option<(f64, f64)> {
        let [n, y] = self.guides[guide];
        let others = population.saturating_sub(self.certain) as f64;
        if others == 0.0 {
            return Some((n, y));
        }
        let strata: u64 = self.lots.iter().map(|lot| lot.ranks).sum();
        let (mut stood, mut drawn_n, mut drawn_y) = (0.0, 0.0, 0.0);
        for lot in self.lots.iter().filter(|lot| lot.inverse > 0.0) {
            let ranks = if lot.ranks > 0 { lot.ranks as f64 } else { others - strata as f64 };
            let scale = ranks / lot.inverse;
            stood += ranks;
            drawn_n += scale * lot.guides[guide][0];
            drawn_y += scale * lot.guides[guide][1];
        }
        let scale = others / stood;
        (stood > 0.0).then_some((n + scale * drawn_n, y + scale * drawn_y))
    }
}

fn merge(sums: &mut [[f64; 2]], more: &[[f64; 2]]) {
    for (sums, more) in sums.iter_mut().zip(more) {
        sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
    }
}

impl Draws {
    /// No ranks.
    pub fn none(job: &Job) -> Self {
        let cells = job.shape.cells.len();
        Self {
            kept: vec![0; cells],
            moments: vec![vec![Moments::default(); job.guides.len()]; cells],
            sums: vec![GroupDraws::none(job); job.plan.groups.len()],
            ranks: Vec::new(),
        }
    }

    /// Adds a rank that keeps the window as `keep` says, having observed `seen` of every guide; `stratum` is that
    /// of a decision, or of its group.
    pub(super) fn add<'a>(
        &mut self,
        job: &Job,
        rank: u32,
        keep: Keep,
        stratum: Option<usize>,
        seen: impl Iterator<Item = &'a MetricSummary>,
    ) {
        let cell = usize::from(job.cells[rank as usize]);
        let group = &mut self.sums[usize::from(job.shape.cells[cell].group)];
        group.size += 1;
        self.kept[cell] += 1;
        let certain = keep.probability >= 1.0;
        let lot = &mut group.lots[stratum.map_or(0, |stratum| stratum + 1)];
        match certain {
            true => group.certain += 1,
            false => lot.inverse += 1.0 / keep.probability,
        }
        let sums = if certain { &mut group.guides } else { &mut lot.guides };
        for ((summary, sums), moments) in seen.zip(sums).zip(&mut self.moments[cell]) {
            if summary.n > 0 {
                sums[0] += summary.n as f64 / keep.probability;
                sums[1] += summary.sum / keep.probability;
            }
            let MetricSummary { n, sum, sum_sq, min, max } = *summary;
            moments.merge(&Moments::of_rank(n, sum, sum_sq, min, max));
        }
        if job.shape.interval {
            self.ranks.push(rank);
        }
    }

    /// Adds the ranks of `other`, all of them larger.
    pub fn merge(&mut self, other: Self) {
        self.kept.iter_mut().zip(&other.kept).for_each(|(sum, more)| *sum += more);
        for (sums, more) in self.moments.iter_mut().zip(&other.moments) {
            sums.iter_mut().zip(more).for_each(|(sum, more)| sum.merge(more));
        }
        self.sums.iter_mut().zip(&other.sums).for_each(|(sum, more)| sum.merge(more));
        self.ranks.extend(other.ranks);
    }

    /// Kept ranks of a group.
    pub fn size(&self, group: usize) -> u64 {
        self.sums[group].size
    }

    pub(super) fn group(&self, group: usize) -> &GroupDraws {
        &self.sums[group]
    }
}
