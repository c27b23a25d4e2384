use ampl_core::mpi::ObjectKind;
use ampl_testkit::runs::{predefined, world};
use ampl_testkit::timed::{Timed, trace};
use ampl_trace::args::status_word;

use super::*;

const MS: u64 = 1_000_000;

fn double() -> u64 {
    predefined(ObjectKind::Type, "MPI_DOUBLE")
}

/// Each rank gets a message from the rank before, computes, and sends one to the next, in each step; every message
/// takes `network_ns`.
fn pipeline(ranks: u32, steps: u64, compute: impl Fn(u32) -> u64, network_ns: u64) -> Vec<Timed> {
    let mut arrivals = vec![0; steps as usize];
    let mut all = Vec::new();
    for rank in 0..ranks {
        let mut own = Timed::new(rank, ranks, "host");
        for arrival in &mut arrivals {
            if rank > 0 {
                let told = status_word(rank as i32 - 1, 0);
                let words = [0, 1, double(), u64::from(rank) - 1, 0, world(), told];
                own.until("MPI_Recv", 10, &words, *arrival + network_ns);
            }
            own.compute(compute(rank));
            if rank + 1 < ranks {
                own.until("MPI_Send", 11, &[0, 1, double(), u64::from(rank) + 1, 0, world()], 0);
            }
            *arrival = own.now();
        }
        all.push(own);
    }
    let end = all.iter().map(Timed::now).max().unwrap_or(0);
    for own in &mut all {
        own.until("MPI_Barrier", 12, &[world()], end + network_ns);
        own.until("MPI_Finalize", 13, &[], 0);
    }
    all
}

fn near(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-6
}

#[test]
fn serialisation_of_a_pipeline_has_its_closed_form() {
    for (ranks, steps, network) in [(4, 20, 0), (4, 20, 3 * MS), (7, 5, MS), (2, 1, MS)] {
        let run = trace(pipeline(ranks, steps, |_| 5 * MS, network), |_| true);
        let found = ideal(&run, &mut Symbols::default()).unwrap();
        let expected = steps as f64 / (steps as f64 + f64::from(ranks) - 1.0);
        assert!(near(found.serialisation, expected), "{ranks} {steps}: {found:?}");
        assert!(near(found.load_balance, 1.0) && found.modelled == 0.0);
        let recorded = elapsed(&run);
        assert!(near(found.transfer, found.ideal_ns as f64 / recorded));
        assert!(network > 0 || near(found.transfer, 1.0), "{found:?}");
        assert!(near(found.parallel, found.mean_compute_ns as f64 / recorded));
    }
}

/// Rank 1 begins when rank 0 has nearly reached the barrier, and goes on when rank 0 has ended.
#[test]
fn ranks_that_begin_one_after_another_are_one_run() {
    let mut all: Vec<Timed> = (0..2).map(|rank| Timed::new(rank, 2, "host")).collect();
    for (own, (before, after)) in all.iter_mut().zip([(50, 10), (45, 100)]) {
        own.compute(before * MS);
        own.until("MPI_Barrier", 12, &[world()], 50 * MS);
        own.compute(after * MS);
        own.until("MPI_Finalize", 13, &[], 0);
    }
    let mut run = trace(all, |_| true);
    for (rank, (start, end)) in run.ranks.iter_mut().zip([(0, 60), (40, 150)]) {
        rank.process.elapsed_ns = (end - start) * MS;
        rank.windows.entries_mut()[0].start_ns = (start * MS) as i64;
    }
    let found = ideal(&run, &mut Symbols::default()).unwrap();
    assert_eq!((found.ideal_ns, found.recorded_ns), (150 * MS, 150 * MS));
    assert!(near(found.transfer, 1.0), "{found:?}");
}

#[test]
fn the_slow_rank_is_on_the_critical_path() {
    let run = trace(pipeline(4, 20, |rank| if rank == 2 { 9 * MS } else { 3 * MS }, MS), |_| true);
    let found = ideal(&run, &mut Symbols::default()).unwrap();
    // Two ranks fill the pipeline, then rank 2 works without a pause, then the last step leaves.
    assert_eq!(found.ideal_ns, 2 * 3 * MS + 20 * 9 * MS + 3 * MS);
    let path = &found.critical_path;
    assert_eq!((path.ns, path.ranks[0].rank, path.ranks[0].ns), (found.ideal_ns, 2, 180 * MS));
    assert_eq!(path.ranks.iter().map(|own| own.ns).sum::<u64>(), path.ns);
    assert_eq!((path.sites[0].function, path.sites.iter().map(|own| own.ns).sum()), ("MPI_Send", path.ns));
}

#[test]
fn ranks_that_are_not_kept_are_modelled_from_their_totals() {
    let run = trace(pipeline(4, 20, |_| 5 * MS, MS), |rank| rank == 1);
    let found = ideal(&run, &mut Symbols::default()).unwrap();
    assert!((found.modelled - 0.75).abs() < 0.01, "{found:?}");
    assert!((found.serialisation / (20.0 / 23.0) - 1.0).abs() < 0.05, "{found:?}");
    // Not even a mean: only the sums of ranks.
    let run = trace(pipeline(4, 20, |_| 5 * MS, MS), |_| false);
    let found = ideal(&run, &mut Symbols::default());
    assert!(found.as_ref().is_ok_and(|found| found.modelled == 1.0) || found == Err(Unknown::NoTimes));
}

#[test]
fn a_run_with_a_gap_is_refused() {
    let mut all: Vec<Timed> = (0..3).map(|rank| Timed::new(rank, 3, "host")).collect();
    for own in &mut all {
        own.compute(MS);
        own.until("MPI_Barrier", 12, &[world()], 0);
        if own.caller.rank() == 1 {
            own.caller.gap();
        }
        own.until("MPI_Finalize", 13, &[], 0);
    }
    let found = ideal(&trace(all, |_| false), &mut Symbols::default());
    assert!(matches!(found, Err(Unknown::NotWhole(lost)) if lost[0].0 == 1));
}
