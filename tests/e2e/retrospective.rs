//! Retrospective decisions: no spike is missed, on any rank and at any time, and hardly any other window is kept
//! (`programs/spiked.c`).

use std::collections::{BTreeMap, BTreeSet};

use ampl_tests::job::{Job, Mpi};
use ampl_tests::process::alone;
use ampl_tests::run::{Form, Monitored, monitor, number, window};
use serde_json::Value;

const STEPS: u64 = 48;
const MESSAGES: usize = 6;

fn configuration(mechanism: &str) -> String {
    format!(
        r#"[sampling]
selection = "retrospective"
update_mechanism = "{mechanism}"
floor = 2
seed = 7

[window]
marker = "mpi:MPI_Allreduce"

# A busy machine must not make a rank keep less.
[agent]
max_overhead = 0.5

[[metric]]
name = "work"
role = "guide"
"#
    )
}

fn job(mpi: Mpi, ranks: u32, mechanism: &str) -> Monitored {
    let job = Job::of(mpi, ranks, "spiked", &[&STEPS.to_string(), "2000"]);
    monitor(&job, &configuration(mechanism), Form::Run).success()
}

/// Calls of each kept rank-window: by window, then by rank.
fn kept(run: &Monitored, ranks: u32) -> BTreeMap<u64, BTreeMap<u32, usize>> {
    let mut windows: BTreeMap<u64, BTreeMap<u32, usize>> = BTreeMap::new();
    for rank in 0..ranks {
        for call in run.decode(rank) {
            let Some(at) = window(&call) else { continue };
            let window = windows.entry(at).or_default();
            *window.entry(rank).or_default() += usize::from(call["fn"] == "MPI_Sendrecv");
        }
    }
    windows
}

fn spikes(run: &Monitored) -> BTreeSet<(u32, u64)> {
    let spike = |line: &str| {
        let (rank, step) = line.strip_prefix("spike ")?.split_once(' ')?;
        Some((rank.parse().ok()?, step.parse().ok()?))
    };
    run.finished.stdout.lines().filter_map(spike).collect()
}

fn no_spike_is_missed(mpi: Mpi, ranks: u32, mechanism: &str) {
    let run = job(mpi, ranks, mechanism);
    let info = run.info();
    assert_eq!((&info["complete"], &info["agent_failures"]), (&true.into(), &0.into()), "{info}");
    let (spikes, kept) = (spikes(&run), kept(&run, ranks));
    assert!(spikes.len() > 10, "{spikes:?}");
    for (rank, step) in &spikes {
        let there = kept.get(step).is_some_and(|window| window.contains_key(rank));
        assert!(there, "the spike of rank {rank} in step {step} is not kept");
    }
    let mut sizes: BTreeMap<u64, u64> = BTreeMap::new();
    for decision in run.decisions() {
        assert_eq!(decision["selection"], "retrospective", "{decision}");
        assert_eq!(decision["reported"], decision["population"], "{decision}");
        // Behind the last step there is no work.
        assert!(decision["window"] == STEPS || number(&decision["error_attained"]) <= 0.08, "{decision}");
        *sizes.entry(decision["window"].as_u64().unwrap()).or_default() += decision["size"].as_u64().unwrap();
    }
    assert_eq!(sizes.len() as u64, STEPS + 1, "every window is decided once");
    let mut others = 0;
    for (window, ranks) in kept.range(..STEPS) {
        assert!(ranks.values().all(|&calls| calls == MESSAGES), "kept windows are whole: {window} {ranks:?}");
        if mechanism == "subset" {
            assert_eq!(ranks.len() as u64, sizes[window], "window {window}");
        }
        others += ranks.keys().filter(|&&rank| !spikes.contains(&(rank, *window))).count();
    }
    let share = others as f64 / (u64::from(ranks) * STEPS - spikes.len() as u64) as f64;
    // Independent draws are less efficient than a sample of a fixed size.
    let most = if mechanism == "subset" { 0.16 } else { 0.5 };
    assert!(share < most, "{share} of what is no spike is kept");
    for row in run.estimate() {
        let guide = row["metric"] == "work" && row["scope"] == "window" && row["basis"] == "trace";
        if guide && row["window"].as_u64().is_some_and(|window| window < STEPS) {
            assert_eq!(row["guaranteed"], true, "{row}");
            assert!(number(&row["half_width"]) <= 0.0801 * number(&row["mean"]), "{row}");
        }
    }
}

#[test]
fn no_spike_is_missed_under_open_mpi() {
    no_spike_is_missed(Mpi::OpenMpi, 40, "subset");
}

#[test]
fn no_spike_is_missed_under_mpich() {
    no_spike_is_missed(Mpi::Mpich, 24, "subset");
}

#[test]
fn no_spike_is_missed_where_coins_decide() {
    no_spike_is_missed(Mpi::Mpich, 24, "global");
}

/// A window takes several messages up and down the tree, and a program may call MPI, which moves them, only twice a
/// window.
#[test]
fn windows_with_few_calls_are_decided_as_they_come() {
    const TURNS: u64 = 600;
    let config = "[sampling]\nwindows_per_update = 5\n[window]\nmarker = \"mpi:MPI_Barrier\"\n\
                  [[metric]]\nname = \"bytes.sent\"\nrole = \"guide\"\n[agent]\nmax_overhead = 0.5\n";
    for (mpi, ranks) in [(Mpi::OpenMpi, 6), (Mpi::Mpich, 3)] {
        let job = Job::of(mpi, ranks, "steady", &[&TURNS.to_string()]);
        let _machine = alone();
        let run = monitor(&job, config, Form::Run).success();
        let all = run.all_decisions();
        let whole = |row: &&Value| row["late"] == false && row["merged_windows"] == 0;
        let after = all.iter().filter(|row| row["selection"] == "retrospective").filter(whole);
        let decided: BTreeSet<u64> = after.filter_map(|row| row["window"].as_u64()).collect();
        assert!(decided.len() as u64 > TURNS * 9 / 10, "{mpi:?}: {} of {TURNS} windows", decided.len());
    }
}

/// Ranks that sleep most of the time poll the tree rarely, and their windows gather meanwhile.
#[test]
fn windows_of_ranks_that_sleep_are_decided_each() {
    const STEPS: u64 = 150;
    for (mpi, ranks) in [(Mpi::OpenMpi, 20), (Mpi::Mpich, 12)] {
        let job = Job::of(mpi, ranks, "spiked", &[&STEPS.to_string(), "20000"]);
        let _machine = alone();
        let run = monitor(&job, &configuration("subset"), Form::Run).success();
        let all = run.all_decisions();
        let decided = all.iter().filter(|row| row["selection"] == "retrospective");
        let decided: BTreeSet<u64> = decided.filter_map(|row| row["window"].as_u64()).collect();
        assert!(decided.len() as u64 > STEPS * 19 / 20, "{mpi:?}: {} of {STEPS} windows", decided.len());
    }
}
