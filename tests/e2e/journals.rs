//! Places of journals: directories that ampl made are removed with the last job that needs them; others stay.

use std::path::{Path, PathBuf};

use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::Scratch;
use ampl_tests::run::{Form, monitor, parse, text_of};

const RANKS: u32 = 3;

/// Directory of the run's journals, with `place` as their place.
fn journals(mpi: Mpi, place: &str) -> PathBuf {
    let config = format!("[output]\njournal = \"{place}\"\n");
    let run = monitor(&Job::of(mpi, RANKS, "steady", &["5"]), &config, Form::Exec).success();
    assert_eq!(run.info()["complete"], true);
    let text = text_of(&run.run.join("run.toml"));
    let line = text.lines().find_map(|line| line.strip_prefix("journals = ")).expect("they are named");
    parse(line).as_str().expect("a text").into()
}

fn is_empty(directory: &Path) -> bool {
    directory.read_dir().expect("it is there").next().is_none()
}

#[test]
fn places_that_were_made_go_with_the_run() {
    for mpi in Mpi::ALL {
        let scratch = Scratch::new("places");
        let place = scratch.path().join("made/deeper/still");
        let journals = journals(mpi, &place.to_string_lossy());
        assert_eq!(journals.parent(), Some(&*place));
        assert!(is_empty(scratch.path()), "{mpi:?}: something is left of {}", place.display());
    }
}

#[test]
fn places_that_were_there_stay() {
    let scratch = Scratch::new("places");
    let (there, other) = (scratch.path().join("there"), scratch.path().join("used/made"));
    std::fs::create_dir(&there).expect("the scratch directory is ours");
    std::fs::create_dir(scratch.path().join("used")).expect("the scratch directory is ours");
    std::fs::write(scratch.path().join("used/file"), "the user's").expect("the scratch directory is ours");
    journals(Mpi::ALL[0], &there.to_string_lossy());
    assert!(is_empty(&there));
    journals(Mpi::ALL[0], &other.to_string_lossy());
    assert!(!other.exists() && scratch.path().join("used/file").exists());
}

#[test]
fn nothing_of_a_run_is_left_in_the_memory_of_the_node() {
    let journals = journals(Mpi::ALL[0], "node");
    assert!(!journals.exists(), "{}", journals.display());
}

/// A relative place starts at the program's first working directory.
#[test]
fn a_place_may_be_relative() {
    let journals = journals(Mpi::ALL[0], "./near/by");
    let near = journals.parent().and_then(Path::parent).expect("two directories deep");
    assert!(journals.is_absolute() && near.ends_with("near") && !near.exists(), "{}", journals.display());
}
