//! `MPI_Pcontrol` and `ampl_marker`.

use std::collections::BTreeMap;

use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::{Scratch, home};
use ampl_tests::run::{Form, monitor, number};

use crate::{LIBRARIES, build, job, means, root};

const RANKS: u32 = 3;
const CONFIG: &str = "[window]\nmarker = \"pcontrol\"\n[trace]\ntiming = \"all\"\n\
                      [[metric]]\nname = \"work\"\n[[metric]]\nname = \"calls\"\nevent = \"MPI_Allreduce\"\n";

fn check(job: &Job) {
    let plain = job.plain().success();
    let monitored = monitor(job, CONFIG, Form::Run).success();
    assert_eq!(plain.stdout, monitored.finished.stdout);
    let info = monitored.info();
    assert_eq!(number(&info["windows"]), 6.0, "{info}");
    // A pause is in no total, but every call is counted.
    assert_eq!(monitored.functions()["MPI_Allreduce"], u64::from(RANKS) * 15);
    assert_eq!(monitored.functions()["MPI_Pcontrol"], u64::from(RANKS) * 4);
    let expected = [(0, 1.0), (1, 2.0), (2, 0.0), (3, 4.0), (4, 5.0), (5, 0.0)];
    assert_eq!(means(&monitored, "work", "*"), BTreeMap::from(expected));
    // The summary has ranks and length of a pause, and `info` has them in JSON.
    let paused = info["paused"].as_array().unwrap_or_else(|| panic!("{info}"));
    let ranks: Vec<u64> = paused.iter().map(|rank| number(&rank["rank"]) as u64).collect();
    assert_eq!(ranks, [0, 1, 2], "{info}");
    assert!(paused.iter().all(|rank| (0.0..1.0).contains(&number(&rank["share"]))), "{info}");
    let said = &monitored.finished.stderr;
    assert!(said.contains("3 ranks (0-2) paused ampl (MPI_Pcontrol)"), "{said}");
    // Positions in the sequence go on where the pause has left them.
    for rank in 0..RANKS {
        let lines = monitored.decode(rank);
        let reduced: Vec<(u64, u64)> = lines
            .iter()
            .filter(|line| line["fn"] == "MPI_Allreduce")
            .map(|line| (number(&line["window"]) as u64, number(&line["seq"]) as u64))
            .collect();
        let windows: Vec<u64> = reduced.iter().map(|&(window, _)| window).collect();
        assert_eq!(windows, [0, 1, 1, 3, 3, 3, 3, 4, 4, 4, 4, 4]);
        // Init, 1, 2 and a marker, the pause's beginning and 3 in it, its end.
        let first = reduced[0].1;
        assert_eq!(reduced[3].1 - first, 3 + 1 + 1 + 3 + 1, "{reduced:?}");
        // The call that pauses is not in the pause, nor the one that ends it.
        let controls = lines.iter().filter(|line| line["fn"] == "MPI_Pcontrol");
        let levels: Vec<u64> = controls.map(|line| number(&line["args"]["level"]) as u64).collect();
        assert_eq!(levels, [5, 0, 1, 5]);
    }
}

#[test]
fn pauses_and_markers_from_c() {
    for mpi in Mpi::ALL {
        let scratch = Scratch::new("control");
        check(&job(mpi, RANKS, &scratch, "api_control.c", &[]));
    }
}

#[test]
fn pauses_and_markers_from_fortran() {
    for mpi in LIBRARIES {
        let scratch = Scratch::new("control-f");
        let sources = [root().join("integrations/fortran/ampl.f90"), home().join("programs/api_control.f90")];
        let flags = ["-fallow-argument-mismatch", "-Wno-argument-mismatch"];
        check(&Job::new(mpi, RANKS, build(mpi, &scratch, &sources, &flags), &[]));
    }
}
