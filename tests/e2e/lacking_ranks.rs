//! Jobs in which some ranks run without ampl: these run as usual, and one message gives the ranks and the reason.

use std::ffi::OsString;

use ampl_tests::hosts::{Hosts, NAMES};
use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::{Scratch, ampl};
use ampl_tests::process::Finished;
use ampl_tests::run::{counts, parse};
use serde_json::Value;

fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

/// Messages of ampl about this job.
fn said(finished: &Finished) -> Vec<&str> {
    let own = |line: &&str| line.starts_with("ampl: ") && !line.starts_with("ampl: journals of ");
    finished.stderr.lines().filter(own).collect()
}

/// `ampl exec -o result --`
fn exec() -> Vec<OsString> {
    [vec![ampl().into()], words(&["exec", "-o", "result", "--"])].concat()
}

/// A shell that takes ampl from the program behind it, in a way that `ampl exec` does not see.
fn unset() -> Vec<OsString> {
    words(&["sh", "-c", "name=LD_PRE; unset ${name}LOAD; exec \"$@\"", "sh"])
}

fn info(scratch: &Scratch) -> Value {
    let mut info = std::process::Command::new(ampl());
    info.args(["info", "--json"]).arg(scratch.path().join("result"));
    parse(&ampl_tests::process::run(&mut info, std::time::Duration::from_secs(60)).success().stdout)
}

/// Checks that `finished` behaved like `plain`, and that one line names `lacking`.
fn check(finished: &Finished, plain: &Finished, lacking: &str, what: &str, scratch: &Scratch) {
    assert!(finished.status.success(), "{what}: {}", finished.stderr);
    assert_eq!(finished.sorted_lines(), plain.sorted_lines(), "{what}: {}", finished.stderr);
    let said = said(finished);
    let [one] = said[..] else { panic!("{what}: {}", finished.stderr) };
    for part in [lacking, "without ampl", "no rank is recorded", "'ampl exec'", "AMPL_DISABLE"] {
        assert!(one.contains(part), "{what}: {part}: {one}");
    }
    assert!(!scratch.path().join("result").exists(), "{what}");
    let left: Vec<_> =
        std::fs::read_dir(scratch.path()).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert!(left.is_empty(), "{what}: {left:?}");
}

/// The first rank, the last, and all but one, for each reason that the library is missing.
#[test]
fn ranks_that_lack_the_library_do_not_stop_the_job() {
    for mpi in Mpi::ALL {
        let job = Job::of(mpi, 3, "greets", &[]);
        let plain = job.plain().success();
        let with = [exec(), job.words.clone()].concat();
        let bare = job.words.clone();
        let unset = [exec(), unset(), job.words.clone()].concat();
        let disabled = [words(&["env", "AMPL_DISABLE=1"]), with.clone()].concat();
        let inside = [exec(), words(&["env", "AMPL_DISABLE=1"]), job.words.clone()].concat();
        for (what, first, others, lacking) in [
            ("bare first", &bare, &with, "rank 0 of 3 runs"),
            ("unset last", &with, &unset, "ranks 1-2 of 3 run "),
            ("disabled first", &disabled, &with, "rank 0 of 3 runs"),
            ("disabled inside", &with, &inside, "ranks 1-2 of 3 run "),
        ] {
            let scratch = Scratch::new("lacking");
            let line = [mpi.launch(1), first.clone(), words(&[":", "-n", "2"]), others.clone()].concat();
            let finished = job.run(&line, scratch.path());
            check(&finished, &plain, lacking, &format!("{mpi:?} {what}"), &scratch);
        }
    }
}

/// `ampl run` has nothing to add.
#[test]
fn ampl_run_says_it_once() {
    for mpi in Mpi::ALL {
        let job = Job::of(mpi, 4, "greets", &[]);
        let plain = job.plain().success();
        let run = [vec![ampl().into()], words(&["run", "-o", "result", "--"])].concat();
        let bare = [unset(), job.words.clone()].concat();
        for (what, first, others, lacking) in [
            ("first", &bare, &job.words, "ranks 0-1 of 4 run "),
            ("last", &job.words, &bare, "ranks 2-3 of 4 run "),
        ] {
            let scratch = Scratch::new("lacking-run");
            let programs = [first.clone(), words(&[":", "-n", "2"]), others.clone()].concat();
            let finished = job.run(&[run.clone(), mpi.launch(2), programs].concat(), scratch.path());
            check(&finished, &plain, lacking, &format!("{mpi:?} {what}"), &scratch);
        }
    }
}

/// All ranks are found without the launcher's number of ranks on the node, through shells that exec the program, and
/// with a late rank.
#[test]
fn all_ranks_are_found_where_all_have_it() {
    for mpi in Mpi::ALL {
        let job = Job::of(mpi, 3, "greets", &["300"]);
        let plain = job.plain().success();
        let number = if mpi == Mpi::OpenMpi { "OMPI_COMM_WORLD_LOCAL_SIZE" } else { "MPI_LOCALNRANKS" };
        let unset = words(&["env", "-u", number]);
        let shell = words(&["sh", "-c", "\"$@\"; exit $?", "sh"]);
        for before in [unset.clone(), shell.clone(), [unset, shell].concat()] {
            let scratch = Scratch::new("all-there");
            let line = [mpi.launch(3), exec(), before.clone(), job.words.clone()].concat();
            let finished = job.run(&line, scratch.path()).success();
            assert_eq!(finished.sorted_lines(), plain.sorted_lines(), "{mpi:?} {before:?}");
            assert!(!finished.stderr.contains("without ampl"), "{mpi:?} {before:?}: {}", finished.stderr);
            let info = info(&scratch);
            assert_eq!((&info["complete"], &info["ranks"]), (&true.into(), &3.into()), "{mpi:?}");
            assert_eq!(counts(&info["functions"])["MPI_Bcast"], 3, "{mpi:?} {before:?}");
        }
    }
}

/// Where the launcher does not set the number of ranks on a node, their processes give it.
#[test]
fn a_rank_without_the_library_is_seen() {
    for mpi in Mpi::ALL {
        let job = Job::of(mpi, 3, "greets", &[]);
        let plain = job.plain().success();
        let number = if mpi == Mpi::OpenMpi { "OMPI_COMM_WORLD_LOCAL_SIZE" } else { "MPI_LOCALNRANKS" };
        let unset = words(&["env", "-u", number]);
        let with = [exec(), unset.clone(), job.words.clone()].concat();
        let bare = [words(&[":", "-n", "1"]), unset, job.words.clone()].concat();
        let scratch = Scratch::new("unsaid");
        let finished = job.run(&[mpi.launch(2), with, bare].concat(), scratch.path());
        check(&finished, &plain, "rank 2 of 3 runs", &format!("{mpi:?}"), &scratch);
    }
}

/// Either host may lack ampl, or a part of its ranks; jobs run beside each other, as some wait for a host that will
/// not come.
#[test]
fn a_host_without_the_library_does_not_stop_the_job() {
    let Some(hosts) = Hosts::start() else { return };
    let hosts = &hosts;
    let check_one = |mpi: Mpi, lacking: &str, which: &str| {
        let job = Job::of(mpi, 4, "greets", &[]);
        let scratch = Scratch::new("host-lacks");
        let run = |words: Vec<OsString>| {
            job.run(&hosts.on(0, &[hosts.launch(mpi, 2), words].concat()), scratch.path())
        };
        let plain = run(job.words.clone()).success();
        let script = format!(
            "case ' {which} ' in *\" ${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}} \"*) name=LD_PRE; unset ${{name}}LOAD;; esac; \
             exec \"$@\""
        );
        let shell = words(&["sh", "-c", &script, "sh"]);
        let finished = run([exec(), shell, job.words.clone()].concat());
        check(&finished, &plain, lacking, &format!("{mpi:?} {lacking} on {NAMES:?}"), &scratch);
    };
    std::thread::scope(|scope| {
        scope.spawn(|| check_one(Mpi::OpenMpi, "ranks 0-1 of 4 run", "0 1"));
        scope.spawn(|| check_one(Mpi::OpenMpi, "ranks 2-3 of 4 run", "2 3"));
        scope.spawn(|| {
            for mpi in Mpi::ALL {
                check_one(mpi, "rank 1 of 4 runs", "1");
                check_one(mpi, "rank 2 of 4 runs", "2");
            }
        });
    });
}

/// Hosts find each other under every launcher.
#[test]
fn all_ranks_of_both_hosts_are_found() {
    let Some(hosts) = Hosts::start() else { return };
    for mpi in Mpi::ALL {
        let job = Job::of(mpi, 4, "greets", &[]);
        let scratch = Scratch::new("hosts-all");
        let line = [hosts.launch(mpi, 2), exec(), job.words.clone()].concat();
        let finished = job.run(&hosts.on(0, &line), scratch.path()).success();
        let info = info(&scratch);
        assert_eq!(
            (&info["complete"], &info["ranks"]),
            (&true.into(), &4.into()),
            "{mpi:?}: {}",
            finished.stderr
        );
        assert_eq!(counts(&info["functions"])["MPI_Allgather"], 4, "{mpi:?}");
        let left = std::fs::read_dir(scratch.path()).unwrap().flatten().map(|entry| entry.file_name());
        assert_eq!(left.collect::<Vec<_>>(), ["result"], "{mpi:?}");
    }
}
