//! Repeated calls take a short way through the agent: what is recorded of them is what the whole way records.

use ampl_tests::job::{Job, Mpi};
use ampl_tests::run::{Form, monitor};
use serde_json::Value;

/// All that is recorded of a run, but for times.
#[derive(Debug, PartialEq)]
struct Recorded {
    functions: Value,
    /// Calls and bytes of each function at each site.
    sites: Vec<Value>,
    /// Calls, gaps and regions of each rank.
    events: Vec<Vec<Value>>,
}

/// Words for values that differ from run to run.
const TIMES: [&str; 4] = ["start_ns", "duration_ns", "from_ns", "until_ns"];

/// `value` without times, addresses of memory, and codes of errors: those of MPICH are told apart by when they were made.
fn timeless(mut value: Value) -> Value {
    match &mut value {
        Value::Object(fields) => {
            fields.retain(|name, _| !TIMES.contains(&name.as_str()));
            fields.entry("error").and_modify(|code| *code = true.into());
            fields.values_mut().for_each(|value| *value = timeless(value.take()));
        }
        Value::Array(elements) => elements.iter_mut().for_each(|value| *value = timeless(value.take())),
        Value::String(text) if text.starts_with("0x") => text.clear(),
        _ => {}
    }
    value
}

/// The calls of `line`, each by itself: how many failed polls are told together depends on what comes between.
fn each(line: Value) -> impl Iterator<Item = Value> {
    let (count, seq) = (line["count"].as_u64().unwrap_or(1), line["seq"].as_u64());
    (0..count).map(move |call| {
        let mut line = line.clone();
        if let (Some(fields), Some(seq)) = (line.as_object_mut(), seq) {
            fields.remove("count");
            fields.insert("seq".to_owned(), (seq + call).into());
        }
        line
    })
}

fn recorded(job: &Job, config: &str) -> Recorded {
    let run = monitor(job, config, Form::Run).success();
    let of_site = |row: &Value| {
        let fields = ["function", "site", "calls", "sent", "received", "ranks", "unreturned"];
        Value::from_iter(fields.map(|field| (field, row[field].clone())))
    };
    let rows = run.query(&["sites"]);
    let mut sites: Vec<Value> = rows.as_array().expect("rows").iter().map(of_site).collect();
    // They come by time.
    sites.sort_by_key(Value::to_string);
    Recorded {
        functions: run.info()["functions"].clone(),
        sites,
        events: (0..job.ranks)
            .map(|rank| run.events(rank).into_iter().map(timeless).flat_map(each).collect())
            .collect(),
    }
}

/// Asserts that `job` is recorded alike on both ways.
fn reads_the_same(job: impl Fn() -> Job, config: &str) {
    let short = recorded(&job(), config);
    let whole = recorded(&job().with("AMPL_WHOLE_WAY", "1"), config);
    assert_eq!(short.functions, whole.functions);
    assert_eq!(short.sites, whole.sites);
    for (rank, (short, whole)) in short.events.iter().zip(&whole.events).enumerate() {
        assert!(short.len() > 100, "rank {rank} has {} events", short.len());
        for (one, other) in short.iter().zip(whole) {
            assert_eq!(one, other, "rank {rank}");
        }
        assert_eq!(short.len(), whole.len(), "rank {rank}");
    }
}

/// The agent must not step down, or what is recorded follows from how busy the machine is.
const ALWAYS: &str = "[agent]\nmax_overhead = 0.9\nmax_structure_overhead = 0.99\n";

#[test]
fn repeated_calls_read_the_same_either_way() {
    for mpi in Mpi::ALL {
        for timing in ["all", "off"] {
            let config =
                format!("[window]\nmarker = \"mpi:MPI_Barrier\"\n[trace]\ntiming = \"{timing}\"\n{ALWAYS}");
            reads_the_same(|| Job::of(mpi, 2, "repeats", &["100"]), &config);
        }
    }
}

#[test]
fn repeated_calls_in_fortran_read_the_same_either_way() {
    let config = format!("[window]\nmarker = \"mpi:MPI_Barrier\"\n[trace]\ntiming = \"all\"\n{ALWAYS}");
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        for (name, flags) in [("repeats_mpi", &[][..]), ("repeats_f08", &["-DF08"])] {
            let program = mpi.compile_fortran_as(name, &["repeats.F90"], flags);
            reads_the_same(|| Job::new(mpi, 2, &program, &["100"]), &config);
        }
    }
}

#[test]
fn policies_and_metrics_of_sites_read_the_same_either_way() {
    let config = format!(
        "[window]\nmarker = \"period:3600s\"\n[trace]\ntiming = \"all\"\n[[site]]\nmatch = \"MPI_Iprobe\"\ntrace = \"off\"\n\
         [[site]]\nmatch = \"MPI_Send\"\ntrace = \"aggregate\"\n{ALWAYS}"
    );
    for mpi in Mpi::ALL {
        reads_the_same(|| Job::of(mpi, 3, "repeats", &["60"]), &config);
    }
}

#[test]
fn the_same_words_with_another_meaning_read_the_same_either_way() {
    let logs = ampl_tests::place::Scratch::new("log");
    let log = logs.path().join("ref");
    for mpi in Mpi::ALL {
        let config = format!("[window]\nmarker = \"period:3600s\"\n[trace]\ntiming = \"all\"\n{ALWAYS}");
        reads_the_same(
            || Job::of(mpi, 2, "changed_meanings", &[log.to_str().expect("a path of ours")]),
            &config,
        );
    }
}
