//! Programs and tools that define functions of MPI themselves: what is said not to be covered is what ampl did not see.

use ampl_tests::job::{Job, Mpi, compile_shim};
use ampl_tests::run::{Form, monitor};

#[test]
fn only_what_was_not_seen_is_not_covered() {
    let shim = compile_shim("next_shim");
    for mpi in Mpi::ALL {
        let program = mpi.compile("own_end");
        let script = format!("LD_PRELOAD={}:$LD_PRELOAD exec {}", shim.display(), program.display());
        let job = Job::new(mpi, 2, "sh", &["-c", &script]);
        let run = monitor(&job, "", Form::Run).success();
        assert_eq!(run.finished.sorted_lines(), ["0: 1", "1: 2"], "{mpi:?}");
        let info = run.info();
        assert_eq!(info["complete"], true, "{mpi:?}: {}", run.finished.stderr);
        let calls = run.functions();
        assert_eq!(
            (calls["MPI_Barrier"], calls["MPI_Bcast"], calls.get("MPI_Scan")),
            (40, 40, None),
            "{mpi:?}"
        );
        let said = &run.finished.stderr;
        assert!(!said.contains("did not reach MPI_Finalize"), "{mpi:?}: {said}");
        let line = said.lines().find(|line| line.contains("defines them itself"));
        let line = line.unwrap_or_else(|| panic!("{mpi:?}: {said}"));
        assert!(line.contains("MPI_Scan"), "{mpi:?}: {said}");
        assert!(!line.contains("MPI_Barrier") && !line.contains("MPI_Finalize"), "{mpi:?}: {said}");
    }
}
