//! Reports of ampl's own time, and of the processors that ranks had to share.

use std::process::Command;
use std::time::Duration;

use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::ampl;
use ampl_tests::process;
use ampl_tests::run::{Form, Monitored, monitor, number, parse, text_of};
use serde_json::Value;

const RANKS: u32 = 3;

/// Own time includes start and end, and is part of the job's time in the kernel's account.
#[test]
fn start_and_end_are_in_it() {
    for mpi in Mpi::ALL {
        for form in [Form::Run, Form::Exec] {
            let run = monitor(&Job::of(mpi, RANKS, "steady", &["30"]), "", form).success();
            let overhead = run.info()["overhead"].clone();
            let of = |name: &str| number(&overhead[name]);
            let (agent, job) = (of("agent_ns"), of("processor_ns"));
            assert!(
                of("start_ns") > 0.0 && of("end_ns") > 0.0 && of("calls_ns") > 0.0,
                "{mpi:?}: {overhead}"
            );
            assert_eq!(agent, of("calls_ns") + of("start_ns") + of("end_ns"), "{mpi:?}: {overhead}");
            assert!(agent < job, "{mpi:?}: {overhead}");
            assert!((of("processor_share") - agent / job).abs() < 1e-9, "{mpi:?}: {overhead}");
            let most = &overhead["largest"];
            assert!(number(&most["share"]) > 0.0 && number(&most["rank"]) < f64::from(RANKS), "{overhead}");
            let info = process::run(Command::new(ampl()).arg("info").arg(&run.run), Duration::from_secs(60));
            let words = info.success().stdout.split_whitespace().collect::<Vec<_>>().join(" ");
            let parts = ["of processor time, ", " of the job's ", "; calls ", ", start ", ", end "];
            for said in parts.into_iter().chain([" of the ranks' time, at most "]) {
                assert!(words.contains(said), "{mpi:?}: {said}: {words}");
            }
        }
    }
}

/// The processors that this test may use.
fn allowed() -> Vec<u32> {
    let status = text_of("/proc/self/status".as_ref());
    let list =
        status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).expect("Linux says it");
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let of = |text: &str| text.trim().parse::<u32>().expect("a number");
        of(first)..=of(last)
    };
    list.split(',').flat_map(range).collect()
}

/// Every rank on those of the processors that `where_to` has a shell choose.
fn bound(mpi: Mpi, ranks: u32, where_to: &str) -> Monitored {
    let program = mpi.compile("steady");
    let script = format!("rank=${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}}; exec taskset -c {where_to} \"$@\"");
    let words = ["-c", &script, "sh", program.to_str().expect("a path of ours"), "20"];
    monitor(&Job::new(mpi, ranks, "sh", &words), "", Form::Run).success()
}

fn efficiency(run: &Monitored, json: bool) -> String {
    let mut command = Command::new(ampl());
    command.arg("efficiency").arg(&run.run).args(json.then_some("--json"));
    process::run(&mut command, Duration::from_secs(60)).success().stdout
}

#[test]
fn ranks_that_share_processors_are_told_before_any_efficiency() {
    let allowed = allowed();
    let first = allowed[0];
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let run = bound(mpi, RANKS, &first.to_string());
        let shared = "3 ranks share 1 processor";
        let said = &run.finished.stderr;
        let at = |text: &str| said.find(text).unwrap_or_else(|| panic!("{mpi:?}: no {text}: {said}"));
        assert!(at(shared) < at("parallel"), "{mpi:?}: {said}");
        let host = &run.info()["processors"]["hosts"][0];
        assert_eq!((&host["ranks"], &host["processors"]), (&RANKS.into(), &1.0.into()), "{mpi:?}");
        assert!(efficiency(&run, false).starts_with(shared), "{mpi:?}: {}", efficiency(&run, false));
        let rows = parse(&efficiency(&run, true));
        assert_eq!(&rows[0]["processors"]["hosts"][0], host, "{mpi:?}");
        assert_eq!(rows[1].get("processors"), None, "{mpi:?}");
        let Some(second) = allowed.get(1) else { continue };
        // One processor each: the ranks share with no other rank of the job.
        let run = bound(mpi, 2, &format!("$(if [ $rank = 0 ]; then echo {first}; else echo {second}; fi)"));
        let sharing = &run.info()["processors"];
        assert!(sharing.is_null() || sharing["hosts"] == Value::Array(Vec::new()), "{mpi:?}: {sharing}");
    }
}
