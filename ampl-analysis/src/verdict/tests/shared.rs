//! Findings of ranks that share processors: any of them may begin to compute late, and all wait for it.

use super::*;

/// The same run on one processor.
fn shared(mut trace: Trace) -> Trace {
    for rank in &mut trace.ranks {
        (rank.process.cpus, rank.process.processors) = ("0".into(), 1);
    }
    trace
}

/// Kinds behind the fact that processors are shared.
fn kinds(trace: Trace) -> Vec<Kind> {
    let found = of(&shared(trace));
    assert_eq!(found[0].kind(), Kind::SharedProcessors);
    found[1..].iter().map(Finding::kind).collect()
}

#[test]
fn a_little_imbalance_that_moves_is_not_the_program_s() {
    let drift = |most: f64| job(8, 80, move |window, rank| if rank == window / 10 { most } else { 0.6 });
    assert_eq!(of(&drift(0.72))[0].kind(), Kind::MovingImbalance);
    assert_eq!(kinds(drift(0.72)), [Kind::Nothing]);
    assert_eq!(kinds(drift(0.95)), [Kind::MovingImbalance]);
    let turns = |most: f64| job(8, 40, move |window, rank| if rank == window * 3 % 8 { most } else { 0.6 });
    assert_eq!((kinds(turns(0.72)), kinds(turns(0.95))), (vec![Kind::Nothing], vec![Kind::Turns]));
}

#[test]
fn a_rank_that_computes_a_little_more_is_not_named() {
    let slow = |more: f64| job(8, 20, move |_, rank| if rank == 5 { 0.8 + more } else { 0.8 });
    assert_eq!(of(&slow(0.1))[0].kind(), Kind::SlowRank);
    assert_eq!([kinds(slow(0.1)), kinds(slow(0.15))], [[Kind::Nothing], [Kind::SlowRank]]);
}

#[test]
fn ranks_that_compute_more_stand_before_waiting_elsewhere() {
    let trace = || {
        let mut trace = job(8, 20, |_, rank| if rank == 5 { 0.4 } else { 0.25 });
        let made = |function| Made { function, calls: 200, shortest: 1e3, bytes: 8 };
        calls(&mut trace, made("MPI_Allreduce"), |rank| if rank == 5 { 0.01 } else { 0.16 } * 20.0 * WALL);
        calls(&mut trace, made("MPI_Barrier"), |_| 0.59 * 20.0 * WALL);
        trace
    };
    let alone: Vec<Kind> = of(&trace()).iter().map(Finding::kind).collect();
    assert_eq!(alone, [Kind::Waiting, Kind::SlowRank]);
    assert_eq!(kinds(trace()), [Kind::SlowRank, Kind::Waiting]);
}

/// A rank gets few messages through, and computes for less than a tenth of a millisecond for each.
#[test]
fn small_messages_are_many_for_what_is_computed_between() {
    let trace = |compute: f64| {
        let mut trace = job(8, 20, move |_, _| compute);
        let made = Made { function: "MPI_Sendrecv", calls: 100, shortest: 1e3, bytes: 800 };
        calls(&mut trace, made, |_| (1.0 - compute) * 20.0 * WALL);
        for rank in &mut trace.ranks {
            for window in rank.windows.entries_mut() {
                window.end_ns = window.start_ns + WALL as i64;
            }
        }
        trace
    };
    assert_eq!(kinds(trace(0.01)), [Kind::SmallMessages]);
}

#[test]
fn waiting_in_one_sided_calls_must_cost_more() {
    let fences = |part: f64| {
        let mut trace = job(8, 20, move |_, _| 1.0 - part);
        calls(&mut trace, Made { function: "MPI_Win_fence", calls: 40, shortest: 1e3, bytes: 0 }, |_| {
            part * 20.0 * WALL
        });
        trace
    };
    assert_eq!(of(&fences(0.15))[0].kind(), Kind::OneSided);
    assert_eq!([kinds(fences(0.15)), kinds(fences(0.3))], [[Kind::Nothing], [Kind::OneSided]]);
}

#[test]
fn a_start_up_stands_before_the_rank_that_computes_in_it() {
    let slow = |phase| Evidence::Slow {
        kind: Kind::SlowRank,
        group: None,
        over_mean: 3.0,
        windows: [4, 4],
        phase,
        recurs: false,
        bound: crate::efficiency::Bound::AtLeast,
        least: None,
    };
    let start = Evidence::Phase {
        kind: Kind::StartUp,
        ns: 1e9,
        windows: [0, 3],
        mpi: None,
        top: None,
        ended: RankSet::default(),
    };
    let order = |phase| {
        let finding = |evidence| Finding::new(evidence, Basis::Census, Next::Efficiency);
        let mut found = [slow(phase), start.clone()].map(finding);
        before_ranks_of_phase(&mut found);
        found.map(|found| found.kind())
    };
    assert_eq!(order(Some([0, 4])), [Kind::StartUp, Kind::SlowRank]);
    assert_eq!(order(Some([0, 9])), [Kind::SlowRank, Kind::StartUp]);
    assert_eq!(order(None), [Kind::SlowRank, Kind::StartUp]);
}
