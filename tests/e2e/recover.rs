//! Jobs that die: the calls that `ampl recover` brings back, against the log that every rank wrote.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::{Extent, ampl};
use ampl_tests::process::{self, Finished};
use ampl_tests::reference::Reference;
use ampl_tests::run::{Form, Monitored, monitor, parse, text_of};
use serde_json::Value;

const RANKS: u32 = 8;
/// Number of turns after which the log of runs has been full more than once.
const TURNS: &str = "320";

fn ask(words: &[&str], run: &Path, more: &[OsString]) -> Finished {
    let mut command = Command::new(ampl());
    command.args(words).arg(run).args(more);
    process::run(&mut command, Duration::from_secs(120))
}

fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

/// Directory of the run's journals, from its run.toml.
fn journals(run: &Path) -> PathBuf {
    let text = text_of(&run.join("run.toml"));
    let line = text.lines().find_map(|line| line.strip_prefix("journals = ")).expect("they are named");
    parse(line).as_str().expect("a text").into()
}

/// A job that dies by `how`, with its journals in `journal`, and the log of every rank.
///
/// `agent` has further keys of that section, besides one that keeps a slow machine from recording less.
fn dead(mpi: Mpi, how: &str, when: &str, journal: &str, agent: &str) -> (Monitored, Vec<PathBuf>) {
    let logs = ampl_tests::place::Scratch::new("dies");
    let log = logs.path().join("log");
    let job = Job::of(mpi, RANKS, "dies", &[&log.to_string_lossy(), how, when]);
    let config = format!("[output]\njournal = \"{journal}\"\n[agent]\nmax_overhead = 0.5\n{agent}");
    let run = monitor(&job, &config, Form::Exec);
    process::await_end_of(&log.to_string_lossy());
    assert_eq!(run.finished.status.success(), how == "finalize", "{how}: {}", run.finished.stderr);
    let kept = run.scratch.path().join("logs");
    std::fs::create_dir(&kept).expect("the scratch directory is ours");
    let files = (0..RANKS).map(|rank| {
        let file = kept.join(rank.to_string());
        std::fs::copy(logs.path().join(format!("log.{rank}")), &file).expect("every rank has a log");
        file
    });
    let files = files.collect();
    (run, files)
}

/// The calls in `lines` of `ampl decode`, folded ones as many.
fn calls_in(decoded: &[Value]) -> u64 {
    decoded.iter().map(|call| call["count"].as_u64().unwrap_or(1)).sum()
}

/// The first `calls` of the calls in `decoded`.
fn first(decoded: &[Value], mut calls: u64) -> Vec<Value> {
    let mut some = Vec::new();
    for call in decoded {
        let count = call["count"].as_u64().unwrap_or(1).min(calls);
        if count == 0 {
            break;
        }
        let mut call = call.clone();
        call["count"] = count.into();
        some.push(call);
        calls -= count;
    }
    some
}

/// Asserts that every call that returned by the log is there, with its arguments, and no more than the one under way.
fn compare(rank: u32, log: &Path, decoded: &[Value], why: &str) {
    let text = text_of(log);
    let (returned, under_way) = text.rsplit_once('\n').unwrap_or(("", &text));
    let ended = returned.lines().last().is_some_and(|line| line.contains("\"counts\""));
    let counted =
        if ended { returned.to_owned() } else { format!("{returned}\n{{\"counts\":{{\"none\":0}}}}") };
    let reference = Reference::parse(&counted).unwrap_or_else(|error| panic!("{why}, rank {rank}: {error}"));
    let (logged, found) = (reference.len() as u64, calls_in(decoded));
    assert!(logged > 0 && found >= logged, "{why}, rank {rank}: {found} of {logged} calls");
    assert!(found <= logged + 1, "{why}, rank {rank}: {found} calls where the log has {logged}");
    if let Some(last) = decoded.last().filter(|_| found > logged) {
        let begun = under_way.strip_prefix("{\"fn\":\"").and_then(|rest| rest.split('"').next());
        assert_eq!(last["fn"].as_str(), begun, "{why}, rank {rank}: more than the call under way");
        // It is recorded before MPI is entered, all of it.
        if begun == Some("MPI_Abort") {
            assert_eq!(last["args"]["errorcode"], 5, "{why}, rank {rank}: {last}");
        }
    }
    if let Err(difference) = reference.compare(&first(decoded, logged)) {
        panic!("{why}, rank {rank}: {difference}");
    }
}

/// Asserts that `ampl recover` brings back of each rank of a dead job what was in its log.
fn recovered(mpi: Mpi, how: &str, when: &str, journal: &str) {
    let why = format!("{mpi:?}, {how}");
    let (run, logs) = dead(mpi, how, when, journal, "");
    assert_eq!(run.info()["complete"], Value::Bool(false), "{why}: before");
    let told = ask(&["recover"], &run.run, &[]);
    assert_eq!((told.status.code(), told.stdout.as_str()), (Some(0), ""), "{why}: {}", told.stderr);
    assert!(told.stderr.contains("8 of 8 ranks"), "{why}: {}", told.stderr);
    let rest =
        told.stderr.split(" ranks did not reach MPI_Finalize").next().filter(|said| *said != told.stderr);
    assert!(rest.is_some_and(|said| said.ends_with('8')), "{why}: {}", told.stderr);
    assert!(!told.stderr.contains("malformed") && !told.stderr.contains("cannot be read"), "{}", told.stderr);
    // From here on only the recovered file has the data.
    assert!(!journals(&run.run).exists(), "{why}: {}", told.stderr);
    assert!(told.stderr.contains("its journals have been removed"), "{why}: {}", told.stderr);
    let info = run.info();
    assert_eq!(info["complete"], Value::Bool(false), "{why}: {info}");
    for rank in 0..RANKS {
        compare(rank, &logs[rank as usize], &run.decode(rank), &why);
    }
}

const WAYS: [&str; 6] = ["abort", "exit", "abort-self", "segv", "term", "kill"];

/// Every way under each MPI, or as usual every other one: each way under one of them.
fn recovered_of_each_way(mpi: Mpi, first: usize) {
    let (first, step) = Extent::get().of([(first, 2), (first, 2), (0, 1)]);
    WAYS.iter().skip(first).step_by(step).for_each(|how| recovered(mpi, how, TURNS, "node"));
}

#[test]
fn every_call_that_has_returned_is_recovered_open_mpi() {
    recovered_of_each_way(Mpi::OpenMpi, 0);
}

#[test]
fn every_call_that_has_returned_is_recovered_mpich() {
    recovered_of_each_way(Mpi::Mpich, 1);
}

/// A rank may die anywhere: in MPI, in ampl, or in neither.
#[test]
fn a_kill_at_any_time_loses_the_call_under_way_at_most() {
    for (round, mpi) in [Mpi::OpenMpi, Mpi::Mpich, Mpi::OpenMpi, Mpi::Mpich].into_iter().enumerate() {
        recovered(mpi, "surprise", &(70_000 + 61_357 * round).to_string(), "run");
    }
}

/// A dead job, its journals beside its trace where a test may change them, and its decoded calls.
fn dead_with_journals() -> (Monitored, PathBuf, Vec<Vec<Value>>) {
    let (run, _) = dead(Mpi::OpenMpi, "kill", "60", "run", "");
    let journals = journals(&run.run);
    let decoded = (0..RANKS).map(|rank| run.decode(rank)).collect();
    (run, journals, decoded)
}

fn file_of(journals: &Path, rank: u32) -> PathBuf {
    journals.join(format!("rank-{rank:06}.journal"))
}

/// The recorded calls of `rank` in `file`, a recovered trace, and the status of asking for them.
fn decoded(file: &Path, rank: u32) -> (Option<i32>, Vec<Value>) {
    let told = ask(&["decode"], file, &words(&["--json", "--rank", &rank.to_string()]));
    let lines = told.stdout.lines().map(parse);
    (told.status.code(), lines.filter(|line| line["gap"].is_null()).collect())
}

/// `value` with communicators named in the order of their first use: where other ranks' calls are missing, it is not
/// known which ranks share one, and its name is the rank's own.
fn renamed(value: &Value, met: &mut HashMap<String, usize>) -> Value {
    match value {
        Value::String(text) if text.starts_with("comm:") => {
            let next = met.len();
            format!("comm {}", met.entry(text.clone()).or_insert(next)).into()
        }
        Value::Array(all) => all.iter().map(|value| renamed(value, met)).collect(),
        Value::Object(all) => all.iter().map(|(name, value)| (name.clone(), renamed(value, met))).collect(),
        other => other.clone(),
    }
}

/// True where calls of a rank differ in the names of communicators at most, one standing for one.
fn alike(one: &[Value], other: &[Value]) -> bool {
    let all = |calls: &[Value]| {
        let mut met = HashMap::new();
        calls.iter().map(|call| renamed(call, &mut met)).collect::<Vec<_>>()
    };
    all(one) == all(other)
}

fn recover_into(run: &Path, file: &Path, others: &[&Path]) -> Finished {
    let others = others.iter().map(|other| OsString::from(*other));
    let more: Vec<OsString> = others.chain(["-o".into(), file.into()]).collect();
    ask(&["recover"], run, &more)
}

#[test]
fn a_whole_run_is_left_alone_and_no_run_is_an_error() {
    let (run, logs) = dead(Mpi::OpenMpi, "finalize", "20", "node", "");
    let file = run.run.join("trace.ampl");
    let before = std::fs::read(&file).expect("a trace");
    let told = ask(&["recover"], &run.run, &[]);
    assert_eq!(told.status.code(), Some(0), "{}", told.stderr);
    assert!(told.stderr.contains("nothing to recover"), "{}", told.stderr);
    assert_eq!(std::fs::read(&file).expect("a trace"), before);
    // The same comparison for a job that ended.
    (0..RANKS).for_each(|rank| compare(rank, &logs[rank as usize], &run.decode(rank), "finalize"));
    let told = ask(&["recover"], &run.run.join("nowhere"), &[]);
    assert_eq!(told.status.code(), Some(4), "{}", told.stderr);
    assert!(told.stderr.starts_with("ampl: "), "{}", told.stderr);
}

/// A node's journals that were copied from it are named behind the run.
#[test]
fn journals_of_other_nodes_are_named_behind_the_run() {
    let (run, journals, before) = dead_with_journals();
    let other = run.scratch.path().join("of-another-node");
    std::fs::create_dir(&other).expect("the scratch directory is ours");
    for rank in 4..RANKS {
        std::fs::rename(file_of(&journals, rank), file_of(&other, rank)).expect("every rank has a journal");
    }
    let file = run.scratch.path().join("half.ampl");
    let told = recover_into(&run.run, &file, &[]);
    assert_eq!(told.status.code(), Some(0), "{}", told.stderr);
    assert!(told.stderr.contains("4 of 8 ranks"), "{}", told.stderr);
    assert!(told.stderr.contains("4 ranks left no journal here (4, 5, 6, 7)"), "{}", told.stderr);
    let (status, calls) = decoded(&file, 1);
    assert!(status == Some(0) && alike(&calls, &before[1]), "rank 1");
    assert_eq!(decoded(&file, 5).0, Some(4));
    let file = run.scratch.path().join("whole.ampl");
    let told = recover_into(&run.run, &file, &[&other]);
    assert!(told.status.success() && told.stderr.contains("8 of 8 ranks"), "{}", told.stderr);
    for (rank, before) in (0..).zip(before) {
        assert_eq!(decoded(&file, rank), (Some(0), before), "rank {rank}");
    }
}

/// Decisions are lost with the journal of the rank that decides.
#[test]
fn decisions_are_in_the_journal_of_the_client() {
    for client in [0, 5] {
        // Many windows end before the job does.
        let keys = format!("client = {client}\n[window]\nmarker = \"period:20ms\"\n");
        let (run, _) = dead(Mpi::OpenMpi, "kill", TURNS, "run", &keys);
        let file = run.scratch.path().join("decided.ampl");
        let decisions = || {
            let told = recover_into(&run.run, &file, &[]);
            assert_eq!(told.status.code(), Some(0), "{}", told.stderr);
            let told = ask(&["decisions"], &file, &words(&["--json"])).success();
            parse(&told.stdout).as_array().expect("an array").len()
        };
        assert!(decisions() > 0, "client {client}");
        std::fs::remove_file(file_of(&journals(&run.run), 5)).expect("every rank has a journal");
        assert_eq!(decisions() == 0, client == 5, "client {client}");
    }
}

/// Reading journals takes little memory: where a job has died for want of memory, its journals are larger than it.
#[test]
fn journals_take_no_memory_of_their_own() {
    const LARGE: u32 = 5;
    let (run, journals, before) = dead_with_journals();
    let journal = std::fs::File::options().write(true).open(file_of(&journals, LARGE));
    journal.and_then(|file| file.set_len(1 << 36)).expect("a hole is no trouble");
    let file = run.scratch.path().join("large.ampl");
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -d 1000000 && exec \"$@\"", "sh"]).arg(ampl()).arg("recover");
    command.arg(&run.run).arg("-o").arg(&file);
    let told = process::run(&mut command, Duration::from_secs(120));
    assert_eq!(told.status.code(), Some(0), "{}", told.stderr);
    assert!(told.stderr.contains("8 of 8 ranks"), "{}", told.stderr);
    let (status, calls) = decoded(&file, LARGE);
    assert!(status == Some(0) && alike(&calls, &before[LARGE as usize]), "{}", told.stderr);
}

/// The rest of a damaged journal is used, the damage is reported, and no other rank suffers.
#[test]
fn a_damaged_journal_gives_what_is_left() {
    const HURT: u32 = 2;
    let (run, journals, before) = dead_with_journals();
    let journal = file_of(&journals, HURT);
    let whole = std::fs::read(&journal).expect("every rank has a journal");
    let blocks: Vec<usize> =
        whole.windows(8).enumerate().filter(|(_, bytes)| bytes == b"AMPLBLK0").map(|(at, _)| at).collect();
    assert!(blocks.len() > 3, "{blocks:?}");
    let file = run.scratch.path().join("hurt.ampl");
    let recover = |bytes: &[u8]| {
        std::fs::write(&journal, bytes).expect("it is ours");
        let told = recover_into(&run.run, &file, &[]);
        assert_eq!(told.status.code(), Some(0), "{}", told.stderr);
        assert!(!told.stderr.contains("panicked"), "{}", told.stderr);
        for rank in [HURT - 1, HURT + 1] {
            let (status, calls) = decoded(&file, rank);
            assert!(status == Some(0) && alike(&calls, &before[rank as usize]), "rank {rank}");
        }
        told.stderr
    };
    let mark = |at: usize, what: &[u8]| {
        let mut bytes = whole.clone();
        bytes[at..at + what.len()].copy_from_slice(what);
        bytes
    };
    // Reported: a file that ends in a block, a block that is none, a file that is none.
    for at in &blocks {
        let said = recover(&whole[..at + 100]);
        assert!(
            said.contains(&format!("rank {HURT}: ")) && said.contains("cannot be read past"),
            "{at}: {said}"
        );
        let said = recover(&mark(*at, b"?"));
        assert!(
            said.contains(&format!("rank {HURT}: ")) && said.contains("cannot be read past"),
            "{at}: {said}"
        );
    }
    let said = recover(&mark(0, b"?"));
    assert!(said.contains("7 of 8 ranks") && said.contains("rank-000002.journal"), "{said}");
    let said = recover(&whole[..1000]);
    assert!(said.contains("7 of 8 ranks") && said.contains("rank-000002.journal"), "{said}");
    // Bytes cut off behind the last written word are no loss.
    recover(&whole);
    assert_eq!(decoded(&file, HURT), (Some(0), before[HURT as usize].clone()));
    // Words have no checksums: a fault in one may be reported, or be a wrong value; other words stand.
    let mut seed = 1u64;
    for _ in 0..24 {
        let mut bytes = whole.clone();
        for _ in 0..4 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = 4096 + (seed >> 20) as usize % (bytes.len() - 4096);
            bytes[at] ^= 1 << (seed >> 60 & 7);
        }
        recover(&bytes);
        let (status, _) = decoded(&file, HURT);
        assert!(matches!(status, Some(0 | 3)), "{status:?}");
    }
    for rank in 0..RANKS {
        std::fs::write(file_of(&journals, rank), "no journal").expect("it is ours");
    }
    let told = recover_into(&run.run, &file, &[]);
    assert_eq!(told.status.code(), Some(3), "{}", told.stderr);
    assert!(told.stderr.starts_with("ampl: no journal can be read"), "{}", told.stderr);
}
