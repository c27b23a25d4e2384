//! Comparison with a naive second computation, on made-up runs.

use ampl_testkit::synthetic::{Synthetic, WINDOW_NS, put_cell};
use ampl_testkit::times::run;
use ampl_trace::cells::Cell;
use ampl_trace::model::{Aggregate, End, EndBasis, Level, Step, ThreadPlace};
use ampl_trace::totals::Totals;

use super::rows::{Basis, rows};
use super::{known_mpi_share, measured_share};

#[track_caller]
fn near(found: Option<f64>, expected: f64) {
    let found = found.expect("it is known");
    assert!((found - expected).abs() < 1e-9, "{found} instead of {expected}");
}

#[test]
fn windows_and_run_equal_a_second_computation() {
    let job = Synthetic { ranks: 20, ..Synthetic::default() };
    let found = rows(&job.trace());
    assert_eq!(found.len(), 13);
    assert_eq!(found[0].window, None);
    let compute = |rank: u32, window: u64| (WINDOW_NS - job.mpi_ns(rank, window) - 1000) as f64;
    // ampl's own time in a window is not the program's.
    let length = (WINDOW_NS - 1000) as f64;
    let mut fastest_mpi = [0; 20];
    for (row, window) in found[1..].iter().zip(0..12) {
        let all: Vec<f64> = (0..20).map(|rank| compute(rank, window)).collect();
        let most = all.iter().copied().fold(0.0, f64::max);
        let slowest = all.iter().position(|&one| one == most).unwrap();
        let mean = all.iter().sum::<f64>() / 20.0;
        assert_eq!((row.window, row.basis), (Some(window), Basis::Census));
        assert_eq!((row.population, row.reported), (20, 20));
        assert_eq!(serde_json::to_value(row).unwrap()["partial"], window == 11);
        near(row.parallel, mean / length);
        near(row.load_balance, mean / most);
        near(row.communication, most / length);
        let slowest_rank = row.slowest.as_ref().unwrap();
        assert_eq!((slowest_rank.rank as usize, slowest_rank.windows), (slowest, 1));
        assert_eq!(slowest_rank.host, format!("node{}", slowest / 4));
        let means: Vec<f64> = all.chunks(4).map(|of| of.iter().sum::<f64>() / 4.0).collect();
        let host = (0..5).max_by(|&a, &b| means[a].total_cmp(&means[b])).unwrap();
        assert_eq!(row.slowest_host.as_ref().unwrap().host, format!("node{host}"));
        fastest_mpi[slowest] += 1;
    }
    let total: Vec<f64> = (0..20).map(|rank| (0..12).map(|window| compute(rank, window)).sum()).collect();
    let most = total.iter().copied().fold(0.0, f64::max);
    let mean = total.iter().sum::<f64>() / 20.0;
    near(found[0].parallel, mean / (12.0 * length));
    near(found[0].load_balance, mean / most);
    let slowest = found[0].slowest.as_ref().unwrap();
    assert_eq!(slowest.windows, fastest_mpi[slowest.rank as usize]);
}

#[test]
fn the_contract_has_its_fields() {
    let found = rows(&run(&["a", "b"], 100.0, &[vec![Some(50.0), Some(25.0)]]));
    let json = serde_json::to_value(&found).unwrap();
    assert_eq!((&json[0]["coverage"], &json[0]["imbalance"]["course"]), (&1.0.into(), &"persistent".into()));
    // Ranks may take turns within a window that the clock ends.
    assert_eq!(json[0]["lost"]["bound"], "at least");
    let row = serde_json::json!({
        "window": 0, "parallel": 0.375, "load_balance": 0.75, "communication": 0.5,
        "slowest": {"rank": 0, "host": "a", "windows": 1},
        "slowest_host": {"host": "a", "ranks": 1, "windows": 1, "over_mean": 50.0 / 37.5},
        "basis": "census", "population": 2, "reported": 2, "partial": false, "coverage": 1.0,
    });
    assert_eq!((&json[1], json[0].get("partial")), (&row, None));
    assert_eq!(
        (&json[0]["window"], &json[0]["slowest"]["windows"]),
        (&serde_json::Value::Null, &row["slowest"]["windows"])
    );
}

/// Rank 1 has paused ampl in window 1: it was not idle, and its paused time is not missing.
#[test]
fn what_was_paused_is_in_no_number() {
    let all = [[Some(90.0), Some(30.0)], [Some(10.0), Some(20.0)], [Some(50.0), Some(50.0)]].map(Vec::from);
    let mut trace = run(&["a", "b"], 100.0, &all);
    for rank in &mut trace.ranks {
        let window = &mut rank.windows.entries_mut()[1];
        window.cells = window.cells.iter().map(|_| Cell::default()).collect();
    }
    let found = rows(&trace);
    assert_eq!((found[0].basis, found[0].reported), (Basis::Measured, 2));
    // Of three windows two were observed.
    assert!((found[0].coverage - 2.0 / 3.0).abs() < 1e-12, "{:?}", found[0]);
    near(found[0].parallel, (140.0 + 80.0) / 2.0 / 200.0);
    assert!(found.iter().all(|row| row.window != Some(1)));
}

/// Four threads are in MPI at once: shares are of their time, and none exceeds one.
#[test]
fn threads_in_mpi_at_once_share_the_time() {
    let mut trace = run(&["a", "b"], 100.0, &[vec![Some(0.0); 2], vec![Some(0.0); 2]]);
    let mpi = [[380.0, 420.0], [200.0, 100.0]];
    for (rank, windows) in trace.ranks.iter_mut().zip(mpi) {
        for (window, mpi) in rank.windows.entries_mut().iter_mut().zip(windows) {
            put_cell(window, 3, Cell { n: 1.0, sum: mpi, ..Cell::default() });
        }
    }
    for rank in &mut trace.ranks {
        rank.process.mpi_threads = 4;
    }
    let found = rows(&trace);
    // Of rank 0, and of rank 1; what ended in a window may have begun before it, and counts in the run.
    near(found[0].parallel, (0.0 + 125.0) / 2.0 / 200.0);
    assert!(found.iter().all(|row| row.parallel.is_some_and(|share| (0.0..=1.0).contains(&share))));
}

/// Stored times are rounded: a thread that is in MPI all the time may have more of it than there was.
#[test]
fn one_thread_in_mpi_is_one_whatever_its_times_are_rounded_to() {
    let mut trace = run(&["a", "b"], 100.0, &[vec![Some(0.0); 2], vec![Some(50.0); 2]]);
    for window in trace.ranks[0].windows.entries_mut() {
        put_cell(window, 3, Cell { n: 1.0, sum: 100.03, ..Cell::default() });
    }
    let found = rows(&trace);
    near(found[0].parallel, 0.25);
    assert_eq!(crate::efficiency::run_times(&trace).threads, 1);
}

/// A helper waits in MPI for all of the time; the main thread is in MPI for a tenth of it, or for half.
#[test]
fn a_rank_computes_as_long_as_its_main_thread_does() {
    let mut trace = run(&["a", "b"], 100.0, &[vec![Some(0.0); 2], vec![Some(0.0); 2]]);
    for (rank, main) in trace.ranks.iter_mut().zip([10.0, 50.0]) {
        for window in rank.windows.entries_mut() {
            put_cell(window, 3, Cell { n: 1.0, sum: 100.0 + main, ..Cell::default() });
        }
        (rank.process.mpi_threads, rank.process.main_share) = (2, Some(main / (100.0 + main)));
    }
    let found = rows(&trace);
    near(found[0].parallel, (0.9 + 0.5) / 2.0);
    near(found[0].load_balance, 0.7 / 0.9);
    let run = crate::efficiency::run_times(&trace);
    assert!(run.of_main && run.threads == 1);
    // All threads' time over the ranks' own.
    near(Some(run.over_threads), (11.0 + 3.0) / 2.0);
}

#[test]
fn functions_out_of_sight_leave_bounds_only() {
    let mut trace = Synthetic::default().trace();
    let seen = rows(&trace);
    trace.run.hidden = vec!["MPI_Init".into(), "MPI_Wtime".into()];
    assert_eq!(rows(&trace), seen, "these take no time that is looked for");
    trace.run.hidden = vec!["MPI_Alltoall".into()];
    let found = rows(&trace);
    assert!(found.iter().all(|row| row.parallel.is_none()), "{found:?}");
    let (bounds, measured) = (found[0].bounds.unwrap(), found[0].coverage);
    // What is in MPI for sure is what was measured; all the rest may be.
    assert!(bounds.mpi[0] > 0.0 && (bounds.mpi[1] - 1.0).abs() < 1e-9 && measured < 0.9, "{bounds:?}");
    assert!(bounds.parallel[0] == 0.0 && bounds.parallel[1] >= seen[0].parallel.unwrap(), "{bounds:?}");
}

#[test]
fn a_call_that_has_not_returned_is_time_in_mpi() {
    let mut trace = Synthetic::default().trace();
    let last = trace.ranks.iter().flat_map(|rank| &rank.windows).map(|window| window.end_ns).max().unwrap();
    // All ranks hang for nine times as long as they ran.
    let end = End { at_ns: 10 * last, basis: EndBasis::Now };
    trace.run.end = Some(end);
    trace.complete = false;
    for rank in &mut trace.ranks {
        rank.process.finalized = false;
        rank.process.elapsed_ns = 10 * last as u64;
        rank.process.threads = vec![ThreadPlace { inside: true, since_ns: last, ..ThreadPlace::default() }];
    }
    let [low, high] = rows(&trace)[0].bounds.unwrap().mpi;
    assert!(low > 0.9 && high <= 1.0, "{low} {high}");
    assert!(known_mpi_share(&trace) > 0.99, "it is a row of the table of calls");
    // Calls that were only counted have no time.
    for rank in &mut trace.ranks {
        rank.process.threads[0].at_most = true;
        rank.process.steps =
            vec![Step { window: 3, at: last as u64, level: Level::Off, share: 0.1, limit: None }];
    }
    assert!(known_mpi_share(&trace) < 0.5);
}

/// Ranks stop in different windows: the windows that all measured are the same number wherever it is printed.
#[test]
fn windows_that_lack_a_rank_are_one_number() {
    let mut trace = run(&["a", "b", "c"], 100.0, &vec![vec![Some(50.0); 3]; 9]);
    trace.complete = false;
    for (rank, windows, finalized) in [(0, 9, true), (1, 6, false), (2, 4, false)] {
        let rank = &mut trace.ranks[rank];
        rank.windows.entries_mut().truncate(windows);
        rank.process.finalized = finalized;
        rank.process.elapsed_ns = 900;
    }
    trace.ranks[0].windows.entries_mut()[1].cells = ampl_trace::cells::Cells::default();
    let plan = ampl_reader::directory::plan(&trace.run).unwrap();
    let found = super::run_times(&trace).coverage;
    assert_eq!((found.windows, found.of_windows), (3, 9));
    assert_eq!(crate::estimate::windows_lacking(&trace, &plan), 9 - 3);
    for window in [4, 5, 8] {
        assert!(super::run_times(&trace).lacking.contains(window), "{window}");
    }
    // What a rank did behind its last window is of the last part.
    let parts = super::parts(&trace, &[0..3, 3..u64::MAX]);
    let (all, whole): (f64, f64) =
        (parts.iter().map(|(times, _)| times.run_ns).sum(), super::run_times(&trace).run_ns);
    assert!((all - whole).abs() < 1e-6 && (whole - 2700.0).abs() < 1e-6, "{all} {whole}");
}

/// Half of the windows are measured; in the rest 30 calls a rank took ten nanoseconds each, if they were like the others.
#[test]
fn calls_that_were_only_counted_are_estimated_at_the_mean_cost() {
    let mut trace = run(&["a", "b"], 100.0, &vec![vec![Some(60.0); 2]; 10]);
    let send = ampl_core::mpi::ids::MPI_SEND.0;
    for rank in &mut trace.ranks {
        let number = rank.process.rank;
        rank.windows.entries_mut()[5..]
            .iter_mut()
            .for_each(|window| window.cells = ampl_trace::cells::Cells::default());
        rank.process.steps = vec![Step { window: 5, at: 500, level: Level::Off, share: 0.1, limit: None }];
        rank.process.calls = vec![(send, 50)];
        let measured = Aggregate { function: send, calls: 20, time_ns: 200.0, ..Aggregate::default() };
        trace.totals.join(Totals::of(number, &[], &[], &[measured]));
    }
    let found = super::run_times(&trace);
    // 200 of 500 measured nanoseconds are in MPI, and 300 of the other 500.
    near(found.mpi_at_mean_cost, 0.5);
    let bounds = found.bounds.expect("half of it is not known");
    assert!(bounds.mpi[0] <= 0.2 + 1e-9 && bounds.mpi[1] >= 0.7 - 1e-9, "{bounds:?}");
    // They cannot have taken longer than there was time.
    trace.ranks.iter_mut().for_each(|rank| rank.process.calls[0].1 = 1000);
    near(super::run_times(&trace).mpi_at_mean_cost, 0.7);
}

#[test]
fn time_that_was_only_counted_may_be_all_in_mpi() {
    let mut trace = Synthetic::default().trace();
    assert_eq!(known_mpi_share(&trace), 1.0);
    let length = trace.ranks[0].process.elapsed_ns;
    let step = |at, level| Step { window: 3, at, level, share: 0.1, limit: None };
    // A tenth of the time of one rank of eight: little of the run, much of the little time in MPI.
    trace.ranks[0].process.steps =
        vec![step(length / 2, Level::Off), step(length / 2 + length / 10, Level::Kept)];
    assert!(measured_share(&trace) > 0.98);
    let mpi: u64 = trace.totals.shares().map(|(.., share)| share.time_ns).sum();
    let expected = mpi as f64 / (mpi as f64 + length as f64 / 10.0);
    assert!((known_mpi_share(&trace) - expected).abs() < 0.02, "{} {expected}", known_mpi_share(&trace));
}
