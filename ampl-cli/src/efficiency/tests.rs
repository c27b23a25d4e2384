//! Comparison with a naive second computation, on made-up runs.

use ampl_trace::cells::{Cell, Cells};
use ampl_trace::model::{MetricInfo, Process, Step, WindowSummary};
use ampl_trace::{RankTrace, Trace};

use super::rows::{Basis, Row, rows};
use super::table;
use crate::synthetic::{Synthetic, WINDOW_NS, put_cell};

/// A run whose rank r computes `compute[w][r]` ns of `wall` in window w; `None` where it has no such window.
fn run(hosts: &[&str], wall: f64, compute: &[Vec<Option<f64>>]) -> Trace {
    let mut trace = Trace::default();
    trace.run.ranks = hosts.len() as u32;
    // Not in the order of the built-in ones: columns go by name.
    trace.run.metrics = ["calls", "compute.time", "wall", "mpi.time"]
        .map(|name| MetricInfo { name: name.into(), event: "*".into(), guide: false })
        .to_vec();
    for (rank, host) in hosts.iter().enumerate() {
        let (rank_number, host) = (rank as u32, (*host).into());
        let process = Process { rank: rank_number, host, finalized: true, ..Process::default() };
        let window = |(window, ranks): (usize, &Vec<Option<f64>>)| {
            let compute = ranks[rank]?;
            let cell = |sum| Cell { n: 1.0, sum, ..Cell::default() };
            let cells = [3.0, compute, wall, wall - compute].map(cell).into_iter().collect();
            let (window, end_ns) = (window as u64, (window as i64 + 1) * wall as i64);
            let start_ns = end_ns - wall as i64;
            Some(WindowSummary {
                window,
                start_ns,
                end_ns,
                cells,
                probability: 0.5,
                ..WindowSummary::default()
            })
        };
        let windows = compute.iter().enumerate().filter_map(window).collect();
        trace.ranks.push(RankTrace { process, windows, ..RankTrace::default() });
    }
    trace
}

fn text(rows: &[Row]) -> String {
    let mut out = Vec::new();
    table::write(&mut out, rows, &[]).unwrap();
    String::from_utf8(out).unwrap()
}

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
fn a_slow_host_is_found_though_its_ranks_take_turns() {
    // In 9 of 10 windows n045 has the slowest rank, each time another one; then n001 once.
    let windows: Vec<Vec<Option<f64>>> = (0..10usize)
        .map(|window| {
            let mut ranks = vec![Some(30.0); 6];
            match window {
                9 => ranks[0] = Some(90.0),
                _ => ranks[3 + window % 3] = Some(90.0),
            }
            ranks
        })
        .collect();
    let found = rows(&run(&["n001", "n001", "n001", "n045", "n045", "n045"], 100.0, &windows));
    let host = found[0].slowest_host.as_ref().unwrap();
    assert_eq!((host.host.as_str(), host.ranks, host.windows), ("n045", 3, 9));
    assert_eq!(found[0].slowest.as_ref().unwrap().windows, 3, "ranks 3 to 5 three times each");
    let said = text(&found);
    assert!(said.contains("The ranks of node n045 (3-5) compute 1.20 times the mean"), "{said}");
    assert!(said.contains("in 9 of 10 windows"), "{said}");
}

#[test]
fn ranks_that_left_early_are_not_counted_where_they_were_not() {
    let early = vec![vec![Some(50.0), Some(50.0)], vec![Some(80.0), None], vec![Some(80.0), None]];
    let found = rows(&run(&["a", "b"], 100.0, &early));
    assert_eq!((found[2].reported, found[2].population), (1, 2));
    near(found[2].load_balance, 1.0);
    // In the run the other's time is lost.
    near(found[0].load_balance, (210.0 + 50.0) / 2.0 / 210.0);
    near(found[0].communication, 0.7);
    let said = text(&found);
    assert!(said.contains("2 windows without times of every rank") && said.contains("1 of 2"), "{said}");
}

#[test]
fn what_was_not_measured_is_not_known() {
    let none = rows(&Trace::default());
    assert_eq!((none.len(), none[0].parallel, none[0].slowest.clone()), (1, None, None));
    assert!(text(&none).contains("no time was measured"));
    let idle = rows(&run(&["a"], 100.0, &[vec![Some(0.0)], vec![Some(40.0)]]));
    assert_eq!((idle[1].parallel, idle[1].load_balance, idle[1].slowest.clone()), (Some(0.0), None, None));
    near(idle[0].parallel, 0.2);
    assert!(text(&idle).contains("One rank"), "{}", text(&idle));
}

#[test]
fn sampled_summaries_say_so() {
    let config = "[sampling]\nsummaries = 'sampled'\nselection = 'predictive'\n".to_owned();
    let job = Synthetic { config, ranks: 20, size: 8, ..Synthetic::default() };
    let found = rows(&job.trace());
    assert_eq!((found[0].basis, found[0].reported), (Basis::Totals, 20));
    let later = &found[9];
    assert_eq!((later.basis, later.reported, later.population), (Basis::Sampled, 8, 20));
    let said = text(&found);
    assert!(said.contains("8 of 20, sampled") && said.contains("upper bound"), "{said}");
}

#[test]
fn the_sentence_names_what_costs_most() {
    let say = |hosts: &[&str], compute: Vec<Vec<f64>>| {
        let windows: Vec<Vec<Option<f64>>> =
            compute.into_iter().map(|ranks| ranks.into_iter().map(Some).collect()).collect();
        table::sentence(&rows(&run(hosts, 100e6, &windows))[0])
    };
    let abc = ["a", "b", "c"];
    assert!(say(&abc, vec![vec![95e6, 94e6, 93e6]]).contains("Little to gain"));
    let mpi = say(&abc, vec![vec![40e6, 39e6, 38e6]; 2]);
    let stated = "MPI costs most: 120 ms of the run's 200 ms for an average rank, imbalance 2 ms. Even the busiest \
                  rank, 0 on a, computes only 40 % of the time";
    assert!(mpi.contains(stated), "{mpi}");
    let one = say(&abc, vec![vec![20e6, 90e6, 20e6]; 2]);
    let stated =
        "It is persistent: Rank 1 on b computes 2.08 times the mean over the run, more than it in 2 of 2";
    assert!(one.contains(stated), "{one}");
    let two = |first, second| vec![first, 20e6, 20e6, second, 20e6, 20e6];
    let set = say(&["a"; 6], vec![two(90e6, 80e6), two(70e6, 85e6)]);
    assert!(
        set.contains("Imbalance costs most") && set.contains("Ranks 0,3 compute 2.01 times the mean"),
        "{set}"
    );
    assert!(set.contains("each of them more than it in 2 of 2 windows"), "{set}");
    let node = say(&["a", "b", "b", "c"], vec![vec![20e6, 90e6, 80e6, 20e6]; 3]);
    assert!(node.contains("The ranks of node b (1-2) compute 1.62 times the mean"), "{node}");
    let turn = |at: usize| -> Vec<f64> { (0..4).map(|r| if r == at { 90e6 } else { 20e6 }).collect() };
    let turns = say(&["a"; 4], (0..12).map(|window| turn(window % 4)).collect());
    assert!(
        turns.contains("Ranks take turns: a window's greatest compute time is 2.40 times its mean"),
        "{turns}"
    );
    let drift = say(&["a"; 4], (0..12).map(|window| turn(window / 3)).collect());
    assert!(
        drift.contains("It drifts: the ranks that compute most in a window do so in the next"),
        "{drift}"
    );
    // The sentence does not advise.
    for said in [one, set, node, turns, drift] {
        assert!(
            !["distribute", "give it", "less work", "look at"].iter().any(|word| said.contains(word)),
            "{said}"
        );
    }
}

#[test]
fn the_contract_has_its_fields() {
    let found = rows(&run(&["a", "b"], 100.0, &[vec![Some(50.0), Some(25.0)]]));
    let json = serde_json::to_value(&found).unwrap();
    assert_eq!((&json[0]["coverage"], &json[0]["imbalance"]["course"]), (&1.0.into(), &"persistent".into()));
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

/// Rank 1 only counts calls in one window of 20, so that its totals lack them.
#[test]
fn what_was_only_counted_is_in_no_number() {
    let busy = |windows: usize| -> Vec<Vec<Option<f64>>> {
        let mut all = vec![vec![Some(90.0), Some(30.0)]; windows];
        all[1] = vec![Some(10.0), Some(20.0)];
        all
    };
    let stepped = |windows: usize| {
        let mut trace = run(&["a", "b"], 100.0, &busy(windows));
        trace.ranks[1].windows[1].cells = Cells::default();
        trace.ranks[1].process.steps = vec![Step { window: 1, level: "off".into(), ..Step::default() }];
        trace
    };
    let trace = stepped(20);
    let found = rows(&trace);
    assert_eq!((found[0].basis, found[0].reported), (Basis::Measured, 2));
    near(found[0].parallel, 0.6);
    assert!((found[0].coverage - 0.95).abs() < 1e-9);
    assert_eq!((found[2].basis, found[2].reported, found[2].population), (Basis::Measured, 1, 2));
    // The rank that is missing may be the one that computes most.
    assert_eq!((found[2].parallel, found[2].load_balance, found[2].coverage), (None, None, 0.5));
    let said = text(&found);
    assert!(said.contains("(of 19 of 20 windows, 95 % of the run's time; 2 of 2 ranks)"), "{said}");
    // Below nine tenths only the bounds are printed.
    let trace = stepped(5);
    let found = rows(&trace);
    assert_eq!((found[0].parallel, found[0].load_balance, found[0].communication), (None, None, None));
    let bounds = found[0].bounds.unwrap();
    let truth = |compute: f64| compute / 2.0 / 500.0;
    assert!((bounds.parallel[0] - truth(370.0 + 120.0)).abs() < 1e-9, "{bounds:?}");
    assert!((bounds.parallel[1] - truth(370.0 + 220.0)).abs() < 1e-9, "{bounds:?}");
    let said = text(&found);
    assert!(said.contains("parallel       not known (4 of 5 windows): between 49 % and 59 %"), "{said}");
    let mut trace = trace;
    let windows = trace.ranks.iter_mut().flat_map(|rank| &mut rank.windows);
    windows.for_each(|window| window.cells = Cells::default());
    assert!(text(&rows(&trace)).contains("not known (0 of 5 windows)"), "totals would lack what was counted");
}

/// Rank 1 has paused ampl in window 1: it was not idle, and its paused time is not missing.
#[test]
fn what_was_paused_is_in_no_number() {
    let all = [[Some(90.0), Some(30.0)], [Some(10.0), Some(20.0)], [Some(50.0), Some(50.0)]].map(Vec::from);
    let mut trace = run(&["a", "b"], 100.0, &all);
    for rank in &mut trace.ranks {
        let window = &mut rank.windows[1];
        window.cells = window.cells.iter().map(|_| Cell::default()).collect();
    }
    let found = rows(&trace);
    assert_eq!((found[0].basis, found[0].reported, found[0].coverage), (Basis::Measured, 2, 1.0));
    near(found[0].parallel, (140.0 + 80.0) / 2.0 / 200.0);
    assert!(found.iter().all(|row| row.window != Some(1)));
}

/// Four threads are in MPI at once: shares are of their time, and none exceeds one.
#[test]
fn threads_in_mpi_at_once_share_the_time() {
    let mut trace = run(&["a", "b"], 100.0, &[vec![Some(0.0); 2], vec![Some(0.0); 2]]);
    let mpi = [[380.0, 420.0], [200.0, 100.0]];
    for (rank, windows) in trace.ranks.iter_mut().zip(mpi) {
        for (window, mpi) in rank.windows.iter_mut().zip(windows) {
            put_cell(window, 3, Cell { n: 1.0, sum: mpi, ..Cell::default() });
        }
    }
    for told in [true, false] {
        for rank in &mut trace.ranks {
            rank.process.mpi_threads = if told { 4 } else { 0 };
        }
        let found = rows(&trace);
        // Of rank 0, and of rank 1; what ended in a window may have begun before it, and counts in the run.
        let compute = if told { (0.0 + 125.0) / 2.0 } else { (0.0 + 50.0) / 2.0 };
        near(found[0].parallel, compute / 200.0);
        assert!(found.iter().all(|row| row.parallel.is_some_and(|share| (0.0..=1.0).contains(&share))));
    }
}
