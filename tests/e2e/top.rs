//! A job that is watched while it runs: in a terminal, and as text.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::{Scratch, ampl};
use ampl_tests::process::{self, Finished};
use ampl_tests::run::{Form, monitor, text_of};

/// Starts the job, whose rank 3 stops itself; watches it as text and in a terminal, leaves by a key, kills a second
/// watcher, continues the rank while a third one watches, and waits for the job's end.
const SCRIPT: &str = r#"
run=$1 ampl=$2; shift 2
name=ampl-top-$$
tmux() { command tmux -L "$name" -f /dev/null "$@"; }
# The whole frame: its last line is drawn last.
frame() { shows "$1" "$2" "$3"; shows "$1" "$2" 'q leaves; the job goes on'; }
shows() {
    for turn in $(seq 600); do
        tmux capture-pane -p -t "$1" >"$2" 2>/dev/null; grep -q "$3" "$2" && return
        sleep 0.1
    done
}
"$@" >job.out 2>job.err & job=$!
for turn in $(seq 600); do
    "$ampl" top "$run" >once.txt 2>once.err
    grep -q 'the process is stopped' once.txt && grep -q 'wait for that' once.txt && break
    sleep 0.1
done
tmux new-session -d -s top -x 110 -y 45 "'$ampl' top '$run'; echo left \$?; sleep 600"
frame top live.txt 'wait for that'
tmux send-keys -t top q
shows top left.txt 'left 0'
tmux new-session -d -s second -x 110 -y 45 "exec '$ampl' top '$run'"
frame second second.txt 'wait for that'
kill -KILL $(tmux display -p -t second '#{pane_pid}')
tmux new-session -d -s third -x 110 -y 45 "'$ampl' top '$run'; echo left \$?; sleep 600"
frame third third.txt 'wait for that'
rank=$(sed -n 's/^rank=3 pid=\([0-9]*\) .*/\1/p' "$run"/nodes/*)
kill -CONT "$rank"
wait $job; echo $? >status
shows third ended.txt 'the job has ended'
tmux send-keys -t third q
shows third last.txt 'left 0'
tmux kill-server
"$ampl" top "$run" --once >after.txt
exit 0
"#;

#[test]
fn a_stopped_rank_is_seen_and_the_job_goes_on() {
    let scratch = Scratch::new("top");
    let run = scratch.path().join("result");
    let job = Job::of(Mpi::OpenMpi, 16, "halts", &["3"]);
    let before: Vec<OsString> =
        vec!["-c".into(), SCRIPT.into(), "sh".into(), run.clone().into(), ampl().into()];
    let exec: Vec<OsString> = vec![ampl().into(), "run".into(), "-o".into(), run.into(), "--".into()];
    let mut command = Command::new("sh");
    command.args([before, exec, job.launch(), job.words.clone()].concat()).current_dir(scratch.path());
    command
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .env("LC_ALL", "C.UTF-8");
    let finished = process::run(&mut command, Duration::from_secs(240)).success();
    let text = |name: &str| text_of(&scratch.path().join(name));
    let whom = [
        "rank 3",
        "not in MPI (last: MPI_Allreduce)",
        "the process is stopped",
        "ranks 0-2,4-15 wait for that",
    ];
    for name in ["once.txt", "live.txt", "second.txt", "third.txt"] {
        let frame = text(name);
        for words in
            whom.iter().chain(&["running for", "16 ranks", "in MPI_Allreduce", "Parallel efficiency"])
        {
            assert!(
                frame.contains(words),
                "{name}: '{words}' is not in\n{frame}\n{}{}",
                text("once.err"),
                finished.stderr
            );
        }
    }
    assert!(text("live.txt").contains("q leaves; the job goes on"), "{}", text("live.txt"));
    // The terminal is as before.
    assert!(!text("left.txt").contains("wait for that"), "{}", text("left.txt"));
    // Watching it, leaving it and killing it have not touched the job.
    assert_eq!((text("job.out").as_str(), text("status").trim()), ("sum 16\n", "0"), "{}", text("job.err"));
    assert!(text("ended.txt").contains("ampl info"), "{}", text("ended.txt"));
    assert!(text("last.txt").contains("ampl: the job has ended"), "{}", text("last.txt"));
    let after = text("after.txt");
    assert!(after.contains("the job has ended") && after.contains("ended after"), "{after}");
}

/// `ampl top` of `run` by a user to whom permissions apply.
fn by_another(run: &Path) -> Finished {
    let is_root = process::run(Command::new("id").arg("-u"), Duration::from_secs(10)).stdout.trim() == "0";
    let mut command = Command::new(ampl());
    if is_root {
        chown(run, Some(65534), None).expect("a directory of another user");
        // Without these root is a user like others.
        command = Command::new("setpriv");
        command.args(["--bounding-set", "-dac_override,-dac_read_search"]).arg(ampl());
    }
    process::run(command.arg("top").arg(run), Duration::from_secs(60))
}

#[test]
fn a_run_that_may_not_be_read_is_an_error_with_a_way_out() {
    let recorded = monitor(&Job::of(Mpi::OpenMpi, 2, "steady", &["5"]), "", Form::Run).success();
    let scratch = Scratch::new("denied");
    let run = scratch.path().join("run");
    fs::create_dir(&run).expect("a directory");
    fs::copy(recorded.run.join("trace.ampl"), run.join("trace.ampl")).expect("a run");
    fs::set_permissions(&run, PermissionsExt::from_mode(0o000)).expect("it is ours");
    let denied = by_another(&run);
    fs::set_permissions(&run, PermissionsExt::from_mode(0o700)).expect("it is ours, or we are root");
    assert_eq!(denied.status.code(), Some(1), "{}", denied.stderr);
    for words in
        ["ampl: cannot read run: permission denied", "belongs to user", "as the user who ran the job"]
    {
        assert!(denied.stderr.contains(words), "'{words}' is not in {}", denied.stderr);
    }
    let top = |arguments: &[&str]| {
        process::run(Command::new(ampl()).arg("top").args(arguments), Duration::from_secs(60))
    };
    assert_eq!(top(&["/nowhere"]).status.code(), Some(4));
    let bad = top(&["/nowhere", "--interval", "soon"]);
    assert_eq!(bad.status.code(), Some(2), "{}", bad.stderr);
}
