//! A program that calls MPI too often to be watched for what ampl may cost, and less often later.

use ampl_tests::job::{Job, Mpi};
use ampl_tests::process::alone;
use ampl_tests::run::{Form, Monitored, monitor, number};
use serde_json::Value;

const RANKS: u32 = 2;

/// A rank that exchanged less often was not frantic: on an idle machine it does 2 million times.
const MANY: u64 = 100_000;

/// Who waits for a processor most of the time calls too seldom to be a burden: such a run is made again.
fn frantic(mpi: Mpi, config: &str) -> Monitored {
    // A busy machine takes a second to make as many calls as are too many.
    let job = Job::of(mpi, RANKS, "frantic", &["3000", "6000"]);
    let run = || monitor(&job, config, Form::Run).success();
    let _machine = alone();
    for _ in 0..4 {
        let run = run();
        if said(&run, 2).iter().all(|&exchanges| exchanges >= MANY) {
            return run;
        }
        eprintln!("again: a rank had no processor\n{}", run.finished.stdout);
    }
    run()
}

/// Steps of `rank`: the level and when, nanoseconds. Without `structure`: where a window is not stored there are no
/// times to give up.
fn steps(info: &Value, rank: u64) -> Vec<(String, u64)> {
    let steps = info["overhead"]["steps"].as_array().expect("an array");
    let mine = steps.iter().filter(|step| step["rank"] == rank && step["level"] != "structure");
    mine.map(|step| (step["level"].as_str().unwrap().to_owned(), step["at_ns"].as_u64().unwrap())).collect()
}

/// What every rank says of the calls in `column` that it made.
fn said(run: &Monitored, column: usize) -> Vec<u64> {
    let lines = run.finished.stdout.lines().filter(|line| line.starts_with("rank "));
    lines.map(|line| line.split([' ', ',']).nth(column).unwrap().parse().unwrap()).collect()
}

fn steps_down_and_up(mpi: Mpi) {
    let config = "[sampling]\nselection = \"predictive\"\n[window]\nmarker = \"period:100ms\"\n\
                  [agent]\nmax_overhead = \"0.5%\"\n";
    let run = frantic(mpi, config);
    let info = run.info();
    assert_eq!((&info["complete"], &info["agent_failures"]), (&Value::Bool(true), &0.into()), "{info}");
    for rank in 0..u64::from(RANKS) {
        let steps = steps(&info, rank);
        let levels: Vec<&str> = steps.iter().map(|(level, _)| level.as_str()).collect();
        // What is fifty times too much is not given up bit by bit.
        assert_eq!(levels[0], "off", "{steps:?}");
        // Few calls then: what was given up comes back in turn, though a busy machine may take it again.
        assert_eq!(levels[1], "summaries", "{steps:?}");
        assert!(steps.is_sorted_by_key(|&(_, at)| at) && steps[0].1 < 20_000_000_000, "{steps:?}");
        // Messages and types are understood that were made while calls were only counted.
        let calls = run.decode(rank as u32);
        let of = |name: &str| calls.iter().filter(|call| call["fn"] == name).count();
        assert!(of("MPI_Isend") > 0 && of("MPI_Waitall") > 0, "the first windows are kept");
        if levels.last() == Some(&"kept") {
            assert_eq!(calls.last().expect("kept calls")["fn"], "MPI_Finalize");
        }
    }
    let functions = run.functions();
    for (function, column) in [("MPI_Isend", 2), ("MPI_Irecv", 3), ("MPI_Waitall", 4), ("MPI_Iprobe", 5)] {
        assert_eq!(functions[function], said(&run, column).iter().sum::<u64>(), "{function}");
    }
    // No number pretends to be of all ranks where some did not report.
    let windows = run.estimate();
    let stepped = steps(&info, 0)[0].1 / 100_000_000;
    let of =
        |window: u64| windows.iter().filter(move |row| row["window"] == window && row["scope"] == "window");
    assert!(of(stepped + 1).all(|row| row["guaranteed"] == false), "window {}", stepped + 1);
    let whole = windows.iter().filter(|row| row["scope"] == "run");
    assert!(whole.clone().count() > 0 && whole.clone().all(|row| row["guaranteed"] == false));
    for row in whole {
        assert!(row["half_width"] != 0.0 && row["missing_windows"].as_u64() > Some(0), "{row}");
        assert!(row["basis"] != "sampled" || (row["kept"] == 0 && row["half_width"].is_null()), "{row}");
    }
    for row in windows.iter().filter(|row| row["basis"] == "census") {
        assert!(row["kept"] == RANKS && (row["half_width"] == 0.0 || row["mean"].is_null()), "{row}");
    }
    let all_there = windows.iter().filter(|row| {
        row["scope"] == "window"
            && row["basis"] == "census"
            && row["metric"] == "calls"
            && row["kept"] == RANKS
    });
    let of_some = info["windows"].as_u64().unwrap() - all_there.count() as u64;
    let lacking = info["windows_without_summary"].as_u64().unwrap();
    // A rank may be done before the last window begins, and owes it nothing.
    assert!(lacking == of_some || lacking + 1 == of_some, "{lacking} of {of_some}");
    let told = format!("{lacking} of {} windows without a summary", info["windows"]);
    assert!(run.finished.stderr.contains(&told), "{told}: {}", run.finished.stderr);
    let said = &run.finished.stderr;
    assert!(said.contains("were only counted from") && said.contains("ampl took"), "{said}");
}

#[test]
fn steps_down_and_up_again_under_open_mpi() {
    steps_down_and_up(Mpi::OpenMpi);
}

#[test]
fn steps_down_and_up_again_under_mpich() {
    steps_down_and_up(Mpi::Mpich);
}

/// To store every window until it is decided is given up first, unless what comes next cannot be enough.
#[test]
fn draws_beforehand_before_it_stores_nothing() {
    let mut allowed = 0.12;
    for _ in 0..6 {
        let run = frantic(Mpi::OpenMpi, &format!("[agent]\nmax_overhead = {allowed}\n"));
        let info = run.info();
        let steps = info["overhead"]["steps"].as_array().expect("an array");
        let first = |rank: u32| steps.iter().find(|step| step["rank"] == rank);
        let (mut drawn, mut shares) = (0, Vec::new());
        for step in (0..RANKS).filter_map(first) {
            let share = number(&step["share"]);
            // Less than a quarter is not saved by it, and not more than seven eighths by what is next.
            let level = match share {
                _ if share <= 4.0 * allowed => "drawn",
                _ if share <= 8.0 * allowed => "summaries",
                _ => "off",
            };
            assert!(share > allowed && step["level"] == level, "{step}");
            shares.push(share);
            drawn += u32::from(level == "drawn");
        }
        if drawn > 0 {
            let said = &run.finished.stderr;
            assert!(said.contains("were drawn beforehand from"), "{said}");
            return;
        }
        // What a call costs is the machine's affair: a limit of half of it lies in the middle.
        let taken = shares.first().copied().unwrap_or_else(|| number(&info["overhead"]["windows_share"]));
        eprintln!("again: with {allowed} for calls that take {taken}: {steps:?}");
        allowed = (taken / 2.0).clamp(0.001, 0.5);
    }
    panic!("no rank's calls cost between {allowed} and four times that");
}

/// Who asks for everything gets it, whatever it costs; who names a limit has it kept all the same.
#[test]
fn everything_is_everything() {
    let run = frantic(Mpi::OpenMpi, "[trace]\ntiming = \"all\"\n");
    let info = run.info();
    assert_eq!(steps(&info, 0), []);
    // Who ends last may have begun one more.
    let missing =
        info["windows"].as_u64().unwrap() * u64::from(RANKS) - info["kept_windows"].as_u64().unwrap();
    assert!(missing < u64::from(RANKS), "{info}");
    let run = frantic(Mpi::OpenMpi, "[trace]\ntiming = \"all\"\n[agent]\nmax_overhead = 0.005\n");
    let info = run.info();
    assert!(steps(&info, 0).len() >= 2, "{info}");
}
