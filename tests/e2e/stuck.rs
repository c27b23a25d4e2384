//! Jobs that hang: the call of each rank can be read while they hang, and after they have been ended.

use std::ffi::OsString;
use std::process::Command;
use std::time::Duration;

use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::{Scratch, ampl};
use ampl_tests::process;
use ampl_tests::run::{number, parse, text_of};
use serde_json::{Value, json};

/// Starts the job, queries until the answer has all names in `wanted`, ends it, and queries again.
const SCRIPT: &str = r#"
run=$1 ampl=$2 wanted=$3; shift 3
"$@" >job.out 2>job.err &
for turn in $(seq 400); do
    "$ampl" info "$run" --json >live.json 2>live.err
    missing=; for word in $wanted; do grep -q "$word" live.json || missing=$word; done
    [ -z "$missing" ] && break
    sleep 0.1
done
"$ampl" info "$run" >live.txt
# Ranks count as stopped after a second.
sleep 1.1
kill $! && wait $!
"$ampl" info "$run" --json >dead.json
"$ampl" info "$run" >dead.txt
"$ampl" info "$run" --calls --json >calls.json
"$ampl" check "$run" --json >check.json
exit 0
"#;

pub struct Asked {
    pub live: Value,
    pub dead: Value,
    pub calls: Value,
    pub checked: Value,
    pub live_text: String,
    pub dead_text: String,
}

pub fn ask(job: &Job, options: &[&str], wanted: &str) -> Asked {
    let scratch = Scratch::new("stuck");
    let run = scratch.path().join("result");
    let before: Vec<OsString> =
        vec!["-c".into(), SCRIPT.into(), "sh".into(), run.clone().into(), ampl().into(), wanted.into()];
    let mut exec: Vec<OsString> = vec![ampl().into(), "run".into(), "-o".into(), run.into()];
    exec.extend(options.iter().map(OsString::from));
    exec.push("--".into());
    let mut command = Command::new("sh");
    command.args([before, exec, job.launch(), job.words.clone()].concat()).current_dir(scratch.path());
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    let finished = process::run(&mut command, Duration::from_secs(300)).success();
    let text = |name: &str| text_of(&scratch.path().join(name));
    let all = || ["job.err", "live.json", "live.err"].map(text).join("\n");
    assert!(text("live.json").contains("in_call"), "{}{}", finished.stderr, all());
    let json = |name: &str| parse(&text(name));
    Asked {
        live: json("live.json"),
        dead: json("dead.json"),
        calls: json("calls.json"),
        checked: json("check.json"),
        live_text: text("live.txt"),
        dead_text: text("dead.txt"),
    }
}

/// The row of a rank.
fn row(info: &Value, rank: &str) -> Value {
    let rows = info["in_call"].as_array().unwrap_or_else(|| panic!("no rows in {info}"));
    rows.iter()
        .find(|row| row["ranks"] == rank)
        .unwrap_or_else(|| panic!("no rank {rank} in {rows:?}"))
        .clone()
}

/// `row` without its ranks, times and site.
fn said(mut row: Value) -> Value {
    let fields = row.as_object_mut().expect("an object");
    for name in ["ranks", "site", "since_ns", "for_ns", "latest_ns", "at_most"] {
        fields.remove(name);
    }
    row
}

#[test]
fn every_rank_of_a_job_that_hangs_is_somewhere() {
    for mpi in Mpi::ALL {
        let mut job = Job::of(mpi, 4, "stuck", &["50"]);
        job.limit = Duration::from_secs(120);
        let asked = ask(&job, &[], "MPI_Recv MPI_Wait MPI_Iprobe stopped");
        let expected = [
            json!({"function": "MPI_Recv", "peer": 3, "role": "source", "tag": 41, "comm": "comm:1"}),
            json!({"function": "MPI_Wait", "peer": "MPI_ANY_SOURCE", "role": "source", "tag": 42, "comm": "world",
                "requests": 1, "request_of": "MPI_Irecv"}),
            json!({"function": "MPI_Iprobe", "peer": 1, "role": "source", "tag": "MPI_ANY_TAG", "comm": "world",
                "polling": true}),
            json!({"function": null, "peer": null, "last": "MPI_Comm_split", "process": "stopped"}),
        ];
        for (rank, expected) in expected.iter().enumerate() {
            let live = row(&asked.live, &rank.to_string());
            assert_eq!(said(live.clone()), *expected, "{mpi:?}");
            assert_eq!(live["site"].is_string(), rank < 3, "{mpi:?}: {live}");
            let site = live["site"].as_str().unwrap_or("stuck.c:");
            assert!(site.starts_with("stuck.c:"), "{mpi:?}: {live}");
        }
        assert_eq!(asked.live["end"]["basis"], "now", "{mpi:?}");
        assert_eq!(asked.dead["end"]["basis"], "launcher", "{mpi:?}");
        // Behind the call sites stand the calls that have not returned.
        let under = asked.calls.as_array().and_then(|calls| calls.last());
        assert_eq!(under, Some(&json!({"in_call": asked.dead["in_call"]})), "{mpi:?}");
        for rank in ["0", "1"] {
            let (live, dead) = (row(&asked.live, rank), row(&asked.dead, rank));
            // The clock's rate is known slightly better.
            let apart = number(&live["since_ns"]) - number(&dead["since_ns"]);
            assert!(apart.abs() < 1e6, "{mpi:?}: {live} {dead}");
            assert!(number(&dead["for_ns"]) >= number(&live["for_ns"]) - 1e6, "{mpi:?}: {live} {dead}");
            let ends = number(&dead["since_ns"]) + number(&dead["for_ns"]);
            assert_eq!(ends, number(&asked.dead["end"]["at_ns"]), "{mpi:?}");
        }
        for text in [&asked.live_text, &asked.dead_text] {
            assert!(text.contains("from 3 tag 41 on comm:1"), "{mpi:?}: {text}");
            assert!(text.contains("polling MPI_Iprobe") || text.contains("MPI_Iprobe @"), "{mpi:?}: {text}");
            assert!(text.contains("not in MPI (last: MPI_Comm_split)"), "{mpi:?}: {text}");
        }
        assert!(asked.dead_text.contains("until the launcher returned"), "{mpi:?}: {}", asked.dead_text);
        assert!(asked.dead_text.contains("in calls that have not returned"), "{mpi:?}: {}", asked.dead_text);
        // Their time is in the table of call sites, too; the rank that is not in MPI stopped first.
        let recv = |row: &&Value| row["function"] == "MPI_Recv" && row["unreturned"] == 1;
        let rows = asked.calls.as_array().expect("rows");
        let recv = rows.iter().find(recv).unwrap_or_else(|| panic!("{mpi:?}: {rows:?}"));
        assert!(
            (number(&recv["unreturned_ns"]) - number(&row(&asked.dead, "0")["for_ns"])).abs() < 1e6,
            "{recv}"
        );
        // The verdict begins with them, apart from facts about the machine.
        let findings = asked.dead["verdict"].as_array().expect("findings");
        let under = findings.iter().find(|found| found["kind"] != "shared-processors").expect("a finding");
        assert_eq!(
            (&under["kind"], &under["ranks"]),
            (&json!("unreturned"), &json!("3")),
            "{mpi:?}: {under}"
        );
        for words in [", not returned", "rank 3: not in MPI while others are"] {
            assert!(asked.dead_text.contains(words), "{mpi:?}: {}", asked.dead_text);
        }
    }
}

#[test]
fn requests_that_are_waited_for_are_named_where_these_are_all() {
    for mpi in Mpi::ALL {
        let mut job = Job::of(mpi, 3, "stuck_requests", &["51"]);
        job.limit = Duration::from_secs(120);
        let asked = ask(&job, &[], "MPI_Waitall MPI_Recv");
        let pending = |count: u32, function: &str, peer: u32, role: &str, tag: u32| json!({"count": count, "function": function, "peer": peer, "role": role, "tag": tag, "comm": "world"});
        let mut expected = [
            pending(2, "MPI_Irecv", 1, "source", 7),
            pending(1, "MPI_Irecv", 2, "source", 8),
            pending(1, "MPI_Issend", 2, "dest", 9),
        ];
        let by_tag = |row: &Value| row["tag"].as_u64();
        for info in [&asked.live, &asked.dead] {
            let row = row(info, "0");
            assert_eq!((&row["function"], &row["requests"]), (&json!("MPI_Waitall"), &json!(4)), "{mpi:?}");
            let mut found = row["pending"].as_array().unwrap_or_else(|| panic!("{mpi:?}: {row}")).clone();
            found.sort_by_key(by_tag);
            expected.sort_by_key(by_tag);
            assert_eq!(found, expected, "{mpi:?}");
        }
        let text = asked.dead_text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("for 4 requests: 2 from 1 tag 7, from 2 tag 8, to 2 tag 9"), "{mpi:?}: {text}");
    }
}

/// Where calls are only counted no clock is read: the length of a call is known from the last check.
#[test]
fn counted_calls_are_told_with_what_is_known_of_them() {
    let mut job = Job::of(Mpi::OpenMpi, 4, "stuck", &["300000"]);
    job.limit = Duration::from_secs(300);
    let options = ["--set", "agent.max_overhead=\"0.001%\"", "--set", "trace.structure=\"off\""];
    let asked = ask(&job, &options, "MPI_Recv MPI_Wait MPI_Iprobe stopped");
    let row = row(&asked.live, "0");
    assert_eq!((&row["function"], &row["at_most"]), (&json!("MPI_Recv"), &json!(true)), "{row}");
}

#[test]
fn fortran_calls_name_whom_they_wait_for() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let scratch = Scratch::new("stuck-fortran");
        let program = scratch.path().join("stuck");
        let source = ampl_tests::place::home().join("programs/stuck.f90");
        let mut compile = Command::new(mpi.fortran_compiler());
        compile.args(["-g", "-o"]).arg(&program).arg(source).current_dir(scratch.path());
        process::run(&mut compile, Duration::from_secs(60)).success();
        let asked = ask(&Job::new(mpi, 2, program, &[]), &[], "MPI_Recv MPI_Barrier");
        let expected =
            json!({"function": "MPI_Recv", "peer": 1, "role": "source", "tag": 43, "comm": "world"});
        for info in [&asked.live, &asked.dead] {
            assert_eq!(said(row(info, "0")), expected, "{mpi:?}");
            let barrier = json!({"function": "MPI_Barrier", "peer": null, "comm": "world"});
            assert_eq!(said(row(info, "1")), barrier, "{mpi:?}");
        }
        let checked = asked.checked.as_array().expect("rows");
        let places: Vec<_> = checked
            .iter()
            .filter(|row| row["kind"] == "hang")
            .map(|row| (row["rank"].as_u64(), row["function"].as_str()))
            .collect();
        assert_eq!(places, [(Some(0), Some("MPI_Recv")), (Some(1), Some("MPI_Barrier"))], "{mpi:?}");
    }
}
