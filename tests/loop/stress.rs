//! Many irregular jobs (`programs/loop_stress.c`): none hangs, all calls are counted, every interval is decided once.
//!
//! `AMPL_STRESS_RUNS` is their number, `AMPL_STRESS_FIRST` the first of their numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Instant;

use ampl_tests::place::Scratch;
use ampl_tests::run::{Form, Monitored, add_counts, counts, monitor, number, parse, text_of};
use serde_json::Value;

use crate::scenario::{Marker, Scenario};

/// Runs of one test where nothing else is asked for: under a minute.
const RUNS: u64 = 12;

/// Ranks from which the status of Open MPI's launcher is ignored.
///
/// Open MPI 4.1.4 on two processors at a load of over 100, without ampl: in 3 of 3 jobs of 200 ranks it said of one or
/// another that it had exited without `MPI_Finalize`, and returned 1. What the ranks leave after that call is looked
/// at instead, with everything else.
const CROWD: u32 = 200;

/// Windows that wait in a node of the tree before neighbours are merged, and with them perhaps intervals: for a plan
/// without groups and without retrospective decisions, with ten queues.
const RING: u64 = 32;

fn asked(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name}={text}")))
}

#[test]
fn random_jobs_end_and_are_told_right() {
    let (first, runs) = (asked("AMPL_STRESS_FIRST").unwrap_or(0), asked("AMPL_STRESS_RUNS"));
    // Explicit runs include the big sizes.
    let big = runs.is_some();
    let mut failures = Vec::new();
    for run in first..first + runs.unwrap_or(RUNS) {
        let scenario = Scenario::new(run, big);
        let started = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| once(&scenario)));
        let seconds = started.elapsed().as_secs_f64();
        let Scenario { mpi, ranks, marker, .. } = &scenario;
        let said = match outcome {
            Ok(said) => said,
            Err(_) => {
                failures.push(run);
                format!("FAILED, configured so:\n{}", scenario.config)
            }
        };
        eprintln!("run {run}: {ranks} ranks, {mpi:?}, {marker:?}: {said} ({seconds:.1} s)");
    }
    assert!(failures.is_empty(), "runs {failures:?} failed, see above; repeat one with AMPL_STRESS_FIRST");
}

/// Runs one scenario, and returns its result in a few words.
fn once(scenario: &Scenario) -> String {
    let logs = Scratch::new("stress");
    let log = logs.path().join("log");
    let job = scenario.job(log.to_str().expect("the path is text"));
    let form = if scenario.number.is_multiple_of(2) { Form::Run } else { Form::Exec };
    let mut run = monitor(&job, &scenario.config, form);
    if scenario.ranks < CROWD || !run.finished.stderr.contains("exiting improperly") {
        run = run.success();
    }
    right_output(&run.finished.stdout);
    // Each rank leaves them after MPI_Finalize.
    let ranks = counted(scenario, &log);
    let info = run.info();
    let context = || format!("{info}\n{}", run.finished.stderr);
    assert!(info["complete"] == true && info["agent_failures"] == 0, "{}", context());
    let mut all = BTreeMap::new();
    ranks.iter().for_each(|rank| add_counts(&mut all, &rank.counts));
    assert_eq!(counts(&info["functions"]), all, "{}", context());
    assert_eq!(info["calls"].as_u64(), Some(all.values().sum()));
    let windows = info["windows"].as_u64().expect("a number");
    let (all, decisions) = (run.all_decisions(), run.decisions());
    decided_once(scenario, &all, windows);
    let after = decided_after(scenario, &all, windows);
    shown_in_force(scenario, windows, &all, &decisions);
    right_windows(scenario, &run, &ranks, &info);
    right_calls(scenario, &run, &info);
    let asked = match scenario.after {
        0 => String::new(),
        _ => format!(", {after} after their windows"),
    };
    format!("{windows} windows, {} decisions{asked}, {} calls", decisions.len(), info["calls"])
}

/// Asserts that each part of the job reports its checks: the program checks every message and result itself.
fn right_output(stdout: &str) {
    let lines: BTreeSet<&str> = stdout.lines().collect();
    let parts: BTreeSet<&str> =
        lines.iter().filter_map(|line| line.split_once(" leave: ")).map(|of| of.0).collect();
    assert!(!lines.is_empty() && lines.len() <= 2 && parts.len() == lines.len(), "{stdout}");
    assert!(lines.iter().all(|line| line.ends_with(", 0 wrong")), "{stdout}");
    // Ranks that leave do so after a third of the phases, in which they may have received nothing.
    let idle = |line: &&str| line.contains(": 0 checked");
    assert!(lines.iter().filter(|line| idle(line)).all(|line| line.starts_with("1 leave: ")), "{stdout}");
}

/// A rank's own counts.
struct Told {
    /// Its calls per function.
    counts: BTreeMap<String, u64>,
    /// Number of its exits of the region PHASE.
    phases: u64,
    /// Number of its calls of `MPI_Pcontrol(2)`.
    controls: u64,
}

/// Counts by each rank itself.
fn counted(scenario: &Scenario, log: &Path) -> Vec<Told> {
    let of = |rank: u32| {
        let all = parse(&text_of(&log.with_extension(rank.to_string())));
        let told = &all["told"];
        assert_eq!(told["rank"], rank);
        let [phases, controls] = ["phases", "controls"].map(|name| all[name].as_u64().expect("a number"));
        Told { counts: counts(&told["counts"]), phases, controls }
    };
    (0..scenario.ranks).map(of).collect()
}

/// Ranks of every stratum, and drawn ranks of it.
type Strata = BTreeMap<u64, (u64, u64)>;

/// Asserts that every interval is decided beforehand once per group, in order, and within it only where sizes change.
/// Sizes and probabilities are possible ones.
fn decided_once(scenario: &Scenario, all: &[Value], windows: u64) {
    let decisions: Vec<&Value> = all.iter().filter(|row| row["selection"] == "predictive").collect();
    let named: BTreeSet<&str> = decisions.iter().filter_map(|row| row["group"].as_str()).collect();
    let expected = scenario.groups.len() + usize::from(left_over(scenario) > 0);
    assert_eq!(named.len(), expected, "{named:?}");
    let mut last: BTreeMap<&str, u64> = BTreeMap::new();
    let mut each: BTreeMap<(&str, u64), Strata> = BTreeMap::new();
    for row in &decisions {
        let [update, window, population, reported, size] =
            ["update", "window", "population", "reported", "size"].map(|name| whole(row, name));
        let group = row["group"].as_str().expect("a name");
        let before = last.insert(group, window);
        assert!(before.is_none_or(|before| before <= window), "out of order: {row}");
        let strata = each.entry((group, window)).or_default();
        assert!(strata.insert(whole(row, "stratum"), (population, size)).is_none(), "decided twice: {row}");
        let within = window % scenario.windows_per_update;
        assert!(window - within == update * scenario.windows_per_update, "{row}");
        assert!(within == 0 || (scenario.census && !scenario.budget && update > 0), "{row}");
        assert!(window <= windows + scenario.windows_per_update, "of {windows} windows: {row}");
        assert!(reported <= population && size <= population, "{row}");
        let probability = number(&row["probability"]);
        assert!((0.0..=1.0).contains(&probability), "{row}");
    }
    for (&(group, window), strata) in &each {
        let Some(&(_, first, last, pinned)) = scenario.groups.iter().find(|named| named.0 == group) else {
            continue;
        };
        let (population, size) = strata.values().fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1));
        let members = u64::from(last - first + 1);
        // A rank that was not counted is in no stratum.
        assert!(population == members || (strata.len() > 1 && population < members), "{group}: {strata:?}");
        assert!(population < members || size >= u64::from(pinned), "{group}: {strata:?}");
        // A budget leaves fewer, and no rank where it has no room for any.
        let asked = population.div_ceil(2).max(pinned.into());
        let limited = decisions
            .iter()
            .any(|row| row["limit"] == "budget" && row["group"] == group && whole(row, "window") == window);
        let fixed = if limited { size <= asked } else { size == asked };
        assert!(group != "fixed" || window == 0 || fixed, "{group}: {strata:?}");
    }
    let updates: BTreeSet<u64> = decisions.iter().filter_map(|row| row["update"].as_u64()).collect();
    assert!(updates.contains(&0), "the start is a decision");
    // In any case the windows at the end have a decision.
    let last = windows / scenario.windows_per_update;
    assert_eq!(updates.last(), Some(&last), "of {windows} windows");
    if windows <= room(scenario) {
        assert_eq!(updates.len() as u64, last + 1, "no interval is passed over: {updates:?}");
    }
    let begin = |&&(_, window): &&(&str, u64)| window % scenario.windows_per_update == 0;
    let intervals = each.keys().filter(begin).count();
    assert_eq!(intervals, updates.len() * expected, "each interval, each group, once");
    assert_eq!(each.len() % expected, 0, "a directive is about all groups");
    let is_divided = each.values().any(|strata| strata.len() > 1);
    assert!(!is_divided || (scenario.census && !scenario.partners), "who divides needs to hear of everybody");
}

/// Asserts that every window of a group has at most one retrospective decision, in order, with strata that have all
/// known ranks of the group and a possible size. Returns the number of these decisions.
fn decided_after(scenario: &Scenario, all: &[Value], windows: u64) -> usize {
    let mut decided: BTreeMap<&str, BTreeMap<u64, Vec<&Value>>> = BTreeMap::new();
    for row in all.iter().filter(|row| row["selection"] != "predictive") {
        let (group, window) = (row["group"].as_str().expect("a name"), whole(row, "window"));
        assert!(window < scenario.after && row["selection"] == "retrospective", "{row}");
        let of_group = decided.entry(group).or_default();
        let newest = of_group.last_key_value().map(|of| *of.0);
        assert!(newest.is_none_or(|newest| newest <= window), "out of order, after {newest:?}: {row}");
        let strata = of_group.entry(window).or_default();
        // Without ranks that are kept in full there is no stratum 0.
        let first = strata.first().map_or(whole(row, "stratum").min(1), |first| whole(first, "stratum"));
        let expected = first + strata.len() as u64;
        assert_eq!(whole(row, "stratum"), expected, "decided twice, or a stratum is lacking: {row}");
        strata.push(row);
    }
    for (group, of_group) in &decided {
        let ranks = match scenario.groups.iter().find(|named| named.0 == *group) {
            Some(&(_, first, last, _)) => last - first + 1,
            None => left_over(scenario),
        };
        assert_ne!(*group, "fixed", "a group that has a size is drawn beforehand");
        for (&window, strata) in of_group {
            let total: u64 = strata.iter().map(|row| whole(row, "population")).sum();
            assert!(window < windows, "of {windows} windows: {}", strata[0]);
            assert_eq!(total, u64::from(ranks), "{strata:?}");
            for row in strata {
                right_stratum(scenario, row);
                let same = ["update", "late", "guide", "policy", "limit", "error_attained"];
                assert!(same.iter().all(|name| row[name] == strata[0][name]), "of one decision: {strata:?}");
            }
        }
    }
    decided.values().map(BTreeMap::len).sum()
}

/// Checks a stratum of a retrospective decision.
fn right_stratum(scenario: &Scenario, row: &Value) {
    let [update, window, population, reported, size] =
        ["update", "window", "population", "reported", "size"].map(|name| whole(row, name));
    assert!(update == window / scenario.windows_per_update, "{row}");
    assert!(row["mechanism"] == scenario.mechanism && size <= population, "{row}");
    let probability = number(&row["probability"]);
    if row["stratum"] == 0 {
        // Pinned ranks are in it, and those that have left the job before.
        assert!(size == reported && reported <= population, "{row}");
        assert!(reported < population || probability == 1.0, "{row}");
    } else {
        assert_eq!(reported, population, "who was not counted is in no other: {row}");
        // No rank is drawn where the budget has no room for any.
        assert!(population > 0 && (size > 0 || row["limit"] == "budget"), "{row}");
        assert!((probability - size as f64 / population as f64).abs() < 1e-12, "{row}");
    }
}

/// Asserts that earlier draws of intervals with retrospective decisions only are hidden, unless asked for.
fn shown_in_force(scenario: &Scenario, windows: u64, all: &[Value], shown: &[Value]) {
    let is_after = |row: &&Value| row["selection"] == "retrospective";
    let in_force = |row: &&Value| {
        let first = whole(row, "update") * scenario.windows_per_update;
        let window = |window| {
            let mut after = all.iter().filter(is_after);
            after.any(|other| other["group"] == row["group"] && other["window"] == window)
        };
        is_after(row)
            || first >= windows
            || !(first..windows.min(first + scenario.windows_per_update)).all(window)
    };
    assert_eq!(all.iter().filter(in_force).collect::<Vec<_>>(), shown.iter().collect::<Vec<_>>());
}

/// [`RING`] for this plan: records have a part for the drawn and one for the pinned ranks of every group, and one for
/// the ranks left over. There are twice as many queues where windows go up a second time. Never fewer than four.
fn room(scenario: &Scenario) -> u64 {
    let cells = 2 * scenario.groups.len() as u64 + 1;
    // Groups that are drawn beforehand are divided, which takes some times as much.
    (RING / cells / if scenario.after == u64::MAX { 2 } else { 6 }).max(4)
}

fn whole(row: &Value, name: &str) -> u64 {
    row[name].as_u64().unwrap_or_else(|| panic!("{name}: {row}"))
}

/// Ranks that are in no group with a name.
fn left_over(scenario: &Scenario) -> u32 {
    let members: u32 = scenario.groups.iter().map(|&(_, first, last, _)| last - first + 1).sum();
    scenario.ranks - members
}

/// Asserts that there are as many windows as markers, and that they hold every call once.
fn right_windows(scenario: &Scenario, run: &Monitored, ranks: &[Told], info: &Value) {
    let windows = whole(info, "windows");
    let called = |told: &Told, function: &str| told.counts.get(function).copied().unwrap_or(0);
    let of = |told: &Told| {
        1 + match scenario.marker {
            Marker::Barrier(every) => called(told, "MPI_Barrier") / every,
            Marker::Sendrecv(every) => called(told, "MPI_Sendrecv") / every,
            Marker::Region(every) => told.phases / every,
            Marker::Pcontrol(every) => told.controls / every,
            Marker::Period(_) => 0,
        }
    };
    if matches!(scenario.marker, Marker::Period(_)) {
        return assert!(windows > 0);
    }
    assert_eq!(windows, ranks.iter().map(of).max().expect("there are ranks"), "windows of the busiest rank");
    if !scenario.census || !scenario.groups.is_empty() {
        return;
    }
    let rows = run.estimate();
    // The census of the run, or the rest of it.
    let whole = rows.iter().find(|row| {
        row["scope"] == "run" && row["basis"] != "trace" && row["metric"] == "calls" && row["event"] == "*"
    });
    let whole = whole.expect("a row of the run");
    // A rank that calls too often, which polls do where others are late, is only counted for a time.
    let steps = info["overhead"]["steps"].as_array().expect("an array");
    if steps.iter().any(|step| step["level"] == "off") {
        assert!(whole["basis"] == "sampled" && whole["missing_windows"].as_u64() > Some(0), "{whole}");
        return;
    }
    let mean = number(&whole["mean"]);
    let calls = ranks.iter().flat_map(|told| told.counts.values()).sum::<u64>();
    // All but MPI_Init, which ends where the first window begins.
    let expected = calls - ranks.len() as u64;
    let rank_windows = ranks.iter().map(of).sum::<u64>();
    assert_eq!((mean * rank_windows as f64).round() as u64, expected, "calls in all windows together");
    assert_eq!(
        (whole["kept"].as_u64(), whole["missing_windows"].as_u64()),
        (Some(ranks.len() as u64), Some(0))
    );
}

/// Asserts that the stored calls are those that were asked for.
fn right_calls(scenario: &Scenario, run: &Monitored, info: &Value) {
    let of_partners = info["partner_windows"].as_u64().expect("a number");
    assert!(scenario.partners || of_partners == 0, "{info}");
    assert!(scenario.stored || info["kept_windows"] == 0, "{info}");
    if !scenario.stored || info["kept_windows"] == 0 {
        return;
    }
    let calls = run.decode(0);
    let left_out = |call: &Value| scenario.left_out.is_some_and(|function| call["fn"] == function);
    let mut left_out = calls.iter().filter(|call| left_out(call));
    assert!(left_out.all(|call| call["start_ns"].is_null()), "times of {:?} are left out", scenario.left_out);
    assert!(calls.is_sorted_by_key(|call| call["seq"].as_u64()), "in the order of the program");
}
