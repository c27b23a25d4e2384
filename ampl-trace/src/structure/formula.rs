//! Formulas of columns as values in a stream, written and read.

use super::column::Column;
use super::fit::{EDGE, Fit, Partner};
use super::grid::{Dimension, Step};
use super::relative_args::Role;
use super::stream::{Broken, Effort, Field, In, Out, unzigzag};
use crate::varint::zigzag;

/// Kinds of formulas.
pub mod kind {
    #![allow(missing_docs)]
    pub const CONSTANT: u64 = 0;
    pub const EQUAL: u64 = 1;
    pub const MAP: u64 = 2;
    pub const LINEAR: u64 = 3;
    pub const RESIDUE: u64 = 4;
    pub const XOR: u64 = 6;
    pub const TRANSPOSE: u64 = 8;
    pub const NEIGHBOUR: u64 = 10;
    pub const PLACE: u64 = 12;
    pub const ZONES: u64 = 13;
    pub const RUNS: u64 = 14;
    pub const DELTAS: u64 = 15;
    pub const VALUES: u64 = 16;
    pub const DIFFERENCE: u64 = 17;
    pub const AT_EDGE: u64 = 18;
}

/// A way to write the values of a column, which has so many varying ones before it.
pub enum Coded<'a> {
    /// A formula.
    Fit(&'a Fit, usize),
    /// Differences from rank to rank.
    Deltas(&'a [u64]),
    /// The values of words with that role.
    Values(&'a [u64], Role),
    /// Differences from an earlier column: which, its values, and these.
    Difference(usize, &'a [u64], &'a [u64], usize),
}

/// The shortest of `ways`.
pub fn shortest<'a>(ways: impl Iterator<Item = Coded<'a>>) -> Coded<'a> {
    let length = |way: &Coded| {
        let mut scratch = Out::new(Effort::Quick);
        way.put(&mut scratch);
        scratch.len()
    };
    ways.min_by_key(length).expect("one at least")
}

/// Of ways that store a number for each rank, the one whose numbers lie closest together: they take the fewest bits once
/// the predictor knows where that is.
pub fn closest<'a>(ways: impl Iterator<Item = Coded<'a>>) -> Coded<'a> {
    ways.min_by_key(Coded::spread).expect("one at least")
}

impl Coded<'_> {
    /// Bits of the distances of its numbers from their median, sixteenths.
    fn spread(&self) -> u64 {
        let mut numbers: Vec<i64> = match self {
            Self::Fit(..) => return 0,
            Self::Deltas(values) => {
                let before = std::iter::once(&0).chain(*values);
                values
                    .iter()
                    .zip(before)
                    .map(|(value, before)| value.wrapping_sub(*before) as i64)
                    .skip(1)
                    .collect()
            }
            Self::Values(values, _) => values.iter().map(|&value| value as i64).collect(),
            Self::Difference(_, others, values, _) => {
                values.iter().zip(*others).map(|(value, other)| value.wrapping_sub(*other) as i64).collect()
            }
        };
        let middle = numbers.len() / 2;
        let Some((_, &mut median, _)) = (!numbers.is_empty()).then(|| numbers.select_nth_unstable(middle))
        else {
            return 0;
        };
        let bits = |number: &i64| {
            let far = 1 + u128::from(number.wrapping_sub(median).unsigned_abs());
            let whole = far.ilog2();
            // The logarithm is nearly straight between powers of two.
            16 * u64::from(whole) + ((far << 4 >> whole) as u64 & 15)
        };
        numbers.iter().map(bits).sum()
    }

    /// Writes the values.
    pub fn put(&self, out: &mut Out) {
        let signed = |out: &mut Out, context, value: u64| out.put_signed(Field::Value, context, value as i64);
        match self {
            Self::Fit(fit, have) => put_fit(out, fit, *have),
            Self::Deltas(values) => {
                out.put(Field::Fit, 0, kind::DELTAS);
                let mut before = 0;
                for &value in *values {
                    signed(out, 0, value.wrapping_sub(before));
                    before = value;
                }
            }
            Self::Values(values, role) => {
                out.put(Field::Fit, 0, kind::VALUES);
                values.iter().for_each(|&value| signed(out, 2 + *role as u32, value));
            }
            Self::Difference(of, others, values, have) => {
                out.put(Field::Fit, 0, kind::DIFFERENCE);
                out.put(Field::FitNumber, 170, (have - 1 - of) as u64);
                for (value, other) in values.iter().zip(*others) {
                    signed(out, 1, value.wrapping_sub(*other));
                }
            }
        }
    }
}

fn put_dimension(out: &mut Out, dimension: Dimension) {
    out.put(Field::FitNumber, 100, dimension.below.into());
    out.put(Field::FitNumber, 101, dimension.extent.into());
}

fn put_fit(out: &mut Out, fit: &Fit, have: usize) {
    let mut kind = |kind: u64| out.put(Field::Fit, 0, kind);
    match fit {
        Fit::Equal(of) => {
            kind(kind::EQUAL);
            out.put(Field::FitNumber, 1, (have - 1 - of) as u64);
        }
        Fit::Map { of, keys, values, otherwise } => {
            let at_edge = keys[..] == [EDGE];
            kind(if at_edge { kind::AT_EDGE } else { kind::MAP });
            out.put(Field::FitNumber, 2, (have - 1 - of) as u64);
            values.iter().for_each(|&value| out.put_signed(Field::FitNumber, 3, value as i64));
            if at_edge {
                out.put_signed(Field::FitNumber, 3, *otherwise as i64);
            }
        }
        Fit::Linear { start, step } => {
            kind(kind::LINEAR);
            out.put_signed(Field::FitNumber, 4, *start as i64);
            out.put_signed(Field::FitNumber, 5, *step as i64);
        }
        Fit::Residue { minus, start } => {
            kind(kind::RESIDUE + u64::from(*minus));
            out.put(Field::FitNumber, 6, *start);
        }
        Fit::Partner { partner, relative } => match partner {
            Partner::Xor(with) => {
                kind(kind::XOR + u64::from(*relative));
                out.put(Field::FitNumber, 7, (*with).into());
            }
            Partner::Transpose(rows) => {
                kind(kind::TRANSPOSE + u64::from(*relative));
                out.put(Field::FitNumber, 8, (*rows).into());
            }
            Partner::Neighbour { steps, edge } => {
                kind(kind::NEIGHBOUR + u64::from(*relative));
                out.put(Field::FitNumber, 9, steps.len() as u64);
                for step in steps {
                    put_dimension(out, step.along);
                    let by = zigzag(step.by.into());
                    out.put(Field::FitNumber, 10, by << 1 | u64::from(step.periodic));
                }
                if steps.iter().any(|step| !step.periodic) {
                    out.put_signed(Field::FitNumber, 11, *edge as i64);
                }
            }
        },
        Fit::Place { along, scale, start } => {
            kind(kind::PLACE);
            put_dimension(out, *along);
            out.put_signed(Field::FitNumber, 12, *scale as i64);
            out.put_signed(Field::FitNumber, 13, *start as i64);
        }
        Fit::Zones { dimensions, table } => {
            kind(kind::ZONES);
            out.put(Field::FitNumber, 14, dimensions.len() as u64);
            dimensions.iter().for_each(|&dimension| put_dimension(out, dimension));
            table.iter().for_each(|&value| out.put_signed(Field::FitNumber, 15, value as i64));
        }
        Fit::Column(column) => {
            kind(kind::RUNS);
            out.put(Field::FitNumber, 16, column.runs() as u64 - 1);
            let mut before = 0;
            for (length, start, step) in column.pieces() {
                out.put(Field::FitNumber, 17, u64::from(length) - 1);
                out.put_signed(Field::FitNumber, 18, start.wrapping_sub(before) as i64);
                if length > 1 {
                    out.put_signed(Field::FitNumber, 19, step as i64);
                }
                before = start;
            }
        }
        Fit::Difference { .. } => unreachable!("written as a way of its own"),
    }
}

/// A value for each of so many ranks.
pub fn read_values(stream: &mut In, length: u32, context: u32, sums: bool) -> Result<Column, Broken> {
    let mut column = Column::default();
    let mut before = 0u64;
    for _ in 0..length {
        let value = stream.get_signed(Field::Value, context)? as u64;
        let value = if sums { before.wrapping_add(value) } else { value };
        column.push(value);
        before = value;
    }
    Ok(column)
}

/// A formula that needs no other column.
pub fn read_fit(stream: &mut In, length: u32, job: u32) -> Result<Fit, Broken> {
    let kind = stream.get(Field::Fit, 0)?;
    read_formula(stream, kind, length, job)
}

fn get_dimension(stream: &mut In) -> Result<Dimension, Broken> {
    let below = stream.get_most(Field::FitNumber, 100, i32::MAX as u64)? as u32;
    let extent = stream.get_most(Field::FitNumber, 101, i32::MAX as u64)? as u32;
    if below == 0 || extent == 0 { Err(stream.broken()) } else { Ok(Dimension { below, extent }) }
}

/// The rest of a formula of that kind.
pub fn read_formula(stream: &mut In, kind: u64, length: u32, job: u32) -> Result<Fit, Broken> {
    let number = |stream: &mut In, context, most: u32| {
        stream.get_most(Field::FitNumber, context, most.into()).map(|number| number as u32)
    };
    let signed = |stream: &mut In, context| Ok(stream.get_signed(Field::FitNumber, context)? as u64);
    Ok(match kind {
        kind::LINEAR => Fit::Linear { start: signed(stream, 4)?, step: signed(stream, 5)? },
        kind::RESIDUE | 5 => {
            Fit::Residue { minus: kind != kind::RESIDUE, start: stream.get(Field::FitNumber, 6)? }
        }
        kind::XOR | 7 => {
            Fit::Partner { partner: Partner::Xor(number(stream, 7, u32::MAX)?), relative: kind == 7 }
        }
        kind::TRANSPOSE | 9 => {
            let rows = number(stream, 8, job)?;
            if rows == 0 {
                return Err(stream.broken());
            }
            Fit::Partner { partner: Partner::Transpose(rows), relative: kind == 9 }
        }
        kind::NEIGHBOUR | 11 => {
            let mut steps = Vec::new();
            for _ in 0..number(stream, 9, 8)? {
                let along = get_dimension(stream)?;
                let code = stream.get(Field::FitNumber, 10)?;
                let by = i32::try_from(unzigzag(code >> 1)).map_err(|_| stream.broken())?;
                steps.push(Step { along, by, periodic: code & 1 != 0 });
            }
            let edge = if steps.iter().any(|step| !step.periodic) { signed(stream, 11)? } else { 0 };
            Fit::Partner { partner: Partner::Neighbour { steps, edge }, relative: kind == 11 }
        }
        kind::PLACE => Fit::Place {
            along: get_dimension(stream)?,
            scale: signed(stream, 12)?,
            start: signed(stream, 13)?,
        },
        kind::ZONES => {
            let count = number(stream, 14, 3)?;
            let dimensions = (0..count).map(|_| get_dimension(stream)).collect::<Result<Vec<_>, _>>()?;
            let table = (0..3usize.pow(count)).map(|_| signed(stream, 15)).collect::<Result<_, Broken>>()?;
            Fit::Zones { dimensions, table }
        }
        kind::RUNS => {
            let runs = stream.get_length(Field::FitNumber, 16)? + 1;
            let mut column = Column::default();
            let mut before = 0u64;
            for _ in 0..runs {
                let left = length - column.len();
                let times = number(stream, 17, left.checked_sub(1).ok_or_else(|| stream.broken())?)? + 1;
                let start = before.wrapping_add(signed(stream, 18)?);
                let step = if times > 1 { signed(stream, 19)? } else { 0 };
                column.append(times, start, step);
                before = start;
            }
            if column.len() != length {
                return Err(stream.broken());
            }
            Fit::Column(column)
        }
        kind::DELTAS => Fit::Column(read_values(stream, length, 0, true)?),
        _ => return Err(stream.broken()),
    })
}
