//! Communicators have the same name on all their ranks, and are reported with these ranks, as the program logs them.

use std::collections::{BTreeMap, BTreeSet};

use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::Scratch;
use ampl_tests::process::alone;
use ampl_tests::run::{Form, Monitored, monitor, text_of};
use serde_json::Value;

/// However much of the time it takes: nothing is left out.
const EVERYTHING: &str = "[trace]\ntiming = \"off\"\n[agent]\nmax_overhead = \"99%\"\n";

/// A communicator as a rank's log has it: a number that only its ranks share, its own group and the other one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Said {
    number: u64,
    ranks: Vec<u32>,
    remote: Option<Vec<u32>>,
}

fn said(log: &str) -> Vec<Said> {
    let list = |text: &str| text.split(',').map(|rank| rank.parse().unwrap()).collect::<Vec<u32>>();
    let line = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let number = words[0].parse().unwrap();
        Said { number, ranks: list(words[1]), remote: words.get(2).copied().map(list) }
    };
    log.lines().map(line).collect()
}

/// `0-3,8` as a list.
fn ranks(text: &Value) -> Option<Vec<u32>> {
    let mut all = Vec::new();
    for part in text.as_str()?.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        all.extend(first.parse::<u32>().unwrap()..=last.parse().unwrap());
    }
    Some(all)
}

/// Names of what a rank makes, in its order, as `decode` has them.
fn made(run: &Monitored, rank: u32, program: &str) -> Vec<String> {
    let mut names = Vec::new();
    for call in run.decode(rank) {
        let Some(function) = call["fn"].as_str() else { continue };
        let outputs =
            ["newcomm", "comm_cart", "comm_graph", "comm_dist_graph", "newintercomm", "newintracomm"];
        let name = outputs.iter().find_map(|output| call["out"][*output].as_str());
        let is_other = function == "MPI_Intercomm_create" && program == "comm_unasked";
        if let Some(name) = name.filter(|name| *name != "MPI_COMM_NULL" && !is_other) {
            assert!(name.starts_with("comm:"), "{function} gave {name}");
            names.push(name.to_owned());
        }
    }
    names
}

fn agreed(mpi: Mpi, size: u32, program: &str, words: &[&str], config: &str) -> Monitored {
    let scratch = Scratch::new("communicators");
    let log = scratch.path().join("log");
    let job = Job::of(mpi, size, program, &[&[&*log.to_string_lossy()], words].concat());
    let run = monitor(&job, config, Form::Run).success();
    let info = run.info();
    let rows: BTreeMap<&str, &Value> = info["communicators"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["name"].as_str().unwrap(), row))
        .collect();
    // One name for each number, and one number for each name, on whatever rank.
    let mut numbers: BTreeMap<String, u64> = BTreeMap::new();
    let mut names: BTreeMap<u64, String> = BTreeMap::new();
    for rank in 0..size {
        let said = said(&text_of(&scratch.path().join(format!("log.{rank}"))));
        let made = made(&run, rank, program);
        assert_eq!(made.len(), said.len(), "{mpi:?}, rank {rank}: {made:?}");
        for (name, said) in made.into_iter().zip(said) {
            let what = format!("{mpi:?}, rank {rank}, {name}: {said:?}, but {:?}", rows.get(&*name));
            assert_eq!(*numbers.entry(name.clone()).or_insert(said.number), said.number, "{what}");
            assert_eq!(*names.entry(said.number).or_insert(name.clone()), name, "{what}");
            let row = rows.get(&*name).unwrap_or_else(|| panic!("{what}"));
            assert_eq!(row["agreed"], Value::Bool(true), "{what}");
            let mut sides: Vec<Vec<u32>> = [Some(said.ranks), said.remote].into_iter().flatten().collect();
            sides.sort_by_key(|side| side.iter().min().copied());
            assert_eq!(ranks(&row["ranks"]).as_ref(), Some(&sides[0]), "{what}");
            assert_eq!(ranks(&row["remote_ranks"]).as_ref(), sides.get(1), "{what}");
            let all = sides.iter().map(Vec::len).sum::<usize>() as u64;
            assert_eq!(row["size"].as_u64(), Some(all), "{what}");
        }
    }
    // That one is asked about by its own name only.
    let is_other = |row: &Value| row["made_by"] == "MPI_Intercomm_create" && program == "comm_unasked";
    let listed: BTreeSet<&str> =
        rows.iter().filter(|(_, row)| !is_other(row)).map(|(name, _)| *name).collect();
    let found: BTreeSet<&str> = numbers.keys().map(String::as_str).collect();
    assert_eq!(listed, found, "{mpi:?}");
    run
}

fn of_every_kind(mpi: Mpi, size: u32) {
    let run = agreed(mpi, size, "communicators", &[], EVERYTHING);
    let info = run.info();
    let rows = info["communicators"].as_array().unwrap();
    assert!(rows.len() > 40, "{mpi:?}: {}", rows.len());
    let functions: BTreeSet<&str> = rows.iter().map(|row| row["made_by"].as_str().unwrap()).collect();
    assert_eq!(functions.len(), 11, "{mpi:?}: {functions:?}");
}

#[test]
fn communicators_are_agreed_open_mpi() {
    of_every_kind(Mpi::OpenMpi, 8);
}

#[test]
fn communicators_are_agreed_mpich() {
    of_every_kind(Mpi::Mpich, 6);
}

#[test]
fn communicators_are_agreed_standard_abi() {
    of_every_kind(Mpi::Abi, 6);
}

/// Checks communicators that the program does not query: the library chose them, or they are of callbacks and
/// pauses.
fn unasked(mpi: Mpi) {
    let run = agreed(mpi, 4, "comm_unasked", &[], EVERYTHING);
    for call in run.decode(1).iter().filter(|call| call["fn"] == "MPI_Sendrecv") {
        // One that was made in a callback has no name that another has.
        let comm = call["args"]["comm"].as_str().unwrap();
        assert_eq!(call["args"]["sendtag"] == 777, comm.contains(".w"), "{mpi:?}: {call}");
    }
}

#[test]
fn communicators_that_nobody_asks_about_are_known_open_mpi() {
    unasked(Mpi::OpenMpi);
}

#[test]
fn communicators_that_nobody_asks_about_are_known_mpich() {
    unasked(Mpi::Mpich);
}

#[test]
fn communicators_that_nobody_asks_about_are_known_standard_abi() {
    unasked(Mpi::Abi);
}

/// Where calls are only counted, calls that make communicators are recorded all the same.
fn stepped_down(mpi: Mpi) {
    let _machine = alone();
    let config = "[agent]\nmax_overhead = \"0.01%\"\nmax_structure_overhead = \"0.01%\"\n";
    let run = agreed(mpi, 4, "comm_unasked", &["1.2"], config);
    let info = run.info();
    let steps = info["overhead"]["steps"].as_array().expect("an array");
    let counted = steps.iter().any(|step| step["level"] == "off" || step["level"] == "summaries");
    assert!(counted, "{mpi:?} did not step down: {steps:?}");
}

#[test]
fn communicators_are_known_after_a_step_down_open_mpi() {
    stepped_down(Mpi::OpenMpi);
}

#[test]
fn communicators_are_known_after_a_step_down_mpich() {
    stepped_down(Mpi::Mpich);
}
