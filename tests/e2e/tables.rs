//! The table of call sites: late ranks, sizes of messages, and callers.

use std::process::Command;
use std::time::Duration;

use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::ampl;
use ampl_tests::process;
use ampl_tests::run::{Form, Monitored, monitor, parse};
use serde_json::{Value, json};

const RANKS: u32 = 3;
const LATE: u32 = 1;
const TURNS: u32 = 12;

fn run(mpi: Mpi) -> Monitored {
    let words = [LATE.to_string(), TURNS.to_string()];
    let job = Job::of(mpi, RANKS, "tables", &[&words[0], &words[1]]);
    monitor(&job, "", Form::Run).success()
}

/// Output of `ampl info` with these words, in so many columns.
fn info(run: &Monitored, words: &[&str], columns: u32) -> String {
    let mut command = Command::new(ampl());
    command.arg("info").arg(&run.run).args(words).env("COLUMNS", columns.to_string());
    process::run(&mut command, Duration::from_secs(60)).success().stdout
}

fn rows(run: &Monitored) -> Vec<Value> {
    parse(&info(run, &["--calls", "--json"], 100)).as_array().expect("a list").clone()
}

/// The row of `function` whose site's function was called by `caller`.
fn row<'a>(rows: &'a [Value], function: &str, size: u64) -> &'a Value {
    let such = |row: &&Value| row["function"] == function && row["calls"] == size;
    rows.iter().find(such).unwrap_or_else(|| panic!("{function}, {size} calls: {rows:?}"))
}

fn the_whole_table(mpi: Mpi) {
    let run = run(mpi);
    let rows = rows(&run);
    let all = u64::from(RANKS * TURNS);

    // The rank that the others wait for, not the ranks that wait.
    let reduce = rows.iter().find(|row| row["function"] == "MPI_Allreduce" && row["comm_size"] == RANKS);
    let reduce = reduce.expect("the reduction of all ranks");
    assert_eq!(reduce["late_rank"], LATE, "{mpi:?}: {reduce}");
    assert_ne!(reduce["most_rank"], LATE, "{mpi:?}: {reduce}");
    assert_eq!((&reduce["calls"], &reduce["ranks"]), (&json!(all), &json!(RANKS)), "{mpi:?}: {reduce}");
    assert_eq!(reduce["bytes"], json!({"min": 16, "mean": 16.0, "max": 16}), "{mpi:?}: {reduce}");
    assert_eq!(reduce["basis"], "exact", "{mpi:?}: {reduce}");

    // Outside of functions that only forward calls: the caller if there is one, else that there are several.
    assert_eq!(reduce["callers"], json!(["reduce_all", "main"]), "{mpi:?}: {reduce}");
    assert_eq!(reduce["several_callers"], false, "{mpi:?}: {reduce}");
    let bcast = row(&rows, "MPI_Bcast", u64::from(RANKS * (TURNS + 1)));
    assert_eq!(
        (&bcast["callers"], &bcast["several_callers"]),
        (&json!([]), &json!(true)),
        "{mpi:?}: {bcast}"
    );
    assert_eq!(
        (&bcast["bytes"]["min"], &bcast["bytes"]["max"]),
        (&json!(4), &json!(256)),
        "{mpi:?}: {bcast}"
    );

    // One rank alone, and two: least time means nothing.
    let part = rows.iter().find(|row| row["function"] == "MPI_Allreduce" && row["comm_size"].is_null());
    let part = part.expect("the reduction of parts");
    assert_eq!((&part["late_rank"], &part["late_known"]), (&Value::Null, &json!(false)), "{mpi:?}: {part}");
    assert_eq!(part["comm_sizes"], json!([1, 2]), "{mpi:?}: {part}");

    // Classes of sizes, of a type that the program made.
    let halo = row(&rows, "MPI_Sendrecv", all);
    let ranks = u64::from(RANKS);
    assert_eq!((&halo["bytes"]["min"], &halo["bytes"]["max"]), (&json!(24), &json!(2400)), "{mpi:?}: {halo}");
    let classes: Vec<(u64, u64)> = halo["sizes"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|class| {
            (class["bytes"]["min"].as_u64().expect("known"), class["calls"].as_u64().expect("known"))
        })
        .collect();
    assert_eq!(classes, [(24, 9 * ranks), (240, 2 * ranks), (2400, ranks)], "{mpi:?}: {halo}");
    let bytes = (9 * 24 + 2 * 240 + 2400) * ranks;
    assert_eq!((&halo["sent"], &halo["received"]), (&json!(bytes), &json!(bytes)), "{mpi:?}: {halo}");
    assert_eq!(halo["peers"], json!({"min": 2, "max": 2, "any": false}), "{mpi:?}: {halo}");

    let said = info(&run, &[], 100);
    let line = said.lines().find(|line| line.contains("late")).unwrap_or_else(|| panic!("{said}"));
    assert!(line.ends_with(&format!("late {LATE}")), "{mpi:?}: {said}");
    let text = info(&run, &["--calls"], 100);
    assert!(said.contains("MPI_Allreduce @ my_MPI_Allreduce (tables.c:"), "{mpi:?}: {said}");
    assert!(said.contains(") < reduce_all\n"), "{mpi:?}: {said}");
    assert!(
        text.contains("MPI_Bcast @ my_MPI_Bcast (tables.c:") && text.contains(") < several callers"),
        "{text}"
    );
    assert!(text.contains("24 B to 2.40 kB"), "{text}");
    assert!(text.contains("communicator of 3 ranks"), "{text}");
}

/// Calls are made in a stripped library of functions that pass them on: those who call these functions are named.
#[test]
fn callers_of_a_stripped_library_of_wrappers_are_named() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let soname = "-Wl,-soname,libwrappers.so";
        let library = mpi.compile_as("libwrappers.so", "wrappers.c", &["-fPIC", "-shared", "-s", soname]);
        let place = library.parent().expect("a directory").to_str().expect("a path of ours");
        let run_path = format!("-Wl,-rpath,{place}");
        let with = ["-L", place, "-Wl,--no-as-needed", "-l:libwrappers.so", "-Wl,--as-needed", &run_path];
        let job = Job::new(mpi, RANKS, mpi.compile_as("wrapped", "wrapped.c", &with), &["12"]);
        let run = monitor(&job, "", Form::Run).success();
        let text = info(&run, &["--calls"], 140);
        let line = |function: &str| {
            let mut lines = text.lines().filter(|line| line.starts_with(function));
            lines.next().unwrap_or_else(|| panic!("{mpi:?}: no {function}: {text}"))
        };
        let nameless = line("MPI_Allreduce @ libwrappers.so+0x");
        assert!(nameless.ends_with(" < xx_total < solve"), "{mpi:?}: {nameless}: {text}");
        assert_eq!(line("MPI_Sendrecv @"), "MPI_Sendrecv @ xx_shift < halo", "{mpi:?}: {text}");
        assert_eq!(line("MPI_Barrier @"), "MPI_Barrier @ xx_meet < several callers", "{mpi:?}: {text}");
        // Both callers, where they are told apart.
        let config = "[trace]\ncall_path_depth = 3\n";
        let run = monitor(&job, config, Form::Run).success();
        let text = info(&run, &["--calls"], 140);
        for caller in ["solve", "halo"] {
            let line = format!("MPI_Barrier @ xx_meet < {caller}");
            assert!(text.lines().any(|other| other.starts_with(&line)), "{mpi:?}: {line}: {text}");
        }
    }
}

/// Lines are as long as the terminal has columns, and no word is cut.
#[test]
fn columns_are_respected() {
    let run = run(Mpi::OpenMpi);
    let wide = info(&run, &[], 240);
    for columns in [60, 80, 100, 140] {
        let said = info(&run, &[], columns);
        // Shell commands are never broken; of a long one the beginning is enough.
        let lines = || said.lines().filter(|line| !line.contains("RUN=") && !line.starts_with("ampl: "));
        let longest = lines().map(|line| line.chars().count()).max();
        assert!(longest <= Some(columns as usize), "{longest:?} of {columns}: {said}");
        // In the narrowest a long name of a function loses its middle where the numbers beside it are long.
        assert!(columns < 80 || lines().all(|line| !line.contains('…')), "{columns}: {said}");
    }
    assert!(info(&run, &[], 80).lines().count() > wide.lines().count());
}

#[test]
fn the_whole_table_under_open_mpi() {
    the_whole_table(Mpi::OpenMpi);
}

#[test]
fn the_whole_table_under_mpich() {
    the_whole_table(Mpi::Mpich);
}

#[test]
fn the_whole_table_under_the_standard_abi() {
    the_whole_table(Mpi::Abi);
}
