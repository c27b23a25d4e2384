//! One rank's observations in one window, a cell per metric, in the room that most windows need.
//!
//! Most metrics are observed once in a window, and the value then says everything: a cell takes a word. A window of
//! seven metrics takes nine words, in a journal and wherever windows are read, instead of thirty-six.

use std::fmt;

use ampl_core::config::{MOST_METRICS, Quantity};
use serde::Serialize;

/// One metric's observations in one rank's window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Cell {
    /// Number of observations.
    pub n: f64,
    /// Sum of the observations, in the metric's unit.
    pub sum: f64,
    /// Sum of their squares.
    pub sum_sq: f64,
    /// The smallest; 0 without observations.
    pub min: f64,
    /// The largest; 0 without observations.
    pub max: f64,
}

impl Cell {
    /// A single observation.
    pub fn one(value: f64) -> Self {
        Self { n: 1.0, sum: value, sum_sq: value * value, min: value, max: value }
    }

    /// Scales the cell to so many windows with the same observations each.
    pub fn times(&mut self, windows: u64) {
        for value in [&mut self.n, &mut self.sum, &mut self.sum_sq] {
            *value *= windows as f64;
        }
    }

    /// Adds the observations of `other`.
    pub fn add(&mut self, other: &Self) {
        if other.n > 0.0 {
            self.min = if self.n > 0.0 { self.min.min(other.min) } else { other.min };
            self.max = if self.n > 0.0 { self.max.max(other.max) } else { other.max };
            self.n += other.n;
            self.sum += other.sum;
            self.sum_sq += other.sum_sq;
        }
    }

    fn bits(&self) -> [u64; 5] {
        [self.n, self.sum, self.sum_sq, self.min, self.max].map(f64::to_bits)
    }

    /// Passes the values to be stored to `put`, and returns the shape to read them by.
    pub(crate) fn put(&self, put: impl FnMut(f64)) -> Shape {
        match self.bits() {
            bits if bits == Self::default().bits() => Shape::Nothing,
            bits if bits == Self::one(self.sum).bits() => {
                [self.sum].into_iter().for_each(put);
                Shape::One
            }
            _ => {
                [self.n, self.sum, self.sum_sq, self.min, self.max].into_iter().for_each(put);
                Shape::Any
            }
        }
    }

    /// The cell of that `shape`, from the values that were [put](Self::put); `None` where there are not enough.
    pub(crate) fn get(shape: Shape, mut value: impl FnMut() -> Option<f64>) -> Option<Self> {
        Some(match shape {
            Shape::Nothing => Self::default(),
            Shape::One => Self::one(value()?),
            Shape::Any => Self { n: value()?, sum: value()?, sum_sq: value()?, min: value()?, max: value()? },
        })
    }
}

/// Layout of a stored cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Zeros: no values.
    Nothing,
    /// A single observation: its value.
    One,
    /// Anything: n, sum, sum of squares, smallest, largest.
    Any,
}

/// Largest number of metrics of any run: damaged bytes must not ask for more memory.
pub const MOST: usize = MOST_METRICS + Quantity::ALL.len();
/// Shapes in a word.
const SHAPES: usize = 32;

impl Shape {
    /// The shape of that number.
    pub(crate) fn of(number: u64) -> Option<Self> {
        [Self::Nothing, Self::One, Self::Any].into_iter().find(|&shape| shape as u64 == number)
    }

    fn values(self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::One => 1,
            Self::Any => 5,
        }
    }
}

/// One cell per metric, or none at all.
///
/// They are kept as they lie in a journal: their number; their shapes (0 zeros, 1 a single observation, 2 anything),
/// 32 to a word, the first in the lowest bits; then their values, one cell after the other, as bits of f64.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Cells(Box<[u64]>);

impl Cells {
    /// Appends `cells` to the words of a record.
    pub fn put(words: &mut Vec<u64>, cells: &[Cell]) {
        words.push(cells.len() as u64);
        let shapes = words.len();
        words.resize(shapes + cells.len().div_ceil(SHAPES), 0);
        for (index, cell) in cells.iter().enumerate() {
            let shape = cell.put(|value| words.push(value.to_bits()));
            words[shapes + index / SHAPES] |= (shape as u64) << (2 * (index % SHAPES));
        }
    }

    /// The cells that were [put](Self::put) at the beginning of `words`, and the words behind them; `None` if damaged.
    pub fn take(words: &[u64]) -> Option<(Self, &[u64])> {
        let (&count, rest) = words.split_first()?;
        let count = usize::try_from(count).ok().filter(|&count| count <= MOST)?;
        let shapes = rest.get(..count.div_ceil(SHAPES))?;
        let mut length = 1 + shapes.len();
        for index in 0..count {
            length += shape(shapes, index)?.values();
        }
        let (own, behind) = words.split_at_checked(length)?;
        Some((Self(if count > 0 { own.into() } else { Box::default() }), behind))
    }

    /// Number of cells.
    pub fn len(&self) -> usize {
        self.0.first().map_or(0, |&count| count as usize)
    }

    /// True where there are no cells.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The cells in order.
    pub fn iter(&self) -> impl Iterator<Item = Cell> {
        let (shapes, words) = self.0.get(1..).unwrap_or_default().split_at(self.len().div_ceil(SHAPES));
        let mut values = words.iter().map(|&word| f64::from_bits(word));
        (0..self.len()).map_while(move |index| Cell::get(shape(shapes, index)?, || values.next()))
    }

    /// The cell of a metric.
    pub fn get(&self, index: usize) -> Option<Cell> {
        self.iter().nth(index)
    }
}

fn shape(shapes: &[u64], index: usize) -> Option<Shape> {
    Shape::of(shapes.get(index / SHAPES)? >> (2 * (index % SHAPES)) & 3)
}

impl fmt::Debug for Cells {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl FromIterator<Cell> for Cells {
    fn from_iter<I: IntoIterator<Item = Cell>>(cells: I) -> Self {
        let cells: Vec<Cell> = cells.into_iter().collect();
        if cells.is_empty() {
            return Self::default();
        }
        let mut words = Vec::new();
        Self::put(&mut words, &cells);
        Self(words.into())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cell() -> impl Strategy<Value = Cell> {
        let whole =
            any::<[f64; 5]>().prop_map(|[n, sum, sum_sq, min, max]| Cell { n, sum, sum_sq, min, max });
        prop_oneof![Just(Cell::default()), any::<f64>().prop_map(Cell::one), whole]
    }

    fn bits(cells: impl IntoIterator<Item = Cell>) -> Vec<[u64; 5]> {
        cells.into_iter().map(|cell| cell.bits()).collect()
    }

    #[test]
    fn single_observations_take_a_word_and_nothing_takes_none() {
        let mut words = Vec::new();
        Cells::put(&mut words, &[Cell::one(2.0), Cell::default(), Cell { n: 2.0, ..Cell::one(3.0) }]);
        assert_eq!(words.len(), 2 + 1 + 5);
        assert_eq!(words[..3], [3, 0b10_00_01, 2f64.to_bits()]);
        // A shape that there is none of.
        words[1] |= 3;
        assert_eq!(Cells::take(&words), None);
    }

    proptest! {
        /// To the bit: not a number, negative zero and what overflowed are not exempt.
        #[test]
        fn cells_come_back(cells in prop::collection::vec(cell(), 0..70), behind: Vec<u64>) {
            let mut stored = Vec::new();
            Cells::put(&mut stored, &cells);
            stored.extend(&behind);
            let (read, rest) = Cells::take(&stored).unwrap();
            prop_assert_eq!(rest, &behind[..]);
            prop_assert_eq!(bits(read.iter()), bits(cells.iter().copied()));
            prop_assert_eq!((read.len(), read.is_empty()), (cells.len(), cells.is_empty()));
            prop_assert_eq!(&read, &cells.iter().copied().collect::<Cells>());
            for (index, cell) in cells.iter().enumerate() {
                prop_assert_eq!(read.get(index).map(|read| read.bits()), Some(cell.bits()));
            }
            prop_assert!(read.get(cells.len()).is_none());
        }

        #[test]
        fn any_words_are_read_without_panic(words: Vec<u64>, count in 0u64..100) {
            let _ = Cells::take(&words);
            let words = [&[count], &words[..]].concat();
            if let Some((cells, _)) = Cells::take(&words) {
                prop_assert_eq!(cells.iter().count(), cells.len());
            }
        }
    }
}
