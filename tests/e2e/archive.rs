//! The record that a job leaves in an archive, and the archive read by others.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::{Scratch, ampl, program};
use ampl_tests::process;
use ampl_tests::python;
use ampl_tests::run::{Form, Monitored, monitor, parse, text_of};
use serde_json::Value;

/// A job that an archive in `place` gets a record of.
fn run(place: &Path, name: &str) -> Monitored {
    let job = Job::of(Mpi::OpenMpi, 2, "steady", &["30"]).with("JOB_ID", "4711");
    monitor(&job, &format!("[output]\nrecord = '{}'\n", place.join(name).display()), Form::Run)
}

/// Files that end in `.json` below `place`.
fn records(place: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in place.read_dir().into_iter().flatten().flatten() {
        match entry.path() {
            path if path.is_dir() => found.extend(records(&path)),
            path => found.push(path),
        }
    }
    found.sort();
    found
}

fn ask(words: &[&str], place: &Path) -> process::Finished {
    process::run(Command::new(ampl()).args(words).current_dir(place), Duration::from_secs(60)).success()
}

#[test]
fn a_job_leaves_one_record() {
    let scratch = Scratch::new("archive");
    let place = scratch.path().join("jobs");
    let runs: Vec<Monitored> = (0..2).map(|_| run(&place, "{user}/{app}/{jobid}.json").success()).collect();
    let files = records(&place);
    let names: Vec<&str> = files.iter().map(|file| file.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(names, ["4711-2.json", "4711.json"]);
    assert!(files[1].parent().unwrap().ends_with("steady"), "{files:?}");
    let text = text_of(&files[1]);
    assert!(text.len() <= 8 << 10, "{} bytes", text.len());
    let record = parse(&text);
    let info = runs[0].info();
    assert_eq!((&record["schema"], &record["ranks"], &record["job"]), (&1.into(), &2.into(), &"4711".into()));
    assert_eq!((&record["calls"], &record["app"]), (&info["calls"], &"steady".into()), "{record}");
    assert_eq!(record["completeness"]["complete"], true, "{record}");
    let rows = runs[0].efficiency();
    let whole = rows.iter().find(|row| row["window"].is_null()).expect("the run's row");
    for number in ["parallel", "load_balance", "communication", "coverage", "basis"] {
        assert_eq!(record["efficiency"][number], whole[number], "{record}");
    }
    let sites = record["sites"].as_array().expect("a list");
    assert!((1..=10).contains(&sites.len()) && sites[0]["function"].is_string(), "{record}");
    assert!(record["metadata"].as_array().is_some_and(|facts| !facts.is_empty()), "{record}");

    // A run that is there already gets the same record.
    let other = scratch.path().join("later.json");
    ask(&["record", runs[0].run.to_str().unwrap(), "--to", other.to_str().unwrap()], scratch.path());
    let later = parse(&text_of(&other));
    assert_eq!((&later["key"], &later["sites"]), (&record["key"], &record["sites"]));

    let like = runs[1].run.to_str().unwrap();
    let listed = parse(&ask(&["history", "jobs", "--like", like, "--json"], scratch.path()).stdout);
    let listed: Vec<&Value> = listed.as_array().expect("rows").iter().collect();
    assert_eq!(listed.len(), 2, "{listed:?}");
    assert!(listed.iter().all(|row| row["key"] == record["key"] && row["complete"] == true), "{listed:?}");

    // By month, for readers that know partitions by their names.
    ask(&["history", "jobs", "--parquet", "-o", "tables"], scratch.path());
    let mut reader = Command::new(program(&["python3"]));
    reader.env("PYTHONPATH", python::readers()).current_dir(scratch.path()).arg("-c").arg(
        "import dask.dataframe, duckdb, json\n\
         duck = duckdb.sql(\"select app, month, count(*), sum(calls)::bigint from \
         read_parquet('tables/*/*.parquet', hive_partitioning = true) group by all\").fetchall()\n\
         dask = dask.dataframe.read_parquet('tables', engine='pyarrow')\n\
         dask = dask.groupby(['app', 'month'], observed=True)['calls'].agg(['count', 'sum']).compute()\n\
         dask = [[*key, int(count), int(total)] for key, (count, total) in zip(dask.index, dask.values)]\n\
         print(json.dumps({'duckdb': duck, 'dask': dask}, default=str))",
    );
    let both = parse(&process::run(&mut reader, Duration::from_secs(120)).success().stdout);
    assert_eq!(both["duckdb"], both["dask"], "{both}");
    let found = &both["duckdb"];
    let rows = found.as_array().expect("rows");
    assert!(
        rows.iter().all(|row| row[0] == "steady" && row[1].as_str().is_some_and(|month| month.len() >= 7))
    );
    let sum = |column: usize| rows.iter().map(|row| row[column].as_u64().expect("a number")).sum::<u64>();
    assert_eq!((sum(2), Value::from(sum(3) / 2)), (2, info["calls"].clone()), "{found}");
}

#[test]
fn a_record_that_cannot_be_written_is_one_message() {
    let scratch = Scratch::new("archive-full");
    let file = scratch.write("file", "");
    let run = run(&file, "{jobid}.json").success();
    let said = &run.finished.stderr;
    let told: Vec<&str> = said.lines().filter(|line| line.contains("record of the run")).collect();
    assert!(
        told.len() == 1 && told[0].contains("was not written") && told[0].contains("4711.json"),
        "{said}"
    );
    assert_eq!(run.info()["complete"], true);
}
