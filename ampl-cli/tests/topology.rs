//! `ampl topology` as a user meets it: what the JSON claims is checked against the definitions.

use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use ampl_testkit::topology::Family::{self, *};
use ampl_testkit::topology::{Claim, Edges, check, copies, random_regular, shuffled};
use serde_json::Value;

struct Said {
    status: i32,
    out: String,
    err: String,
}

/// Runs the command on a file with that `text`, and one of `patterns` where there are any.
fn topology(text: &[u8], patterns: Option<&str>, options: &[&str]) -> Said {
    let place = tempfile::tempdir().unwrap();
    let edges = place.path().join("edges.txt");
    fs::write(&edges, text).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_ampl"));
    command.arg("topology").arg("--edges").arg(edges).args(options);
    if let Some(patterns) = patterns {
        let file = place.path().join("patterns.toml");
        fs::write(&file, patterns).unwrap();
        command.arg("--pattern").arg(file);
    }
    let output = command.output().unwrap();
    Said {
        status: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

fn text((_, edges): &Edges) -> String {
    edges.iter().fold(String::new(), |mut text, (u, v)| {
        writeln!(text, "{u} {v}").unwrap();
        text
    })
}

fn json(graph: &Edges) -> Value {
    let said = topology(text(graph).as_bytes(), None, &["--json"]);
    assert_eq!(said.status, 0, "{}", said.err);
    serde_json::from_str(&said.out).unwrap()
}

fn numbers(value: &Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|number| number.as_u64().unwrap() as u32).collect()
}

/// Checks the claim of one pattern that is all of `graph`.
fn checked(graph: &Edges, pattern: &Value) {
    assert_eq!(pattern["verified"], true);
    let claim = Claim {
        name: pattern["name"].as_str().unwrap(),
        dims: numbers(&pattern["dims"]),
        periodic: pattern["periodic"].as_array().unwrap().iter().map(|axis| axis == true).collect(),
        arity: pattern["arity"].as_u64().map(|arity| arity as u32),
        cleared_bit: pattern["cleared_bit"].as_str(),
        coordinates: pattern["coordinates"].as_array().unwrap().iter().map(numbers).collect(),
    };
    assert_eq!(check(&claim, graph.0, &graph.1), Ok(()), "{claim:?}");
}

#[test]
fn coordinates_in_the_document_are_a_proof() {
    let families: [(&str, Family); 10] = [
        ("grid", Lattice(vec![5, 3], vec![false; 2])),
        ("torus", Lattice(vec![5, 3, 6], vec![true, false, true])),
        ("ring", Lattice(vec![9], vec![true])),
        ("stencil6", SixPoints([6, 6], [true; 2])),
        ("stencil8", Moore(vec![6, 5], vec![false, true])),
        ("stencil26", Moore(vec![4, 3, 5], vec![true; 3])),
        ("hypercube", Hypercube(5)),
        ("tree", Tree(40, 3)),
        ("binomial-tree", Doubling(22)),
        ("cg", Cg(32)),
    ];
    for (name, family) in families {
        let graph = shuffled(&family.edges(), 7);
        let document = json(&graph);
        let pattern = &document["patterns"][0];
        assert_eq!(pattern["name"], name);
        assert_eq!(pattern["bytes_share"], 1.0);
        assert_eq!(document["unexplained"]["bytes_share"], 0.0);
        checked(&graph, pattern);
    }
}

#[test]
fn copies_and_what_is_none_are_told_apart() {
    let four = shuffled(&copies(&Lattice(vec![8, 8], vec![true; 2]).edges(), 4), 1);
    let document = json(&four);
    assert_eq!(document["patterns"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&document["patterns"][0]["copies"], &document["patterns"][0]["ranks"]),
        (&4.into(), &"0-255".into())
    );
    let none = json(&random_regular(50, 4, 1));
    assert_eq!(
        (&none["patterns"][0]["name"], &none["patterns"][0]["verified"]),
        (&"none".into(), &false.into())
    );
    assert_eq!(none["unexplained"]["edges_share"], 1.0);
}

#[test]
fn volumes_part_patterns() {
    let cube = Hypercube(4).edges();
    let mut text: String = cube.1.iter().map(|(u, v)| format!("{u} {v} 90\n")).collect();
    text += "4 11 0.5\n5 12 0.5\n";
    let said = topology(text.as_bytes(), None, &["--json"]);
    let document: Value = serde_json::from_str(&said.out).unwrap();
    let names: Vec<&str> = document["patterns"]
        .as_array()
        .unwrap()
        .iter()
        .map(|pattern| pattern["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["hypercube", "line"]);
    let share = document["patterns"][0]["bytes_share"].as_f64().unwrap();
    assert!((share - 2880.0 / 2881.0).abs() < 1e-12);
    assert!(document["patterns"][0]["calls_share"].is_null());
    let aliases = document["patterns"][0]["aliases"].as_array().unwrap();
    assert!(aliases.iter().any(|alias| alias["name"] == "torus" && numbers(&alias["dims"]) == [4, 4]));
}

#[test]
fn grids_are_drawn() {
    let said = topology(text(&Lattice(vec![3, 2], vec![true, false]).edges()).as_bytes(), None, &[]);
    assert!(said.out.contains("3 x 2 torus"), "{}", said.out);
    assert!(said.out.contains("0 - 1\n") && said.out.contains("4 - 5\n"), "{}", said.out);
}

#[test]
fn a_pattern_of_the_users_own_goes_first() {
    let mut edges = Vec::new();
    for x in 0..13_u32 {
        edges.extend([(x, (x + 1) % 13), (x, (x + 5) % 13)]);
    }
    let graph = shuffled(&(13, edges), 3);
    assert_eq!(json(&graph)["patterns"][0]["name"], "none");
    let pattern = "[[pattern]]\nname = \"my circulant\"\ndims = [\"any\"]\nperiodic = true\nneighbours = [\"x + 1\", \"x + 5\"]\n";
    let said = topology(text(&graph).as_bytes(), Some(pattern), &["--json"]);
    let document: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(document["patterns"][0]["name"], "my circulant");
    let places: Vec<u32> = document["patterns"][0]["coordinates"]
        .as_array()
        .unwrap()
        .iter()
        .map(|place| numbers(place)[0])
        .collect();
    for (u, v) in graph.1 {
        let apart = (places[u as usize] + 13 - places[v as usize]) % 13;
        assert!([1, 5, 8, 12].contains(&apart));
    }
    let said = topology(b"0 1\n", Some("[[pattern]]\nname = \"p\"\n"), &[]);
    assert_eq!(said.status, 2, "{}", said.err);
}

#[test]
fn odd_files_are_read_or_refused_with_their_line() {
    for (text, status, named) in [
        (&b""[..], 0, ""),
        (b"# nothing\n\n", 0, ""),
        (b"0 0\n", 0, ""),
        (b"0 1\r\n1 0\r\n", 0, ""),
        (b"499999 0\n", 0, ""),
        (b"0 1\n1 two\n", 3, "line 2"),
        (b"0 1\n\n1\n", 3, "line 3"),
        (b"0 4294967295\n", 3, "line 1"),
        (b"0 1 inf\n", 3, "line 1"),
        (b"0 1\n\xff\xfe\n", 3, "line 2"),
    ] {
        let said = topology(text, None, &[]);
        assert_eq!(said.status, status, "{text:?}: {}", said.err);
        assert!(said.err.contains(named) && said.err.starts_with("ampl: ") == (status != 0), "{}", said.err);
    }
    let output =
        Command::new(env!("CARGO_BIN_EXE_ampl")).args(["topology", "--edges", "/nonexistent"]).output();
    assert_eq!(output.unwrap().status.code(), Some(4));
    let output = Command::new(env!("CARGO_BIN_EXE_ampl")).arg("topology").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}

mod of_runs {
    use std::fs;
    use std::path::Path;

    use ampl_testkit::runs::{structure, world, write};
    use serde_json::Value;

    use super::{Command, Said};

    fn ask(command: &str, run: &Path, words: &[&str]) -> Said {
        let mut ampl = Command::new(env!("CARGO_BIN_EXE_ampl"));
        let output = ampl.arg(command).arg(run).args(words).output().unwrap();
        Said {
            status: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// A stencil of 8 x 8 ranks, dealt out to 8 hosts one after the other.
    fn stencil(run: &Path) {
        let structure = structure(64, |caller| {
            let (x, y) = (i64::from(caller.rank() / 8), i64::from(caller.rank() % 8));
            for _ in 0..10 {
                for (line, (dx, dy)) in (10..).zip([(-1, 0), (1, 0), (0, -1), (0, 1)]) {
                    let inside = (0..8).contains(&(x + dx)) && (0..8).contains(&(y + dy));
                    if inside {
                        caller.send(line, (x + dx) * 8 + y + dy, 100, world());
                    }
                }
            }
        });
        write(run, &structure, |rank| format!("node{}", rank % 8)).unwrap();
    }

    #[test]
    fn a_stencil_dealt_out_round_robin_is_placed_in_blocks() {
        let place = tempfile::tempdir().unwrap();
        let run = place.path().join("run");
        stencil(&run);
        let files = place.path().join("files");
        let words = ["--place", "-o", files.to_str().unwrap(), "--json"];
        let said = ask("topology", &run, &words);
        assert_eq!(said.status, 0, "{}", said.err);
        let document: Value = serde_json::from_str(&said.out).unwrap();
        assert_eq!(document["patterns"][0]["name"], "grid");
        assert_eq!(document["messages"]["messages"], 2 * 112 * 10);
        let placement = &document["placement"];
        assert_eq!(placement["basis"], "recorded");
        // Round robin keeps no edge along y and every edge along x; the best boxes are of 2 x 4.
        assert_eq!(placement["before"]["bytes"], 56 * 2 * 10 * 800);
        assert_eq!(placement["after"]["bytes"], 32 * 2 * 10 * 800);
        let nodes = |text: &str| -> Vec<String> { text.lines().map(str::to_owned).collect() };
        let hosts = nodes(&fs::read_to_string(files.join("hosts.slurm")).unwrap());
        let of_json: Vec<&str> =
            placement["hosts"].as_array().unwrap().iter().map(|h| h.as_str().unwrap()).collect();
        assert_eq!(hosts, of_json);
        let order = fs::read_to_string(files.join("MPICH_RANK_ORDER")).unwrap();
        let filled: Vec<usize> = order
            .lines()
            .filter(|line| !line.starts_with('#'))
            .flat_map(|line| line.split(','))
            .map(|rank| rank.parse().unwrap())
            .collect();
        let rankfile = fs::read_to_string(files.join("rankfile.openmpi")).unwrap();
        for (number, line) in rankfile.lines().enumerate() {
            assert!(line.starts_with(&format!("rank {number}={} slot=", hosts[number])), "{line}");
        }
        // All three give one placement, of 8 ranks on every node.
        for (node, ranks) in filled.chunks(8).enumerate() {
            assert!(ranks.iter().all(|&rank| hosts[rank] == format!("node{node}")), "{ranks:?}");
        }
        assert!(
            ask("topology", &run, &["--place", "-o", files.to_str().unwrap()]).out.contains("busiest node")
        );
    }

    #[test]
    fn a_small_saving_writes_nothing() {
        let place = tempfile::tempdir().unwrap();
        let (run, files) = (place.path().join("run"), place.path().join("files"));
        stencil(&run);
        // In blocks of one row each, by order: columns cross. Of 64 on a node nothing does.
        let words = ["--place", "--ranks-per-node", "64", "-o", files.to_str().unwrap()];
        let said = ask("topology", &run, &words);
        assert!(said.status == 0 && said.out.contains("nothing crosses"), "{}{}", said.out, said.err);
        let ring = structure(8, |caller| caller.send(10, i64::from((caller.rank() + 1) % 8), 5, world()));
        write(&run, &ring, |rank| format!("node{}", rank / 4)).unwrap();
        let said = ask("topology", &run, &["--place", "-o", files.to_str().unwrap()]);
        assert!(said.out.contains("no files are written"), "{}", said.out);
        assert!(!files.exists());
        assert_eq!(ask("topology", &run, &["--ranks-per-node", "4"]).status, 2);
        assert_eq!(ask("topology", &place.path().join("none"), &[]).status, 4);
    }

    #[test]
    fn the_logical_program_is_checked_and_written() {
        let place = tempfile::tempdir().unwrap();
        let run = place.path().join("run");
        stencil(&run);
        let check: Value = serde_json::from_str(&ask("logical", &run, &["--check", "--json"]).out).unwrap();
        assert_eq!((&check["ranks"], &check["ranks_exact"]), (&64.into(), &64.into()));
        assert_eq!(check["with_values"]["ranks_exact"], 64);
        assert_eq!((&check["longest"], &check["records"]), (&40.into(), &4.into()));
        assert_eq!(check["outside_topology"]["calls"], 0.0);
        let said = ask("logical", &run, &["--rank", "9", "--json"]);
        let calls: Vec<Value> = said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(calls.len(), 40);
        let partners: Vec<i64> =
            calls[..4].iter().map(|call| call["args"]["dest"].as_i64().unwrap()).collect();
        assert_eq!(partners, [1, 17, 8, 10]);
        assert_eq!((&calls[0]["args"]["count"], &calls[0]["args"]["comm"]), (&100.into(), &"world".into()));
        assert_eq!(ask("logical", &run, &["--rank", "64"]).status, 4);
        let text = ask("logical", &run, &[]).out;
        assert!(text.contains("loop 10") && text.contains("if neighbour +x exists"), "{text}");
    }
}
