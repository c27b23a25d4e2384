//! `ampl simulate` as a user meets it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ampl_testkit::synthetic::Synthetic;
use ampl_testkit::{Classes, Kind, table};
use serde_json::Value;

const JOB: &str = "[sampling]\nselection = \"predictive\"\nwindows_per_update = 4\n[window]\nmarker = \"pcontrol\"\n\
                   [[metric]]\nname = \"wall\"\nrole = \"guide\"\n";

struct Said {
    status: i32,
    out: String,
    err: String,
}

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        fs::write(place.at("job.toml"), JOB).unwrap();
        place
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn ampl(&self, population: &Path, args: &[&str]) -> Said {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ampl"));
        command.arg("simulate").arg("-c").arg(self.at("job.toml")).arg("--population").arg(population);
        let output = command.args(args).stdin(Stdio::null()).env_remove("AMPL_CONFIG").output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Said { status: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
    }

    #[track_caller]
    fn json(&self, population: &Path, args: &[&str]) -> Value {
        let said = self.ampl(population, &[args, &["--json"]].concat());
        assert_eq!(said.status, 0, "{}", said.err);
        serde_json::from_str(&said.out).unwrap()
    }

    fn csv(&self, name: &str, text: &str) -> PathBuf {
        fs::write(self.at(name), text).unwrap();
        self.at(name)
    }

    /// Exit status `status` and one message with all of `words` in it.
    #[track_caller]
    fn refused(&self, population: &Path, args: &[&str], status: i32, words: &[&str]) {
        let said = self.ampl(population, args);
        assert_eq!((said.status, said.out.as_str()), (status, ""), "{}", said.err);
        let form = said.err.starts_with("ampl: ") && said.err.contains(" (") && said.err.contains("): ");
        assert!(form && said.err.lines().count() == 1, "{}", said.err);
        words.iter().for_each(|word| assert!(said.err.contains(word), "{word}: {}", said.err));
    }
}

fn population(kind: Kind, ranks: u32, windows: u64) -> String {
    let mut text = Vec::new();
    table::write_csv(&mut text, "wall", table::rows(kind, ranks, windows, 1)).unwrap();
    String::from_utf8(text).unwrap()
}

#[test]
fn numbers_follow_from_the_windows_listed() {
    let place = Place::new();
    let csv = place.csv("p.csv", &population(Kind::LogNormal, 200, 24));
    let entries = place.json(&csv, &["--seeds", "3"]);
    let [entry] = &entries.as_array().unwrap()[..] else { panic!("{entries}") };
    assert_eq!(
        (&entry["group"], &entry["metric"], &entry["event"]),
        (&"all".into(), &"wall".into(), &"*".into())
    );
    let windows = entry["windows"].as_array().unwrap();
    // The first interval is not scored; seeds are the job file's and those after it.
    assert_eq!((windows.len(), entry["first_windows"].as_array().unwrap().len()), (3 * 20, 3 * 4));
    let list = |field: &str| -> Vec<f64> { windows.iter().map(|w| w[field].as_f64().unwrap()).collect() };
    let numbers: Vec<f64> = (4..24).map(f64::from).collect();
    assert_eq!(list("window"), [&numbers[..]; 3].concat());
    assert_eq!((list("seed")[0], list("seed")[20], list("seed")[59]), (42.0, 43.0, 44.0));
    let count = windows.len() as f64;
    let (truth, estimate) = (list("truth"), list("estimate"));
    let covered = truth.iter().zip(&estimate).filter(|(t, e)| (*e - *t).abs() <= 0.08 * *t).count() as f64;
    assert!((entry["coverage_window"].as_f64().unwrap() - covered / count).abs() < 1e-12);
    assert!((0.75..1.0).contains(&(covered / count)), "some windows are missed: {covered}");
    let size = list("size").iter().sum::<f64>() / count;
    assert!((entry["mean_size"].as_f64().unwrap() - size).abs() < 1e-9);
    // cv 1.31 of 200 ranks at 90/8.
    assert!((140.0..200.0).contains(&size), "{size}");
    // Windows of the first interval are decided by what happened in them.
    assert!((20.0..size).contains(&entry["mean_size_with_first"].as_f64().unwrap()));
    assert!((120.0..190.0).contains(&entry["oracle_size"].as_f64().unwrap()));
    assert!(entry["coverage_interval"].as_f64().unwrap() > 0.7);
    // The truth is the mean over all ranks.
    let text = fs::read_to_string(&csv).unwrap();
    let sums = text.lines().filter(|line| line.starts_with("4,")).map(|line| line.split(',').nth(4).unwrap());
    let mean = sums.map(|sum| sum.parse::<f64>().unwrap()).sum::<f64>() / 200.0;
    assert!((truth[0] / mean - 1.0).abs() < 1e-12);
}

#[test]
fn groups_are_divided_while_it_runs() {
    let place = Place::new();
    let mut job = Classes::wait_times().job(500, 3);
    let mut text = "window,rank,metric,count,sum,sum_sq,min,max\n".to_owned();
    for window in 0..40 {
        for (rank, total) in job.next_window().into_iter().enumerate() {
            let y = total.y;
            text += &format!("{window},{rank},wall,1,{y},{},{y},{y}\n", y * y);
        }
    }
    let csv = place.csv("two.csv", &text);
    let group = "[[group]]\nname = \"whole\"\nmembers = \"0-499\"\n";
    let mut sizes = [0.0; 2];
    for (size, stratify) in sizes.iter_mut().zip(["off", "k-medoids"]) {
        fs::write(place.at("job.toml"), format!("{JOB}{group}stratify = \"{stratify}\"\n")).unwrap();
        let found = place.json(&csv, &["--seeds", "2"]);
        let windows = found[0]["windows"].as_array().unwrap();
        let late = windows.iter().filter(|window| window["window"].as_u64().unwrap() >= 28);
        let late: Vec<f64> = late.map(|window| window["size"].as_f64().unwrap()).collect();
        *size = late.iter().sum::<f64>() / late.len() as f64;
        assert!(found[0]["coverage_window"].as_f64().unwrap() >= 0.85, "{found}");
    }
    assert!(sizes[1] <= 0.35 * sizes[0], "{sizes:?}");
    fs::write(place.at("job.toml"), format!("{JOB}{group}stratify = \"k-medoids\"\nsample_size = 9\n"))
        .unwrap();
    place.refused(&csv, &[], 2, &["sample_size", "stratify"]);
}

#[test]
fn formats_and_orders_of_rows_and_columns_do_not_matter() {
    let place = Place::new();
    let text = population(Kind::VaryingCounts, 60, 13);
    let expected = place.json(&place.csv("p.csv", &text), &[]);
    let parquet = place.at("p.parquet");
    let rows = table::rows(Kind::VaryingCounts, 60, 13, 1);
    table::write_parquet(File::create(&parquet).unwrap(), "wall", rows).unwrap();
    assert_eq!(place.json(&parquet, &[]), expected);

    let (header, rows) = text.split_once('\n').unwrap();
    let mut shuffled: Vec<&str> = rows.lines().collect();
    shuffled.sort_by_key(|row| row.bytes().fold(7u32, |hash, byte| hash.wrapping_mul(31) ^ u32::from(byte)));
    let shuffled = format!("{header}\n{}\n", shuffled.join("\n"));
    assert_eq!(place.json(&place.csv("shuffled.csv", &shuffled), &[]), expected);

    // Other columns, their order, spaces, other metrics and events: all of it may be there.
    let more = |line: &str| {
        let [window, rank, metric, rest @ ..] = &line.split(',').collect::<Vec<_>>()[..] else { panic!() };
        let event = if *metric == "metric" { "event" } else { "*" };
        format!("x, {event} ,{metric},{},{rank}, {window}\n", rest.join(","))
    };
    let mut other: String = text.lines().map(more).collect();
    other.push_str("x,MPI_Send,wall,1,5,25,5,5,0,3\nx,,mpi.time,1,NaN,0,0,0,7,2\n");
    let wrong = place.csv("nan.csv", &other);
    place.refused(&wrong, &[], 3, &["sum is not a number", "nan.csv, line 783"]);
    let other = other.replace("1,NaN", "0,NaN");
    assert_eq!(place.json(&place.csv("other.csv", &other), &[]), expected);
}

#[test]
fn rows_that_are_missing_are_of_no_observation() {
    let place = Place::new();
    let text = population(Kind::ZeroInflated, 50, 12);
    let drop = |line: &str| line.starts_with("5,") || line.starts_with("6,") || line.contains(",49,wall");
    let kept: String = text.lines().filter(|line| !drop(line)).map(|line| format!("{line}\n")).collect();
    let said_so: String = text
        .lines()
        .map(|line| match line.split(',').collect::<Vec<_>>()[..] {
            [window, rank, metric, ..] if drop(line) => format!("{window},{rank},{metric},0,,,,\n"),
            _ => format!("{line}\n"),
        })
        .collect();
    let gaps = place.json(&place.csv("gaps.csv", &kept), &["--ranks", "50"]);
    assert_eq!(gaps, place.json(&place.csv("zeros.csv", &said_so), &[]));
    // Windows in which nothing happened cannot be missed.
    let windows: Vec<u64> =
        gaps[0]["windows"].as_array().unwrap().iter().map(|w| w["window"].as_u64().unwrap()).collect();
    assert_eq!(windows, [4, 7, 8, 9, 10, 11]);
    assert_eq!(gaps[0]["population"], 50);
    assert_eq!(place.json(&place.at("gaps.csv"), &[])[0]["population"], 49);
}

#[test]
fn wrong_populations_are_refused_where_they_are_wrong() {
    let place = Place::new();
    let header = "window,rank,metric,count,sum,sum_sq,min,max";
    let of = |name: &str, rows: &str| place.csv(name, &format!("{header}\n0,0,wall,1,2,4,2,2\n{rows}\n"));
    for (rows, words) in [
        ("0,1,wall,1,x,4,2,2", ["sum is 'x'", "line 3"]),
        ("0,1,wall,1,inf,4,2,2", ["sum is inf", "line 3"]),
        ("0,1,wall,-1,2,4,2,2", ["count is -1", "line 3"]),
        ("0,1,wall,1.5,2,4,2,2", ["count is 1.5", "line 3"]),
        ("0,1,wall,1,2,-4,2,2", ["sum_sq is negative", "line 3"]),
        ("0,1,wall,1,2,4,3,2", ["min is larger", "line 3"]),
        ("0,1,wall,1,2,,2,2", ["sum_sq is not a number", "line 3"]),
        ("-1,1,wall,1,2,4,2,2", ["window is -1", "line 3"]),
        ("0,99999999999,wall,1,2,4,2,2", ["rank is 99999999999", "line 3"]),
        ("99999999999,1,wall,1,2,4,2,2", ["windows from 0 to 99999999999", "line 3"]),
        ("0,1,,1,2,4,2,2", ["without a name", "line 3"]),
        ("0,1,wall,1,2", ["5 fields", "line 3"]),
        ("0,1,wall,1,2,4,2,2\n0,0,wall,1,2,4,2,2", ["second row of rank 0 in window 0", "line 4"]),
        ("1,1,wall,1,2,4,2,2\n0,0,wall,1,2,4,2,2", ["second row of rank 0 in window 0", "line 4"]),
    ] {
        place.refused(&of("wrong.csv", rows), &[], 3, &words);
    }
    place.refused(&place.csv("none.csv", ""), &[], 3, &["no column 'window'"]);
    place.refused(&place.csv("rows.csv", header), &[], 3, &["no rows"]);
    place.refused(
        &place.csv("names.csv", "window,rank,value\n0,0,1"),
        &[],
        3,
        &["no column 'metric'", "value"],
    );
    place.refused(&place.csv("cut.parquet", "PAR1 and no more"), &[], 3, &["cannot read the population"]);
    fs::write(place.at("binary.csv"), [0xff, 0xfe, 0, 1, 2, b'\n', 0xff]).unwrap();
    place.refused(&place.at("binary.csv"), &[], 3, &["UTF-8"]);
    place.refused(&place.at("absent.csv"), &[], 4, &["no such population", "absent.csv"]);

    let good = of("good.csv", "0,1,wall,1,2,4,2,2");
    place.refused(&good, &["--ranks", "1"], 2, &["the population has rank 1"]);
    place.refused(&good, &["--set", "window.every=0"], 2, &["window.every"]);
    place.refused(&good, &["--seeds", "0"], 2, &["--seeds"]);
    let group = "group=[{name=\"g\",members=\"0-5\",confidence=0.9,error=0.1}]";
    place.refused(&good, &["--set", "agent.client=5"], 2, &["names rank 5"]);
    let metric = "metric=[{name=\"calls\",role=\"guide\"}]";
    place.refused(&good, &["--set", metric], 2, &["no rows of the guide calls", "wall"]);
    let clipped = place.ampl(&good, &["--set", group]);
    assert!(clipped.status == 0 && clipped.err.contains("group \"g\" has 0-1 of its 0-5"), "{}", clipped.err);
    let said = place.ampl(&good, &[]);
    let told =
        |said: &Said, words: &str| assert!(said.status == 0 && said.err.contains(words), "{}", said.err);
    told(&said, "no window was scored");
    told(&said, "give more than one update interval");
    let nothing = "window,rank,metric,count,sum,sum_sq,min,max\n0,1,wall,0,0,0,0,0\n9,1,wall,0,0,0,0,0\n";
    let nothing = place.csv("nothing.csv", nothing);
    told(&place.ampl(&nothing, &[]), "nobody observed any of the guides");
    told(&place.ampl(&good, &["--set", "sampling.budget='1MB/s'"]), "sampling.budget is left aside");
}

/// A population that can be read only once, from `<(…)` and the like.
#[test]
fn a_population_may_come_through_a_pipe() {
    let place = Place::new();
    let text = population(Kind::Normal, 40, 12);
    let file = place.csv("normal.csv", &text);
    let pipe = place.at("pipe.csv");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
    let writer = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::write(pipe, text).unwrap()
    });
    let through = place.json(&pipe, &[]);
    writer.join().unwrap();
    assert_eq!(through, place.json(&file, &[]));
}

#[test]
fn truncated_parquet_is_damaged() {
    let place = Place::new();
    let mut bytes = Vec::new();
    table::write_parquet(&mut bytes, "wall", table::rows(Kind::Normal, 50, 20, 1)).unwrap();
    for length in [10, bytes.len() / 2, bytes.len() - 1] {
        fs::write(place.at("cut.parquet"), &bytes[..length]).unwrap();
        place.refused(&place.at("cut.parquet"), &[], 3, &["cut.parquet"]);
    }
    // Bytes that are wrong within a page may go unnoticed, but nothing may break.
    let middle = bytes.len() / 2;
    bytes[middle..middle + 64].fill(0xa5);
    fs::write(place.at("bad.parquet"), &bytes).unwrap();
    let said = place.ampl(&place.at("bad.parquet"), &[]);
    assert!([0, 3].contains(&said.status), "{}", said.err);
}

#[test]
fn groups_metrics_and_units_stand_apart() {
    let place = Place::new();
    let groups = "[[group]]\nname = \"few\"\nmembers = \"0-29\"\nsample_size = 10\n\
                  [[group]]\nname = \"abs\"\nmembers = \"30-99\"\nconfidence = 0.9\nerror_abs = 5.0\n\
                  [[metric]]\nname = \"cells\"\nrole = \"guide\"\n[[metric]]\nname = \"papi.X\"\nrole = \"guide\"\n\
                  optional = true\n";
    fs::write(place.at("job.toml"), format!("{JOB}{groups}")).unwrap();
    let wall = population(Kind::Normal, 120, 12);
    let cells: String =
        wall.lines().skip(1).map(|line| format!("{}\n", line.replace("wall", "cells"))).collect();
    let entries = place.json(&place.csv("p.csv", &format!("{wall}{cells}")), &[]);
    let names: Vec<(&str, &str)> = entries
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| (entry["group"].as_str().unwrap(), entry["metric"].as_str().unwrap()))
        .collect();
    let pair = |group| [(group, "wall"), (group, "cells")];
    assert_eq!(names, [pair("few"), pair("abs"), pair("all")].concat());
    assert_eq!((&entries[0]["coverage_window"], &entries[0]["oracle_size"]), (&Value::Null, &Value::Null));
    assert_eq!((&entries[0]["mean_size"], &entries[0]["population"]), (&10.0.into(), &30.into()));
    assert_eq!((&entries[2]["error"], &entries[2]["error_abs"]), (&Value::Null, &5.0.into()));
    assert!(entries[2]["oracle_size"].as_f64().unwrap() > 30.0, "30 at 5 of 70 ranks");
    assert_eq!(entries[4]["error"], 0.08);
}

#[test]
fn people_get_a_table_and_the_memory_it_took() {
    let place = Place::new();
    let said = place.ampl(&place.csv("p.csv", &population(Kind::Bimodal, 64, 16)), &[]);
    assert_eq!(said.status, 0, "{}", said.err);
    for word in ["oracle", "wall", "± 8 % at 90 %", "64", "after the first interval"] {
        assert!(said.out.contains(word), "{word}: {}", said.out);
    }
    assert!(said.err.contains("16 windows of 64 ranks, 1 seed in ") && said.err.contains("peak memory "));
}

#[test]
fn what_export_writes_is_a_population() {
    let place = Place::new();
    Synthetic::default().write_run(&place.at("run"));
    for format in ["csv", "parquet"] {
        let export = Command::new(env!("CARGO_BIN_EXE_ampl"))
            .args(["export", "--to", format])
            .arg(place.at("run"))
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert!(export.success());
    }
    fs::write(place.at("job.toml"), JOB.replace("\"wall\"", "\"mpi.time\"")).unwrap();
    let [csv, parquet] = ["csv", "parquet"].map(|format| place.json(&place.at("run").join(format), &[]));
    assert_eq!(csv, parquet);
    assert_eq!((&csv[0]["population"], csv[0]["windows"].as_array().unwrap().len()), (&8.into(), 8));
}

/// An interval that covers the mean of a sample's ranks says nothing of all ranks.
#[test]
fn a_sample_is_not_taken_for_a_population() {
    let place = Place::new();
    fs::write(place.at("job.toml"), JOB.replace("\"wall\"", "\"mpi.time\"")).unwrap();
    for (run, config) in [
        ("stored", "[output]\nrank_summaries = 'sample'\n"),
        ("told", "[sampling]\nsummaries = 'sampled'\nselection = 'predictive'\n"),
    ] {
        let config = format!("{config}[[metric]]\nname = 'mpi.time'\nrole = 'guide'\n");
        Synthetic { config, ..Synthetic::default() }.write_run(&place.at(run));
        for format in ["csv", "parquet"] {
            let export = Command::new(env!("CARGO_BIN_EXE_ampl"))
                .args(["export", "--to", format])
                .arg(place.at(run))
                .output()
                .unwrap();
            let said = String::from_utf8(export.stderr).unwrap();
            assert!(export.status.success() && said.contains("only sampled windows were stored"), "{said}");
            let population = place.at(run).join(format);
            let words = ["a sample's windows only", "rank_summaries = \"all\"", format];
            place.refused(&population, &[], 4, &words);
        }
    }
    // A population without a basis: every rank has one observation of a whole window.
    let text = population(Kind::Normal, 50, 12);
    let sample = |line: &&str| !line.starts_with("7,1") && !line.starts_with("9,2");
    let part: String = text.lines().filter(sample).map(|line| format!("{line}\n")).collect();
    let missing = text.lines().count() - part.lines().count();
    fs::write(place.at("job.toml"), JOB).unwrap();
    let said = place.ampl(&place.csv("part.csv", &part), &[]);
    let words = format!("{missing} of 600 rank-windows have no row of wall (");
    assert!(said.status == 0 && said.err.contains(&words), "{}", said.err);
    assert!(said.err.contains("coverage over it is not coverage over the population"), "{}", said.err);
    let said = place.ampl(&place.csv("whole.csv", &text), &[]);
    assert!(said.status == 0 && !said.err.contains("have no row"), "{}", said.err);
}

#[test]
fn plan_says_what_other_bounds_would_have_kept() {
    let place = Place::new();
    let job = Synthetic { ranks: 64, windows: 24, ..Synthetic::default() };
    job.write_run(&place.at("run"));
    let run = place.at("run");
    let plan = |args: &[&str]| {
        let output =
            Command::new(env!("CARGO_BIN_EXE_ampl")).arg("plan").arg(&run).args(args).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    };
    let (status, out, err) = plan(&["--json"]);
    assert_eq!(status, 0, "{err}");
    let rows: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((rows.as_array().unwrap().len(), &rows[0]["confidence"]), (4, &Value::Null));
    assert_eq!(
        (&rows[0]["rank_windows"], &rows[0]["groups"][0]["population"]),
        (&(64 * 24).into(), &64.into())
    );
    let of = |row: usize, field: &str| rows[row][field].as_f64().unwrap();
    // Fractions may be percentages.
    let [as_percent, as_number] =
        [["5%", "90%"], ["0.05", "0.9"]].map(|[e, c]| plan(&["--error", e, "--confidence", c, "--json"]));
    assert!(as_percent.0 == 0 && as_percent == as_number, "{as_percent:?} {as_number:?}");
    // The row of the run has what it kept, not a simulation of its bound: 4 ranks of most windows.
    let info = Command::new(env!("CARGO_BIN_EXE_ampl")).arg("info").arg(&run).arg("--json").output().unwrap();
    let info: Value = serde_json::from_slice(&info.stdout).unwrap();
    assert_eq!(of(0, "kept_windows"), info["kept_windows"].as_f64().unwrap());
    assert_eq!(of(0, "bytes"), info["trace_bytes"]["total"].as_f64().unwrap());
    assert_eq!((of(0, "kept_windows"), &rows[0]["groups"][0]["mean_size"]), (336.0, &4.0.into()));
    // Tighter bounds keep more and take more bytes.
    let kept = [1, 2, 3].map(|row| of(row, "kept_windows"));
    assert!(kept.is_sorted() && kept[0] < kept[2], "{kept:?}");
    assert!(
        of(1, "bytes") <= of(2, "bytes")
            && of(1, "bytes") < of(3, "bytes")
            && of(3, "kept_windows") <= of(3, "rank_windows")
    );
    // So few are too few.
    let covered = |row: usize| rows[row]["groups"][0]["coverage_window"].as_f64().unwrap();
    assert!(0.2 < covered(0) && covered(0) < covered(1) && covered(1) > 0.7, "{} {}", covered(0), covered(1));
    let (_, out, _) = plan(&["--error", "0.01,0.5", "--json"]);
    let rows: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&rows[1]["error"], &rows[1]["confidence"]), (&0.5.into(), &Value::Null));
    let (_, out, _) = plan(&[]);
    for word in ["as in the run", "± 3 % at 99 %", "64", "kB"] {
        assert!(out.contains(word), "{word}: {out}");
    }
    let (status, _, err) = plan(&["--error", "8"]);
    assert!(status == 2 && err.contains("between 0 and 1"), "{err}");
    assert_eq!(plan(&[]).2, "");
    let budget = Synthetic { config: "[sampling]\nbudget = \"1kB/s\"\n".into(), ..job.clone() };
    fs::remove_dir_all(&run).unwrap();
    budget.write_run(&run);
    assert!(plan(&[]).2.contains("without the run's budget ("), "{}", plan(&[]).2);
    let sampled = Synthetic { config: "[output]\nrank_summaries = \"sample\"\n".into(), ..job };
    fs::remove_dir_all(&run).unwrap();
    sampled.write_run(&run);
    let (status, _, err) = plan(&[]);
    assert!(status == 4 && err.contains("not all ranks' windows were stored"), "{err}");
}

#[test]
fn units_and_counts_do_not_change_sizes() {
    let place = Place::new();
    for (index, kind) in Kind::ALL.into_iter().enumerate() {
        let text = population(kind, 150, 16);
        let scaled = |values: f64, counts: u64| -> String {
            let line = |line: &str| match line.split(',').collect::<Vec<_>>()[..] {
                [window, rank, "wall", count, sum, sum_sq, min, max] => {
                    let times = |text: &str, factor: f64| text.parse::<f64>().unwrap() * factor;
                    let count = count.parse::<u64>().unwrap() * counts;
                    let [sum, min, max] = [sum, min, max].map(|text| times(text, values));
                    format!(
                        "{window},{rank},wall,{count},{sum},{},{min},{max}\n",
                        times(sum_sq, values * values)
                    )
                }
                _ => format!("{line}\n"),
            };
            text.lines().map(line).collect()
        };
        let methods: [&[&str]; 3] = [
            &[],
            &["--set", "sampling.summaries=\"sampled\""],
            &["--set", "sampling.summaries=\"sampled\"", "--set", "sampling.sizing=\"ampl-2008\""],
        ];
        let sizes = |text: &str| -> Vec<u64> {
            let entries = place.json(&place.csv("p.csv", text), methods[index % 3]);
            entries[0]["windows"].as_array().unwrap().iter().map(|w| w["size"].as_u64().unwrap()).collect()
        };
        let expected = sizes(&text);
        assert_eq!(sizes(&scaled(1048576.0, 1)), expected, "{kind:?}");
        assert_eq!(sizes(&scaled(1.0, 7)), expected, "{kind:?}");
        let near = sizes(&scaled(1e6, 1));
        assert!(near.iter().zip(&expected).all(|(a, b)| a.abs_diff(*b) <= 1), "{kind:?}: {near:?}");
    }
}
