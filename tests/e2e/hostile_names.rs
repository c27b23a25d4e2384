//! Names of the program that are commands for a terminal: no command prints them as such.

use std::process::Command;
use std::time::Duration;

use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::{Scratch, ampl};
use ampl_tests::process;
use ampl_tests::run::{Form, monitor};

/// Clears the screen, sets the title, colours; the last two are controls of one character each.
const HOSTILE: &str = "\u{1b}[2J\u{1b}]0;owned\u{7}red\r\u{9b}31m\u{7f}";

/// Asserts that `text` steers no terminal.
fn is_plain(text: &str, what: &str) {
    let steers = |letter: char| letter.is_control() && !matches!(letter, '\n' | '\t');
    assert!(!text.contains(steers), "{what}: {text:?}");
}

#[test]
fn names_of_the_program_steer_no_terminal() {
    let scratch = Scratch::new("hostile");
    let program = scratch.path().join(format!("ring{HOSTILE}"));
    std::fs::copy(Mpi::OpenMpi.compile("hostile"), &program).expect("the scratch directory is ours");
    let job = Job::new(Mpi::OpenMpi, 4, &program, &[HOSTILE]);
    let config = "[window]\nmarker = \"mpi:MPI_Barrier\"\n[trace]\ntiming = \"all\"\ncall_path_depth = 4\n";
    let run = monitor(&job, config, Form::Run).success();
    is_plain(&run.finished.stderr, "run");
    assert!(run.finished.stderr.contains("[2J"), "the name is not there: {}", run.finished.stderr);
    let mut named = 0;
    for words in [
        "info",
        "estimate",
        "efficiency",
        "decisions",
        "decode",
        "top --once",
        "topology",
        "timesteps",
        "logical",
        "check",
        "query summary",
        "query sites",
        "query callgraph",
        "query waits",
        "query durations",
        "query volume",
        "query matrix",
    ] {
        for json in [false, true] {
            let mut words = words.split(' ');
            let mut command = Command::new(ampl());
            command.arg(words.next().expect("a command")).arg(&run.run).args(words);
            command.args(json.then_some("--json"));
            let finished = process::run(&mut command, Duration::from_secs(60));
            is_plain(&finished.stdout, &format!("{command:?}"));
            is_plain(&finished.stderr, &format!("{command:?}"));
            named += u32::from(finished.stdout.contains("[2J"));
        }
    }
    assert!(named >= 8, "{named}");
    // Programs get the name as it is.
    let events = run.events(0);
    let region = events.iter().find(|event| event["region"].is_string()).expect("a region");
    assert_eq!(region["region"], HOSTILE, "{region}");
    let named = events.iter().find(|event| event["fn"] == "MPI_Comm_set_name").expect("a call");
    assert_eq!(named["args"]["comm_name"], HOSTILE, "{named}");
}
