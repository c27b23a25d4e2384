//! Messages down the tree for retrospective decisions.
//!
//! First the [`Reference`]: how every rank is to bin itself in windows to come. Then, when the bins of a window
//! have been added up, its [`RetrospectiveDecision`]: which bins keep it, and how many ranks of which others.

use super::MessageError;
use super::partial::RetrospectiveShape;
use super::wire::{Reader, Writer};
use crate::stats::bins::{Origin, Point, bin};
use crate::units::WindowId;

pub use crate::config::MOST_STRATA;

/// Reference that ranks bin themselves by in a range of windows.
#[derive(Clone, Debug, PartialEq)]
pub struct Reference {
    /// First window it is for.
    pub first_window: WindowId,
    /// Last window it is for; ranges of successive references follow each other.
    pub last_window: WindowId,
    /// One entry per group of [`RetrospectiveShape::groups`]; `None` where its windows cannot be decided retrospectively.
    pub groups: Vec<Option<GroupReference>>,
}

/// The same for one group.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupReference {
    /// The guide that bins are of, an index into [`RetrospectiveShape::guides`].
    pub guide: u16,
    /// The unit of bins: some share of the mean for common bounds, the error bound for others; relative or in the
    /// guide's unit over observations.
    pub error: f64,
    /// Origins that residuals are measured from, one entry per guide.
    pub origins: Vec<Origin>,
}

/// Retrospective decision about a window, as its receiver's subtree gets it.
#[derive(Clone, Debug, PartialEq)]
pub struct RetrospectiveDecision {
    /// The window.
    pub window: WindowId,
    /// Number of the decision, as in [`Decision`](super::Decision).
    pub policy: u32,
    /// Seed of the draw.
    pub seed: u64,
    /// One entry per group of [`RetrospectiveShape::groups`]; `None` where the predictive draw holds.
    pub groups: Vec<Option<GroupDecision>>,
}

/// The same for one group.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupDecision {
    /// Stratum h has the bins from `cuts[h]` to below `cuts[h + 1]`; bins outside of all are kept in full.
    pub cuts: Vec<u16>,
    /// The strata: one less than `cuts`.
    pub strata: Vec<StratumDecision>,
}

/// Number of ranks of a stratum that keep the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StratumDecision {
    /// M_h: ranks in it.
    pub ranks: u32,
    /// m_h: ranks kept of it.
    pub size: u32,
    /// Ranks of it that come before the receiver's subtree. A rank's place in the stratum follows, and from it
    /// whether it is drawn: samples are of exactly `size`, without a list of ranks.
    pub before: u32,
}

impl GroupReference {
    /// Place of a rank that observed `seen` (n and total y) of every guide: its bin of `bins`, and one point per guide.
    pub fn stand(&self, bins: u16, seen: impl IntoIterator<Item = (u64, f64)>) -> (usize, Vec<Point>) {
        let points: Vec<Point> =
            self.origins.iter().zip(seen).map(|(origin, (n, y))| origin.point(n, y)).collect();
        let z = points.get(usize::from(self.guide)).map_or(0.0, |point| point.z);
        (bin(z / self.error, usize::from(bins)), points)
    }
}

impl GroupDecision {
    /// Bytes of one with that number of strata.
    pub(super) const fn bytes(strata: usize) -> usize {
        match strata {
            0 => 2,
            _ => 2 + (strata + 1) * 2 + strata * 3 * 4,
        }
    }

    /// The stratum of a bin; none for one that is kept in full.
    pub fn stratum(&self, bin: usize) -> Option<usize> {
        let above = self.cuts.partition_point(|&cut| usize::from(cut) <= bin);
        above.checked_sub(1).filter(|&stratum| stratum < self.strata.len())
    }
}

/// Bytes after the header of the longer of reference and decision.
pub(super) fn payload(retrospective: &RetrospectiveShape) -> usize {
    reference_payload(retrospective).max(decision_payload(retrospective))
}

fn reference_payload(retrospective: &RetrospectiveShape) -> usize {
    retrospective.groups.len() * (4 + 8 + retrospective.guides.len() * 3 * 8)
}

fn decision_payload(retrospective: &RetrospectiveShape) -> usize {
    retrospective.groups.len() * GroupDecision::bytes(retrospective.strata())
}

/// Stands for a group without an entry.
const NONE: u16 = u16::MAX;

impl Reference {
    pub(super) fn encode(&self, retrospective: &RetrospectiveShape, to: &mut Writer) {
        for group in &self.groups {
            let guide = group.as_ref().map_or(NONE, |group| group.guide);
            to.u16(guide);
            to.u16(0);
            to.f64(group.as_ref().map_or(0.0, |group| group.error));
            for index in 0..retrospective.guides.len() {
                let origin = group.as_ref().and_then(|group| group.origins.get(index)).copied();
                let origin = origin.unwrap_or(Origin { ratio: 0.0, mean_n: 0.0, unit: 0.0 });
                [origin.ratio, origin.mean_n, origin.unit].into_iter().for_each(|value| to.f64(value));
            }
        }
    }

    pub(super) fn decode(
        from: &mut Reader,
        counts: (u16, u16),
        (first_window, last_window): (WindowId, WindowId),
    ) -> Result<Self, MessageError> {
        let (groups, guides) = counts;
        from.expect_padded(usize::from(groups) * (4 + 8 + usize::from(guides) * 24))?;
        if first_window > last_window {
            return Err(MessageError::Value { field: "last_window" });
        }
        let mut all = Vec::with_capacity(usize::from(groups));
        for _ in 0..groups {
            let (guide, _) = (from.u16(), from.u16());
            let error = from.f64();
            let mut origins = Vec::with_capacity(usize::from(guides));
            for _ in 0..guides {
                origins.push(Origin { ratio: from.f64(), mean_n: from.f64(), unit: from.f64() });
            }
            if guide == NONE {
                all.push(None);
                continue;
            }
            let sound = |origin: &Origin| {
                origin.ratio.is_finite()
                    && origin.mean_n > 0.0
                    && origin.unit != 0.0
                    && origin.unit.is_finite()
            };
            let bounded = error > 0.0;
            if guide >= guides || !bounded || !origins.iter().all(sound) {
                return Err(MessageError::Value { field: "reference" });
            }
            all.push(Some(GroupReference { guide, error, origins }));
        }
        Ok(Self { first_window, last_window, groups: all })
    }
}

impl RetrospectiveDecision {
    pub(super) fn encode(&self, to: &mut Writer) {
        for group in &self.groups {
            let Some(group) = group else {
                to.u16(NONE);
                continue;
            };
            to.u16(group.strata.len() as u16);
            if !group.strata.is_empty() {
                group.cuts.iter().for_each(|&cut| to.u16(cut));
            }
            for stratum in &group.strata {
                [stratum.ranks, stratum.size, stratum.before].into_iter().for_each(|value| to.u32(value));
            }
        }
    }

    pub(super) fn decode(
        from: &mut Reader,
        groups: u16,
        (window, policy, seed): (WindowId, u32, u64),
    ) -> Result<Self, MessageError> {
        let mut all = Vec::new();
        for group in 0..usize::from(groups) {
            let after = (usize::from(groups) - group - 1) * GroupDecision::bytes(0);
            from.expect_some(GroupDecision::bytes(0) + after)?;
            let count = from.u16();
            if count == NONE {
                all.push(None);
                continue;
            }
            let count = usize::from(count);
            if count > MOST_STRATA {
                return Err(MessageError::Value { field: "strata" });
            }
            from.expect_some(GroupDecision::bytes(count) - GroupDecision::bytes(0) + after)?;
            let cuts: Vec<u16> = (0..if count == 0 { 0 } else { count + 1 }).map(|_| from.u16()).collect();
            let strata: Vec<StratumDecision> = (0..count)
                .map(|_| StratumDecision { ranks: from.u32(), size: from.u32(), before: from.u32() })
                .collect();
            let sound =
                |stratum: &StratumDecision| stratum.size <= stratum.ranks && stratum.before <= stratum.ranks;
            if !cuts.is_sorted() || !strata.iter().all(sound) {
                return Err(MessageError::Value { field: "strata" });
            }
            all.push(Some(GroupDecision { cuts, strata }));
        }
        from.expect_padded(0)?;
        Ok(Self { window, policy, seed, groups: all })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_outside_of_all_strata_are_kept_in_full() {
        let strata = vec![StratumDecision::default(); 2];
        let decision = GroupDecision { cuts: vec![3, 5, 9], strata };
        let found: Vec<_> = [2, 3, 4, 5, 8, 9].map(|bin| decision.stratum(bin)).to_vec();
        assert_eq!(found, [None, Some(0), Some(0), Some(1), Some(1), None]);
        assert_eq!(GroupDecision { cuts: vec![], strata: vec![] }.stratum(4), None);
    }
}
