//! Sums over some ranks of a window.

use super::MessageError;
use super::down::DownMessage;
use super::moments;
use super::retrospective::{GroupDecision, MOST_STRATA};
use super::steps::StepSums;
use super::stratification::{Stratifications, StratifiedSums};
use super::summary::{MetricSummary, Summary};
use super::up::UpMessage;
use super::wire::{Reader, Writer};
use crate::config::{Marker, Metric, Quantity, Selection, Sizing, Summaries, Target};
use crate::plan::{GroupPlan, Plan};
use crate::stats::Moments;
use crate::stats::bins::{Histogram, Occupied, Point, Residuals};
use crate::units::{Rank, WindowId};

/// Ranks that a cell sums over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CellKey {
    /// Index of the group in the plan.
    pub group: u16,
    /// Stratum of the group.
    pub stratum: u16,
    /// `true` for the pinned ranks of the stratum, `false` for the ones that are drawn.
    pub pinned: bool,
}

/// Layout that all partial sums of a job share; it follows from the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageLayout {
    /// The cells in order; pinned ranks of a stratum have a cell of their own if there are any.
    pub cells: Vec<CellKey>,
    /// Per metric: `true` if the policy reads it; others are not summed.
    pub asked: Vec<bool>,
    /// `true` if every rank reports values, not only those that keep the window.
    pub census: bool,
    /// `true` if totals over update intervals are summed too.
    pub interval: bool,
    /// Layout of the retrospective pass, for retrospective decisions; `None` where there are none.
    pub retrospective: Option<RetrospectiveShape>,
    /// Layout of the sums for groups that are to be divided; `None` where there is no such group.
    pub divisions: Option<Stratifications>,
    /// `true` if windows are to follow the program's steps, which ranks name.
    pub steps: bool,
}

/// Layout of a retrospective pass over windows, so that each is decided by its own values: ranks by bin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetrospectiveShape {
    /// Bins per group.
    pub bins: u16,
    /// Indices of the guides in [`Plan::metrics`].
    pub guides: Vec<u16>,
    /// Groups with retrospective decisions, indices into [`Plan::groups`]: those with a bound.
    pub groups: Vec<u16>,
    /// First window that is decided predictively, as are all after it; `None` where all decisions are retrospective.
    pub until: Option<WindowId>,
}

impl RetrospectiveShape {
    /// Most bytes of bins in a message, unless there are many groups.
    const BYTES: usize = 64 << 10;

    /// Most bytes of strata in a decision, unless there are many groups: 4 KiB with its header.
    const DECISION_BYTES: usize = (4 << 10) - DownMessage::HEADER;

    fn of(plan: &Plan) -> Option<Self> {
        let sampling = &plan.config.sampling;
        if sampling.summaries != Summaries::Census {
            return None;
        }
        let until = match sampling.selection {
            Selection::Retrospective => None,
            // With a budget little is kept before anything is known; ranks kept for a partner's sake are not drawn
            // retrospectively.
            Selection::Predictive if sampling.partners || sampling.budget.is_some() => return None,
            // Before the first directive there is nothing to draw by.
            Selection::Predictive => Some(WindowId(u64::from(sampling.windows_per_update.max(1)))),
        };
        let guides = plan.metrics.iter().enumerate().filter(|(_, metric)| metric.guide);
        let guides: Vec<u16> = guides.map(|(index, _)| index as u16).collect();
        let bound = |group: &GroupPlan| matches!(group.target, Target::Bound { .. });
        let groups = plan.groups.iter().enumerate().filter(|(_, group)| bound(group));
        let groups: Vec<u16> = groups.map(|(index, _)| index as u16).collect();
        if guides.is_empty() || groups.is_empty() {
            return None;
        }
        let mut retrospective = Self { bins: 128, guides, groups, until };
        while retrospective.bins > 16 && retrospective.payload() > Self::BYTES {
            retrospective.bins /= 2;
        }
        // All messages down are as long as the longest: for one interval directives do not grow that much.
        let short =
            retrospective.groups.len() * GroupDecision::bytes(retrospective.strata()) <= Self::DECISION_BYTES;
        (until.is_none() || short).then_some(retrospective)
    }

    /// `true` if `window` is decided retrospectively.
    pub fn decides(&self, window: WindowId) -> bool {
        self.until.is_none_or(|until| window < until)
    }

    /// Most strata of a group: fewer where there are so many groups that a decision would be too long a message.
    pub fn strata(&self) -> usize {
        let fits = |strata: &usize| self.groups.len() * GroupDecision::bytes(*strata) <= Self::DECISION_BYTES;
        (2..=MOST_STRATA).rev().find(fits).unwrap_or(2)
    }

    /// Index in [`RetrospectiveShape::groups`] of a group of the plan.
    pub fn group(&self, group: usize) -> Option<usize> {
        self.groups.iter().position(|&have| usize::from(have) == group)
    }

    /// Bytes of all bins of all groups.
    fn payload(&self) -> usize {
        let bins = usize::from(self.bins) * Self::bin_bytes(self.guides.len() as u16);
        self.groups.len() * (2 + bins)
    }

    fn bin_bytes(guides: u16) -> usize {
        2 + 8 + usize::from(guides) * 7 * 8
    }
}

impl MessageLayout {
    /// The shape of the sums for `plan`.
    pub fn of(plan: &Plan) -> Self {
        let mut cells = Vec::new();
        for (index, group) in plan.groups.iter().enumerate() {
            let cell = CellKey { group: index as u16, stratum: 0, pinned: false };
            cells.push(cell);
            if !group.pinned.is_empty() {
                cells.push(CellKey { pinned: true, ..cell });
            }
        }
        let sampling = &plan.config.sampling;
        let census = sampling.summaries == Summaries::Census;
        // A budget is one of bytes per second.
        let wall = Quantity::Wall.slot().filter(|_| sampling.budget.is_some());
        let asked = |(index, metric): (usize, &Metric)| metric.guide || wall == Some(index);
        let mut shape = Self {
            cells,
            asked: plan.metrics.iter().enumerate().map(asked).collect(),
            census,
            // Equation (8) is about totals over the update interval, which windows' moments
            // cannot give: the variance of a sum needs the ranks' own sums.
            interval: !census && sampling.sizing == Sizing::Ampl2008,
            retrospective: RetrospectiveShape::of(plan),
            divisions: None,
            steps: plan.config.window.marker == Marker::Auto,
        };
        if census {
            let up = UpMessage::HEADER + shape.first_payload();
            let down = DownMessage::HEADER + DownMessage::strata_payload(shape.strata());
            shape.divisions = Stratifications::of(plan, up, down);
        }
        shape
    }

    /// Index of the cell that `rank` of `plan` belongs to.
    pub fn cell_of(&self, plan: &Plan, rank: Rank) -> usize {
        let group = plan.group_of(rank);
        let pinned = plan.groups[group].pinned.contains(rank);
        let key = CellKey { group: group as u16, stratum: 0, pinned };
        self.cells.iter().position(|&cell| cell == key).expect("the shape is of this plan")
    }

    /// Number of (group, stratum) pairs.
    pub fn strata(&self) -> usize {
        self.cells.iter().filter(|cell| !cell.pinned).count()
    }

    /// Sums over no rank.
    pub fn partial(&self) -> PartialSums {
        let metrics = || vec![MetricMoments::default(); self.asked.len()];
        let cell = |&key| CellSums { key, reported: 0, kept: 0, bytes: 0, spent: 0, metrics: metrics() };
        let divided = self.divisions.as_ref().map_or_else(Vec::new, Stratifications::sums);
        PartialSums { cells: self.cells.iter().map(cell).collect(), divided, ..PartialSums::default() }
    }

    /// Sums over no rank of the retrospective pass.
    pub fn binned(&self) -> PartialSums {
        let binned = self.retrospective.as_ref().map_or_else(Vec::new, |retrospective| {
            let each = Histogram::new(usize::from(retrospective.bins), retrospective.guides.len());
            vec![each; retrospective.groups.len()]
        });
        PartialSums { binned, ..PartialSums::default() }
    }

    /// Bytes of the larger of the two passes' sums.
    pub(super) fn encoded_len(&self) -> usize {
        let divided = self.divisions.as_ref().map_or(0, Stratifications::up_payload);
        let steps = if self.steps { StepSums::MOST_BYTES } else { 0 };
        (self.first_payload() + divided + steps)
            .max(self.retrospective.as_ref().map_or(0, RetrospectiveShape::payload))
    }

    fn first_payload(&self) -> usize {
        let (counts, parts) =
            ((self.cells.len() as u16, self.asked.len() as u16), (self.census, self.interval));
        Self::payload(counts, parts, moments::MOST)
    }

    /// Bytes of the first pass's sums where all moments take so many.
    pub(super) fn payload(
        (cells, metrics): (u16, u16),
        (census, interval): (bool, bool),
        moments: usize,
    ) -> usize {
        let parts = 1 + usize::from(census) + usize::from(interval);
        usize::from(cells) * (CellSums::HEADER + usize::from(metrics) * parts * moments)
    }
}

/// Sums over some ranks of a window; their size does not depend on how many.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PartialSums {
    /// Sums per cell of the [`MessageLayout`], in its order; none in the retrospective pass.
    pub cells: Vec<CellSums>,
    /// Ranks by bin, per group of [`RetrospectiveShape::groups`], in the retrospective pass only.
    pub binned: Vec<Histogram>,
    /// Stratum sums, per group of [`Stratifications::groups`]; none in the retrospective pass.
    pub divided: Vec<StratifiedSums>,
    /// Calls of each step, in the first pass where [`MessageLayout::steps`] asks for them.
    pub steps: StepSums,
}

/// Sums over ranks that are sampled together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CellSums {
    /// Ranks that it sums over.
    pub key: CellKey,
    /// Rank-windows reported.
    pub reported: u64,
    /// Rank-windows kept.
    pub kept: u64,
    /// Bytes that keeping them took; under retrospective decisions, bytes that keeping all would take.
    pub bytes: u64,
    /// Bytes that ranks have kept since their last report, of any windows.
    pub spent: u64,
    /// One entry per metric, in the order of [`Plan::metrics`].
    pub metrics: Vec<MetricMoments>,
}

impl CellSums {
    /// Bytes of a cell in a message before its metrics.
    const HEADER: usize = 2 + 2 + 4 + 3 * 8;
    /// Bit beside the stratum that marks its ranks as pinned.
    const PINNED: u16 = 1 << 15;
}

/// Sums of one metric.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MetricMoments {
    /// Over all ranks that reported; empty with sampled summaries.
    pub census: Moments,
    /// Over the ranks that keep the window, unweighted.
    pub kept: Moments,
    /// Over ranks, of their totals in the windows of the update interval that they kept. Filled in
    /// an interval's last window, for `ampl-2008` only.
    pub interval: Moments,
}

/// Sums of `cell`, each with one rank's summary, for the metrics that the policy reads.
fn asked<'a>(
    shape: &'a MessageLayout,
    cell: &'a mut CellSums,
    own: &'a [MetricSummary],
) -> impl Iterator<Item = (&'a mut MetricMoments, &'a MetricSummary)> {
    let all = cell.metrics.iter_mut().zip(own).zip(&shape.asked);
    all.filter_map(|(both, asked)| asked.then_some(both))
}

impl PartialSums {
    /// Makes these sums over no rank, of the same shape. Sums of divided groups are removed.
    pub fn clear(&mut self) {
        for cell in &mut self.cells {
            (cell.reported, cell.kept, cell.bytes, cell.spent) = (0, 0, 0, 0);
            cell.metrics.fill(MetricMoments::default());
        }
        self.binned.iter_mut().for_each(Histogram::clear);
        self.divided.clear();
        self.steps.clear();
    }

    /// Adds the sums of `other`, of the same shape.
    pub fn merge(&mut self, other: &Self) {
        debug_assert_eq!(self.cells.len(), other.cells.len());
        for (cell, more) in self.cells.iter_mut().zip(&other.cells) {
            debug_assert_eq!(cell.key, more.key);
            cell.reported = cell.reported.saturating_add(more.reported);
            cell.kept = cell.kept.saturating_add(more.kept);
            cell.bytes = cell.bytes.saturating_add(more.bytes);
            cell.spent = cell.spent.saturating_add(more.spent);
            for (metric, more) in cell.metrics.iter_mut().zip(&more.metrics) {
                metric.census.merge(&more.census);
                metric.kept.merge(&more.kept);
                metric.interval.merge(&more.interval);
            }
        }
        debug_assert_eq!(self.binned.len(), other.binned.len());
        self.binned.iter_mut().zip(&other.binned).for_each(|(sum, more)| sum.merge(more));
        debug_assert_eq!(self.divided.len(), other.divided.len());
        self.divided.iter_mut().zip(&other.divided).for_each(|(sum, more)| sum.merge(more));
        self.steps.merge(&other.steps);
    }

    /// Adds one rank's summary of `windows` windows to the cell of that index.
    pub fn add(&mut self, shape: &MessageLayout, cell: usize, windows: u64, summary: &Summary) {
        let cell = &mut self.cells[cell];
        cell.reported = cell.reported.saturating_add(windows);
        cell.kept = cell.kept.saturating_add(if summary.kept { windows } else { 0 });
        cell.bytes = cell.bytes.saturating_add(summary.bytes);
        cell.spent = cell.spent.saturating_add(summary.spent);
        for (slot, metric) in asked(shape, cell, &summary.metrics) {
            let moments = metric.moments(windows);
            if shape.census {
                slot.census.merge(&moments);
            }
            if summary.kept {
                slot.kept.merge(&moments);
            }
        }
    }

    /// Adds one rank's totals over an update interval to the cell of that index.
    pub fn add_interval(&mut self, shape: &MessageLayout, cell: usize, totals: &[MetricSummary]) {
        for (slot, total) in asked(shape, &mut self.cells[cell], totals) {
            slot.interval.merge(&total.moments(1));
        }
    }

    /// The cell of the ranks of a stratum that are drawn, or of its pinned ranks.
    pub fn cell(&self, group: u16, stratum: u16, pinned: bool) -> Option<&CellSums> {
        let key = CellKey { group, stratum, pinned };
        self.cells.iter().find(|cell| cell.key == key)
    }

    pub(super) fn encode(&self, shape: &MessageLayout, to: &mut Writer) {
        for cell in &self.cells {
            to.u16(cell.key.group);
            to.u16(cell.key.stratum | if cell.key.pinned { CellSums::PINNED } else { 0 });
            // Seven digits are enough of it.
            to.u32((cell.spent as f32).to_bits());
            to.u64(cell.reported);
            to.u64(cell.kept);
            to.u64(cell.bytes);
            for metric in &cell.metrics {
                if shape.census {
                    moments::encode(&metric.census, to);
                }
                moments::encode(&metric.kept, to);
                if shape.interval {
                    moments::encode(&metric.interval, to);
                }
            }
        }
        self.divided.iter().for_each(|divided| divided.encode(to));
        if shape.steps {
            self.steps.encode(to);
        }
    }

    /// Appends the retrospective pass's sums. Empty bins are left out: most of them, in messages from below.
    pub(super) fn encode_binned(&self, to: &mut Writer) {
        for histogram in &self.binned {
            let occupied = histogram.occupied();
            to.u16(occupied.len() as u16);
            for Occupied { bin, ranks, residuals } in occupied {
                to.u16(bin as u16);
                to.u64(ranks);
                for &Residuals { z, zz, v, vv, zv, min, max } in residuals {
                    match ranks {
                        // All sums of one rank follow from its point.
                        1 => [z, v].into_iter().for_each(|value| to.f64(value)),
                        _ => [z, zz, v, vv, zv, min, max].into_iter().for_each(|value| to.f64(value)),
                    }
                }
            }
        }
    }

    /// Takes the retrospective pass's sums.
    pub(super) fn decode_binned(
        &mut self,
        from: &mut Reader,
        groups: u16,
        bins: u16,
        guides: u16,
    ) -> Result<(), MessageError> {
        from.expect_some(2 * usize::from(groups))?;
        let empty = Histogram::new(usize::from(bins), usize::from(guides));
        self.binned.retain(|group| (group.bins(), group.guides()) == (empty.bins(), empty.guides()));
        self.binned.iter_mut().for_each(Histogram::clear);
        self.binned.resize(groups.into(), empty);
        for histogram in &mut self.binned {
            from.expect_some(2)?;
            let occupied = usize::from(from.u16());
            for _ in 0..occupied {
                from.expect_some(2 + 8)?;
                let (bin, ranks) = (usize::from(from.u16()), from.u64());
                from.expect_some(usize::from(guides) * if ranks == 1 { 2 * 8 } else { 7 * 8 })?;
                let Some(slots) = histogram.append(bin, ranks) else {
                    return Err(MessageError::Value { field: "bin" });
                };
                for slot in slots {
                    if ranks == 1 {
                        let (z, v) = (from.f64(), from.f64());
                        slot.add(Point { z, v });
                    } else {
                        let [z, zz, v, vv, zv, min, max] = std::array::from_fn(|_| from.f64());
                        *slot = Residuals { z, zz, v, vv, zv, min, max };
                    }
                    let Residuals { z, zz, v, vv, zv, min, max } = *slot;
                    let sums = [z, zz, v, vv, zv];
                    if sums.iter().any(|value| !value.is_finite()) || min.is_nan() || max.is_nan() {
                        return Err(MessageError::Value { field: "residuals" });
                    }
                }
            }
        }
        Ok(())
    }

    /// Takes the first pass's sums, from bytes of any number.
    pub(super) fn decode(
        &mut self,
        from: &mut Reader,
        cells: u16,
        metrics: u16,
        census: bool,
        interval: bool,
    ) -> Result<(), MessageError> {
        self.cells.resize_with(cells.into(), CellSums::default);
        for cell in &mut self.cells {
            from.expect_some(CellSums::HEADER)?;
            let (group, stratum, spent) = (from.u16(), from.u16(), f32::from_bits(from.u32()));
            if !(spent.is_finite() && spent >= 0.0) {
                return Err(MessageError::Value { field: "spent" });
            }
            let pinned = stratum & CellSums::PINNED != 0;
            cell.key = CellKey { group, stratum: stratum & !CellSums::PINNED, pinned };
            cell.spent = spent as u64;
            [cell.reported, cell.kept, cell.bytes] = std::array::from_fn(|_| from.u64());
            cell.metrics.clear();
            cell.metrics.resize(metrics.into(), MetricMoments::default());
            for slot in &mut cell.metrics {
                if census {
                    slot.census = moments::decode(from)?;
                }
                slot.kept = moments::decode(from)?;
                if interval {
                    slot.interval = moments::decode(from)?;
                }
            }
        }
        Ok(())
    }
}
