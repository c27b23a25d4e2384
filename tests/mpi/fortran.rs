//! The same Fortran program through every interface: each argument of each call is decoded as C would name it and as
//! the program itself logs it, and nothing changes for the program.

use ampl_tests::job::{Fortran, Job, Mpi};
use ampl_tests::place::Scratch;

use crate::log_matches;
use crate::objects::several;

fn every_interface(mpi: Mpi) {
    for interface in Fortran::ALL {
        // After MPI_Init_thread, Open MPI 4.1 may not come back from MPI_Waitall with a message that was too long for a
        // receive from another rank.
        for (ranks, begun) in [(several(mpi), &[][..]), (1, &["threads"])] {
            let logs = Scratch::new("log");
            let log = logs.path().join("ref");
            let words = [&[log.to_str().expect("a path of ours")], begun].concat();
            let job = Job::new(mpi, ranks, mpi.compile_fortran(interface), &words);
            log_matches(&job, &log, "fortran");
        }
    }
}

#[test]
fn fortran_open_mpi() {
    every_interface(Mpi::OpenMpi);
}

#[test]
fn fortran_mpich() {
    every_interface(Mpi::Mpich);
}
