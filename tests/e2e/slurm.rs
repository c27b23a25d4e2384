//! Jobs of a real Slurm of one node: batch scripts and steps with ampl, the job's number in the run's name, and steps that
//! bring journals from the job's nodes.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::{Scratch, ampl, home};
use ampl_tests::process::{self, Finished};
use ampl_tests::run::{Form, monitor, number, parse, text_of};
use serde_json::{Value, json};

/// Status of `one-node.sh` where Slurm does not run.
const SKIPPED: i32 = 77;

/// The command line `words` in `place`, under a Slurm of its own, with these variables; `None`, with a message, where Slurm
/// does not run.
fn under_slurm(place: &Path, words: &[&str], variables: &[(&str, &Path)]) -> Option<Finished> {
    let mut command = Command::new(home().join("../integrations/slurm/one-node.sh"));
    command.arg(place.join("slurm")).args(words).envs(variables.iter().copied()).current_dir(place);
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    let finished = process::run(&mut command, Duration::from_secs(180));
    if finished.status.code() == Some(SKIPPED) {
        eprintln!("SKIPPED: {}", finished.stderr);
        return None;
    }
    Some(finished)
}

/// `ampl info` of the run in `place`, which has that name.
fn info(place: &Path, run: &str) -> Value {
    let mut command = Command::new(ampl());
    let shown = process::run(command.arg("info").arg(place.join(run)).arg("--json"), Duration::from_secs(60));
    parse(&shown.success().stdout)
}

/// Steps of one job: both MPIs, ampl before srun and behind it, and several programs in a file.
const STEPS: &str = r#"
cp "$MPICH" lead; cp "$MPICH" follow
step="srun --jobid=$(salloc --no-shell --ntasks=2 2>&1 | sed -n 's/.*Granted job allocation //p') --ntasks=2 --overcommit"
$step --mpi=pmix "$AMPL" exec -o pmix -- "$OPENMPI" 20 || exit 1
$step --mpi=pmi2 "$AMPL" exec -o pmi2 --set "output.record=$PWD/records/{jobid}.json" -- "$MPICH" 20 || exit 2
"$AMPL" run -o "before the launcher" -- $step --mpi=pmix "$OPENMPI" 20 || exit 3
printf '# Two programs\n0 ./lead 20 \\\n finalize\n1 nice ./follow '"'20' %%o\n" >programs
"$AMPL" run -o "several programs" -- $step --mpi=pmi2 --multi-prog programs || exit 4
"#;

#[test]
fn steps_start_both_mpis_and_several_programs() {
    let scratch = Scratch::new("steps");
    let place = scratch.path();
    let (mpich, openmpi) = (Mpi::Mpich.compile("steady"), Mpi::OpenMpi.compile("steady"));
    let variables = [("MPICH", &*mpich), ("OPENMPI", &*openmpi), ("AMPL", &*ampl())];
    let Some(finished) = under_slurm(place, &["sh", "-c", STEPS], &variables) else { return };
    let said = format!("{}{}", finished.stdout, finished.stderr);
    assert!(finished.status.success(), "{said}");
    for run in ["pmix", "pmi2", "before the launcher", "several programs"] {
        let info = info(place, run);
        assert_eq!((&info["complete"], &info["ranks"]), (&true.into(), &2.into()), "{run}: {info}{said}");
    }
    let programs = json!([{"program": "lead", "ranks": "0"}, {"program": "follow", "ranks": "1"}]);
    assert_eq!(info(place, "several programs")["programs"], programs, "{said}");
    assert!(said.contains("ampl: lead (rank 0) : follow (1)\n"), "{said}");
    // No process of ampl's outlives ampl exec: the end of the job writes the record.
    let records: Vec<_> = std::fs::read_dir(place.join("records")).expect("records").flatten().collect();
    assert_eq!(records.len(), 1, "{said}");
    let record = parse(&text_of(&records[0].path()));
    assert_eq!((&record["complete"], &record["ranks"]), (&Value::Null, &2.into()), "{record}");
    assert_eq!(record["completeness"]["complete"], true, "{record}");
}

/// Two programs as components of a heterogeneous job; status 9 where Slurm grants none in time.
const HETEROGENEOUS: &str = r#"
cp "$MPICH" ocean; cp "$MPICH" air
granted=$(timeout 60 salloc --no-shell --ntasks=1 : --ntasks=1 2>&1)
job=$(echo "$granted" | sed -n 's/.*Granted job allocation //p')
[ -n "$job" ] || { echo "$granted" >&2; exit 9; }
"$AMPL" run -o run -- srun --jobid=$job --mpi=pmi2 ./ocean 20 : ./air 20
"#;

#[test]
fn components_of_a_heterogeneous_job_are_one_run() {
    let scratch = Scratch::new("heterogeneous");
    let place = scratch.path();
    let program = Mpi::Mpich.compile("steady");
    let variables = [("MPICH", &*program), ("AMPL", &*ampl())];
    let Some(finished) = under_slurm(place, &["sh", "-c", HETEROGENEOUS], &variables) else { return };
    let said = format!("{}{}", finished.stdout, finished.stderr);
    if finished.status.code() == Some(9) {
        eprintln!("SKIPPED: no two slurmd run on this machine: {said}");
        return;
    }
    assert!(finished.status.success(), "{said}");
    let info = info(place, "run");
    assert_eq!((&info["complete"], &info["ranks"]), (&true.into(), &2.into()), "{info}{said}");
    let programs = json!([{"program": "ocean", "ranks": "0"}, {"program": "air", "ranks": "1"}]);
    assert_eq!(info["programs"], programs, "{said}");
    assert!(said.contains("ampl: ocean (rank 0) : air (1)\n"), "{said}");
}

/// Nodes of the ranks that srun starts by a placement's list of hosts; status 9 where Slurm has no two nodes here.
const ARBITRARY: &str = r#"
first=$(hostname -s)
granted=$(timeout 60 salloc --no-shell --nodes=2 --ntasks=16 --overcommit 2>&1)
job=$(echo "$granted" | sed -n 's/.*Granted job allocation //p')
[ -n "$job" ] || { echo "$granted" >&2; exit 9; }
sed -i "s/^node0$/$first/; s/^node1$/$first-second/" hosts.slurm
export SLURM_HOSTFILE=$PWD/hosts.slurm
# Two slurmd of one machine may not see the end of a step whose tasks have all ended.
for turn in 1 2 3; do
    timeout -k 5 35 srun --jobid=$job -m arbitrary --overcommit --ntasks=16 \
        sh -c 'echo $SLURM_PROCID $SLURMD_NODENAME' >placed.txt
    [ "$(wc -l <placed.txt)" = 16 ] && break
done
scancel $job
cat placed.txt
"#;

#[test]
fn srun_places_ranks_by_the_list_of_hosts() {
    let scratch = Scratch::new("arbitrary");
    let place = scratch.path();
    let job = Job::of(Mpi::Mpich, 16, "torus_mixed", &["4", "4", "5"]);
    let run = monitor(&job, "", Form::Run).success();
    let mut placed = Command::new(ampl());
    placed.arg("topology").arg(&run.run).args(["--place", "--ranks-per-node", "8", "-o"]).arg(place);
    process::run(&mut placed, Duration::from_secs(60)).success();
    let Some(finished) = under_slurm(place, &["sh", "-c", ARBITRARY], &[]) else { return };
    let said = format!("{}{}", finished.stdout, finished.stderr);
    if finished.status.code() == Some(9) {
        eprintln!("SKIPPED: no two slurmd run on this machine: {said}");
        return;
    }
    assert!(finished.status.success(), "{said}");
    let mut told: Vec<(u32, &str)> = finished
        .stdout
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter_map(|(rank, node)| Some((rank.parse().ok()?, node)))
        .collect();
    told.sort_unstable();
    let list = text_of(&place.join("hosts.slurm"));
    assert_eq!(told, (0..).zip(list.lines()).collect::<Vec<_>>(), "{said}");
    assert_eq!(told.len(), 16);
}

/// A job that hangs, seen and recovered from another host, to which srun is the only way.
const ELSEWHERE: &str = r#"
job=$(salloc --no-shell --ntasks=2 2>&1 | sed -n 's/.*Granted job allocation //p')
srun --jobid=$job --ntasks=4 --overcommit --mpi=pmi2 "$AMPL" exec -o run -- "$MPICH" 50 >job.out 2>&1 &
elsewhere() { unshare --uts --mount sh -c 'echo ampl-elsewhere >/proc/sys/kernel/hostname && mount -t tmpfs ampl-test /dev/shm && exec "$@"' sh "$@"; }
for turn in $(seq 300); do
    elsewhere "$AMPL" info run --json >live.json 2>live.err
    missing=; for word in MPI_Recv MPI_Wait MPI_Iprobe; do grep -q "$word" live.json || missing=$word; done
    [ -z "$missing" ] && break
    sleep 0.2
done
echo "missing: $missing"
ls run/nodes
elsewhere "$AMPL" info run --via false 2>&1
ranks=$(sed -n 's/.* pid=\([0-9]*\) .*/\1/p' run/nodes/*)
journals=$(sed -n 's/.* journals="\(.*\)"/\1/p' run/nodes/* | sort -u)
kill -KILL $ranks
wait
elsewhere "$AMPL" recover run 2>&1
ls ${journals:?} 2>/dev/null
elsewhere "$AMPL" info run --json >dead.json
"#;

#[test]
fn journals_of_a_job_s_nodes_come_by_a_step() {
    let scratch = Scratch::new("elsewhere");
    let place = scratch.path();
    let program = Mpi::Mpich.compile("stuck");
    let variables = [("MPICH", &*program), ("AMPL", &*ampl())];
    let Some(finished) = under_slurm(place, &["sh", "-c", ELSEWHERE], &variables) else { return };
    let text = |name: &str| text_of(&place.join(name));
    let said = format!("{}{}{}{}", finished.stdout, finished.stderr, text("live.err"), text("job.out"));
    for name in ["live.json", "dead.json"] {
        let info = parse(&text(name));
        let rows = info["in_call"].as_array().unwrap_or_else(|| panic!("{name}: {info}{said}"));
        for (rank, function) in [("0", "MPI_Recv"), ("1", "MPI_Wait"), ("2", "MPI_Iprobe")] {
            let row = rows.iter().find(|row| row["ranks"] == rank);
            assert!(row.is_some_and(|row| row["function"] == function), "{name}: {info}{said}");
        }
        assert_eq!(number(&info["functions"]["MPI_Allreduce"]), 200.0, "{name}: {info}{said}");
    }
    assert!(said.contains("4 of 4 ranks") && said.contains("does not answer"), "{said}");
    // Copies of a job that lives do not stay, and the node's memory is free.
    assert!(!said.contains(".seen-") && !said.contains(".journal\n"), "{said}");
}

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
    let words = ["sbatch", "--wait", "--parsable", "--export=ALL", "job.sh"];
    let Some(finished) = under_slurm(place, &words, &[]) else { return };
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
