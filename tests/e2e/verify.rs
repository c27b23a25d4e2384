//! `output.verify`: everything is recorded, and the windows that would have been kept are marked and compared with
//! it.

use std::collections::{BTreeMap, BTreeSet};

use ampl_tests::job::{Job, Mpi};
use ampl_tests::run::{Form, Monitored, monitor, number};
use serde_json::Value;

const RANKS: u32 = 6;
const TURNS: u64 = 60;
/// Windows of an update interval.
const UPDATE: u64 = 5;

fn run(mpi: Mpi, sampling: &str, stored: &str) -> Monitored {
    let config = format!(
        "[sampling]\nwindows_per_update = {UPDATE}\nfloor = 2\n{sampling}[window]\nmarker = \"mpi:MPI_Barrier\"\n\
         [[metric]]\nname = \"calls\"\nrole = \"guide\"\n{stored}"
    );
    let job = Job::of(mpi, RANKS, "steady", &[&TURNS.to_string()]);
    monitor(&job, &config, Form::Run).success()
}

fn check(mpi: Mpi, sampling: &str, basis: &str) {
    let run = run(mpi, sampling, "[output]\nverify = true\n");
    let info = run.info();
    let windows = TURNS + 1;
    assert_eq!(
        (&info["windows"], &info["kept_windows"]),
        (&windows.into(), &(windows * u64::from(RANKS)).into())
    );
    // Every rank calls alike: after the first interval a few are enough.
    let mut marked = BTreeSet::new();
    for rank in 0..RANKS {
        let calls = run.decode(rank);
        assert!(calls.len() as u64 >= 2 * TURNS);
        for call in &calls {
            if call["kept"].as_bool().unwrap_or_else(|| panic!("not marked: {call}")) {
                marked.insert((rank, call["window"].as_u64().expect("a number")));
            }
        }
    }
    assert_eq!(info["would_keep_windows"], marked.len());
    // Retrospective decisions mark as many windows as decided.
    let sizes = sizes(&run);
    assert_eq!(sizes.len() as u64 > windows / 2, basis == "trace", "{sizes:?}");
    let exact =
        |(&window, &size): (&u64, &u64)| marked.iter().filter(|(_, of)| *of == window).count() as u64 == size;
    // A decision may be on its way when the buffer ends.
    let wrong = sizes.iter().filter(|&of| !exact(of)).count();
    assert!(wrong as u64 <= windows / 10, "{wrong} of {}", sizes.len());
    assert!(marked.len() as u64 <= windows * u64::from(RANKS) * 3 / 4, "some are left out: {}", marked.len());
    let rows = run.estimate();
    let of = |scope: &str, basis: &str| -> Vec<&Value> {
        let such = |row: &&Value| row["scope"] == scope && row["basis"] == basis && row["metric"] == "calls";
        rows.iter().filter(such).collect()
    };
    // As many ranks as are marked, and the truth beside their estimates.
    let (exact, sample) = (of("window", "census"), of("window", basis));
    assert_eq!((exact.len() as u64, sample.len() as u64), (windows, windows));
    let mut inside = 0;
    for (exact, sample) in exact.iter().zip(&sample) {
        let window = sample["window"].as_u64().expect("a window");
        assert_eq!(sample["kept"], marked.iter().filter(|(_, of)| *of == window).count(), "{sample}");
        assert_eq!(sample["truth"], exact["mean"]);
        let truth = number(&sample["truth"]);
        // A directive does not reach all ranks at once: in between, a small sample may be empty.
        let is = sample["mean"].as_f64().is_some_and(|mean| (mean - truth).abs() <= 0.08 * truth + 1e-9);
        assert_eq!(sample["inside"], is, "{sample}");
        inside += u64::from(is);
    }
    let [whole] = of("run", basis)[..] else { panic!("one row of the run") };
    assert_eq!(
        (&whole["windows_inside"], &whole["windows_checked"]),
        (&inside.into(), &windows.into()),
        "{whole}"
    );
    let c_trace = number(&whole["c_trace"]);
    // The share of time inside the bound, not outside of it.
    assert!(c_trace > 0.9 && c_trace <= 1.0, "{whole}");
    // The row of the run is of the marked sample: windows, sizes, bytes and coverage.
    let planned = run.plan().swap_remove(0);
    let kept = |from: u64| marked.iter().filter(|(_, window)| *window >= from).count() as f64;
    let group = &planned["groups"][0];
    assert_eq!(
        (number(&planned["kept_windows"]), number(&planned["rank_windows"])),
        (kept(0), (windows * u64::from(RANKS)) as f64),
        "{planned}"
    );
    let mean = kept(UPDATE) / (windows - UPDATE) as f64;
    assert!((number(&group["mean_size"]) - mean).abs() < 1e-9, "{mean}: {planned}");
    let after = |row: &&&Value| row["window"].as_u64() >= Some(UPDATE);
    let covered = sample.iter().filter(after).filter(|row| row["inside"] == true).count() as f64;
    let covered = covered / (windows - UPDATE) as f64;
    assert!((number(&group["coverage_window"]) - covered).abs() < 1e-9, "{covered}: {planned}");
    let [bytes, total, timing] =
        [&planned["bytes"], &info["trace_bytes"]["total"], &info["trace_bytes"]["timing"]].map(number);
    let share = kept(0) / number(&planned["rank_windows"]);
    // All windows have the same calls, but for the first and the last ones.
    assert!(
        (bytes - (total - timing * (1.0 - share))).abs() < 0.1 * timing,
        "{bytes} of {total}, {timing} {share}"
    );
    // A long line is broken between words.
    let said = run.finished.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("would be kept (output.verify)"), "{}", run.finished.stderr);
}

/// Sizes from retrospective decisions, in time.
fn sizes(run: &Monitored) -> BTreeMap<u64, u64> {
    let mut sizes: BTreeMap<u64, (u64, bool)> = BTreeMap::new();
    for row in run.decisions().iter().filter(|row| row["selection"] == "retrospective") {
        let [window, size] = ["window", "size"].map(|name| row[name].as_u64().expect("a number"));
        let (sum, whole) = sizes.entry(window).or_insert((0, true));
        *sum += size;
        *whole &= row["late"] == false;
    }
    sizes.retain(|_, (_, whole)| *whole);
    sizes.into_iter().map(|(window, (size, _))| (window, size)).collect()
}

#[test]
fn who_is_drawn_afterwards_holds_where_all_times_are_stored_too() {
    let run = run(Mpi::OpenMpi, "", "[trace]\ntiming = \"all\"\n");
    let windows = TURNS + 1;
    assert_eq!(run.info()["kept_windows"], windows * u64::from(RANKS));
    let sizes = sizes(&run);
    assert!(sizes.len() as u64 > windows / 2, "{sizes:?}");
    let rows = run.estimate();
    let of_trace =
        |row: &&Value| row["scope"] == "window" && row["basis"] == "trace" && row["metric"] == "calls";
    let drawn: BTreeMap<u64, u64> = rows
        .iter()
        .filter(of_trace)
        .map(|row| (row["window"].as_u64().expect("a window"), row["kept"].as_u64().expect("a number")))
        .collect();
    let wrong: Vec<_> = sizes.iter().filter(|&(window, size)| drawn.get(window) != Some(size)).collect();
    // A decision may be on its way when the buffer ends.
    assert!(wrong.len() as u64 <= windows / 10, "{wrong:?}, {drawn:?}");
}

#[test]
fn what_would_have_been_kept_is_marked_and_judged() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        check(mpi, "", "trace");
    }
}

#[test]
fn samples_of_summaries_are_judged_too() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        check(mpi, "summaries = \"sampled\"\n", "sampled");
    }
}

#[test]
fn nothing_is_marked_otherwise() {
    let run = monitor(&Job::of(Mpi::OpenMpi, 2, "steady", &["10"]), "", Form::Run).success();
    assert!(run.info().get("would_keep_windows").is_none());
    assert!(run.decode(0).iter().all(|call| call.get("kept").is_none()));
    assert!(run.estimate().iter().all(|row| row.get("truth").is_none() && row.get("c_trace").is_none()));
}
