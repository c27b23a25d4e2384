//! `trace.values = "aggregate"`: counts for each rank of which the mean and its ends are stored.

use std::process::Command;
use std::time::Duration;

use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::{ampl, dist};
use ampl_tests::process;
use ampl_tests::run::{Form, Monitored, monitor};
use serde_json::{Value, json};

const RANKS: u32 = 5;
const EVERYTHING: &str = "[trace]\ntiming = \"off\"\n[agent]\nmax_overhead = \"99%\"\n";
const AGGREGATE: &str =
    "[trace]\ntiming = \"off\"\nvalues = \"aggregate\"\n[agent]\nmax_overhead = \"99%\"\n";

fn run(mpi: Mpi, config: &str) -> Monitored {
    monitor(&Job::of(mpi, RANKS, "uneven", &["10"]), config, Form::Run).success()
}

/// Arguments of the calls of that function of `rank`.
fn arguments(run: &Monitored, rank: u32, function: &str) -> Vec<Value> {
    let calls = run.decode(rank).into_iter().filter(|line| line["fn"] == function);
    calls.map(|line| line["args"].clone()).collect()
}

fn numbers(list: &Value) -> Vec<i64> {
    list.as_array()
        .unwrap_or_else(|| panic!("{list}"))
        .iter()
        .map(|number| number.as_i64().unwrap())
        .collect()
}

#[test]
fn counts_of_ranks_are_a_mean_and_its_ends() {
    let (exact, aggregate) = (run(Mpi::OpenMpi, EVERYTHING), run(Mpi::OpenMpi, AGGREGATE));
    let mut compared = 0;
    for rank in 0..RANKS {
        for function in ["MPI_Alltoallv", "MPI_Alltoallw", "MPI_Allgatherv", "MPI_Gatherv", "MPI_Scatterv"] {
            let (each, means) = (arguments(&exact, rank, function), arguments(&aggregate, rank, function));
            assert_eq!(each.len(), means.len(), "{function}");
            for (each, means) in each.iter().zip(&means) {
                for (name, value) in each.as_object().unwrap() {
                    let is_spread = ["sendcounts", "recvcounts", "displs", "sdispls", "rdispls"];
                    if !is_spread.contains(&&name[..]) || value.is_null() {
                        let is_place = name.ends_with("buf");
                        assert!(is_place || *value == means[name], "{function} {name}: {value} {means}");
                        continue;
                    }
                    let all = numbers(value);
                    let mean = all.iter().sum::<i64>() as f64 / all.len() as f64;
                    let expected = json!({"mean": mean, "min": all.iter().min(), "max": all.iter().max()});
                    assert_eq!(means[name], expected, "{function} {name}: {all:?}");
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 5 * 10 * 12, "{compared}");
}

#[test]
fn means_are_replayed_only_where_asked_for() {
    let replayer = dist().join("bin/ampl-replay");
    let exact = run(Mpi::OpenMpi, EVERYTHING);
    let sent = |run: &Monitored, rank: u32| -> i64 {
        arguments(run, rank, "MPI_Alltoallv").iter().flat_map(|args| numbers(&args["sendcounts"])).sum()
    };
    for (recorded, mpi) in
        [(Mpi::OpenMpi, Mpi::OpenMpi), (Mpi::Mpich, Mpi::OpenMpi), (Mpi::OpenMpi, Mpi::Mpich)]
    {
        let run = run(recorded, AGGREGATE);
        let path = run.run.to_string_lossy().into_owned();
        let job =
            |options: &[&str]| Job::new(mpi, RANKS, replayer.clone(), &[&[&path[..]], options].concat());
        let refused = job(&[]).plain();
        assert!(!refused.status.success() && refused.stderr.contains("--aggregate-values"), "{refused:?}");
        let again = monitor(&job(&["--aggregate-values"]), EVERYTHING, Form::Run).success();
        assert!(again.finished.stderr.contains("are made of means"), "{}", again.finished.stderr);
        // Both ends of each message agree, and ranks send as much as they did but for what rounding leaves.
        let mut check = Command::new(ampl());
        check.arg("check").arg(&again.run);
        let checked = process::run(&mut check, Duration::from_secs(60)).success().stdout;
        assert!(checked.contains("No fault found"), "{checked}");
        for rank in 0..RANKS {
            let (recorded, replayed) = (sent(&exact, rank), sent(&again, rank));
            assert!(
                (recorded - replayed).abs() <= 10 * i64::from(RANKS) / 2,
                "{rank}: {recorded} {replayed}"
            );
            let calls = |of: &Monitored| of.decode(rank).len();
            assert_eq!(calls(&run), calls(&again), "rank {rank}");
        }
    }
    let means = run(Mpi::Mpich, AGGREGATE);
    let mut skeleton = Command::new(ampl());
    skeleton.arg("skeleton").arg(&means.run).arg("-o").arg(means.scratch.path().join("skeleton.c"));
    let refused = process::run(&mut skeleton, Duration::from_secs(60));
    assert!(!refused.status.success() && refused.stderr.contains("means of the counts"), "{refused:?}");
}
