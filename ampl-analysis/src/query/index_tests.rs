//! Questions to an index against the same questions to the times.

use ampl_core::units::RankSet;
use ampl_reader::selection::Selection;
use ampl_reader::{Run, TimeIndex};
use ampl_testkit::synthetic::{Synthetic, WINDOW_NS};
use ampl_testkit::timed::{self, Timed};
use ampl_trace::Trace;
use ampl_trace::structure::RankStructure;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::distribution::distribution;
use super::durations::durations;
use super::index;
use super::matrix::matrix;
use super::ranks_with_regions;
use super::summary::summary;
use super::timeline::timeline;
use super::volume::volume;

/// The answers of `run` to all questions about a part.
fn answers(run: &Run, selection: &Selection, pixels: u32) -> Value {
    let summary = summary(run, selection, &ranks_with_regions(run), || ());
    let durations = durations(run, selection, || ());
    let ranks = distribution(run, selection, || ());
    let timeline = timeline(run, selection, pixels, || ());
    let extents = [summary.extent, durations.extent, ranks.extent].map(|extent| format!("{extent:?}"));
    let timeline_extent = timeline.as_ref().map(|timeline| format!("{:?}", timeline.extent));
    json!([
        extents,
        timeline_extent,
        [summary.is_estimated, summary.from_census],
        summary.rows,
        durations.rows,
        ranks.rows,
        timeline,
        volume(run, selection),
        matrix(run, selection, || ()).rows,
    ])
}

/// Sums of the same numbers in another order are the same but for rounding.
fn are_alike(one: &Value, two: &Value) -> bool {
    match (one, two) {
        (Value::Number(one), Value::Number(two)) if one.is_f64() && two.is_f64() => {
            let (one, two) = (one.as_f64().unwrap(), two.as_f64().unwrap());
            (one - two).abs() <= 1e-9 * one.abs().max(two.abs()).max(1e-3)
        }
        (Value::Array(one), Value::Array(two)) => {
            one.len() == two.len() && one.iter().zip(two).all(|(one, two)| are_alike(one, two))
        }
        (Value::Object(one), Value::Object(two)) => {
            one.len() == two.len()
                && one.iter().all(|(key, one)| two.get(key).is_some_and(|two| are_alike(one, two)))
        }
        _ => one == two,
    }
}

/// The run that `trace` makes without an index, with one, and with one that has classes of calls.
fn all(trace: impl Fn() -> Trace) -> Vec<Run> {
    let plain = Run::from(trace());
    let wants: [fn(&RankStructure) -> bool; 2] = [|_| false, |_| true];
    let indexed = wants.map(|wants_classes| {
        let mut bytes = Vec::new();
        let mut ranks = 0;
        index::write_with(&plain, 7, u64::MAX, wants_classes, &mut bytes, || ranks += 1).unwrap();
        assert_eq!(ranks, plain.ranks().len());
        assert!(TimeIndex::in_memory(bytes.clone(), 8).is_none(), "it is of another trace");
        let mut indexed = Run::from(trace());
        indexed.set_index(TimeIndex::in_memory(bytes, 7).unwrap());
        indexed
    });
    std::iter::once(plain).chain(indexed).collect()
}

fn check(runs: &[Run], selection: &Selection, pixels: u32) {
    let plain = answers(&runs[0], selection, pixels);
    for indexed in &runs[1..] {
        let indexed = answers(indexed, selection, pixels);
        assert!(are_alike(&plain, &indexed), "{selection:?}\n{plain:#}\n{indexed:#}");
    }
}

fn part(from: Option<i64>, until: Option<i64>, ranks: Option<&str>) -> Option<Selection> {
    Selection::new(from, until, ranks.map(|ranks| RankSet::parse(ranks).unwrap()))
}

/// Rounds of unlike calls in one window of many chunks, on two ranks.
fn long_window() -> Trace {
    let rank = |rank: u64| {
        let mut timed = Timed::new(rank as u32, 2, "host");
        for round in 0..9000u64 {
            timed.compute(40 + (round * (rank + 3)) % 11);
            let end = timed.now() + 300 + (round * round) % 7 + if round % 1000 == 0 { 90_000 } else { 0 };
            timed.until("MPI_Barrier", 5, &[ampl_testkit::runs::world()], end);
            let end = timed.now() + 20 + round % 3;
            timed.until("MPI_Barrier", 9, &[ampl_testkit::runs::world()], end);
        }
        timed
    };
    timed::trace(vec![rank(0), rank(1)], |_| true)
}

#[test]
fn a_window_of_many_chunks_may_be_cut_anywhere() {
    let runs = all(long_window);
    assert!(runs[2].has_classes(1) && !runs[1].has_classes(1));
    let end = 18_000 * 400;
    for (from, until) in
        [(0, 1), (0, 100_000), (1_234_567, 1_234_999), (1_234_567, 3_999_999), (5_000_001, end)]
    {
        check(&runs, &part(Some(from), Some(until), None).unwrap(), 100);
    }
    check(&runs, &part(None, None, Some("1")).unwrap(), 1340);
    check(&runs, &part(None, Some(4_000_000), None).unwrap(), 7);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn an_index_gives_the_answers_of_the_times(
        config in 0..4usize,
        killed in 0..3u32,
        ends in prop::collection::vec((0..11 * WINDOW_NS as i64, 0..3000i64, any::<bool>()), 2),
        open in (any::<bool>(), any::<bool>()),
        ranks in prop_oneof![Just(None), Just(Some("0")), Just(Some("1-3")), Just(Some("0,4"))],
        pixels in 1..200u32,
    ) {
        let config = [
            "[trace]\ntiming = \"all\"\n",
            "",
            "[trace]\ntiming = \"all\"\ntime_error = 0\n",
            "[trace]\ntiming = \"off\"\n",
        ][config];
        let job = Synthetic {
            config: config.into(),
            ranks: 5,
            windows: 9,
            killed: (0..killed).collect(),
            ..Synthetic::default()
        };
        // Some among the calls of a window, which are short but for one.
        let at = |(at, near, is_near): (i64, i64, bool)| {
            if is_near { at / WINDOW_NS as i64 * WINDOW_NS as i64 + near } else { at }
        };
        let (one, two) = (at(ends[0]), at(ends[1]));
        let from = open.0.then_some(one.min(two));
        let until = open.1.then_some(one.max(two) + 1);
        let selection = part(from, until, ranks).unwrap();
        check(&all(|| job.trace()), &selection, pixels);
    }
}

/// An index keeps to its limit; ranks that are left out are answered from their times.
#[test]
fn an_index_takes_no_more_bytes_than_it_may() {
    let plain = Run::from(long_window());
    let with = |most_bytes: u64| {
        let mut bytes = Vec::new();
        index::write(&plain, 7, most_bytes, &mut bytes, || ()).unwrap();
        bytes
    };
    let whole = with(u64::MAX);
    let selection = part(Some(100_000), Some(2_000_000), None).unwrap();
    let mut lengths = Vec::new();
    for most_bytes in [0, 100, whole.len() as u64 / 2 + 100, whole.len() as u64 - 1, whole.len() as u64] {
        let bytes = with(most_bytes);
        assert!(bytes.len() as u64 <= most_bytes.max(16), "{} of {most_bytes}", bytes.len());
        lengths.push(bytes.len());
        let mut indexed = Run::from(long_window());
        indexed.set_index(TimeIndex::in_memory(bytes, 7).unwrap());
        check(&[Run::from(long_window()), indexed], &selection, 50);
    }
    assert_eq!(lengths[..2], [16, 16]);
    assert!(lengths[2] > 16 && lengths[2] < whole.len(), "one rank of two");
    assert_eq!(lengths[4], whole.len());
}

/// A rank whose index is damaged is answered from its times, and one whose times are damaged has no index.
#[test]
fn damage_is_not_answered_from() {
    let plain = Run::from(long_window());
    let mut bytes = Vec::new();
    index::write(&plain, 7, u64::MAX, &mut bytes, || ()).unwrap();
    let selection = part(Some(100_000), Some(2_000_000), None).unwrap();
    let cut = [bytes[..bytes.len() - 1].to_vec(), bytes[..20].to_vec()];
    let middle = bytes.len() / 4;
    bytes[middle] ^= 1;
    for damaged in cut.into_iter().chain([bytes]) {
        let mut indexed = Run::from(long_window());
        indexed.set_index(TimeIndex::in_memory(damaged, 7).unwrap());
        check(&[Run::from(long_window()), indexed], &selection, 50);
    }
    let damaged = || {
        let mut trace = long_window();
        let half = trace.ranks[1].times.len() / 2;
        trace.ranks[1].times.truncate(half);
        trace
    };
    check(&all(damaged), &selection, 50);
}
