//! Against a naive second computation, on made-up runs.

use ampl_trace::cells::{Cell, Cells};
use ampl_trace::model::{MetricInfo, Process, Step, WindowSummary};
use ampl_trace::{RankTrace, Trace};

use super::rows::{Basis, Row, rows};
use super::table;
use crate::synthetic::{Synthetic, WINDOW_NS};

/// A run whose rank r computes `compute[w][r]` ns of `wall` in window w; `None` where it has no such window.
fn run(hosts: &[&str], wall: f64, compute: &[Vec<Option<f64>>]) -> Trace {
    let mut trace = Trace::default();
    trace.run.ranks = hosts.len() as u32;
    // Not in the order of the built-in ones: columns go by name.
    trace.run.metrics = ["calls", "compute.time", "wall", "mpi.time"]
        .map(|name| MetricInfo { name: name.into(), event: "*".into(), guide: false })
        .to_vec();
    for (rank, host) in hosts.iter().enumerate() {
        let process = Process { rank: rank as u32, host: (*host).into(), ..Process::default() };
        let window = |(window, ranks): (usize, &Vec<Option<f64>>)| {
            let compute = ranks[rank]?;
            let cell = |sum| Cell { n: 1.0, sum, ..Cell::default() };
            let cells = [3.0, compute, wall, wall - compute].map(cell).into_iter().collect();
            Some(WindowSummary { window: window as u64, cells, probability: 0.5, ..WindowSummary::default() })
        };
        let windows = compute.iter().enumerate().filter_map(window).collect();
        trace.ranks.push(RankTrace { process, windows, ..RankTrace::default() });
    }
    trace
}

fn text(rows: &[Row]) -> String {
    let mut out = Vec::new();
    table::write(&mut out, rows).unwrap();
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
    // What ampl took of a window is not the program's time.
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
    assert!(said.contains("Node n045 is slowest in 9 of 10 windows, its ranks compute"), "{said}");
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
    assert_eq!((idle[1].parallel, idle[1].slowest.clone()), (None, None));
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
    let say = |compute: &[f64]| {
        let hosts: Vec<&str> = ["a", "b", "c"][..compute.len()].to_vec();
        let window: Vec<Option<f64>> = compute.iter().copied().map(Some).collect();
        let found = rows(&run(&hosts, 100.0, &[window.clone(), window]));
        table::sentence(&found[0], &found[1..])
    };
    assert!(say(&[95.0, 94.0, 93.0]).contains("Little to gain"));
    assert!(
        say(&[40.0, 39.0, 38.0])
            .contains("MPI costs most: even the busiest rank, 0 on a, computes only 40 %")
    );
    assert!(
        say(&[20.0, 90.0, 20.0])
            .contains("Node b is slowest in 2 of 2 windows, its ranks compute 2.08 times")
    );
    let one_host = rows(&run(&["a", "a"], 100.0, &[vec![Some(90.0), Some(10.0)]]));
    assert!(text(&one_host).contains("Rank 0 on a is slowest in 1 of 1 window, it computes 1.80 times"));
    let turns: Vec<_> =
        (0..4).map(|at| (0..4).map(|r| Some(if r == at { 90.0 } else { 20.0 })).collect()).collect();
    let moving = rows(&run(&["a"; 4], 100.0, &turns));
    assert!(text(&moving).contains("The imbalance moves"), "{}", text(&moving));
}

#[test]
fn the_contract_has_its_fields() {
    let found = rows(&run(&["a", "b"], 100.0, &[vec![Some(50.0), Some(25.0)]]));
    let json = serde_json::to_value(&found).unwrap();
    let row = serde_json::json!({
        "window": 0, "parallel": 0.375, "load_balance": 0.75, "communication": 0.5,
        "slowest": {"rank": 0, "host": "a", "windows": 1},
        "slowest_host": {"host": "a", "ranks": 1, "windows": 1, "over_mean": 50.0 / 37.5},
        "basis": "census", "population": 2, "reported": 2, "partial": false,
    });
    assert_eq!((&json[1], json[0].get("partial")), (&row, None));
    assert_eq!(
        (&json[0]["window"], &json[0]["slowest"]["windows"]),
        (&serde_json::Value::Null, &row["slowest"]["windows"])
    );
}

/// Rank 1 only counts calls in window 1, so that its totals lack them.
#[test]
fn what_was_only_counted_is_in_no_number() {
    let all = [[Some(90.0), Some(30.0)], [Some(10.0), Some(20.0)], [Some(50.0), Some(50.0)]].map(Vec::from);
    let mut trace = run(&["a", "b"], 100.0, &all);
    trace.ranks[1].windows[1].cells = Cells::default();
    trace.ranks[1].process.steps = vec![Step { window: 1, level: "off".into(), ..Step::default() }];
    let found = rows(&trace);
    assert_eq!((found[0].basis, found[0].reported), (Basis::Measured, 2));
    // Of windows 0 and 2.
    near(found[0].parallel, (140.0 + 80.0) / 2.0 / 200.0);
    assert_eq!((found[2].basis, found[2].reported, found[2].population), (Basis::Measured, 1, 2));
    near(found[2].parallel, 0.1);
    let said = text(&found);
    assert!(said.contains("of the windows that all measured") && said.contains("1 of 2"), "{said}");
    trace
        .ranks
        .iter_mut()
        .flat_map(|rank| &mut rank.windows)
        .for_each(|window| window.cells = Cells::default());
    assert!(text(&rows(&trace)).contains("no time was measured"), "totals would lack what was counted");
}

/// Rank 1 has paused ampl in window 1: it is not a rank that did nothing.
#[test]
fn what_was_paused_is_in_no_number() {
    let all = [[Some(90.0), Some(30.0)], [Some(10.0), Some(20.0)], [Some(50.0), Some(50.0)]].map(Vec::from);
    let mut trace = run(&["a", "b"], 100.0, &all);
    let window = &mut trace.ranks[1].windows[1];
    window.cells = window.cells.iter().map(|_| Cell::default()).collect();
    let found = rows(&trace);
    assert_eq!((found[0].basis, found[0].reported), (Basis::Measured, 2));
    near(found[0].parallel, (140.0 + 80.0) / 2.0 / 200.0);
    assert_eq!((found[2].basis, found[2].reported, found[2].population), (Basis::Measured, 1, 2));
}
