//! Coordinates as functions of the rank.

use ampl_core::value::PROC_NULL;

use super::space::Space;

/// An axis whose coordinate is `rank / stride % size`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GridAxis {
    /// Number of places.
    pub size: u32,
    /// Difference of the ranks at neighbouring places.
    pub stride: u32,
    /// True if the last place is next to the first.
    pub periodic: bool,
    /// Its number in the space.
    pub number: usize,
    /// True where the space counts its places the other way.
    pub reversed: bool,
}

/// A grid in which coordinates follow from the rank by division. Axes are by stride, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grid {
    /// Axes.
    pub axes: Vec<GridAxis>,
}

impl Grid {
    /// The grid that `space` is for so many ranks; `None` where coordinates do not follow by division.
    pub fn of(space: &Space, ranks: u32) -> Option<Self> {
        let places: Vec<&[u32]> = (0..ranks).map(|rank| space.place(rank)).collect::<Option<_>>()?;
        let mut axes = Vec::new();
        for (number, axis) in space.axes().iter().enumerate() {
            // The first rank with another coordinate is one stride away, whichever way it is counted.
            let first = places.first()?[number];
            let stride = places.iter().position(|place| place[number] != first)? as u32;
            let reversed = first != 0;
            let coordinate = |rank: u32| {
                let at = rank / stride % axis.size;
                if reversed { axis.size - 1 - at } else { at }
            };
            (0..ranks).zip(&places).all(|(rank, place)| place[number] == coordinate(rank)).then_some(())?;
            axes.push(GridAxis { size: axis.size, stride, periodic: axis.periodic, number, reversed });
        }
        axes.sort_by_key(|axis| axis.stride);
        let grid = Self { axes };
        (!grid.axes.is_empty()).then_some(grid)
    }

    /// Coordinate of a rank along an axis.
    pub fn coordinate(&self, rank: u32, axis: usize) -> u32 {
        let axis = self.axes[axis];
        rank / axis.stride % axis.size
    }

    /// A step in the order and the direction of the grid's axes.
    pub fn own_step(&self, step: &[i64]) -> Vec<i64> {
        let along = |axis: &GridAxis| {
            let by = step.get(axis.number).copied().unwrap_or_default();
            if axis.reversed { -by } else { by }
        };
        self.axes.iter().map(along).collect()
    }

    /// The rank at a step along the grid's axes; `MPI_PROC_NULL` outside.
    pub fn shift(&self, rank: u32, step: &[i64]) -> i64 {
        let mut to = i64::from(rank);
        for (at, (axis, &by)) in self.axes.iter().zip(step).enumerate() {
            let own = i64::from(self.coordinate(rank, at));
            let size = i64::from(axis.size);
            let moved = if axis.periodic { (own + by).rem_euclid(size) } else { own + by };
            if !(0..size).contains(&moved) {
                return PROC_NULL;
            }
            to += (moved - own) * i64::from(axis.stride);
        }
        to
    }

    /// The rank whose coordinate along `axis` differs in these bits.
    pub fn flip(&self, rank: u32, axis: usize, bits: u32) -> i64 {
        let own = self.coordinate(rank, axis);
        i64::from(rank) + (i64::from(own ^ bits) - i64::from(own)) * i64::from(self.axes[axis].stride)
    }

    /// The rank at the place whose first two coordinates are exchanged.
    pub fn transposed(&self, rank: u32) -> Option<i64> {
        let [x, y, ..] = self.axes[..] else { return None };
        let (column, row) = (i64::from(self.coordinate(rank, 0)), i64::from(self.coordinate(rank, 1)));
        Some(i64::from(rank) + (row - column) * (i64::from(x.stride) - i64::from(y.stride)))
    }

    /// Steps to the neighbours: those of the space.
    pub fn steps(&self, space: &Space) -> Vec<Vec<i64>> {
        space.steps().iter().map(|step| self.own_step(step)).collect()
    }

    /// Step from a rank to another, along an axis that closes the short way.
    pub fn step(&self, from: u32, to: u32) -> Vec<i64> {
        let along = |(at, axis): (usize, &GridAxis)| {
            let by = i64::from(self.coordinate(to, at)) - i64::from(self.coordinate(from, at));
            let size = i64::from(axis.size);
            let forward = by.rem_euclid(size);
            match axis.periodic {
                true if 2 * forward > size => forward - size,
                true => forward,
                false => by,
            }
        };
        self.axes.iter().enumerate().map(along).collect()
    }
}
