//! Between `MPI_Init` and `MPI_Finalize` the library calls nothing that waits: counted, function by function,
//! behind it (`programs/loop_calls.c`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ampl_core::mpi::{Class, FUNCTIONS, Function};
use ampl_tests::job::{Job, Mpi, compile_shim};
use ampl_tests::place::{Scratch, home, program};
use ampl_tests::process;
use ampl_tests::run::{Form, add_counts, counts, monitor, number, parse, text_of};
use object::{Object, ObjectSymbol};

/// Functions that a nonblocking message needs.
const NONBLOCKING: [&str; 8] = [
    "MPI_Isend",
    "MPI_Issend",
    "MPI_Irecv",
    "MPI_Iprobe",
    "MPI_Test",
    "MPI_Testany",
    "MPI_Testsome",
    "MPI_Testall",
];
/// Functions that the loader or ampl itself must find in MPI, or that do not return a word.
const LEFT_OUT: [&str; 7] = [
    "MPI_Init",
    "MPI_Init_thread",
    "MPI_Initialized",
    "MPI_Finalize",
    "MPI_Finalized",
    "MPI_Wtime",
    "MPI_Wtick",
];
const RANKS: u32 = 3;

/// Calls per function.
type Counts = BTreeMap<String, u64>;

/// Functions in `counts` that wait, are collective, or make or free something.
fn harmful(counts: &Counts) -> Vec<&str> {
    let is_harmless = |name: &str| {
        let class = Function::by_name(name).map(|function| FUNCTIONS[usize::from(function.0)].class);
        NONBLOCKING.contains(&name) || class == Some(Class::Local)
    };
    counts.keys().map(String::as_str).filter(|name| !is_harmless(name)).collect()
}

/// The MPI library that `executable` is linked to: its functions with their profiling names.
fn functions_of(executable: &Path) -> BTreeSet<&'static str> {
    let listed = process::run(Command::new("ldd").arg(executable), Duration::from_secs(20)).success().stdout;
    let paths = listed.lines().filter_map(|line| line.split_once(" => ")?.1.split(" (0x").next());
    let exported = paths.filter_map(|path| {
        let data = std::fs::read(path).ok()?;
        let file = object::File::parse(&*data).ok()?;
        let defined = file.dynamic_symbols().filter(|symbol| symbol.is_definition());
        Some(defined.filter_map(|symbol| symbol.name().ok().map(str::to_owned)).collect::<BTreeSet<_>>())
    });
    let library =
        exported.into_iter().find(|names| names.contains("PMPI_Barrier")).expect("it is linked to MPI");
    let ours = FUNCTIONS.iter().map(|spec| spec.name).filter(|name| !LEFT_OUT.contains(name));
    ours.filter(|name| library.contains(&format!("P{name}"))).collect()
}

/// The counting library for the MPI that `executable` is linked to.
fn compile_counter(executable: &Path, scratch: &Scratch) -> PathBuf {
    let names = functions_of(executable);
    assert!(names.len() > 300, "only {} functions", names.len());
    let list: String = names.iter().map(|name| format!("X({})\n", name.trim_start_matches("MPI_"))).collect();
    let (list, output) = (scratch.write("functions.h", &list), scratch.path().join("counter.so"));
    let mut compile = Command::new(program(&["gcc", "cc"]));
    compile
        .args(["-O1", "-fPIC", "-shared", "-Wl,-z,lazy"])
        .arg(format!("-DFUNCTIONS=\"{}\"", list.display()));
    compile.arg("-o").arg(&output).arg(home().join("programs/loop_calls.c"));
    process::run(&mut compile, Duration::from_secs(120)).success();
    output
}

/// Calls of the library, and of the program by profiling names, on all ranks together.
fn calls(mpi: Mpi, executable: &Path, config: &str) -> (Counts, Counts) {
    let scratch = Scratch::new("calls");
    let log = scratch.path().join("log");
    let log = log.to_str().expect("the path is text");
    // No rank leaves early with an even seed: the counts are of one span.
    let job = Job::new(mpi, RANKS, executable, &["6", "160", "8000", log])
        .with("LD_PRELOAD", compile_counter(executable, &scratch))
        .with("COUNT_CALLS_DIR", scratch.path());
    let run = monitor(&job, config, Form::Exec).success();
    let info = run.info();
    assert!(info["complete"] == true && info["agent_failures"] == 0, "{info}\n{}", run.finished.stderr);
    assert!(info["windows"].as_u64() > Some(10), "{info}");
    let (mut library, mut program) = (Counts::new(), Counts::new());
    for rank in 0..RANKS {
        let told = parse(&text_of(&scratch.path().join(format!("{rank}.json"))));
        add_counts(&mut library, &counts(&told["library"]));
        add_counts(&mut program, &counts(&told["program"]));
    }
    (library, program)
}

const CONFIGS: [&str; 3] = [
    // Retrospective decisions: two passes up, references and decisions down.
    "[sampling]\nwindows_per_update = 2\n[window]\nmarker = \"mpi:MPI_Barrier\"\n\
     [[metric]]\nname = \"bytes.sent\"\nrole = \"guide\"\n[agent]\nmax_overhead = 0.5\n",
    "[sampling]\nwindows_per_update = 1\n[window]\nmarker = \"period:5ms\"\n[trace]\ntiming = \"all\"\n",
    "[sampling]\nwindows_per_update = 2\nsummaries = \"sampled\"\nselection = \"predictive\"\n\
     update_mechanism = \"global\"\n[window]\nmarker = \"mpi:MPI_Barrier\"\n",
];

#[test]
fn nothing_that_waits_is_added() {
    for mpi in Mpi::ALL {
        for config in CONFIGS {
            let (library, program) = calls(mpi, &mpi.compile("loop_stress"), config);
            println!("{mpi:?}: {library:?}");
            assert_eq!(harmful(&library), Vec::<&str>::new(), "{mpi:?}: {library:?}");
            assert_eq!(program, Counts::new(), "the program itself uses public names");
            // The loop was at work: summaries went up, directives came down.
            let of = |name: &str| library.get(name).copied().unwrap_or(0);
            assert!(of("MPI_Issend") > 10 && of("MPI_Irecv") > 10 && of("MPI_Testsome") > 10, "{library:?}");
        }
    }
}

/// The same count sees a barrier and a wait where there are some.
#[test]
fn what_waits_would_be_seen() {
    for mpi in Mpi::ALL {
        let added = mpi.compile_as("loop_added", "loop_stress.c", &["-DADDED"]);
        let (_, program) = calls(mpi, &added, CONFIGS[0]);
        assert_eq!(harmful(&program), ["MPI_Barrier", "MPI_Wait"]);
        assert_eq!(program.values().copied().collect::<Vec<_>>(), [u64::from(RANKS); 2]);
    }
}

/// MPI yields the processor where a poll finds nothing. Where ranks share processors that is for the program to do;
/// ampl's own polls of the tree must not yield.
#[test]
fn no_turn_is_given_away() {
    for mpi in Mpi::ALL {
        let job = Job::of(mpi, RANKS, "brief_calls", &[]).with("LD_PRELOAD", compile_shim("yield_shim"));
        let run = monitor(&job, CONFIGS[1], Form::Exec).success();
        assert!(number(&run.info()["windows"]) > 20.0, "{}", run.info());
        let counts = numbers(&run.finished.stdout);
        assert_eq!(counts.len(), RANKS as usize, "{mpi:?}: {}", run.finished.stdout);
        for counts in counts {
            assert_eq!(counts[0], 0, "{mpi:?}: {counts:?}");
            // Open MPI is set to yield where tests run, where a poll finds nothing; the count goes through ampl.
            assert!(mpi != Mpi::OpenMpi || counts[1] >= 30, "{counts:?}");
        }
    }
}

/// The whole numbers of every line.
fn numbers(text: &str) -> Vec<Vec<u64>> {
    text.lines().map(|line| line.split(' ').filter_map(|word| word.parse().ok()).collect()).collect()
}
