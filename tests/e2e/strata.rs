//! The offline workflow of the AMPL paper, §4.7: a run, its strata, and a run that samples these apart. The job's
//! ranks fall into three classes by what they send (`programs/classes.c`).

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::{ampl, dist};
use ampl_tests::process;
use ampl_tests::run::{Form, Monitored, monitor, number, parse, text_of};
use object::{Object as _, ObjectSymbol as _};
use serde_json::Value;

const RANKS: u32 = 12;

const CONFIG: &str = r#"[sampling]
selection = "predictive"
floor = 2

[window]
marker = "mpi:MPI_Allreduce"

[[metric]]
name = "bytes.sent"
role = "guide"

# A busy machine must not make a rank report less.
[agent]
max_overhead = 0.5
"#;

fn classes(seed: u64, config: &str) -> Monitored {
    let job = Job::of(Mpi::OpenMpi, RANKS, "classes", &[&seed.to_string(), "24"]);
    monitor(&job, config, Form::Run).success()
}

fn strata(run: &Path, file: &Path) -> Value {
    let mut command = Command::new(ampl());
    command.arg("strata").arg(run).arg("-o").arg(file).arg("--json");
    parse(&process::run(&mut command, Duration::from_secs(60)).success().stdout)
}

/// Ranks drawn of the last windows, all groups together.
fn drawn(run: &Monitored) -> f64 {
    let decisions = run.decisions();
    let last = decisions.iter().map(|decision| number(&decision["window"])).fold(0.0, f64::max);
    decisions.iter().filter(|decision| number(&decision["window"]) == last).map(|d| number(&d["size"])).sum()
}

#[test]
fn strata_of_a_run_guide_the_next_one() {
    let first = classes(7, CONFIG);
    let file = first.scratch.path().join("strata.toml");
    let found = strata(&first.run, &file);
    assert_eq!(found["k"], 3, "{found}");
    assert!(number(&found["gain"]) > 0.3, "{found}");
    let ranks: Vec<&str> =
        found["strata"].as_array().unwrap().iter().map(|s| s["ranks"].as_str().unwrap()).collect();
    assert_eq!(ranks, ["0,3,6,9", "1,4,7,10", "2,5,8,11"]);
    // Another run of the job: other noise, the same classes.
    let second = classes(8, &text_of(&file));
    let decisions = second.decisions();
    for stratum in found["strata"].as_array().unwrap() {
        let own =
            decisions.iter().find(|decision| decision["group"] == stratum["name"]).expect("its decisions");
        assert_eq!(number(&own["population"]), 4.0, "{own}");
    }
    // Near or far apart, the classes themselves vary as little.
    assert!(drawn(&second) <= 9.0, "{decisions:?}");
    let again = strata(&second.run, &second.scratch.path().join("again.toml"));
    assert_eq!(again["k"], 3, "{again}");
}

/// The library of a job has nothing of the command's clustering.
#[test]
fn the_library_has_nothing_of_linfa() {
    let bytes = std::fs::read(dist().join("lib/libampl.so")).unwrap();
    let library = object::File::parse(&*bytes).unwrap();
    let names = library.symbols().filter_map(|symbol| symbol.name().ok().map(str::to_owned));
    let names: Vec<String> = names.collect();
    assert!(names.iter().any(|name| name.contains("ampl_core")), "it has its symbols");
    let strange: Vec<&String> = names
        .iter()
        .filter(|name| ["linfa", "ndarray", "rayon"].iter().any(|foreign| name.contains(foreign)))
        .collect();
    // Built together with the command, the library gets the command's features: `cargo xtask dist` builds it by
    // itself.
    assert!(strange.is_empty(), "{strange:?}");
}
