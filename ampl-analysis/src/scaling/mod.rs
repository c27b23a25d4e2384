//! Scaling of a program: efficiencies over the number of ranks, and what grows with it.
//!
//! Efficiencies are those of the POP project, each against the run with the fewest ranks. What grows is read from the
//! structure of calls alone, so it does not depend on the machine.
//!
//! # Source
//! POP standard metrics; M. Noeth and others, *ScalaTrace* (2009), §6, for parameters and sizes that grow.

mod growth;
mod point;
mod sites;
mod table;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BTreeMap;

pub use growth::Law;
pub use point::{Counters, Point};
pub use sites::Size;
pub use table::{BELOW, Factor, Fall, Row};

use crate::comparison::Scope;

/// Way in which the problem grows with the ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The same problem on more ranks.
    Strong,
    /// A problem that grows with the ranks.
    Weak,
}

/// Source of the mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModeBasis {
    /// The user states it.
    Given,
    /// Instructions of a rank.
    Instructions,
    /// Compute time of a rank.
    ComputeTime,
    /// There is nothing to go by: one number of ranks, or no times.
    Nothing,
}

/// Values by number of ranks.
type Series = Vec<(u32, f64)>;

/// Something that grows with the number of ranks, at a place.
#[derive(Clone, Debug, PartialEq)]
pub struct Flag {
    /// The place.
    pub site: Scope,
    /// Sizes that grow: the first is the most telling.
    pub what: Vec<Size>,
    /// The law of its growth.
    pub law: Law,
    /// Value of the first by number of ranks.
    pub values: Vec<(u32, f64)>,
}

/// A scaling study.
#[derive(Clone, Debug)]
pub struct Scaling {
    /// Way in which the problem grows.
    pub mode: Mode,
    /// Source of that.
    pub basis: ModeBasis,
    /// Runs, fewest ranks first; the first is the reference.
    pub rows: Vec<Row>,
    /// First number of ranks at which each factor is below [`BELOW`].
    pub falls: Vec<Fall>,
    /// Growth with the number of ranks.
    pub flags: Vec<Flag>,
    /// Numbers of ranks whose calls are not all recorded: flags do without them.
    pub not_recorded: Vec<u32>,
    /// Numbers of ranks that had to share processors: their times are about the machine.
    pub sharing: Vec<u32>,
}

/// The study of `points`, one at least; in `mode`, or the one that the work of a rank shows.
pub fn scaling(mut points: Vec<Point>, mode: Option<Mode>) -> Scaling {
    points.sort_by_key(|point| point.ranks);
    let (found, basis) = match mode {
        Some(mode) => (mode, ModeBasis::Given),
        None => guess(&points),
    };
    let rows = table::rows(&points, found);
    let falls = table::falls(&points, &rows);
    let not_recorded =
        points.iter().filter(|point| point.not_recorded > 0).map(|point| point.ranks).collect();
    let sharing = points.iter().filter(|point| point.shares_processors).map(|point| point.ranks).collect();
    Scaling { mode: found, basis, rows, falls, flags: flags(&points), not_recorded, sharing }
}

/// The mode by the work of a rank at the fewest ranks and at the most: constant in a weak study.
fn guess(points: &[Point]) -> (Mode, ModeBasis) {
    let by = |of: fn(&Point) -> Option<f64>| {
        let (first, last) = (points.first()?, points.last()?);
        let per_rank = |point: &Point| Some(of(point)? / f64::from(point.ranks.max(1)));
        let (one, other) = (per_rank(first)?, per_rank(last)?);
        let more = f64::from(last.ranks) / f64::from(first.ranks.max(1));
        // Half way between staying the same and falling as the ranks rise.
        let known = more > 1.0 && one > 0.0 && other > 0.0;
        known.then(|| if (other / one).ln() / more.ln() < -0.5 { Mode::Strong } else { Mode::Weak })
    };
    let instructions = by(|point| point.counters.instructions).map(|mode| (mode, ModeBasis::Instructions));
    let compute = || by(|point| point.compute_ns).map(|mode| (mode, ModeBasis::ComputeTime));
    instructions.or_else(compute).unwrap_or((Mode::Strong, ModeBasis::Nothing))
}

/// Growth with the number of ranks, worst first. Of runs of as many ranks the first counts.
fn flags(points: &[Point]) -> Vec<Flag> {
    let mut known: Vec<&Point> = Vec::new();
    for point in points.iter().filter(|point| !point.sizes.is_empty()) {
        if known.last().is_none_or(|last| last.ranks < point.ranks) {
            known.push(point);
        }
    }
    let Some(last) = known.last().filter(|_| known.len() > 1) else { return Vec::new() };
    // Without a loop that all runs have, calls are those of the whole run.
    let in_steps = known.iter().all(|point| point.steps.is_some());
    let mut found: Vec<Flag> = Vec::new();
    for (site, sizes) in &last.sizes {
        let mut own: BTreeMap<(Reverse<Law>, Size), Series> = BTreeMap::new();
        for size in sizes.keys() {
            let value = |point: &&Point| {
                let value = *point.sizes.get(site)?.get(size)?;
                let steps = if in_steps { 1.0 } else { point.steps.unwrap_or(1).max(1) as f64 };
                let value = if *size == Size::Calls { value * steps } else { value };
                Some((point.ranks, value))
            };
            let Some(values) = known.iter().map(value).collect::<Option<Series>>() else { continue };
            let series: Vec<(f64, f64)> =
                values.iter().map(|&(ranks, value)| (f64::from(ranks), value)).collect();
            if let Some(law) = growth::law(&series).filter(|&law| law > Law::Logarithm) {
                own.insert((Reverse(law), size.clone()), values);
            }
        }
        let law = own.keys().next().map(|(law, _)| law.0);
        let what: Vec<Size> = own.keys().map(|(_, size)| size.clone()).collect();
        if let (Some(law), Some(values)) = (law, own.into_values().next()) {
            found.push(Flag { site: site.clone(), what, law, values });
        }
    }
    found.sort_by(|a, b| b.law.cmp(&a.law).then_with(|| a.site.cmp(&b.site)));
    found
}
