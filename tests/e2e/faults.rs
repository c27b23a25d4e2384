//! Wrong settings, programs without MPI, and jobs that die: ampl never makes it worse.

use std::ffi::OsString;
use std::process::Command;
use std::time::Duration;

use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::{Scratch, ampl, home};
use ampl_tests::process::{self, Finished};
use ampl_tests::run::{Form, Monitored, monitor, number};
use serde_json::Value;

const MPI: Mpi = Mpi::OpenMpi;

/// `ampl` with `words`, in a directory of its own, as one would type it.
fn type_in(directory: &Scratch, words: &[OsString]) -> Finished {
    let mut command = Command::new(ampl());
    command.args(words).current_dir(directory.path());
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    process::run(&mut command, Duration::from_secs(60))
}

fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

/// Names of what is in the directory.
fn names(scratch: &Scratch) -> Vec<String> {
    let entries = std::fs::read_dir(scratch.path()).expect("it is ours");
    let mut names: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn wrong_settings_start_nothing() {
    // Text, the line with the mistake, and what the message must name.
    let mistakes = [
        ("[window]\nmarekr = \"auto\"\n", 2, vec!["marekr", "marker"]),
        ("\n[samplign]\nseed = 1\n", 2, vec!["samplign", "sampling"]),
        ("[sampling]\nseed = 1\nsizing = \"newman\"\n", 3, vec!["sizing", "neyman"]),
        ("[[group]]\nname = \"a\"\nmembers = \"0-3\"\nconfidence = 1.5\n", 4, vec!["confidence"]),
        (
            "[[group]]\nname = \"a\"\nmembers = \"0-3\"\n[[group]]\nname = \"b\"\nmembers = \"3-4\"\n",
            6,
            vec!["members"],
        ),
        ("[sampling]\nsummaries = \"sampled\"\nselection = \"retrospective\"\n", 3, vec!["selection"]),
        ("[window]\nmarker = \n", 2, vec![]),
    ];
    for (text, line, named) in mistakes {
        let scratch = Scratch::new("wrong");
        scratch.write("job.toml", text);
        let launch = [MPI.launch(2), words(&["touch", "started"])].concat();
        let run = [words(&["run", "-c", "job.toml", "-o", "result", "--"]), launch].concat();
        let exec = words(&["exec", "-c", "job.toml", "-o", "result", "--", "touch", "started"]);
        for command in [run, exec] {
            let finished = type_in(&scratch, &command);
            assert_eq!(finished.status.code(), Some(2), "{text}{}", finished.stderr);
            assert_eq!(names(&scratch), ["job.toml"], "{text}{}", finished.stderr);
            let said = &finished.stderr;
            let places = [format!(":{line}:"), format!("line {line}")];
            assert!(
                said.starts_with("ampl: ") && places.iter().any(|place| said.contains(place)),
                "{text}{said}"
            );
            assert!(named.iter().all(|word| said.contains(word)), "{text}{said}");
        }
    }
}

#[test]
fn wrong_usage_starts_nothing() {
    let scratch = Scratch::new("usage");
    scratch.write("taken", "");
    let launch = [MPI.launch(2), words(&["touch", "started"])].concat();
    let refused = |command: &[OsString], named: &[&str]| {
        let finished = type_in(&scratch, command);
        assert_eq!(finished.status.code(), Some(2), "{command:?}\n{}", finished.stderr);
        assert!(named.iter().all(|word| finished.stderr.contains(word)), "{command:?}\n{}", finished.stderr);
        assert_eq!(names(&scratch), ["taken"], "{command:?}");
    };
    refused(&[words(&["run", "-c", "no-such.toml", "--"]), launch.clone()].concat(), &["no-such.toml"]);
    refused(&[words(&["run", "--set", "window.marekr=1", "--"]), launch.clone()].concat(), &["marekr"]);
    refused(&[words(&["run", "-o", "taken", "--"]), launch].concat(), &["taken"]);
    refused(&words(&["run", "--", "./no-launcher", "touch", "started"]), &["ampl exec"]);
    refused(&words(&["run"]), &["--"]);
}

#[test]
fn a_client_outside_the_job_leaves_it_unmonitored() {
    let job = Job::of(MPI, 2, "steady", &["5"]);
    let plain = job.plain().success();
    for form in [Form::Run, Form::Exec] {
        let run = monitor(&job, "[agent]\nclient = 2\n", form).success();
        assert_eq!(run.finished.stdout, plain.stdout);
        // Journals of other jobs on this node are not this one's.
        let own = |line: &&str| line.starts_with("ampl: ") && !line.starts_with("ampl: journals of ");
        let said: Vec<&str> = run.finished.stderr.lines().filter(own).collect();
        let [said] = said[..] else { panic!("one message: {}", run.finished.stderr) };
        let file = run.scratch.path().join("job.toml").display().to_string();
        for word in ["agent.client", ":2:10)", file.as_str(), "the job has ranks 0-1"] {
            assert!(said.contains(word), "{word}: {said}");
        }
        assert_eq!(names(&run.scratch), ["job.toml"]);
    }
}

/// One job file for jobs of several sizes: groups have their existing ranks, which is reported once.
#[test]
fn groups_fit_the_job() {
    const STUDY: &str = "[window]\nmarker = \"mpi:MPI_Barrier\"\n\
                         [[group]]\nname = \"near\"\nmembers = \"0-1,90\"\nerror = 0.03\npinned = \"1,90\"\n\
                         [[group]]\nname = \"far\"\nmembers = \"64-80\"\nsample_size = 9\n\
                         [[group]]\nname = \"all\"\nsample_size = 2\n";
    let groups = |run: &Monitored| {
        let mut found: Vec<(String, u64)> = Vec::new();
        for row in run.estimate().iter().filter(|row| row["scope"] == "window") {
            let row = (row["group"].as_str().expect("a name").to_owned(), number(&row["population"]) as u64);
            if !found.contains(&row) {
                found.push(row);
            }
        }
        found
    };
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        for (ranks, form) in [(1, Form::Exec), (3, Form::Run), (4, Form::Exec)] {
            let run = monitor(&Job::of(mpi, ranks, "steady", &["20"]), STUDY, form).success();
            let mut expected = vec![("near".to_owned(), u64::from(ranks.min(2)))];
            expected.extend((ranks > 2).then(|| ("all".to_owned(), u64::from(ranks - 2))));
            assert_eq!(groups(&run), expected, "{mpi:?}");
            assert_eq!(run.info()["complete"], Value::Bool(true), "{mpi:?}");
            let said: Vec<&str> =
                run.finished.stderr.lines().filter(|line| line.contains("the job has ranks")).collect();
            let [said] = said[..] else { panic!("one message: {}", run.finished.stderr) };
            assert!(said.contains("job.toml:5:11)") && said.contains("of its 0-1,90"), "{said}");
            assert!(said.contains("\"far\" has none of its 64-80 and is left out"), "{said}");
            assert_eq!(said.contains("\"all\" keeps its only rank instead of 2"), ranks == 3, "{said}");
        }
    }
    // A bound for all ranks needs no job file.
    let scratch = Scratch::new("all");
    let job = Job::of(MPI, 2, "steady", &["5"]);
    let ours = words(&["run", "-o", "r", "--set", "group.all.error=3%", "--"]);
    type_in(&scratch, &[ours, job.launch(), job.words].concat()).success();
    let settings = std::fs::read_to_string(scratch.path().join("r/run.toml")).expect("run.toml");
    assert!(
        settings.contains("name = \"all\"\nmembers = \"*\"\n") && settings.contains("error = 0.03"),
        "{settings}"
    );
}

#[test]
fn a_program_without_mpi_runs_as_ever() {
    let plain_program = MPI.compile("plain");
    let run = |before: &[OsString]| {
        let mut shell = Command::new("sh");
        shell.args(["-c", "printf 'a\\nb\\n' | \"$@\"", "sh"]).args(before).arg(&plain_program);
        process::run(&mut shell, Duration::from_secs(30))
    };
    let alone = run(&[]);
    assert_eq!((alone.status.code(), alone.stdout.as_str()), (Some(3), "2 lines\n"));
    let scratch = Scratch::new("no-mpi");
    let output: OsString = scratch.path().join("result").into();
    let watched = run(&[vec![ampl().into()], words(&["exec", "-o"]), vec![output], words(&["--"])].concat());
    assert_eq!((watched.status, &watched.stdout), (alone.status, &alone.stdout));
    assert!(watched.stderr.contains(&alone.stderr), "{}", watched.stderr);
    // And under a launcher, whose status comes back unchanged.
    let job = Job::new(MPI, 1, plain_program, &[]);
    let plain = job.plain();
    let under_run = monitor(&job, "", Form::Run);
    assert_eq!((under_run.finished.status, under_run.finished.stdout), (plain.status, plain.stdout));
}

/// A signal that the parent process ignores, and descriptors that are closed.
#[test]
fn a_program_gets_what_it_would_have_had() {
    const ASK: &str =
        "grep SigIgn /proc/self/status; for n in 0 2; do readlink /proc/self/fd/$n || echo none; done";
    let scratch = Scratch::new("inherited");
    let asked = |before: &[OsString]| {
        let mut shell = Command::new("sh");
        shell.args(["-c", "trap '' PIPE; exec \"$@\" <&- 2>&-", "sh"]).args(before).args(["sh", "-c", ASK]);
        process::run(shell.current_dir(scratch.path()), Duration::from_secs(30)).success().stdout
    };
    let alone = asked(&[]);
    // Others may be ignored, too: nohup does that.
    let ignored = alone.split_whitespace().nth(1).and_then(|mask| u64::from_str_radix(mask, 16).ok());
    assert!(ignored.is_some_and(|mask| mask & 0x1000 != 0) && alone.ends_with("\nnone\nnone\n"), "{alone}");
    let ours = |command: &[&str]| [vec![ampl().into()], words(command)].concat();
    assert_eq!(asked(&ours(&["exec", "-o", "result", "--"])), alone);
    // Signals and descriptors of a launcher's programs are the launcher's affair; this one changes none.
    let launcher = scratch.write(
        "mpiexec.hydra",
        "#!/bin/sh\nshift 2; while [ \"$1\" != -- ]; do shift; done; shift; exec \"$@\"\n",
    );
    let mut made_executable = Command::new("chmod");
    process::run(made_executable.arg("+x").arg(&launcher), Duration::from_secs(30)).success();
    let launch =
        ours(&["run", "-o", "launched", "--", launcher.to_str().expect("a path of ours"), "-n", "1"]);
    assert_eq!(asked(&launch), alone);
}

/// The directory of the second run is known only from the message about it.
#[test]
fn programs_after_each_other_say_where_they_are() {
    for mpi in [MPI, Mpi::Mpich] {
        let scratch = Scratch::new("after");
        let program = mpi.compile("steady");
        let both = format!("{0} 2 && {0} 3", program.display());
        let finished =
            type_in(&scratch, &words(&["exec", "-o", "result", "--", "sh", "-c", &both])).success();
        assert_eq!(names(&scratch), ["result", "result-2"], "{mpi:?}: {}", finished.stderr);
        let said: Vec<&str> = finished.stderr.lines().filter(|line| line.starts_with("ampl: ")).collect();
        assert!(matches!(&said[..], [one] if one.ends_with("/result-2'")), "{mpi:?}: {}", finished.stderr);
    }
}

#[test]
fn a_killed_rank_leaves_readable_journals() {
    const TURNS: u64 = 400;
    for (place, form) in [("node", Form::Run), ("run", Form::Exec)] {
        let job = Job::of(MPI, 4, "steady", &[&TURNS.to_string(), "kill-1"]);
        let run = monitor(&job, &format!("[output]\njournal = \"{place}\"\n"), form);
        assert!(!run.finished.status.success(), "the launcher reports the killed rank");
        let info = run.info();
        assert_eq!(info["complete"], Value::Bool(false), "{info}");
        assert_eq!(number(&info["ranks"]), 4.0, "{info}");
        // Every rank completed half of the turns before rank 1 died; none went two turns further.
        let barriers = number(&info["functions"]["MPI_Barrier"]) as u64;
        assert!((4 * (TURNS / 2 - 10)..=4 * (TURNS / 2 + 1)).contains(&barriers), "{place}: {info}");
        assert_eq!(number(&info["functions"]["MPI_Init"]), 4.0, "{place}: {info}");
        assert!(
            info["functions"].get("MPI_Finalize").is_none_or(|calls| number(calls) == 0.0),
            "{place}: {info}"
        );
    }
}

#[test]
fn without_journals_only_a_whole_run_is_kept() {
    const CONFIG: &str = "[output]\njournal = \"off\"\n";
    let job = Job::of(MPI, 2, "steady", &["20"]);
    let plain = job.plain().success();
    let run = monitor(&job, CONFIG, Form::Run).success();
    assert_eq!(run.finished.sorted_lines(), plain.sorted_lines());
    assert_eq!(run.info()["complete"], Value::Bool(true));
    let listed = std::fs::read_to_string(run.run.join("run.toml")).expect("run.toml");
    assert!(!listed.contains("\njournals"), "{listed}");
    let run = monitor(&Job::of(MPI, 2, "steady", &["40", "kill-1"]), CONFIG, Form::Run);
    assert!(!run.finished.status.success(), "the launcher reports the killed rank");
    let mut info = Command::new(ampl());
    let told = process::run(info.arg("info").arg(&run.run), Duration::from_secs(30));
    assert_eq!(told.status.code(), Some(4), "{}", told.stderr);
    assert!(told.stderr.contains("journals were off"), "{}", told.stderr);
}

/// One place per function, without its site.
#[test]
fn call_sites_are_left_out() {
    let config = "[trace]\ncall_sites = false\ntiming = \"all\"\n";
    let run = monitor(&Job::of(MPI, 2, "steady", &["20"]), config, Form::Run).success();
    let calls = run.decode(1);
    assert!(calls.len() > 40 && calls.iter().all(|call| call["site"].is_null()), "{:?}", calls.first());
    let said = &run.finished.stderr;
    assert!(said.contains("  MPI_Barrier  ") && !said.contains(" @ "), "{said}");
    assert!(said.contains("nothing is known to be missing"), "{said}");
}

#[test]
fn a_program_may_end_without_finalize() {
    let job = Job::of(MPI, 2, "steady", &["20", "exit"]);
    let plain = job.plain();
    let run = monitor(&job, "", Form::Run);
    assert_eq!((run.finished.status, &run.finished.stdout), (plain.status, &plain.stdout));
    let info = run.info();
    assert_eq!(info["complete"], Value::Bool(false), "{info}");
    assert!(number(&info["functions"]["MPI_Barrier"]) >= 20.0, "{info}");
}

#[test]
fn few_ranks_are_enough() {
    for ranks in [1, 3] {
        let job = Job::of(MPI, ranks, "steady", &["30"]);
        let plain = job.plain().success();
        for form in [Form::Run, Form::Exec] {
            let run = monitor(&job, "[window]\nmarker = \"mpi:MPI_Barrier\"\n", form).success();
            assert_eq!(run.finished.stdout, plain.stdout);
            let info = run.info();
            assert_eq!(info["complete"], Value::Bool(true), "{info}");
            assert_eq!(number(&info["ranks"]), f64::from(ranks), "{info}");
            assert_eq!(number(&info["windows"]), 31.0, "{info}");
            assert_eq!(number(&info["functions"]["MPI_Barrier"]), f64::from(30 * ranks), "{info}");
        }
    }
}

#[test]
fn disabled_means_absent() {
    let job = Job::of(MPI, 2, "steady", &["5"]).with("AMPL_DISABLE", "1");
    let plain = job.plain().success();
    for form in [Form::Run, Form::Exec] {
        let run = monitor(&job, "", form).success();
        assert_eq!((&run.finished.stdout, &run.finished.stderr), (&plain.stdout, &plain.stderr));
        assert!(!run.run.exists(), "{}", run.run.display());
    }
}

#[test]
fn runs_are_never_overwritten() {
    let scratch = Scratch::new("twice");
    let job = Job::of(MPI, 1, "steady", &["2"]);
    let command = [words(&["run", "-o", "result", "--"]), job.launch(), job.words.clone()].concat();
    type_in(&scratch, &command).success();
    assert_eq!(type_in(&scratch, &command).status.code(), Some(2));
    let unnamed = [words(&["run", "--"]), job.launch(), job.words.clone()].concat();
    for _ in 0..2 {
        type_in(&scratch, &unnamed).success();
    }
    let made = names(&scratch).into_iter().filter(|name| name.starts_with("ampl-steady-")).count();
    assert_eq!(made, 2, "{:?}", names(&scratch));
}

#[test]
fn unreadable_runs_are_told_apart() {
    let scratch = Scratch::new("reading");
    let ask = |path: &str| type_in(&scratch, &words(&["info", path, "--json"]));
    assert_eq!(ask("nowhere").status.code(), Some(4));
    std::fs::create_dir(scratch.path().join("broken")).expect("the scratch directory is ours");
    scratch.write("broken/trace.ampl", "this is no trace");
    assert_eq!(ask("broken").status.code(), Some(3));
}

/// MPICH's Fortran converts an unset handle then: the result depends on the stack.
#[test]
fn a_file_that_cannot_be_opened_ends_no_fortran_program() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let scratch = Scratch::new("missing");
        let built = scratch.path().join("missing_file");
        let mut compile = Command::new(mpi.fortran_compiler());
        compile.arg("-o").arg(&built).arg(home().join("programs/missing_file.f90"));
        process::run(&mut compile, Duration::from_secs(120)).success();
        let run = monitor(&Job::new(mpi, 2, &built, &[]), "", Form::Run).success();
        assert_eq!(run.finished.stdout.lines().filter(|line| line.trim() == "T T").count(), 2, "{mpi:?}");
        assert_eq!((run.functions()["MPI_File_open"], &run.info()["complete"]), (2, &Value::Bool(true)));
    }
}
