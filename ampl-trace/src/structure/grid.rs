//! Ranks on a Cartesian grid: neighbours, coordinates, zones.

/// A dimension of a grid: ranks in a step along it, and number of places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dimension {
    /// Ranks of one step.
    pub below: u32,
    /// Places.
    pub extent: u32,
}

impl Dimension {
    /// Place of `rank` along it.
    pub fn place(self, rank: u32) -> u32 {
        rank / self.below % self.extent
    }
}

/// A step along a dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Its dimension.
    pub along: Dimension,
    /// Number of places, either way; less than the extent.
    pub by: i32,
    /// True where the last place is beside the first.
    pub periodic: bool,
}

/// The rank so many steps from `rank`; `None` beyond an edge.
pub fn neighbour(steps: &[Step], rank: u32) -> Option<u32> {
    let mut at = i64::from(rank);
    for step in steps {
        let (place, extent) = (i64::from(step.along.place(rank)), i64::from(step.along.extent));
        let mut to = place + i64::from(step.by);
        if !(0..extent).contains(&to) {
            if !step.periodic {
                return None;
            }
            to = to.rem_euclid(extent);
        }
        at += (to - place) * i64::from(step.along.below);
    }
    u32::try_from(at).ok()
}

/// First place 0, last place 2, others 1, as a number with a digit for each dimension.
pub fn zone(dimensions: &[Dimension], rank: u32) -> usize {
    dimensions.iter().fold(0, |zone, dimension| {
        let place = dimension.place(rank);
        let digit = match place {
            0 => 0,
            _ if place + 1 == dimension.extent => 2,
            _ => 1,
        };
        zone * 3 + digit
    })
}

/// Grids of a job of so many ranks.
#[derive(Debug, Default)]
pub struct Grids {
    /// Every dimension that a grid of all ranks can have.
    pub dimensions: Vec<Dimension>,
    /// Every grid of two and three dimensions, each dimension of at least two places.
    pub whole: Vec<Vec<Dimension>>,
}

/// Largest number of grids that are tried.
const MOST: usize = 2000;

impl Grids {
    /// Grids of `ranks` ranks.
    pub fn new(ranks: u32) -> Self {
        let ranks = ranks.max(1);
        // The number of ranks may be a damaged journal's: a square need not be one of u32.
        let is_low = |d: u32, of: u32| d.checked_mul(d).is_some_and(|square| square <= of);
        let divisors =
            |of: u32| (2..).take_while(move |&d| is_low(d, of)).filter(move |d| of.is_multiple_of(*d));
        let mut all: Vec<u32> = divisors(ranks).flat_map(|d| [d, ranks / d]).chain([1, ranks]).collect();
        all.sort_unstable();
        all.dedup();
        let mut grids = Self::default();
        for &below in &all {
            let rest = ranks / below;
            let extents = all.iter().filter(|&&extent| extent > 1 && rest.is_multiple_of(extent));
            grids.dimensions.extend(extents.map(|&extent| Dimension { below, extent }));
        }
        grids.dimensions.truncate(MOST);
        let dimension = |below, extent| Dimension { below, extent };
        grids.whole.push(vec![dimension(1, ranks)]);
        for &low in all.iter().filter(|&&low| low > 1 && low < ranks) {
            grids.whole.push(vec![dimension(low, ranks / low), dimension(1, low)]);
        }
        for &low in all.iter().filter(|&&low| low > 1 && low < ranks) {
            for &middle in
                all.iter().filter(|&&m| m > 1 && (ranks / low).is_multiple_of(m) && m < ranks / low)
            {
                let both = low * middle;
                grids.whole.push(vec![
                    dimension(both, ranks / both),
                    dimension(low, middle),
                    dimension(1, low),
                ]);
            }
        }
        grids.whole.truncate(MOST);
        grids
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_of_ranks_has_grids() {
        assert_eq!(Grids::new(0).whole, Grids::new(1).whole);
        for ranks in [12, 65_536 * 65_535, u32::MAX] {
            let grids = Grids::new(ranks);
            let places = |grid: &Vec<Dimension>| grid.iter().map(|of| u64::from(of.extent)).product::<u64>();
            assert!(grids.whole.len() > 1 && grids.whole.iter().all(|grid| places(grid) == u64::from(ranks)));
        }
    }
}
