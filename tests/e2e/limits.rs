//! Limits of memory and of the trace's size: what has no place within them is a gap, and the run says so.

use ampl_tests::job::{Job, Mpi};
use ampl_tests::run::{Form, Monitored, monitor, number};
use serde_json::Value;

const RANKS: u32 = 2;

/// A run in which every call has other counts, under that configuration.
fn run(mpi: Mpi, config: &str) -> Monitored {
    let job = Job::of(mpi, RANKS, "promise", &["alltoallv", "1500"]);
    let run = monitor(&job, config, Form::Run).success();
    let info = run.info();
    assert_eq!((&info["complete"], &info["agent_failures"]), (&Value::Bool(true), &0.into()), "{info}");
    run
}

/// Steps down because of a limit: the level and the limit's key.
fn steps(info: &Value) -> Vec<(&str, &str)> {
    let steps = info["overhead"]["steps"].as_array().map_or(&[][..], Vec::as_slice);
    let limited = steps.iter().filter(|step| step["reason"] == "limit");
    limited.filter_map(|step| Some((step["level"].as_str()?, step["limit"].as_str()?))).collect()
}

#[test]
fn little_memory_leaves_summaries_and_counts() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        // Each rank has closed some before the other ends.
        let run = run(mpi, "[agent]\nmax_memory = \"500kB\"\n[window]\nmarker = \"period:2ms\"\n");
        let (info, said) = (run.info(), &run.finished.stderr);
        let found = steps(&info);
        assert!(!found.is_empty() && found.iter().all(|step| step.1 == "agent.max_memory"), "{info}");
        assert!(found.contains(&("summaries", "agent.max_memory")), "{info}");
        assert!(said.contains("agent.max_memory"), "{said}");
        assert_eq!(info["structure_complete"], false);
        assert_eq!(info["windows_without_summary"], 0, "{info}");
        assert!(run.adds_up().contains_key("limit"), "{info}");
    }
}

#[test]
fn much_memory_is_no_limit() {
    let run = run(
        Mpi::OpenMpi,
        "[agent]\nmax_memory = \"1GiB\"\nmax_overhead = 0.9\nmax_structure_overhead = 0.99\n",
    );
    let info = run.info();
    assert_eq!(steps(&info), []);
    assert_eq!(info["structure_complete"], true, "{info}");
    assert!(!run.finished.stderr.contains("max_memory"), "{}", run.finished.stderr);
    assert!(!run.adds_up().contains_key("limit"));
}

#[test]
fn a_small_trace_leaves_out_times_and_then_calls() {
    let free = "[trace]\ntiming = \"all\"\n[agent]\nmax_overhead = 0.9\nmax_structure_overhead = 0.99\n";
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let whole = run(mpi, free).info();
        let bytes = |part: &str| number(&whole["trace_bytes"][part]) as u64;
        let (all, times, structure) = (bytes("total"), bytes("timing"), bytes("structure"));
        assert!(times > 0 && structure > 0, "{whole}");
        for (most, level) in [(all - times / 2, "structure"), (all - times - structure / 2, "summaries")] {
            let small = run(mpi, &format!("{free}[output]\nmax_bytes = \"{most}B\"\n"));
            let (info, said) = (small.info(), &small.finished.stderr);
            assert!(number(&info["trace_bytes"]["total"]) as u64 <= most, "{info}");
            let found = steps(&info);
            assert!(found.contains(&(level, "output.max_bytes")), "{found:?}");
            assert!(said.contains("output.max_bytes"), "{said}");
            // Something is left, and what is not is a gap.
            let reasons = small.adds_up();
            assert_eq!(reasons.contains_key("limit"), level == "summaries", "{reasons:?}");
            assert!(number(&info["recorded_calls"]) > 100.0, "{info}");
            assert_eq!(info["windows_without_summary"], 0, "{info}");
        }
    }
}
