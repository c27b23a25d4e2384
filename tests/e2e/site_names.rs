//! Call sites that the job file names by `file:line` keep that name wherever they are shown or exported.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::{ampl, home};
use ampl_tests::process;
use ampl_tests::run::{Form, Monitored, monitor, number, parse, text_of};
use serde_json::Value;

const RANKS: u32 = 3;
const TURNS: u64 = 40;

/// `steady.c:LINE` of the first line of that program with `call`.
fn site(call: &str) -> String {
    let source = text_of(&home().join("programs/steady.c"));
    let line = source.lines().position(|line| line.contains(call)).expect("a call of the program");
    format!("steady.c:{}", line + 1)
}

/// Marker, guide and policy use lines; `sendrecv` is the guide's, on which all calls of `MPI_Sendrecv` are made.
fn config(sendrecv: &str) -> String {
    let barrier = site("MPI_Barrier(");
    format!(
        "[sampling]\nwindows_per_update = 5\nfloor = 2\n[window]\nmarker = \"mpi:MPI_Barrier@{barrier}\"\n\
         [[metric]]\nname = \"mpi.time\"\nevent = \"{sendrecv}\"\nrole = \"guide\"\n\
         [[metric]]\nname = \"mpi.time\"\nevent = \"MPI_Sendrecv\"\n\
         [[site]]\nmatch = \"{sendrecv}\"\nerror = 0.5\nconfidence = 0.8\n"
    )
}

fn ask(words: &[&str], run: &Path, more: &[&str]) -> String {
    process::run(Command::new(ampl()).args(words).arg(run).args(more), Duration::from_secs(60))
        .success()
        .stdout
}

/// The simulation of the population at `path` by the job file `job`.
fn simulated(job: &Path, path: &Path) -> Value {
    let mut command = Command::new(ampl());
    command.args(["simulate", "--json", "-c"]).arg(job).arg("--population").arg(path);
    parse(&process::run(&mut command, Duration::from_secs(60)).success().stdout)
}

fn events(rows: &[Value]) -> Vec<&str> {
    let mut events: Vec<&str> = rows.iter().filter_map(|row| row["event"].as_str()).collect();
    events.sort_unstable();
    events.dedup();
    events
}

#[test]
fn lines_keep_their_names_under_run() {
    lines_keep_their_names(Form::Run);
}

#[test]
fn lines_keep_their_names_under_exec() {
    lines_keep_their_names(Form::Exec);
}

fn lines_keep_their_names(form: Form) {
    let line = site("MPI_Sendrecv(");
    let job = Job::of(Mpi::OpenMpi, RANKS, "steady", &[&TURNS.to_string()]);
    let run = monitor(&job, &config(&line), form).success();
    assert_eq!(run.info()["windows"], TURNS + 1, "the marker's line is met");

    let rows = run.estimate();
    assert_eq!(events(&rows), ["*", "MPI_Sendrecv", &line]);
    let of =
        |event: &str| rows.iter().find(|row| row["scope"] == "run" && row["event"] == event).expect("a row");
    assert_eq!(number(&of(&line)["mean"]), number(&of("MPI_Sendrecv")["mean"]), "they are the same calls");
    assert_eq!(of(&line)["confidence"], 0.8, "the policy of the line is for its metrics");
    let decisions = run.decisions();
    assert_eq!(events(&decisions), [&line]);
    assert!(decisions.iter().any(|decision| decision["error_required"] == 0.5), "{decisions:?}");

    let guide = format!("mpi.time of {line}");
    let marker = format!("each ends at mpi:MPI_Barrier@{}", site("MPI_Barrier("));
    for (command, name) in [("info", &marker), ("estimate", &guide), ("decisions", &guide)] {
        let said = ask(&[command], &run.run, &[]);
        assert!(said.contains(name.as_str()) && !said.contains("-0x"), "{command}: {said}");
    }
    exports_join(&run, &line);
    settings_are_a_job(&run, &line);
}

/// Asserts that the settings in `run.toml` are a job file for the same program: with the names, and for simulations
/// of its windows.
fn settings_are_a_job(run: &Monitored, line: &str) {
    let text = text_of(&run.run.join("run.toml"));
    let (_, settings) = text.split_once("# Resolved settings.\n").expect("settings");
    let document: toml_edit::DocumentMut = settings.parse().expect("TOML");
    assert_eq!(document["metric"][0]["event"].as_str(), Some(line));
    assert_eq!(document["site"][0]["match"].as_str(), Some(line));
    let marker = document["window"]["marker"].as_str();
    assert_eq!(marker, Some(format!("mpi:MPI_Barrier@{}", site("MPI_Barrier(")).as_str()));
    // And which code it was.
    assert!(settings.contains("# steady+0x"), "{settings}");
    let job = run.scratch.write("settings.toml", settings);
    let again = Job::of(Mpi::OpenMpi, RANKS, "steady", &[&TURNS.to_string()]);
    let again = monitor(&again, settings, Form::Run).success();
    assert_eq!(events(&again.estimate()), ["*", "MPI_Sendrecv", line]);
    assert_eq!(simulated(&job, &run.run.join("parquet"))[0]["event"], line);
}

/// Asserts that the run's job file joins its exports, and that the numbers do not depend on the name.
fn exports_join(run: &Monitored, line: &str) {
    let job = run.scratch.path().join("job.toml");
    ask(&["export"], &run.run, &["--to", "csv"]);
    ask(&["export"], &run.run, &["--to", "parquet"]);
    let from_csv = simulated(&job, &run.run.join("csv/summaries.csv"));
    assert_eq!(from_csv.as_array().map(Vec::len), Some(1), "{from_csv}");
    assert_eq!(from_csv[0]["event"], line);
    assert!(
        from_csv[0]["windows"].as_array().is_some_and(|windows| windows.len() as u64 > TURNS / 2),
        "{from_csv}"
    );
    assert_eq!(from_csv, simulated(&job, &run.run.join("parquet")));

    let offset = "steady+0x10-0x20";
    let renamed = text_of(&run.run.join("csv/summaries.csv")).replace(line, offset);
    let (renamed, job) =
        (run.scratch.write("renamed.csv", &renamed), run.scratch.write("renamed.toml", &config(offset)));
    let expected = from_csv.to_string().replace(line, offset);
    assert_eq!(simulated(&job, &renamed).to_string(), expected);

    let planned = parse(&ask(&["plan"], &run.run, &["--json"]));
    // The first row is what the run kept, the next one its bounds simulated.
    assert_eq!(planned[1]["groups"][0]["mean_size"], from_csv[0]["mean_size"], "{planned}");
    let strata = ask(&["strata"], &run.run, &[]);
    assert!(strata.contains(&format!("windows of mpi.time@{line};")), "{strata}");
}

/// A site that the job file names by its offset in a module keeps that name.
#[test]
fn offsets_stay_offsets() {
    let program = Mpi::OpenMpi.compile_as("steady_bare", "steady.c", &["-g0"]);
    let job = Job::new(Mpi::OpenMpi, RANKS, program, &[&TURNS.to_string()]);
    let run = monitor(&job, "", Form::Run).success();
    let calls = run.decode(0);
    let call = calls.iter().find(|call| call["fn"] == "MPI_Sendrecv").expect("a call");
    let place = call["site"].as_str().expect("a site");
    assert!(place.starts_with("steady_bare+0x"), "{place}");
    let config = format!("[[metric]]\nname = \"calls\"\nevent = \"{place}\"\n");
    let run = monitor(&job, &config, Form::Run).success();
    let rows = run.estimate();
    assert_eq!(events(&rows), ["*", place]);
    assert!(rows.iter().any(|row| row["event"] == place && row["mean"] == 1.0), "{rows:?}");
}
