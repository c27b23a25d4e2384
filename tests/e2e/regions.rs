//! Regions and instrumented functions in the sequence of calls, as the program itself counts them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::Scratch;
use ampl_tests::run::{Form, Monitored, called, monitor, number};
use serde_json::Value;

const RANKS: u32 = 2;
/// An edge of a region: thread, calls before it, `enter` or `exit`, name.
type Edge = (u64, u64, String, String);

/// The edges that `rank` has written, but for those in the pause.
fn written(place: &Scratch, rank: u32) -> Vec<Edge> {
    let path = place.path().join(format!("edges.{rank}"));
    let text = std::fs::read_to_string(path).expect("the program wrote it");
    let words = text.lines().map(|line| line.splitn(4, ' ').collect::<Vec<_>>());
    let parse = |text: &str| text.parse().expect("a number");
    let seen = words.filter(|words| words[1] != "-1");
    seen.map(|words| (parse(words[0]), parse(words[1]), words[2].into(), words[3].into())).collect()
}

/// The decoded edges of `rank` that were seen, thread by thread, and the number of those that were not.
fn decoded(run: &Monitored, rank: u32) -> (Vec<Edge>, usize) {
    let lines = run.events(rank);
    let regions = lines.iter().filter(|line| line["region"].is_string());
    let (unseen, seen): (Vec<_>, Vec<_>) = regions.partition(|line| line["unseen"] == true);
    let edge = |line: &&Value| {
        let what = if line["enter"] == true { "enter" } else { "exit" };
        let name = line["region"].as_str().expect("a name").to_owned();
        (line["thread"].as_u64().unwrap_or(0), number(&line["seq"]) as u64, what.to_owned(), name)
    };
    (seen.iter().map(edge).collect(), unseen.len())
}

#[test]
fn regions_are_where_the_program_passed_them() {
    let config = "[trace]\ntiming = \"all\"\ntime_error = 0\n\
                  [agent]\nmax_overhead = 0.9\nmax_structure_overhead = 0.9\n";
    for mpi in Mpi::ALL {
        let place = Scratch::new("regions");
        let directory = place.path().to_str().expect("a plain path");
        let run = monitor(&Job::of(mpi, RANKS, "regions", &["30", directory]), config, Form::Run).success();
        run.adds_up();
        for rank in 0..RANKS {
            let mut expected = written(&place, rank);
            expected.sort_by_key(|edge| edge.0);
            // MAIN was entered before MPI_Init, and a region left and one entered in the pause.
            assert_eq!(decoded(&run, rank), (expected, 3), "{mpi:?} rank {rank}");
            let first = &run.events(rank)[0];
            assert_eq!((&first["region"], &first["unseen"]), (&"MAIN".into(), &true.into()), "{mpi:?}");
            // Moments of one thread go up, with those of its calls.
            let mut last = f64::MIN;
            for line in run.events(rank).iter().filter(|line| line["thread"].is_null()) {
                let own = if line["region"].is_string() { &line["at_ns"] } else { &line["start_ns"] };
                let known = own.as_f64().filter(|_| line["gap"].is_null());
                assert!(known.is_none_or(|at| at >= last), "{mpi:?}: {line} after {last}");
                last = known.unwrap_or(last);
            }
        }
        assert_eq!(run.info()["grammars"], 1, "{mpi:?}: a name of each rank's own parts no ranks");
    }
}

/// The compiled `functions`, every function instrumented.
fn instrumented(mpi: Mpi) -> PathBuf {
    mpi.compile_as("functions", "functions.c", &["-finstrument-functions", "-pthread"])
}

fn functions(mpi: Mpi, config: &str) -> Monitored {
    let job = Job::new(mpi, RANKS, instrumented(mpi), &["20", "1000"]);
    monitor(&job, config, Form::Run).success()
}

#[test]
fn functions_are_regions_where_asked_for() {
    let all = "[hooks]\nfunctions = true\nfloor = \"0us\"\n\
               [agent]\nmax_overhead = 0.9\nmax_structure_overhead = 0.99\n";
    for mpi in Mpi::ALL {
        let off = functions(mpi, "");
        assert_eq!(off.passed(0), BTreeMap::new(), "{mpi:?}");
        let run = functions(mpi, all);
        assert_eq!(run.finished.stdout, off.finished.stdout, "{mpi:?}");
        assert_eq!(run.functions(), off.functions(), "{mpi:?}");
        run.adds_up();
        let both = called(&run.finished.stdout).into_iter().map(|(name, times)| (name, [times; 2])).collect();
        assert_eq!(run.passed(0), both, "{mpi:?}");
        // The thread was in main before the first call; main is left behind the last.
        let first = &run.events(0)[0];
        assert_eq!((&first["region"], &first["unseen"]), (&"main".into(), &true.into()), "{mpi:?}");
    }
}

#[test]
fn functions_are_left_out_by_name_and_where_they_are_short() {
    // No visit is as long as that.
    let config = "[hooks]\nfunctions = true\nfilter = \"!rec*\"\nfloor = \"1000s\"\n\
                  [agent]\nmax_overhead = 0.9\nmax_structure_overhead = 0.99\n";
    let run = functions(Mpi::Mpich, config);
    let called = called(&run.finished.stdout);
    assert_eq!(called["tiny"], 20_000);
    let expected =
        [("solve", called["solve"]), ("tiny", 10_000)].map(|(name, times)| (name.into(), [times; 2]));
    assert_eq!(run.passed(0), BTreeMap::from(expected));
    let info = run.info();
    let [left_out] = &info["regions_left_out"].as_array().expect("an array")[..] else { panic!("{info}") };
    assert_eq!(
        (&left_out["region"], number(&left_out["visits"])),
        (&"tiny".into(), 20_000.0),
        "on two ranks"
    );
    let said = &run.finished.stderr;
    assert!(said.contains("tiny") && said.contains("20,000 visits"), "{said}");
}
