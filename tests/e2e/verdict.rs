//! The verdict names what was planted, first.

use ampl_tests::job::{Job, Mpi};
use ampl_tests::process::undisturbed;
use ampl_tests::run::{Form, Monitored, monitor, number};
use serde_json::Value;

const RANKS: u32 = 4;

/// The planted program with `cause`, for about three seconds.
fn planted(mpi: Mpi, cause: &str, steps: &str, more: &[&str]) -> Monitored {
    let job = Job::of(mpi, RANKS, "planted", &[&[cause, steps][..], more].concat());
    // Where polls are many, a build for tests may not afford them.
    monitor(&job, "[agent]\nmax_overhead = 0.9\n", Form::Run).success()
}

/// Findings but for those that say how far numbers hold.
fn findings(info: &Value) -> Vec<&Value> {
    let all = info["verdict"].as_array().expect("a list");
    let is_cause = |finding: &&Value| finding["kind"] != "shared-processors";
    all.iter().filter(is_cause).collect()
}

/// Share of its time that a rank computed by its own clock: the least and the most of all ranks.
fn computed(run: &Monitored) -> [f64; 2] {
    let lines = run.finished.stdout.lines().filter_map(|line| line.strip_prefix("computed "));
    let shares: Vec<f64> = lines.map(|share| share.trim().parse().expect("a number")).collect();
    assert_eq!(shares.len(), RANKS as usize, "{}", run.finished.stdout);
    [shares.iter().copied().fold(1.0, f64::min), shares.iter().copied().fold(0.0, f64::max)]
}

#[test]
fn a_slow_rank_is_first() {
    undisturbed(|| {
        let run = planted(Mpi::OpenMpi, "slow", "150", &[]);
        let info = run.info();
        let first = findings(&info)[0];
        assert_eq!((&first["kind"], &first["ranks"]), (&"slow-rank".into(), &"2".into()), "{info}");
        assert_eq!(
            (&first["function"], &first["basis"]),
            (&"MPI_Allreduce".into(), &"census".into()),
            "{first}"
        );
        assert!(first["site"].as_str().is_some_and(|site| site.starts_with("planted.c:")), "{first}");
        // By the program's clock: the busiest less the mean, as three ranks compute alike.
        let [least, most] = computed(&run);
        let expected = most - (3.0 * least + most) / 4.0;
        let cost = number(&first["cost_share"]);
        assert!((cost - expected).abs() < 0.1, "{cost} {expected}: {first}");
        let (text, next) =
            (first["text"].as_str().expect("a text"), first["next"].as_str().expect("a command"));
        assert!(text.starts_with("Rank 2 on ") && next.starts_with("ampl efficiency "), "{first}");
        // It stands before all efficiencies in the summary.
        let said = &run.finished.stderr;
        let (verdict, numbers) = (said.find("Rank 2 on "), said.find("\nEfficiency"));
        assert!(verdict.is_some() && verdict < numbers, "{said}");
    });
}

#[test]
fn a_pipeline_is_first() {
    undisturbed(|| {
        let run = planted(Mpi::Mpich, "pipeline", "150", &[]);
        let info = run.info();
        let first = findings(&info)[0];
        assert_eq!((&first["kind"], &first["function"]), (&"pipeline".into(), &"MPI_Recv".into()), "{info}");
    });
}

#[test]
fn polling_is_first() {
    undisturbed(|| {
        let run = planted(Mpi::OpenMpi, "polls", "130", &[]);
        let info = run.info();
        let first = findings(&info)[0];
        assert_eq!((&first["kind"], &first["function"]), (&"polling".into(), &"MPI_Iprobe".into()), "{info}");
    });
}

/// With the usual limit of what ampl may cost, most polls are only counted.
#[test]
fn polling_is_first_where_polls_cost_too_much_to_be_timed() {
    let job = Job::of(Mpi::Mpich, RANKS, "planted", &["polls", "130"]);
    let info = monitor(&job, "", Form::Run).success().info();
    let first = findings(&info)[0];
    assert_eq!((&first["kind"], &first["function"]), (&"polling".into(), &"MPI_Iprobe".into()), "{info}");
}

/// Over windows the ranks compute alike: kept times show the turns.
#[test]
fn turns_within_windows_are_first() {
    undisturbed(|| {
        let run = planted(Mpi::OpenMpi, "turns", "130", &[]);
        let info = run.info();
        let first = findings(&info)[0];
        assert_eq!(
            (&first["kind"], &first["function"]),
            (&"turns".into(), &"MPI_Allreduce".into()),
            "{info}"
        );
    });
}

#[test]
fn late_senders_are_first() {
    undisturbed(|| {
        let run = planted(Mpi::Mpich, "sender", "120", &[]);
        let info = run.info();
        let first = findings(&info)[0];
        assert_eq!((&first["kind"], &first["ranks"]), (&"late-sender".into(), &"0,2".into()), "{info}");
        let text = first["text"].as_str().expect("a text");
        assert!(text.contains("ranks 1,3 wait, and their receives name only ranks 0,2"), "{text}");
    });
}

/// The others compute more than a rank that only polls: it is named, and not they.
#[test]
fn a_master_that_polls_is_first() {
    undisturbed(|| {
        let run = planted(Mpi::OpenMpi, "master", "180", &[]);
        let info = run.info();
        let first = findings(&info)[0];
        assert_eq!((&first["kind"], &first["ranks"]), (&"polling".into(), &"0".into()), "{info}");
        assert_eq!(first["function"], "MPI_Iprobe", "{first}");
    });
}

#[test]
fn files_are_first() {
    undisturbed(|| {
        let scratch = ampl_tests::place::Scratch::new("planted");
        let file = scratch.path().join("file").display().to_string();
        let run = planted(Mpi::OpenMpi, "files", "130", &[&file]);
        let info = run.info();
        let first = findings(&info)[0];
        assert_eq!(
            (&first["kind"], &first["function"]),
            (&"files".into(), &"MPI_File_write_at".into()),
            "{info}"
        );
    });
}

/// Asserts that the first finding about the program with `cause` is of that kind, and about calls of that function.
#[track_caller]
fn assert_first(mpi: Mpi, (cause, steps): (&str, &str), kind: &str, function: Option<&str>) {
    undisturbed(|| {
        let info = planted(mpi, cause, steps, &[]).info();
        let first = findings(&info)[0];
        assert_eq!((&first["kind"], &first["function"]), (&kind.into(), &function.into()), "{info}");
    });
}

#[test]
fn start_up_is_first() {
    assert_first(Mpi::OpenMpi, ("begin", "130"), "start-up", None);
}

#[test]
fn wind_down_is_first() {
    assert_first(Mpi::Mpich, ("end", "130"), "wind-down", None);
}

#[test]
fn a_change_is_first() {
    assert_first(Mpi::OpenMpi, ("change", "320"), "change", None);
}

#[test]
fn collectives_that_grow_are_first() {
    assert_first(Mpi::OpenMpi, ("growth", "260"), "collectives", Some("MPI_Allgather"));
}

#[test]
fn messages_of_many_bytes_are_first() {
    assert_first(Mpi::OpenMpi, ("bytes", "120"), "transfer", Some("MPI_Sendrecv"));
}

#[test]
fn many_small_messages_are_first() {
    assert_first(Mpi::OpenMpi, ("messages", "100000"), "small-messages", Some("MPI_Sendrecv"));
}

#[test]
fn waiting_in_one_sided_calls_is_first() {
    assert_first(Mpi::Mpich, ("window", "140"), "one-sided", Some("MPI_Win_fence"));
}

/// The second half of the ranks names a host of its own, which only root may.
#[test]
fn a_slow_host_is_first() {
    undisturbed(|| {
        let run = planted(Mpi::OpenMpi, "host", "130", &[]);
        if !run.finished.stderr.contains("on 2 hosts") {
            eprintln!("SKIPPED: names of hosts cannot be changed here (root can)");
            return;
        }
        let info = run.info();
        let first = findings(&info)[0];
        let expected = (&"slow-host".into(), &"2-3".into(), &serde_json::json!(["planted-two"]));
        assert_eq!((&first["kind"], &first["ranks"], &first["hosts"]), expected, "{info}");
    });
}

#[test]
fn nothing_stands_out_where_all_compute() {
    let run = planted(Mpi::OpenMpi, "balanced", "150", &[]);
    let info = run.info();
    // A busy machine lets ranks sleep for longer.
    let kinds: Vec<&Value> = findings(&info).iter().map(|finding| &finding["kind"]).collect();
    if computed(&run)[0] >= 0.97 {
        assert_eq!(kinds, ["nothing"], "{info}");
    }
}
