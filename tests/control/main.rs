//! Programs behave the same with ampl as without it: ways into and out of MPI, threads, processes, ends.

mod edges;
mod ends;
mod flow;
mod other_tools;
mod programs;
mod threads;

use ampl_tests::job::Mpi;

/// Ranks for programs that still do something after MPI_Finalize: when one rank has ended, the launcher
/// of MPICH 5 may end the others before they are through.
fn ranks_to_the_end(mpi: Mpi) -> u32 {
    if mpi == Mpi::Abi { 1 } else { 2 }
}
