//! Retrospective decisions: windows decided by their own values.
//!
//! Every rank bins itself by a [`Reference`] that was sent beforehand, from an earlier window's means. The sums in the
//! bins and the window's own means, known from its census, give the exact variance of every stratum that can be made of
//! them.

use std::collections::VecDeque;

use ampl_core::config::{Mechanism, Quantity, Selection};
use ampl_core::message::{
    CellSums, CensusWindow, Decision, DecisionLimit, GroupDecision, GroupReference, Reference,
    RetrospectiveDecision, RetrospectiveShape, StratumDecision,
};
use ampl_core::plan::Plan;
use ampl_core::stats::Moments;
use ampl_core::stats::bins::{Histogram, Origin};
use ampl_core::stats::observers::observed;
use ampl_core::stats::quantile::normal_two_sided;
use ampl_core::stats::sizing::retrospective_floor;
use ampl_core::stats::strata::{Need, Strata, Terms, stratify};
use ampl_core::units::WindowId;

use super::bound::{Bound, GroupMean};
use super::budget::{Ledger, Pressure};

/// Windows whose means are remembered; the retrospective pass of an older one decides nothing.
const REMEMBERED: usize = 256;

/// State of retrospective decisions: references that were sent, and the censuses of recent windows.
#[derive(Clone, Debug)]
pub(super) struct Retrospective {
    seed: u64,
    mechanism: Mechanism,
    windows_per_update: u64,
    floor: Option<u64>,
    /// Strata of a group at most.
    strata: usize,
    groups: Vec<Group>,
    /// Index in a summary of the windows' durations.
    wall: Option<usize>,
    ledger: Option<Ledger>,
    /// First window that is decided predictively, if one is.
    until: Option<WindowId>,
    /// The last window whose census is known.
    ended: Option<u64>,
    /// First window without a reference.
    next: u64,
    /// Windows since the last reference that came as ranges.
    merged: u64,
    /// References, each with how many of the windows before it came as ranges.
    references: VecDeque<(Reference, u64)>,
    known: VecDeque<Known>,
}

/// A group with retrospective decisions.
#[derive(Clone, Debug)]
struct Group {
    index: u16,
    name: String,
    /// Ranks of the group, whether they report or not.
    members: u64,
    guides: Vec<Guide>,
    newest: Option<GroupReference>,
}

#[derive(Clone, Debug)]
struct Guide {
    metric: usize,
    name: String,
    event: String,
    bound: Bound,
    quantile: f64,
}

/// The census of a window.
#[derive(Clone, Debug)]
struct Known {
    window: u64,
    late: bool,
    /// Duration of the window, seconds; `None` where no rank reported it.
    seconds: Option<f64>,
    /// Bytes kept by groups without retrospective decisions.
    others: f64,
    groups: Vec<KnownGroup>,
}

#[derive(Clone, Debug)]
struct KnownGroup {
    /// Per guide: the mean, where there was an observation, and whether ranks differed at all.
    means: Vec<Option<(GroupMean, bool)>>,
    /// Per guide: fewest ranks among which is one that observes, where that takes several.
    least: Vec<Option<u64>>,
    /// Pinned ranks that reported.
    pinned: u64,
    /// Other ranks that reported.
    drawn: u64,
    /// Bytes that pinned ranks take together, and that one of the others takes.
    bytes: (f64, f64),
}

impl Retrospective {
    /// State for the groups of `second`, before the first window.
    pub fn new(plan: &Plan, retrospective: &RetrospectiveShape) -> Self {
        let sampling = &plan.config.sampling;
        let guide = |group: u16, &metric: &u16| {
            let metric = usize::from(metric);
            let guide = &plan.metrics[metric];
            let bound = Bound::of(plan.target(&plan.groups[usize::from(group)], guide))?;
            let quantile = normal_two_sided(bound.confidence);
            let (name, event) = (guide.name().into_owned(), guide.event.name().into_owned());
            Some(Guide { metric, name, event, bound, quantile })
        };
        let group = |&index: &u16| Group {
            index,
            name: plan.groups[usize::from(index)].name.clone(),
            members: plan.groups[usize::from(index)].members.len(),
            guides: retrospective.guides.iter().filter_map(|metric| guide(index, metric)).collect(),
            newest: None,
        };
        Self {
            seed: sampling.seed,
            mechanism: sampling.update_mechanism,
            windows_per_update: u64::from(sampling.windows_per_update.max(1)),
            floor: sampling.floor.map(u64::from),
            strata: retrospective.strata(),
            groups: retrospective.groups.iter().map(group).collect(),
            wall: Quantity::Wall.slot(),
            ledger: sampling.budget.map(Ledger::new),
            until: retrospective.until,
            ended: None,
            next: 0,
            merged: 0,
            references: VecDeque::new(),
            known: VecDeque::new(),
        }
    }

    /// Takes a window's census, or that of a range of windows, which only gives origins for references.
    pub fn observe(&mut self, window: &CensusWindow) {
        if self.until.is_some_and(|until| window.first_window >= until) {
            return;
        }
        self.ended = Some(window.last_window.0);
        let coins = self.mechanism == Mechanism::Global;
        let known: Vec<KnownGroup> =
            self.groups.iter_mut().map(|group| group.observe(window, coins)).collect();
        self.merged = self.merged.saturating_add(window.merged());
        if let Some(ledger) = &mut self.ledger {
            ledger.spend(window.partial.cells.iter().map(|cell| cell.spent as f64).sum());
        }
        if window.windows() > 1 {
            return;
        }
        let mut wall = Moments::default();
        let mut others = 0.0;
        for cell in &window.partial.cells {
            let of_cell = self.wall.and_then(|wall| cell.metrics.get(wall));
            wall.merge(&of_cell.map(|moments| moments.census).unwrap_or_default());
            if !self.groups.iter().any(|group| group.index == cell.key.group) {
                others += cell.bytes as f64;
            }
        }
        self.known.push_back(Known {
            window: window.first_window.0,
            late: window.late,
            seconds: wall.ratio().map(|mean| mean * 1e-9),
            others,
            groups: known,
        });
        if self.known.len() > REMEMBERED {
            self.known.pop_front();
        }
        let oldest = self.known.front().map_or(0, |known| known.window);
        self.references.retain(|(reference, _)| reference.last_window.0 >= oldest);
    }

    /// Reference for the windows that have none yet, up to the end of the update interval after the one under way;
    /// `None` while they all have one.
    pub fn reference(&mut self) -> Option<Reference> {
        let ended = self.ended?.saturating_add(1) / self.windows_per_update;
        let mut last = ended.saturating_add(2).saturating_mul(self.windows_per_update) - 1;
        if let Some(until) = self.until {
            last = last.min(until.0 - 1);
        }
        if self.next > last {
            return None;
        }
        let reference = Reference {
            first_window: WindowId(self.next),
            last_window: WindowId(last),
            groups: self.groups.iter().map(|group| group.newest.clone()).collect(),
        };
        self.next = last + 1;
        self.references.push_back((reference.clone(), std::mem::take(&mut self.merged)));
        Some(reference)
    }

    /// Retrospective decision about the window that `binned` has the bins of; `None` for a range of windows, or where
    /// nothing can be decided.
    pub fn judge(&mut self, binned: &CensusWindow) -> Option<(RetrospectiveDecision, Vec<Decision>)> {
        let window = binned.first_window;
        let covers = |(reference, _): &&(Reference, u64)| {
            reference.first_window <= window && window <= reference.last_window
        };
        let (reference, merged) = self.references.iter().find(covers)?;
        let known = self.known.iter().find(|known| known.window == window.0)?;
        if binned.windows() > 1 || binned.partial.binned.len() != self.groups.len() {
            return None;
        }
        let price = |pressure: Pressure| -> Vec<Option<WindowDecision>> {
            let judged = |place: usize| {
                let reference = reference.groups[place].as_ref()?;
                let histogram = &binned.partial.binned[place];
                // None of those that reported knew in time how to bin itself: its own earlier draw holds.
                if histogram.population() == 0 && known.groups[place].drawn > 0 {
                    return None;
                }
                let coins = self.mechanism == Mechanism::Global;
                let group = &self.groups[place];
                let floor = self.floor.unwrap_or_else(|| retrospective_floor(group.members));
                let (strata, groups) = (self.strata, self.groups.len());
                let terms = Terms { population: 0, floor, strata, groups, coins };
                Some(group.judge(reference, histogram, &known.groups[place], terms, pressure))
            };
            (0..self.groups.len()).map(judged).collect()
        };
        let bytes = |judged: &Vec<Option<WindowDecision>>| {
            let each = judged.iter().zip(&known.groups).flat_map(|(judged, known)| {
                judged.as_ref().map(|judged| known.bytes.0 + known.bytes.1 * judged.strata.size() as f64)
            });
            known.others + each.sum::<f64>()
        };
        let (judged, limited) = match &mut self.ledger {
            None => (price(Pressure::NONE), false),
            Some(ledger) => ledger.fit(known.seconds, price, bytes),
        };
        if judged.iter().all(Option::is_none) {
            return None;
        }
        let mut decisions = Vec::new();
        for (place, judged) in judged.iter().enumerate() {
            let unbinned = binned.partial.binned[place].population() < known.groups[place].drawn;
            let late = known.late || binned.late || unbinned;
            let of_group = judged
                .iter()
                .flat_map(|judged| self.groups[place].decisions(judged, &known.groups[place]).into_iter());
            decisions.extend(of_group.map(|decision| Decision {
                update: window.0 / self.windows_per_update,
                window: window.0,
                mechanism: self.mechanism,
                late,
                merged_windows: *merged,
                policy: number(window),
                limit: limited.then_some(DecisionLimit::Budget),
                ..decision
            }));
        }
        let decision = RetrospectiveDecision {
            window,
            policy: number(window),
            seed: self.seed,
            groups: judged.iter().map(|judged| judged.as_ref().map(WindowDecision::decision)).collect(),
        };
        Some((decision, decisions))
    }
}

/// The number of a window's decision. It is the window's, so that it does not depend on what was decided
/// meanwhile.
fn number(window: WindowId) -> u32 {
    window.0 as u32
}

impl Group {
    /// Takes the census of a window, whose means are the origins for residuals of windows to come.
    fn observe(&mut self, window: &CensusWindow, coins: bool) -> KnownGroup {
        let cell = |pinned| window.partial.cell(self.index, 0, pinned);
        let (drawn, pinned) = (cell(false), cell(true));
        let moments = |cell: Option<&CellSums>, metric: usize| {
            cell.and_then(|cell| cell.metrics.get(metric)).map(|moments| moments.census).unwrap_or_default()
        };
        let mut means = Vec::with_capacity(self.guides.len());
        let mut asks: Option<(f64, usize, f64)> = None;
        let mut least = vec![None; self.guides.len()];
        let mut origins: Vec<Origin> = match &self.newest {
            Some(newest) => newest.origins.clone(),
            // For a guide without a mean any origin will do: sums are moved to the window's own.
            None => vec![Origin { ratio: 0.0, mean_n: 1.0, unit: 1.0 }; self.guides.len()],
        };
        for (index, guide) in self.guides.iter().enumerate() {
            let (drawn, pinned) = (moments(drawn, guide.metric), moments(pinned, guide.metric));
            let mean = GroupMean::new(&pinned, &drawn, drawn.ranks as f64);
            let variance = mean.map_or(0.0, |mean| guide.bound.variance(&drawn, mean));
            means.push(mean.map(|mean| (mean, variance != 0.0)));
            let Some(mean) = mean else { continue };
            // Pinned ranks that observe are in every sample.
            if pinned.n == 0 {
                let size = observed(drawn.ranks, drawn.observing(), guide.bound.unseen(), coins);
                least[index] = Some(size).filter(|_| size > 1);
            }
            let unit = guide.bound.unit(mean);
            if !(unit != 0.0 && unit.is_finite() && mean.ratio.is_finite()) {
                continue;
            }
            origins[index] = Origin { ratio: mean.ratio, mean_n: mean.mean_n, unit };
            let allowed = (guide.bound.error() / guide.quantile).powi(2);
            // No number of ranks, in which guides that ask for all of them are alike: the guide shall not depend on
            // how tight their bounds are.
            let asked = if variance == 0.0 { 0.0 } else { variance / allowed };
            let asked = if asked.is_nan() { f64::INFINITY } else { asked };
            if asks.is_none_or(|(most, ..)| asked > most) {
                asks = Some((asked, index, guide.bound.bin_unit(mean)));
            }
        }
        if let Some((_, index, error)) = asks {
            self.newest = Some(GroupReference { guide: index as u16, error, origins });
        }
        let count = |cell: Option<&CellSums>| cell.map_or(0, |cell| cell.reported);
        let bytes = |cell: Option<&CellSums>| cell.map_or(0.0, |cell| cell.bytes as f64);
        KnownGroup {
            means,
            least,
            pinned: count(pinned),
            drawn: count(drawn),
            bytes: (bytes(pinned), bytes(drawn) / count(drawn).max(1) as f64),
        }
    }

    /// Decision about a window, by `terms` but for the population.
    fn judge(
        &self,
        reference: &GroupReference,
        histogram: &Histogram,
        known: &KnownGroup,
        terms: Terms,
        pressure: Pressure,
    ) -> WindowDecision {
        let need = |index: usize| {
            let guide = &self.guides[index];
            // Where all ranks are alike, a mean of 0 is known from any of them.
            let (mean, _) = known.means[index].filter(|&(_, differ)| differ)?;
            let shift = reference.origins[index].shift(mean.ratio, guide.bound.unit(mean));
            let error = pressure.wider * guide.bound.error();
            Some(Need { shift, error, quantile: guide.quantile })
        };
        let needs: Vec<Option<Need>> = (0..self.guides.len()).map(need).collect();
        let population = histogram.population().saturating_add(known.pinned);
        let terms = Terms { population, ..terms };
        let mut strata = stratify(histogram, usize::from(reference.guide), &needs, terms);
        let mut any = needs.iter().any(Option::is_some);
        for (index, guide) in self.guides.iter().enumerate() {
            if let Some(size) = known.least[index]
                && strata.ln_unseen(histogram, index, terms.coins) > guide.bound.unseen().ln()
            {
                strata.raise(size, histogram.population());
                if !std::mem::replace(&mut any, true) {
                    strata.guide = index;
                }
            }
        }
        if pressure.floor < 1.0 {
            strata.shrink(pressure.floor, population);
        }
        let missing = self.members.saturating_sub(population);
        WindowDecision { strata, any, missing }
    }

    /// Rows of a window's decision, without the fields that they have in common.
    fn decisions(&self, judged: &WindowDecision, known: &KnownGroup) -> Vec<Decision> {
        let strata = &judged.strata;
        let guide = self.guides.get(strata.guide).filter(|_| judged.any);
        let mean = known.means.get(strata.guide).copied().flatten();
        // What is not known of those that did not report bounds nothing.
        let known_all = judged.missing == 0;
        let attained = guide.filter(|_| known_all).map(|guide| guide.quantile * strata.attained.sqrt());
        let row = |stratum: usize, ranks: u64, size: u64, variance: Option<f64>| Decision {
            update: 0,
            window: 0,
            group: self.name.clone(),
            stratum: stratum as u16,
            mechanism: Mechanism::Subset,
            population: ranks,
            reported: ranks,
            late: false,
            size: size as u32,
            probability: if size >= ranks { 1.0 } else { size as f64 / ranks as f64 },
            guide: guide.map(|guide| guide.name.clone()),
            policy: 0,
            event: guide.map(|guide| guide.event.clone()),
            mean: mean.filter(|_| judged.any).map(|(mean, _)| mean.ratio),
            variance: variance.filter(|value| judged.any && value.is_finite()),
            error_required: guide.map(|guide| guide.bound.error()),
            error_attained: attained.filter(|error| error.is_finite()),
            limit: None,
            merged_windows: 0,
            selection: Some(Selection::Retrospective),
        };
        let full = strata.full.saturating_add(known.pinned);
        let mut rows = Vec::with_capacity(1 + strata.parts.len());
        if full > 0 || judged.missing > 0 || strata.parts.is_empty() {
            // Ranks that were not counted are in none of the others; the decision does not cover them.
            rows.push(Decision { reported: full, ..row(0, full + judged.missing, full, None) });
        }
        let parts = strata.parts.iter().enumerate();
        rows.extend(parts.map(|(h, part)| row(h + 1, part.ranks, part.size, Some(part.variance))));
        rows
    }
}

/// Decision of a group about a window.
#[derive(Clone, Debug)]
struct WindowDecision {
    strata: Strata,
    /// `true` if any guide asked for ranks.
    any: bool,
    /// Ranks of the group that were not counted.
    missing: u64,
}

impl WindowDecision {
    fn decision(&self) -> GroupDecision {
        let stratum = |part: &ampl_core::stats::strata::Part| StratumDecision {
            ranks: part.ranks as u32,
            size: part.size as u32,
            before: 0,
        };
        GroupDecision {
            cuts: self.strata.cuts.clone(),
            strata: self.strata.parts.iter().map(stratum).collect(),
        }
    }
}
