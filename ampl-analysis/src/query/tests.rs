//! Questions against the same evaluated call by call.

use std::collections::BTreeMap;

use ampl_core::units::RankSet;
use ampl_reader::Run;
use ampl_reader::selection::Selection;
use ampl_testkit::synthetic::{Synthetic, WINDOW_NS};

use super::matrix::matrix;
use super::summary::{Basis, Summary, summary};

/// Numbers of a small generator of its own: the same on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

fn run(job: &Synthetic) -> Run {
    Run::from(job.trace())
}

fn job(config: &str, ranks: u32, windows: u64) -> Synthetic {
    Synthetic { config: config.into(), ranks, windows, ..Synthetic::default() }
}

fn part(from: Option<i64>, until: Option<i64>, ranks: Option<&str>) -> Selection {
    Selection::new(from, until, ranks.map(|ranks| RankSet::parse(ranks).unwrap())).unwrap()
}

/// Calls, nanoseconds and bytes by function.
type Sums = BTreeMap<&'static str, (u64, u64, u64)>;

/// The same, call by call, of a run with the times of all calls.
fn naive(run: &Run, selection: &Selection) -> Sums {
    let mut sums = Sums::new();
    for number in run.ranks().into_iter().filter(|&rank| selection.takes_rank(rank)) {
        for call in run.rank(number).unwrap().calls() {
            let call = call.unwrap();
            let name = call.function.name();
            let Some(timed) = call.timed else {
                if !selection.cuts_time() {
                    sums.entry(name).or_default().0 += call.count;
                }
                continue;
            };
            let end_ns = timed.start_ns + timed.duration_ns.unwrap_or(0) as i64;
            let overlap = selection.overlap_ns(timed.start_ns, end_ns);
            let belongs = selection.has(end_ns) || !selection.cuts_time();
            if overlap > 0 || belongs {
                let sum = sums.entry(name).or_default();
                sum.1 += overlap;
                if belongs {
                    let size = match name {
                        "MPI_Send" => 4 * 8,
                        "MPI_Allreduce" => 8,
                        _ => 0,
                    };
                    sum.0 += call.count;
                    sum.2 += size * call.count;
                }
            }
        }
    }
    sums
}

fn found(summary: &Summary) -> Sums {
    let row = |row: &super::summary::Row| {
        let ns = row.inclusive_ns.unwrap_or(0.0).round() as u64;
        (row.function.unwrap(), (row.calls.unwrap(), ns, row.bytes.unwrap_or(0)))
    };
    summary.rows.iter().map(row).collect()
}

#[test]
fn any_time_of_any_ranks_is_that_of_their_calls_one_by_one() {
    let run = run(&job("[trace]\ntiming = \"all\"\n", 5, 9));
    let mut random = Random(7);
    let end = 9 * WINDOW_NS;
    for case in 0..60 {
        let mut ends = [random.below(end + WINDOW_NS) as i64, random.below(end + WINDOW_NS) as i64];
        if case % 3 == 0 {
            // Among the calls of a window, which are short but for one.
            let window = random.below(9) * WINDOW_NS;
            ends = [window + random.below(3000), window + random.below(3000)].map(|at| at as i64);
        }
        let (from, until) = (ends[0].min(ends[1]), ends[0].max(ends[1]) + 1);
        let ranks = [None, Some("0"), Some("1-3"), Some("0,4")][random.below(4) as usize];
        let selection = part(Some(from), Some(until), ranks);
        let summary = summary(&run, &selection, || ());
        let naive = naive(&run, &selection);
        assert_eq!(found(&summary), naive, "from {from} until {until} of {ranks:?}");
        assert_eq!(summary.extent.untold, 0);
        for row in &summary.rows {
            assert_eq!((row.calls_half_width, row.half_width.unwrap_or(0.0)), (Some(0.0), 0.0), "{row:?}");
        }
    }
}

#[test]
fn the_whole_run_is_the_census_and_a_part_of_its_ranks_the_trace() {
    let run = run(&job("[trace]\ntiming = \"all\"\n", 4, 8));
    let all = summary(&run, &part(None, None, None), || ());
    let naive_all = naive(&run, &part(None, None, None));
    for row in &all.rows {
        let &(calls, ns, bytes) = naive_all.get(row.function.unwrap()).unwrap();
        assert_eq!((row.calls, row.bytes), (Some(calls), Some(bytes)), "{row:?}");
        if ns > 0 {
            assert_eq!((row.inclusive_ns, row.half_width), (Some(ns as f64), Some(0.0)), "{row:?}");
            assert_eq!(row.basis, Some(Basis::Census));
        } else {
            assert_eq!((row.inclusive_ns, row.basis), (None, None), "its end is not known: {row:?}");
        }
    }
    assert!(!all.is_estimated && all.rows.len() == 4);
    let some = summary(&run, &part(None, None, Some("1,2")), || ());
    assert_eq!(found(&some), naive(&run, &part(None, None, Some("1,2"))));
    assert!(some.rows.iter().all(|row| row.basis != Some(Basis::Census)));
}

#[test]
fn a_sample_of_times_stands_for_all_and_calls_are_exact_in_whole_windows() {
    let windows = 16;
    let sampled = run(&job("", 12, windows));
    let all = run(&job("[trace]\ntiming = \"all\"\n", 12, windows));
    for (first, last) in [(0, 4), (5, 11), (3, 16)] {
        let at = |window: u64| Some((window * WINDOW_NS) as i64);
        let selection = part(at(first), at(last), None);
        let (estimate, truth) = (summary(&sampled, &selection, || ()), naive(&all, &selection));
        assert_eq!(estimate.extent.untold, 0, "places of windows follow from their calls");
        for row in &estimate.rows {
            let &(calls, ns, bytes) = truth.get(row.function.unwrap()).unwrap();
            assert_eq!((row.calls, row.bytes, row.calls_half_width), (Some(calls), Some(bytes), Some(0.0)));
            let (time, half_width) = (row.inclusive_ns.unwrap_or(0.0), row.half_width.unwrap_or(0.0));
            assert!((time - ns as f64).abs() <= half_width.max(1.0), "{row:?}, truth {ns}");
            assert!(half_width < 0.5 * ns as f64 + 1.0, "{row:?}");
        }
        assert_eq!(estimate.is_estimated, first > 0 || last > 4);
        assert_eq!(estimate.rows.len(), truth.len());
    }
    // Windows that are cut and have no times: calls are estimated, and it is said.
    let cut = part(Some(5 * WINDOW_NS as i64 + 5000), Some(9 * WINDOW_NS as i64), None);
    let estimate = summary(&sampled, &cut, || ());
    assert!(estimate.extent.untold > 0);
    assert!(estimate.rows.iter().any(|row| row.calls_half_width != Some(0.0)), "{:?}", estimate.rows);
    assert!(estimate.rows.iter().all(|row| row.bytes.is_none()));
}

#[test]
fn without_times_calls_bytes_and_messages_are_exact_and_times_are_not_known() {
    let run = run(&job("[trace]\ntiming = \"off\"\n", 3, 5));
    let summary = summary(&run, &part(None, None, Some("1")), || ());
    let calls: BTreeMap<_, _> = summary.rows.iter().map(|row| (row.function.unwrap(), row.calls)).collect();
    assert_eq!(calls["MPI_Send"], Some(5));
    assert_eq!(calls["MPI_Iprobe"], Some(15));
    assert!(summary.rows.iter().all(|row| row.inclusive_ns.is_none() && row.half_width.is_none()));
    assert!(summary.rows.iter().all(|row| row.bytes.is_some()));
}

#[test]
fn the_matrix_is_that_of_the_sends_in_the_part() {
    let (ranks, windows) = (6, 9);
    for config in ["", "[trace]\ntiming = \"all\"\n", "[trace]\ntiming = \"off\"\n"] {
        let run = run(&job(config, ranks, windows));
        let found = matrix(&run, &part(None, None, None), || ());
        let rows: Vec<_> =
            found.rows.iter().map(|row| (row.source, row.dest, row.calls, row.bytes)).collect();
        let expected: Vec<_> =
            (0..ranks).map(|rank| (rank, (rank + 1) % ranks, windows, 32 * windows)).collect();
        assert_eq!(rows, expected, "{config}");
        assert_eq!(found.sizes.len(), 1);
        assert_eq!((found.sizes[0].least, found.sizes[0].most, found.sizes[0].calls), (32, 32, 54));
        let host = |rank: u32| format!("node{}", rank / 4);
        let by_host: Vec<_> =
            found.by_host(host).into_iter().map(|row| (row.source, row.dest, row.calls)).collect();
        let pair = |a: &str, b: &str, calls| (a.to_owned(), b.to_owned(), calls);
        assert_eq!(
            by_host,
            [
                pair("node0", "node0", 27),
                pair("node0", "node1", 9),
                pair("node1", "node0", 9),
                pair("node1", "node1", 9),
            ]
        );
        assert_eq!(found.communicators.len(), 1);
        // Some ranks, and four whole windows, whose places follow from the calls unless there is no time at all.
        let (from, until) = (2 * WINDOW_NS as i64, 6 * WINDOW_NS as i64);
        let some = matrix(&run, &part(Some(from), Some(until), Some("2-3")), || ());
        let rows: Vec<_> = some.rows.iter().map(|row| (row.source, row.dest, row.calls, row.bytes)).collect();
        if config.contains("off") {
            assert_eq!((rows.len(), some.extent.untold), (0, 8));
        } else {
            assert_eq!(rows, [(2, 3, 4, 128), (3, 4, 4, 128)], "{config}");
            assert_eq!(some.extent.untold, 0);
        }
    }
}
