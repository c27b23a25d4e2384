//! `perf.*` and `papi.*`: counts of programs that do a known amount of work (`programs/counters.c`).

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::{Scratch, ampl, home, program};
use ampl_tests::process;
use ampl_tests::run::{Form, Monitored, monitor, number};
use serde_json::Value;

const WINDOWS: usize = 6;

/// Windows end at the barrier; the metrics are `names`, each followed by `more`.
fn configuration(names: &[&str], more: &str) -> String {
    let metric = |name: &&str| format!("[[metric]]\nname = \"{name}\"\n{more}\n");
    let metrics: String = names.iter().map(metric).collect();
    format!("[window]\nmarker = \"mpi:MPI_Barrier\"\n{metrics}")
}

fn job(ranks: u32, millis: u32, pages: u32, mode: &[&str]) -> Job {
    let (windows, millis, pages) = (WINDOWS.to_string(), millis.to_string(), pages.to_string());
    Job::of(Mpi::OpenMpi, ranks, "counters", &[&[&windows[..], &millis, &pages], mode].concat())
}

/// Means over ranks of the metric per window, but for the last, which ends with the run.
fn means(run: &Monitored, metric: &str) -> Vec<f64> {
    let wanted =
        |row: &Value| row["metric"] == metric && row["basis"] == "census" && row["scope"] == "window";
    let rows: Vec<Value> = run.estimate().into_iter().filter(wanted).collect();
    assert_eq!(rows.len(), WINDOWS + 1, "{metric}: {rows:?}");
    rows[..WINDOWS].iter().map(|row| number(&row["mean"])).collect()
}

#[test]
fn the_kernel_s_counters_count_the_ranks_work() {
    let config = configuration(&["perf.task-clock", "perf.page-faults", "perf.context-switches"], "");
    let run = monitor(&job(2, 20, 500, &[]), &config, Form::Run).success();
    // Ranks work for 20 and 40 ms; the first waits for the second, working too, the longer the busier it is here.
    for mean in means(&run, "perf.task-clock") {
        assert!((30e6..1e9).contains(&mean), "{mean} ns");
    }
    let faults = means(&run, "perf.page-faults");
    assert!(faults.iter().all(|mean| (500.0..700.0).contains(mean)), "{faults:?}");
    let switches = means(&run, "perf.context-switches");
    assert!(switches.iter().all(|mean| (1.0..1e6).contains(mean)), "{switches:?}");
}

#[test]
fn threads_are_counted_whenever_they_began_and_children_are_not() {
    let config = configuration(&["perf.task-clock"], "");
    let run = monitor(&job(1, 40, 1, &["threads"]), &config, Form::Exec).success();
    for mean in means(&run, "perf.task-clock") {
        assert!((39e6..80e6).contains(&mean), "{mean} ns");
    }
    let without = monitor(&job(1, 5, 1, &["fds"]), &configuration(&[], ""), Form::Exec).success();
    let run = monitor(&job(1, 5, 1, &["fds"]), &config, Form::Exec).success();
    assert_eq!(
        without.finished.stdout, run.finished.stdout,
        "counters take none of the program's descriptors"
    );
    let first = means(&run, "perf.task-clock")[0];
    assert!((5e6..100e6).contains(&first), "the child worked for 300 ms: {first} ns");
}

#[test]
fn what_this_machine_cannot_count_is_an_error_or_left_out() {
    let doctor =
        process::run(Command::new(ampl()).args(["doctor", "--json"]), Duration::from_secs(30)).success();
    let doctor = ampl_tests::run::parse(&doctor.stdout);
    let offers = doctor["counters"]["perf"].as_array().expect("a list").contains(&"cycles".into());
    let mut asked = vec![("perf.cycles", offers)];
    // Events of an installed PAPI are known to the ranks only.
    if doctor["counters"]["papi"].is_null() {
        asked.push(("papi.PAPI_FP_INS", false));
    }
    for ((name, offered), form) in asked.into_iter().flat_map(|one| [(one, Form::Run), (one, Form::Exec)]) {
        let needed = configuration(&[name], "role = \"guide\"");
        let run = monitor(&job(2, 1, 1, &[]), &needed, form);
        if offered {
            run.success();
            continue;
        }
        let said = format!("this machine cannot count {name} (");
        assert_eq!(run.finished.stderr.matches(&said).count(), 1, "{}", run.finished.stderr);
        assert!(run.finished.stderr.contains("set optional = true"), "{}", run.finished.stderr);
        assert!(!run.run.exists());
        // Behind a launcher ranks may differ in what they can count: the job goes on.
        match form {
            Form::Run => assert_eq!(run.finished.status.code(), Some(2)),
            Form::Exec => assert!(run.success().finished.stderr.contains("goes on without ampl")),
        }
    }
    let optional = configuration(&["perf.cycles", "perf.page-faults"], "role = \"guide\"\noptional = true");
    let run = monitor(&job(2, 1, 200, &[]), &optional, Form::Run).success();
    let faults = means(&run, "perf.page-faults");
    assert!(faults.iter().all(|&mean| mean >= 200.0), "{faults:?}");
    if !offers {
        let said = "perf.cycles not counted: ";
        assert!(run.finished.stderr.contains(said), "{}", run.finished.stderr);
        let cycles = run.estimate().into_iter().filter(|row| row["metric"] == "perf.cycles");
        assert!(cycles.into_iter().all(|row| row["mean"].is_null() && row["guaranteed"] == false));
        assert!(run.decisions().iter().all(|row| row["guide"] != "perf.cycles"));
    }
}

/// A directory with `programs/fake_papi.c` as its libpapi.so.
fn fake_papi() -> Scratch {
    let scratch = Scratch::new("papi");
    let mut compile = Command::new(program(&["gcc", "cc"]));
    compile.args(["-O1", "-fPIC", "-shared", "-o"]).arg(scratch.path().join("libpapi.so"));
    compile.arg(home().join("programs/fake_papi.c"));
    process::run(&mut compile, Duration::from_secs(120)).success();
    scratch
}

fn with_papi(job: Job, papi: &Scratch) -> Job {
    let path: PathBuf = papi.path().to_owned();
    job.with("LD_LIBRARY_PATH", path)
}

#[test]
fn papi_counts_in_a_copy_of_its_own() {
    let papi = fake_papi();
    let config = configuration(&["papi.FAKE_ONE", "papi.FAKE_TWO"], "");
    let run = monitor(&with_papi(job(2, 1, 1, &[]), &papi), &config, Form::Run).success();
    // Read once per window, never per call.
    assert_eq!(means(&run, "papi.FAKE_ONE"), [10.0; WINDOWS]);
    assert_eq!(means(&run, "papi.FAKE_TWO"), [3.0; WINDOWS]);
    let missing = configuration(&["papi.FAKE_ONE", "papi.NO_SUCH"], "");
    let job = with_papi(job(2, 1, 1, &[]), &papi);
    let run = monitor(&job, &missing, Form::Run);
    let said = "ampl: rank 0: this machine cannot count papi.NO_SUCH (PAPI says: Event does not exist): ";
    assert_eq!(run.finished.stderr.matches(said).count(), 1, "{}", run.finished.stderr);
    assert_eq!(run.finished.status.code(), Some(0), "the job goes on without ampl");
    let optional = configuration(&["papi.FAKE_ONE", "papi.NO_SUCH"], "optional = true");
    let run = monitor(&job, &optional, Form::Run).success();
    assert_eq!(means(&run, "papi.FAKE_ONE"), [10.0; WINDOWS]);
    assert!(run.finished.stderr.contains("papi.NO_SUCH not counted: "), "{}", run.finished.stderr);
}

/// Counts with the machine's PAPI, if it has one that counts anything.
#[test]
fn the_program_s_own_papi_is_left_alone() {
    let config = configuration(&["papi.perf::TASK-CLOCK"], "optional = true");
    let run = monitor(&job(1, 10, 1, &["papi"]), &config, Form::Run).success();
    let plain = job(1, 10, 1, &["papi"]).plain().success();
    assert_eq!(plain.stdout, run.finished.stdout);
    if run.finished.stderr.contains("papi.perf::TASK-CLOCK not counted") {
        eprintln!("no PAPI here that counts: {}", run.finished.stderr);
        return;
    }
    for mean in means(&run, "papi.perf::TASK-CLOCK") {
        assert!((9e6..40e6).contains(&mean), "{mean} ns");
    }
}

#[test]
fn exported_windows_add_up_to_the_census() {
    // Rounded, rows add up to the census but for their own error.
    let config = configuration(&["perf.task-clock", "bytes.sent"], "") + "[output]\nsummary_error = 0\n";
    let run = monitor(&Job::of(Mpi::OpenMpi, 4, "steady", &["12"]), &config, Form::Run).success();
    let mut export = Command::new(ampl());
    export.arg("export").arg(&run.run).args(["--to", "csv", "-o"]).arg(run.scratch.path().join("tables"));
    process::run(&mut export, Duration::from_secs(60)).success();
    let text = ampl_tests::run::text_of(&run.scratch.path().join("tables/summaries.csv"));
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("window,rank,metric,count,sum,sum_sq,min,max,event"));
    let mut totals = std::collections::BTreeMap::<(String, String), (f64, f64)>::new();
    for line in lines {
        let fields: Vec<&str> = line.split(',').collect();
        let total = totals.entry((fields[0].into(), fields[2].into())).or_default();
        total.0 += fields[3].parse::<f64>().expect("a number");
        total.1 += fields[4].parse::<f64>().expect("a number");
    }
    let census: Vec<Value> = run.estimate();
    let census: Vec<&Value> =
        census.iter().filter(|row| row["basis"] == "census" && row["scope"] == "window").collect();
    assert_eq!(census.len(), totals.len());
    for row in census {
        let metric = row["metric"].as_str().expect("a name").to_owned();
        let (count, sum) = totals[&(row["window"].to_string(), metric)];
        let mean = number(&row["mean"]);
        assert!((sum / count - mean).abs() <= 1e-12 * mean.abs(), "{row}: {sum} / {count}");
    }
}
