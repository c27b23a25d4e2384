//! Every program of the other tests, too: with and without ampl.

use ampl_tests::differential::compare;
use ampl_tests::job::{Job, Mpi};

/// Programs, arguments, and whether the files they write are the same every time.
const PROGRAMS: &[(&str, &[&str], bool)] = &[
    ("p2p_coll", &[], true),
    // Writes how often it polled.
    ("counts", &["counts"], false),
    ("classes", &["7", "12"], true),
    ("steady", &["20"], true),
    ("significant", &[], true),
    ("errors", &["handler"], true),
    ("errors", &["return"], true),
];

fn every_program(mpi: Mpi) {
    for (name, arguments, files) in PROGRAMS {
        let job = Job::of(mpi, 3, name, arguments);
        let comparison = compare(&job);
        let comparison = if *files { comparison } else { comparison.without_files() };
        // Which state ampl is in has little to do with the library.
        let comparison = if mpi == Mpi::OpenMpi { comparison } else { comparison.kept_only() };
        let same = comparison.run().complete();
        assert!(!same.plain.stdout.is_empty() || *files, "{name} said nothing");
    }
}

#[test]
fn every_program_under_open_mpi() {
    every_program(Mpi::OpenMpi);
}

#[test]
fn every_program_under_mpich() {
    every_program(Mpi::Mpich);
}

#[test]
fn every_program_under_the_standard_abi() {
    every_program(Mpi::Abi);
}
