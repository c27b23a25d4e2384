//! Frequencies of a rank's gaps, durations and numbers of polls: by the signature of the call, and where these tell
//! much, by the size of the gap and by *levels*: how far the latest numbers were from the means of their signatures.
//! A processor that runs slower, or has others beside it, is at another level for some time.

use rustc_hash::FxHashMap;

use super::Entry;
use super::ans::{Decoder, Encoder};
use super::tables::{Counts, Numbers, Table, cost};
use crate::structure::Signature;
use crate::varint::{Reader, put};

/// Number of kinds: gaps, durations, numbers of polls, classes.
const KINDS: usize = 4;
/// The last kind, where there are classes.
const CLASSES: usize = 3;
/// Most signatures with frequencies of their own.
const MOST_SIGNATURES: usize = 96;
/// Most functions with frequencies of their own.
const MOST_FUNCTIONS: usize = 512;
/// Calls of such a signature, at least.
const OWN: u64 = 400;
/// Sizes of numbers.
const SIZES: usize = 64;
/// Ranges of sizes that tables differ by, at most.
const RANGES: usize = 10;

/// Parts of an octave that logarithms count.
const PARTS: i32 = 16;
/// Farthest distance from a mean that a level takes up.
const FAR: i32 = 2 * PARTS;
/// Units of a level in a part of an octave.
const UNIT: i32 = 64;
/// A level follows the distances of its kind at this rate: gaps an 8th, durations a 16th.
const FOLLOWS: [u32; 2] = [3, 4];

/// Size of a number: its half-octave.
#[inline]
fn size(number: u64) -> u8 {
    (log(number) / (PARTS / 2)).min(SIZES as i32 - 1) as u8
}

/// Logarithm of a number, one more than it is, in parts of an octave; linear between octaves.
#[inline]
fn log(number: u64) -> i32 {
    let number = number.saturating_add(1);
    let octave = number.ilog2();
    let part = (number << (63 - octave)) >> 59 & (PARTS as u64 - 1);
    octave as i32 * PARTS + part as i32
}

/// Numbers of signatures and functions as contexts; 0 is that of all others.
#[derive(Debug, Default)]
pub struct Contexts {
    functions: Vec<u16>,
    /// Terminals, whose contexts follow those of functions.
    terminals: Vec<u32>,
}

impl Contexts {
    /// Contexts of `entries`, whose functions `function` returns.
    pub fn of<'a>(entries: impl Iterator<Item = &'a Entry>, function: impl Fn(u32) -> u16) -> Self {
        let mut often: FxHashMap<u32, u64> = FxHashMap::default();
        entries.for_each(|entry| *often.entry(entry.terminal).or_default() += 1);
        let mut functions: Vec<u16> = often.keys().map(|&terminal| function(terminal)).collect();
        functions.sort_unstable();
        functions.dedup();
        functions.truncate(MOST_FUNCTIONS);
        let own = often.into_iter().filter(|&(_, calls)| calls >= OWN);
        let mut own: Vec<(u64, u32)> = own.map(|(terminal, calls)| (calls, terminal)).collect();
        own.sort_unstable_by(|a, b| b.cmp(a));
        own.truncate(MOST_SIGNATURES);
        let mut terminals: Vec<u32> = own.into_iter().map(|(_, terminal)| terminal).collect();
        terminals.sort_unstable();
        Self { functions, terminals }
    }

    fn len(&self) -> usize {
        1 + self.functions.len() + self.terminals.len()
    }

    /// The context of the terminal of that number and function.
    pub fn context(&self, terminal: u32, function: u16) -> u16 {
        let own = self.terminals.binary_search(&terminal).map(|at| 1 + self.functions.len() + at);
        let context = own.or_else(|_| self.functions.binary_search(&function).map(|at| 1 + at));
        context.unwrap_or(0) as u16
    }

    /// The contexts of a thread's signatures.
    pub fn by_terminal(&self, signatures: &[Signature]) -> Vec<u16> {
        (0..).zip(signatures).map(|(terminal, own)| self.context(terminal, own.function)).collect()
    }

    fn write(&self, out: &mut Vec<u8>) {
        let functions = self.functions.iter().map(|&function| function.into()).collect();
        for list in [functions, self.terminals.clone()] {
            put(out, list.len() as u64);
            let mut before = 0;
            for number in list {
                put(out, (number - before).into());
                before = number;
            }
        }
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let mut list = |most: usize| {
            let length = usize::try_from(reader.get()?).ok().filter(|&length| length <= most)?;
            let (mut list, mut number) = (Vec::new(), 0u32);
            for _ in 0..length {
                number = number.checked_add(u32::try_from(reader.get()?).ok()?)?;
                list.push(number);
            }
            Some(list)
        };
        let (functions, terminals) = (list(MOST_FUNCTIONS)?, list(MOST_SIGNATURES)?);
        let functions = functions.into_iter().map(u16::try_from).collect::<Result<_, _>>().ok()?;
        Some(Self { functions, terminals })
    }
}

/// Ranges of sizes: the first size of each but the first range.
#[derive(Clone, Debug)]
struct Ranges {
    edges: Vec<u8>,
    of: [u8; SIZES],
}

impl Ranges {
    fn new(edges: Vec<u8>) -> Self {
        let of =
            std::array::from_fn(|size| edges.iter().filter(|&&edge| usize::from(edge) <= size).count() as u8);
        Self { edges, of }
    }

    /// Ranges that about as many numbers fall into, of those with these sizes.
    fn even(sizes: &[u64; SIZES]) -> Self {
        let all: u64 = sizes.iter().sum();
        let (mut edges, mut below, mut next) = (Vec::new(), 0, 1);
        for (size, &count) in sizes.iter().enumerate().skip(1) {
            below += sizes[size - 1];
            if count > 0 && below > 0 && below * RANGES as u64 >= next * all && edges.len() < RANGES - 1 {
                edges.push(size as u8);
                next = below * RANGES as u64 / all + 1;
            }
        }
        Self::new(edges)
    }

    fn len(&self) -> usize {
        self.edges.len() + 1
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let length = usize::try_from(reader.get()?).ok().filter(|&length| length < RANGES)?;
        let mut edges = Vec::new();
        for _ in 0..length {
            edges.push(u8::try_from(reader.get()?).ok()?);
        }
        Some(Self::new(edges))
    }
}

/// Tables of a context, by the ranges of two sizes.
#[derive(Debug)]
struct Split {
    ranges: [Ranges; 2],
    tables: Vec<Table>,
}

impl Split {
    /// The table after these sizes.
    #[inline]
    fn table(&self, sizes: [u8; 2]) -> &Table {
        let [one, two] = &self.ranges;
        let [at_one, at_two] = sizes.map(|size| usize::from(size) % SIZES);
        &self.tables[usize::from(one.of[at_one]) * two.len() + usize::from(two.of[at_two])]
    }

    /// The cheapest tables of numbers that come as often as `cells` have it, by ranges of both sizes.
    fn cheapest(ranges: &[Ranges; 2], cells: &[Counts], is_open: bool) -> Self {
        let none = || Ranges::new(Vec::new());
        let [one, two] = ranges;
        let ways = [[false, false], [true, false], [false, true], [true, true]];
        let ways = ways.map(|[by_one, by_two]| {
            let own = [(by_one, one), (by_two, two)];
            let own = own.map(|(by, ranges)| if by { ranges.clone() } else { none() });
            let mut sums = vec![Counts::default(); own[0].len() * own[1].len()];
            for (at, cell) in cells.iter().enumerate() {
                let (row, column) = (at / two.len(), at % two.len());
                let place = if by_one { row * own[1].len() } else { 0 } + if by_two { column } else { 0 };
                for (&symbol, &count) in cell {
                    *sums[place].entry(symbol).or_default() += count;
                }
            }
            (sums.iter().map(cost).sum::<f64>(), own, sums)
        });
        let (_, ranges, sums) = ways
            .into_iter()
            .reduce(|best, other| if other.0 < best.0 { other } else { best })
            .expect("there are four");
        Self { ranges, tables: sums.iter().map(|counts| Table::of(counts, is_open)).collect() }
    }

    fn write(&self, out: &mut Vec<u8>) {
        for ranges in &self.ranges {
            put(out, ranges.edges.len() as u64);
            ranges.edges.iter().for_each(|&edge| put(out, edge.into()));
        }
        self.tables.iter().for_each(|table| table.write(out));
    }

    fn read(numbers: &Numbers, reader: &mut Reader<'_>) -> Option<Self> {
        let ranges = [Ranges::read(reader)?, Ranges::read(reader)?];
        let tables = (0..ranges[0].len() * ranges[1].len()).map(|_| Table::read(numbers, reader));
        Some(Self { tables: tables.collect::<Option<_>>()?, ranges })
    }
}

/// Numbers of one kind.
#[derive(Debug, Default)]
struct Kind {
    numbers: Numbers,
    /// Mean logarithms by context, of gaps and durations.
    means: Vec<i32>,
    /// Tables by context.
    splits: Vec<Split>,
}

/// Facts of a block's calls so far that the next one depends on.
#[derive(Clone, Debug, Default)]
pub struct Levels {
    /// Levels of gaps and of durations.
    levels: [i32; 2],
    /// Context of the latest call, that of the latest call in another one, and calls in a row in the same.
    last: u16,
    other: u16,
    row: u8,
}

impl Levels {
    /// The level of a kind, as a size.
    #[inline]
    fn size(&self, kind: usize) -> u8 {
        let middle = SIZES as i32 / 2;
        ((self.levels[kind] >> 4) + middle).clamp(0, SIZES as i32 - 1) as u8
    }

    /// Follows a number of a signature whose logarithms have that mean.
    #[inline]
    fn follow(&mut self, kind: usize, number: u64, mean: i32) {
        let distance = (log(number) - mean).clamp(-FAR, FAR) * UNIT;
        self.levels[kind] += (distance - self.levels[kind]) >> FOLLOWS[kind];
    }

    /// Sizes that the class of the next call depends on, besides the context of the latest.
    #[inline]
    fn before(&self) -> [u8; 2] {
        [self.row, self.other.min(SIZES as u16 - 1) as u8]
    }

    /// Follows a call in that context.
    #[inline]
    fn pass(&mut self, context: u16) {
        if context == self.last {
            self.row = (self.row + 1).min(SIZES as u8 - 1);
        } else {
            (self.other, self.last, self.row) = (self.last, context, 1);
        }
    }
}

/// Frequencies of a rank's calls.
#[derive(Debug, Default)]
pub struct Models {
    /// Contexts of signatures.
    pub contexts: Contexts,
    /// True where the numbers of signatures, which are those of classes, are coded.
    pub has_classes: bool,
    kinds: [Kind; KINDS],
}

impl Models {
    /// Frequencies of `blocks`, which have these contexts; `is_open` where others may come than these.
    pub fn of<'a>(
        contexts: Contexts,
        blocks: impl Iterator<Item = &'a [Entry]> + Clone,
        is_open: bool,
        has_classes: bool,
    ) -> Self {
        let mut models = Self { contexts, has_classes, kinds: Default::default() };
        let length = models.contexts.len();
        for kind in 0..2 {
            let mut sums = vec![(0i64, 0i64); length];
            for entry in blocks.clone().flatten() {
                let (sum, calls) = &mut sums[usize::from(entry.context)];
                *sum += i64::from(log([entry.gap, entry.duration_ns][kind]));
                *calls += 1;
            }
            let means = sums.into_iter().map(|(sum, calls)| (sum / calls.max(1)) as i32);
            models.kinds[kind].means = means.collect();
        }
        let mut sizes = vec![[[[0u64; SIZES]; 2]; KINDS]; length];
        models.walk(blocks.clone(), |kind, context, _, [one, two]| {
            let [ones, twos] = &mut sizes[context][kind];
            ones[usize::from(one)] += 1;
            twos[usize::from(two)] += 1;
        });
        let ranges: Vec<_> =
            sizes.iter().map(|kinds| kinds.map(|own| own.map(|own| Ranges::even(&own)))).collect();
        for (kind, own) in models.kinds.iter_mut().enumerate() {
            let numbers =
                |entry: &Entry| [entry.gap, entry.duration_ns, entry.count, entry.terminal.into()][kind];
            let coded = blocks.clone().flatten().filter(|entry| match kind {
                2 => entry.folds,
                CLASSES => has_classes,
                _ => true,
            });
            own.numbers = Numbers::of(coded.map(numbers));
        }
        let cells = |ranges: &[[Ranges; 2]; KINDS]| {
            ranges.each_ref().map(|[one, two]| vec![Counts::default(); one.len() * two.len()])
        };
        let mut counts: Vec<[Vec<Counts>; KINDS]> = ranges.iter().map(cells).collect();
        models.walk(blocks, |kind, context, number, sizes| {
            let [one, two] = &ranges[context][kind];
            let [at_one, at_two] = sizes.map(usize::from);
            let cell = usize::from(one.of[at_one]) * two.len() + usize::from(two.of[at_two]);
            *counts[context][kind][cell].entry(models.kinds[kind].numbers.symbol(number)).or_default() += 1;
        });
        for (ranges, counts) in ranges.iter().zip(counts) {
            for ((own, ranges), cells) in models.kinds.iter_mut().zip(ranges).zip(counts) {
                own.splits.push(Split::cheapest(ranges, &cells, is_open));
            }
        }
        models
    }

    /// Passes each number that is coded to `each`: its kind, its context, itself, the sizes before it.
    fn walk<'a>(
        &self,
        blocks: impl Iterator<Item = &'a [Entry]>,
        mut each: impl FnMut(usize, usize, u64, [u8; 2]),
    ) {
        for entries in blocks {
            let mut levels = Levels::default();
            for entry in entries {
                let context = usize::from(entry.context);
                if self.has_classes {
                    each(CLASSES, usize::from(levels.last), entry.terminal.into(), levels.before());
                    levels.pass(entry.context);
                }
                each(0, context, entry.gap, [levels.size(1), levels.size(0)]);
                each(1, context, entry.duration_ns, [levels.size(1), size(entry.gap)]);
                if entry.folds {
                    each(2, context, entry.count, [0, 0]);
                }
                levels.follow(0, entry.gap, self.kinds[0].means[context]);
                levels.follow(1, entry.duration_ns, self.kinds[1].means[context]);
            }
        }
    }

    /// Appends the bytes of the calls of a block to `out`.
    pub fn encode(&self, encoder: &mut Encoder, entries: &[Entry], out: &mut Vec<u8>) {
        let mut numbers = Vec::with_capacity(2 * entries.len());
        self.walk(std::iter::once(entries), |kind, context, number, sizes| {
            numbers.push((&self.kinds[kind], self.kinds[kind].splits[context].table(sizes), number));
        });
        for (kind, table, number) in numbers.into_iter().rev() {
            table.put(&kind.numbers, encoder, number);
        }
        encoder.finish(out);
    }

    /// Class of the next call, where there are classes.
    #[inline]
    pub fn take_class(&self, decoder: &mut Decoder<'_>, levels: &Levels) -> Option<u32> {
        let classes = &self.kinds[CLASSES];
        let table = classes.splits.get(usize::from(levels.last))?.table(levels.before());
        u32::try_from(table.take(&classes.numbers, decoder)).ok()
    }

    /// Gap, duration and count of the next call, which has that context, and which folds or not.
    #[inline]
    pub fn take(
        &self,
        decoder: &mut Decoder<'_>,
        levels: &mut Levels,
        context: u16,
        folds: bool,
    ) -> Option<(u64, u64, u64)> {
        let [gaps, durations, counts, _] = &self.kinds;
        let at = usize::from(context);
        if self.has_classes {
            levels.pass(context);
        }
        let sizes = [levels.size(1), levels.size(0)];
        let gap = gaps.splits.get(at)?.table(sizes).take(&gaps.numbers, decoder);
        let table = durations.splits.get(at)?.table([sizes[0], size(gap)]);
        let duration_ns = table.take(&durations.numbers, decoder);
        levels.follow(0, gap, *gaps.means.get(at)?);
        levels.follow(1, duration_ns, *durations.means.get(at)?);
        let count = match folds {
            true => counts.splits.get(at)?.table([0, 0]).take(&counts.numbers, decoder),
            false => 1,
        };
        Some((gap, duration_ns, count))
    }

    /// Appends the frequencies to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        self.contexts.write(out);
        for kind in &self.kinds[..self.kinds_coded()] {
            kind.numbers.write(out);
            kind.means.iter().for_each(|&mean| put(out, mean as u64));
            kind.splits.iter().for_each(|split| split.write(out));
        }
    }

    /// The frequencies that [`write`](Self::write) appended; `None` where they are none.
    pub fn read(reader: &mut Reader<'_>, has_classes: bool) -> Option<Self> {
        let contexts = Contexts::read(reader)?;
        let mut models = Self { contexts, has_classes, kinds: Default::default() };
        let (contexts, coded) = (&models.contexts, models.kinds_coded());
        for (at, kind) in models.kinds[..coded].iter_mut().enumerate() {
            kind.numbers = Numbers::read(reader)?;
            for _ in 0..if at < 2 { contexts.len() } else { 0 } {
                kind.means.push(i32::try_from(reader.get()?).ok().filter(|&mean| mean <= 64 * PARTS)?);
            }
            for _ in 0..contexts.len() {
                kind.splits.push(Split::read(&kind.numbers, reader)?);
            }
        }
        Some(models)
    }

    /// Number of kinds that numbers are coded of.
    fn kinds_coded(&self) -> usize {
        if self.has_classes { KINDS } else { CLASSES }
    }
}
