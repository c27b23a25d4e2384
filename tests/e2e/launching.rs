//! Layers between the user's command line and the program: preloaded tools, prefixes, other launchers.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use ampl_tests::job::{Job, Mpi, compile_shim};
use ampl_tests::place::{Scratch, ampl, dist};
use ampl_tests::process::{self, Finished};
use ampl_tests::run::{counts, number, parse};
use serde_json::Value;

fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

fn assignment(value: &Path) -> OsString {
    let mut word = OsString::from("LD_PRELOAD=");
    word.push(value);
    word
}

/// Options by which that launcher gives ranks an LD_PRELOAD.
fn preloading(mpi: Mpi, library: &Path) -> Vec<OsString> {
    match mpi {
        Mpi::OpenMpi => vec!["-x".into(), assignment(library)],
        _ => vec!["-genv".into(), "LD_PRELOAD".into(), library.into()],
    }
}

/// `ampl info RUN --json`
fn info(run: &Path) -> Value {
    let mut info = std::process::Command::new(ampl());
    info.args(["info", "--json"]).arg(run);
    parse(&process::run(&mut info, std::time::Duration::from_secs(60)).success().stdout)
}

/// Calls of MPI_Barrier in the run.
fn barriers(run: &Path) -> u64 {
    counts(&info(run)["functions"])["MPI_Barrier"]
}

/// Lines that ampl has written.
fn said(finished: &Finished) -> Vec<&str> {
    finished.stderr.lines().filter(|line| line.starts_with("ampl: ")).collect()
}

/// The tool's own library needs symbols that only the program has.
#[test]
fn a_preloaded_tool_reaches_the_program_and_not_ampl() {
    let tool = compile_shim("barrier_tool");
    for mpi in Mpi::ALL {
        let job = Job::of(mpi, 2, "steady", &["20"]);
        let launch = [mpi.launch(2), preloading(mpi, &tool)].concat();
        let by_env = [words(&["env", "-u", "AMPL_DISABLE"]), vec![assignment(&tool)]].concat();
        let scratch = Scratch::new("preload");
        let ours = |name: &str, command: &str| -> Vec<OsString> {
            [vec![ampl().into()], words(&[command, "-o", name, "--"])].concat()
        };
        let run = |line: &[Vec<OsString>]| -> Finished { job.run(&line.concat(), scratch.path()) };
        let alone = run(&[launch.clone(), job.words.clone()]).success();
        assert_eq!(alone.stdout.matches("tool: 20 barriers").count(), 2, "{mpi:?}: {}", alone.stdout);
        for (name, line) in [
            ("run", vec![ours("run", "run"), launch.clone(), job.words.clone()]),
            ("exec", vec![launch.clone(), ours("exec", "exec"), job.words.clone()]),
            ("run-env", vec![ours("run-env", "run"), mpi.launch(2), by_env.clone(), job.words.clone()]),
            ("exec-env", vec![mpi.launch(2), ours("exec-env", "exec"), by_env.clone(), job.words.clone()]),
        ] {
            let watched = run(&line).success();
            assert_eq!(watched.sorted_lines(), alone.sorted_lines(), "{mpi:?} {name}: {}", watched.stderr);
            assert_eq!(barriers(&scratch.path().join(name)), 40, "{mpi:?} {name}");
        }
    }
}

/// A user who writes `ampl exec` behind `ampl run` gets one run, and nothing is said of ampl's own executable.
#[test]
fn ampl_behind_ampl_is_no_program_to_warn_of() {
    let job = Job::of(Mpi::OpenMpi, 2, "steady", &["20"]);
    let scratch = Scratch::new("twice");
    let ours = |words: &[&str]| -> Vec<OsString> {
        [vec![ampl().into()], words.iter().map(OsString::from).collect()].concat()
    };
    let line = [
        ours(&["run", "-o", "once", "--"]),
        Mpi::OpenMpi.launch(2),
        ours(&["exec", "--"]),
        job.words.clone(),
    ];
    let watched = job.run(&line.concat(), scratch.path()).success();
    assert_eq!(said(&watched).iter().filter(|line| line.contains("linked")).count(), 0, "{}", watched.stderr);
    assert_eq!(barriers(&scratch.path().join("once")), 40);
}

/// The dynamic linker reports it once per process, as without ampl.
#[test]
fn a_preloaded_library_that_is_not_there_is_ignored() {
    let mpi = Mpi::OpenMpi;
    let job = Job::of(mpi, 2, "steady", &["20"]);
    let scratch = Scratch::new("preload");
    let launch = [mpi.launch(2), preloading(mpi, Path::new("/nowhere/libtool.so"))].concat();
    let exec = [vec![ampl().into()], words(&["exec", "-o", "r", "--"])].concat();
    let alone = job.run(&[launch.clone(), job.words.clone()].concat(), scratch.path()).success();
    let watched = job.run(&[launch, exec, job.words.clone()].concat(), scratch.path()).success();
    assert_eq!(watched.stdout, alone.stdout);
    let ignored = |finished: &Finished| finished.stderr.matches("/nowhere/libtool.so").count();
    assert_eq!((ignored(&alone), ignored(&watched)), (2, 2), "{}", watched.stderr);
    assert_eq!(barriers(&scratch.path().join("r")), 40);
}

#[test]
fn programs_that_start_others_are_looked_through() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let job = Job::of(mpi, 2, "steady", &["20"]);
        let scratch = Scratch::new("prefix");
        let before = [vec![ampl().into()], words(&["run", "-o", "r", "timeout", "-k", "5", "90"])].concat();
        let between = words(&["nice", "-n", "1", "env", "COLOUR=red"]);
        let line = [before, mpi.launch(2), between, job.words.clone()].concat();
        job.run(&line, scratch.path()).success();
        assert_eq!(barriers(&scratch.path().join("r")), 40, "{mpi:?}");
    }
}

/// A program of one MPI under the launcher of another: each process runs as a world of one rank. The MPICH of the
/// MPI-5 ABI refuses to start under Open MPI.
#[test]
fn worlds_of_one_rank_are_told_from_a_job() {
    for (mpi, launcher, variable) in
        [(Mpi::Mpich, Mpi::OpenMpi, "OMPI_COMM_WORLD_SIZE"), (Mpi::OpenMpi, Mpi::Mpich, "PMI_SIZE")]
    {
        let job = Job::of(mpi, 3, "steady", &["20"]);
        for command in ["run", "exec"] {
            let scratch = Scratch::new("alone");
            let ours = [vec![ampl().into()], words(&[command, "-o", "r", "--"])].concat();
            let line = match command {
                "run" => [ours, launcher.launch(3), job.words.clone()].concat(),
                _ => [launcher.launch(3), ours, job.words.clone()].concat(),
            };
            let finished = job.run(&line, scratch.path()).success();
            assert_eq!(finished.stdout.matches("20 turns").count(), 3, "{mpi:?}");
            let about: Vec<&str> =
                said(&finished).into_iter().filter(|line| line.contains("each run alone")).collect();
            let [about] = about[..] else { panic!("{mpi:?} {command}: {}", finished.stderr) };
            for word in ["3 processes", &format!("{variable}=3"), "/r, ", "/r-2, and so on"] {
                assert!(about.contains(word), "{mpi:?} {word}: {about}");
            }
            assert!(!finished.stderr.contains("is taken"), "{}", finished.stderr);
            assert!(!finished.stderr.contains("nothing is known to be missing"), "{}", finished.stderr);
            assert_eq!(finished.stderr.contains("ONE OF 3 THAT RAN ALONE"), command == "run", "{mpi:?}");
            for (number_of, name) in ["r", "r-2", "r-3"].into_iter().enumerate() {
                let info = info(&scratch.path().join(name));
                assert_eq!((number(&info["ranks"]), number(&info["alone"]["processes"])), (1.0, 3.0));
                assert_eq!(number(&info["alone"]["number"]), number_of as f64, "{mpi:?} {name}");
            }
        }
    }
    // A job of one process is complete.
    let scratch = Scratch::new("one");
    let job = Job::of(Mpi::Mpich, 1, "steady", &["5"]);
    let ours = [vec![ampl().into()], words(&["run", "-o", "r", "--"])].concat();
    job.run(&[ours, Mpi::OpenMpi.launch(1), job.words.clone()].concat(), scratch.path()).success();
    assert_eq!(info(&scratch.path().join("r"))["alone"], Value::Null);
}

/// Something between the launcher and the program takes the launcher's variables away: each process is a world.
#[test]
fn worlds_whose_launcher_s_variables_are_lost_are_told_from_a_job() {
    let path = std::env::var("PATH").expect("a variable");
    let path = format!("PATH={path}");
    for (mpi, taken) in [
        (
            Mpi::OpenMpi,
            vec!["env", "-i", &path, "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"],
        ),
        (Mpi::Mpich, vec!["env", "-i", &path]),
        (Mpi::Mpich, vec!["env", "-u", "PMI_FD", "-u", "PMI_SIZE", "-u", "PMI_RANK"]),
    ] {
        let job = Job::of(mpi, 2, "steady", &["20"]);
        let scratch = Scratch::new("lost");
        let ours = [vec![ampl().into()], words(&["run", "-o", "r", "--"])].concat();
        let line = [ours, mpi.launch(2), words(&taken), job.words.clone()].concat();
        let finished = job.run(&line, scratch.path()).success();
        assert_eq!(finished.stdout.matches("20 turns").count(), 2, "{mpi:?}");
        let said = said(&finished);
        let about: Vec<_> = said.iter().filter(|line| line.contains("2 processes each run alone")).collect();
        assert!(matches!(about[..], [one] if one.contains("did not reach")), "{mpi:?}: {}", finished.stderr);
        assert!(finished.stderr.contains("ONE OF 2 THAT RAN ALONE"), "{mpi:?}: {}", finished.stderr);
        assert!(!finished.stderr.contains("nothing is known to be missing"), "{mpi:?}: {}", finished.stderr);
        for (number_of, name) in ["r", "r-2"].into_iter().enumerate() {
            let alone = &info(&scratch.path().join(name))["alone"];
            let expected = serde_json::json!({"processes": 2, "number": number_of, "lost": true,
                "variable": if mpi == Mpi::OpenMpi { "OMPI_COMM_WORLD_SIZE" } else { "PMI_SIZE" }});
            assert_eq!(*alone, expected, "{mpi:?} {name}");
        }
    }
}

/// The first rank that finds the error reports it for all ranks, in one piece.
#[test]
fn what_every_rank_finds_wrong_is_said_once() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let scratch = Scratch::new("once");
        scratch.write("job.toml", "[sampling]\nsede = 3\n");
        let job = Job::of(mpi, 4, "steady", &["5"]);
        let program = job.words[0].to_str().expect("a path of ours").to_owned();
        let exec = |words_: &[&str]| [vec![ampl().into(), "exec".into()], words(words_)].concat();
        for (arguments, what) in [
            (vec!["-c", "job.toml", "--", &program, "5"], "unknown key 'sampling.sede'"),
            (vec!["-c", "none.toml", "--", &program, "5"], "cannot read the job file"),
            (vec!["--set", "window.every=0", "--", &program, "5"], "window.every"),
            (vec!["--", "./absent"], "cannot start the application"),
        ] {
            let finished = job.run(&[mpi.launch(4), exec(&arguments)].concat(), scratch.path());
            assert!(!finished.status.success(), "{arguments:?}");
            let said = said(&finished);
            assert!(matches!(said[..], [one] if one.contains(what)), "{mpi:?} {said:?}");
        }
        // It may be wrong for some ranks only, and not for the first.
        let second = [words(&[":", "-n", "3"]), exec(&["-c", "job.toml", "--", &program, "5"])].concat();
        let line = [mpi.launch(1), exec(&["-o", "r", "--", "true"]), second].concat();
        let finished = job.run(&line, scratch.path());
        let said = said(&finished);
        assert_eq!(
            said.iter().filter(|line| line.contains("'sampling.sede'")).count(),
            1,
            "{mpi:?} {said:?}"
        );
    }
}

/// Texts that `words` write to their standard error, one for each time that they write.
fn written(words: &[OsString], place: &Path) -> Vec<String> {
    let (ours, theirs) = UnixDatagram::pair().expect("a pair of sockets");
    let mut command = Command::new("timeout");
    command.arg("60").args(words).current_dir(place).stdin(Stdio::null()).stdout(Stdio::null());
    command.env_remove("AMPL_CONFIG").stderr(OwnedFd::from(theirs));
    let mut child = command.spawn().expect("it starts");
    // The child's end alone is left.
    drop(command);
    ours.set_read_timeout(Some(Duration::from_millis(20))).expect("a socket of ours");
    let (mut texts, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
    loop {
        let ended = child.try_wait().expect("a child can be waited for").is_some();
        match ours.recv(&mut buffer) {
            Ok(0) => {}
            Ok(length) => texts.push(String::from_utf8_lossy(&buffer[..length]).into_owned()),
            Err(_) if ended => return texts,
            Err(_) => {}
        }
    }
}

#[track_caller]
fn are_whole(line: &[OsString], place: &Path, what: &str) {
    let texts = written(line, place);
    assert!(texts.iter().any(|text| text.contains(what)), "{what}: {texts:?}");
    assert!(texts.iter().all(|text| text.ends_with('\n')), "{what}: {texts:?}");
}

/// Ranks share the place that they write to: a line that is written at once runs into no other.
#[test]
fn lines_are_written_whole() {
    let scratch = Scratch::new("whole");
    scratch.write("job.toml", "[sampling]\nsede = 3\n");
    let layer: OsString = Mpi::Mpich.compile("own_layer").into();
    let program: OsString = Mpi::Mpich.compile("steady").into();
    for (options, rest, what) in [
        (vec!["-c", "job.toml"], vec![program.clone(), "5".into()], "unknown key 'sampling.sede'"),
        (vec!["--set", "window.every=0"], vec![program.clone(), "5".into()], "window.every"),
        (vec![], vec!["./absent".into()], "cannot start the application"),
        (vec!["--no-such-option"], vec![program.clone(), "5".into()], "--no-such-option"),
        // From within the process of the program.
        (vec![], vec![program, "5".into()], "ampl info"),
        (vec![], vec![layer], "MPI_Send"),
    ] {
        let line = [vec![ampl().into(), "exec".into()], words(&options), vec!["--".into()], rest].concat();
        are_whole(&line, scratch.path(), what);
    }
    let replayer: OsString = dist().join("bin/ampl-replay").into();
    for (options, what) in [(["--mpi", "mpich"], "no such run"), (["--mpi", "none"], "--mpi none")] {
        let line = [vec![replayer.clone()], words(&options), vec!["./absent".into()]].concat();
        are_whole(&line, scratch.path(), what);
    }
}
