//! Times that ranks lose their processor are those of the program, between `MPI_Init` and `MPI_Finalize`.

use ampl_tests::job::{Job, Mpi};
use ampl_tests::run::{Form, monitor, number};

/// Time after `MPI_Init`.
const MILLISECONDS: u32 = 600;

#[test]
fn what_came_before_the_start_is_not_the_run_s() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let job = Job::of(mpi, 2, "preempted", &["150", &MILLISECONDS.to_string()]);
        let run = monitor(&job, "", Form::Run).success();
        let own = |line: &str| line.rsplit_once(": ").and_then(|(_, times)| times.parse::<f64>().ok());
        let most = run.finished.stdout.lines().filter_map(own).fold(f64::NAN, f64::max);
        assert!(most >= 0.0, "{}", run.finished.stdout);
        let said = &run.info()["processors"]["disturbed"]["per_second"];
        // On a machine that does nothing else there is nothing to say.
        let per_second = if said.is_null() { 0.0 } else { number(said) };
        let seconds = f64::from(MILLISECONDS) / 1000.0;
        assert!(per_second <= most / seconds, "{mpi:?}: {per_second} a second of {most} in all");
    }
}

/// Another process wants the processor that rank 1 is bound to, and takes it from it again and again.
#[test]
fn a_rank_that_another_process_disturbs_is_named() {
    // Often is 30 times a second by ampl; nothing is told of a machine that switches more seldom.
    const OFTEN: f64 = 60.0;
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let run = monitor(&Job::of(mpi, 2, "preempted", &["100", "one"]), "", Form::Run).success();
        let own: Vec<[f64; 2]> = run
            .finished
            .sorted_lines()
            .into_iter()
            .filter_map(|line| line.split_once(": ")?.1.split_once(" in "))
            .map(|(lost, seconds)| [lost, seconds].map(|text| text.parse().expect("a number")))
            .collect();
        let [quiet, disturbed] = [0, 1].map(|rank: usize| own[rank][0] / own[rank][1]);
        if disturbed < OFTEN || quiet > 0.8 * disturbed {
            eprintln!("LEFT OUT: rank 1 lost its processor {disturbed} times a second, rank 0 {quiet} times");
            continue;
        }
        let sharing = &run.info()["processors"];
        assert_eq!(sharing["disturbed"]["rank"], 1, "{mpi:?}: {disturbed} {quiet}: {sharing}");
        // From MPI_Init to MPI_Finalize, which is most of it.
        let per_second = number(&sharing["disturbed"]["per_second"]);
        assert!(per_second >= 0.5 * disturbed, "{mpi:?}: {per_second}, {disturbed} by its own count");
        if sharing["hosts"] == serde_json::json!([]) {
            let said = run.finished.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
            let named = said.find("lost the processor to others often (rank 1 ").expect("it is named");
            assert!(named < said.find("parallel").expect("an efficiency"), "{mpi:?}: {said}");
        }
    }
}
