//! Computation before the calls of a logical program.

use ampl_trace::Trace;
use ampl_trace::record::CALL_MISS;

use crate::ideal_network::compute::{Compute, Gaps};
use crate::logical::Program;
use crate::matching::{Job, Source};
use crate::waits::places::Places;

/// Time outside MPI before the calls of one label, of all ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Computed {
    /// Calls.
    pub calls: u64,
    /// Calls before which the time is measured. That before the others is modelled from the ranks' sums.
    pub measured: u64,
    /// Time, nanoseconds.
    pub ns: u64,
}

impl Computed {
    /// Mean before a call, nanoseconds.
    pub fn mean_ns(&self) -> f64 {
        self.ns as f64 / self.calls.max(1) as f64
    }
}

/// Computation before the calls of each label of `program`, which is that of the run `trace`; `None` where nothing is
/// known of it.
///
/// Time before polls that found nothing belongs to the next call. So does that before `MPI_Init` has returned, which only
/// a model has.
pub fn before_calls(trace: &Trace, program: &Program) -> Option<Vec<Computed>> {
    let job = Job::of(trace);
    let sources = job.sources();
    let mut places = Places::new(&sources);
    let compute = Compute::of(trace, &sources, &mut places);
    let mut found = vec![Computed::default(); program.calls.len()];
    sources.iter().for_each(|source| add(source, program, &compute, &mut places, &mut found));
    found.iter().any(|computed| computed.ns > 0).then_some(found)
}

/// Adds the calls of one rank.
fn add(
    source: &Source<'_>,
    program: &Program,
    compute: &Compute,
    places: &mut Places<'_>,
    found: &mut [Computed],
) {
    let rank = source.structure.rank;
    let runs = program.runs(rank);
    for (index, thread) in source.structure.threads.iter().enumerate() {
        let mut labels = runs.iter().filter(|run| run.0 == thread.thread).map(|run| (run.1, run.2));
        let mut run = (0, 0);
        let mut gaps = Gaps::default();
        let mut carried_ns = 0;
        for (at, function, count) in source.calls(index) {
            let mut left = count;
            while run.1 < left {
                left -= run.1;
                match labels.next() {
                    Some(next) => run = next,
                    None => return,
                }
            }
            run.1 -= left;
            let ns = match at.timed {
                Some(timed) => gaps.measured(compute, &at, &timed, function),
                None => compute.modelled(rank, places.number(&at)).saturating_mul(count),
            };
            gaps.pass(&at);
            let Some(computed) = found.get_mut(run.0 as usize) else { continue };
            let flags = program.calls[run.0 as usize].flags;
            let is_begin = function.name().starts_with("MPI_Init");
            if flags & CALL_MISS != 0 || is_begin {
                carried_ns += ns;
                continue;
            }
            computed.calls += count;
            computed.measured += if at.timed.is_some() { count } else { 0 };
            computed.ns += ns + std::mem::take(&mut carried_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use ampl_core::mpi::Function;
    use ampl_testkit::runs::world;
    use ampl_testkit::timed::{Timed as Recorded, trace};
    use ampl_trace::communicators::Communicators;

    use super::*;
    use crate::logical::Detail;

    const MS: u64 = 1_000_000;

    /// Computation before barriers of four ranks, of which the first computes least; times of some are `kept`.
    fn of_barriers(kept: impl Fn(u32) -> bool) -> Option<(Computed, u64)> {
        let mut all: Vec<Recorded> = (0..4).map(|rank| Recorded::new(rank, 4, "host")).collect();
        for (own, rank) in all.iter_mut().zip(1..) {
            for step in 1..=20 {
                own.compute(rank * MS);
                own.until("MPI_Barrier", 12, &[world()], step * 5 * MS);
            }
            own.until("MPI_Finalize", 13, &[], 0);
        }
        let run = trace(all, kept);
        let comms = Communicators::of(&run);
        let program = Program::with(&run.structure, &comms, 4, &[], Detail::Whole).unwrap();
        let found = before_calls(&run, &program)?;
        let barrier = |label: &usize| Function::name_of(program.calls[*label].function) == "MPI_Barrier";
        let label = (0..found.len()).find(barrier).unwrap();
        Some((found[label], found.iter().map(|computed| computed.ns).sum()))
    }

    #[test]
    fn computation_before_a_call_is_the_mean_of_what_was_measured() {
        let (barrier, all_ns) = of_barriers(|_| true).unwrap();
        assert_eq!((barrier.calls, barrier.measured), (80, 80));
        assert_eq!(all_ns, (1 + 2 + 3 + 4) * 20 * MS);
        assert_eq!(barrier.ns, all_ns);
    }

    #[test]
    fn computation_that_was_not_measured_adds_up_to_the_sums_of_the_ranks() {
        let (barrier, all_ns) = of_barriers(|rank| rank == 1).unwrap();
        assert_eq!((barrier.calls, barrier.measured), (80, 20));
        let sum = ((1 + 2 + 3 + 4) * 20 * MS) as f64;
        assert!((all_ns as f64 / sum - 1.0).abs() < 0.05, "{all_ns} of {sum}");
    }
}
