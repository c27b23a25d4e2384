//! Questions against the same evaluated call by call.

use std::collections::BTreeMap;

use ampl_core::units::RankSet;
use ampl_reader::Run;
use ampl_reader::selection::Selection;
use ampl_testkit::synthetic::{Synthetic, WINDOW_NS};

use super::distribution::distribution;
use super::durations::durations;
use super::matrix::matrix;
use super::ranks_with_regions;
use super::summary::{Basis, Summary, summary};
use super::timeline::{UNSAMPLED, timeline};
use super::volume::volume;

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

/// A run without any times.
fn off(ranks: u32, windows: u64) -> Run {
    run(&job("[trace]\ntiming = \"off\"\n", ranks, windows))
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
        let summary = summary(&run, &selection, &ranks_with_regions(&run), || ());
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
    let all = summary(&run, &part(None, None, None), &ranks_with_regions(&run), || ());
    let naive_all = naive(&run, &part(None, None, None));
    let counted = run.info().ranks as u64;
    for (name, calls) in [("MPI_Wtime", 5 * counted), ("MPI_Init", counted)] {
        let row = all.rows.iter().find(|row| row.function == Some(name)).unwrap();
        assert_eq!((row.calls, row.inclusive_ns, row.basis), (Some(calls), None, None), "{row:?}");
    }
    for row in all.rows.iter().filter(|row| naive_all.contains_key(row.function.unwrap())) {
        let &(calls, ns, bytes) = naive_all.get(row.function.unwrap()).unwrap();
        assert_eq!((row.calls, row.bytes), (Some(calls), Some(bytes)), "{row:?}");
        if ns > 0 {
            assert_eq!((row.inclusive_ns, row.half_width), (Some(ns as f64), Some(0.0)), "{row:?}");
            assert_eq!(row.basis, Some(Basis::Census));
        } else {
            assert_eq!((row.inclusive_ns, row.basis), (None, None), "its end is not known: {row:?}");
        }
    }
    assert!(!all.is_estimated && all.rows.len() == 6);
    let some = summary(&run, &part(None, None, Some("1,2")), &ranks_with_regions(&run), || ());
    let recorded: Sums = found(&some).into_iter().filter(|(name, _)| naive_all.contains_key(name)).collect();
    assert_eq!(recorded, naive(&run, &part(None, None, Some("1,2"))));
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
        let (estimate, truth) =
            (summary(&sampled, &selection, &ranks_with_regions(&sampled), || ()), naive(&all, &selection));
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
    let estimate = summary(&sampled, &cut, &ranks_with_regions(&sampled), || ());
    assert!(estimate.extent.untold > 0);
    assert!(estimate.rows.iter().any(|row| row.calls_half_width != Some(0.0)), "{:?}", estimate.rows);
    assert!(estimate.rows.iter().all(|row| row.bytes.is_none()));
}

#[test]
fn without_times_calls_bytes_and_messages_are_exact_and_times_are_not_known() {
    let run = run(&job("[trace]\ntiming = \"off\"\n", 3, 5));
    let summary = summary(&run, &part(None, None, Some("1")), &ranks_with_regions(&run), || ());
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

/// Nanoseconds by function of a rank in a pixel, call by call.
fn naive_pixel(run: &Run, rank: u32, from: i64, until: i64) -> BTreeMap<&'static str, f64> {
    let pixel = part(Some(from), Some(until), None);
    let mut sums = BTreeMap::new();
    for call in run.rank(rank).unwrap().calls() {
        let call = call.unwrap();
        let Some(timed) = call.timed else { continue };
        let end_ns = timed.start_ns + timed.duration_ns.unwrap_or(0) as i64;
        *sums.entry(call.function.name()).or_default() += pixel.overlap_ns(timed.start_ns, end_ns) as f64;
    }
    sums
}

#[test]
fn pixels_have_the_time_of_calls_and_of_windows_without_times() {
    let windows = 8;
    for config in ["[trace]\ntiming = \"all\"\n", ""] {
        let run = run(&job(config, 9, windows));
        for (width, from, until) in
            [(7, None, None), (16, Some(11_000_000), Some(47_000_000)), (1, None, None)]
        {
            let found = timeline(&run, &part(from, until, None), width, || ()).unwrap();
            let end = (windows * WINDOW_NS) as i64;
            assert_eq!(found.t0_ns, from.unwrap_or(0));
            let length = (until.unwrap_or(end) - from.unwrap_or(0)) as f64;
            assert!((found.pixel_ns * f64::from(width) - length).abs() < 1.0);
            assert_eq!(found.rows.iter().map(|row| row.rank).collect::<Vec<_>>(), (0..9).collect::<Vec<_>>());
            for row in &found.rows {
                assert_eq!(row.shares.len(), width as usize);
                let kept = run.rank_trace(row.rank).unwrap().windows;
                for (pixel, shares) in row.shares.iter().enumerate() {
                    let share = |name: &str| {
                        shares.iter().find(|share| share.function == name).map_or(0.0, |share| share.share)
                    };
                    let sum: f64 = shares.iter().map(|share| share.share).sum();
                    assert!((sum - 1.0).abs() < 1e-6, "{shares:?}");
                    let begin = found.t0_ns as f64 + found.pixel_ns * pixel as f64;
                    let (begin, end) = (begin, begin + found.pixel_ns);
                    let unsampled: f64 = kept
                        .iter()
                        .filter(|window| !window.kept)
                        .map(|window| {
                            (end.min(window.end_ns as f64) - begin.max(window.start_ns as f64)).max(0.0)
                        })
                        .sum();
                    assert!((share(UNSAMPLED) - unsampled / found.pixel_ns).abs() < 1e-6, "{shares:?}");
                    // To a nanosecond at each end.
                    let naive = naive_pixel(&run, row.rank, begin as i64, end as i64);
                    for (name, nanos) in naive {
                        let off = (share(name) * found.pixel_ns - nanos).abs();
                        assert!(off <= 8.0, "{name} of rank {} in pixel {pixel}: {shares:?}", row.rank);
                    }
                }
            }
        }
    }
    let run = run(&job("", 3, 4));
    let behind = part(Some(i64::MAX - 5), None, None);
    assert!(timeline(&run, &behind, 10, || ()).is_none());
}

#[test]
fn ranks_that_make_the_same_calls_share_a_row_where_there_are_many() {
    let run = run(&job("[trace]\ntiming = \"all\"\n", 300, 2));
    let all = timeline(&run, &part(None, None, None), 4, || ()).unwrap();
    assert!(all.rows.len() < 300, "{} rows", all.rows.len());
    let row = all.rows.iter().find(|row| row.ranks.is_some()).unwrap();
    let sum: f64 = row.shares[0].iter().map(|share| share.share).sum();
    assert!((sum - 1.0).abs() < 1e-6, "{:?}", row.shares[0]);
    let some = timeline(&run, &part(None, None, Some("0-259")), 4, || ()).unwrap();
    assert_eq!(some.rows.len(), 260, "ranks that are asked for have rows of their own");
}

#[test]
fn ranks_have_the_sums_of_their_windows_and_of_cut_windows_their_calls() {
    let job = job("[trace]\ntiming = \"all\"\n", 4, 6);
    let run = run(&job);
    let whole = distribution(&run, &part(None, None, None), || ());
    for row in &whole.rows {
        let mpi: u64 = (0..6).map(|window| job.mpi_ns(row.rank, window)).sum();
        assert_eq!((row.mpi_ns, row.wall_ns), (Some(mpi as f64), Some(6.0 * WINDOW_NS as f64)));
        // Five calls a window, five of MPI_Wtime, MPI_Init and MPI_Finalize.
        assert_eq!((row.calls, row.basis), (Some(37), Some(Basis::Census)));
        assert_eq!(row.host, "node0");
    }
    let (from, until) = (WINDOW_NS as i64 + 1000, 3 * WINDOW_NS as i64 + 2500);
    let cut = part(Some(from), Some(until), Some("2"));
    let [row] = &distribution(&run, &cut, || ()).rows[..] else { panic!("one rank") };
    let naive = naive(&run, &cut);
    let calls: u64 = naive.values().map(|sum| sum.0).sum();
    let inside: u64 = naive.values().map(|sum| sum.1).sum();
    assert_eq!((row.calls, row.basis), (Some(calls), Some(Basis::Trace)));
    // The whole window between has the agent's sum of its calls.
    assert!((row.mpi_ns.unwrap() - inside as f64).abs() <= 1000.0, "{row:?}, calls {inside}");
    assert_eq!(row.wall_ns, Some((until - from) as f64));
    // Without times the ends are not known.
    let bare = off(4, 6);
    let [row] = &distribution(&bare, &cut, || ()).rows[..] else { panic!("one rank") };
    assert_eq!((row.calls, row.mpi_ns, row.bytes), (None, None, None));
}

#[test]
fn durations_are_those_of_calls_with_one_size() {
    let run = run(&job("[trace]\ntiming = \"all\"\n", 5, 7));
    let found = durations(&run, &part(None, None, None), || ());
    let row = |name: &str| found.rows.iter().find(|row| row.function == name).unwrap();
    let send = row("MPI_Send");
    assert_eq!((send.bytes, send.calls, send.timed), (Some(32), Some(35), 35));
    assert_eq!((send.min_ns, send.max_ns, send.mean_ns, send.median_ns), (500, 500, 500.0, 500.0));
    let mut all: Vec<u64> = Vec::new();
    let mut longest = (0, 0);
    for rank in run.ranks() {
        for call in run.rank(rank).unwrap().calls().map(Result::unwrap) {
            if call.function.name() == "MPI_Allreduce" {
                let nanos = call.timed.unwrap().duration_ns.unwrap();
                longest = longest.max((nanos, rank));
                all.push(nanos);
            }
        }
    }
    all.sort_unstable();
    let reduce = row("MPI_Allreduce");
    assert_eq!((reduce.timed, reduce.min_ns, (reduce.max_ns, reduce.max_rank)), (35, all[0], longest));
    let mean = all.iter().sum::<u64>() as f64 / all.len() as f64;
    assert!((reduce.mean_ns / mean - 1.0).abs() < 1e-9);
    assert!((reduce.median_ns / all[17] as f64 - 1.0).abs() < 0.05, "{reduce:?}");
    assert!((reduce.p90_ns / all[31] as f64 - 1.0).abs() < 0.05, "{reduce:?}");
    // Three polls share their time.
    assert_eq!((row("MPI_Iprobe").timed, row("MPI_Iprobe").mean_ns), (105, 100.0));
}

#[test]
fn windows_have_the_sums_of_their_ranks() {
    let job = job("", 6, 5);
    let run = run(&job);
    let rows = volume(&run, &part(Some(WINDOW_NS as i64), Some(3 * WINDOW_NS as i64), Some("1-4")));
    assert_eq!(rows.iter().map(|row| row.window).collect::<Vec<_>>(), [1, 2]);
    for row in &rows {
        let sum = |name: &str| row.metrics.0.iter().find(|(own, _)| own == name).unwrap().1;
        let mpi: u64 = (1..5).map(|rank| job.mpi_ns(rank, row.window)).sum();
        assert_eq!((row.ranks, row.reported, sum("mpi.time"), sum("calls")), (4, 4, mpi as f64, 20.0));
        assert_eq!(row.end_ns - row.start_ns, WINDOW_NS as i64);
    }
}
