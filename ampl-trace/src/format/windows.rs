//! Summaries of a rank's windows, number by number: a number that follows from windows before, or from the window's
//! other numbers, is not stored again.
//!
//! Reading and writing share one path through a window: a reader of bits takes the place of the writer. Where values
//! are rounded they are coded by their ranks among the [rounded](crate::rounded) numbers.

use std::slice;

use crate::bits::{Bits, Reader, Writer};
use crate::cells::{Cell, Cells, MOST, Shape};
use crate::column::{Column, LIMIT};
use crate::model::WindowSummary;
use crate::rounded::{self, MOST_DIGITS, Rounded};
use crate::timing::Node;

/// First byte of this encoding.
const CODED: u8 = 1;
/// First byte of this encoding with rounded values; how many significant bits these have follows.
const ROUNDED: u8 = 2;

/// The payload of a rank's windows, whose values are rounded to so many significant bits, 0 if they are not; nothing for
/// no windows.
pub fn encode(windows: &[WindowSummary], digits: u32) -> Vec<u8> {
    if windows.is_empty() {
        return Vec::new();
    }
    let mut bytes = if digits > 0 { vec![ROUNDED, digits as u8] } else { vec![CODED] };
    let mut coder = Coder::new(Writer::default(), digits);
    coder.put_all(windows);
    bytes.extend(coder.bits.into_bytes());
    bytes
}

/// The windows that were [encoded](encode); `None` where `payload` makes no sense.
///
/// No bit is free, so that a byte of a damaged file asks for some 30 kB at most.
pub fn decode(payload: &[u8]) -> Option<Vec<WindowSummary>> {
    decode_with(payload).map(|(windows, _)| windows)
}

/// As [`decode`], and to how many significant bits values are rounded, 0 if they are not.
pub fn decode_with(payload: &[u8]) -> Option<(Vec<WindowSummary>, u32)> {
    let (digits, coded) = match *payload {
        [CODED, ref coded @ ..] => (0, coded),
        [ROUNDED, digits, ref coded @ ..] => (check_digits(digits)?, coded),
        [] => return Some((Vec::new(), 0)),
        _ => return None,
    };
    Some((Coder::new(Reader::new(coded), digits).get_all()?, digits))
}

/// A number of significant bits; `None` where there is no such rounding.
pub fn check_digits(digits: u8) -> Option<u32> {
    Some(u32::from(digits)).filter(|digits| (1..=MOST_DIGITS).contains(digits))
}

/// A column of floating-point numbers: whole ones as integers, what integers divided give as these, others as bits.
#[derive(Clone, Debug)]
struct Floats {
    is_whole: Node,
    is_fraction: Node,
    whole: Column,
    below: Column,
    other: Column,
    rounded: Rounded,
    before: f64,
    divisor: u64,
}

impl Floats {
    const NEW: Self = Self {
        is_whole: Node::NEW,
        is_fraction: Node::NEW,
        whole: Column::NEW,
        below: Column::NEW,
        other: Column::NEW,
        rounded: Rounded::NEW,
        before: 0.0,
        divisor: 0,
    };

    /// Codes a number; these whole numbers, and the number before, are guesses. Whole numbers have so many significant
    /// bits, or any number of them where that is 0.
    fn code<B: Bits>(&mut self, bits: &mut B, value: f64, [first, second]: [f64; 2], digits: u32) -> f64 {
        let whole = whole(value);
        self.before = if self.is_whole.code(bits, LIMIT, whole.is_some()) {
            let guesses = [self.before, 0.0, first, second];
            let whole = whole.unwrap_or(0) as u64;
            if digits > 0 {
                self.rounded.code(bits, digits, whole, &guesses.map(|guess| guess as u64)) as f64
            } else {
                self.whole.code(bits, whole, &guesses.map(|guess| guess as i64 as u64)) as i64 as f64
            }
        } else {
            let parts = fraction(value);
            if self.is_fraction.code(bits, LIMIT, parts.is_some()) {
                let (above, below) = parts.unwrap_or((0, 0));
                let above = self.whole.code(bits, above, &[0]);
                self.divisor = self.below.code(bits, below, &[self.divisor, 0]);
                above as f64 / self.divisor as f64
            } else {
                f64::from_bits(self.other.code(bits, value.to_bits(), &[self.before.to_bits()]))
            }
        };
        self.before
    }
}

/// `value` as an integer from which it comes back to the bit.
fn whole(value: f64) -> Option<i64> {
    let whole = value as i64;
    let is_same = (whole as f64).to_bits() == value.to_bits();
    (is_same && whole.unsigned_abs() <= 1 << f64::MANTISSA_DIGITS).then_some(whole)
}

/// Numerator and denominator of `value`, exact to the bit: the first such convergent of its continued fraction.
fn fraction(value: f64) -> Option<(u64, u64)> {
    const MOST: f64 = 65536.0;
    let mut rest = value;
    let (mut before, mut now) = ((0.0, 1.0), (1.0, 0.0));
    while rest.abs() < MOST && now.1 < MOST {
        let part = rest.floor();
        (before, now) = (now, (part * now.0 + before.0, part * now.1 + before.1));
        if now.0 > 0.0 && (now.0 / now.1).to_bits() == value.to_bits() {
            return Some((now.0 as u64, now.1 as u64));
        }
        rest = 1.0 / (rest - part);
    }
    None
}

/// Columns of a metric.
#[derive(Clone, Debug)]
struct Metric {
    shape: Column,
    /// A single observation.
    one: Floats,
    /// Number, sum, sum of squares, least and greatest of several observations; empty before there are any.
    several: Vec<Floats>,
}

impl Metric {
    const NEW: Self = Self { shape: Column::NEW, one: Floats::NEW, several: Vec::new() };

    /// Codes a cell; these are guesses of a single observation, which has so many significant bits if that is not 0.
    fn code<B: Bits>(&mut self, bits: &mut B, cell: Cell, guesses: [f64; 2], digits: u32) -> Option<Cell> {
        let (mut values, mut count) = ([0.0; 5], 0);
        let shape = cell.put(|value| {
            values[count] = value;
            count += 1;
        });
        let shape = Shape::of(self.shape.code(bits, shape as u64, &[Shape::One as u64]))?;
        let (columns, guesses, digits) = if shape == Shape::Any {
            self.several.resize(values.len(), Floats::NEW);
            (&mut self.several[..], [0.0; 2], 0)
        } else {
            (slice::from_mut(&mut self.one), guesses, digits)
        };
        let mut columns = columns.iter_mut().zip(values);
        Cell::get(shape, || columns.next().map(|(column, value)| column.code(bits, value, guesses, digits)))
    }
}

/// Bit of [`Coder::rounds`] of the agent's own time; lower ones are of the metrics before it.
const OWN: usize = u64::BITS as usize - 1;
/// Number of metrics that measure time; what a later one observes is guessed from the one before it.
const TIMES: usize = 3;

/// Codes windows of one rank after the other: a writer passes them in, and both sides return them.
#[derive(Debug)]
pub struct Coder<B> {
    /// Where bits go or come from.
    pub bits: B,
    /// Significant bits of rounded values; 0 where none are.
    digits: u32,
    /// Values that are rounded: a bit each.
    rounds: u64,
    rounds_column: Column,
    own_rounded: Rounded,
    /// First window of the rank before.
    first: Option<WindowSummary>,
    before: WindowSummary,
    columns: [Column; 8],
    /// Models of each flag, by its value in the window before, and by the flag before it.
    flags: [[Node; 4]; 7],
    flags_before: [bool; 7],
    floats: Box<[Floats; 2]>,
    metrics: Vec<Metric>,
}

/// Fields of a window beside its cells, in the order of columns.
#[derive(Clone, Copy, Debug)]
enum Field {
    Number,
    Start,
    Length,
    Own,
    Repeat,
    Stratum,
    Update,
    Cells,
}

impl Coder<Reader<&[u8]>> {
    /// The windows of the next rank; `None` where they make no sense.
    pub fn get_all(&mut self) -> Option<Vec<WindowSummary>> {
        self.begin(0);
        let mut windows = Vec::new();
        let nothing = WindowSummary::default();
        while self.goes_on(false) {
            windows.push(self.window(&nothing)?.clone());
            if !self.bits.is_sound() {
                return None;
            }
        }
        self.bits.is_sound().then(|| {
            self.end(windows.first());
            windows
        })
    }
}

impl Coder<Writer> {
    /// Appends the windows of the next rank.
    pub fn put_all(&mut self, windows: &[WindowSummary]) {
        self.begin(rounded_values(windows, self.digits));
        for window in windows {
            self.goes_on(true);
            self.window(window);
        }
        self.goes_on(false);
        self.end(windows.first());
    }
}

/// Values of `windows` that all have so many significant bits at most.
fn rounded_values(windows: &[WindowSummary], digits: u32) -> u64 {
    if digits == 0 {
        return 0;
    }
    let fits =
        |value: f64| whole(value).is_some_and(|value| value >= 0 && rounded::fits(value as u64, digits));
    let mut values = u64::MAX;
    for window in windows {
        let own = (!rounded::fits(window.own_ns, rounded::own_digits(digits))).then_some(OWN);
        let several = |cell: &Cell| cell.put(|_| {}) != Shape::One;
        let others =
            window.cells.iter().take(OWN).enumerate().filter(|(_, cell)| !several(cell) && !fits(cell.sum));
        own.into_iter().chain(others.map(|(metric, _)| metric)).for_each(|value| values &= !(1 << value));
    }
    values
}

impl<B: Bits> Coder<B> {
    /// A coder of windows whose values are rounded to so many significant bits, 0 if they are not.
    pub fn new(bits: B, digits: u32) -> Self {
        Self {
            bits,
            digits,
            rounds: 0,
            rounds_column: Column::NEW,
            own_rounded: Rounded::NEW,
            first: None,
            before: WindowSummary::default(),
            columns: [const { Column::NEW }; 8],
            flags: [[Node::NEW; 4]; 7],
            flags_before: [false; 7],
            floats: Box::new([Floats::NEW; 2]),
            metrics: Vec::new(),
        }
    }

    /// Begins a rank, of whose values these are rounded.
    fn begin(&mut self, rounds: u64) {
        if self.digits > 0 {
            self.rounds = self.rounds_column.code(&mut self.bits, rounds, &[self.rounds]);
        }
        // The first window is like that of the rank before.
        self.before = self.first.take().map_or_else(WindowSummary::default, |first| WindowSummary {
            window: first.window.wrapping_sub(1),
            start_ns: first.start_ns.wrapping_sub(first.end_ns.wrapping_sub(first.start_ns)),
            end_ns: first.start_ns,
            repeat: 1,
            ..first
        });
    }

    /// Ends a rank, of which this is the first window.
    fn end(&mut self, first: Option<&WindowSummary>) {
        self.first = first.cloned();
    }

    fn number(&mut self, field: Field, number: u64, guesses: &[u64]) -> u64 {
        self.columns[field as usize].code(&mut self.bits, number, guesses)
    }

    /// Codes the flag that another window follows. It takes a whole bit, so that few bytes do not hold very many
    /// windows.
    fn goes_on(&mut self, does: bool) -> bool {
        self.bits.plain(1, does.into()) != 0
    }

    /// Codes a window, and returns it; `None` where its numbers are out of range.
    fn window(&mut self, is: &WindowSummary) -> Option<&WindowSummary> {
        let before = std::mem::take(&mut self.before);
        let next = before.window.wrapping_add(before.repeat.max(1));
        let number = self.number(Field::Number, is.window, &[next, before.window.wrapping_add(1)]);
        let start_ns = self.number(Field::Start, is.start_ns as u64, &[before.end_ns as u64]) as i64;
        let lengths = [before.end_ns.wrapping_sub(before.start_ns) as u64, 0];
        let length = self.number(Field::Length, is.end_ns.wrapping_sub(is.start_ns) as u64, &lengths);
        let own_ns = if self.rounds >> OWN != 0 {
            let digits = rounded::own_digits(self.digits);
            self.own_rounded.code(&mut self.bits, digits, is.own_ns, &[before.own_ns, 0])
        } else {
            self.number(Field::Own, is.own_ns, &[before.own_ns, 0])
        };
        let (inclusion, stratum) = (is.inclusion.is_some(), is.stratum.is_some());
        let flags = [is.kept, is.drawn, is.partial, is.partner, is.repeat > 1, inclusion, stratum];
        let [kept, drawn, partial, partner, run, includes, has_stratum] = self.flags(flags);
        let repeat = if run { self.number(Field::Repeat, is.repeat, &[before.repeat]) } else { 1 };
        let stratum = if has_stratum {
            let guess = u64::from(before.stratum.unwrap_or(0));
            let stratum = self.number(Field::Stratum, is.stratum.unwrap_or(0).into(), &[guess]);
            Some(u16::try_from(stratum).ok()?)
        } else {
            None
        };
        let update = self.number(Field::Update, is.update, &[before.update, before.update.wrapping_add(1)]);
        let [probability, inclusion] = &mut *self.floats;
        let probability = probability.code(&mut self.bits, is.probability, [0.0; 2], 0);
        let inclusion = if includes {
            Some(inclusion.code(&mut self.bits, is.inclusion.unwrap_or(0.0), [0.0; 2], 0))
        } else {
            None
        };
        let each = length as f64 / repeat.max(1) as f64;
        let cells = self.cells(&is.cells, before.cells.len() as u64, [each, own_ns as f64])?;
        self.before = WindowSummary {
            window: number,
            start_ns,
            end_ns: start_ns.wrapping_add(length as i64),
            own_ns,
            kept,
            drawn,
            partner,
            partial,
            probability,
            inclusion,
            stratum,
            update,
            cells,
            repeat,
        };
        Some(&self.before)
    }

    fn flags(&mut self, flags: [bool; 7]) -> [bool; 7] {
        let mut last = false;
        for ((nodes, before), flag) in self.flags.iter_mut().zip(&mut self.flags_before).zip(flags) {
            last = nodes[usize::from(*before) << 1 | usize::from(last)].code(&mut self.bits, LIMIT, flag);
            *before = last;
        }
        self.flags_before
    }

    /// Codes the cells of a window of that length, and of so much time that the agent took.
    fn cells(&mut self, cells: &Cells, before: u64, [length, own]: [f64; 2]) -> Option<Cells> {
        let count = self.number(Field::Cells, cells.len() as u64, &[before]);
        let count = usize::try_from(count).ok().filter(|&count| count <= MOST)?;
        self.metrics.resize(self.metrics.len().max(count), Metric::NEW);
        let Self { bits, metrics, digits, rounds, .. } = self;
        let (digits, rounds) = (*digits, *rounds);
        let mut cells = cells.iter();
        // A window's time in MPI, outside or of the agent follows from the other two.
        let (mut first, mut second) = (0.0, 0.0);
        let mut was = 0.0;
        let code = |(index, metric): (usize, &mut Metric)| {
            let before = metric.one.before;
            let own_digits = if index < OWN && rounds >> index & 1 != 0 { digits } else { 0 };
            let guesses = match index {
                // Bytes and calls grow together.
                TIMES.. if digits > 0 => {
                    [second, if was > 0.0 { (before * second / was).round() } else { 0.0 }]
                }
                _ => [length, first - second - own],
            };
            let cell = metric.code(bits, cells.next().unwrap_or_default(), guesses, own_digits)?;
            (first, second) = (second, cell.sum);
            was = before;
            Some(cell)
        };
        metrics[..count].iter_mut().enumerate().map(code).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Windows as programs have them: they follow each other, and are as long as their time in MPI and outside.
    fn windows(noise: &[(u64, u64)]) -> Vec<WindowSummary> {
        let mut windows: Vec<WindowSummary> = Vec::new();
        for (number, &(mpi, own)) in (0..).zip(noise) {
            let start_ns = windows.last().map_or(-5, |before| before.end_ns);
            let length = 1_000_000 + (mpi + own) % 7;
            let observed = [length, mpi, length.saturating_sub(mpi + own), 4096, 12]
                .map(|value| Cell::one(value as f64));
            windows.push(WindowSummary {
                window: number,
                start_ns,
                end_ns: start_ns + length as i64,
                own_ns: own,
                kept: mpi % 16 == 0,
                drawn: mpi % 16 == 0,
                probability: [3.0 / 64.0, 3.0 / 61.0][(mpi % 2) as usize],
                stratum: Some(1),
                update: number / 4,
                cells: observed.into_iter().collect(),
                repeat: 1,
                ..WindowSummary::default()
            });
        }
        windows
    }

    proptest! {
        #[test]
        fn windows_come_back(noise in prop::collection::vec((0..1u64 << 20, 0..1u64 << 10), 0..99), several: [f64; 5]) {
            let mut windows = windows(&noise);
            let [n, sum, sum_sq, min, max] = several;
            if let Some(window) = windows.last_mut() {
                window.cells = window.cells.iter().chain([Cell { n, sum, sum_sq, min, max }]).collect();
            }
            prop_assert_eq!(format!("{:?}", decode(&encode(&windows, 0))), format!("{:?}", Some(windows)));
        }

        #[test]
        fn any_bytes_end(mut bytes: Vec<u8>) {
            bytes.insert(0, CODED);
            if let Some(windows) = decode(&bytes) {
                prop_assert!(windows.len() <= 8 * (bytes.len() + 2 * size_of::<u32>()), "no more than there are bits");
            }
        }

        #[test]
        fn quotients_are_found(above in 0..1u64 << 15, below in 1..1u64 << 15) {
            let value = above as f64 / below as f64;
            let (above, below) = fraction(value).expect("it is one");
            prop_assert_eq!((above as f64 / below as f64).to_bits(), value.to_bits());
        }
    }

    /// Unpredictable bits of a window: 19 and 10, 3.3 of its length, and 2 of how it was drawn.
    #[test]
    fn what_follows_from_the_rest_takes_next_to_nothing() {
        let mut state = 1u64;
        let mut noise = |bits: u32| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> (64 - bits)
        };
        let noise: Vec<_> = (0..1000).map(|_| (noise(19), noise(10))).collect();
        let bytes = encode(&windows(&noise), 0).len();
        assert!((4250..4800).contains(&bytes), "{bytes}");
    }

    #[test]
    fn what_is_cut_off_is_not_made_up() {
        let coded = encode(&windows(&[(1 << 19, 300); 500]), 0);
        assert!(decode(&coded[..coded.len() - 16]).is_none_or(|windows| windows.len() < 500));
    }

    /// Worst case: the largest number of metrics, and nothing new in any.
    #[test]
    fn few_bytes_do_not_ask_for_much() {
        let cells: Cells = vec![Cell::one(1.0); MOST].into_iter().collect();
        let window = |number| WindowSummary {
            window: number,
            repeat: 1,
            cells: cells.clone(),
            ..WindowSummary::default()
        };
        let coded = encode(&(0..5000).map(window).collect::<Vec<_>>(), 0);
        let windows = decode(&coded).unwrap();
        let words: usize = windows.iter().map(|window| window.cells.len()).sum();
        assert!(words < 4096 * coded.len(), "{words} of {}", coded.len());
    }
}
