//! Jobs of several programs: the ranks of each are known for jobs that ended, died or still run; each is a group, and they
//! are not compared.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use ampl_core::units::{Rank, RankSet};
use ampl_tests::job::{Job, Mpi, making};
use ampl_tests::place::{Scratch, ampl, home};
use ampl_tests::process::{self, undisturbed};
use ampl_tests::run::{Form, Monitored, monitor, number};
use serde_json::{Value, json};

use crate::stuck::ask;

/// Copies of the program `name`, called `lead` and `follow`.
fn two_programs(mpi: Mpi, name: &str, scratch: &Scratch) -> [PathBuf; 2] {
    let program = mpi.compile(name);
    ["lead", "follow"].map(|name| {
        let copy = scratch.path().join(name);
        std::fs::copy(&program, &copy).expect("the scratch directory is ours");
        copy
    })
}

/// A job of so many ranks of the first program and of the second, with the same arguments.
fn job(mpi: Mpi, [lead, follow]: &[PathBuf; 2], ranks: [u32; 2], arguments: &[&str]) -> Job {
    let (others, follow) = (ranks[1].to_string(), follow.to_str().expect("a path of ours"));
    let words = [arguments, &[":", "-n", &others, follow], arguments].concat();
    Job::new(mpi, ranks[0], lead, &words)
}

fn programs(lead: &str, follow: &str) -> Value {
    json!([{"program": "lead", "ranks": lead}, {"program": "follow", "ranks": follow}])
}

/// `ampl info RUN`
fn told(run: &Monitored) -> String {
    process::run(Command::new(ampl()).arg("info").arg(&run.run), Duration::from_secs(60)).stdout
}

#[test]
fn a_title_names_every_program() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let scratch = Scratch::new("programs");
        let both = two_programs(mpi, "front", &scratch);
        let run = monitor(&job(mpi, &both, [2, 1], &["x"]), "", Form::Run).success();
        let said = &run.finished.stderr;
        assert!(said.lines().any(|line| line == "ampl: lead (ranks 0-1) : follow (2)"), "{mpi:?}: {said}");
        assert_eq!(run.info()["programs"], programs("0-1", "2"), "{mpi:?}");

        // ampl before each program.
        let here = Scratch::new("each");
        let exec = |program: &PathBuf| {
            let (ampl, run) = (ampl(), here.path().join("result"));
            [ampl.as_path(), "exec".as_ref(), "-o".as_ref(), &run, "--".as_ref(), program]
                .map(|word| word.to_str().expect("text").to_owned())
        };
        let [lead, follow] = [exec(&both[0]), exec(&both[1])];
        let words: Vec<&str> = lead[1..].iter().chain(&follow).map(String::as_str).collect();
        let words = [&words[..5], &[":", "-n", "2"], &words[5..]].concat();
        let finished = Job::new(mpi, 1, &lead[0], &words).plain().success();
        let run = Monitored { finished, run: here.path().join("result"), scratch: here };
        assert_eq!(run.info()["programs"], programs("0", "1-2"), "{mpi:?}");
        assert!(told(&run).contains("ampl: lead (rank 0) : follow (1-2)\n"), "{mpi:?}: {}", told(&run));

        // One program: the whole command line is its title.
        let run = monitor(&Job::new(mpi, 2, &both[0], &["-v"]), "", Form::Exec).success();
        assert_eq!(run.info()["programs"], json!([{"program": "lead", "ranks": "0-1"}]), "{mpi:?}");
        let text = told(&run);
        let title = text.lines().find(|line| !line.is_empty()).expect("a title");
        assert!(title.starts_with("ampl: ") && !title.contains("rank"), "{mpi:?}: {title}");
    }
}

#[test]
fn programs_of_jobs_that_died_or_hang() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let scratch = Scratch::new("dead-programs");
        let log = scratch.path().join("log");
        let log = log.to_str().expect("a path of ours");
        let both = two_programs(mpi, "dies", &scratch);
        let run = monitor(&job(mpi, &both, [3, 2], &[log, "kill", "20"]), "", Form::Run);
        assert!(!run.finished.status.success() && run.run.join("trace.ampl").is_file(), "{mpi:?}");
        assert_eq!(run.info()["programs"], programs("0-2", "3-4"), "{mpi:?}");
        let said = &run.finished.stderr;
        assert!(said.contains("ampl: lead (ranks 0-2) : follow (3-4)\n"), "{mpi:?}: {said}");

        let both = two_programs(mpi, "stuck", &scratch);
        let asked = ask(&job(mpi, &both, [2, 2], &["3"]), &[], "MPI_Recv MPI_Wait");
        for (info, text) in [(asked.live, asked.live_text), (asked.dead, asked.dead_text)] {
            assert_eq!(info["programs"], programs("0-1", "2-3"), "{mpi:?}");
            assert!(text.contains("ampl: lead (ranks 0-1) : follow (2-3)\n"), "{mpi:?}: {text}");
        }
    }
}

/// The Fortran program `coupled` compiled, with copies called `ocean`, `air` and `server`.
fn coupled(mpi: Mpi, scratch: &Scratch) -> [PathBuf; 3] {
    let _making = making();
    let built = scratch.path().join("ocean");
    let mut compile = Command::new(mpi.fortran_compiler());
    compile.args(["-g", "-O1", "-J"]).arg(scratch.path()).arg("-o").arg(&built);
    compile.arg(home().join("programs/coupled.f90"));
    process::run(&mut compile, Duration::from_secs(120)).success();
    ["ocean", "air", "server"].map(|name| {
        let copy = scratch.path().join(name);
        if copy != built {
            std::fs::copy(&built, &copy).expect("the scratch directory is ours");
        }
        copy
    })
}

/// Two components of two ranks, of which `ocean` computes so many milliseconds a step, `air` so many, and a server of
/// that role.
fn coupled_job(mpi: Mpi, programs: &[PathBuf; 3], milliseconds: [&str; 2], role: &str) -> Job {
    const STEPS: &str = "100";
    let [ocean, air, server] = programs.each_ref().map(|path| path.to_str().expect("a path of ours"));
    let words =
        ["component", STEPS, milliseconds[0], ":", "-n", "2", air, "component", STEPS, milliseconds[1]];
    let words = [&words[..], &[":", "-n", "1", server, role, STEPS, "0"]].concat();
    Job::new(mpi, 2, ocean, &words)
}

/// Ranks of a finding, as a set.
fn ranks_of(finding: &Value) -> RankSet {
    RankSet::parse(finding["ranks"].as_str().unwrap_or_default()).unwrap_or_default()
}

/// True where the matrix of `row` has the waits of 14 ms in each of 100 steps, less what the system takes, and little else.
fn slow_is_waited_for(row: &Value, fast: &str, slow: &str) -> bool {
    let between = row["waits_between_programs"].as_array().expect("a matrix");
    let ns = |waiting: &str, causing: &str| -> f64 {
        let is_cell = |cell: &&Value| cell["waiting"] == waiting && cell["causing"] == causing;
        between.iter().find(is_cell).map_or(0.0, |cell| number(&cell["ns"]))
    };
    let (forth, back) = (ns(fast, slow), ns(slow, fast));
    let server = ns(fast, "server").max(ns(slow, "server"));
    forth > 0.5e9 && forth > 3.0 * back && server < 0.1 * forth
}

#[test]
fn a_slow_component_is_named_and_an_idle_server_never() {
    const SERVER: Rank = Rank(4);
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let scratch = Scratch::new("coupled");
        let programs = coupled(mpi, &scratch);
        // Which of them is slow is told by no order of theirs.
        for (milliseconds, slow, fast, ranks) in
            [(["20", "6"], "ocean", "air", "0-1"), (["6", "20"], "air", "ocean", "2-3")]
        {
            undisturbed(|| {
                let run =
                    monitor(&coupled_job(mpi, &programs, milliseconds, "server"), "", Form::Run).success();
                let row = &run.efficiency()[0];
                assert!(slow_is_waited_for(row, fast, slow), "{mpi:?}: not {slow}: {row}");
                let info = run.info();
                let findings = info["verdict"].as_array().expect("a list");
                let named = |finding: &&Value| finding["kind"] == "busiest-program";
                let busiest = findings.iter().find(named).unwrap_or_else(|| panic!("{mpi:?}: {info}"));
                assert_eq!(busiest["ranks"], ranks, "{mpi:?}: {info}");
                assert!(busiest["text"].as_str().expect("a text").contains(slow), "{mpi:?}: {busiest}");
                // Ranks that share processors are no cause of theirs.
                let causes = findings.iter().filter(|finding| finding["kind"] != "shared-processors");
                for finding in causes {
                    assert!(!ranks_of(finding).contains(SERVER), "{mpi:?}: {finding}");
                    let text = finding["text"].as_str().expect("a text");
                    // A share may begin with a 4.
                    let named = ["rank 4 ", "Rank 4 ", "rank 4,"].iter().any(|name| text.contains(name));
                    assert!(!named || text.contains("rank 4 %"), "{mpi:?}: {text}");
                }

                let run_row = &run.efficiency()[0];
                assert_eq!(run_row["load_balance"], Value::Null, "{mpi:?}: {run_row}");
                let rows = run_row["programs"].as_array().expect("programs");
                let found: Vec<&str> =
                    rows.iter().map(|row| row["program"].as_str().expect("a name")).collect();
                assert_eq!(found, ["ocean", "air", "server"], "{mpi:?}: {run_row}");
                assert!(rows.iter().all(|row| row["parallel"].is_number()), "{mpi:?}: {run_row}");

                let words =
                    Command::new(ampl()).args(["query"]).arg(&run.run).arg("waits").output().expect("ampl");
                let text = String::from_utf8_lossy(&words.stdout).into_owned();
                assert!(text.contains("Waits between programs, at least"), "{mpi:?}: {text}");
            });
        }
    }
}

/// A server polls so often that its calls are only counted: efficiencies of other programs rest on their own windows.
#[test]
fn a_server_that_polls_leaves_numbers_of_other_programs_known() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let scratch = Scratch::new("polls");
        let programs = coupled(mpi, &scratch);
        undisturbed(|| {
            let job = coupled_job(mpi, &programs, ["20", "6"], "polls");
            let config = "[agent]\nmax_overhead = \"1%\"\nmax_structure_overhead = \"1%\"\n";
            let run = monitor(&job, config, Form::Run).success();
            let info = run.info();
            let counted = |gap: &&Value| gap["reason"] == "overhead" && ranks_of(gap).contains(Rank(4));
            let gaps = info["gaps"].as_array().expect("a list");
            assert!(gaps.iter().any(|gap| counted(&gap)), "{mpi:?}: all was recorded: {info}");
            run.adds_up();

            let row = &run.efficiency()[0];
            let rows = row["programs"].as_array().expect("programs");
            let of = |name: &str| rows.iter().find(|row| row["program"] == name).expect("one of three");
            for name in ["ocean", "air"] {
                let own = of(name);
                assert!(own["communication"].is_number() && own["parallel"].is_number(), "{mpi:?}: {row}");
                assert!(number(&own["coverage"]) > 0.9, "{mpi:?}: {row}");
            }
            let findings = info["verdict"].as_array().expect("a list");
            let named = findings.iter().find(|finding| finding["kind"] == "busiest-program");
            assert_eq!(named.map(|finding| &finding["ranks"]), Some(&json!("0-1")), "{mpi:?}: {info}");
            let causes = findings.iter().filter(|finding| finding["kind"] != "shared-processors");
            for finding in causes.filter(|finding| finding["kind"] != "not-measured") {
                assert!(!ranks_of(finding).contains(Rank(4)), "{mpi:?}: {finding}");
            }
        });
    }
}

#[test]
fn groups_are_programs_or_name_them() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let scratch = Scratch::new("groups");
        let both = two_programs(mpi, "front", &scratch);
        let groups = |config: &str, ranks: [u32; 2]| -> (Vec<(String, u64)>, String) {
            let run = monitor(&job(mpi, &both, ranks, &["x"]), config, Form::Run).success();
            // Windows that end a run are short of ranks.
            let mut most: BTreeMap<String, u64> = BTreeMap::new();
            for row in run.all_decisions() {
                let group = most.entry(row["group"].as_str().expect("a name").to_owned()).or_default();
                *group = (*group).max(number(&row["population"]) as u64);
            }
            let found = most.into_iter().collect();
            (found, run.finished.stderr.clone())
        };
        let named = |rows: &[(&str, u64)]| -> Vec<(String, u64)> {
            rows.iter().map(|&(name, ranks)| (name.to_owned(), ranks)).collect()
        };
        assert_eq!(groups("", [2, 1]).0, named(&[("follow", 1), ("lead", 2)]), "{mpi:?}");
        let first = "[[group]]\nname = \"first\"\nprogram = \"le*\"\nerror = 0.05\n";
        assert_eq!(groups(first, [2, 3]).0, named(&[("all", 3), ("first", 2)]), "{mpi:?}");
        // A list goes before a name; of programs that no rank runs one message tells.
        let text = "[[group]]\nname = \"two\"\nmembers = \"1-2\"\n[[group]]\nname = \"rest\"\nprogram = \"*\"\n\
                    [[group]]\nname = \"ice\"\nprogram = \"ice*\"\n";
        let (found, said) = groups(text, [2, 1]);
        assert_eq!(found, named(&[("rest", 1), ("two", 2)]), "{mpi:?}");
        assert_eq!(said.matches("runs \"ice*\"").count(), 1, "{mpi:?}: {said}");
        // One program is no group of its own.
        let run = monitor(&Job::new(mpi, 2, &both[0], &["x"]), "", Form::Exec).success();
        assert!(run.all_decisions().iter().all(|row| row["group"] == "all"), "{mpi:?}");
    }
}
