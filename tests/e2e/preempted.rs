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
