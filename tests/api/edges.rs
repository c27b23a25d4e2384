//! Where the API can do nothing, it does nothing.

use ampl_tests::job::Mpi;
use ampl_tests::place::Scratch;
use ampl_tests::run::{Form, monitor, number};

use crate::{LIBRARIES, job};

const CONFIG: &str = "[[metric]]\nname = \"work\"\n[[metric]]\nname = \"wall\"\nevent = \"region:INNER\"\n";

#[test]
fn anywhere_and_unbalanced() {
    for mpi in Mpi::ALL {
        // After MPI_Finalize a launcher may end the others when one has ended.
        let ranks = if mpi == Mpi::Abi { 1 } else { 2 };
        let scratch = Scratch::new("edges");
        let job = job(mpi, ranks, &scratch, "api_edges.c", &[]);
        let plain = job.plain().success();
        assert!(plain.stdout.contains("child: 7"), "{}", plain.stdout);
        for marker in ["region:STEP", "period:1ms", "pcontrol"] {
            let config = format!("[window]\nmarker = \"{marker}\"\n{CONFIG}");
            let monitored = monitor(&job, &config, Form::Run).success();
            assert_eq!(plain.sorted_lines(), monitored.finished.sorted_lines(), "{mpi:?} {marker}");
            let info = monitored.info();
            assert_eq!((number(&info["agent_failures"]), &info["complete"]), (0.0, &true.into()), "{info}");
            let said = &monitored.finished.stderr;
            // Otherwise STEP has no effect, and INNER is never left: it may have lasted to the end.
            let times = usize::from(marker == "region:STEP");
            assert_eq!(said.matches("had not been entered").count(), times, "said once: {said}");
        }
        let disabled = monitor(&job.clone().with("AMPL_DISABLE", "1"), CONFIG, Form::Run);
        assert_eq!(plain.sorted_lines(), disabled.finished.sorted_lines(), "{mpi:?} disabled");
    }
}

/// Instrumentation stays in a program only if it costs nothing where it is not used.
#[test]
fn a_call_that_concerns_nobody_is_quick() {
    let scratch = Scratch::new("quick");
    let job = job(Mpi::OpenMpi, 1, &scratch, "api_quick.cc", &[]);
    let each = |stderr: &str| -> Vec<f64> {
        let line = stderr.lines().find(|line| line.contains("per call:")).expect("the program's own line");
        line.split([' ', ',']).filter_map(|word| word.parse().ok()).collect()
    };
    let without = each(&job.plain().success().stderr);
    let config = "[window]\nmarker = \"region:STEP\"\n[[metric]]\nname = \"wall\"\nevent = \"region:INNER\"\n\
                  [trace]\nregions = \"!*\"\n";
    // The library is not even loaded then.
    let disabled = job.clone().with("AMPL_DISABLE", "1");
    let disabled = each(&monitor(&disabled, config, Form::Run).success().finished.stderr);
    let monitored = monitor(&job, config, Form::Run).success();
    let under = each(&monitored.finished.stderr);
    // Of an ordinary call, not of a second: the same on any machine.
    eprintln!("per call without {without:?}, disabled {disabled:?}, under ampl {under:?}");
    assert_eq!(number(&monitored.info()["windows"]), 11.0, "exceptions leave regions too");
    assert!(without[0] < 10.0 && disabled[0] < 10.0, "{without:?} {disabled:?}");
    assert!(under[0] < 100.0 && under[1] < 1000.0, "{under:?}");
}

#[test]
fn a_marker_that_is_never_met_is_said() {
    for mpi in LIBRARIES {
        let scratch = Scratch::new("never");
        let job = job(mpi, 2, &scratch, "api_control.c", &[]);
        let monitored = monitor(&job, "[window]\nmarker = \"region:TIMESTEP\"\n", Form::Run).success();
        let said = &monitored.finished.stderr;
        assert_eq!(said.matches("\"region:TIMESTEP\" was not met").count(), 1, "{said}");
        assert_eq!(number(&monitored.info()["windows"]), 1.0);
    }
}
