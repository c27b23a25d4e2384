//! Values and guards as functions of the rank. A formula is only given where it holds for every rank that is asked for.

use std::collections::BTreeSet;
use std::ops::Range;

use ampl_core::value::PROC_NULL;

use super::grid::Grid;
use super::space::Space;

/// Most children of a vertex of a tree that are tried.
const MOST_CHILDREN: u32 = 8;
/// Most ranges of coordinates along an axis: both ends of it are two.
const MOST_RANGES: usize = 2;

/// A value as a function of the rank of the world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Formula {
    /// The same for all.
    Constant(i64),
    /// The rank at a step in the grid; `MPI_PROC_NULL` outside.
    Neighbour(Vec<i64>),
    /// The rank whose coordinate along an axis differs in these bits.
    Flip(usize, u32),
    /// The rank at (y, x).
    Transposed,
    /// The rank that many further.
    Offset(i64),
    /// The rank that many further, counted round.
    Round(u32),
    /// The rank that differs in these bits.
    Xor(u32),
    /// The parent in a tree of so many children each, numbered level by level; `MPI_PROC_NULL` of the root.
    Parent(u32),
    /// The child of that number in such a tree; `MPI_PROC_NULL` where there is none.
    Child(u32, u32),
    /// One of two.
    Choice(Guard, i64, i64),
    /// A value for each rank of the job; 0 for those that have none.
    Table(Vec<i64>),
}

/// A set of ranks as a function of the rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Guard {
    /// All.
    Always,
    /// Ranks with, or without, a neighbour at each of these steps.
    Neighbours(Vec<(Vec<i64>, bool)>),
    /// Ranks whose coordinate along each of these axes lies in one of these ranges; the last may have no end.
    Coordinates(Vec<(usize, Vec<Range<u32>>)>),
    /// One rank.
    Is(u32),
    /// All but one.
    IsNot(u32),
    /// Ranks below.
    Below(u32),
    /// From that one on.
    From(u32),
    /// From the first up to the second, without it.
    Between(u32, u32),
    /// Ranks with that rest by that divisor.
    Modulo(u32, u32),
    /// True for each rank of the job that belongs to it.
    Table(Vec<bool>),
}

/// Finds formulas in a job.
#[derive(Clone, Debug)]
pub struct Formulas {
    ranks: u32,
    /// The grid; `None` where coordinates do not follow from the rank by division.
    pub grid: Option<Grid>,
    steps: Vec<Vec<i64>>,
}

impl Formulas {
    /// Formulas over the coordinates of `space`, in a job of so many ranks.
    pub fn new(space: &Space, ranks: u32) -> Self {
        let grid = Grid::of(space, ranks);
        let steps = grid.as_ref().map(|grid| grid.steps(space)).unwrap_or_default();
        Self { ranks, grid, steps }
    }

    /// Value of a formula for a rank.
    pub fn value(&self, formula: &Formula, rank: u32) -> Option<i64> {
        let (own, ranks) = (i64::from(rank), i64::from(self.ranks));
        Some(match formula {
            Formula::Constant(value) => *value,
            Formula::Neighbour(step) => self.grid.as_ref()?.shift(rank, step),
            Formula::Flip(axis, bits) => self.grid.as_ref()?.flip(rank, *axis, *bits),
            Formula::Transposed => self.grid.as_ref()?.transposed(rank)?,
            Formula::Offset(by) => own + by,
            Formula::Round(by) => (own + i64::from(*by)) % ranks.max(1),
            Formula::Xor(bits) => i64::from(rank ^ bits),
            Formula::Parent(children) => {
                if rank == 0 {
                    PROC_NULL
                } else {
                    i64::from((rank - 1) / children)
                }
            }
            Formula::Child(children, number) => {
                let child = own * i64::from(*children) + i64::from(*number) + 1;
                if child < ranks { child } else { PROC_NULL }
            }
            Formula::Choice(guard, yes, no) => {
                if self.holds(guard, rank) {
                    *yes
                } else {
                    *no
                }
            }
            Formula::Table(values) => *values.get(rank as usize)?,
        })
    }

    /// True where a rank belongs to a guard.
    pub fn holds(&self, guard: &Guard, rank: u32) -> bool {
        match guard {
            Guard::Always => true,
            Guard::Neighbours(all) => all.iter().all(|(step, has)| {
                self.grid.as_ref().is_some_and(|grid| (grid.shift(rank, step) != PROC_NULL) == *has)
            }),
            Guard::Coordinates(axes) => self.grid.as_ref().is_some_and(|grid| {
                let lies = |(axis, ranges): &(usize, Vec<Range<u32>>)| {
                    let at = grid.coordinate(rank, *axis);
                    ranges.iter().any(|range| range.contains(&at))
                };
                axes.iter().all(lies)
            }),
            Guard::Is(one) => rank == *one,
            Guard::IsNot(one) => rank != *one,
            Guard::Below(end) => rank < *end,
            Guard::From(first) => rank >= *first,
            Guard::Between(first, end) => (*first..*end).contains(&rank),
            Guard::Modulo(divisor, rest) => rank % divisor == *rest,
            Guard::Table(all) => all.get(rank as usize).copied().unwrap_or_default(),
        }
    }

    /// The plainest formula that gives all these partners.
    pub fn partner(&self, column: &[(u32, i64)]) -> Formula {
        if let Some(constant) = constant(column) {
            return constant;
        }
        let real = column.iter().find_map(|&(rank, to)| Some((rank, u32::try_from(to).ok()?)));
        let mut all: Vec<Formula> = self.steps.iter().cloned().map(Formula::Neighbour).collect();
        if let Some((from, to)) = real {
            let by = i64::from(to) - i64::from(from);
            if let Some(grid) = self.grid.as_ref().filter(|_| to < self.ranks) {
                for axis in 0..grid.axes.len() {
                    let bits = grid.coordinate(from, axis) ^ grid.coordinate(to, axis);
                    all.push(Formula::Flip(axis, bits));
                }
                all.extend([Formula::Transposed, Formula::Neighbour(grid.step(from, to))]);
            }
            let round = by.rem_euclid(i64::from(self.ranks.max(1))) as u32;
            all.extend([Formula::Offset(by), Formula::Round(round), Formula::Xor(from ^ to)]);
            for children in 2..=MOST_CHILDREN {
                all.push(Formula::Parent(children));
                all.extend((0..children).map(|number| Formula::Child(children, number)));
            }
        }
        let holds =
            |formula: &Formula| column.iter().all(|&(rank, value)| self.value(formula, rank) == Some(value));
        all.into_iter().find(holds).unwrap_or_else(|| self.number(column))
    }

    /// The plainest formula that gives all these numbers.
    pub fn number(&self, column: &[(u32, i64)]) -> Formula {
        if let Some(constant) = constant(column) {
            return constant;
        }
        let values: BTreeSet<i64> = column.iter().map(|&(_, value)| value).collect();
        let around: BTreeSet<u32> = column.iter().map(|&(rank, _)| rank).collect();
        if let [one, other] = values.iter().copied().collect::<Vec<_>>()[..] {
            let having = |value: i64| {
                column
                    .iter()
                    .filter(|&&(_, own)| own == value)
                    .map(|&(rank, _)| rank)
                    .collect::<BTreeSet<_>>()
            };
            for (yes, no) in [(one, other), (other, one)] {
                let guard = self.guard(&having(yes), &around);
                if !matches!(guard, Guard::Table(_)) {
                    return Formula::Choice(guard, yes, no);
                }
            }
        }
        let own_rank = column.iter().all(|&(rank, value)| i64::from(rank) == value);
        if own_rank {
            return Formula::Offset(0);
        }
        let mut table = vec![0; self.ranks as usize];
        column.iter().for_each(|&(rank, value)| table[rank as usize] = value);
        Formula::Table(table)
    }

    /// The plainest guard that lets these of the ranks `around` pass.
    pub fn guard(&self, ranks: &BTreeSet<u32>, around: &BTreeSet<u32>) -> Guard {
        if ranks == around {
            return Guard::Always;
        }
        let fits = |guard: &Guard| around.iter().all(|rank| self.holds(guard, *rank) == ranks.contains(rank));
        let mut all: Vec<Guard> = Vec::new();
        let one = |step: &Vec<i64>, has: bool| (step.clone(), has);
        for has in [true, false] {
            all.extend(self.steps.iter().map(|step| Guard::Neighbours(vec![one(step, has)])));
        }
        let (first, last) = (ranks.first().copied().unwrap_or(0), ranks.last().copied().unwrap_or(0));
        if let [single] = ranks.iter().copied().collect::<Vec<_>>()[..] {
            all.push(Guard::Is(single));
        }
        if let Some(&other) = around.difference(ranks).next() {
            all.push(Guard::IsNot(other));
        }
        for (at, step) in self.steps.iter().enumerate() {
            for other in &self.steps[at + 1..] {
                for (has, too) in [(true, true), (true, false), (false, true), (false, false)] {
                    all.push(Guard::Neighbours(vec![one(step, has), one(other, too)]));
                }
            }
        }
        all.extend(self.coordinates(ranks, around, 1));
        // A bound between the last of these and the next around it: that of a grid or a tree, where it is one.
        let end = around.range(last + 1..).next().copied().unwrap_or(self.ranks);
        all.extend([Guard::Below(end), Guard::From(first), Guard::Between(first, end)]);
        for divisor in [2, 3, 4] {
            all.push(Guard::Modulo(divisor, first % divisor));
        }
        all.extend(self.coordinates(ranks, around, MOST_RANGES));
        let table = || Guard::Table((0..self.ranks).map(|rank| ranks.contains(&rank)).collect());
        all.into_iter().find(fits).unwrap_or_else(table)
    }

    /// The coordinates of `ranks`, along the axes where they are not those of all ranks `around`; `None` where these are
    /// more than `most` ranges.
    fn coordinates(&self, ranks: &BTreeSet<u32>, around: &BTreeSet<u32>, most: usize) -> Option<Guard> {
        let grid = self.grid.as_ref()?;
        let mut axes = Vec::new();
        for axis in 0..grid.axes.len() {
            let of = |ranks: &BTreeSet<u32>| -> BTreeSet<u32> {
                ranks.iter().map(|&rank| grid.coordinate(rank, axis)).collect()
            };
            let (own, all) = (of(ranks), of(around));
            if own == all {
                continue;
            }
            let mut ranges: Vec<Range<u32>> = Vec::new();
            for at in own {
                match ranges.last_mut() {
                    // Nobody is in between.
                    Some(range) if all.range(range.end..at).next().is_none() => range.end = at + 1,
                    _ => ranges.push(at..at + 1),
                }
            }
            // To the ends of the axis, where nobody is beyond.
            if let Some(range) = ranges.first_mut().filter(|range| all.range(..range.start).next().is_none())
            {
                range.start = 0;
            }
            if let Some(range) = ranges.last_mut().filter(|range| all.range(range.end..).next().is_none()) {
                range.end = u32::MAX;
            }
            if ranges.len() > most {
                return None;
            }
            axes.push((axis, ranges));
        }
        Some(Guard::Coordinates(axes))
    }
}

fn constant(column: &[(u32, i64)]) -> Option<Formula> {
    let &(_, first) = column.first()?;
    column.iter().all(|&(_, value)| value == first).then_some(Formula::Constant(first))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logical::grid::GridAxis;

    fn formulas(ranks: u32) -> Formulas {
        Formulas { ranks, grid: None, steps: Vec::new() }
    }

    #[test]
    fn formulas_give_the_values_that_they_were_found_for() {
        let job = formulas(12);
        let columns: [(&[(u32, i64)], Formula); 7] = [
            (&[(0, 5), (7, 5)], Formula::Constant(5)),
            (&[(0, 1), (3, 4)], Formula::Offset(1)),
            (&[(0, 2), (11, 1)], Formula::Round(2)),
            (&[(0, 3), (1, 2), (2, 1)], Formula::Xor(3)),
            (&[(0, PROC_NULL), (1, 0), (2, 0), (3, 1)], Formula::Parent(2)),
            (&[(0, 2), (1, 4), (5, PROC_NULL)], Formula::Child(2, 1)),
            (&[(0, 4), (5, 9), (6, 9)], Formula::Choice(Guard::Is(0), 4, 9)),
        ];
        for (column, expected) in columns {
            let found = job.partner(column);
            assert_eq!(found, expected);
            column.iter().for_each(|&(rank, value)| assert_eq!(job.value(&found, rank), Some(value)));
        }
        let column = [(0, 3), (1, 1), (2, 4), (3, 1), (4, 5)];
        let found = job.partner(&column);
        assert!(matches!(&found, Formula::Table(all) if all.len() == 12));
        column.iter().for_each(|&(rank, value)| assert_eq!(job.value(&found, rank), Some(value)));
    }

    #[test]
    fn ends_and_middles_of_an_axis_are_guards_by_coordinates() {
        let axis = |number, stride| GridAxis { size: 4, stride, periodic: false, number, reversed: false };
        let grid = Grid { axes: vec![axis(0, 1), axis(1, 4)] };
        let job = Formulas { ranks: 16, grid: Some(grid), steps: Vec::new() };
        let all: BTreeSet<u32> = (0..16).collect();
        let ranks = |lies: fn(u32, u32) -> bool| -> BTreeSet<u32> {
            all.iter().copied().filter(|rank| lies(rank % 4, rank / 4)).collect()
        };
        let ranges = |all: &[(u32, u32)]| all.iter().map(|&(start, end)| start..end).collect::<Vec<_>>();
        let ends = ranks(|x, y| x < 3 && (y == 0 || y == 3));
        let expected =
            Guard::Coordinates(vec![(0, ranges(&[(0, 3)])), (1, ranges(&[(0, 1), (3, u32::MAX)]))]);
        assert_eq!(job.guard(&ends, &all), expected);
        let (middle, around) = (ranks(|x, y| x > 0 && (y == 1 || y == 2)), ranks(|x, _| x > 0));
        assert_eq!(job.guard(&middle, &around), Guard::Coordinates(vec![(1, ranges(&[(1, 3)]))]));
        let odd = ranks(|x, y| (x + y) % 2 == 1);
        assert!(matches!(job.guard(&odd, &all), Guard::Table(_)));
    }

    #[test]
    fn guards_let_these_ranks_pass_and_no_others() {
        let job = formulas(9);
        let all: BTreeSet<u32> = (0..9).collect();
        let mut state = 1u32;
        for _ in 0..300 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let ranks: BTreeSet<u32> =
                all.iter().copied().filter(|rank| state >> (8 + rank) & 1 == 1).collect();
            let around: BTreeSet<u32> = ranks.iter().copied().chain([state % 9]).collect();
            for around in [&all, &around] {
                let guard = job.guard(&ranks, around);
                let passes: BTreeSet<u32> =
                    around.iter().copied().filter(|&rank| job.holds(&guard, rank)).collect();
                assert_eq!(passes, ranks, "{guard:?}");
            }
        }
    }
}
