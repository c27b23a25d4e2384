//! `info`, `decode`, `estimate` and `decisions` as a user meets them, on runs made up word by word.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ampl_testkit::equal_ranks;
use ampl_testkit::synthetic::Synthetic;
use ampl_trace::format::{Writer, rank_parts};
use serde_json::Value;

struct Said {
    status: i32,
    out: String,
    err: String,
}

fn ampl(args: &[&str]) -> Said {
    let output = Command::new(env!("CARGO_BIN_EXE_ampl")).args(args).stdin(Stdio::null()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Said { status: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
}

fn json(args: &[&str]) -> Value {
    let said = ampl(args);
    assert_eq!(said.status, 0, "{}", said.err);
    serde_json::from_str(&said.out).unwrap()
}

/// Exit status `status` and one message with `what` in it.
#[track_caller]
fn refused(args: &[&str], status: i32, what: &str) {
    let said = ampl(args);
    assert_eq!((said.status, said.out.as_str()), (status, ""), "{}", said.err);
    assert!(
        said.err.starts_with("ampl: ") && said.err.contains(" (") && said.err.contains("): "),
        "{}",
        said.err
    );
    assert!(said.err.contains(what), "{}", said.err);
}

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A run directory with the trace of `job`, as an argument.
    fn run(&self, job: &Synthetic) -> String {
        job.write_run(&self.at("run"));
        text(&self.at("run"))
    }
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

#[test]
fn info_counts_every_call() {
    let place = Place::new();
    let run = place.run(&Synthetic::default());
    let info = json(&["info", &run, "--json"]);
    assert_eq!(info["ranks"], 8);
    assert_eq!(info["complete"], true);
    assert_eq!(info["windows"], 12);
    assert_eq!(info["kept_windows"], 8 * 4 + 2 * 4 * 4);
    let functions = serde_json::json!({
        "MPI_Allreduce": 96, "MPI_Finalize": 8, "MPI_Init": 8, "MPI_Iprobe": 288, "MPI_Send": 96, "MPI_Wtime": 40,
    });
    assert_eq!((&info["functions"], &info["calls"]), (&functions, &536.into()));
    assert!(info["mpi_library"].as_str().unwrap().starts_with("Open MPI v4.1.4"));
    let bytes = |name: &str| info["trace_bytes"][name].as_u64().unwrap();
    assert_eq!(bytes("total"), fs::metadata(place.at("run/trace.ampl")).unwrap().len());
    let parts = info["trace_bytes"].as_object().unwrap().iter().filter(|(name, _)| *name != "total");
    assert_eq!(bytes("total"), parts.map(|(_, bytes)| bytes.as_u64().unwrap()).sum::<u64>());
    assert_eq!(info["overhead"]["agent_ns"], 96_000);
    // The file itself is a run too. A finding's next command names the run as it was named.
    let same = |mut info: Value| {
        info.as_object_mut().unwrap().remove("verdict").expect("the verdict is there");
        info
    };
    let of_file = json(&["info", &text(&place.at("run/trace.ampl")), "--json"]);
    assert_eq!(same(of_file), same(info));
    let summary = ampl(&["info", &run]);
    assert!(summary.status == 0 && summary.out.contains("load balance"), "{}", summary.out);
}

/// Most memory of a process with private data of a hundred thousand ranks, KiB.
const MOST_MEMORY: &str = "97000";

#[test]
fn a_hundred_thousand_equal_ranks_take_less_than_100_megabytes() {
    let place = Place::new();
    equal_ranks::write_run(100_000, &place.at("run"));
    let size = fs::metadata(place.at("run/trace.ampl")).unwrap().len();
    assert!(size < 4 * 100_000, "{size} bytes");
    let limited = |most: &str, args: &[&str]| {
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -d \"$0\" && exec \"$@\"", most, env!("CARGO_BIN_EXE_ampl")]);
        command.args(args).stdin(Stdio::null()).output().unwrap()
    };
    let run = text(&place.at("run"));
    for args in [&["info", &run][..], &["info", &run, "--json"], &["decode", &run, "--rank", "99999"]] {
        let output = limited(MOST_MEMORY, args);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {}", said.lines().next().unwrap_or_default());
    }
    // The limit is one.
    assert!(!limited("30000", &["info", &run]).status.success());
}

#[test]
fn a_dead_job_s_journals_are_a_run() {
    let place = Place::new();
    let job = Synthetic { killed: vec![3], ..Synthetic::default() };
    let (run, journals) = (text(&place.at("run")), place.at("node/journals"));
    job.write_journals(&place.at("run"), &journals, 0..8);
    let info = json(&["info", &run, "--json"]);
    assert_eq!((&info["complete"], &info["ranks"], &info["windows"]), (&false.into(), &8.into(), &12.into()));
    assert_eq!(info["functions"]["MPI_Finalize"], 7);
    // As large as the trace file would have been.
    let merged = Place::new();
    let whole = json(&["info", &merged.run(&job), "--json"]);
    for part in ["structure", "timing", "aggregates", "summaries", "addresses", "gaps", "metadata"] {
        assert_eq!(info["trace_bytes"][part], whole["trace_bytes"][part], "{part}");
    }
    // The same calls, with and without the merge.
    let decode = |run: &str| ampl(&["decode", run, "--rank", "3"]).out;
    assert_eq!(decode(&run), decode(&text(&merged.at("run"))));
    assert!(!decode(&run).is_empty());
    // A directory of journals will do.
    assert_eq!(json(&["info", &text(&journals), "--json"])["functions"], info["functions"]);
}

#[test]
fn some_journals_are_better_than_none() {
    let place = Place::new();
    let run = text(&place.at("run"));
    // Without the client's journal, run.toml has the metrics.
    Synthetic::default().write_journals(&place.at("run"), &place.at("run/journal"), [2, 5]);
    fs::write(place.at("run/journal/rank-000006.journal"), "not a journal").unwrap();
    let said = ampl(&["info", &run, "--json"]);
    let info: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((&info["ranks"], &info["complete"]), (&8.into(), &false.into()));
    assert!(said.err.contains("rank-000006.journal"), "{}", said.err);
    let said = ampl(&["estimate", &run, "--json", "--scope", "run"]);
    let rows: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(said.status, 3, "what could be read is there, but it is not all");
    assert_eq!(
        (&rows[0]["population"], &rows[0]["kept"], &rows[0]["guaranteed"]),
        (&8.into(), &2.into(), &false.into())
    );
    refused_after_damage(&["decode", &run, "--rank", "0"], 3, "left nothing");
    fs::remove_dir_all(place.at("run/journal")).unwrap();
    refused(&["info", &run], 4, "can only be read on that node");
}

/// As [`refused`], after other messages.
#[track_caller]
fn refused_after_damage(args: &[&str], status: i32, what: &str) {
    let said = ampl(args);
    assert_eq!((said.status, said.out.as_str()), (status, ""), "{}", said.err);
    assert!(said.err.contains(what), "{}", said.err);
}

#[test]
fn what_is_no_run_is_refused() {
    let place = Place::new();
    let empty = text(place.0.path());
    refused(&["info", &text(&place.at("nowhere"))], 4, "nowhere");
    refused(&["info", &empty], 4, "neither a trace nor journals");
    let file = place.at("trace.ampl");
    fs::write(&file, "something else entirely").unwrap();
    refused(&["info", &text(&file)], 3, "not an ampl file");
    refused(&["estimate", &empty], 3, "not an ampl file");
    fs::write(&file, "short").unwrap();
    refused(&["decisions", &empty], 3, "shorter than a header");
}

#[test]
fn a_cut_trace_is_read_as_far_as_it_goes() {
    let place = Place::new();
    let job = Synthetic::default();
    let run = place.run(&job);
    let file = job.trace_file();
    fs::write(place.at("run/trace.ampl"), &file[..file.len() / 2]).unwrap();
    let said = ampl(&["info", &run, "--json"]);
    assert_eq!(said.status, 0);
    assert!(said.err.contains("missing or damaged"), "{}", said.err);
    let info: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((&info["complete"], &info["ranks"]), (&false.into(), &8.into()));
    for command in ["estimate", "decisions", "efficiency"] {
        let said = ampl(&[command, &run, "--json"]);
        assert_eq!(said.status, 3, "{command}: {}", said.err);
        let rows: Value = serde_json::from_str(&said.out).unwrap();
        assert!(rows.is_array(), "{command}: what is left is printed");
    }
    let out = text(&place.at("csv"));
    for args in [
        vec!["decode", "--rank", "0"],
        vec!["plan"],
        vec!["strata"],
        vec!["export", "--to", "csv", "-o", &out],
    ] {
        let said = ampl(&[&[args[0], &run], &args[1..]].concat());
        assert_eq!(said.status, 3, "{args:?}: {}", said.err);
        assert!(!said.err.contains("was recorded"), "it is lost: {}", said.err);
    }
    refused(&["recover", &run], 4, "no journals are left");
    // The merge had not removed the journals yet: they have more data.
    job.write_journals(&place.at("run"), &place.at("run/journal"), 0..8);
    let said = ampl(&["info", &run, "--json"]);
    let info: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((&info["calls"], said.err.as_str()), (&536.into(), ""));
}

#[test]
fn decode_prints_a_line_per_call() {
    let place = Place::new();
    let job = Synthetic::default();
    let run = place.run(&job);
    let lines = |rank: &str| -> Vec<Value> {
        let said = ampl(&["decode", &run, "--rank", rank, "--json"]);
        assert_eq!((said.status, said.err.as_str()), (0, ""));
        said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let mut calls = lines("1");
    // MPI_Init was counted, and has no record.
    let gap = calls.remove(0);
    assert_eq!((&gap["seq"], &gap["gap"]["functions"]), (&0.into(), &serde_json::json!({"MPI_Init": 1})));
    assert_eq!(
        calls[0],
        serde_json::json!({
            "seq": 1, "fn": "MPI_Send",
            "args": {"buf": "0x7000", "count": 4, "datatype": "MPI_DOUBLE", "dest": 2, "tag": 7, "comm": "world"},
            "out": {}, "window": 0, "start_ns": 10, "duration_ns": 500, "site": "app+0x1140",
        })
    );
    assert_eq!((&calls[1]["fn"], &calls[1]["count"]), (&"MPI_Iprobe".into(), &3.into()));
    assert_eq!(
        calls[1]["args"],
        serde_json::json!({"source": "MPI_ANY_SOURCE", "tag": "MPI_ANY_TAG", "comm": "world"})
    );
    assert_eq!(calls[1]["out"]["flag"], false);
    // Three polls are three calls.
    assert_eq!(calls[2]["seq"], 5);
    let numbers: Vec<u64> = calls.iter().map(|call| call["seq"].as_u64().unwrap()).collect();
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]));
    // Calls of windows that were not kept are there, without their times.
    assert_eq!(calls.len(), 3 * 12 + 1);
    let timed = calls[..calls.len() - 1].iter().filter(|call| !call["window"].is_null());
    assert!((3..3 * 12).contains(&timed.clone().count()));
    for call in timed {
        assert_eq!((call["seq"].as_u64().unwrap() - 1) / 5, call["window"].as_u64().unwrap());
        assert!(call["start_ns"].is_number() && call["duration_ns"].is_number(), "{call}");
    }
    let untimed = calls.iter().filter(|call| call["window"].is_null());
    assert!(untimed.clone().all(|call| call["start_ns"].is_null() && call["duration_ns"].is_null()));
    let text = ampl(&["decode", &run, "--rank", "1"]).out;
    assert_eq!(text.lines().count(), 1 + calls.len());
    assert!(text.lines().next().unwrap().ends_with("1 call not recorded (unknown): MPI_Init 1"), "{text}");
    assert!(text.lines().nth(1).unwrap().ends_with(
        "MPI_Send(buf=0x7000, count=4, datatype=MPI_DOUBLE, dest=2, tag=7, comm=world)  @app+0x1140"
    ));
    assert!(
        text.contains("MPI_Iprobe(source=MPI_ANY_SOURCE, tag=MPI_ANY_TAG, comm=world) -> flag=false  x3  @")
    );
    refused(&["decode", &run, "--rank", "8"], 4, "the job has 8 ranks");
}

#[test]
fn decode_prints_what_is_asked_for() {
    let place = Place::new();
    let run = place.run(&Synthetic::default());
    let out = |args: &[&str]| {
        let said = ampl(&[&["decode", &run][..], args].concat());
        assert_eq!((said.status, said.err.as_str()), (0, ""), "{args:?}");
        said.out
    };
    // All ranks are the ranks one by one, each line with its rank in front.
    let together = out(&["--json"]);
    let mut alone = String::new();
    for rank in 0..8 {
        let lines = out(&["--rank", &rank.to_string(), "--json"]);
        alone.extend(lines.lines().map(|line| format!("{{\"rank\":{rank},{}\n", &line[1..])));
    }
    assert_eq!(together, alone);
    let some: String = together
        .lines()
        .filter(|line| !line.contains("{\"rank\":0,"))
        .fold(String::new(), |all, line| all + line + "\n");
    assert_eq!(out(&["--ranks", "1-7", "--json"]), some);
    assert_eq!(out(&[]).lines().count(), together.lines().count());
    assert!(out(&["--ranks", "2"]).lines().all(|line| line.starts_with("     2 ")));
    // Functions, by any of their names.
    let of = |wanted: &[&str]| -> Vec<String> {
        let has = |line: &&str| wanted.iter().any(|name| line.contains(&format!("\"fn\":\"{name}\"")));
        together.lines().filter(has).map(str::to_owned).collect()
    };
    let found = out(&["--json", "--fn", "mpi_send", "--fn", "MPI_Finalize"]);
    assert_eq!(found.lines().collect::<Vec<_>>(), of(&["MPI_Send", "MPI_Finalize"]));
    assert_eq!(out(&["--json", "--fn", "MPI_Send,MPI_Finalize"]), found);
    // Times: any part of a call; those without a stored time are counted on stderr.
    let said = ampl(&["decode", &run, "--json", "--from", "1500ns", "--until", "0.3s"]);
    let inside = |line: &&str| {
        let call: Value = serde_json::from_str(line).unwrap();
        // A gap without moments may lie there.
        if call["gap"].is_object() {
            return call["gap"]["from_ns"].is_null();
        }
        call["start_ns"].as_i64().is_some_and(|start| {
            start < 300_000_000 && start + call["duration_ns"].as_i64().unwrap_or(i64::MAX >> 1) > 1500
        })
    };
    let expected: Vec<&str> = together.lines().filter(inside).collect();
    assert!(!expected.is_empty() && expected.len() < together.lines().count());
    assert_eq!(said.out.lines().collect::<Vec<_>>(), expected);
    assert!(said.status == 0 && said.err.contains("left out without a stored time"), "{}", said.err);
    // Nothing to see.
    let said = ampl(&["decode", &run, "--fn", "MPI_Bcast"]);
    assert_eq!((said.status, said.out.as_str()), (0, ""));
    assert!(said.err.contains("no stored call is asked for"), "{}", said.err);
    refused(&["decode", &run, "--fn", "MPI_Sned"], 2, "did you mean MPI_Send?");
    refused(&["decode", &run, "--ranks", "2-8"], 4, "the job has 8 ranks");
    refused(&["decode", &run, "--ranks", "4-2"], 2, "--ranks");
    refused(&["decode", &run, "--rank", "1", "--ranks", "2"], 2, "--rank");
    refused(&["decode", &run, "--from", "2s", "--until", "1s"], 2, "--from is not before --until");
}

#[test]
fn a_rank_without_kept_calls_prints_none() {
    let place = Place::new();
    let run = place.run(&Synthetic { windows: 0, ranks: 2, killed: vec![1], ..Synthetic::default() });
    let said = ampl(&["decode", &run, "--rank", "1"]);
    assert_eq!((said.status, said.out.lines().count()), (0, 1), "{}", said.err);
    assert!(said.out.contains("1 call not recorded (unfinished): MPI_Init 1"), "{}", said.out);
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let place = Place::new();
    let run = place.run(&Synthetic { windows: 4000, ranks: 2, ..Synthetic::default() });
    for args in [vec!["decode", &run, "--rank", "0"], vec!["estimate", &run, "--json"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ampl"));
        let mut child = command.args(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut first = [0; 64];
        child.stdout.take().unwrap().read_exact(&mut first).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]), "{args:?}");
    }
}

#[test]
fn estimates_are_filtered_and_shown() {
    let place = Place::new();
    let run = place.run(&Synthetic { ranks: 20, size: 8, ..Synthetic::default() });
    let rows =
        |args: &[&str]| json(&[&["estimate", &run, "--json"], args].concat()).as_array().unwrap().clone();
    assert_eq!(rows(&[]).len(), 2 * 6 * 16);
    let some = rows(&["--window", "4", "--metric", "mpi.time", "--scope", "window"]);
    assert_eq!(some.len(), 2);
    assert!(
        some.iter().all(|row| row["window"] == 4 && row["metric"] == "mpi.time" && row["scope"] == "window")
    );
    let table = ampl(&["estimate", &run]).out;
    assert!(table.contains("exact") && table.contains("± ") && table.contains("no guarantee"), "{table}");
    assert!(table.contains("--scope window"), "{table}");
    refused(&["estimate", &run, "--metric", "nonsense"], 4, "no such window or metric");
    refused(&["estimate", &run, "--window", "99"], 4, "from 0 to 11");
    refused(&["estimate", &run, "--scope", "month"], 2, "month");
}

#[test]
fn decisions_are_what_the_client_decided() {
    let place = Place::new();
    let job = Synthetic::default();
    let run = place.run(&job);
    assert_eq!(json(&["decisions", &run, "--json"]), serde_json::to_value(job.decisions()).unwrap());
    let table = ampl(&["decisions", &run]).out;
    assert_eq!(table.lines().count(), 4);
    assert!(table.contains("4 of 8") && table.contains("nothing known yet"), "{table}");
}

#[test]
fn every_command_has_help_with_an_example() {
    for command in ["info", "decode", "estimate", "decisions"] {
        let said = ampl(&[command, "--help"]);
        let has_example = ["Example:\n", "Examples:\n"].iter().any(|title| said.out.contains(title));
        assert!(said.status == 0 && has_example, "{}", said.out);
    }
}

#[test]
fn ranks_that_there_are_not_cannot_be_exported() {
    let place = Place::new();
    let run = place.run(&Synthetic { ranks: 4, ..Synthetic::default() });
    let out = text(&place.at("out"));
    let export =
        |ranks: &'static str| ["export", &run, "--to", "csv", "-o", &out, "--ranks", ranks].map(String::from);
    for ranks in ["9", "4", "0-9"] {
        let args = export(ranks);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        refused(&args, 4, &format!("--ranks {ranks}): name ranks from 0 to 3"));
        assert!(!place.at("out").exists());
    }
    // A rank of the job that left nothing.
    fs::remove_dir_all(place.at("run")).unwrap();
    let job = Synthetic { ranks: 4, ..Synthetic::default() };
    job.write_run(&place.at("run"));
    let mut trace = job.trace();
    trace.ranks.remove(2);
    let mut writer = Writer::new(Vec::new()).unwrap();
    trace.ranks.iter().for_each(|rank| writer.rank(&rank_parts(rank)).unwrap());
    writer.run(&trace.run, &[]).unwrap();
    fs::write(place.at("run/trace.ampl"), writer.finish().unwrap()).unwrap();
    for (ranks, status) in [("2", 4), ("1-2", 0)] {
        let args = export(ranks);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let said = ampl(&args);
        assert_eq!(said.status, status, "{}", said.err);
        assert!(status == 0 || said.err.contains("left nothing that can be read"), "{}", said.err);
    }
}

/// Decoding needs no more than structure where no times are stored.
#[test]
fn a_trace_of_nothing_but_structure_is_decoded() {
    let place = Place::new();
    let job = Synthetic { config: "[trace]\ntiming = \"off\"\n".into(), ..Synthetic::default() };
    let run = place.run(&job);
    let mut writer = Writer::new(Vec::new()).unwrap();
    writer.structure(&job.trace().structure).unwrap();
    let alone = place.at("alone.ampl");
    fs::write(&alone, writer.finish().unwrap()).unwrap();
    for rank in ["0", "7"] {
        let whole = ampl(&["decode", &run, "--rank", rank, "--json"]);
        let alone = ampl(&["decode", &text(&alone), "--rank", rank, "--json"]);
        assert!(whole.status == 0 && whole.out.lines().count() > 10, "{}", whole.err);
        // Functions of calls that were not recorded have a section of their own.
        let calls = |text: &str| -> Vec<String> {
            text.lines().filter(|line| !line.contains("\"gap\"")).map(str::to_owned).collect()
        };
        assert_eq!((alone.status, calls(&alone.out)), (0, calls(&whole.out)), "{}", alone.err);
    }
    let bytes = &json(&["info", &run, "--json"])["trace_bytes"];
    // It has no buffers, and no times.
    assert_eq!((&bytes["addresses"], &bytes["timing"]), (&0.into(), &0.into()));
    assert!(bytes["summaries"].as_u64() > Some(0) && bytes["summaries"].as_u64() < bytes["total"].as_u64());
}
