//! Timeline of ranks whose times of calls are kept: shares of time by function, pixel by pixel.

use std::collections::BTreeMap;

use ampl_analysis::query::timeline::{COMPUTE, COMPUTE_OR_UNTIMED, Share, UNSAMPLED, timeline};
use ampl_core::units::RankSet;
use ampl_reader::Run;
use ampl_reader::selection::Selection;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

/// Most ranks that are shown.
const RANKS: usize = 64;
/// Most pixels of all ranks together, and of one.
const PIXELS: usize = 160_000;
const WIDTH: usize = 4000;
/// Most functions that have a name and a colour, those of most time.
const FUNCTIONS: usize = 8;
/// Name of the others together.
const OTHERS: &str = "other functions";
/// The number of a whole pixel.
const WHOLE: f64 = 255.0;

/// Shares of time of some ranks.
#[derive(Debug, Serialize)]
pub struct Timeline {
    /// Start of the first pixel, and length of one, seconds since the start.
    pub start: f64,
    pub pixel: f64,
    /// Names of what time is spent in.
    pub functions: Vec<&'static str>,
    /// Number of the time whose calls are not stored among them; none where all are.
    pub unsampled: Option<usize>,
    /// The ranks, a row each.
    pub ranks: Vec<u32>,
    /// Ranks that have kept times and are not shown.
    pub more: usize,
    /// For each run of equal pixels, row by row: a number of shares, for each its function and its share in 255ths,
    /// and how many pixels it is. In base64.
    shares: String,
}

impl Timeline {
    /// The timeline of `run`; `None` where no times of calls are kept, or they cannot be read.
    pub fn of(run: &Run) -> Option<Self> {
        let has_kept = |&rank: &u32| {
            run.rank_windows(rank).is_some_and(|of| of.windows.entries().iter().any(|window| window.kept))
        };
        let kept: Vec<u32> = run.ranks().into_iter().filter(has_kept).collect();
        // Evenly over all that have any.
        let shown = kept.len().min(RANKS);
        let ranks: Vec<u32> = (0..shown).map(|row| kept[row * kept.len() / shown]).collect();
        let set: RankSet = ranks.iter().copied().collect();
        let selection = Selection::new(None, None, Some(set).filter(|set| !set.is_empty()))?;
        let width = (PIXELS / shown.max(1)).min(WIDTH);
        let found = timeline(run, &selection, width as u32, || ()).filter(|_| shown > 0)?;
        let mut times: BTreeMap<&'static str, f64> = BTreeMap::new();
        for share in found.rows.iter().flat_map(|row| row.shares.iter().flatten()) {
            *times.entry(share.function).or_default() += share.share;
        }
        let functions = named(&times);
        let number = |name: &str| functions.iter().position(|of| *of == name);
        let mut packed = Packed::default();
        for pixel in found.rows.iter().flat_map(|row| &row.shares) {
            let mut shares: BTreeMap<usize, f64> = BTreeMap::new();
            for Share { function, share } in pixel {
                if let Some(number) = number(function).or_else(|| number(OTHERS)) {
                    *shares.entry(number).or_default() += share;
                }
            }
            let whole = |share: f64| (share * WHOLE).round().min(WHOLE) as u8;
            shares.retain(|_, share| whole(*share) > 0);
            let mut bytes = vec![shares.len() as u8];
            for (number, share) in shares {
                bytes.extend([number as u8, whole(share)]);
            }
            packed.push(bytes);
        }
        Some(Self {
            start: found.t0_ns as f64 / 1e9,
            pixel: found.pixel_ns / 1e9,
            unsampled: number(UNSAMPLED),
            functions,
            more: kept.len() - ranks.len(),
            ranks: found.rows.iter().map(|row| row.rank).collect(),
            shares: STANDARD.encode(packed.finish()),
        })
    }
}

/// Names of what time is spent in, most time first; functions beyond the first few are one.
fn named(times: &BTreeMap<&'static str, f64>) -> Vec<&'static str> {
    let mut all: Vec<&'static str> = times.keys().copied().collect();
    all.sort_by(|a, b| times[b].total_cmp(&times[a]));
    let is_call = |name: &str| ![COMPUTE, COMPUTE_OR_UNTIMED, UNSAMPLED].contains(&name);
    let mut calls = 0;
    let mut names: Vec<&'static str> = Vec::new();
    for name in &all {
        calls += usize::from(is_call(name));
        if !is_call(name) || calls <= FUNCTIONS {
            names.push(name);
        }
    }
    if calls > FUNCTIONS {
        names.push(OTHERS);
    }
    names
}

/// Pixels, with equal ones in a row stored once.
#[derive(Debug, Default)]
struct Packed {
    bytes: Vec<u8>,
    last: Vec<u8>,
    repeats: u8,
}

impl Packed {
    fn push(&mut self, pixel: Vec<u8>) {
        if self.repeats > 0 && self.repeats < u8::MAX && pixel == self.last {
            self.repeats += 1;
            return;
        }
        self.flush();
        (self.last, self.repeats) = (pixel, 1);
    }

    fn flush(&mut self) {
        if self.repeats > 0 {
            self.bytes.append(&mut self.last);
            self.bytes.push(self.repeats);
        }
    }

    fn finish(mut self) -> Vec<u8> {
        self.flush();
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use ampl_reader::Trace;
    use ampl_testkit::synthetic::Synthetic;

    use super::*;

    /// Shares of every pixel, as the script reads them.
    fn unpacked(timeline: &Timeline) -> Vec<Vec<(usize, f64)>> {
        let bytes = STANDARD.decode(&timeline.shares).unwrap();
        let (mut pixels, mut at) = (Vec::new(), 0);
        while at < bytes.len() {
            let count = usize::from(bytes[at]);
            let share =
                |of: usize| (usize::from(bytes[at + 1 + 2 * of]), f64::from(bytes[at + 2 + 2 * of]) / WHOLE);
            let pixel: Vec<(usize, f64)> = (0..count).map(share).collect();
            let repeats = bytes[at + 1 + 2 * count];
            pixels.extend((0..repeats).map(|_| pixel.clone()));
            at += 2 + 2 * count;
        }
        pixels
    }

    #[test]
    fn packed_pixels_are_those_of_the_analysis() {
        let run = Run::from(Synthetic { ranks: 20, windows: 24, size: 4, ..Synthetic::default() }.trace());
        let found = Timeline::of(&run).unwrap();
        assert_eq!((found.ranks.len(), found.more), (20, 0));
        let everything = Selection::new(None, None, None).unwrap();
        let whole = timeline(&run, &everything, (PIXELS / 20).min(WIDTH) as u32, || ()).unwrap();
        let pixels = unpacked(&found);
        let expected: Vec<&Vec<Share>> = whole.rows.iter().flat_map(|row| &row.shares).collect();
        assert_eq!(pixels.len(), expected.len());
        for (pixel, expected) in pixels.iter().zip(expected) {
            for share in expected.iter().filter(|of| of.share > 0.01) {
                let own = pixel.iter().find(|of| found.functions[of.0] == share.function).unwrap();
                assert!((own.1 - share.share).abs() < 0.005, "{own:?} {share:?}");
            }
        }
        // After the first update four of twenty ranks are kept: the rest is marked as not sampled.
        let unsampled = found.unsampled.unwrap();
        assert!(pixels.iter().any(|pixel| pixel.len() == 1 && pixel[0] == (unsampled, 1.0)));
        assert!(found.shares.len() < 200_000, "{}", found.shares.len());
    }

    #[test]
    fn ranks_of_a_large_job_are_a_part_of_them() {
        let run = Run::from(Synthetic { ranks: 150, windows: 4, size: 150, ..Synthetic::default() }.trace());
        let found = Timeline::of(&run).unwrap();
        assert_eq!((found.ranks.len(), found.more), (RANKS, 150 - RANKS));
        assert!(found.ranks[0] == 0 && found.ranks.is_sorted() && found.ranks[RANKS - 1] > 140);
        assert!(Timeline::of(&Run::from(Trace::default())).is_none());
    }

    #[test]
    fn few_functions_have_names() {
        let calls = ["MPI_A", "MPI_B", "MPI_C", "MPI_D", "MPI_E", "MPI_F", "MPI_G", "MPI_H", "MPI_I"];
        let mut times: BTreeMap<&'static str, f64> = calls.iter().map(|&name| (name, 1.0)).collect();
        times.extend([(COMPUTE, 0.5), (UNSAMPLED, 9.0), ("MPI_I", 2.0), ("MPI_B", 0.1)]);
        let found = named(&times);
        assert_eq!((found[0], found[1], found.len()), (UNSAMPLED, "MPI_I", FUNCTIONS + 3));
        assert!(!found.contains(&"MPI_B") && found.contains(&COMPUTE) && found.ends_with(&[OTHERS]));
        times.remove("MPI_B");
        assert!(!named(&times).contains(&OTHERS));
    }

    #[test]
    fn long_stretches_of_one_pixel_are_cut() {
        let mut packed = Packed::default();
        (0..600).for_each(|_| packed.push(vec![1, 2, 3]));
        packed.push(vec![0]);
        assert_eq!(packed.finish(), [1, 2, 3, 255, 1, 2, 3, 255, 1, 2, 3, 90, 0, 1]);
    }
}
