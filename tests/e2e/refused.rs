//! Refusals of `ampl exec` behind a launcher: the job goes on without ampl, or all its ranks end. No rank waits for one
//! that has ended.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::{Scratch, ampl};
use ampl_tests::process::{self, Finished};
use ampl_tests::run::{number, parse};

fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

fn exec(program: &Path, options: &[&str]) -> Vec<OsString> {
    [vec![program.into(), "exec".into()], words(options), words(&["--"])].concat()
}

/// Messages of ampl about this job.
fn said(finished: &Finished) -> Vec<&str> {
    let own = |line: &&str| line.starts_with("ampl: ") && !line.starts_with("ampl: journals of ");
    finished.stderr.lines().filter(own).collect()
}

fn job(mpi: Mpi) -> Job {
    let mut job = Job::of(mpi, 2, "greets", &[]);
    job.limit = Duration::from_secs(40);
    job
}

/// The one message is about `what`.
fn goes_on(mpi: Mpi, scratch: &Scratch, exec: &[OsString], what: &[&str]) {
    let job = job(mpi);
    let plain = job.plain().success();
    let line = [job.launch(), exec.to_vec(), job.words.clone()].concat();
    let finished = job.run(&line, scratch.path()).success();
    assert_eq!(finished.sorted_lines(), plain.sorted_lines(), "{mpi:?}: {}", finished.stderr);
    let said = said(&finished);
    let [one] = said[..] else { panic!("{mpi:?}: one message: {}", finished.stderr) };
    assert!(what.iter().all(|what| one.contains(what)), "{mpi:?} {what:?}: {one}");
}

/// Settings change the text that the library reads, and not its name.
#[test]
fn a_message_about_a_job_file_names_it_whatever_was_set_beside_it() {
    for mpi in Mpi::ALL {
        let scratch = Scratch::new("origin");
        let file = scratch.write("job.toml", "[[group]]\nname = \"g\"\nmembers = \"0-5\"\n");
        let file = file.to_str().expect("UTF-8");
        for (run, set, place) in
            [("one", &[][..], ":3:"), ("two", &["--set", "sampling.seed=7"], " with --set sampling.seed=7)")]
        {
            let options = [&["-c", file, "-o", run], set].concat();
            goes_on(
                mpi,
                &scratch,
                &exec(&ampl(), &options),
                &["has 0-1 of its 0-5", &format!("({file}{place}")],
            );
        }
    }
}

/// A script that is started twice loses neither its job nor the first run.
#[test]
fn a_taken_name_gives_way_to_the_next() {
    for mpi in Mpi::ALL {
        let scratch = Scratch::new("taken");
        std::fs::create_dir(scratch.path().join("result")).expect("a directory of ours");
        scratch.write("file", "mine\n");
        for (name, next) in [("result", "result-2"), ("result", "result-3"), ("file", "file-2")] {
            goes_on(mpi, &scratch, &exec(&ampl(), &["-o", name]), &["is taken", next]);
            let mut info = std::process::Command::new(ampl());
            info.args(["info", "--json"]).arg(scratch.path().join(next));
            let info = parse(&process::run(&mut info, Duration::from_secs(60)).success().stdout);
            assert_eq!(number(&info["ranks"]), 2.0, "{mpi:?} {next}");
        }
        let kept = std::fs::read_to_string(scratch.path().join("file"));
        assert_eq!(kept.ok().as_deref(), Some("mine\n"));
    }
}

/// Only the first rank has the settings, only some ranks lack the counter or the library: all go on.
#[test]
fn what_some_ranks_refuse_leaves_the_job_unmonitored() {
    for mpi in Mpi::ALL {
        let scratch = Scratch::new("refused");
        scratch.write("papi.toml", "[[metric]]\nname = \"papi.PAPI_NO_SUCH\"\nrole = \"guide\"\n");
        let marker = "window.marker=\"mpi:MPI_Barrier@nowhere.c:3\"";
        for (options, what) in [
            (&["-o", "r", "-c", "papi.toml"][..], &["papi.PAPI_NO_SUCH", "goes on without ampl"][..]),
            (&["-o", "r", "--set", marker], &["nowhere.c", "goes on without ampl"]),
            (&["-o", "papi.toml/below"], &["cannot make the run directory", "goes on without ampl"]),
        ] {
            goes_on(mpi, &scratch, &exec(&ampl(), options), what);
            assert!(!scratch.path().join("r").exists(), "{mpi:?} {options:?}");
        }
        // An installation that has lost its library.
        let bin = scratch.path().join("bin");
        std::fs::create_dir(&bin).expect("a directory of ours");
        std::fs::copy(ampl(), bin.join("ampl")).expect("a copy of the command");
        goes_on(
            mpi,
            &scratch,
            &exec(&bin.join("ampl"), &["-o", "r"]),
            &["libampl.so is not there", "goes on"],
        );
        let lacking = exec(&bin.join("ampl"), &["-o", "r"]);
        let job = job(mpi);
        let second = [words(&[":", "-n", "1"]), lacking, job.words.clone()].concat();
        let line = [mpi.launch(1), exec(&ampl(), &["-o", "r"]), job.words.clone(), second].concat();
        let finished = job.run(&line, scratch.path()).success();
        assert!(finished.stderr.contains("libampl.so is not there"), "{mpi:?}: {}", finished.stderr);
        assert!(!scratch.path().join("r").exists(), "{mpi:?}");
    }
}

/// Ranks whose job file is wrong take the others with them, which would wait for them.
#[test]
fn wrong_settings_of_some_ranks_end_all() {
    for mpi in Mpi::ALL {
        let scratch = Scratch::new("wrong-some");
        let job = job(mpi);
        for wrong in [&["--set", "sampling.sede=1"][..], &["-c", "none.toml"]] {
            let (right, wrong) = (exec(&ampl(), &["-o", "r"]), exec(&ampl(), wrong));
            for (first, second) in [(&right, &wrong), (&wrong, &right)] {
                let second = [words(&[":", "-n", "1"]), second.clone(), job.words.clone()].concat();
                let line = [mpi.launch(1), first.clone(), job.words.clone(), second].concat();
                let finished = job.run(&line, scratch.path());
                assert_eq!(finished.status.code(), Some(2), "{mpi:?}: {}", finished.stderr);
                assert_eq!(said(&finished).len(), 1, "{mpi:?}: {}", finished.stderr);
            }
        }
    }
}

/// Before a launcher starts, and without one, all is refused as ever.
#[test]
fn nothing_is_lost_where_nothing_was_started() {
    let scratch = Scratch::new("refused-run");
    std::fs::create_dir(scratch.path().join("result")).expect("a directory of ours");
    let job = job(Mpi::Mpich);
    let run = [vec![ampl().into()], words(&["run", "-o", "result", "--"]), job.launch()].concat();
    for before in [run, exec(&ampl(), &["-o", "result"])] {
        let finished = job.run(&[before, job.words.clone()].concat(), scratch.path());
        assert_eq!((finished.status.code(), finished.stdout.as_str()), (Some(2), ""), "{}", finished.stderr);
        assert!(finished.stderr.contains("the run directory exists"), "{}", finished.stderr);
    }
}
