//! Windows of a rank, those in a row that are alike in one entry.

use std::borrow::Cow;
use std::iter::FlatMap;
use std::ops::Range;
use std::slice;
use std::sync::Arc;

use crate::cells::Cells;

/// Number from which strata that last are stored; strata of windows are below.
pub const LASTING_STRATA: u16 = 256;

/// One rank's window, or several in a row that are alike.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WindowSummary {
    /// Its number.
    pub window: u64,
    /// Start, nanoseconds since T0.
    pub start_ns: i64,
    /// End, nanoseconds since T0.
    pub end_ns: i64,
    /// Time the agent itself took in it, nanoseconds.
    pub own_ns: u64,
    /// True where its calls are stored.
    pub kept: bool,
    /// True where it was drawn: it then stands for 1/probability windows.
    pub drawn: bool,
    /// True where it was not drawn, but kept because a rank that this one exchanges messages with was.
    pub partner: bool,
    /// True where the end of the run closed it.
    pub partial: bool,
    /// Probability with which it was drawn, in [0, 1]: its design weight is 1 over it.
    pub probability: f64,
    /// Probability that the rank or a partner of it was drawn, where that is another: see
    /// [`WindowSummary::inclusion`].
    pub inclusion: Option<f64>,
    /// Stratum that it was drawn in: from 1 where it was decided after its end, or 0 where it was kept in full;
    /// [`LASTING_STRATA`] and the stratum where its group was divided beforehand.
    pub stratum: Option<u16>,
    /// Update whose directive decided.
    pub update: u64,
    /// One cell per metric of [`RunInfo::metrics`](crate::RunInfo::metrics); none where only drawn windows are
    /// summarised.
    pub cells: Cells,
    /// Number of windows in a row, this one the first, that were alike; 0 is as good as 1.
    pub repeat: u64,
}

impl WindowSummary {
    /// True where its calls are stored for the sample: its rank was drawn, or a message partner of its rank.
    pub fn is_sampled(&self) -> bool {
        self.drawn || self.partner
    }

    /// Probability with which its calls are stored because of a draw, in [0, 1]. Their design weight in a total over
    /// everything stored is 1 over it.
    pub fn inclusion(&self) -> f64 {
        self.inclusion.unwrap_or(self.probability)
    }

    /// Number of windows of this entry, at least 1.
    pub fn count(&self) -> u64 {
        self.repeat.max(1)
    }

    /// Numbers of the windows of this entry.
    pub fn numbers(&self) -> Range<u64> {
        self.window..self.window.saturating_add(self.count())
    }

    /// True where there is a number and nothing else: no length, no time of the agent, no observation, no draw.
    pub fn is_bare(&self) -> bool {
        let marked = self.kept || self.drawn || self.partner || self.partial;
        !marked && self.end_ns == self.start_ns && self.own_ns == 0 && self.cells.is_empty()
    }

    /// Window `index` of the `all` windows of this entry.
    fn single(&self, index: u64, all: u64) -> Self {
        let length = self.end_ns.saturating_sub(self.start_ns) as f64 / all as f64;
        let at = |index: u64| self.start_ns.saturating_add((length * index as f64) as i64);
        let (start_ns, end_ns) = (at(index), at(index + 1));
        let (window, own_ns) = (self.window.saturating_add(index), self.own_ns / all);
        Self { window, start_ns, end_ns, own_ns, repeat: 1, ..self.clone() }
    }
}

/// Windows of a rank, ascending. Copies share them until one is changed.
#[derive(Clone, Default, PartialEq)]
pub struct WindowSummaries(Arc<Vec<WindowSummary>>);

impl WindowSummaries {
    /// Largest number of windows of one rank that are told apart: a damaged file must not ask for time.
    const MOST: u64 = 1 << 21;

    /// The entries as they are stored: each stands for [`WindowSummary::count`] windows.
    pub fn entries(&self) -> &[WindowSummary] {
        &self.0
    }

    /// The entries, to be changed.
    pub fn entries_mut(&mut self) -> &mut Vec<WindowSummary> {
        Arc::make_mut(&mut self.0)
    }

    /// Number of windows.
    pub fn count(&self) -> u64 {
        self.0.iter().map(WindowSummary::count).fold(0, u64::saturating_add)
    }

    /// Number of windows that are `counted`; asked once for each entry.
    pub fn count_of(&self, counted: impl Fn(&WindowSummary) -> bool) -> u64 {
        let counted = self.0.iter().filter(|entry| counted(entry));
        counted.map(WindowSummary::count).fold(0, u64::saturating_add)
    }

    /// True where there is no window.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// One more than the number of the last window; 0 without windows.
    pub fn end(&self) -> u64 {
        self.0.last().map_or(0, |last| last.numbers().end)
    }

    /// The last window.
    pub fn last(&self) -> Option<Cow<'_, WindowSummary>> {
        self.iter().next_back()
    }

    /// The window of that number.
    pub fn get(&self, window: u64) -> Option<Cow<'_, WindowSummary>> {
        let index = self.0.partition_point(|entry| entry.numbers().end <= window);
        let entry = self.0.get(index).filter(|entry| entry.numbers().contains(&window))?;
        Each::of(entry).nth((window - entry.window) as usize)
    }

    /// Each window by itself, to be found by its place; a copy only where some are stored together.
    pub fn spread(&self) -> Cow<'_, [WindowSummary]> {
        match self.count() == self.0.len() as u64 {
            true => Cow::Borrowed(&self.0),
            false => Cow::Owned(self.iter().map(Cow::into_owned).collect()),
        }
    }

    /// Makes each window an entry.
    pub fn spread_all(&mut self) {
        if let Cow::Owned(windows) = self.spread() {
            *self = windows.into();
        }
    }

    /// Each window by itself.
    pub fn iter(&self) -> WindowIter<'_> {
        let each = if self.count() > Self::MOST { Each::whole } else { Each::of };
        self.0.iter().flat_map(each)
    }

    /// As [`WindowSummaries::iter`], but [bare](WindowSummary::is_bare) windows in a row stay one entry: sums over
    /// what is known of windows need not visit each.
    pub fn iter_known(&self) -> WindowIter<'_> {
        fn known(entry: &WindowSummary) -> Each<'_> {
            if entry.is_bare() { Each::whole(entry) } else { Each::of(entry) }
        }
        let each = if self.count_of(|entry| !entry.is_bare()) > Self::MOST { Each::whole } else { known };
        self.0.iter().flat_map(each)
    }
}

impl std::fmt::Debug for WindowSummaries {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl From<Vec<WindowSummary>> for WindowSummaries {
    fn from(windows: Vec<WindowSummary>) -> Self {
        Self(Arc::new(windows))
    }
}

impl FromIterator<WindowSummary> for WindowSummaries {
    fn from_iter<I: IntoIterator<Item = WindowSummary>>(windows: I) -> Self {
        windows.into_iter().collect::<Vec<_>>().into()
    }
}

impl<'a> IntoIterator for &'a WindowSummaries {
    type Item = Cow<'a, WindowSummary>;
    type IntoIter = WindowIter<'a>;

    fn into_iter(self) -> WindowIter<'a> {
        self.iter()
    }
}

/// Windows one by one.
pub type WindowIter<'a> =
    FlatMap<slice::Iter<'a, WindowSummary>, Each<'a>, fn(&'a WindowSummary) -> Each<'a>>;

/// The windows of one entry.
#[derive(Clone, Debug)]
pub struct Each<'a> {
    entry: &'a WindowSummary,
    /// Windows that the entry is divided into.
    all: u64,
    /// Indices of windows that are left.
    rest: Range<u64>,
}

impl<'a> Each<'a> {
    fn of(entry: &'a WindowSummary) -> Self {
        let all = entry.count();
        Self { entry, all, rest: 0..all }
    }

    fn whole(entry: &'a WindowSummary) -> Self {
        Self { entry, all: 1, rest: 0..1 }
    }

    fn single(&self, index: u64) -> Cow<'a, WindowSummary> {
        match self.all {
            1 => Cow::Borrowed(self.entry),
            all => Cow::Owned(self.entry.single(index, all)),
        }
    }
}

impl<'a> Iterator for Each<'a> {
    type Item = Cow<'a, WindowSummary>;

    fn next(&mut self) -> Option<Self::Item> {
        self.rest.next().map(|index| self.single(index))
    }

    fn nth(&mut self, n: usize) -> Option<Self::Item> {
        self.rest.nth(n).map(|index| self.single(index))
    }
}

impl DoubleEndedIterator for Each<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.rest.next_back().map(|index| self.single(index))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cells::Cell;

    /// Numbers left out before an entry, its windows, its length, the agent's time, its observation, its flags.
    type Drawn = (u64, u64, i64, u64, Option<u32>, [bool; 2]);

    /// Entries of one to several windows, one after the other, with gaps; some bare.
    fn entries() -> impl Strategy<Value = Vec<WindowSummary>> {
        let entry = (0..3u64, 0..6u64, 0..50i64, 0..9u64, prop::option::of(0..9u32), any::<[bool; 2]>());
        prop::collection::vec(entry, 0..12).prop_map(|entries| {
            let (mut next, mut now) = (0, 0);
            let one = |(gap, repeat, length, own_ns, observed, [kept, drawn]): Drawn| {
                let window = next + gap;
                let start_ns = now;
                next = window + u64::max(repeat, 1);
                now += length;
                let cells: Cells = observed.map(|value| Cell::one(f64::from(value))).into_iter().collect();
                WindowSummary {
                    window,
                    start_ns,
                    end_ns: now,
                    own_ns,
                    kept,
                    drawn,
                    repeat,
                    cells,
                    ..WindowSummary::default()
                }
            };
            entries.into_iter().map(one).collect()
        })
    }

    /// Oracle: an entry for every window.
    fn spread(entries: &[WindowSummary]) -> Vec<WindowSummary> {
        let mut all = Vec::new();
        for entry in entries {
            let count = entry.repeat.max(1);
            let each = (entry.end_ns - entry.start_ns) as f64 / count as f64;
            for index in 0..count {
                let mut window = entry.clone();
                window.window += index;
                if count > 1 {
                    window.start_ns = entry.start_ns + (each * index as f64) as i64;
                    window.end_ns = entry.start_ns + (each * (index + 1) as f64) as i64;
                    (window.own_ns, window.repeat) = (entry.own_ns / count, 1);
                }
                all.push(window);
            }
        }
        all
    }

    proptest! {
        #[test]
        fn windows_are_those_that_were_spread(entries in entries()) {
            let all = spread(&entries);
            let windows = WindowSummaries::from(entries);
            let found: Vec<WindowSummary> = windows.iter().map(Cow::into_owned).collect();
            prop_assert_eq!(&found, &all);
            prop_assert_eq!(&windows.spread()[..], &all[..]);
            let mut back: Vec<WindowSummary> = windows.iter().rev().map(Cow::into_owned).collect();
            back.reverse();
            prop_assert_eq!(&back, &all);
            prop_assert_eq!(windows.last().map(Cow::into_owned), all.last().cloned());
            prop_assert_eq!(windows.end(), all.last().map_or(0, |last| last.window + 1));
            for number in 0..windows.end() + 2 {
                let expected = all.iter().find(|window| window.window == number);
                let found = windows.get(number);
                prop_assert_eq!(found.as_deref(), expected);
            }
        }

        #[test]
        fn sums_over_entries_are_sums_over_windows(entries in entries()) {
            let all = spread(&entries);
            let windows = WindowSummaries::from(entries);
            prop_assert_eq!(windows.count(), all.len() as u64);
            for is in [|of: &WindowSummary| of.kept, |of: &WindowSummary| of.is_sampled()] {
                let expected = all.iter().filter(|window| is(window)).count() as u64;
                prop_assert_eq!(windows.count_of(is), expected);
            }
            let (bare, known): (Vec<_>, Vec<_>) =
                windows.iter_known().map(Cow::into_owned).partition(WindowSummary::is_bare);
            let bare: u64 = bare.iter().map(WindowSummary::count).sum();
            prop_assert_eq!(known.len() as u64 + bare, all.len() as u64);
            let expected: Vec<WindowSummary> = all.into_iter().filter(|window| !window.is_bare()).collect();
            prop_assert_eq!(known, expected);
        }
    }

    #[test]
    fn what_a_damaged_file_claims_is_counted_and_not_visited() {
        let claim = WindowSummary { repeat: u64::MAX, window: 5, kept: true, ..WindowSummary::default() };
        let windows = WindowSummaries::from(vec![WindowSummary::default(), claim]);
        assert_eq!((windows.count(), windows.iter().count()), (u64::MAX, 2));
        assert_eq!((windows.iter_known().count(), windows.end()), (2, u64::MAX));
    }
}
