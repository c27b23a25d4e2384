//! A program that calls MPI too often for `agent.max_overhead`, and less often later.

use ampl_tests::job::{Job, Mpi};
use ampl_tests::process::alone;
use ampl_tests::run::{Form, Monitored, monitor, number};
use serde_json::Value;

const RANKS: u32 = 2;

/// A run of calls that cost far too much, whatever else the machine does.
fn frantic(mpi: Mpi, config: &str, [busy_ms, calm_ms]: [u32; 2]) -> Monitored {
    let mut job = Job::of(mpi, RANKS, "call_bursts", &[&busy_ms.to_string(), &calm_ms.to_string()]);
    job.yields = false;
    let _machine = alone();
    monitor(&job, config, Form::Run).success()
}

/// True where `level` is the first step down of calls that took `share`, may take `allowed`, and `structure` of the
/// processor without their times: no less than may be enough. Where a thread has less than a processor it may be lower.
fn is_given_up(level: &str, share: f64, [allowed, structure]: [f64; 2], first: &'static str) -> bool {
    let depth = |level: &str| [first, "summaries", "off"].iter().position(|name| *name == level);
    let least = match share {
        _ if share <= 4.0 * structure.max(allowed) => first,
        _ if share <= 8.0 * allowed => "summaries",
        _ => "off",
    };
    depth(level).is_some_and(|level| Some(level) >= depth(least))
}

/// Steps of `rank` for overhead: level, nanoseconds, and share of the time.
fn steps(info: &Value, rank: u64) -> Vec<(String, u64, f64)> {
    let steps = info["overhead"]["steps"].as_array().expect("an array");
    let mine = steps.iter().filter(|step| step["rank"] == rank && step["reason"] != "journal");
    let of = |step: &Value| {
        (step["level"].as_str().unwrap().to_owned(), step["at_ns"].as_u64().unwrap(), number(&step["share"]))
    };
    mine.map(of).collect()
}

/// Calls in `column` that every rank made, as it prints.
fn said(run: &Monitored, column: usize) -> Vec<u64> {
    let lines = run.finished.stdout.lines().filter(|line| line.starts_with("rank "));
    lines.map(|line| line.split([' ', ',']).nth(column).unwrap().parse().unwrap()).collect()
}

fn steps_down_and_up(mpi: Mpi) {
    const ALLOWED: f64 = 0.005;
    let config = format!(
        "[sampling]\nselection = \"predictive\"\n[window]\nmarker = \"period:100ms\"\n\
         [agent]\nmax_overhead = {ALLOWED}\nmax_structure_overhead = {ALLOWED}\n"
    );
    let run = frantic(mpi, &config, [500, 6000]);
    let info = run.info();
    assert_eq!((&info["complete"], &info["agent_failures"]), (&Value::Bool(true), &0.into()), "{info}");
    for rank in 0..u64::from(RANKS) {
        let steps = steps(&info, rank);
        let levels: Vec<&str> = steps.iter().map(|(level, ..)| level.as_str()).collect();
        // Fifty times too much causes one step to the bottom; beside other programs it may be less.
        let share = steps[0].2;
        assert!(share > ALLOWED && is_given_up(levels[0], share, [ALLOWED; 2], "structure"), "{steps:?}");
        // Few calls then: the levels come back in turn, though a busy machine may step down again.
        let off = levels.iter().position(|&level| level == "off").expect("calls are only counted");
        assert!(matches!(levels.get(off + 1), Some(&("structure" | "summaries"))), "{steps:?}");
        assert!(steps.is_sorted_by_key(|&(_, at, _)| at), "{steps:?}");
        // Messages and types made while calls were only counted are decoded.
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
    // No number is marked as of all ranks where some did not report.
    let windows = run.estimate();
    let off = steps(&info, 0).into_iter().find(|(level, ..)| level == "off").expect("found above");
    let stepped = off.1 / 100_000_000;
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
    // A rank may end before the last window begins, and then does not lack it.
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

/// Storing every window until its decision is given up first, unless the next level cannot suffice.
///
/// `ampl-agent/tests/it/governor.rs` has each case on a clock of its own. The cost of a call depends on the machine
/// here: a limit of half of it lies in the middle of the range.
#[test]
fn draws_beforehand_before_it_stores_nothing() {
    let mut allowed = 0.12;
    for _ in 0..6 {
        let run = frantic(Mpi::OpenMpi, &format!("[agent]\nmax_overhead = {allowed}\n"), [3000, 100]);
        let info = run.info();
        let firsts = (0..RANKS).filter_map(|rank| steps(&info, rank.into()).into_iter().next());
        let (mut drawn, mut shares) = (0, Vec::new());
        for (level, at, share) in firsts {
            assert!(share > allowed, "{level} at {at}: {share} of {allowed}");
            shares.push(share);
            // A thread that lost its processor meanwhile says nothing about levels.
            if share > 8.0 * allowed {
                continue;
            }
            assert!(
                is_given_up(&level, share, [allowed, 0.1], "drawn"),
                "{level} at {at}: {share} of {allowed}"
            );
            drawn += u32::from(level == "drawn");
        }
        if drawn > 0 {
            let said = &run.finished.stderr;
            assert!(said.contains("were drawn beforehand from"), "{said}");
            return;
        }
        let taken = shares.first().copied().unwrap_or_else(|| number(&info["overhead"]["windows_share"]));
        eprintln!("again: with {allowed} for calls that take {taken}");
        allowed = (taken / 2.0).clamp(0.001, 0.5);
    }
    panic!("no rank's calls cost between {allowed} and four times that");
}

/// A setting that asks for everything gets it, whatever it costs; a limit that is named holds all the same.
#[test]
fn everything_is_everything() {
    let run = frantic(Mpi::OpenMpi, "[trace]\ntiming = \"all\"\n", [500, 500]);
    let info = run.info();
    assert!(steps(&info, 0).is_empty(), "{info}");
    // The rank that ends last may have begun one more.
    let missing =
        info["windows"].as_u64().unwrap() * u64::from(RANKS) - info["kept_windows"].as_u64().unwrap();
    assert!(missing < u64::from(RANKS), "{info}");
    let run =
        frantic(Mpi::OpenMpi, "[trace]\ntiming = \"all\"\n[agent]\nmax_overhead = 0.005\n", [500, 6000]);
    let info = run.info();
    assert!(steps(&info, 0).len() >= 2, "{info}");
}

/// Calls go on being recorded, and windows summarised, whatever `agent.max_overhead` is.
#[test]
fn calls_are_recorded_up_to_a_limit_of_their_own() {
    let config = |structure: &str| {
        format!(
            "[window]\nmarker = \"period:50ms\"\n\
             [agent]\nmax_overhead = \"0.001%\"\nmax_structure_overhead = {structure}\n"
        )
    };
    let run = frantic(Mpi::OpenMpi, &config("0.99"), [800, 100]);
    let info = run.info();
    for rank in 0..u64::from(RANKS) {
        let levels: Vec<String> = steps(&info, rank).into_iter().map(|(level, ..)| level).collect();
        assert!(levels.iter().any(|level| level == "structure"), "times are given up: {levels:?}");
        assert!(levels.iter().all(|level| level != "summaries" && level != "off"), "{levels:?}");
    }
    assert_eq!((&info["structure_complete"], &info["recorded_calls"]), (&Value::Bool(true), &info["calls"]));
    assert!(info["windows_without_summary"].as_u64() <= Some(1), "{info}");
    let run = frantic(Mpi::OpenMpi, &config("\"0.001%\""), [800, 100]);
    let info = run.info();
    assert!(info["structure_complete"] == false && info["recorded_calls"].as_u64() < info["calls"].as_u64());
    assert_eq!(info["gaps"][0]["reason"], "overhead", "{info}");
}
