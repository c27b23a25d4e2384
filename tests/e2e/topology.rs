//! Topologies, placements and logical programs of real programs' runs.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::{Scratch, ampl};
use ampl_tests::process;
use ampl_tests::run::{Form, Monitored, monitor};
use serde_json::Value;

/// However much of the time it takes: nothing is left out.
const EVERYTHING: &str = "[trace]\ntiming = \"off\"\n[agent]\nmax_overhead = \"99%\"\n";

fn ask(run: &Path, words: &[&str]) -> String {
    let mut command = Command::new(ampl());
    command.arg(words[0]).arg(run).args(&words[1..]);
    process::run(&mut command, Duration::from_secs(120)).success().stdout
}

fn json(run: &Monitored, words: &[&str]) -> Value {
    let words = [words, &["--json"]].concat();
    serde_json::from_str(&ask(&run.run, &words)).unwrap()
}

/// Copies, name and sizes of each pattern.
fn patterns(document: &Value) -> Vec<String> {
    let name = |row: &Value| {
        let sizes: Vec<String> = row["dims"].as_array().unwrap().iter().map(Value::to_string).collect();
        format!("{} {} {}", row["copies"], row["name"].as_str().unwrap(), sizes.join("x"))
    };
    document["patterns"].as_array().unwrap().iter().map(name).collect()
}

fn exact(run: &Monitored, ranks: u32) -> Value {
    let check = json(run, &["logical", "--check"]);
    for part in [&check, &check["with_values"]] {
        assert_eq!(part["ranks_exact"], ranks, "{check}");
        assert_eq!((&part["calls_lost"], &part["calls_extra"]), (&0.0.into(), &0.0.into()), "{check}");
    }
    check
}

fn stencil(mpi: Mpi, rows: u32, columns: u32) {
    let (ranks, steps) = (rows * columns, 20);
    let words = [rows, columns, steps].map(|word| word.to_string());
    let job = Job::of(mpi, ranks, "torus_mixed", &[&words[0], &words[1], &words[2]]);
    let run = monitor(&job, EVERYTHING, Form::Run).success();
    let document = json(&run, &["topology", "--matrix"]);
    let grid = format!("1 grid {columns}x{rows}");
    assert_eq!(patterns(&document), [grid.clone(), format!("1 tree {ranks}")], "{mpi:?}: {document}");
    // Every call counts once, wherever it was made from.
    let along = rows * (columns - 1) + columns * (rows - 1);
    let (messages, tree) = (2 * steps * along, ranks - 1);
    assert_eq!(document["messages"]["messages"], messages + tree);
    assert_eq!(document["messages"]["bytes"], messages * 512 + tree * 8);
    assert_eq!(document["messages"]["complete"], true);
    assert_eq!(document["unexplained"]["bytes_share"], 0.0);
    let share = document["patterns"][0]["bytes_share"].as_f64().unwrap();
    let expected = f64::from(messages * 512) / f64::from(messages * 512 + tree * 8);
    assert!((share - expected).abs() < 1e-12, "{share}");
    // Neighbours in the grid have neighbouring coordinates, and send as much as the program does.
    let coordinates = document["patterns"][0]["coordinates"].as_array().unwrap();
    let place = |rank: u64| -> Vec<i64> {
        coordinates[rank as usize].as_array().unwrap().iter().map(|at| at.as_i64().unwrap()).collect()
    };
    let rows_of_matrix = document["matrix"].as_array().unwrap();
    let near: Vec<&Value> = rows_of_matrix.iter().filter(|row| row["bytes"].as_u64() >= Some(512)).collect();
    assert_eq!(near.len() as u32, 2 * along);
    for row in near {
        let (one, other) = (place(row["source"].as_u64().unwrap()), place(row["dest"].as_u64().unwrap()));
        let steps: i64 = one.iter().zip(&other).map(|(a, b)| (a - b).abs()).sum();
        assert_eq!(steps, 1, "{row}");
    }
    // Its places, by line.
    let sites = document["patterns"][0]["sites"].to_string();
    assert!(
        sites.contains("MPI_Sendrecv torus_mixed.c:") && sites.contains("MPI_Send torus_mixed.c:"),
        "{sites}"
    );

    let check = exact(&run, ranks);
    assert_eq!(check["ranks"], ranks);
    assert!(check["records"].as_u64().unwrap() < 60, "{check}");
    // The program alone makes the calls that were recorded.
    let made = ask(&run.run, &["logical", "--rank", "3", "--json"]);
    let names = |calls: &mut dyn Iterator<Item = Value>| -> Vec<String> {
        calls.map(|call| call["fn"].as_str().unwrap().to_owned()).collect()
    };
    let made = names(&mut made.lines().map(|line| serde_json::from_str(line).unwrap()));
    assert_eq!(made, names(&mut run.decode(3).into_iter()));
    let text = ask(&run.run, &["logical"]);
    assert!(text.contains("if neighbour") && text.contains("dest=+"), "{text}");
}

#[test]
fn a_stencil_and_a_tree_are_found_open_mpi() {
    stencil(Mpi::OpenMpi, 4, 4);
}

#[test]
fn a_stencil_and_a_tree_are_found_mpich() {
    stencil(Mpi::Mpich, 2, 4);
}

#[test]
fn communicators_windows_and_neighbours_are_placed_in_the_world() {
    for mpi in Mpi::ALL {
        let job = Job::of(mpi, 8, "cart_parts", &[]);
        let run = monitor(&job, EVERYTHING, Form::Run).success();
        let document = json(&run, &["topology", "--matrix"]);
        let facts = &document["messages"];
        assert_eq!(facts["messages"], 96 + 8 + 8, "{mpi:?}: {document}");
        assert_eq!(
            (&facts["neighbour_collectives"], &facts["one_sided"]),
            (&96.into(), &8.into()),
            "{mpi:?}"
        );
        assert_eq!(facts["complete"], true, "{mpi:?}: {facts}");
        // Between the halves each rank sends to its partner, and puts to the rank before it.
        let rows = document["matrix"].as_array().unwrap();
        let numbers = |row: &Value| (row["source"].as_u64().unwrap(), row["dest"].as_u64().unwrap());
        for rank in 0..8_u64 {
            let before = (rank + 7) % 8;
            for to in [rank ^ 1, before] {
                let row = rows.iter().find(|row| numbers(row) == (rank, to)).unwrap();
                let (sends, puts) = (u64::from(to == rank ^ 1), u64::from(to == before));
                assert_eq!(row["calls"], sends + puts, "{mpi:?}: {row}");
                assert_eq!(row["bytes"], 16 * sends + 4 * puts, "{mpi:?}: {row}");
            }
        }
        assert!(patterns(&document).contains(&"1 ring 8".to_owned()), "{mpi:?}: {document}");
        assert!(patterns(&document).contains(&"4 line 2".to_owned()), "{mpi:?}: {document}");
        exact(&run, 8);
    }
}

#[test]
fn a_farm_in_fortran_is_a_star() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let program = mpi.compile_fortran_as("farm", &["farm.f90"], &[]);
        let job = Job::new(mpi, 5, &program, &[]);
        let run = monitor(&job, EVERYTHING, Form::Run).success();
        let document = json(&run, &["topology"]);
        assert_eq!(patterns(&document), ["1 star 5"], "{mpi:?}: {document}");
        // 30 tasks and an end for each worker, and as many requests.
        assert_eq!(document["messages"]["messages"], 2 * 34);
        exact(&run, 5);
    }
}

#[test]
fn one_rank_alone_has_no_topology() {
    let job = Job::of(Mpi::OpenMpi, 1, "torus_mixed", &["1", "1", "3"]);
    let run = monitor(&job, EVERYTHING, Form::Run).success();
    let document = json(&run, &["topology"]);
    assert_eq!((&document["vertices"], patterns(&document)), (&1.into(), Vec::new()));
    assert_eq!(
        (&document["messages"]["messages"], &document["messages"]["complete"]),
        (&0.into(), &true.into())
    );
    exact(&run, 1);
    assert!(ask(&run.run, &["topology", "--place"]).contains("nothing crosses"));
}

/// Open MPI reads the rank file, and places the ranks as it says.
#[test]
fn open_mpi_places_ranks_by_the_file() {
    let job = Job::of(Mpi::OpenMpi, 16, "torus_mixed", &["4", "4", "5"]);
    let run = monitor(&job, EVERYTHING, Form::Run).success();
    let scratch = Scratch::new("placement");
    let directory = scratch.path().to_str().unwrap();
    let document = json(&run, &["topology", "--place", "--ranks-per-node", "4", "-o", directory]);
    let placement = &document["placement"];
    assert_eq!(placement["nodes"], 4);
    // Four boxes of 2 x 2: 16 of 48 edges cross, and the messages of a tree.
    assert!(placement["after"]["bytes"].as_u64().unwrap() < 16 * 5 * 512 + 16 * 8, "{placement}");
    assert!(placement["saving"].as_f64().unwrap() > 0.05);
    let order = std::fs::read_to_string(scratch.path().join("MPICH_RANK_ORDER")).unwrap();
    let mut ranks: Vec<u32> = order
        .lines()
        .filter(|line| !line.starts_with('#'))
        .flat_map(|line| line.split(','))
        .map(|rank| rank.parse().unwrap())
        .collect();
    ranks.sort_unstable();
    assert_eq!(ranks, (0..16).collect::<Vec<_>>());
    let hosts = std::fs::read_to_string(scratch.path().join("hosts.slurm")).unwrap();
    let told: Vec<&str> = placement["hosts"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(hosts.lines().collect::<Vec<_>>(), told);
    let map = map_of_open_mpi(&scratch, &told);
    assert_eq!(map.into_values().collect::<Vec<_>>(), told);
}

/// Node of each rank by Open MPI's own map for the rank file in `scratch`. This machine stands for all nodes, with enough
/// cores on each.
fn map_of_open_mpi(scratch: &Scratch, hosts: &[&str]) -> BTreeMap<u32, String> {
    // Daemons of one machine need directories of their own.
    let agent = "#!/bin/sh\nTMPDIR=${0%/*}/$1\nexport TMPDIR\nmkdir -p $TMPDIR\nshift\nexec sh -c \"$*\"\n";
    let agent = scratch.write("agent", agent);
    std::fs::set_permissions(&agent, PermissionsExt::from_mode(0o755)).unwrap();
    let mut names = hosts.to_vec();
    names.sort_unstable();
    let slots: Vec<String> =
        names.chunk_by(|one, other| one == other).map(|same| format!("{}:{}", same[0], same.len())).collect();
    let words = ["--host", &slots.join(","), "--display-map", "--mca", "plm_rsh_agent"];
    let mut launch = Mpi::OpenMpi.launch(hosts.len() as u32);
    // The file has the number of ranks, and no node has more than its slots.
    launch.retain(|word| word != "--oversubscribe");
    launch.extend(words.map(OsString::from));
    launch.extend([agent.into(), "--rankfile".into(), scratch.path().join("rankfile.openmpi").into()]);
    launch.push("true".into());
    let job = Job::new(Mpi::OpenMpi, hosts.len() as u32, "true", &[]).with("HWLOC_SYNTHETIC", "core:8 pu:1");
    let shown = job.run(&launch, scratch.path()).success().stdout;
    let (mut map, mut node) = (BTreeMap::new(), "");
    for line in shown.lines() {
        if let Some((_, rest)) = line.split_once("Data for node: ") {
            node = rest.split_whitespace().next().unwrap();
        } else if let Some((_, rest)) = line.split_once("Process rank: ") {
            map.insert(rest.split_whitespace().next().unwrap().parse().unwrap(), node.to_owned());
        }
    }
    map
}
