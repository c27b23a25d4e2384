//! `output.rank_summaries`: of which windows a rank's totals are stored.

use std::collections::BTreeSet;

use ampl_tests::job::{Job, Mpi};
use ampl_tests::run::{Form, monitor};

const RANKS: u32 = 6;
const TURNS: u64 = 60;

/// What estimates rest on, after a run in which a few ranks are enough from the second interval on.
fn bases(rank_summaries: &str) -> BTreeSet<String> {
    let config = format!(
        "[sampling]\nselection = \"predictive\"\nwindows_per_update = 5\nfloor = 2\n\
         [window]\nmarker = \"mpi:MPI_Barrier\"\n[[metric]]\nname = \"calls\"\nrole = \"guide\"\n\
         [output]\nrank_summaries = \"{rank_summaries}\"\n"
    );
    let job = Job::of(Mpi::OpenMpi, RANKS, "steady", &[&TURNS.to_string()]);
    let run = monitor(&job, &config, Form::Run).success();
    assert_eq!(run.info()["windows"], TURNS + 1);
    let rows = run.estimate().into_iter().filter(|row| row["scope"] == "window" && row["mean"].is_number());
    rows.map(|row| row["basis"].as_str().expect("a word").to_owned()).collect()
}

#[test]
fn summaries_are_stored_of_whom_the_key_says() {
    let of = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    assert_eq!(bases("all"), of(&["census", "trace"]));
    assert_eq!(bases("sample"), of(&["sampled"]));
    assert_eq!(bases("off"), of(&[]));
}
