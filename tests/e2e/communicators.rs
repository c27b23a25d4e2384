//! Communicators are named alike on all ranks that have them, and told with their ranks, as the program itself says.

use std::collections::{BTreeMap, BTreeSet};

use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::Scratch;
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
fn made(run: &Monitored, rank: u32) -> Vec<String> {
    let mut names = Vec::new();
    for call in run.decode(rank) {
        let function = call["fn"].as_str().unwrap();
        let outputs = ["newcomm", "comm_cart", "comm_dist_graph", "newintercomm", "newintracomm"];
        let name = outputs.iter().find_map(|output| call["out"][*output].as_str());
        if let Some(name) = name.filter(|name| *name != "MPI_COMM_NULL") {
            assert!(name.starts_with("comm:"), "{function} gave {name}");
            names.push(name.to_owned());
        }
    }
    names
}

fn agreed(mpi: Mpi, size: u32) {
    let scratch = Scratch::new("communicators");
    let log = scratch.path().join("log");
    let job = Job::of(mpi, size, "communicators", &[&log.to_string_lossy()]);
    let run = monitor(&job, EVERYTHING, Form::Run).success();
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
        let made = made(&run, rank);
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
    let listed: BTreeSet<&str> = rows.keys().copied().collect();
    let found: BTreeSet<&str> = numbers.keys().map(String::as_str).collect();
    assert_eq!(listed, found, "{mpi:?}");
    assert!(numbers.len() > 40, "{mpi:?}: {}", numbers.len());
    let functions: BTreeSet<&str> = rows.values().map(|row| row["made_by"].as_str().unwrap()).collect();
    assert_eq!(functions.len(), 11, "{mpi:?}: {functions:?}");
}

#[test]
fn communicators_are_agreed_open_mpi() {
    agreed(Mpi::OpenMpi, 8);
}

#[test]
fn communicators_are_agreed_mpich() {
    agreed(Mpi::Mpich, 6);
}
