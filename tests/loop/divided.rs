//! `stratify = "k-medoids"` in jobs that run: two classes of ranks (`programs/loop_classes.c`) become two strata.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::time::Duration;

use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::ampl;
use ampl_tests::process;
use ampl_tests::run::{Form, Monitored, monitor, number, parse};
use serde_json::Value;

const RANKS: u32 = 24;
const STEPS: u64 = 100;

/// The default number of windows between two updates.
const WINDOWS_PER_UPDATE: u64 = 4;

fn config(selection: &str, mechanism: &str) -> String {
    format!(
        "[sampling]\nselection = \"{selection}\"\nupdate_mechanism = \"{mechanism}\"\nfloor = 4\nseed = 3\n\
         [window]\nmarker = \"mpi:MPI_Allreduce\"\n\
         [[metric]]\nname = \"bytes.sent\"\nrole = \"guide\"\n\
         [[group]]\nname = \"mesh\"\nmembers = \"0-23\"\nerror = 0.02\nstratify = \"k-medoids\"\n\
         # A busy machine must not make a rank report less.\n[agent]\nmax_overhead = 0.5\n"
    )
}

fn run(mpi: Mpi, selection: &str, mechanism: &str) -> Monitored {
    let job = Job::of(mpi, RANKS, "loop_classes", &[&STEPS.to_string(), "16000"]);
    monitor(&job, &config(selection, mechanism), Form::Run).success()
}

/// Predictive rows by update, as it began, including those of retrospective windows.
fn updates(run: &Monitored) -> BTreeMap<u64, Vec<Value>> {
    let mut updates: BTreeMap<u64, Vec<Value>> = BTreeMap::new();
    let mut command = Command::new(ampl());
    command.args(["decisions", "--json", "--all"]).arg(&run.run);
    let all = parse(&process::run(&mut command, Duration::from_secs(60)).success().stdout);
    for row in all.as_array().cloned().expect("rows") {
        let of = |name: &str| row[name].as_u64().expect("a number");
        if row["selection"] == "predictive" && of("window") == of("update") * WINDOWS_PER_UPDATE {
            updates.entry(row["update"].as_u64().expect("a number")).or_default().push(row);
        }
    }
    updates
}

fn column(rows: &[Value], name: &str) -> Vec<u64> {
    rows.iter().map(|row| row[name].as_u64().unwrap_or_else(|| panic!("{row}"))).collect()
}

#[test]
fn two_classes_are_two_strata() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let run = run(mpi, "predictive", "subset");
        let updates = updates(&run);
        let (first, _) = updates.iter().find(|(_, rows)| rows.len() > 1).expect("strata are found");
        for rows in updates.range(first..).map(|(_, rows)| rows) {
            assert_eq!(column(rows, "stratum"), [0, 1], "they keep their numbers: {rows:?}");
            let mut ranks = column(rows, "population");
            ranks.sort_unstable();
            assert_eq!(ranks, [6, 18], "{rows:?}");
            // Ranks of a class are alike: as few as possible are kept.
            assert_eq!(column(rows, "size").iter().sum::<u64>(), 4, "{rows:?}");
        }
        // As long as they are one stratum, nearly all of them are needed.
        let before = column(&updates[&(first - 1)], "size");
        assert!(before.len() == 1 && before[0] >= 20, "{before:?}");
        right_estimates(&run);
    }
}

/// Strata whose ranks are all alike have exact estimates: every estimate from kept ranks is the truth.
fn right_estimates(run: &Monitored) {
    let mut exact: BTreeMap<u64, f64> = BTreeMap::new();
    let (mut right, mut all) = (0, 0);
    for row in run.estimate().iter().filter(|row| row["metric"] == "bytes.sent" && row["scope"] == "window") {
        let window = row["window"].as_u64().expect("a number");
        if row["basis"] == "census" {
            exact.insert(window, number(&row["mean"]));
            continue;
        }
        let (mean, half_width) = (number(&row["mean"]), number(&row["half_width"]));
        // Those whose directive came late to some rank are estimates like others.
        right += usize::from((mean / exact[&window] - 1.0).abs() < 1e-9 && half_width <= 1e-9 * mean);
        all += 1;
    }
    assert_eq!(all as u64, STEPS + 1);
    assert!(right * 10 >= all * 6, "{right} of {all}");
}

#[test]
fn coins_and_decisions_afterwards_know_strata_too() {
    for (selection, mechanism) in [("predictive", "global"), ("retrospective", "subset")] {
        let run = run(Mpi::OpenMpi, selection, mechanism);
        let last = updates(&run).pop_last().expect("there are updates").1;
        assert_eq!(column(&last, "stratum"), [0, 1], "{selection} {mechanism}: {last:?}");
        assert_eq!(column(&last, "population").iter().sum::<u64>(), u64::from(RANKS));
        let afterwards: BTreeSet<u64> = run
            .decisions()
            .iter()
            .filter(|row| row["selection"] == "retrospective")
            .map(|row| row["window"].as_u64().expect("a number"))
            .collect();
        // With predictive selection those of the first interval.
        let expected = if selection == "retrospective" { STEPS + 1 } else { 4 };
        assert_eq!(afterwards.len() as u64, expected, "{afterwards:?}");
    }
}
