//! Facts about what ran and where, which no later run can tell.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::{Scratch, ampl};
use ampl_tests::process;
use ampl_tests::run::{Form, monitor, parse};
use serde_json::{Value, json};

/// Output of a tool that hashes or describes a file, as its first word that `wanted` accepts.
fn word_of(command: &mut Command, wanted: impl Fn(&str) -> bool) -> Option<String> {
    let output = command.output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.split_ascii_whitespace().find(|word| wanted(word)).map(str::to_owned)
}

#[test]
fn a_run_says_what_ran_and_where() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let scratch = Scratch::new("metadata");
        let input = scratch.write("input.txt", "abc");
        let program = mpi.compile_as("registers_pairs", "registers_pairs.c", &["-rdynamic"]);
        let argument = format!("--mesh={}", input.display());
        let job = Job::new(mpi, 2, program.clone(), &[&argument, "-v"])
            .with("LOADEDMODULES", "gcc/12:solver/3.1")
            .with("OAR_JOB_ID", "77")
            .with("OAR_QUEUE", "night")
            .with("OMP_NUM_THREADS", "3");
        let run = monitor(&job, "", Form::Exec).success();
        let metadata = &run.info()["metadata"];
        // sha256sum and readelf are the tools that users compare with.
        let sha256 = word_of(Command::new("sha256sum").arg(&program), |word| word.len() == 64).unwrap();
        let own = &metadata["executable"];
        assert_eq!(own["sha256"], sha256.as_str(), "{metadata}");
        let build_id = word_of(Command::new("readelf").arg("-n").arg(&program), |word| {
            word.len() == 40 && word.bytes().all(|byte| byte.is_ascii_hexdigit())
        });
        assert_eq!(own["build_id"].as_str(), build_id.as_deref(), "{metadata}");
        let known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let file = json!({"path": input, "bytes": 3, "sha256": known, "build_id": null});
        assert_eq!(metadata["inputs"], json!([file]));
        assert_eq!(metadata["modules"], json!(["gcc/12", "solver/3.1"]));
        let job = json!({"scheduler": "oar", "id": "77", "name": null, "partition": "night", "nodes": null});
        assert_eq!(metadata["job"], job);
        let variables = metadata["variables"].as_array().unwrap();
        assert!(variables.contains(&json!(["OMP_NUM_THREADS", "3"])), "{metadata}");
        let libraries = metadata["libraries"].as_array().unwrap();
        for name in ["libampl.so", "libc.so.6", "libmpi"] {
            let named = |library: &&Value| library["path"].as_str().unwrap().contains(name);
            assert!(libraries.iter().any(|library| named(&library)), "{name}: {metadata}");
        }
        assert!(metadata["machine"]["memory"].as_u64().unwrap() > 1 << 20, "{metadata}");
        let adiak = json!([
            {"name": "cells", "subcategory": "mesh", "value": 1200},
            {"name": "tolerance", "subcategory": null, "value": 0.25},
            {"name": "solver", "subcategory": null, "value": "multigrid"},
            {"name": "levels", "subcategory": null, "value": [4, 8, -16]},
            {"name": "mine", "subcategory": null, "value": null},
            {"name": "odd", "subcategory": null, "value": null},
        ]);
        assert_eq!(metadata["adiak"], adiak);
        let bytes = run.info()["trace_bytes"]["metadata"].as_u64().unwrap();
        assert!((1..8192).contains(&bytes), "{bytes}");
    }
}

#[test]
fn what_the_job_file_keeps_private_is_stored_nowhere() {
    use std::os::unix::fs::PermissionsExt as _;
    let scratch = Scratch::new("private");
    let input = scratch.write("s3cret.txt", "abc");
    let file = input.display().to_string();
    for (settings, mode, words) in [
        ("", 0o700, 3),
        ("[output]\nmode = \"750\"\narguments = \"program\"\n", 0o750, 1),
        ("[output]\nmode = \"755\"\narguments = \"off\"\n", 0o755, 0),
    ] {
        // Under a mask that lets nobody else read.
        let mut job = Job::of(Mpi::OpenMpi, 2, "steady", &["5", &file]);
        let masked = ["sh", "-c", "umask 077; exec \"$0\" \"$@\""].map(OsString::from);
        job.words = [masked.to_vec(), job.words].concat();
        let run = monitor(&job, settings, Form::Run).success();
        let permissions = |file: &Path| std::fs::metadata(file).unwrap().permissions().mode() & 0o777;
        assert_eq!(permissions(&run.run), mode, "{settings}");
        for file in ["run.toml", "trace.ampl"] {
            assert_eq!(permissions(&run.run.join(file)), 0o600 | mode & 0o044, "{settings}: {file}");
        }
        let text = std::fs::read_to_string(run.run.join("run.toml")).unwrap();
        let command = text.lines().find_map(|line| line.strip_prefix("command = ")).unwrap();
        assert_eq!(command.matches('"').count(), 2 * words, "{command}");
        let info = run.info();
        let told = [text, run.finished.stderr.clone(), info.to_string()];
        let all = words > 1;
        assert_eq!(told.iter().any(|text| text.contains("s3cret")), all, "{told:?}");
        assert_eq!(info["metadata"]["inputs"].is_array(), all, "{info}");
    }
}

#[test]
fn a_dead_job_has_its_facts_too() {
    let run = monitor(&Job::of(Mpi::OpenMpi, 2, "steady", &["20", "kill-1"]), "", Form::Exec);
    let metadata = &run.info()["metadata"];
    assert!(metadata["executable"]["path"].as_str().unwrap().ends_with("steady"), "{metadata}");
    // What is not there is null: no pairs of Adiak's, no environment modules.
    assert!(metadata["adiak"].is_null() && metadata["inputs"] == json!([]), "{metadata}");
}

/// Adds the texts in `value` to `found`.
fn texts(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => drop(found.insert(text.clone())),
        Value::Array(items) => items.iter().for_each(|item| texts(item, found)),
        Value::Object(fields) => fields.values().for_each(|field| texts(field, found)),
        _ => {}
    }
}

#[test]
fn an_anonymous_copy_of_a_run_has_none_of_its_names() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let scratch = Scratch::new("anonymous");
        let log = scratch.path().join("s3cret-log").display().to_string();
        let job = Job::of(mpi, 2, "objects_shared", &[&log])
            .with("LOADEDMODULES", "s3cret/3.1")
            .with("OAR_JOB_ID", "s3cret-77")
            .with("OMP_PLACES", "s3cret-cores");
        let config =
            "[trace]\ntiming = \"all\"\n[[group]]\nname = \"s3cret-group\"\nprogram = \"objects*\"\n";
        let run = monitor(&job, config, Form::Run).success();
        let copy = scratch.path().join("copy.ampl");
        let ask = |words: &[&str], of: &Path| {
            let mut command = Command::new(ampl());
            command.args(words).arg(of);
            process::run(&mut command, Duration::from_secs(60)).success().stdout
        };
        let to = format!("--output={}", copy.display());
        ask(&["export", "--to", "ampl", "--anonymous", &to], &run.run);
        let told = |of: &Path| {
            let decoded = ask(&["decode", "--ranks", "0-1", "--json"], of);
            let mut all: Vec<String> = decoded.lines().map(str::to_owned).collect();
            for words in [&["info", "--json"][..], &["info", "--calls", "--json"], &["efficiency", "--json"]]
            {
                all.push(ask(words, of));
            }
            all
        };
        let (mut names, mut known) = (BTreeSet::new(), BTreeSet::new());
        let original = told(&run.run);
        original.iter().for_each(|text| texts(&parse(text), &mut names));
        let anonymous = told(&copy);
        anonymous.iter().for_each(|text| texts(&parse(text), &mut known));
        // Numbers stand for names. Both have words of MPI and of the interface, numbers, sentences and the processors.
        let machine = parse(&ask(&["info", "--json"], &copy))["metadata"]["machine"].clone();
        let system = machine["system"].as_str().filter(|system| !system.contains(['-', '+']));
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let is_word = |text: &str| {
            let plain = |letter: char| !letter.is_ascii_uppercase() && !"/:+".contains(letter);
            text.chars().all(plain)
                || text.split_once(':').is_some_and(|(_, number)| is_number(number))
                || text.starts_with("MPI")
                || text.split(' ').count() > 4
                || machine["model"] == text
                || system == Some(text)
        };
        let left: Vec<&String> = names.intersection(&known).filter(|text| !is_word(text)).collect();
        assert!(left.is_empty(), "{mpi:?}: {left:?}");
        // By itself, and as a part of another text.
        let all = anonymous.join("\n") + &ask(&["info"], &copy);
        for name in ["s3cret", "objects_shared", "/lib/", ".so", ".dat"] {
            assert!(original.iter().any(|text| text.contains(name)), "{mpi:?}: {name}");
            assert!(!all.contains(name), "{mpi:?}: {name}");
        }
    }
}
