//! Values of a word on every rank of a group, as a formula where there is one.

use ampl_core::value::PROC_NULL;

use super::column::Column;
use super::grid::{Dimension, Grids, Step, neighbour, zone};

/// Largest number of distinct values in a table.
pub const MOST_KEYS: usize = 8;
/// Word of a neighbour beyond an edge: other words of a call often depend on it alone.
pub const EDGE: u64 = PROC_NULL as u64;

/// A value for every rank.
#[derive(Clone, Debug, PartialEq)]
pub enum Fit {
    /// Value of an earlier varying word.
    Equal(usize),
    /// Table by the value of an earlier varying word, if that is one of the keys.
    Map { of: usize, keys: Vec<u64>, values: Vec<u64>, otherwise: u64 },
    /// `start + step * rank`.
    Linear { start: u64, step: u64 },
    /// `(start + rank) mod ranks`, or minus the rank.
    Residue { minus: bool, start: u64 },
    /// A rank computed from the caller's, or its distance from the caller.
    Partner { partner: Partner, relative: bool },
    /// `start + scale * place` along a dimension.
    Place { along: Dimension, scale: u64, start: u64 },
    /// Table by whether the rank is first, last or between along each dimension.
    Zones { dimensions: Vec<Dimension>, table: Vec<u64> },
    /// Values by position.
    Column(Column),
    /// Value of an earlier varying word and a difference.
    Difference { of: usize, column: Column },
}

/// A rank computed from the caller's.
#[derive(Clone, Debug, PartialEq)]
pub enum Partner {
    /// Exclusive or.
    Xor(u32),
    /// `rank % rows * (ranks / rows) + rank / rows`.
    Transpose(u32),
    /// A neighbour on a grid; the value of those that have none.
    Neighbour { steps: Vec<Step>, edge: u64 },
}

impl Partner {
    /// The other rank; `Err` is the value itself.
    fn of(&self, job: u32, rank: u32) -> Result<u64, u64> {
        match self {
            Self::Xor(with) => Ok(u64::from(rank ^ with)),
            &Self::Transpose(rows) => {
                Ok(u64::from(rank % rows) * u64::from(job / rows) + u64::from(rank / rows))
            }
            Self::Neighbour { steps, edge } => neighbour(steps, rank).map(u64::from).ok_or(*edge),
        }
    }
}

impl Fit {
    /// The value of `rank`, the one at `position` of its group in a job of so many, behind `others`.
    pub fn value(&self, job: u32, position: u32, rank: u32, others: &[u64]) -> u64 {
        let other = |index: usize| others.get(index).copied().unwrap_or(0);
        match self {
            Self::Equal(of) => other(*of),
            Self::Map { of, keys, values, otherwise } => {
                let key = keys.iter().position(|&key| key == other(*of));
                key.and_then(|key| values.get(key)).copied().unwrap_or(*otherwise)
            }
            Self::Linear { start, step } => start.wrapping_add(step.wrapping_mul(rank.into())),
            &Self::Residue { minus, start } => residue(minus, start, rank.into(), u64::from(job).max(1)),
            Self::Partner { partner, relative } => match partner.of(job, rank) {
                Ok(other) if *relative => relative_to(other, rank, job),
                Ok(value) | Err(value) => value,
            },
            Self::Place { along, scale, start } => {
                start.wrapping_add(scale.wrapping_mul(along.place(rank).into()))
            }
            Self::Zones { dimensions, table } => table.get(zone(dimensions, rank)).copied().unwrap_or(0),
            Self::Column(column) => column.value(position),
            Self::Difference { of, column } => other(*of).wrapping_add(column.value(position)),
        }
    }
}

fn residue(minus: bool, start: u64, rank: u64, job: u64) -> u64 {
    let (start, rank) = (start % job, rank % job);
    if minus { (start + job - rank) % job } else { (start + rank) % job }
}

fn relative_to(other: u64, rank: u32, job: u32) -> u64 {
    let (rank, job) = (u64::from(rank), u64::from(job));
    if other >= job || rank >= job {
        return other;
    }
    if other >= rank { other - rank } else { other + job - rank }
}

/// Finds formulas.
pub struct Finder<'a> {
    job: u32,
    grids: &'a Grids,
    ranks: &'a [u32],
    /// Dimensions along which neighbours were found, and whether they are periodic.
    known: Vec<(Dimension, bool)>,
}

impl<'a> Finder<'a> {
    /// A finder for words of `ranks` in a job of so many.
    pub fn new(job: u32, grids: &'a Grids, ranks: &'a [u32]) -> Self {
        Self { job, grids, ranks, known: Vec::new() }
    }

    fn fits(&self, fit: Fit, values: &[u64]) -> Option<Fit> {
        let mut pairs = self.ranks.iter().zip(values);
        pairs.all(|(&rank, &value)| fit.value(self.job, 0, rank, &[]) == value).then_some(fit)
    }

    /// Formulas that hold for all ranks; `rank_like` are words that were turned relative to the caller.
    pub fn find(&mut self, values: &[u64], rank_like: bool) -> Vec<Fit> {
        let (job, first) = (u64::from(self.job).max(1), u64::from(self.ranks[0]));
        let mut found = Vec::new();
        if let (&[one, two, ..], &[a, b, ..]) = (values, self.ranks) {
            let (rise, run) = (two.wrapping_sub(one), b - a);
            let step = (rise as i64).checked_div(run.into()).unwrap_or(0) as u64;
            let start = one.wrapping_sub(step.wrapping_mul(first));
            found.extend(self.fits(Fit::Linear { start, step }, values));
        }
        if values[0] < job {
            for minus in [false, true] {
                let start = (if minus { values[0] + first } else { values[0] + job - first % job }) % job;
                found.extend(self.fits(Fit::Residue { minus, start }, values));
            }
        }
        for relative in [rank_like, !rank_like] {
            if found.is_empty() {
                found.extend(self.partner(values, relative));
            }
        }
        if found.is_empty() {
            found.extend(self.grids.dimensions.iter().find_map(|&along| self.place(values, along)));
        }
        found
    }

    /// The other rank that `value` names.
    fn other(&self, value: u64, rank: u32, relative: bool) -> Option<u32> {
        let job = u64::from(self.job);
        if value >= job {
            return None;
        }
        Some(if relative { ((value + u64::from(rank)) % job) as u32 } else { value as u32 })
    }

    fn partner(&mut self, values: &[u64], relative: bool) -> Option<Fit> {
        if let Some(found) = self.neighbour(values, relative) {
            return Some(found);
        }
        let other = self.other(values[0], self.ranks[0], relative)?;
        let fit = |partner| Fit::Partner { partner, relative };
        let xor = fit(Partner::Xor(other ^ self.ranks[0]));
        if let Some(found) = self.fits(xor, values) {
            return Some(found);
        }
        let rows = self.grids.whole.iter().filter(|grid| grid.len() == 2).map(|grid| grid[0].extent);
        rows.into_iter().find_map(|rows| self.fits(fit(Partner::Transpose(rows)), values))
    }

    fn neighbour(&mut self, values: &[u64], relative: bool) -> Option<Fit> {
        let edge = values.iter().copied().find(|&value| value >= u64::from(self.job));
        let pairs = self.ranks.iter().zip(values);
        let (&rank, &value) = pairs.into_iter().find(|&(_, &value)| Some(value) != edge)?;
        let other = self.other(value, rank, relative)?;
        let fit = |steps| {
            let partner = Partner::Neighbour { steps, edge: edge.unwrap_or(0) };
            Fit::Partner { partner, relative }
        };
        let away = i64::from(other) - i64::from(rank);
        for &along in &self.grids.dimensions {
            let (below, extent) = (i64::from(along.below), i64::from(along.extent));
            if away == 0 || away % below != 0 || (away / below).abs() >= extent {
                continue;
            }
            let by = away / below;
            let around = if by > 0 { by - extent } else { by + extent };
            for by in if by.abs() <= around.abs() { [by, around] } else { [around, by] } {
                let periodic = edge.is_none();
                let step = Step { along, by: by as i32, periodic };
                if let Some(found) = self.fits(fit(vec![step]), values) {
                    if !self.known.contains(&(along, periodic)) && self.known.len() < 4 {
                        self.known.push((along, periodic));
                    }
                    return Some(found);
                }
            }
        }
        let each: Vec<[Option<Step>; 3]> = self
            .known
            .iter()
            .map(|&(along, periodic)| {
                [None, Some(1), Some(-1)].map(|by| by.map(|by| Step { along, by, periodic }))
            })
            .collect();
        (0..3usize.pow(each.len() as u32)).find_map(|mut choice| {
            let mut steps = Vec::new();
            for options in &each {
                steps.extend(options[choice % 3]);
                choice /= 3;
            }
            (steps.len() > 1).then(|| self.fits(fit(steps), values)).flatten()
        })
    }

    fn place(&self, values: &[u64], along: Dimension) -> Option<Fit> {
        let at = |place| self.ranks.iter().position(|&rank| along.place(rank) == place);
        let (zero, one) = (at(0)?, at(1)?);
        let start = values[zero];
        let scale = values[one].wrapping_sub(start);
        self.fits(Fit::Place { along, scale, start }, values)
    }

    /// A table by zones of the smallest grid that has one.
    pub fn zones(&self, values: &[u64]) -> Option<Fit> {
        self.grids.whole.iter().find_map(|dimensions| {
            let mut table = vec![None; 3usize.pow(dimensions.len() as u32)];
            for (&rank, &value) in self.ranks.iter().zip(values) {
                let entry = &mut table[zone(dimensions, rank)];
                if entry.replace(value).is_some_and(|before| before != value) {
                    return None;
                }
            }
            let table = table.into_iter().map(|entry| entry.unwrap_or(0)).collect();
            Some(Fit::Zones { dimensions: dimensions.clone(), table })
        })
    }
}

/// Values in the order of their first appearance; `None` if they are too many for a table.
pub fn keys(values: impl Iterator<Item = u64>) -> Option<Vec<u64>> {
    let mut keys = Vec::new();
    for value in values {
        if keys.last() != Some(&value) && !keys.contains(&value) {
            if keys.len() == MOST_KEYS {
                return None;
            }
            keys.push(value);
        }
    }
    Some(keys)
}

/// A table from `keys` to what `values` has where `others` has the key.
pub fn map(keys: &[u64], others: &[u64], values: &[u64]) -> Option<Vec<u64>> {
    let mut table = vec![None; keys.len()];
    for (other, &value) in others.iter().zip(values) {
        let entry = &mut table[keys.iter().position(|key| key == other)?];
        if entry.replace(value).is_some_and(|before| before != value) {
            return None;
        }
    }
    table.into_iter().collect()
}

/// The one value that `values` has where `others` has `MPI_PROC_NULL`, and the one that it has everywhere else.
pub fn at_edge(others: &[u64], values: &[u64]) -> Option<[u64; 2]> {
    let mut both = [None; 2];
    for (&other, &value) in others.iter().zip(values) {
        let found = &mut both[usize::from(other != EDGE)];
        if found.replace(value).is_some_and(|before| before != value) {
            return None;
        }
    }
    Some([both[0]?, both[1]?])
}
