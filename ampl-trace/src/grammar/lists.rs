//! The counts of a position as bytes.
//!
//! Forms: 0 always once; 1 always so often, the count less 1 follows. In lists the last run has no number of
//! expansions, and everything is less 1: 2 a list: its length without the last run, times 2, and whether it
//! has (count, expansions) or counts of one expansion each; the last count. 3 two grammars, one of the
//! differences of each count to the one before, in zigzag form, and one of the expansions; the last count.
//! So counts that repeat themselves or rise steadily take little space.

use crate::varint::{self, Reader, zigzag};

use smallvec::smallvec;

use super::{Builder, Counts, Grammar};

const ONCE: u64 = 0;
const ALWAYS: u64 = 1;
const LIST: u64 = 2;
const GRAMMARS: u64 = 3;
/// Forms but the first.
pub(super) const FORMS: u64 = 3;

/// Number of runs from which on a list is tried as grammars.
const WORTHWHILE: usize = 8;
/// Largest depth of grammars inside each other.
const DEPTH: u32 = 3;
/// Largest number of runs in all lists of a grammar that are stored as grammars: a few bytes must not become
/// gigabytes.
const MOST: usize = 1 << 18;

/// Writes and reads the counts of a grammar's positions.
#[derive(Clone, Debug)]
pub(super) struct Lists {
    depth: u32,
    /// Number of runs that may still come from grammars.
    budget: usize,
}

impl Lists {
    pub fn new() -> Self {
        Self { depth: DEPTH, budget: MOST }
    }

    /// Appends the counts to `out`, and returns the form to read them in.
    pub fn write(&mut self, counts: &[(u64, u64)], out: &mut Vec<u8>) -> u64 {
        let [closed @ .., (last, _)] = counts else { return ONCE };
        if closed.is_empty() {
            if *last == 1 {
                return ONCE;
            }
            varint::put(out, last - 1);
            return ALWAYS;
        }
        let begin = out.len();
        write_list(closed, out);
        let mut form = LIST;
        if let Some(grammars) = self.grammars(closed, out.len() - begin) {
            out.truncate(begin);
            out.extend_from_slice(&grammars);
            form = GRAMMARS;
        }
        varint::put(out, last - 1);
        form
    }

    /// Runs as grammars, if that takes fewer than so many bytes.
    fn grammars(&mut self, runs: &[(u64, u64)], bytes: usize) -> Option<Vec<u8>> {
        if self.depth == 0 || runs.len() < WORTHWHILE || runs.len() > self.budget {
            return None;
        }
        let (mut times, mut lengths, mut before) = (Builder::new(), Builder::new(), 0);
        for &(count, length) in runs {
            let difference = zigzag(i64::try_from(count).ok()? - before);
            before = count as i64;
            times.push(terminal(difference)?, 1);
            lengths.push(terminal(length - 1)?, 1);
        }
        let mut inner = Self { depth: self.depth - 1, budget: self.budget - runs.len() };
        let mut out = Vec::new();
        times.into_grammar().write_with(&mut inner, &mut out);
        lengths.into_grammar().write_with(&mut inner, &mut out);
        if out.len() >= bytes {
            return None;
        }
        self.budget = inner.budget;
        Some(out)
    }

    /// Counts in this form, the last of which are of 0 expansions.
    pub fn read(&mut self, form: u64, bytes: &mut Reader) -> Option<Counts> {
        let mut counts = match form {
            ONCE => return Some(smallvec![(1, 0)]),
            ALWAYS => return Some(smallvec![(one_more(bytes)?, 0)]),
            LIST => read_list(bytes)?,
            _ => self.read_grammars(bytes)?,
        };
        counts.push((one_more(bytes)?, 0));
        // Equal neighbours would be one run.
        counts.windows(2).all(|pair| pair[0].0 != pair[1].0).then_some(counts)
    }

    fn read_grammars(&mut self, bytes: &mut Reader) -> Option<Counts> {
        let mut inner = Self { depth: self.depth.checked_sub(1)?, budget: self.budget };
        let times = Grammar::read_with(&mut inner, bytes)?;
        let lengths = Grammar::read_with(&mut inner, bytes)?;
        let runs = usize::try_from(times.len()).ok().filter(|_| lengths.len() == times.len())?;
        self.budget = inner.budget.checked_sub(runs)?;
        let mut counts = Counts::with_capacity(runs + 1);
        let mut before = 0u64;
        for (difference, length) in calls(&times).zip(calls(&lengths)) {
            let difference = i64::from(difference >> 1) ^ -i64::from(difference & 1);
            before = before.checked_add_signed(difference)?;
            counts.push((before, u64::from(length) + 1));
        }
        Some(counts)
    }
}

/// The terminals of a grammar, one by one.
fn calls(grammar: &Grammar) -> impl Iterator<Item = u32> {
    grammar.runs().flat_map(|(terminal, count)| (0..count).map(move |_| terminal))
}

fn terminal(value: u64) -> Option<u32> {
    u32::try_from(value).ok().filter(|&terminal| terminal < 1 << 31)
}

fn write_list(runs: &[(u64, u64)], out: &mut Vec<u8>) {
    let sum = runs.iter().fold(0, |sum: u64, &(_, length)| sum.saturating_add(length));
    let singly = sum <= 2 * runs.len() as u64;
    let length = if singly { sum } else { runs.len() as u64 };
    varint::put(out, (length - 1) << 1 | u64::from(!singly));
    for &(times, length) in runs {
        if singly {
            (0..length).for_each(|_| varint::put(out, times - 1));
        } else {
            varint::put(out, times - 1);
            varint::put(out, length - 1);
        }
    }
}

fn read_list(bytes: &mut Reader) -> Option<Counts> {
    let header = bytes.get()?;
    let mut runs = Counts::new();
    for _ in 0..=header >> 1 {
        let (times, length) = (one_more(bytes)?, if header & 1 == 1 { one_more(bytes)? } else { 1 });
        match runs.last_mut() {
            Some((before, sum)) if *before == times && header & 1 == 0 => *sum = sum.checked_add(length)?,
            _ => runs.push((times, length)),
        }
    }
    Some(runs)
}

fn one_more(bytes: &mut Reader) -> Option<u64> {
    bytes.get()?.checked_add(1)
}
