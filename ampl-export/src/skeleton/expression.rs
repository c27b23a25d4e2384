//! Formulas and guards as expressions of C.

use std::ops::Range;

use ampl_analysis::logical::{Formula, Guard};

use super::Helpers;
use super::tables::Tables;

/// Text of one value.
pub type Shown<'a> = &'a dyn Fn(i64) -> String;

/// Writes expressions and notes the tables and functions that they name.
#[derive(Debug, Default)]
pub struct Expressions {
    /// Tables.
    pub tables: Tables,
    /// Functions of the program that are called.
    pub helpers: Helpers,
}

impl Expressions {
    /// The value of `formula`, whose constants are `shown`; tables are named after `kind` and have that C type.
    pub fn value(&mut self, formula: &Formula, kind: &str, c_type: &str, shown: Shown<'_>) -> String {
        match formula {
            Formula::Constant(value) => shown(*value),
            Formula::Neighbour(step) => self.shift(step),
            Formula::Flip(axis, bits) => {
                self.helpers.coordinates = true;
                self.helpers.flip = true;
                format!("flip({axis}, {bits})")
            }
            Formula::Transposed => {
                self.helpers.coordinates = true;
                self.helpers.transposed = true;
                "transposed()".into()
            }
            Formula::Offset(0) => "rank".into(),
            Formula::Offset(by) if *by < 0 => format!("rank - {}", by.unsigned_abs()),
            Formula::Offset(by) => format!("rank + {by}"),
            Formula::Round(by) => format!("(rank + {by}) % RANKS"),
            Formula::Xor(bits) => format!("rank ^ {bits}"),
            Formula::Parent(children) => format!("rank > 0 ? (rank - 1) / {children} : MPI_PROC_NULL"),
            Formula::Child(children, number) => {
                let child = format!("{children} * rank + {}", number + 1);
                format!("{child} < RANKS ? {child} : MPI_PROC_NULL")
            }
            Formula::Choice(guard, yes, no) => {
                let guard = self.guard(guard).unwrap_or_else(|| "1".into());
                format!("{guard} ? {} : {}", shown(*yes), shown(*no))
            }
            Formula::Table(values) => {
                let values: Vec<String> = values.iter().map(|&value| shown(value)).collect();
                format!("{}[rank]", self.tables.name(kind, c_type, &values))
            }
        }
    }

    fn shift(&mut self, step: &[i64]) -> String {
        self.helpers.coordinates = true;
        self.helpers.shift = true;
        let step: Vec<String> = step.iter().map(i64::to_string).collect();
        format!("shift({})", step.join(", "))
    }

    /// The condition of `guard`; `None` where it always holds.
    pub fn guard(&mut self, guard: &Guard) -> Option<String> {
        Some(match guard {
            Guard::Always => return None,
            Guard::Neighbours(all) => {
                let each: Vec<String> = all
                    .iter()
                    .map(|(step, has)| {
                        format!("{} {} MPI_PROC_NULL", self.shift(step), if *has { "!=" } else { "==" })
                    })
                    .collect();
                each.join(" && ")
            }
            Guard::Coordinates(axes) => {
                self.helpers.coordinates = true;
                let each: Vec<String> = axes.iter().map(|(axis, ranges)| places(*axis, ranges)).collect();
                each.join(" && ")
            }
            Guard::Is(rank) => format!("rank == {rank}"),
            Guard::IsNot(rank) => format!("rank != {rank}"),
            Guard::Below(end) => format!("rank < {end}"),
            Guard::From(first) => format!("rank >= {first}"),
            Guard::Between(first, end) => format!("rank >= {first} && rank < {end}"),
            Guard::Modulo(divisor, rest) => format!("rank % {divisor} == {rest}"),
            Guard::Table(all) => {
                let values: Vec<String> = all.iter().map(|&is| u8::from(is).to_string()).collect();
                format!("{}[rank]", self.tables.name("only", "char", &values))
            }
        })
    }
}

/// The condition that a coordinate lies in one of these ranges.
fn places(axis: usize, ranges: &[Range<u32>]) -> String {
    let at = format!("coordinate({axis})");
    let one = |range: &Range<u32>| match (range.start, range.end) {
        (start, end) if start + 1 == end => format!("{at} == {start}"),
        (0, end) => format!("{at} < {end}"),
        (start, u32::MAX) => format!("{at} >= {start}"),
        (start, end) => format!("{at} >= {start} && {at} < {end}"),
    };
    match ranges {
        [range] => one(range),
        // Compilers want brackets where both operators are.
        ranges => {
            let all: Vec<String> = ranges.iter().map(|range| format!("({})", one(range))).collect();
            format!("({})", all.join(" || "))
        }
    }
}
