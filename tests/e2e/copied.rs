//! Copies of journals in the run directory, made while the job runs: they are enough where a node's memory is cleared.

use std::ffi::OsString;
use std::process::Command;
use std::time::Duration;

use ampl_tests::hosts::on_small;
use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::{Scratch, ampl};
use ampl_tests::process;
use ampl_tests::run::{Form, monitor, number, parse, text_of};
use serde_json::Value;

/// Starts the job; when the copies have all names in `wanted`, kills every process of it, the copying one first, and clears
/// the node's memory.
const KILLED: &str = r#"
run=$1 ampl=$2 wanted=$3; shift 3
umask 077
"$@" >job.out 2>job.err &
launcher=$!
host=$(cat /proc/sys/kernel/hostname)
for turn in $(seq 400); do
    "$ampl" info "$run/nodes/$host.journals" --json >copies.json 2>/dev/null
    missing=; for word in $wanted; do grep -q "$word" copies.json || missing=$word; done
    # The ranks are copied one after the other, and what a rank has not committed yet comes with the next round.
    for rank in 0 1 2 3; do
        calls=$("$ampl" decode "$run/nodes/$host.journals" --rank $rank --json 2>/dev/null | grep -c '"fn":"MPI_Allreduce"')
        [ "$calls" = 50 ] || missing=rank-$rank
    done
    [ -z "$missing" ] && break
    sleep 0.1
done
echo "missing: $missing" >missing.txt
find "$run" ! -perm -040 >unreadable.txt
named() { grep -lzF "$1" /proc/[0-9]*/cmdline 2>/dev/null | sed 's,/proc/,,; s,/cmdline,,'; }
copying=$(named copy-journals | while read pid; do tr '\0' ' ' </proc/$pid/cmdline | grep -q "^[^ ]*ampl copy-journals .*$run" && echo $pid; done)
for pid in $copying; do
    tr '\0' '\n' </proc/$pid/environ
    awk '{ print "nice=" $19 }' /proc/$pid/stat
    sed -n 's/^Cpus_allowed_list:[[:space:]]*/processors=/p' /proc/$pid/status
    ls -l /proc/$pid/fd | sed 's/^/fd: /'
done >copying.txt
journals=$(sed -n 's/^journals = "\(.*\)"$/\1/p' "$run/run.toml")
ranks=$(sed -n 's/.* pid=\([0-9]*\) .*/\1/p' "$run/nodes/$host")
kill -KILL $copying $launcher $ranks
wait $launcher
# Where the launcher was killed, nobody has waited for its ranks.
for turn in $(seq 100); do kill -0 $ranks 2>/dev/null || break; sleep 0.05; done
rm -r "$journals"
"$ampl" info "$run" --json >dead.json
"$ampl" recover "$run" 2>recover.err
find "$run" ! -perm -040 >>unreadable.txt
for rank in 0 1 2 3; do "$ampl" decode "$run" --rank $rank --json >rank-$rank.json; done
exit 0
"#;

/// Starts the job with the run directory on a disk that is full until a round of copies has failed; then ends it as
/// [`KILLED`] does.
const FULL: &str = r#"
place=$1 ampl=$2; shift 2
cd "$place"
"$@" >../job.out 2>../job.err &
for turn in $(seq 200); do [ -d result/nodes ] && break; sleep 0.1; done
dd if=/dev/zero of=fill bs=4096 2>/dev/null
host=$(cat /proc/sys/kernel/hostname)
sleep 3
"$ampl" info "result/nodes/$host.journals" --json >../full.json 2>/dev/null
rm fill
for turn in $(seq 400); do
    "$ampl" info "result/nodes/$host.journals" --json >../copies.json 2>/dev/null
    missing=; for word in MPI_Recv MPI_Wait MPI_Iprobe 'Allreduce": 200'; do grep -q "$word" ../copies.json || missing=$word; done
    [ -z "$missing" ] && break
    sleep 0.1
done
echo "missing: $missing" >../missing.txt
kill -KILL $(sed -n 's/.* pid=\([0-9]*\) .*/\1/p' "result/nodes/$host")
wait
exit 0
"#;

#[test]
fn copies_go_on_when_a_full_disk_has_room_again() {
    let scratch = Scratch::new("full");
    let place = scratch.path().join("disk");
    std::fs::create_dir(&place).expect("the scratch directory is ours");
    let job = Job::of(Mpi::Mpich, 4, "stuck", &["50"]);
    let words: Vec<OsString> =
        vec!["bash".into(), "-c".into(), FULL.into(), "sh".into(), (&place).into(), ampl().into()];
    let exec = ["exec", "--set", "output.copy=1s", "-o", "result", "--"].map(OsString::from);
    let exec = [&[ampl().into()][..], &exec].concat();
    let words = [words, job.launch(), exec, job.words.clone()].concat();
    let Some(words) = on_small("1m", &place, &words) else { return };
    job.run(&words, scratch.path());
    let text = |name: &str| text_of(&scratch.path().join(name));
    let said = ["job.err", "missing.txt", "copies.json"].map(text).join("\n");
    assert!(!text("full.json").contains("MPI_Iprobe"), "{}{said}", text("full.json"));
    assert!(text("missing.txt").contains("missing: \n"), "{said}");
    let copies = parse(&text("copies.json"));
    assert_eq!(number(&copies["functions"]["MPI_Allreduce"]), 200.0, "{said}");
}

/// Starts the job, and ends its ranks when there are copies.
const ENDED: &str = r#"
run=$1 ampl=$2; shift 2
"$@" >job.out 2>job.err
status=$?
for turn in $(seq 200); do
    grep -lzF copy-journals /proc/[0-9]*/cmdline 2>/dev/null | while read file; do
        tr '\0' ' ' 2>/dev/null <$file | grep "^[^ ]*ampl copy-journals .*$run"
    done >left.txt
    [ -s left.txt ] || break
    sleep 0.1
done
exit $status
"#;

/// The first processor that this process may use.
fn first_processor() -> String {
    let status = text_of("/proc/self/status".as_ref());
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).expect("a list");
    list.trim().split(['-', ',']).next().expect("a number").to_owned()
}

fn shell(script: &str, words: &[OsString], job: &Job, scratch: &Scratch) {
    let run = scratch.path().join("result");
    let before: Vec<OsString> =
        vec!["-c".into(), script.into(), "sh".into(), run.clone().into(), ampl().into()];
    let mut command = Command::new("bash");
    let exec: Vec<OsString> =
        vec![ampl().into(), "exec".into(), "--set".into(), "output.copy=1s".into(), "--set".into()];
    let exec = [exec, vec!["output.mode=750".into(), "-o".into()]].concat();
    // Each rank on one processor.
    let exec = [["taskset", "-c", &first_processor()].map(OsString::from).to_vec(), exec].concat();
    let exec = [exec, vec![run.into(), "--".into()]].concat();
    command.args([&before[..], words, &job.launch(), &exec, &job.words].concat()).current_dir(scratch.path());
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    process::run(&mut command, Duration::from_secs(120)).success();
}

#[test]
fn copies_are_enough_where_memory_is_cleared() {
    const TURNS: &str = "50";
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let scratch = Scratch::new("copied");
        let job = Job::of(mpi, 4, "stuck", &[TURNS]);
        shell(KILLED, &["MPI_Recv MPI_Wait MPI_Iprobe".into()], &job, &scratch);
        let text = |name: &str| text_of(&scratch.path().join(name));
        let all =
            || ["job.err", "missing.txt", "copies.json", "copying.txt", "recover.err"].map(text).join("\n");

        // One process, of which no launcher waits for anything.
        let copying = text("copying.txt");
        assert_eq!(copying.matches("nice=19").count(), 1, "{mpi:?}: {}", all());
        if std::thread::available_parallelism().is_ok_and(|processors| processors.get() > 1) {
            let bound = format!("processors={}", first_processor());
            assert!(copying.contains("processors="), "{mpi:?}: {}", all());
            assert!(!copying.lines().any(|line| line == bound), "{mpi:?}: {}", all());
        }
        for variable in ["LD_PRELOAD", "OMPI_", "PMI", "AMPL_"] {
            assert!(!copying.lines().any(|line| line.starts_with(variable)), "{mpi:?}: {}", all());
        }
        assert!(!copying.contains("socket:") && !copying.contains("pipe:"), "{mpi:?}: {}", all());

        // The group may read the copies and the run, whatever the mask is.
        assert_eq!(text("unreadable.txt"), "", "{mpi:?}: {}", all());

        // The call of each rank, and every call before it.
        let dead = parse(&text("dead.json"));
        let rows = dead["in_call"].as_array().unwrap_or_else(|| panic!("{mpi:?}: {dead}{}", all()));
        for (rank, function) in [("0", "MPI_Recv"), ("1", "MPI_Wait"), ("2", "MPI_Iprobe")] {
            let row = rows.iter().find(|row| row["ranks"] == rank);
            assert!(row.is_some_and(|row| row["function"] == function), "{mpi:?}: {dead}");
        }
        assert_eq!(number(&dead["functions"]["MPI_Allreduce"]), 200.0, "{mpi:?}: {dead}");
        assert!(text("recover.err").contains("4 of 4 ranks"), "{mpi:?}: {}", all());
        for rank in 0..4 {
            let calls: Vec<Value> = text(&format!("rank-{rank}.json"))
                .lines()
                .map(parse)
                .filter(|line| line["fn"].is_string())
                .collect();
            let made = |name: &str| calls.iter().filter(|call| call["fn"] == name).count();
            assert_eq!((made("MPI_Allreduce"), made("MPI_Comm_split")), (50, 1), "{mpi:?}: rank {rank}");
        }
    }
}

#[test]
fn copies_go_with_the_job() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let scratch = Scratch::new("uncopied");
        // It ends after a round of copies.
        let job = Job::of(mpi, 2, "steady", &["1500"]);
        shell(ENDED, &[], &job, &scratch);
        let text = |name: &str| text_of(&scratch.path().join(name));
        let run = scratch.path().join("result");
        assert_eq!(text("left.txt"), "", "{mpi:?}: {}", text("job.err"));
        assert!(
            run.join("trace.ampl").is_file() && !run.join("nodes").exists(),
            "{mpi:?}: {}",
            text("job.err")
        );
        assert!(!text("job.err").contains("output.copy"), "{mpi:?}: {}", text("job.err"));
    }
}

/// Processes that ampl starts are none of the program's: it has a handler for the ends of its own, and takes any that there
/// is.
#[test]
fn processes_of_ampl_are_none_of_the_program_s() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let job = Job::of(mpi, 2, "children", &[]);
        let plain = job.plain().success().stdout;
        assert_eq!(plain, "0 signals, 0 children\n", "{mpi:?}");
        let scratch = Scratch::new("children");
        let record = scratch.path().join("record.json");
        let config = format!("[output]\ncopy = \"1s\"\nrecord = '{}'\n", record.display());
        let run = monitor(&job, &config, Form::Run).success();
        assert_eq!(run.finished.stdout, plain, "{mpi:?}: {}", run.finished.stderr);
        assert!(record.is_file(), "{mpi:?}: {}", run.finished.stderr);
    }
}
