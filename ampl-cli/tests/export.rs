//! `ampl export` as a user meets it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use ampl_analysis::estimate::{Scope, rows as estimates};
use ampl_core::stats::Basis;
use ampl_testkit::synthetic::{Synthetic, WINDOW_NS};
use csv::Reader;
use parquet::file::reader::{FileReader, SerializedFileReader};

fn job() -> Synthetic {
    Synthetic { ranks: 6, windows: 5, size: 3, ..Synthetic::default() }
}

/// Exit status and messages of `ampl export` of `run`.
fn export(run: &Path, words: &[&str]) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ampl"));
    let output = command.arg("export").arg(run).args(words).stdin(Stdio::null()).output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[track_caller]
fn done(run: &Path, words: &[&str]) -> String {
    let (status, said) = export(run, words);
    assert_eq!(status, 0, "{said}");
    said
}

/// Asserts the exit status and a part of the message.
#[track_caller]
fn refused(run: &Path, words: &[&str], status: i32, what: &str) {
    let (found, said) = export(run, words);
    assert_eq!(found, status, "{said}");
    assert!(said.contains(what), "{said}");
}

#[test]
fn a_copy_has_everything_and_an_anonymous_one_no_names() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    job().write_run(&run);
    let of = |file: &str| ampl_reader::directory::read(&run.join(file)).unwrap();
    let whole = of("trace.ampl");
    done(&run, &["--to", "ampl"]);
    let copy = of("copy.ampl");
    assert_eq!((&copy.run, &copy.ranks, &copy.totals), (&whole.run, &whole.ranks, &whole.totals));
    assert_eq!((&copy.decisions, copy.structure.encode()), (&whole.decisions, whole.structure.encode()));
    done(&run, &["--to", "ampl", "--anonymous"]);
    let nameless = of("anonymous.ampl");
    assert_eq!(nameless.run.command.first().map(String::as_str), Some("program1"));
    assert!(nameless.ranks.iter().all(|rank| rank.process.host.starts_with("host")));
    assert_eq!(nameless.ranks[5].windows, whole.ranks[5].windows);
    refused(&run, &["--to", "ampl", "--anonymous"], 2, "the file exists");
    refused(&run, &["--to", "csv", "--anonymous"], 2, "csv has names in it");
    refused(&run, &["--to", "ampl", "--ranks", "1"], 2, "ampl is of a whole run");
}

/// Fields of every line behind the names.
fn lines(file: &Path) -> Vec<Vec<String>> {
    let mut reader = Reader::from_path(file).unwrap();
    assert_eq!(reader.headers().unwrap(), COLUMN_NAMES.split(", ").collect::<Vec<_>>());
    reader.records().map(|record| record.unwrap().iter().map(str::to_owned).collect()).collect()
}

/// The contract's columns for `ampl simulate`, and the event.
const COLUMN_NAMES: &str = "window, rank, metric, count, sum, sum_sq, min, max, event";

#[test]
fn sums_over_the_file_are_the_census() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    let config = "[[metric]]\nname = 'mpi.time'\nrole = 'guide'\n";
    let job = Synthetic { config: config.into(), ..job() };
    job.write_run(&run);
    done(&run, &["--to", "csv"]);
    let mut totals: BTreeMap<(u64, String), (f64, f64)> = BTreeMap::new();
    for line in lines(&run.join("csv/summaries.csv")) {
        let number = |index: usize| line[index].parse::<f64>().unwrap();
        let (count, sum) = totals.entry((line[0].parse().unwrap(), line[2].clone())).or_default();
        assert_eq!((number(5), number(6), number(7)), (number(4) * number(4), number(4), number(4)));
        *count += number(3);
        *sum += number(4);
    }
    let (trace, plan) = (job.trace(), job.plan());
    let census = estimates(&trace, &plan);
    let census = census.iter().filter(|row| row.scope == Scope::Window && row.basis == Basis::Census);
    let mut compared = 0;
    for row in census {
        let (count, sum) = totals[&(row.window.unwrap(), row.metric.clone())];
        assert!((sum / count - row.mean.unwrap()).abs() <= 1e-12 * sum, "{row:?}");
        assert_eq!(count, 6.0);
        compared += 1;
    }
    assert_eq!((compared, totals.len()), (5 * 6, 5 * 6));
}

#[test]
fn ranks_and_times_are_selected() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    job().write_run(&run);
    let seconds = |windows: u64| format!("{}ns", windows * WINDOW_NS);
    let to = seconds(3);
    let (from, place) = (seconds(1), dir.path().join("some"));
    let place = place.to_str().unwrap();
    let some = ["--to", &to, "--to", "csv", "--from", &from, "--ranks", "2,4-5", "-o", place];
    done(&run, &some);
    let lines = lines(&dir.path().join("some/summaries.csv"));
    let ranks: std::collections::BTreeSet<&str> = lines.iter().map(|line| line[1].as_str()).collect();
    let windows: std::collections::BTreeSet<&str> = lines.iter().map(|line| line[0].as_str()).collect();
    assert_eq!((ranks.into_iter().collect::<Vec<_>>(), windows.len()), (vec!["2", "4", "5"], 2));
    assert_eq!(lines.len(), 3 * 2 * 6);
    // Nothing is written over.
    refused(&run, &some, 2, "the file exists");
    let left: Vec<_> = fs::read_dir(dir.path().join("some")).unwrap().collect();
    assert_eq!(left.len(), 1);
}

#[test]
fn a_time_at_which_nothing_was_recorded_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    job().write_run(&run);
    refused(&run, &["--to", "csv", "--from", "3600s"], 4, "the last window ended at");
    assert!(!run.join("csv").exists());
}

#[test]
fn options_that_make_no_sense_are_told() {
    // Nothing is opened before.
    let run = Path::new("none");
    for (words, what) in [
        (&["vampir"][..], "'vampir' is not a format of this version"),
        (&["csv", "parquet"], "one format"),
        (&["csv", "1s", "2s"], "at most one time"),
        (&["20s"], "not a format"),
    ] {
        let words: Vec<&str> = words.iter().flat_map(|&word| ["--to", word]).collect();
        refused(run, &words, 2, what);
    }
    for words in [&["--from", "soon"][..], &["--from", "2s", "--until", "1s"], &["--ranks", "3-1"]] {
        refused(run, &[&["--to", "csv"], words].concat(), 2, "ampl: ");
    }
}

#[test]
fn windows_that_were_not_stored_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let of = |what: &str| {
        let run = dir.path().join(what);
        let config = format!("[output]\nrank_summaries = '{what}'\n");
        Synthetic { config, ..job() }.write_run(&run);
        export(&run, &["--to", "csv"])
    };
    let (status, said) = of("all");
    assert!(status == 0 && !said.contains("were stored"), "{said}");
    let (status, said) = of("sample");
    assert!(status == 0 && said.contains("only sampled windows were stored"), "{said}");
    let (status, said) = of("off");
    assert!(status == 4 && said.contains("no rank's windows were stored"), "{said}");
}

/// Names of the columns, and rows as text.
fn table(file: &Path) -> (String, Vec<Vec<String>>) {
    let reader = SerializedFileReader::new(File::open(file).unwrap()).unwrap();
    let columns = reader.metadata().file_metadata().schema_descr().columns().to_vec();
    let names: Vec<&str> = columns.iter().map(|column| column.name()).collect();
    let shown = |row: parquet::record::Row| {
        row.get_column_iter().map(|(_, field)| field.to_string()).collect::<Vec<_>>()
    };
    let rows = reader.get_row_iter(None).unwrap().map(|row| shown(row.unwrap())).collect();
    (names.join(", "), rows)
}

#[test]
fn parquet_has_all_tables_in_one_directory() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    job().write_run(&run);
    done(&run, &["--to", "parquet"]);
    let tables = run.join("parquet");
    let mut names: Vec<_> = fs::read_dir(&tables).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(
        names,
        [
            "calls.parquet",
            "communicators.parquet",
            "estimates.parquet",
            "functions.parquet",
            "messages.parquet",
            "sites.parquet",
            "strata.parquet",
            "summaries.parquet"
        ]
    );
    let (columns, calls) = table(&tables.join("calls.parquet"));
    assert_eq!(
        columns,
        "rank, thread, seq, window, function, site, start_ns, duration_ns, weight, peer, tag, bytes, comm, count"
    );
    // Three lines a window of each rank, and the end.
    assert_eq!(calls.len(), 6 * (3 * 5 + 1));
    let sends: Vec<_> = calls.iter().filter(|row| row[4] == "\"MPI_Send\"").collect();
    assert_eq!(sends.len(), 6 * 5);
    for send in &sends {
        let rank: u32 = send[0].parse().unwrap();
        let next = ((rank + 1) % 6).to_string();
        assert_eq!(send[9..], [next, "7".into(), "32".into(), "\"world\"".into(), "1".into()]);
        assert_eq!((send[3] == "null", send[3] == "null"), (send[6] == "null", send[8] == "null"));
    }
    // Weights of stored calls stand for all.
    let timed = |row: &&&Vec<String>| row[8] != "null";
    assert!(sends.iter().filter(timed).all(|row| row[8].parse::<f64>().unwrap() >= 1.0));
    assert!(sends.iter().filter(timed).count() > 0);
    let (columns, rows) = table(&tables.join("estimates.parquet"));
    assert!(
        columns.starts_with("window, group, stratum, metric, event, population, kept, mean"),
        "{columns}"
    );
    assert_eq!(rows.len(), estimates(&job().trace(), &job().plan()).len());
    let (columns, strata) = table(&tables.join("strata.parquet"));
    assert_eq!(columns, "group, stratum, name, medoid, ranks, population, size, gain");
    let ranks: u64 = strata.iter().map(|row| row[5].parse::<u64>().unwrap()).sum();
    assert_eq!(ranks, 6);
    // The directory and the file in it are a population.
    for path in [tables.clone(), tables.join("summaries.parquet")] {
        assert!(ampl_export::population::Population::open(&path).unwrap().row_count().unwrap() > 0);
    }
}

#[test]
fn every_table_is_cut_where_that_makes_sense() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    job().write_run(&run);
    let (until, place) = (format!("{}ns", 2 * WINDOW_NS), dir.path().join("some/where"));
    let place = place.to_str().unwrap();
    let some = ["--to", "parquet", "--until", &until, "--ranks", "1-2", "-o", place];
    done(&run, &some);
    let of = |name: &str| table(&dir.path().join("some/where").join(name)).1;
    assert_eq!(of("summaries.parquet").len(), 2 * 2 * 6);
    let calls = of("calls.parquet");
    assert!(
        calls
            .iter()
            .all(|row| ["1", "2"].contains(&row[0].as_str()) && ["0", "1"].contains(&row[3].as_str()))
    );
    assert!(!calls.is_empty());
    assert!(of("estimates.parquet").iter().all(|row| ["0", "1"].contains(&row[0].as_str())));
    // One end is enough.
    refused(&run, &[&some[..], &["--to", "9s"]].concat(), 2, "given twice");
}

#[test]
fn a_directory_of_runs_is_a_data_set() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["a=1", "b"] {
        job().write_run(&dir.path().join(name));
    }
    fs::create_dir(dir.path().join("other")).unwrap();
    done(dir.path(), &["--to", "parquet"]);
    let mut names: Vec<_> = fs::read_dir(dir.path().join("parquet"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["run=a_1", "run=b"]);
    assert!(dir.path().join("parquet/run=b/functions.parquet").exists());
    refused(dir.path(), &["--to", "perfetto"], 2, "name one run");
}

#[test]
fn a_timeline_has_every_timed_call() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    job().write_run(&run);
    done(&run, &["--to", "parquet"]);
    done(&run, &["--to", "perfetto"]);
    let timed = table(&run.join("parquet/calls.parquet")).1.iter().filter(|row| row[6] != "null").count();
    let file = fs::read(run.join("trace.perfetto-trace")).unwrap();
    let packets = fields(&file);
    let events: Vec<u64> = packets
        .iter()
        .flat_map(|(_, _, packet)| fields(packet))
        .filter(|(number, _, _)| *number == 11)
        .filter_map(|(_, _, event)| fields(event).iter().find(|field| field.0 == 9).map(|field| field.1))
        .collect();
    let of = |kind: u64| events.iter().filter(|&&each| each == kind).count();
    let kept = job().trace().kept_windows();
    assert!(timed > 0 && kept < 6 * 5, "{timed} calls, {kept} windows");
    assert!(of(1) > timed, "stretches without times are slices of their own");
    let unfinished = table(&run.join("parquet/calls.parquet")).1;
    let unfinished = unfinished.iter().filter(|row| row[6] != "null" && row[7] == "null").count();
    assert_eq!(of(1), of(2) + unfinished);
    assert_eq!(of(4), 6 * 5 * 6, "each metric of each window");
    // It is not written over, and nothing is left beside it.
    refused(&run, &["--to", "perfetto"], 2, "the file exists");
}

#[test]
fn a_timeline_without_times_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    Synthetic { config: "[trace]\ntiming = 'off'\n".into(), ..job() }.write_run(&run);
    let before = fs::read_dir(&run).unwrap().count();
    refused(&run, &["--to", "perfetto"], 4, "stored time");
    assert_eq!(fs::read_dir(&run).unwrap().count(), before);
}

/// Fields of a message of Protocol Buffers: number, value, bytes.
fn fields(mut bytes: &[u8]) -> Vec<(u64, u64, &[u8])> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let (&byte, rest) = bytes.split_first().unwrap();
            *bytes = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        value
    }
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let (value, length) = match key & 7 {
            0 => (varint(&mut bytes), 0),
            1 => (0, 8),
            2 => (0, varint(&mut bytes) as usize),
            wire => panic!("{wire}"),
        };
        let (inner, rest) = bytes.split_at(length);
        bytes = rest;
        found.push((key >> 3, value, inner));
    }
    found
}

/// Forms of an export that this job has, and the last part of their places.
const FORMS: [(&str, &str); 4] =
    [("csv", "tables"), ("parquet", "tables"), ("perfetto", "timeline"), ("ampl", "copy.ampl")];

/// Names in a directory.
fn names(place: &Path) -> Vec<String> {
    fs::read_dir(place).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn where_it_cannot_be_written_the_place_is_named_and_nothing_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    Synthetic { ranks: 4, windows: 200, ..job() }.write_run(&run);
    let out = dir.path().join("out");
    fs::create_dir(&out).unwrap();
    for (form, name) in FORMS {
        let target = out.join(name);
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -f 1; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_ampl"), "export"]);
        let full = command.arg(&run).args(["--to", form, "-o"]).arg(&target).output().unwrap();
        let said = String::from_utf8(full.stderr).unwrap();
        assert_eq!(full.status.code(), Some(1), "{form}: {full:?} {said}", full = full.status);
        assert!(said.contains("File too large") && said.contains(target.to_str().unwrap()), "{form}: {said}");
        assert!(said.contains("raise 'ulimit -f'"), "{form}: {said}");
        assert_eq!(names(&out), [""; 0], "{form}");
        let nowhere = ["--to", form, "-o", "/proc/self/none/here"];
        refused(&run, &nowhere, 1, "(/proc/self/none/here): name a directory that you may write with -o");
    }
}

#[test]
fn a_signal_leaves_nothing_half_written() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    Synthetic { ranks: 16, windows: 1000, ..job() }.write_run(&run);
    for (number, (form, name)) in FORMS.into_iter().enumerate() {
        let out = dir.path().join(form);
        fs::create_dir(&out).unwrap();
        let target = out.join(name);
        let mut command = Command::new(env!("CARGO_BIN_EXE_ampl"));
        command.arg("export").arg(&run).args(["--to", form, "-o"]).arg(&target);
        let mut export = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        // Until it writes, or has written.
        while names(&out).is_empty() && export.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        let signal = ["-INT", "-TERM", "-HUP"][number % 3];
        Command::new("kill").arg(signal).arg(export.id().to_string()).status().unwrap();
        let ended = export.wait_with_output().unwrap();
        let said = String::from_utf8(ended.stderr).unwrap();
        // It may have been faster.
        let expected = if ended.status.success() { vec![name.to_owned()] } else { Vec::new() };
        assert_eq!(names(&out), expected, "{form}: {said}");
        let told = said.contains(&format!("interrupted (SIG{})", &signal[1..]));
        assert_eq!(told, !ended.status.success(), "{form}: {said}");
        assert!(told || target.exists());
    }
}
