//! Findings about calls.

use super::*;

/// Ranks that compute for 0.6 of each of 20 windows, and are in calls for the rest.
fn in_calls(made: Made, ns: impl Fn(u32) -> f64) -> Finding {
    let mut trace = job(8, 20, |_, _| 0.6);
    calls(&mut trace, made, ns);
    first(&trace)
}

#[test]
fn calls_are_told_apart_by_size_rate_and_waits() {
    let rest = 0.4 * 20.0 * WALL;
    let made = |function, calls, shortest, bytes| Made { function, calls, shortest, bytes };
    for (made, expected) in [
        (made("MPI_File_write_at", 100, 5e4, 1 << 20), Kind::Files),
        (made("MPI_Iprobe", 80_000, 50.0, 0), Kind::Polling),
        (made("MPI_Send", 2000, 1e3, 16_000), Kind::SmallMessages),
        (made("MPI_Sendrecv", 40, 1e5, 40 << 20), Kind::Transfer),
        (made("MPI_Recv", 40, 1e3, 320), Kind::Waiting),
        // However long each waits: no network takes two milliseconds for eight bytes.
        (made("MPI_Recv", 4, 1.9e6, 32), Kind::Waiting),
        (made("MPI_Bcast", 40, 1e3, 320), Kind::Waiting),
        (made("MPI_Alltoall", 40, 1.5e5, 40 << 20), Kind::Collectives),
        (made("MPI_Put", 400, 1e4, 40 << 20), Kind::OneSided),
    ] {
        let function = made.function;
        let found = in_calls(made, |_| rest);
        assert_eq!(found.kind(), expected, "{function}: {found:?}");
        near(found.cost_share, 0.4);
        let place = found.place.unwrap();
        assert_eq!((place.function, found.basis), (function, Basis::Totals));
        assert!(place.site.unwrap().starts_with("app+0x"));
    }
}

/// Where ranks share processors they wait for these in calls, too.
#[test]
fn waiting_without_a_cause_must_cost_more_where_processors_are_shared() {
    let waits = |part: f64, shared: bool| {
        let mut trace = job(8, 20, |_, _| 1.0 - part);
        calls(&mut trace, Made { function: "MPI_Bcast", calls: 40, shortest: 1e3, bytes: 320 }, |_| {
            part * 20.0 * WALL
        });
        for rank in trace.ranks.iter_mut().filter(|_| shared) {
            (rank.process.cpus, rank.process.processors) = ("0".into(), 1);
        }
        of(&trace).last().map(Finding::kind)
    };
    let found = [(0.2, false), (0.2, true), (0.4, true)].map(|(part, shared)| waits(part, shared));
    assert_eq!(found, [Kind::Waiting, Kind::Nothing, Kind::Waiting].map(Some));
}

#[test]
fn ranks_that_wait_for_the_one_before_are_a_pipeline() {
    let made = || Made { function: "MPI_Recv", calls: 40, shortest: 1e3, bytes: 320 };
    let found = in_calls(made(), |rank| f64::from(rank + 1) * 20.0 * WALL / 20.0);
    assert_eq!(found.kind(), Kind::Pipeline);
    // One computes at a time.
    let mut trace = job(8, 20, |_, _| 0.125);
    calls(&mut trace, made(), |_| 0.875 * 20.0 * WALL);
    assert_eq!(first(&trace).kind(), Kind::Pipeline);
}

#[test]
fn time_in_a_file_is_that_of_the_rank_that_is_longest_there() {
    let mut trace = job(8, 20, |_, _| 0.6);
    let write = Made { function: "MPI_File_write_at", calls: 20, shortest: 1e4, bytes: 1 << 20 };
    calls(&mut trace, write, |rank| if rank == 2 { 0.3 * 20.0 * WALL } else { 1.0 });
    let found = first(&trace);
    assert_eq!((found.kind(), found.ranks.unwrap().to_string()), (Kind::Files, "2".into()));
    near(found.cost_share, 0.3);
}

#[test]
fn a_rank_is_named_for_files_only_where_it_is_longer_in_them_than_others() {
    let mut trace = job(8, 20, |_, _| 0.6);
    let write = Made { function: "MPI_File_write_at_all", calls: 20, shortest: 1e4, bytes: 1 << 20 };
    calls(&mut trace, write, |rank| (0.4 - f64::from(rank) / 1e3) * 20.0 * WALL);
    let found = first(&trace);
    assert_eq!((found.kind(), found.ranks), (Kind::Files, None));
    let Evidence::Calls { worst: None, .. } = found.evidence else { panic!("{:?}", found.evidence) };
}

/// A rank that asks for results computes nothing; the others do not compute more than they should.
#[test]
fn a_rank_that_polls_stands_before_those_that_compute() {
    let mut trace = job(8, 20, |_, rank| if rank == 0 { 0.01 } else { 0.97 });
    let probe = Made { function: "MPI_Iprobe", calls: 80_000, shortest: 50.0, bytes: 0 };
    calls(&mut trace, probe, |rank| if rank == 0 { 0.99 * 20.0 * WALL } else { 1.0 });
    let found = of(&trace);
    let kinds: Vec<Kind> = found.iter().map(Finding::kind).collect();
    assert_eq!(kinds, [Kind::Polling, Kind::SlowRank], "{found:?}");
    assert_eq!(found[0].ranks.as_ref().map(ToString::to_string).as_deref(), Some("0"));
    // All poll for a rank that computes: that is the cause.
    let mut trace = job(8, 20, |_, rank| if rank == 0 { 0.97 } else { 0.3 });
    let test = Made { function: "MPI_Test", calls: 80_000, shortest: 50.0, bytes: 0 };
    calls(&mut trace, test, |rank| if rank == 0 { 1.0 } else { 0.7 * 20.0 * WALL });
    assert_eq!(first(&trace).kind(), Kind::SlowRank);
}

/// Ranks wait in a barrier for what they did before.
#[test]
fn calls_with_a_cause_stand_before_the_barrier_behind_them() {
    let mut trace = job(8, 20, |_, _| 0.3);
    calls(&mut trace, Made { function: "MPI_Win_lock", calls: 40, shortest: 1e3, bytes: 0 }, |_| {
        0.3 * 20.0 * WALL
    });
    calls(&mut trace, Made { function: "MPI_Barrier", calls: 40, shortest: 1e3, bytes: 0 }, |_| {
        0.4 * 20.0 * WALL
    });
    let kinds: Vec<Kind> = of(&trace).iter().map(Finding::kind).collect();
    assert_eq!(kinds, [Kind::OneSided, Kind::Waiting]);
}

/// The window says more than the call in which the time is.
#[test]
fn a_change_stands_before_the_calls_that_it_brings() {
    let mut trace = job(8, 40, |window, _| if window < 20 { 0.98 } else { 0.5 });
    let made = Made { function: "MPI_Allreduce", calls: 200, shortest: 1e3, bytes: 8 };
    calls(&mut trace, made, |_| 0.26 * 40.0 * WALL);
    let kinds: Vec<Kind> = of(&trace).iter().map(Finding::kind).collect();
    assert_eq!(kinds, [Kind::Change, Kind::Waiting]);
}
