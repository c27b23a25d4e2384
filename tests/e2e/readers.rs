//! Exports, read by software from elsewhere.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::{ampl, home, program};
use ampl_tests::process;
use ampl_tests::python;
use ampl_tests::run::{Form, Monitored, monitor, parse};
use serde_json::Value;

/// Long enough for a busy machine to import everything.
const LONG: Duration = Duration::from_secs(300);

fn run(mpi: Mpi, steps: &str, config: &str) -> Monitored {
    monitor(&Job::of(mpi, 4, "stencil2", &[steps]), config, Form::Run).success()
}

fn export(run: &Path, words: &[&str]) {
    process::run(Command::new(ampl()).arg("export").arg(run).args(words), LONG).success();
}

fn python(script: &str) -> Command {
    let mut command = Command::new(program(&["python3"]));
    command
        .arg(home().join("python").join(script))
        .env("PYTHONPATH", python::readers())
        .env("AMPL_COMMAND", ampl());
    command
}

#[test]
fn tables_and_timelines_are_read_by_others() {
    let all = "[trace]\ntiming = 'all'\n";
    let runs: BTreeMap<&str, Monitored> = BTreeMap::from([
        ("first", run(Mpi::OpenMpi, "20", all)),
        ("second", run(Mpi::Mpich, "30", all)),
        ("third", run(Mpi::OpenMpi, "25", "")),
    ]);
    let place = runs["first"].scratch.path();
    let together = place.join("runs");
    std::fs::create_dir(&together).unwrap();
    for (name, run) in &runs {
        std::os::unix::fs::symlink(&run.run, together.join(name)).unwrap();
    }
    let (data, timeline) = (place.join("data"), place.join("timeline"));
    export(&together, &["--to", "parquet", "-o", data.to_str().unwrap()]);
    export(&runs["first"].run, &["--to", "perfetto", "-o", timeline.to_str().unwrap()]);
    let found = process::run(python("readers.py").arg(&data).arg(&timeline), LONG).success().stdout;
    let found = parse(&found);

    // The same counts by every reader as by ampl itself.
    let mut all: BTreeMap<String, u64> = BTreeMap::new();
    for (name, run) in &runs {
        let functions = run.info()["functions"].clone();
        for reader in ["duckdb", "polars", "pandas"] {
            assert_eq!(found["frames"][reader][name], functions, "{reader}, {name}");
        }
        for (function, calls) in functions.as_object().unwrap() {
            *all.entry(function.clone()).or_default() += calls.as_u64().unwrap();
        }
    }
    assert_eq!(found["frames"]["dask"]["all"], serde_json::to_value(&all).unwrap());

    // Every timed call is a slice of its length.
    let slices = found["perfetto"]["slices"].as_object().unwrap();
    let of_first = |key: &String| key.strip_prefix("first ").map(str::to_owned);
    let timed: BTreeMap<String, &Value> = found["timed"]
        .as_object()
        .unwrap()
        .iter()
        .filter_map(|(key, value)| Some((of_first(key)?, value)))
        .collect();
    assert!(timed.len() > 4, "{timed:?}");
    for (function, value) in &timed {
        assert_eq!(&&slices[function], value, "{function}");
    }
    assert_eq!(slices.len(), timed.len(), "{slices:?}");
    let ranks = found["perfetto"]["ranks"].as_array().unwrap();
    // Every message is an arrow, from its sender to its receiver.
    let messages = found["messages"].as_array().unwrap();
    let flows = found["perfetto"]["flows"].as_object().unwrap();
    assert!(messages.len() >= 8 && messages.len() == flows.len(), "{messages:?} {flows:?}");
    let name = |rank: &Value| ranks[rank.as_u64().unwrap() as usize].as_str().unwrap();
    for message in messages {
        assert_eq!(flows[&format!("{} {}", name(&message[0]), name(&message[1]))], message[2], "{message}");
    }
    let number = |index: usize| ranks[index].as_str().unwrap().starts_with(&format!("rank {index} ("));
    assert!(ranks.len() == 4 && (0..4).all(number), "{ranks:?}");
}

#[test]
fn the_python_package_gives_frames_and_its_notebook_runs() {
    let run = run(Mpi::OpenMpi, "200", "");
    let own = home().join("../integrations/python");
    let mut tests = Command::new(program(&["python3"]));
    tests.args(["-m", "pytest", "-q", "-p", "no:cacheprovider"]).arg(own.join("tests"));
    tests.env("PYTHONPATH", python::readers()).env("PYTHONDONTWRITEBYTECODE", "1");
    tests.env("AMPL_COMMAND", ampl()).env("AMPL_RUN", &run.run);
    process::run(&mut tests, LONG).success();
    let mut notebook = python("notebook.py");
    notebook.arg(own.join("examples/first_look.ipynb")).env("AMPL_RUN", &run.run);
    assert_eq!(process::run(&mut notebook, LONG).success().stdout.trim(), "3");
}

#[test]
fn an_otf2_archive_is_read_by_its_own_software() {
    let run = run(Mpi::Mpich, "15", "[trace]\ntiming = 'all'\n");
    let place = run.scratch.path();
    let (archive, tables) = (place.join("archive"), place.join("tables"));
    export(&run.run, &["--to", "otf2", "-o", archive.to_str().unwrap()]);
    export(&run.run, &["--to", "parquet", "-o", tables.to_str().unwrap()]);
    let anchor = archive.join("traces.otf2");
    let printed = process::run(Command::new("otf2-print").arg(&anchor), LONG).success().stdout;
    let count = |word: &str| printed.lines().filter(|line| line.starts_with(word)).count();

    // Debian's module is that of the system's Python.
    let mut reader = Command::new("/usr/bin/python3");
    reader.arg(home().join("python/otf2_archive.py")).arg(&anchor);
    let found = parse(&process::run(&mut reader, LONG).success().stdout);
    let functions = run.info()["functions"].clone();
    let all: u64 = functions.as_object().unwrap().values().map(|calls| calls.as_u64().unwrap()).sum();
    assert_eq!(count("ENTER ") as u64, all);
    for (function, calls) in functions.as_object().unwrap() {
        // MPI_Finalize does not return before the trace is written.
        let left = if function == "MPI_Finalize" { 0 } else { calls.as_u64().unwrap() };
        assert_eq!(found["functions"][function][0].as_u64().unwrap_or(0), left, "{function}");
    }
    assert_eq!(found["sends"], found["receives"]);
    let messages =
        found["sends"].as_object().unwrap().values().map(|each| each.as_u64().unwrap()).sum::<u64>();
    assert_eq!((count("MPI_SEND ") as u64, count("MPI_RECV ") as u64), (messages, messages));
    assert!(messages > 0 && found["switches"] == 0, "{found}");

    // Times by function, too.
    let mut times = Command::new(program(&["python3"]));
    times.env("PYTHONPATH", python::readers()).arg("-c").arg(format!(
        "import duckdb, json; print(json.dumps(dict(duckdb.sql(\"select function, sum(duration_ns)::bigint from '{}' where \
         duration_ns is not null group by all\").fetchall())))",
        tables.join("calls.parquet").display()
    ));
    let times = parse(&process::run(&mut times, LONG).success().stdout);
    for (function, nanos) in times.as_object().unwrap() {
        assert_eq!(&found["functions"][function][1], nanos, "{function}");
    }
}

#[test]
fn stretches_without_times_are_marked_in_otf2() {
    let job = Job::of(Mpi::OpenMpi, 4, "phased", &["20", "60", "20", "4000"]);
    let run = monitor(
        &job,
        "[[group]]\nname = 'few'\nmembers = '0-3'\nsample_size = 1\n[window]\nmarker = 'period:20ms'\n",
        Form::Run,
    );
    let run = run.success();
    let archive = run.scratch.path().join("archive");
    export(&run.run, &["--to", "otf2", "-o", archive.to_str().unwrap()]);
    let mut reader = Command::new("/usr/bin/python3");
    reader.arg(home().join("python/otf2_archive.py")).arg(archive.join("traces.otf2"));
    let found = parse(&process::run(&mut reader, LONG).success().stdout);
    assert!(found["switches"].as_u64().unwrap() >= 2, "{found}");
    // A message has both of its ends, or none.
    assert_eq!(found["sends"], found["receives"]);
}
