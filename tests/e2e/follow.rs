//! Programs that follow ampl's decisions from window to window.

use std::collections::BTreeSet;

use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::Scratch;
use ampl_tests::run::{Form, Monitored, monitor, text_of, window};

const RANKS: u32 = 4;
const WINDOWS: usize = 60;
/// Windows of an update interval.
const INTERVAL: u64 = 5;
const CONFIG: &str = "[sampling]\nwindows_per_update = 5\nselection = \"retrospective\"\n\
                      [window]\nmarker = \"mpi:MPI_Barrier\"\n[[group]]\nname = \"all\"\nsample_size = 2\n\
                      [agent]\nmax_overhead = 0.9\nmax_structure_overhead = 0.9\n";

fn follow(mpi: Mpi, place: &Scratch, when: &str) -> Monitored {
    let directory = place.path().to_str().expect("a plain path");
    let job = Job::of(mpi, RANKS, "follows", &[directory, &WINDOWS.to_string(), when]);
    let run = monitor(&job, CONFIG, Form::Run).success();
    assert_eq!(run.finished.stdout.lines().next(), Some("sum 4"));
    run
}

/// Windows and whether the rank was told to keep them, in the order in which it was told.
fn told(place: &Scratch, rank: u32) -> Vec<(u64, bool)> {
    let text = text_of(&place.path().join(format!("told.{rank}")));
    let words = text.lines().map(|line| line.split_once(' ').expect("two words"));
    words.map(|(window, kept)| (window.parse().expect("a number"), kept == "1")).collect()
}

#[test]
fn a_program_is_told_of_each_window_what_is_kept() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let place = Scratch::new("follow");
        let run = follow(mpi, &place, "early");
        let said = &run.finished.stderr;
        assert_eq!(said.matches("selection = \"predictive\"").count(), 1, "{said}");
        let settings = text_of(&run.run.join("run.toml"));
        assert!(settings.contains("selection = \"predictive\""), "{settings}");
        let mut kept_somewhere = 0;
        for rank in 0..RANKS {
            let told = told(&place, rank);
            let windows: Vec<u64> = told.iter().map(|&(window, _)| window).collect();
            assert_eq!(windows, (0..=WINDOWS as u64).collect::<Vec<_>>(), "{mpi:?} rank {rank}: once each");
            let timed = run.decode(rank);
            let timed: BTreeSet<u64> =
                timed.iter().filter(|call| call["duration_ns"].is_number()).filter_map(window).collect();
            // The first interval is decided when it is over; the last window has MPI_Finalize alone.
            let decided = told.iter().filter(|(window, _)| (INTERVAL..WINDOWS as u64).contains(window));
            for &(window, kept) in decided {
                assert_eq!(timed.contains(&window), kept, "{mpi:?} rank {rank} window {window}");
                kept_somewhere += usize::from(kept);
            }
        }
        let all = RANKS as usize * (WINDOWS - INTERVAL as usize);
        assert!(0 < kept_somewhere && kept_somewhere < all, "{mpi:?}: some of {all}: {kept_somewhere}");
    }
}

#[test]
fn a_program_that_comes_late_hears_that() {
    let place = Scratch::new("follow-late");
    let run = follow(Mpi::OpenMpi, &place, "late");
    assert!(run.finished.stderr.contains("after MPI_Init"), "{}", run.finished.stderr);
    assert!(text_of(&run.run.join("run.toml")).contains("selection = \"retrospective\""));
    for rank in 0..RANKS {
        let windows: Vec<u64> = told(&place, rank).into_iter().map(|(window, _)| window).collect();
        assert_eq!(windows, (0..=WINDOWS as u64).collect::<Vec<_>>(), "rank {rank}");
    }
}
