//! Runs that split the world.

use ampl_core::mpi::{Function, predefined_index};
use ampl_core::value::ObjectKind;
use ampl_trace::RankTrace;
use ampl_trace::args::predefined_word;
use ampl_trace::grammar::Builder;
use ampl_trace::model::{Process, Trace};
use ampl_trace::structure::{JobStructure, RankStructure, Signature, ThreadStructure};

/// Ranks that split the world by evenness, backwards, `times` times; rank 0 is split off with an error code.
pub fn trace(ranks: u32, times: u64) -> Trace {
    let world = predefined_word(predefined_index(ObjectKind::Comm, "MPI_COMM_WORLD").unwrap());
    let split = Function::by_name("MPI_Comm_split").unwrap().0;
    let mut trace = Trace::default();
    trace.run.ranks = ranks;
    trace.structure = JobStructure::new(ranks);
    for rank in 0..ranks {
        let mut builder = Builder::new();
        let signatures = (1..=times).map(|word| Signature {
            function: split,
            flags: 0,
            site: 0,
            path: 0,
            words: vec![world, u64::from(rank % 2), u64::from(ranks - rank), word],
        });
        (0..times).for_each(|terminal| builder.push(terminal as u32, 1));
        let thread =
            ThreadStructure { thread: 0, signatures: signatures.collect(), grammar: builder.grammar() };
        let threads = vec![thread];
        trace.structure.join(JobStructure::of(RankStructure { rank, threads, ..RankStructure::default() }));
        let calls = vec![(split, times)];
        let process = Process { rank, finalized: true, calls, ..Process::default() };
        trace.ranks.push(RankTrace { process, ..RankTrace::default() });
    }
    trace
}
