//! Text of made-up runs.

use ampl_analysis::efficiency::{Basis, Bound, Row, rows};
use ampl_reader::Trace;
use ampl_reader::cells::{Cell, Cells};
use ampl_reader::model::{Level, Step};
use ampl_testkit::synthetic::Synthetic;
use ampl_testkit::times::run;

use super::{sentence, write};

fn text(rows: &[Row]) -> String {
    let mut out = Vec::new();
    write(&mut out, rows, &[], &[]).unwrap();
    String::from_utf8(out).unwrap()
}

#[track_caller]
fn near(found: Option<f64>, expected: f64) {
    let found = found.expect("it is known");
    assert!((found - expected).abs() < 1e-9, "{found} instead of {expected}");
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
fn windows_that_a_call_ends_tell_imbalance_from_mpi() {
    let mut trace = run(&["a", "b"], 100e6, &[vec![Some(40e6), Some(39e6)], vec![Some(40e6), Some(39e6)]]);
    trace.run.config = "[window]\nmarker = 'mpi:MPI_Allreduce'\n".into();
    let said = sentence(&rows(&trace)[0]);
    assert!(
        said.contains("MPI costs most: 120 ms of the run's 200 ms for an average rank, imbalance 1 ms."),
        "{said}"
    );
    assert_eq!(rows(&trace)[0].lost.unwrap().bound, Bound::Estimate);
    trace.run.config = String::new();
    assert_eq!(rows(&trace)[0].lost.unwrap().bound, Bound::AtLeast);
}

#[test]
fn the_sentence_names_what_costs_most() {
    let say = |hosts: &[&str], compute: Vec<Vec<f64>>| {
        let windows: Vec<Vec<Option<f64>>> =
            compute.into_iter().map(|ranks| ranks.into_iter().map(Some).collect()).collect();
        sentence(&rows(&run(hosts, 100e6, &windows))[0])
    };
    let abc = ["a", "b", "c"];
    assert!(say(&abc, vec![vec![95e6, 94e6, 93e6]]).contains("Little to gain"));
    let mpi = say(&abc, vec![vec![40e6, 39e6, 38e6]; 2]);
    // Ranks may take turns within a window.
    let stated = "not known what costs most: of the run's 200 ms, MPI takes at most 120 ms of an average rank, imbalance at \
                  least 2 ms.";
    let busiest = "Even the busiest rank, 0 on a, computes only 40 % of the time";
    assert!(mpi.contains(stated) && mpi.contains(busiest) && !mpi.contains("MPI costs most"), "{mpi}");
    let one = say(&abc, vec![vec![20e6, 90e6, 20e6]; 2]);
    let stated =
        "It is persistent: Rank 1 on b computes 2.08 times the mean over the run, above it in 2 of 2";
    assert!(one.contains(stated), "{one}");
    let two = |first, second| vec![first, 20e6, 20e6, second, 20e6, 20e6];
    let set = say(&["a"; 6], vec![two(90e6, 80e6), two(70e6, 85e6)]);
    assert!(
        set.contains("Imbalance costs most: at least ")
            && set.contains("MPI at most ")
            && set.contains("Ranks 0,3 compute 2.01 times the mean"),
        "{set}"
    );
    assert!(set.contains("each of them above it in 2 of 2 windows"), "{set}");
    let node = say(&["a", "b", "b", "c"], vec![vec![20e6, 90e6, 80e6, 20e6]; 3]);
    assert!(node.contains("The ranks of node b (1-2) compute 1.62 times the mean"), "{node}");
    let turn = |at: usize| -> Vec<f64> { (0..4).map(|r| if r == at { 90e6 } else { 20e6 }).collect() };
    let turns = say(&["a"; 4], (0..12).map(|window| turn(window % 4)).collect());
    assert!(
        turns.contains("Ranks take turns: a window's greatest compute time is 2.40 times its mean"),
        "{turns}"
    );
    let first =
        say(&["a"; 4], (0..12).map(|window| if window < 4 { turn(2) } else { vec![85e6; 4] }).collect());
    assert!(
        first.contains(
            "It is of one part of the run: Rank 2 on a computes 2.40 times the mean in windows 0 to 3."
        ),
        "{first}"
    );
    let at_times =
        say(&["a"; 4], (0..12).map(|window| if window % 3 == 0 { turn(2) } else { vec![85e6; 4] }).collect());
    let stated = "It comes and goes: Rank 2 on a computes 1.25 times the mean over the run, but above it in 4 of 12 windows only.";
    assert!(at_times.contains(stated), "{at_times}");
    let drift = say(&["a"; 4], (0..12).map(|window| turn(window / 3)).collect());
    assert!(
        drift.contains("It drifts: the ranks that compute most in a window do so in the next"),
        "{drift}"
    );
    // The sentence does not advise.
    for said in [one, set, node, turns, drift, first, at_times] {
        assert!(
            !["distribute", "give it", "less work", "look at"].iter().any(|word| said.contains(word)),
            "{said}"
        );
    }
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
        trace.ranks[1].windows.entries_mut()[1].cells = Cells::default();
        trace.ranks[1].process.steps = vec![Step { window: 1, level: Level::Off, ..Step::default() }];
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
    let windows = trace.ranks.iter_mut().flat_map(|rank| rank.windows.entries_mut());
    windows.for_each(|window| window.cells = Cells::default());
    assert!(text(&rows(&trace)).contains("not known (0 of 5 windows)"), "totals would lack what was counted");
}

/// Numbers of a run that the program paused are of the time observed, and the share of the pauses is beside them.
#[test]
fn pauses_are_no_part_of_the_time() {
    let all = vec![vec![Some(40e6), Some(40e6)]; 4];
    let mut trace = run(&["a", "b"], 100e6, &all);
    let pcontrol = ampl_core::mpi::Function::by_name("MPI_Pcontrol").unwrap().0;
    for rank in &mut trace.ranks {
        rank.process.calls = vec![(pcontrol, 2)];
        rank.process.elapsed_ns = 400_000_000;
        // Three of four windows are paused for 80 ms each.
        for window in &mut rank.windows.entries_mut()[1..] {
            let cells = [3.0, 4e6, 20e6, 16e6].map(|sum| Cell { n: 1.0, sum, ..Cell::default() });
            window.cells = cells.into_iter().collect();
        }
    }
    let rows = rows(&trace);
    let said = text(&rows);
    assert_eq!(rows[0].paused.unwrap().share, Some(0.6));
    near(rows[0].parallel, (40.0 + 12.0) / 160.0);
    assert!(said.contains("60 % of the run was paused"), "{said}");
    assert!(said.contains("of the time observed computes") && !said.contains("of the ranks' time"), "{said}");
    assert!(said.contains("most compute time of a rank / time observed"), "{said}");
}

#[test]
fn programs_have_lines_of_their_own() {
    use ampl_analysis::efficiency::OfProgram;
    let of = |program: &str, slowest| OfProgram {
        program: program.into(),
        ranks: "0-3".into(),
        parallel: Some(0.9),
        load_balance: Some(0.95),
        communication: None,
        mpi: None,
        slowest,
        coverage: 1.0,
    };
    let lines = super::of_programs(&[of("ocean", Some(2)), of("server", None)]);
    let ocean = "ocean (0-3): parallel 90 %, load balance 95 %, communication not known; rank 2 has most compute time";
    assert_eq!(lines[0], ocean);
    assert!(lines[1].starts_with("server") && !lines[1].contains("rank 2"));
    let many = super::of_programs(&vec![of("p", None); 20]);
    assert_eq!((many.len(), many[12].as_str()), (13, "and 8 more programs: --json"));
}
