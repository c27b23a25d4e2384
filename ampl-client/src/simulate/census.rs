//! Sums over all ranks of a window, which no draw changes.

use std::ops::Range;
use std::sync::Arc;

use ampl_core::message::MetricSummary;
use ampl_core::stats::Moments;

use super::{CHUNK, Job, Window};

/// Every cell's moments of every guide, over all of its ranks.
#[derive(Clone, Debug)]
pub struct Census {
    /// Ranks per cell of the shape.
    pub(super) reported: Vec<u64>,
    /// Per cell and guide.
    pub(super) moments: Vec<Vec<Moments>>,
    /// Observations of every rank, where ranks are to find their strata.
    pub(super) seen: Seen,
}

/// Observations and their total, by rank and guide.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen(Vec<Arc<Vec<Vec<[f32; 2]>>>>);

impl Seen {
    /// Observations of `rank` and their total, of a guide.
    pub fn of(&self, guide: usize, rank: u32) -> [f32; 2] {
        self.0[(rank / CHUNK) as usize][guide][(rank % CHUNK) as usize]
    }
}

impl Census {
    /// Sums over no rank.
    pub fn empty(job: &Job) -> Self {
        let cells = job.shape.cells.len();
        let moments = vec![vec![Moments::default(); job.guides.len()]; cells];
        Self { reported: vec![0; cells], moments, seen: Seen::default() }
    }

    /// Sums over some of the ranks.
    pub fn of(job: &Job, window: &Window, ranks: Range<u32>) -> Self {
        let mut census = Self::empty(job);
        let ranks = ranks.start as usize..ranks.end as usize;
        for &cell in &job.cells[ranks.clone()] {
            census.reported[usize::from(cell)] += 1;
        }
        for (guide, summaries) in window.guides.iter().enumerate() {
            for (&cell, summary) in job.cells[ranks.clone()].iter().zip(&summaries[ranks.clone()]) {
                let rank = Moments::of_rank(summary.n, summary.sum, summary.sum_sq, summary.min, summary.max);
                census.moments[usize::from(cell)][guide].merge(&rank);
            }
        }
        if job.shape.divisions.is_some() {
            let of = |guide: &Vec<MetricSummary>| {
                guide[ranks.clone()].iter().map(|seen| [seen.n as f32, seen.sum as f32]).collect()
            };
            census.seen.0.push(Arc::new(window.guides.iter().map(of).collect()));
        }
        census
    }

    /// Sums over all ranks.
    pub fn of_all(job: &Job, window: &Window) -> Self {
        let mut census = Self::empty(job);
        job.chunks().for_each(|ranks| census.merge(&Self::of(job, window, ranks)));
        census
    }

    /// Sums over all ranks that any of `jobs` can be decided by: jobs of the same groups and guides.
    pub fn of_jobs(jobs: &[Job], window: &Window) -> Self {
        let most = jobs.iter().find(|job| job.shape.divisions.is_some()).or(jobs.first());
        Self::of_all(most.expect("there are jobs"), window)
    }

    /// Adds the ranks of `other`, all of them larger.
    pub fn merge(&mut self, other: &Self) {
        self.seen.0.extend_from_slice(&other.seen.0);
        self.reported.iter_mut().zip(&other.reported).for_each(|(sum, more)| *sum += more);
        for (sums, more) in self.moments.iter_mut().zip(&other.moments) {
            sums.iter_mut().zip(more).for_each(|(sum, more)| sum.merge(more));
        }
    }

    /// A guide's moments over a whole group, pinned ranks included.
    pub fn group(&self, job: &Job, group: usize, guide: usize) -> Moments {
        let cells = job.shape.cells.iter().zip(&self.moments);
        let own = cells.filter(|(key, _)| usize::from(key.group) == group);
        own.fold(Moments::default(), |sum, (_, moments)| sum.merged(&moments[guide]))
    }
}
