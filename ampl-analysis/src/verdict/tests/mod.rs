mod calls;
mod polls;
mod shared;

use ampl_core::mpi::Function;
use ampl_testkit::runs::{Caller, structure, world};
use ampl_testkit::times::run;
use ampl_trace::Trace;
use ampl_trace::metadata::Library;
use ampl_trace::model::{Aggregate, End, EndBasis, Site, ThreadPlace};
use ampl_trace::totals::Totals;

use super::*;

/// Length of a window of [`job`], nanoseconds.
const WALL: f64 = 1e6;

/// A run of so many ranks, two to a host, and windows; rank r computes `compute(window, r)` of each.
fn job(ranks: u32, windows: u32, compute: impl Fn(u32, u32) -> f64) -> Trace {
    let names: Vec<String> = (0..ranks).map(|rank| format!("node{}", rank / 2)).collect();
    let hosts: Vec<&str> = names.iter().map(String::as_str).collect();
    let of = |window: u32| (0..ranks).map(|rank| Some(compute(window, rank) * WALL)).collect();
    let all: Vec<Vec<Option<f64>>> = (0..windows).map(of).collect();
    run(&hosts, WALL, &all)
}

/// Calls of a function by every rank.
struct Made {
    function: &'static str,
    calls: u64,
    /// Nanoseconds of the shortest.
    shortest: f64,
    bytes: u64,
}

/// Adds calls at one place for each function, in which rank r is for `ns(r)` nanoseconds.
fn calls(trace: &mut Trace, made: Made, ns: impl Fn(u32) -> f64) {
    let function = Function::by_name(made.function).unwrap().0;
    for rank in 0..trace.run.ranks {
        let time_ns = ns(rank);
        let entry = Aggregate {
            site: Some(0),
            function,
            calls: made.calls,
            time_ns,
            min_ns: made.shortest,
            max_ns: time_ns,
            sent: made.bytes,
            received: made.bytes,
            ..Aggregate::default()
        };
        let site = Site { module: 0, offset: 0x40 + u64::from(function), ..Site::default() };
        trace.totals.join(Totals::of(rank, &["/synthetic/app".into()], &[site], &[entry]));
    }
}

#[track_caller]
fn first(trace: &Trace) -> Finding {
    of(trace).remove(0)
}

#[track_caller]
fn near(value: Option<f64>, expected: f64) {
    assert!(value.is_some_and(|value| (value - expected).abs() < 1e-6), "{value:?} is not {expected}");
}

#[test]
fn a_slow_rank_is_named_with_what_it_costs() {
    let found = first(&job(8, 12, |_, rank| if rank == 5 { 0.9 } else { 0.6 }));
    assert_eq!((found.kind(), found.ranks.unwrap().to_string()), (Kind::SlowRank, "5".into()));
    // The others wait for it for 0.3 of each window.
    near(found.cost_share, (0.9 - (7.0 * 0.6 + 0.9) / 8.0) / 1.0);
    assert_eq!(
        (found.hosts, found.basis, found.next),
        (vec!["node2".into()], Basis::Census, Next::Efficiency)
    );
    let Evidence::Slow { over_mean, windows, least, .. } = found.evidence else { panic!() };
    near(Some(over_mean), 0.9 / 0.6375);
    assert_eq!((windows, least), ([12, 12], None));
}

#[test]
fn a_slow_host_and_a_slow_stratum_are_kinds_of_their_own() {
    let found = first(&job(8, 12, |_, rank| if rank / 2 == 1 { 0.9 } else { 0.6 }));
    assert_eq!((found.kind(), found.hosts), (Kind::SlowHost, vec!["node1".to_owned()]));
    let found = first(&job(12, 12, |window, rank| {
        0.4 + f64::from((window + rank) % 5) / 100.0 + if rank < 5 { 0.4 } else { 0.0 }
    }));
    assert_eq!((found.kind(), found.ranks.unwrap().to_string()), (Kind::SlowStratum, "0-4".into()));
    assert_eq!(found.next, Next::Strata);
    // Ranks that compute more and more are no stratum.
    let found = first(&job(12, 12, |_, rank| 0.3 + 0.05 * f64::from(rank)));
    assert_eq!(found.kind(), Kind::SlowRank);
}

#[test]
fn most_ranks_are_slow_where_one_is_idle() {
    let found = first(&job(4, 12, |_, rank| if rank == 3 { 0.1 } else { 0.9 }));
    let Evidence::Slow { least: Some((3, part)), .. } = found.evidence else { panic!("{found:?}") };
    near(Some(part), 0.1 / 0.7);
}

#[test]
fn imbalance_that_moves_names_no_rank() {
    let found = first(&job(8, 40, |window, rank| if rank == window * 3 % 8 { 0.9 } else { 0.5 }));
    assert_eq!((found.kind(), found.ranks), (Kind::Turns, None));
    let drift = job(8, 80, |window, rank| if rank == window / 10 { 0.9 } else { 0.5 });
    assert_eq!(first(&drift).kind(), Kind::MovingImbalance);
}

/// Turns in each step show over windows, too.
#[test]
fn turns_are_told_once() {
    let turns = job(8, 40, |window, rank| if rank == window * 3 % 8 { 0.9 } else { 0.5 });
    let over_windows = || of(&turns).into_iter().filter(|found| found.kind() == Kind::Turns);
    let mut steps = job(8, 20, |_, _| 0.6);
    calls(&mut steps, Made { function: "MPI_Recv", calls: 40, shortest: 1e3, bytes: 320 }, |_| 8.0 * WALL);
    let of_steps = of(&steps).into_iter().map(|mut found| {
        if let Evidence::Calls { kind, .. } = &mut found.evidence {
            *kind = Kind::Turns;
        }
        found
    });
    let told = |mut findings: Vec<Finding>| {
        tell_turns_once(&mut findings);
        findings.len()
    };
    assert_eq!(told(over_windows().collect()), 1);
    assert_eq!(told(over_windows().chain(of_steps).collect()), 1);
}

/// The system gives and takes processors without regard to the window before.
#[test]
fn imbalance_that_follows_is_the_program_s_on_shared_processors_too() {
    let mut trace = job(8, 80, |window, rank| if rank == window / 10 { 0.9 } else { 0.5 });
    for rank in &mut trace.ranks {
        rank.process.elapsed_ns = 1_000_000_000;
        rank.process.switches = Some(5000);
    }
    assert_eq!(of(&trace)[1].kind(), Kind::MovingImbalance);
}

/// Turns have a cost, though it is not known whether the program or the machine makes them.
#[test]
fn imbalance_that_moves_on_shared_processors_is_said() {
    let mut trace = job(8, 40, |window, rank| if rank == window * 3 % 8 { 0.9 } else { 0.5 });
    for rank in &mut trace.ranks {
        rank.process.elapsed_ns = 1_000_000_000;
        rank.process.switches = Some(5000);
    }
    let found = of(&trace);
    assert_eq!(found[0].kind(), Kind::SharedProcessors);
    assert_eq!((found[1].kind(), &found[1].ranks), (Kind::Imbalance, &None));
    let Evidence::Unequal { why: Unranked::Disturbed, .. } = found[1].evidence else { panic!("{found:?}") };
}

/// Ranks that compute more over the run, though by turns in each window, are named beside the turns.
#[test]
fn a_stratum_among_turns_is_found() {
    let compute = |window: u32, rank: u32| {
        let turn = if rank % 4 == window % 4 { 0.3 } else { 0.0 };
        0.3 + turn + if rank < 4 { 0.24 } else { 0.0 }
    };
    let mut trace = job(16, 40, compute);
    trace.ranks.iter_mut().for_each(|rank| rank.process.host = "a".into());
    let found = of(&trace);
    let kinds: Vec<Kind> = found.iter().map(Finding::kind).collect();
    assert_eq!(kinds, [Kind::Turns, Kind::SlowStratum], "{found:?}");
    assert_eq!(found[1].ranks.as_ref().unwrap().to_string(), "0-3");
    near(found[1].cost_share, 0.18);
}

#[test]
fn a_rank_that_is_slow_for_a_while_has_its_windows() {
    let found = first(&job(8, 60, |window, rank| if rank == 3 && window >= 40 { 0.95 } else { 0.5 }));
    let Evidence::Slow { phase: Some([40, 50..=59]), .. } = found.evidence else { panic!("{found:?}") };
    assert_eq!((found.kind(), found.ranks.unwrap().to_string()), (Kind::SlowRank, "3".into()));
}

#[test]
fn few_ranks_or_windows_are_not_compared() {
    let of_three = job(3, 20, |_, rank| if rank == 1 { 0.9 } else { 0.4 });
    let found = first(&of_three);
    assert_eq!((found.kind(), found.ranks), (Kind::Imbalance, None));
    let Evidence::Unequal { why, .. } = found.evidence else { panic!() };
    assert_eq!(why, Unranked::FewRanks(3));
    let short = first(&job(8, 9, |_, rank| if rank == 1 { 0.9 } else { 0.4 }));
    assert_eq!((short.kind(), short.ranks), (Kind::Imbalance, None));
    // Under one part in twenty nothing is said.
    let little = first(&job(8, 20, |_, rank| if rank == 1 { 0.98 } else { 0.94 }));
    assert_eq!(little.kind(), Kind::Nothing);
}

#[test]
fn where_all_compute_nothing_stands_out() {
    let found = of(&job(16, 20, |window, rank| 0.96 + f64::from((window * 7 + rank * 3) % 4) / 100.0));
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].kind(), found[0].cost_share), (Kind::Nothing, None));
    let Evidence::Nothing { parallel, .. } = found[0].evidence else { panic!() };
    assert!(parallel > 0.96);
}

#[test]
fn facts_about_the_machine_come_before_all() {
    let mut trace = job(8, 12, |_, rank| if rank == 5 { 0.9 } else { 0.4 });
    for rank in &mut trace.ranks {
        (rank.process.cpus, rank.process.processors) = ("0".into(), 4);
    }
    let library = Library { path: "/usr/lib/libcudart.so.12".into(), build_id: None };
    trace.run.metadata.libraries = Some(vec![library]);
    let kinds: Vec<Kind> = of(&trace).iter().map(Finding::kind).collect();
    assert_eq!(kinds, [Kind::SharedProcessors, Kind::Device, Kind::SlowRank]);
    // Where the system decides who computes, turns are its own.
    let mut turns = job(8, 40, |window, rank| if rank == window * 3 % 8 { 0.9 } else { 0.5 });
    for rank in &mut turns.ranks {
        (rank.process.switches, rank.process.elapsed_ns) = (Some(1000), 1_000_000_000);
    }
    let kinds: Vec<Kind> = of(&turns).iter().map(Finding::kind).collect();
    assert!(!kinds.contains(&Kind::Turns) && kinds[0] == Kind::SharedProcessors, "{kinds:?}");
}

#[test]
fn what_was_not_measured_is_said_alone() {
    let mut trace = job(8, 12, |_, rank| if rank == 5 { 0.9 } else { 0.4 });
    trace.run.ranks = 80;
    let kinds: Vec<Kind> = of(&trace).iter().map(Finding::kind).collect();
    assert_eq!(kinds, [Kind::NotMeasured]);
    assert_eq!(first(&Trace::default()).kind(), Kind::NotMeasured);
}

/// Windows that most ranks do not have are those of the others alone.
#[test]
fn ranks_that_have_come_to_their_end_are_no_change() {
    let compute = |window, rank| match (window < 30, rank) {
        (true, _) => 0.5,
        (false, 3) => 0.98,
        (false, _) => 0.0,
    };
    let mut trace = job(8, 40, compute);
    assert!(of(&trace).iter().any(|found| found.kind() == Kind::Change));
    for rank in trace.ranks.iter_mut().filter(|rank| rank.process.rank != 3) {
        rank.windows = rank.windows.iter().take(30).map(std::borrow::Cow::into_owned).collect();
    }
    let found = of(&trace);
    assert!(found.iter().all(|found| found.kind() != Kind::Change), "{found:?}");
}

/// A job that was killed: three ranks wait for the one that does not call.
#[test]
fn calls_that_have_not_returned_come_first() {
    let mut trace = job(4, 20, |_, rank| if rank == 3 { 0.9 } else { 0.4 });
    let (since_ns, at_ns) = (20 * WALL as i64, 2_000_000_000);
    trace.run.end = Some(End { at_ns, basis: EndBasis::Launcher });
    for rank in &mut trace.ranks {
        let inside = rank.process.rank != 2;
        let function = if inside { "MPI_Barrier" } else { "MPI_Allreduce" }.to_owned();
        rank.process.threads = vec![ThreadPlace { inside, function, since_ns, ..ThreadPlace::default() }];
        rank.process.finalized = false;
    }
    let kinds = |trace: &Trace| of(trace).iter().map(Finding::kind).collect::<Vec<_>>();
    let found = first(&trace);
    assert_eq!(found.kind(), Kind::Unreturned, "{found:?}");
    // Three of four ranks for all but 20 ms of two seconds.
    near(found.cost_share, 0.75 * 0.99);
    let Evidence::Unreturned { waiting, longest_ns, stop, of_threads, .. } = found.evidence else {
        unreachable!()
    };
    assert_eq!((waiting.to_string().as_str(), longest_ns, of_threads), ("0-1,3", 1.98e9, false));
    assert_eq!((stop.is_some(), found.place.unwrap().function), (true, "MPI_Barrier"));
    // A run that has come to its end has no such calls, nor has one whose end is not known.
    trace.complete = true;
    assert!(!kinds(&trace).contains(&Kind::Unreturned));
    trace.complete = false;
    trace.run.end = Some(End { at_ns, basis: EndBasis::LastCall });
    assert!(!kinds(&trace).contains(&Kind::Unreturned));
}

#[test]
fn imbalance_takes_its_time_from_the_calls_that_wait() {
    let mut trace = job(8, 20, |_, rank| if rank == 5 { 0.95 } else { 0.5 });
    let made = Made { function: "MPI_Allreduce", calls: 200, shortest: 1e3, bytes: 8 };
    calls(&mut trace, made, |rank| if rank == 5 { 0.05 } else { 0.5 } * 20.0 * WALL);
    let found = of(&trace);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].place.as_ref().unwrap().function, "MPI_Allreduce");
}

/// Ranks wait in one call for a rank that computes more, and spend time in another that takes it from all.
#[test]
fn calls_that_wait_are_told_from_those_that_take_time() {
    let mut trace = job(8, 20, |_, rank| if rank == 2 { 0.6 } else { 0.1 });
    let fence = Made { function: "MPI_Win_fence", calls: 200, shortest: 1e3, bytes: 0 };
    let all = Made { function: "MPI_Alltoall", calls: 200, shortest: 2e5, bytes: 40 << 20 };
    calls(&mut trace, fence, |rank| if rank == 2 { 1e-3 } else { 0.5 } * 20.0 * WALL);
    calls(&mut trace, all, |_| 0.4 * 20.0 * WALL);
    let found = of(&trace);
    let kinds: Vec<Kind> = found.iter().map(Finding::kind).collect();
    assert_eq!(kinds, [Kind::SlowRank, Kind::Collectives], "{found:?}");
    assert_eq!(found[0].place.as_ref().unwrap().function, "MPI_Win_fence");
    near(found[0].cost_share, 0.5 * 7.0 / 8.0);
    assert!((found[1].cost_share.unwrap() - 0.4).abs() < 0.01, "{found:?}");
}

/// The time is waited elsewhere, in a call that is not known.
#[test]
fn a_call_that_takes_little_is_not_where_the_others_wait() {
    let mut trace = job(8, 20, |_, rank| if rank == 5 { 0.95 } else { 0.5 });
    let made = Made { function: "MPI_Allreduce", calls: 200, shortest: 1e3, bytes: 8 };
    calls(&mut trace, made, |_| 0.05 * 20.0 * WALL);
    let found = first(&trace);
    assert_eq!((found.ranks.unwrap().to_string(), found.place), ("5".into(), None));
}

/// A rank that does something else than computing keeps the others waiting.
#[test]
fn a_late_rank_computes_no_more() {
    let barrier = Function::by_name("MPI_Barrier").unwrap();
    let made = || Made { function: "MPI_Barrier", calls: 40, shortest: 1e3, bytes: 0 };
    let late = |rank: u32| if rank == 5 { 0.01 } else { 0.4 } * 20.0 * WALL;
    let mut trace = job(8, 20, |_, _| 0.6);
    calls(&mut trace, made(), late);
    // Without recorded calls it is not known on which communicators they are.
    assert_eq!(first(&trace).kind(), Kind::Waiting);
    trace.structure = structure(8, |caller: &mut Caller| {
        caller.call("MPI_Barrier", 0x40 + u64::from(barrier.0), &[world()]);
    });
    let found = first(&trace);
    assert_eq!((found.kind(), found.ranks.unwrap().to_string()), (Kind::LateRank, "5".into()));
}

/// Ranks that died were in calls behind their last window, too.
#[test]
fn calls_of_ranks_that_died_are_a_share_of_the_time_until_the_end() {
    let mut trace = job(8, 20, |_, _| 0.6);
    for rank in &mut trace.ranks {
        (rank.process.finalized, rank.process.elapsed_ns) = (false, 22 * WALL as u64);
    }
    let made = Made { function: "MPI_Recv", calls: 40, shortest: 1e3, bytes: 320 };
    calls(&mut trace, made, |_| (0.4 * 20.0 + 2.0) * WALL);
    let found = of(&trace);
    let waiting = found.iter().find(|found| found.kind() == Kind::Waiting).unwrap();
    let Evidence::Calls { share, .. } = waiting.evidence else { panic!("{waiting:?}") };
    near(Some(share), 10.0 / 22.0);
}

#[test]
fn a_change_is_a_window() {
    let found = first(&job(8, 40, |window, _| if window < 25 { 0.96 } else { 0.6 }));
    let Evidence::Change { window: 25, parallel, .. } = found.evidence else { panic!("{found:?}") };
    near(Some(parallel[0] - parallel[1]), 0.36);
    let noisy: Vec<f64> = (0..40).map(|at| 0.7 + f64::from(at * 7 % 11) / 30.0).collect();
    assert_eq!(course::split(&noisy), None);
}

/// A job of a day of short windows: with the square of their number this would take hours.
#[test]
fn a_change_is_found_among_a_million_windows() {
    let noise = |at: u64| (at * 7 % 11) as f64 / 300.0;
    let many = |at: u64| if at < 700_003 { 0.9 - noise(at) } else { 0.5 + noise(at) };
    let values: Vec<f64> = (0..1_000_000).map(many).collect();
    assert_eq!(course::split(&values), Some(700_003));
}

#[test]
fn findings_are_few_and_in_order() {
    let mut trace = job(8, 40, |window, rank| match (window, rank) {
        (25.., 5) => 0.75,
        (25.., _) => 0.2,
        (_, 5) => 0.85,
        _ => 0.55,
    });
    for function in ["MPI_File_write_at", "MPI_Iprobe", "MPI_Send", "MPI_Put", "MPI_Alltoall"] {
        let made = Made { function, calls: 20_000, shortest: 1.0, bytes: 160_000 };
        calls(&mut trace, made, |_| 0.06 * 40.0 * WALL);
    }
    let found = of(&trace);
    assert!(found.len() <= MOST && found.len() > 1, "{found:?}");
    assert!(found.windows(2).all(|pair| pair[0].cost_share >= pair[1].cost_share), "{found:?}");
}

#[test]
fn slow_ranks_stand_before_waiting_in_the_same_call() {
    let mut trace = job(8, 20, |_, rank| if rank == 5 { 0.4 } else { 0.25 });
    let made = Made { function: "MPI_Allreduce", calls: 200, shortest: 1e3, bytes: 8 };
    calls(&mut trace, made, |rank| if rank == 5 { 0.6 } else { 0.75 } * 20.0 * WALL);
    let found = of(&trace);
    let kinds: Vec<Kind> = found.iter().map(Finding::kind).collect();
    assert_eq!(kinds, [Kind::SlowRank, Kind::Waiting], "{found:?}");
    assert!(found[0].cost_share < found[1].cost_share);
}

#[test]
fn names_of_kinds_differ() {
    let all = [
        Kind::SharedProcessors,
        Kind::Device,
        Kind::NotMeasured,
        Kind::SlowRank,
        Kind::SlowHost,
        Kind::SlowStratum,
        Kind::Turns,
        Kind::MovingImbalance,
        Kind::Imbalance,
        Kind::LateRank,
        Kind::LateSender,
        Kind::Waiting,
        Kind::Pipeline,
        Kind::Transfer,
        Kind::SmallMessages,
        Kind::Collectives,
        Kind::Polling,
        Kind::Files,
        Kind::OneSided,
        Kind::StartUp,
        Kind::WindDown,
        Kind::Change,
        Kind::Nothing,
    ];
    let names: BTreeSet<&str> = all.iter().map(|kind| kind.name()).collect();
    assert_eq!(names.len(), all.len());
}

#[test]
fn of_several_programs_the_busiest_is_named_and_a_server_that_idles_never() {
    use crate::efficiency::by_program;
    let program = |rank: usize| match rank {
        0..=3 => "ocean",
        4..=6 => "air",
        _ => "server",
    };
    let compute = |_, rank: u32| [0.9, 0.85, 0.8, 0.9, 0.5, 0.5, 0.4, 0.01][rank as usize];
    let mut trace = job(8, 12, compute);
    // One program: the ranks are compared.
    assert!(rows(&trace)[0].load_balance.is_some_and(|balance| balance < 0.7));
    assert_eq!(by_program(&trace), []);
    for (rank, of) in trace.ranks.iter_mut().enumerate() {
        of.process.program = format!("/opt/{}", program(rank));
    }
    for row in rows(&trace) {
        assert_eq!((row.load_balance, &row.slowest, &row.slowest_host), (None, &None, &None), "{row:?}");
        assert!(row.lost.is_none() && row.imbalance.is_none() && row.parallel.is_some(), "{row:?}");
    }
    let programs = by_program(&trace);
    let names: Vec<(&str, &str)> =
        programs.iter().map(|of| (of.program.as_str(), of.ranks.as_str())).collect();
    assert_eq!(names, [("ocean", "0-3"), ("air", "4-6"), ("server", "7")]);
    near(programs[0].load_balance, (0.9 + 0.85 + 0.8 + 0.9) / 4.0 / 0.9);
    near(programs[0].communication, 0.9);
    near(programs[1].parallel, 1.4 / 3.0);
    assert_eq!((programs[1].slowest, programs[2].slowest), (Some(4), None));
    let found = of(&trace);
    let busiest = found.iter().find(|finding| finding.kind() == Kind::BusiestProgram).expect("ocean");
    assert_eq!(busiest.ranks.as_ref().map(ToString::to_string).as_deref(), Some("0-3"));
    let server = ampl_core::units::Rank(7);
    let blamed = |finding: &Finding| finding.ranks.as_ref().is_some_and(|ranks| ranks.contains(server));
    assert!(!found.iter().any(blamed), "{found:?}");
    // A server whose calls are only counted takes nothing from the others.
    let polls = trace.ranks.last_mut().expect("the server");
    polls.windows.entries_mut().iter_mut().for_each(|window| window.cells = Default::default());
    let programs = by_program(&trace);
    assert!(run_times(&trace).extent() == crate::coverage::Extent::Little);
    near(programs[0].communication, 0.9);
    assert_eq!((programs[0].coverage, programs[2].communication), (1.0, None));
    assert!(programs[2].coverage.is_sign_positive() && run_times(&trace).coverage.share.is_sign_positive());
    let found = of(&trace);
    assert!(found.iter().any(|finding| finding.kind() == Kind::BusiestProgram), "{found:?}");
    assert!(!found.iter().any(blamed), "{found:?}");
}

/// A server that sleeps outside of MPI has no work; programs that work by sleeping are told from it by who waits.
#[test]
fn a_program_that_idles_outside_of_mpi_is_not_the_busiest() {
    let named = |processor_ns: u64| {
        let share = |rank| [0.8, 0.8, 0.3, 0.98][rank as usize / 2];
        let mut trace = job(8, 12, |_, rank| share(rank));
        for (rank, own) in (0..).zip(&mut trace.ranks) {
            own.process.program = ["slow", "slow", "quick", "server"][rank / 2].into();
            own.process.processor_ns = if rank < 6 { 12 * WALL as u64 } else { processor_ns };
        }
        let programs = of(&trace).into_iter().find_map(|found| match found.evidence {
            Evidence::Programs { most, .. } => Some(most.0),
            _ => None,
        });
        programs.expect("one computes more than the others")
    };
    assert_eq!(named(10), "slow");
    assert_eq!(named(12 * WALL as u64), "server");
}
