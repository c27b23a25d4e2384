//! The layout that users install, packed and unpacked in another place: it works from there.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::{Scratch, ampl};
use ampl_tests::process;
use ampl_tests::run::{number, parse};

/// The command of a copy of the layout, as `tar` packs and unpacks it.
fn unpacked(scratch: &Scratch) -> PathBuf {
    let prefix = ampl().canonicalize().expect("the command");
    let prefix = prefix.ancestors().nth(2).expect("bin is in the layout");
    let place = scratch.path().join("elsewhere");
    std::fs::create_dir(&place).expect("the scratch directory is ours");
    let archive = scratch.path().join("ampl.tar");
    let tar = |words: &[&std::ffi::OsStr]| {
        process::run(Command::new("tar").args(words), Duration::from_secs(120)).success();
    };
    tar(&["-C".as_ref(), prefix.as_os_str(), "-cf".as_ref(), archive.as_os_str(), ".".as_ref()]);
    tar(&["-C".as_ref(), place.as_os_str(), "-xf".as_ref(), archive.as_os_str()]);
    place.join("bin/ampl")
}

#[test]
fn an_unpacked_archive_works_where_it_is() {
    let scratch = Scratch::new("relocated");
    let command = unpacked(&scratch);
    let ask = |words: &[&std::ffi::OsStr]| {
        process::run(Command::new(&command).args(words), Duration::from_secs(60)).success()
    };
    let shown = ask(&["exec".as_ref(), "--dry-run".as_ref(), "--".as_ref(), "true".as_ref()]).stdout;
    let library = scratch.path().join("elsewhere/lib/libampl.so");
    let library = library.canonicalize().expect("the library");
    assert!(shown.contains(library.to_str().expect("a path of ours")), "{shown}");
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let job = Job::of(mpi, 2, "steady", &["20"]);
        let run = scratch.path().join(format!("{mpi:?}"));
        let words = [command.as_os_str(), "run".as_ref(), "-o".as_ref(), run.as_os_str(), "--".as_ref()];
        let words = words.map(std::ffi::OsString::from);
        let finished = job.run(&[&words[..], &job.launch(), &job.words].concat(), scratch.path());
        let said = finished.success().stderr;
        assert!(said.contains("complete"), "{mpi:?}: {said}");
        let info = parse(&ask(&["info".as_ref(), run.as_os_str(), "--json".as_ref()]).stdout);
        assert_eq!(number(&info["functions"]["MPI_Barrier"]), 40.0, "{mpi:?}: {info}");
        // A recipe of its own, by name.
        let finished = job.run(
            &[&words[..2], &["-c".into(), "always".into(), "--".into()], &job.launch(), &job.words].concat(),
            scratch.path(),
        );
        finished.success();
    }
}
