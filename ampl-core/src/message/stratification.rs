//! Groups that are divided into strata that last, which every rank finds for itself.
//!
//! Every window sends up sums per stratum and what a few ranks of the group observed. They are always the same ranks,
//! the first in a seeded order, so that the client sees vectors of windows without any rank keeping them. Vectors of
//! medoids are sent down: a rank belongs to the nearest one. From the window that is sent with them on, summaries are
//! by the new strata. The ranks of each are counted then, and a directive may draw from them.

use super::MessageError;
use super::summary::Summary;
use super::wire::{Reader, Writer};
use crate::cluster::Reference;
use crate::config::Target;
use crate::message::{DownMessage, MOST_STRATA};
use crate::permute;
use crate::plan::{GroupPlan, Plan};
use crate::stats::Moments;
use crate::units::{Rank, WindowId};

/// Stands for a rank that has no stratum.
const NOWHERE: u8 = u8::MAX;

/// Layout of a job's messages for its groups that are to be divided; it follows from the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stratifications {
    /// Indices of the guides in [`Plan::metrics`].
    pub guides: Vec<u16>,
    /// Groups that are to be divided, indices into [`Plan::groups`].
    pub groups: Vec<u16>,
    /// Ranks of a group whose observations go up, at most.
    pub sample: u16,
    /// Numbers of a medoid per guide, at most.
    pub columns: u16,
}

impl Stratifications {
    /// Bytes that messages of a single group are to fit into.
    const BYTES: usize = 4096;

    /// Layout for `plan`, whose up messages have `up` bytes and whose directives `down` without it; `None` where no
    /// group is to be divided.
    pub(super) fn of(plan: &Plan, up: usize, down: usize) -> Option<Self> {
        let guides = plan.metrics.iter().enumerate().filter(|(_, metric)| metric.guide);
        let guides: Vec<u16> = guides.map(|(index, _)| index as u16).collect();
        let bound = |group: &GroupPlan| matches!(group.target, Target::Bound { .. });
        let those = |divides: &dyn Fn(&GroupPlan) -> bool| -> Vec<u16> {
            let groups = plan.groups.iter().enumerate().filter(|(_, group)| bound(group) && divides(group));
            groups.map(|(index, _)| index as u16).collect()
        };
        let all = Self::new(guides.clone(), those(&|group| plan.divides(group).is_some()), (up, down))?;
        // Long messages are only for groups that ask for strata.
        let more = DownMessage::strata_payload(all.more_strata()) + all.down_payload();
        if down + more <= Self::BYTES {
            return Some(all);
        }
        Self::new(guides, those(&|group| plan.config.divides(&group.name).is_some()), (up, down))
    }

    fn new(guides: Vec<u16>, groups: Vec<u16>, (up, down): (usize, usize)) -> Option<Self> {
        if groups.is_empty() || guides.is_empty() {
            return None;
        }
        let mut divisions = Self { guides, groups, sample: 0, columns: 0 };
        let each = |left: usize, bytes: usize| (left / divisions.groups.len() / bytes.max(1)) as u16;
        let left = Self::BYTES.saturating_sub(up + divisions.up_payload());
        let sample = each(left, divisions.sampled_bytes()).clamp(44, 96);
        let left = Self::BYTES.saturating_sub(down + divisions.down_payload());
        let columns = each(left, divisions.guides.len() * Self::COLUMN).clamp(2, 8);
        (divisions.sample, divisions.columns) = (sample, columns);
        Some(divisions)
    }

    /// Bytes of a column of a reference: what it is relative to, and a number per medoid.
    const COLUMN: usize = 2 * 8 + 4 * MOST_STRATA;

    /// Index in [`Stratifications::groups`] of a group of the plan.
    pub fn group(&self, group: usize) -> Option<usize> {
        self.groups.iter().position(|&have| usize::from(have) == group)
    }

    /// Bytes of a guide's moments: five numbers, and two of the distribution's shape.
    const MOMENTS: usize = 5 * 8 + 2 * 4;

    fn sampled_bytes(&self) -> usize {
        4 + 1 + self.guides.len() * 8
    }

    /// Bytes of the sums of all groups.
    pub(super) fn up_payload(&self) -> usize {
        let stratum = 16 + self.guides.len() * Self::MOMENTS;
        let group = 4 + 4 + MOST_STRATA * stratum + usize::from(self.sample) * self.sampled_bytes();
        self.groups.len() * group
    }

    /// Bytes that they take in a directive, entries of single strata aside.
    pub(super) fn down_payload(&self) -> usize {
        let columns = usize::from(self.columns) * self.guides.len();
        let group =
            StratifiedGroup::HEADER + MOST_STRATA * 8 + Stratification::HEADER + columns * Self::COLUMN;
        self.groups.len() * group
    }

    /// Entries of a directive beyond one per group.
    pub(super) fn more_strata(&self) -> usize {
        self.groups.len() * (MOST_STRATA - 1)
    }

    /// Sums over no rank.
    pub(super) fn sums(&self) -> Vec<StratifiedSums> {
        vec![StratifiedSums { most: self.sample, ..StratifiedSums::default() }; self.groups.len()]
    }
}

/// Sums that go up of a group that is to be divided, in one window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StratifiedSums {
    /// Number of the division that ranks were summed by; 0 before there is one. Ranks that went by an older one
    /// are in no stratum.
    pub number: u32,
    /// The strata.
    pub strata: Vec<StratumSums>,
    /// Observations of the first ranks in the seeded order, in that order; empty in ranges of windows.
    pub sample: Vec<Sampled>,
    most: u16,
}

/// Sums over the ranks of a stratum.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StratumSums {
    /// Rank-windows of ranks that are pinned.
    pub pinned: u64,
    /// Rank-windows of the others.
    pub ranks: u64,
    /// Moments of these others, guide by guide: totals and centred powers only.
    pub guides: Vec<Moments>,
}

/// One of the ranks whose observations go up.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampled {
    /// Place in the seeded order: a lasting name, different for every rank.
    pub place: u32,
    /// Stratum, where the rank has one in the division that sums are by.
    pub stratum: Option<u8>,
    /// Observations and their total, guide by guide.
    pub seen: Vec<[f32; 2]>,
}

impl Sampled {
    /// Observations of `rank` to send up, from its `summary`.
    pub fn of(
        divisions: &Stratifications,
        seed: u64,
        rank: Rank,
        stratum: Option<u8>,
        summary: &Summary,
    ) -> Self {
        let seen = divisions.guides.iter().map(|&guide| {
            let seen = summary.metrics.get(usize::from(guide)).copied().unwrap_or_default();
            [seen.n as f32, seen.sum as f32]
        });
        Self { place: permute::order(seed, rank), stratum, seen: seen.collect() }
    }
}

impl StratifiedSums {
    /// Adds a rank of one window that goes by division `number`, in `stratum` of it if it has found one.
    /// `seen` is what it observed, guide by guide; pinned ranks are only counted.
    pub fn add(&mut self, number: u32, stratum: Option<u8>, pinned: bool, windows: u64, seen: &[Moments]) {
        let mut own = Self { number, ..Self::default() };
        if let Some(stratum) = stratum.map(usize::from).filter(|&stratum| stratum < MOST_STRATA) {
            let none = StratumSums { guides: vec![Moments::default(); seen.len()], ..StratumSums::default() };
            own.strata.resize(stratum + 1, none);
            let sums = &mut own.strata[stratum];
            match pinned {
                true => sums.pinned = windows,
                false => (sums.ranks, sums.guides) = (windows, seen.to_vec()),
            }
        }
        self.merge(&own);
    }

    /// Adds the ranks of `other`. Of two divisions the newer one counts.
    pub fn merge(&mut self, other: &Self) {
        let known = |sampled: &Sampled, valid: bool| Sampled {
            stratum: sampled.stratum.filter(|_| valid),
            ..sampled.clone()
        };
        let number = self.number.max(other.number);
        if number != self.number {
            self.strata.clear();
            self.sample.iter_mut().for_each(|sampled| sampled.stratum = None);
        }
        self.number = number;
        if other.number == number {
            if self.strata.len() < other.strata.len() {
                self.strata.resize(other.strata.len(), StratumSums::default());
            }
            self.strata.iter_mut().zip(&other.strata).for_each(|(sums, more)| sums.merge(more));
        }
        for sampled in &other.sample {
            let at = self.sample.partition_point(|have| have.place < sampled.place);
            if at < usize::from(self.most)
                && self.sample.get(at).is_none_or(|have| have.place != sampled.place)
            {
                self.sample.insert(at, known(sampled, other.number == number));
                self.sample.truncate(usize::from(self.most));
            }
        }
    }

    /// Puts a rank in the sample, if it is among the first.
    pub fn sample(&mut self, number: u32, sampled: Sampled) {
        self.merge(&Self { number, sample: vec![sampled], ..Self::default() });
    }

    /// The ranks of every stratum that are counted, pinned or not.
    pub fn counts(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.strata.iter().map(|stratum| (stratum.ranks, stratum.pinned))
    }

    /// Removes the sample: a range of windows has no rank's single windows.
    pub(super) fn pool(&mut self) {
        self.sample.clear();
    }

    pub(super) fn encode(&self, to: &mut Writer) {
        to.u32(self.number);
        to.u16(self.strata.len() as u16);
        to.u16(self.sample.len() as u16);
        for stratum in &self.strata {
            to.u64(stratum.pinned);
            to.u64(stratum.ranks);
            for moments in &stratum.guides {
                to.u64(moments.n);
                let Moments { y, cyy, cyn, cnn, .. } = *moments;
                [y, cyy, cyn, cnn].into_iter().for_each(|value| to.f64(value));
                shape(moments).iter().for_each(|value| to.bytes(&value.to_le_bytes()));
            }
        }
        for sampled in &self.sample {
            to.u32(sampled.place);
            to.bytes(&[sampled.stratum.unwrap_or(NOWHERE)]);
            sampled.seen.iter().flatten().for_each(|value| to.bytes(&value.to_le_bytes()));
        }
    }

    /// Sums of `guides` guides, from bytes of any number.
    pub(super) fn decode(from: &mut Reader, guides: u16) -> Result<Self, MessageError> {
        let guides = usize::from(guides);
        from.expect_some(8)?;
        let number = from.u32();
        let (strata, sample) = (usize::from(from.u16()), usize::from(from.u16()));
        if strata > MOST_STRATA {
            return Err(MessageError::Value { field: "strata" });
        }
        from.expect_some(strata * (16 + guides * Stratifications::MOMENTS) + sample * (5 + guides * 8))?;
        let mut sums = Self { number, most: sample as u16, ..Self::default() };
        for _ in 0..strata {
            let (pinned, ranks) = (from.u64(), from.u64());
            let mut stratum = StratumSums { pinned, ranks, guides: Vec::with_capacity(guides) };
            for _ in 0..guides {
                let n = from.u64();
                let [y, cyy, cyn, cnn] = std::array::from_fn(|_| from.f64());
                let [third, fourth] = std::array::from_fn(|_| f64::from(from.f32()));
                if [y, cyy, cyn, cnn, third, fourth].iter().any(|value| !value.is_finite()) {
                    return Err(MessageError::Value { field: "moments" });
                }
                let (cy3, cy4) = (third * cyy * cyy.sqrt(), fourth * cyy * cyy);
                stratum.guides.push(Moments { ranks, n, y, cyy, cyn, cnn, cy3, cy4, ..Moments::default() });
            }
            sums.strata.push(stratum);
        }
        for _ in 0..sample {
            let (place, stratum) = (from.u32(), from.u8());
            let seen = (0..guides).map(|_| [from.f32(), from.f32()]).collect();
            let stratum = (stratum != NOWHERE).then_some(stratum);
            sums.sample.push(Sampled { place, stratum, seen });
        }
        match sums.sample.is_sorted_by(|a, b| a.place < b.place) {
            true => Ok(sums),
            false => Err(MessageError::Value { field: "sample" }),
        }
    }

    /// `true` if messages of the layout `divisions` could have brought these sums.
    pub fn fits(&self, divisions: &Stratifications) -> bool {
        let guides = divisions.guides.len();
        self.sample.len() <= usize::from(divisions.sample)
            && self.strata.iter().all(|stratum| stratum.guides.len() == guides)
    }
}

/// Sums of third and fourth powers, in units of the sum of squares, so that few bytes hold them whatever the metric's
/// unit; 0 where they are not finite.
fn shape(moments: &Moments) -> [f32; 2] {
    let Moments { cyy, cy3, cy4, .. } = *moments;
    let of = |power: f64| Some(power as f32).filter(|power| power.is_finite()).unwrap_or(0.0);
    [of(cy3 / (cyy * cyy.sqrt())), of(cy4 / (cyy * cyy))]
}

impl StratumSums {
    fn merge(&mut self, other: &Self) {
        self.pinned = self.pinned.saturating_add(other.pinned);
        self.ranks = self.ranks.saturating_add(other.ranks);
        if self.guides.len() < other.guides.len() {
            self.guides.resize(other.guides.len(), Moments::default());
        }
        self.guides.iter_mut().zip(&other.guides).for_each(|(sums, more)| sums.merge(more));
    }
}

/// A directive's part for a group that is to be divided.
#[derive(Clone, Debug, PartialEq)]
pub struct StratifiedGroup {
    /// Index of the group in the plan.
    pub group: u16,
    /// Number of the division that the directive draws by; 0 while the group is one stratum.
    pub number: u32,
    /// Window in which the ranks of its strata were counted.
    pub counted: WindowId,
    /// Its strata, in the order of the group's entries in the directive; none while there is only one.
    pub counts: Vec<StratumCount>,
    /// The newest division: how every rank finds its stratum.
    pub newest: Option<Stratification>,
    /// The receiver's own stratum; not sent.
    pub own: Option<Own>,
}

/// Ranks of a stratum that are not pinned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StratumCount {
    /// M_h: how many were counted.
    pub ranks: u32,
    /// Ranks of it that come before the receiver's subtree; `None` where no rank in that has a place.
    pub before: Option<u32>,
}

/// Place of a rank in a division.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Own {
    /// Index of its stratum.
    pub stratum: u8,
    /// Place in the stratum; `None` where the rank was not counted.
    pub place: Option<u32>,
}

/// Strata by which ranks are divided from some window on.
#[derive(Clone, Debug, PartialEq)]
pub struct Stratification {
    /// Divisions of a group are numbered from 1.
    pub number: u32,
    /// First window that is summed by it.
    pub from: WindowId,
    /// The windows that medoids are about: `first` and those after it whose bits are set.
    pub first: WindowId,
    /// Bit i stands for window `first` + i.
    pub windows: u64,
    /// The medoids.
    pub reference: Reference,
}

impl Stratification {
    const HEADER: usize = 4 + 2 + 2 + 3 * 8 + 4;

    /// The windows that medoids are about, ascending.
    pub fn windows(&self) -> impl DoubleEndedIterator<Item = u64> + '_ {
        let set = (0..64).filter(|bit| self.windows >> bit & 1 != 0);
        set.map(|bit| self.first.0.saturating_add(bit))
    }
}

const NOT_COUNTED: u32 = u32::MAX;

impl StratifiedGroup {
    const HEADER: usize = 2 + 2 + 4 + 8;

    pub(super) fn encode(&self, to: &mut Writer) {
        to.u16(self.group);
        to.u16(self.counts.len() as u16);
        to.u32(self.number);
        to.u64(self.counted.0);
        for count in &self.counts {
            to.u32(count.ranks);
            to.u32(count.before.unwrap_or(NOT_COUNTED));
        }
        let Some(division) = &self.newest else { return to.u32(0) };
        let (columns, width, medoids) = division.reference.parts();
        to.u32(division.number);
        to.u16(medoids.len() as u16);
        to.u16(columns.len() as u16);
        [division.from.0, division.first.0, division.windows].into_iter().for_each(|value| to.u64(value));
        to.u32(width as u32);
        for (mean, per_deviation) in columns {
            to.f64(mean);
            to.f64(per_deviation);
        }
        medoids.iter().flatten().for_each(|&value| to.bytes(&(value as f32).to_le_bytes()));
    }

    pub(super) fn decode(from: &mut Reader) -> Result<Self, MessageError> {
        from.expect_some(Self::HEADER)?;
        let (group, strata) = (from.u16(), usize::from(from.u16()));
        let (number, counted) = (from.u32(), WindowId(from.u64()));
        if strata > MOST_STRATA {
            return Err(MessageError::Value { field: "strata" });
        }
        from.expect_some(strata * 8 + 4)?;
        let count = |_| {
            let (ranks, before) = (from.u32(), from.u32());
            StratumCount { ranks, before: (before != NOT_COUNTED).then_some(before) }
        };
        let counts = (0..strata).map(count).collect();
        let newest = match from.u32() {
            0 => None,
            number => Some(division(from, number)?),
        };
        Ok(Self { group, number, counted, counts, newest, own: None })
    }
}

fn division(from: &mut Reader, number: u32) -> Result<Stratification, MessageError> {
    from.expect_some(Stratification::HEADER - 4)?;
    let (medoids, columns) = (usize::from(from.u16()), usize::from(from.u16()));
    let [since, first, windows] = std::array::from_fn(|_| from.u64());
    let width = from.u32() as usize;
    if medoids > MOST_STRATA {
        return Err(MessageError::Value { field: "medoids" });
    }
    from.expect_some(columns * 16)?;
    let columns: Vec<(f64, f64)> = (0..columns).map(|_| (from.f64(), from.f64())).collect();
    let used = columns.iter().filter(|(_, per_deviation)| *per_deviation > 0.0).count();
    from.expect_some(medoids * used * 4)?;
    let medoids = (0..medoids).map(|_| (0..used).map(|_| f64::from(from.f32())).collect()).collect();
    let reference =
        Reference::from_parts(columns, width, medoids).ok_or(MessageError::Value { field: "medoids" })?;
    Ok(Stratification { number, from: WindowId(since), first: WindowId(first), windows, reference })
}

#[cfg(test)]
mod tests;
