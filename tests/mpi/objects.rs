//! Programs that touch every kind of object: each argument of each call is decoded as the program
//! itself wrote it down, and nothing but the program's own calls is counted.

use ampl_tests::job::Mpi;

use crate::decode_matches;

fn on_every_mpi(name: &str) {
    for mpi in Mpi::ALL {
        decode_matches(mpi, several(mpi), name);
        decode_matches(mpi, 1, name);
    }
}

/// A number of ranks that two processors can bear: those of MPICH spin.
pub fn several(mpi: Mpi) -> u32 {
    if mpi == Mpi::OpenMpi { 4 } else { 3 }
}

#[test]
fn communicators_groups_topologies_infos_attributes_and_errors() {
    on_every_mpi("objects_comm");
}

#[test]
fn datatypes_operations_and_requests() {
    on_every_mpi("objects_data");
}

#[test]
fn windows_and_files() {
    for mpi in Mpi::ALL {
        decode_matches(mpi, several(mpi), "objects_shared");
        // A lone rank of Open MPI cannot make a window.
        decode_matches(mpi, if mpi == Mpi::OpenMpi { 2 } else { 1 }, "objects_shared");
    }
}

#[test]
fn errors_and_what_they_leave() {
    on_every_mpi("objects_errors");
}

#[test]
fn older_and_newer_ways() {
    on_every_mpi("objects_more");
}
