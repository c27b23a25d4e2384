//! Replays of recorded runs: tracing a replay gives the original back.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::{ampl, dist};
use ampl_tests::process;
use ampl_tests::run::{Form, Monitored, monitor};
use serde_json::{Value, json};

/// However much of the time it takes: nothing is left out.
const EVERYTHING: &str = "[trace]\ntiming = \"off\"\n[agent]\nmax_overhead = \"99%\"\n";

fn replayer() -> PathBuf {
    let path = dist().join("bin/ampl-replay");
    assert!(path.is_file(), "no {}: run `cargo xtask setup`, then `cargo xtask dist`", path.display());
    path
}

/// A replay of `run` under `mpi`, as a job.
fn replay(mpi: Mpi, ranks: u32, run: &Path, options: &[&str]) -> Job {
    let run = run.to_string_lossy().into_owned();
    Job::new(mpi, ranks, replayer(), &[&[&run[..]], options].concat())
}

/// Arguments that are places in memory, or belong to the machine: a replay has its own.
const PLACES: [&str; 21] = [
    "argc",
    "argv",
    "attribute_val",
    "base",
    "baseptr",
    "buf",
    "buffer",
    "buffer_addr",
    "compare_addr",
    "errorcode",
    "extra_state",
    "filename",
    "inbuf",
    "inoutbuf",
    "location",
    "origin_addr",
    "outbuf",
    "recvbuf",
    "result_addr",
    "sendbuf",
    "status",
];

/// Calls of a rank in a form that only depends on what it communicates.
#[derive(Default)]
struct Canonical {
    calls: Vec<Value>,
    /// Objects by their name in the trace: kind, and number in the order of making.
    made: HashMap<String, String>,
    /// Receives from any source that are not completed: request, call.
    wild: HashMap<String, usize>,
}

/// Kind of the object that `value` names.
fn object(value: &Value) -> Option<&str> {
    let (kind, number) = value.as_str()?.split_once(':')?;
    number.starts_with(|first: char| first.is_ascii_digit()).then_some(kind)
}

impl Canonical {
    fn renamed(&self, value: &Value) -> Value {
        match value {
            Value::Array(values) => values.iter().map(|value| self.renamed(value)).collect(),
            Value::String(name) => json!(self.made.get(name).unwrap_or(name)),
            value => value.clone(),
        }
    }

    fn take(&mut self, call: &Value) {
        let (function, args, out) = (call["fn"].as_str().unwrap(), &call["args"], &call["out"]);
        let polls = ["_Test", "_test", "probe", "MPI_Parrived"].iter().any(|part| function.contains(part));
        let asks = ["MPI_Test_cancelled", "MPI_Comm_test_inter"].contains(&function);
        if polls && !asks && out["flag"] == false || out["outcount"] == 0 {
            return;
        }
        // Keys of attributes are numbers that the library makes up.
        let is_place =
            |name: &str| PLACES.contains(&name) || name.ends_with("keyval") || name.ends_with("_fn");
        let erased = |name: &str, value: &Value| match name {
            // A class that the program has added has no name.
            "errorclass" => value.is_i64(),
            name => is_place(name) && value != "MPI_IN_PLACE",
        };
        let mut known: serde_json::Map<String, Value> = args
            .as_object()
            .unwrap()
            .iter()
            .map(|(name, value)| {
                let value = if erased(name, value) { json!("place") } else { self.renamed(value) };
                (name.clone(), value)
            })
            .collect();
        let made = out.get("request").filter(|made| made.is_string() && args.get("request") != Some(made));
        if args["source"] == "MPI_ANY_SOURCE" {
            if let Some(source) = out["status"].get("source") {
                known["source"] = source.clone();
            } else if let Some(made) = made.and_then(Value::as_str).filter(|_| !function.ends_with("_init")) {
                self.wild.insert(made.to_owned(), self.calls.len());
            }
        }
        self.resolve(args, out);
        for (name, value) in out.as_object().unwrap() {
            // A name is used again after an object's end.
            if let Some(kind) = object(value)
                && args.get(name) != Some(value)
            {
                let label = format!("{kind} of call {}", self.calls.len());
                self.made.insert(value.as_str().unwrap().to_owned(), label);
            }
        }
        // Statuses and indices; what a local call says of the machine is no matter.
        let told = ["status", "array_of_statuses", "index", "array_of_indices", "outcount"];
        let told: serde_json::Map<String, Value> = told
            .into_iter()
            .filter_map(|name| Some((name.to_owned(), self.renamed(out.get(name)?))))
            .collect();
        self.calls.push(json!({"fn": function, "args": known, "out": told}));
    }

    /// Sources of receives that are completed.
    fn resolve(&mut self, args: &Value, out: &Value) {
        let list = |value: &Value| match value {
            Value::Array(values) => values.clone(),
            Value::Null => Vec::new(),
            value => vec![value.clone()],
        };
        let requests = [list(&args["request"]), list(&args["array_of_requests"])].concat();
        let statuses = [list(&out["status"]), list(&out["array_of_statuses"])].concat();
        let indices = [list(&out["index"]), list(&out["array_of_indices"])].concat();
        let all = || (0..requests.len()).collect::<Vec<_>>();
        let positions = match indices.is_empty() {
            true => all(),
            false => indices.iter().filter_map(|at| Some(at.as_u64()? as usize)).collect(),
        };
        for (position, status) in positions.into_iter().zip(&statuses) {
            let name = requests.get(position).and_then(Value::as_str);
            if let Some(call) = name.and_then(|name| self.wild.remove(name))
                && status["source"].is_u64()
            {
                self.calls[call]["args"]["source"] = status["source"].clone();
            }
        }
    }
}

/// Communication of `rank` in `run`.
fn canonical(run: &Path, rank: u32) -> Vec<Value> {
    let mut decode = Command::new(ampl());
    decode.arg("decode").arg(run).args(["--rank", &rank.to_string(), "--json"]);
    let text = process::run(&mut decode, Duration::from_secs(60)).success().stdout;
    let mut found = Canonical::default();
    text.lines().for_each(|line| found.take(&serde_json::from_str(line).unwrap()));
    let mut calls = found.calls;
    for at in 0..calls.len() {
        let request =
            calls[at]["args"]["request"].as_str().and_then(|name| name.strip_prefix("request of call "));
        let made: Option<usize> = request.and_then(|number| number.parse().ok());
        // MPICH 4.0 leaves its status as the memory was.
        if made.is_some_and(|made| calls[made]["fn"] == "MPI_Isendrecv_replace") {
            calls[at]["out"]["status"] = Value::Null;
        }
    }
    calls
}

/// Asserts that a replay of `run` under `mpi`, itself recorded, is the run again.
fn comes_back(run: &Monitored, mpi: Mpi, ranks: u32) {
    let again = monitor(&replay(mpi, ranks, &run.run, &[]), EVERYTHING, Form::Run).success();
    let mut compare = Command::new(replayer());
    compare.arg("--compare").args([&again.run, &run.run]);
    let compared = process::run(&mut compare, Duration::from_secs(60));
    for rank in 0..ranks {
        let (recorded, replayed) = (canonical(&run.run, rank), canonical(&again.run, rank));
        assert!(!recorded.is_empty());
        let differ = recorded.iter().zip(&replayed).position(|(one, other)| one != other);
        if let Some(at) = differ {
            panic!("{mpi:?} rank {rank}, call {at}:\n{}\n{}", recorded[at], replayed[at]);
        }
        assert_eq!(recorded.len(), replayed.len(), "{mpi:?} rank {rank}");
    }
    let text = compared.success().stdout;
    assert_eq!(text.matches(" equal\n").count() as u32, ranks, "{mpi:?}: {text}");
}

#[test]
fn messages_and_collectives_come_back_under_either_mpi() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let run = monitor(&Job::of(mpi, 4, "p2p_coll", &[]), EVERYTHING, Form::Run).success();
        comes_back(&run, Mpi::OpenMpi, 4);
        comes_back(&run, Mpi::Mpich, 4);
    }
}

#[test]
fn objects_of_every_kind_come_back() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        for program in ["objects_data", "objects_more"] {
            let run = monitor(&Job::of(mpi, 2, program, &[]), EVERYTHING, Form::Run).success();
            comes_back(&run, mpi, 2);
        }
    }
}

#[test]
fn numbers_that_mean_something_else_to_the_other_mpi_come_back() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let run = monitor(&Job::of(mpi, 4, "own_numbers", &[]), EVERYTHING, Form::Run).success();
        comes_back(&run, Mpi::OpenMpi, 4);
        comes_back(&run, Mpi::Mpich, 4);
    }
}

#[test]
fn null_types_where_mpi_reads_none_come_back() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let run = monitor(&Job::of(mpi, 4, "significant", &[]), EVERYTHING, Form::Run).success();
        comes_back(&run, mpi, 4);
    }
}

#[test]
fn what_cannot_be_replayed_is_refused_with_the_reason() {
    let run = monitor(&Job::of(Mpi::OpenMpi, 2, "steady", &["60"]), EVERYTHING, Form::Run).success();
    let refused = |job: Job, reason: &str| {
        let finished = job.plain();
        assert!(!finished.status.success(), "{reason}: {finished:?}");
        assert!(finished.stderr.contains(reason), "{reason}: {}", finished.stderr);
    };
    refused(replay(Mpi::OpenMpi, 3, &run.run, &[]), "the run has 2 ranks and 3 were started");
    // The replayer of another MPI than the launcher's is a world of its own in each process.
    refused(replay(Mpi::OpenMpi, 2, &run.run, &["--mpi", "mpich"]), "the launcher belongs to another MPI");
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let run = monitor(&Job::of(mpi, 2, "attached", &[]), EVERYTHING, Form::Run).success();
        refused(replay(mpi, 2, &run.run, &[]), "MPI_Put reaches into a window of MPI_Win_create_dynamic");
    }
}

#[test]
fn every_call_of_a_run_that_left_without_finalize_is_replayed() {
    let run = monitor(&Job::of(Mpi::OpenMpi, 3, "steady", &["20", "exit"]), EVERYTHING, Form::Run);
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let refused = replay(mpi, 3, &run.run, &[]).plain();
        assert!(!refused.status.success(), "{refused:?}");
        assert!(refused.stderr.contains("ranks 0-2 did not reach MPI_Finalize"), "{}", refused.stderr);
        let whole = report(&replay(mpi, 3, &run.run, &["--skip-gaps", "--json"]));
        assert_eq!(calls(&whole, "MPI_Sendrecv"), [60; 2], "{mpi:?}: {whole}");
        assert!(whole["notes"].to_string().contains("did not reach MPI_Finalize"), "{whole}");
    }
}

fn report(job: &Job) -> Value {
    let finished = job.plain();
    assert!(finished.status.success(), "{}", finished.stderr);
    serde_json::from_str(&finished.stdout).unwrap_or_else(|error| panic!("{error}: {}", finished.stdout))
}

fn calls(report: &Value, function: &str) -> [u64; 2] {
    let rows = report["functions"].as_array().unwrap();
    let row = rows.iter().find(|row| row["function"] == function).expect("it is called");
    ["recorded", "replayed"].map(|when| row[when]["calls"].as_u64().unwrap())
}

#[test]
fn fewer_steps_stand_for_all() {
    let run = monitor(&Job::of(Mpi::OpenMpi, 2, "steady", &["60"]), EVERYTHING, Form::Run).success();
    let whole = report(&replay(Mpi::OpenMpi, 2, &run.run, &["--json"]));
    let [recorded, replayed] = calls(&whole, "MPI_Sendrecv");
    assert!(recorded >= 40 && recorded == replayed, "{whole}");
    assert!(whole["predicted_ns"].is_null(), "{whole}");
    let options = ["--json", "--steps", "8", "--timing", "recorded", "--scale-compute", "0.1"];
    let short = report(&replay(Mpi::OpenMpi, 2, &run.run, &options));
    assert_eq!(calls(&short, "MPI_Sendrecv"), [recorded, 2 * 8], "{short}");
    let predicted = short["predicted_ns"].as_u64().expect("there is a prediction");
    assert!(predicted > short["replayed_ns"].as_u64().unwrap(), "{short}");
    assert_eq!(short["notes"].as_array().unwrap().len(), 2, "{short}");
}

#[test]
fn queries_within_functions_of_the_program_are_no_gap() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let run = monitor(&Job::of(mpi, 2, "callbacks", &[]), EVERYTHING, Form::Run).success();
        let whole = report(&replay(mpi, 2, &run.run, &["--json"]));
        for function in ["MPI_Allreduce", "MPI_Grequest_start", "MPI_Wait"] {
            assert_eq!(calls(&whole, function), [12; 2], "{mpi:?}: {whole}");
        }
        assert!(whole["notes"].to_string().contains("queries within functions of the program"), "{whole}");
        // Which ranks take part in a communicator's end is not said.
        let run = monitor(&Job::of(mpi, 2, "callbacks", &["frees"]), EVERYTHING, Form::Run).success();
        let refused = replay(mpi, 2, &run.run, &[]).plain();
        assert!(!refused.status.success() && refused.stderr.contains("MPI_Comm_free"), "{refused:?}");
    }
}
