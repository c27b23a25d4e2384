//! Jobs of a real Slurm of one node: batch scripts with ampl, and the job's number in the run's name.

use std::process::Command;
use std::time::Duration;

use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::{Scratch, ampl, home};
use ampl_tests::process;
use ampl_tests::run::{parse, text_of};

/// Status of `one-node.sh` where Slurm does not run.
const SKIPPED: i32 = 77;

#[test]
fn a_batch_job_ends_and_its_run_has_its_number() {
    let scratch = Scratch::new("slurm");
    let place = scratch.path();
    let program = Job::of(Mpi::Mpich, 2, "steady", &["20"]);
    let launch: Vec<String> = [program.launch(), program.words.clone()]
        .concat()
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let script = format!(
        "#!/bin/sh\n#SBATCH --ntasks=2\n#SBATCH --output=job.out\n{} run -- {}\n",
        ampl().display(),
        launch.join(" ")
    );
    scratch.write("job.sh", &script);
    let mut command = Command::new(home().join("../integrations/slurm/one-node.sh"));
    command.arg(place.join("slurm")).args(["sbatch", "--wait", "--parsable", "--export=ALL", "job.sh"]);
    let finished = process::run(command.current_dir(place), Duration::from_secs(120));
    if finished.status.code() == Some(SKIPPED) {
        eprintln!("SKIPPED: {}", finished.stderr);
        return;
    }
    let told = text_of(&place.join("job.out"));
    assert!(finished.status.success(), "{}{}{told}", finished.stdout, finished.stderr);
    let number = finished.stdout.trim();
    let prefix = format!("ampl-steady-{number}-");
    let entries = std::fs::read_dir(place).expect("the scratch directory").flatten();
    let runs: Vec<_> =
        entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix)).collect();
    assert_eq!(runs.len(), 1, "{prefix}: {told}");
    let shown = process::run(
        Command::new(ampl()).arg("info").arg(runs[0].path()).arg("--json"),
        Duration::from_secs(60),
    );
    let info = parse(&shown.success().stdout);
    assert_eq!((&info["complete"], &info["ranks"]), (&true.into(), &2.into()), "{info}");
    assert!(told.contains("20 turns") && told.contains("complete"), "{told}");
}
