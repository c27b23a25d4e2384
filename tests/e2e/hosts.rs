//! Jobs over two hosts: one summary of both, and journals in two memories.

use std::ffi::OsString;
use std::path::Path;

use ampl_tests::hosts::{Hosts, NAMES};
use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::{Scratch, ampl};
use ampl_tests::process::Finished;
use ampl_tests::run::{Monitored, number, parse, text_of};

const EACH: u32 = 2;

/// Starts the job, `"$@"`, and waits until the copies of both hosts have all names in `wanted`.
const STARTED: &str = r#"
run=$1 ampl=$2 wanted=$3 way=$4; shift 4
"$@" >job.out 2>job.err &
launcher=$!
for turn in $(seq 400); do
    for host in ampl-one ampl-two; do "$ampl" info "$run/nodes/$host.journals" --json; done >copies.json 2>/dev/null
    missing=; for word in $wanted; do grep -q "$word" copies.json || missing=$word; done
    [ -z "$missing" ] && break
    sleep 0.1
done
echo "missing: $missing" >missing.txt
ranks=$(sed -n 's/.* pid=\([0-9]*\) .*/\1/p' "$run/nodes/ampl-one" "$run/nodes/ampl-two")
"#;

/// Starts the job; when the copies of both hosts have all names in `wanted`, ends it as a batch system does whose time is
/// up: every process is asked to end, and killed ten seconds later.
const TERMINATED: &str = r#"
copying=$(pgrep -f "^[^ ]*ampl copy-journals .*$run")
echo $copying >copying.txt
kill -TERM $copying $launcher $ranks
sleep 10
kill -KILL $copying $launcher $ranks 2>/dev/null
wait $launcher
exit 0
"#;

/// The shell with [`STARTED`] and `rest` for `stuck` in the directory `run`; the job's command line follows.
fn started_and(rest: &str, hosts: &Hosts, run: &Path) -> Vec<OsString> {
    let script: Vec<OsString> =
        ["bash", "-c", &format!("{STARTED}{rest}"), "sh"].map(OsString::from).to_vec();
    let wanted = "MPI_Recv MPI_Wait MPI_Iprobe".into();
    [script, vec![run.into(), ampl().into(), wanted, hosts.way().into()]].concat()
}

/// `ampl exec` into the directory `run`, with a copy each second.
fn copied_exec(run: &Path) -> Vec<OsString> {
    let exec: Vec<OsString> = vec![ampl().into(), "exec".into(), "--set".into(), "output.copy=1s".into()];
    [exec, vec!["-o".into(), run.into(), "--".into()]].concat()
}

/// `steady` with these arguments over both hosts, under `ampl run` on the first, with these settings.
fn run(hosts: &Hosts, arguments: &[&str], settings: &str) -> (Job, Monitored) {
    let scratch = Scratch::new("over-two");
    let run = scratch.path().join("result");
    let job = Job::of(Mpi::OpenMpi, 2 * EACH, "steady", arguments);
    let config = scratch.write("job.toml", &format!("{settings}[agent]\nmax_overhead = 0.5\n"));
    let ampl: Vec<OsString> = vec![ampl().into(), "run".into(), "-c".into(), config.into(), "-o".into()];
    let words = [ampl, vec![(&run).into(), "--".into()], hosts.launch(Mpi::OpenMpi, EACH), job.words.clone()]
        .concat();
    let finished = job.run(&hosts.on(0, &words), scratch.path());
    (job, Monitored { finished, run, scratch })
}

/// Start and end of each barrier of `rank`.
fn barriers_of(run: &Monitored, rank: u32) -> Vec<[f64; 2]> {
    let calls = run.decode(rank).into_iter().filter(|call| call["fn"] == "MPI_Barrier");
    let times = calls.map(|call| {
        let start = number(&call["start_ns"]);
        [start, start + number(&call["duration_ns"])]
    });
    times.collect()
}

#[test]
fn a_job_over_two_hosts_is_one_run() {
    let Some(hosts) = Hosts::start() else { return };
    let (_, run) = run(&hosts, &["30"], "[trace]\ntiming = \"all\"\ntime_error = 0\n");
    let run = run.success();
    let info = run.info();
    assert_eq!((&info["complete"], &info["ranks"]), (&true.into(), &(2 * EACH).into()), "{info}");
    assert_eq!(run.functions()["MPI_Barrier"], u64::from(2 * EACH) * 30);
    let said = &run.finished.stderr;
    assert!(said.contains("on 2 hosts") && NAMES.iter().all(|name| said.contains(name)), "{said}");
    // Clocks are 1000 s apart, and no rank leaves a barrier before another has entered it.
    assert_eq!(number(&info["clocks"]["ranks"]), f64::from(EACH), "{info}");
    let error = number(&info["clocks"]["error_ns"]);
    assert!(error > 0.0 && error < 100e6, "{info}");
    let barriers: Vec<Vec<[f64; 2]>> = (0..2 * EACH).map(|rank| barriers_of(&run, rank)).collect();
    for (turn, first) in barriers[0].iter().enumerate() {
        let all = || barriers.iter().map(|calls| calls[turn]);
        let last = all().map(|[start, _]| start).fold(first[0], f64::max);
        assert!(
            all().all(|[_, end]| end + error >= last),
            "{turn}: {error}, {:?}",
            all().collect::<Vec<_>>()
        );
    }
    assert!(!run.run.join("nodes").exists());
}

#[test]
fn journals_of_both_hosts_come_home() {
    let Some(hosts) = Hosts::start() else { return };
    let (job, run) = run(&hosts, &["60", "kill-1"], "");
    let said = &run.finished.stderr;
    assert!(!run.finished.status.success(), "{said}");
    let other = format!("{} (2 ranks: 2-3)", NAMES[1]);
    assert!(said.contains("in the memory of other hosts") && said.contains(&other), "{said}");
    assert!(said.contains(&format!("ampl recover --node {}", run.run.display())), "{said}");
    assert!(said.contains("2 of 4 ranks"), "{said}");
    let ask = |host: usize, words: &[&str], at: &Path| -> Finished {
        let words = [vec![ampl().into()], words.iter().map(OsString::from).collect(), vec![at.into()]];
        job.run(&hosts.on(host, &words.concat()), run.scratch.path())
    };
    let memory = |host: usize| {
        let words = ["ls", "-A", "/dev/shm"].map(OsString::from);
        job.run(&hosts.on(host, &words), run.scratch.path()).success().stdout
    };
    // This host's memory is free, the other's is not.
    assert!(!memory(0).contains("ampl-") && memory(1).contains("ampl-"), "{said}");
    let brought = ask(1, &["recover", "--node"], &run.run).success().stderr;
    assert!(brought.contains("journals of 2 ranks"), "{brought}");
    assert!(!memory(1).contains("ampl-"), "{brought}");
    // Several of a host may be started.
    assert!(ask(1, &["recover", "--node"], &run.run).success().stderr.contains("has no journals"));
    let told = ask(0, &["recover"], &run.run).success().stderr;
    assert!(told.contains("4 of 4 ranks") && told.contains("have been removed"), "{told}");
    assert!(!run.run.join("nodes").exists(), "{told}");
    let info = run.info();
    assert_eq!((&info["complete"], &info["ranks"]), (&false.into(), &(2 * EACH).into()), "{info}");
    for rank in 0..2 * EACH {
        let calls = run.decode(rank);
        assert!(calls.iter().filter(|call| call["fn"] == "MPI_Barrier").count() >= 28, "rank {rank}");
    }
}

#[test]
fn journals_of_another_host_come_by_ssh_or_a_given_command_or_it_is_named() {
    let Some(mut hosts) = Hosts::start() else { return };
    let scratch = Scratch::new("fetched");
    let run = scratch.path().join("result");
    let job = Job::of(Mpi::OpenMpi, 2 * EACH, "steady", &["60", "kill-1"]);
    let exec: Vec<OsString> = vec![ampl().into(), "exec".into(), "-o".into(), (&run).into(), "--".into()];
    let words = [hosts.launch(Mpi::OpenMpi, EACH), exec, job.words.clone()].concat();
    let finished = job.run(&hosts.on(0, &words), scratch.path());
    assert!(!finished.status.success() && run.join("nodes").is_dir(), "{}", finished.stderr);
    let ask = |hosts: &Hosts, words: &[&str]| -> Finished {
        let words: Vec<OsString> = words.iter().map(OsString::from).chain([(&run).into()]).collect();
        job.run(&hosts.on(0, &[vec![ampl().into()], words].concat()), scratch.path()).success()
    };
    let barriers = |asked: &Finished| number(&parse(&asked.stdout)["functions"]["MPI_Barrier"]);
    // One of two hosts answers: there is no ssh server.
    let lacking = ask(&hosts, &["info", "--json"]);
    let said = &lacking.stderr;
    assert!(said.contains(&format!("{} does not answer", NAMES[1])) && said.contains("refused"), "{said}");
    assert!(said.contains("--via 'ssh -p 2222 {host}'"), "{said}");
    let whole = ask(&hosts, &["info", "--json", "--via", &hosts.via()]);
    assert!(!whole.stderr.contains("answer"), "{}", whole.stderr);
    assert!(barriers(&whole) > 1.5 * barriers(&lacking), "{}{}", whole.stdout, lacking.stdout);
    let names = || {
        let entries = std::fs::read_dir(run.join("nodes")).expect("a directory").flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect::<Vec<_>>()
    };
    assert!(names().iter().all(|name| NAMES.contains(&&**name)), "{:?}", names());
    // Now there is one.
    hosts.serve_ssh();
    let by_ssh = ask(&hosts, &["info", "--json"]);
    assert_eq!((by_ssh.stderr.as_str(), barriers(&by_ssh)), ("", barriers(&whole)), "{}", by_ssh.stdout);
    assert!(names().iter().all(|name| NAMES.contains(&&**name)), "{:?}", names());
    let recovered = ask(&hosts, &["recover"]);
    let said = &recovered.stderr;
    assert!(said.contains("4 of 4 ranks") && said.contains("have been removed"), "{said}");
    let words = ["ls", "-A", "/dev/shm"].map(OsString::from);
    let memory = job.run(&hosts.on(1, &words), scratch.path()).success().stdout;
    assert!(!memory.contains("ampl-"), "{memory}");
}

#[test]
fn copies_of_another_host_need_no_command_there() {
    let Some(hosts) = Hosts::start() else { return };
    // Before rank 1 is killed, a round of copies has been made on each host.
    let (job, run) = run(&hosts, &["4000", "kill-1"], "[output]\ncopy = \"1s\"\n");
    let said = &run.finished.stderr;
    assert!(!run.finished.status.success() && said.contains("4 of 4 ranks"), "{said}");
    assert!(!said.contains("in the memory of other hosts"), "{said}");
    let words = ["sh", "-c", "rm -rf /dev/shm/ampl-*"].map(OsString::from);
    (0..2).for_each(|host| drop(job.run(&hosts.on(host, &words), run.scratch.path()).success()));
    let info = run.info();
    assert_eq!((&info["complete"], &info["ranks"]), (&false.into(), &(2 * EACH).into()), "{info}");
    for rank in 0..2 * EACH {
        let calls = run.decode(rank);
        assert!(calls.iter().any(|call| call["fn"] == "MPI_Barrier"), "rank {rank}: {said}");
    }
}

/// Starts the job, and recovers it while it runs: with no way to its hosts, and with one. Then kills its ranks, and
/// recovers it.
const RUNNING: &str = r#"
"$ampl" recover "$run" 2>silent.err; echo $? >silent.status
"$ampl" recover "$run" --via "$way" 2>asked.err; echo $? >asked.status
ls "$run" "$run/nodes"/*.journals >left.txt
kill -KILL $ranks $launcher
for turn in $(seq 100); do kill -0 $ranks 2>/dev/null || break; sleep 0.05; done
"$ampl" recover "$run" --via "$way" 2>recover.err; echo $? >recover.status
exit 0
"#;

#[test]
fn a_job_that_runs_on_other_hosts_is_not_recovered_from_its_copies() {
    let Some(hosts) = Hosts::start() else { return };
    let scratch = Scratch::new("running");
    let run = scratch.path().join("result");
    let job = Job::of(Mpi::OpenMpi, 2 * EACH, "stuck", &["50"]);
    let launch = hosts.launch(Mpi::OpenMpi, EACH);
    let (script, exec) = (started_and(RUNNING, &hosts, &run), copied_exec(&run));
    let words = [script, hosts.on(0, &[launch, exec, job.words.clone()].concat())].concat();
    job.run(&words, scratch.path()).success();
    let text = |name: &str| text_of(&scratch.path().join(name));
    let said = ["missing.txt", "silent.err", "asked.err", "left.txt", "recover.err", "job.err"].map(text);
    let said = said.join("\n");
    assert_eq!(text("silent.status"), "1\n", "{said}");
    assert!(text("silent.err").contains("the job may still run: ampl-"), "{said}");
    assert_eq!(text("asked.status"), "1\n", "{said}");
    assert!(
        text("asked.err").contains("the job still runs: rank ") && text("asked.err").contains(" of ampl-")
    );
    assert!(!text("left.txt").contains("trace.ampl"), "{said}");
    assert_eq!(text("left.txt").matches("rank-00000").count(), 4, "{said}");
    assert_eq!(text("recover.status"), "0\n", "{said}");
    assert!(text("recover.err").contains("4 of 4 ranks"), "{said}");
    assert!(text("recover.err").contains("its journals have been removed"), "{said}");
    assert!(!run.join("nodes").exists(), "{said}");
    for host in 0..2 {
        let words = ["ls", "-A", "/dev/shm"].map(OsString::from);
        let memory = job.run(&hosts.on(host, &words), scratch.path()).success().stdout;
        assert!(!memory.contains("ampl-"), "{memory}{said}");
    }
}

#[test]
fn a_hung_job_that_is_terminated_is_told_by_its_run_directory_alone() {
    let Some(hosts) = Hosts::start() else { return };
    let scratch = Scratch::new("terminated");
    let run = scratch.path().join("result");
    let job = Job::of(Mpi::OpenMpi, 2 * EACH, "stuck", &["50"]);
    let (script, exec) = (started_and(TERMINATED, &hosts, &run), copied_exec(&run));
    let words = [script, hosts.launch(Mpi::OpenMpi, EACH), exec, job.words.clone()].concat();
    job.run(&hosts.on(0, &words), scratch.path()).success();
    let clear = ["sh", "-c", "rm -rf /dev/shm/ampl-*"].map(OsString::from);
    (0..2).for_each(|host| drop(job.run(&hosts.on(host, &clear), scratch.path()).success()));
    let said = ["missing.txt", "copying.txt", "job.err"].map(|name| text_of(&scratch.path().join(name)));
    let said = said.join("\n");
    assert_eq!(text_of(&scratch.path().join("copying.txt")).split_whitespace().count(), 2, "{said}");

    let run = Monitored { finished: job.run(&["true".into()], scratch.path()), run, scratch };
    let info = run.info();
    assert_eq!((&info["complete"], &info["ranks"]), (&false.into(), &(2 * EACH).into()), "{info}{said}");
    let rows = info["in_call"].as_array().unwrap_or_else(|| panic!("{info}{said}"));
    for (rank, function) in [("0", "MPI_Recv"), ("1", "MPI_Wait"), ("2", "MPI_Iprobe")] {
        let row = rows.iter().find(|row| row["ranks"] == rank);
        assert!(row.is_some_and(|row| row["function"] == function), "{info}{said}");
    }
    for rank in 0..2 * EACH {
        let calls = run.decode(rank);
        let made = |name: &str| calls.iter().filter(|call| call["fn"] == name).count();
        assert_eq!((made("MPI_Allreduce"), made("MPI_Comm_split")), (50, 1), "rank {rank}: {said}");
    }
}
