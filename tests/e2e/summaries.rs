//! `output.rank_summaries` and `trace.timing`: windows whose totals and times are stored.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;

use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::ampl;
use ampl_tests::process;
use ampl_tests::run::{Form, Monitored, monitor, number, window};

const RANKS: u32 = 6;
const TURNS: u64 = 60;

/// Bases of estimates after a run in which a few ranks are enough from the second interval on.
fn bases(rank_summaries: &str) -> BTreeSet<String> {
    let config = format!(
        "[sampling]\nselection = \"predictive\"\nwindows_per_update = 5\nfloor = 2\n\
         [window]\nmarker = \"mpi:MPI_Barrier\"\n[[metric]]\nname = \"calls\"\nrole = \"guide\"\n\
         [output]\nrank_summaries = \"{rank_summaries}\"\n"
    );
    let job = Job::of(Mpi::OpenMpi, RANKS, "steady", &[&TURNS.to_string()]);
    let run = monitor(&job, &config, Form::Run).success();
    assert_eq!(run.info()["windows"], TURNS + 1);
    let rows = run.estimate().into_iter().filter(|row| row["scope"] == "window" && row["mean"].is_number());
    rows.map(|row| row["basis"].as_str().expect("a word").to_owned()).collect()
}

#[test]
fn summaries_are_stored_of_whom_the_key_says() {
    let of = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    assert_eq!(bases("all"), of(&["census", "trace"]));
    assert_eq!(bases("sample"), of(&["sampled"]));
    assert_eq!(bases("off"), of(&[]));
}

/// A run of so many ranks with these settings, whose sizes add up to the file.
fn run_with(mpi: Mpi, ranks: u32, summaries: &str, timing: &str) -> Monitored {
    let config = format!(
        "[window]\nmarker = \"mpi:MPI_Barrier\"\n[trace]\ntiming = \"{timing}\"\n\
         [output]\nrank_summaries = \"{summaries}\"\n"
    );
    let job = Job::of(mpi, ranks, "steady", &["12"]);
    let run = monitor(&job, &config, Form::Run).success();
    let info = run.info();
    let bytes = |part: &str| number(&info["trace_bytes"][part]);
    let file = std::fs::metadata(run.run.join("trace.ampl")).expect("a trace").len();
    assert_eq!(bytes("total"), file as f64);
    let parts = info["trace_bytes"].as_object().expect("sizes").iter().filter(|(name, _)| *name != "total");
    assert_eq!(bytes("total"), parts.map(|(_, bytes)| number(bytes)).sum::<f64>());
    assert!((&info["complete"], &info["windows"]) == (&true.into(), &13.into()), "{info}");
    run
}

/// Asserts that data which no rank stores takes no bytes of the file, and that commands report its absence.
fn takes_no_bytes(mpi: Mpi) {
    for ranks in [2, 8] {
        let sizes = |summaries, timing| {
            let run = run_with(mpi, ranks, summaries, timing);
            let bytes = run.info()["trace_bytes"].clone();
            (run, number(&bytes["summaries"]), number(&bytes["timing"]))
        };
        let (run, summaries, timing) = sizes("off", "all");
        assert!(summaries == 0.0 && timing > 0.0, "{mpi:?}, {ranks} ranks: {summaries} {timing}");
        assert_eq!(run.info()["kept_windows"], 13 * ranks);
        assert!(run.decode(ranks - 1).iter().filter_map(window).any(|window| window == 7));
        let (run, summaries, timing) = sizes("all", "off");
        assert!(summaries > 0.0 && timing == 0.0, "{mpi:?}, {ranks} ranks: {summaries} {timing}");
        assert!(!run.estimate().is_empty());
        let (run, summaries, timing) = sizes("off", "off");
        assert_eq!((summaries, timing), (0.0, 0.0), "{mpi:?}, {ranks} ranks");
        assert_eq!((run.estimate().len(), run.info()["kept_windows"].as_u64()), (0, Some(0)));
        // The run is known by its call totals, of every rank.
        let of_run = &run.efficiency()[0];
        assert!(of_run["parallel"].as_f64().is_some_and(|share| share > 0.0 && share <= 1.0), "{of_run}");
        let ask = |word: &str| {
            let mut command = Command::new(ampl());
            command.arg(word).arg(&run.run);
            process::run(&mut command, Duration::from_secs(60))
        };
        for word in ["strata", "plan"] {
            let refused = ask(word);
            assert_eq!(refused.status.code(), Some(4), "{}", refused.stderr);
            assert!(refused.stderr.contains("output.rank_summaries"), "{}", refused.stderr);
        }
        let said = ask("info").success().stdout;
        assert!(said.contains("13 windows") && said.contains("who was drawn is not known"), "{said}");
        assert!(ask("efficiency").success().stdout.contains("No rank's window is in the trace"));
    }
}

/// A run that keeps few times tells what those of all would take; the same job that stores all of them takes as much.
#[test]
fn what_all_times_would_take_is_what_they_take() {
    const FACTOR: f64 = 1.25;
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let run = |timing: &str| {
            let config = format!(
                "[sampling]\nwindows_per_update = 5\nfloor = 2\n[window]\nmarker = \"mpi:MPI_Barrier\"\nevery = 10\n\
                 [[metric]]\nname = \"calls\"\nrole = \"guide\"\n[trace]\ntiming = \"{timing}\"\n\
                 [agent]\nmax_overhead = 0.5\n"
            );
            monitor(&Job::of(mpi, RANKS, "steady", &["400"]), &config, Form::Run).success()
        };
        let (some, all) = (run("kept"), run("all"));
        let said = some.finished.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        let told = said.split("; all would take about ").nth(1).unwrap_or_else(|| panic!("{mpi:?}: {said}"));
        let told: Vec<&str> = told.split(' ').take(2).collect();
        let unit = match told[1] {
            "kB" => 1e3,
            "MB" => 1e6,
            unit => panic!("{mpi:?}: {unit}: {said}"),
        };
        let told = told[0].parse::<f64>().expect("a number") * unit;
        let [kept, whole] = [&some, &all].map(|run| number(&run.info()["trace_bytes"]["total"]));
        assert!(kept < 0.85 * whole, "{mpi:?}: {kept} of {whole}");
        assert!((whole / FACTOR..whole * FACTOR).contains(&told), "{mpi:?}: {told} told, {whole} taken");
        assert!(!all.finished.stderr.contains("all would take about"), "{mpi:?}: {}", all.finished.stderr);
    }
}

/// Bytes of a file with no times and no summaries, but for totals and metadata, and what decoded calls say of buffers.
fn rest(ranks: u32, addresses: &str) -> (f64, BTreeSet<String>) {
    let config = format!(
        "[window]\nmarker = \"mpi:MPI_Barrier\"\n[trace]\ntiming = \"off\"\naddresses = \"{addresses}\"\n\
         [output]\nrank_summaries = \"off\"\n"
    );
    let job = Job::of(Mpi::OpenMpi, ranks, "stencil2", &["20"]);
    let run = monitor(&job, &config, Form::Run).success();
    let bytes = run.info()["trace_bytes"].clone();
    assert_eq!(number(&bytes["addresses"]) > 0.0, addresses == "on", "{bytes}");
    let own = number(&bytes["aggregates"]) + number(&bytes["metadata"]);
    let buffers =
        run.decode(ranks - 1).into_iter().filter_map(|line| Some(line["args"].get("buf")?.to_string()));
    (number(&bytes["total"]) - own, buffers.collect())
}

/// A rank takes its own processor times, and its addresses unless they are off.
#[test]
fn files_are_flat() {
    for (addresses, most) in [("on", 60.0), ("off", 30.0)] {
        let [few, many] = [4, 16].map(|ranks| rest(ranks, addresses));
        assert!(many.0 < 3000.0 && many.0 - few.0 < 12.0 * most, "{addresses}: {} {}", few.0, many.0);
        let is_known = |buffer: &String| match addresses {
            "on" => buffer.starts_with("\"0x"),
            _ => buffer == "null",
        };
        assert!(!many.1.is_empty() && many.1.iter().all(is_known), "{addresses}: {:?}", many.1);
    }
}

/// The client's decisions have exact means of all ranks' windows, from before anything was rounded.
#[test]
fn rounded_summaries_keep_sums_exact() {
    for (error, rounded) in [("0", false), ("0.001", true)] {
        let config = format!("[window]\nmarker = \"mpi:MPI_Barrier\"\n[output]\nsummary_error = {error}\n");
        let job = Job::of(Mpi::OpenMpi, RANKS, "steady", &[&TURNS.to_string()]);
        let run = monitor(&job, &config, Form::Run).success();
        let rows = run.estimate();
        let decided = run.decisions();
        let mut compared = 0;
        for row in rows.iter().filter(|row| row["scope"] == "window" && row["basis"] == "census") {
            let same = |decision: &&serde_json::Value| {
                decision["window"] == row["window"]
                    && decision["guide"] == row["metric"]
                    && decision["selection"] == "retrospective"
                    && decision["merged_windows"] == 0
                    && decision["late"] == false
            };
            let Some(exact) = decided.iter().find(same).and_then(|decision| decision["mean"].as_f64()) else {
                continue;
            };
            let mean = number(&row["mean"]);
            assert!((mean - exact).abs() <= 1e-9 * exact, "{error}: {row} {exact}");
            compared += 1;
        }
        assert!(compared > TURNS / 6, "{compared}");
        let times = times_in_mpi(&run);
        assert!(times.len() as u64 > TURNS, "{times:?}");
        assert_eq!(times.iter().all(|&time| significant_bits(time) <= 10), rounded, "{error}: {times:?}");
    }
}

/// Time in MPI of every rank in every window, in nanoseconds.
fn times_in_mpi(run: &Monitored) -> Vec<u64> {
    let mut export = Command::new(ampl());
    let tables = run.scratch.path().join("tables");
    export.arg("export").arg(&run.run).args(["--to", "csv", "-o"]).arg(&tables);
    process::run(&mut export, Duration::from_secs(60)).success();
    let text = ampl_tests::run::text_of(&tables.join("summaries.csv"));
    let rows = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    rows.filter(|row| row[2] == "mpi.time").map(|row| row[4].parse().expect("nanoseconds")).collect()
}

/// Bits of `number` from its first one to its last.
fn significant_bits(number: u64) -> u32 {
    number.checked_ilog2().map_or(0, |last| last + 1 - number.trailing_zeros())
}

#[test]
fn what_is_off_takes_no_bytes_under_openmpi() {
    takes_no_bytes(Mpi::OpenMpi);
}

#[test]
fn what_is_off_takes_no_bytes_under_mpich() {
    takes_no_bytes(Mpi::Mpich);
}
