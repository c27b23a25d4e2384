//! The table of functions, the symbols that `libampl.so` exports and the MPI libraries of this machine agree: a
//! function with a profiling twin is wrapped, or skipped for a written reason.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ampl_core::mpi::FUNCTIONS;
use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::{dist, home};
use ampl_tests::process;
use ampl_tests::run::{Form, monitor, text_of};
use object::{Object, ObjectSymbol};
use toml_edit::DocumentMut;

/// Source of the wrappers.
const WRAPPERS: &str = "../ampl-preload/src/wrappers/generated.rs";
const SPEC: &str = "../ampl-preload/spec/mpi.toml";

/// Each exported symbol and where its wrapper goes on to.
fn wrappers() -> BTreeMap<String, Vec<String>> {
    let mut found = BTreeMap::new();
    for line in text_of(&home().join(WRAPPERS)).lines() {
        let Some((kind, rest)) = line.split_once("!(") else { continue };
        if kind.starts_with("fortran") {
            let lists: Vec<Vec<String>> = rest
                .split('[')
                .skip(1)
                .map(|list| {
                    list.split(']').next().unwrap_or_default().split(' ').map(str::to_owned).collect()
                })
                .collect();
            let [names, next] = lists.as_slice() else { panic!("{line}") };
            for name in names {
                found.insert(name.clone(), next.clone());
            }
        } else {
            let name = rest.split(',').next().unwrap_or_default();
            found.insert(name.to_owned(), vec![format!("P{name}")]);
        }
    }
    assert!(found.len() > 3000, "only {} wrappers in {WRAPPERS}", found.len());
    found
}

/// Patterns of symbols that are left alone on purpose; each has a reason beside it.
fn skipped() -> Vec<String> {
    let spec: DocumentMut = text_of(&home().join(SPEC)).parse().expect("it is TOML");
    let entries = spec["skipped"].as_array_of_tables().expect("it lists what is skipped");
    let text = |entry: &toml_edit::Table, key: &str| entry[key].as_str().unwrap_or_default().to_owned();
    entries
        .iter()
        .map(|entry| {
            assert!(!text(entry, "reason").is_empty(), "skipped without a reason: {entry}");
            text(entry, "name")
        })
        .collect()
}

/// True where `pattern`, in which `*` stands for any characters, matches `name`.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, rest)) => name.strip_prefix(start).is_some_and(|tail| {
            (0..=tail.len()).any(|at| tail.is_char_boundary(at) && matches(rest, &tail[at..]))
        }),
    }
}

/// True where one of `patterns` matches `name`; those for Fortran are in the mangling `mpi_x_`, and mean all.
fn is_skipped(patterns: &[String], name: &str) -> bool {
    let lower = name.to_lowercase();
    let one_case = name == lower || name == name.to_uppercase();
    let usual = if one_case { format!("{}_", lower.trim_end_matches('_')) } else { name.to_owned() };
    patterns.iter().any(|pattern| matches(pattern, name) || matches(pattern, &usual))
}

/// The names that a library defines for others.
fn exported(library: &Path) -> BTreeSet<String> {
    let data = std::fs::read(library).unwrap_or_else(|error| panic!("{}: {error}", library.display()));
    let file = object::File::parse(&*data).unwrap_or_else(|error| panic!("{}: {error}", library.display()));
    let defined = file.dynamic_symbols().filter(|symbol| symbol.is_definition());
    defined.filter_map(|symbol| symbol.name().ok().map(str::to_owned)).collect()
}

/// The profiling names under which `exported` has `name` once more.
fn twins(name: &str, exported: &BTreeSet<String>) -> Vec<String> {
    let mut candidates = vec![format!("p{name}"), format!("P{name}")];
    if let Some(tail) = name.strip_prefix("mpi_") {
        candidates.push(format!("pmpir_{tail}"));
    }
    candidates.into_iter().filter(|candidate| exported.contains(candidate)).collect()
}

/// The MPI library that programs are linked to, and the others of its directory, Fortran's among them.
fn libraries(mpi: Mpi) -> Vec<PathBuf> {
    let program = mpi.compile("steady");
    let listed = process::run(Command::new("ldd").arg(&program), Duration::from_secs(20)).success().stdout;
    let linked = listed.lines().filter_map(|line| line.split_once(" => ")?.1.split(" (0x").next());
    let is_mpi = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.starts_with("libmpi") && name.contains(".so.")
    };
    let linked: Vec<&Path> = linked.map(Path::new).filter(|path| is_mpi(path)).collect();
    assert!(!linked.is_empty(), "{mpi:?} is none of the libraries of its program:\n{listed}");
    let beside = linked.iter().filter_map(|path| path.parent()?.read_dir().ok()).flatten().flatten();
    let files = beside.map(|entry| entry.path()).filter(|path| is_mpi(path));
    let files: BTreeSet<PathBuf> = files.filter_map(|path| path.canonicalize().ok()).collect();
    files.into_iter().collect()
}

/// Every MPI library of this machine once, with its names.
fn all_libraries() -> BTreeMap<PathBuf, BTreeSet<String>> {
    let files: BTreeSet<PathBuf> = Mpi::ALL.into_iter().flat_map(libraries).collect();
    files.into_iter().map(|file| (file.clone(), exported(&file))).collect()
}

#[test]
fn what_has_a_twin_is_wrapped_or_skipped() {
    let ours = exported(&dist().join("lib/libampl.so"));
    let (wrappers, skipped, libraries) = (wrappers(), skipped(), all_libraries());
    let mut wrong = Vec::new();
    for (library, names) in &libraries {
        let mut wrapped = 0;
        for name in names.iter().filter(|name| name.to_lowercase().starts_with("mpi")) {
            let twins = twins(name, names);
            if twins.is_empty() {
                continue;
            }
            let goes_on = ours.contains(name).then(|| wrappers.get(name)).flatten();
            match goes_on {
                Some(next) if twins.iter().any(|twin| next.contains(twin)) => wrapped += 1,
                // Any spelling of the same procedure will do.
                Some(next) if next.iter().any(|next| names.contains(next)) => wrapped += 1,
                Some(next) => wrong.push(format!("{name} goes on to {next:?}, its twins are {twins:?}")),
                None if is_skipped(&skipped, name) => {}
                None => wrong.push(format!("{name} of {} is neither wrapped nor skipped", library.display())),
            }
        }
        println!("{}: {wrapped} symbols wrapped", library.display());
    }
    assert!(wrong.is_empty(), "{} symbols:\n{}", wrong.len(), wrong.join("\n"));
    // The check must not pass for want of symbols: the greatest number in any one library.
    let most = |start: &str, end: &str, twin: &str| {
        let has = |name: &&String, names: &BTreeSet<String>| {
            let tail = name.strip_prefix(start).filter(|tail| tail.ends_with(end));
            tail.is_some_and(|tail| names.contains(&format!("{twin}{tail}")))
        };
        let counts = libraries.values().map(|names| names.iter().filter(|name| has(name, names)).count());
        counts.max().unwrap_or_default()
    };
    assert!(most("MPI_", "", "PMPI_") >= 503 + 159);
    assert!(most("MPI_", "_c", "PMPI_") >= 159);
    assert!(most("mpi_", "_", "pmpi_") >= 350);
    assert!(most("mpi_", "_f08_", "pmpi_") >= 300);
    assert!(most("mpi_", "_f08ts_", "pmpir_") >= 100);
}

/// Symbols that `libampl.so` exports besides wrappers and its own `ampl_*`, with the reason.
const BESIDES: [(&str, &str); 9] = [
    ("__cyg_profile_func_enter", "hook of compilers: functions as regions, where asked for"),
    ("__cyg_profile_func_exit", "likewise"),
    ("PMPI_Finalize", "to end where a tool keeps MPI_Finalize to itself"),
    ("PMPI_Init", "to begin where a tool keeps MPI_Init to itself"),
    ("PMPI_Init_thread", "the same, where it asks for threads"),
    ("dlmopen", "the same, into the program's own namespace"),
    ("dlopen", "to notice an MPI that an interpreter loads late"),
    ("sched_yield", "so that a look after the tree gives no turn away"),
    ("usleep", "to notice an MPI_Finalize that has not deleted ampl's attribute"),
];

/// Beginnings of functions of tools' interfaces, which are hidden when the library is loaded, unless asked for.
const OF_TOOLS: [&str; 8] = [
    "kokkosp_",
    "InitializeInjectionNvtx2",
    "__itt_api_init",
    "ompt_start_tool",
    "ps_tool_",
    "cali_",
    "nccl",
    "_ZN4cali",
];

#[test]
fn what_is_exported_is_in_the_table() {
    let ours = exported(&dist().join("lib/libampl.so"));
    let wrappers = wrappers();
    let in_c: BTreeSet<&str> = wrappers.keys().filter(|name| !is_fortran(name)).map(String::as_str).collect();
    let table: BTreeSet<&str> = FUNCTIONS.iter().map(|spec| spec.name).collect();
    assert_eq!(in_c, table, "wrappers and table");
    let absent: Vec<&String> = wrappers.keys().filter(|name| !ours.contains(*name)).collect();
    assert!(absent.is_empty(), "wrapped and not exported: {absent:?}");
    // A name that is neither MPI's nor ampl's could take the place of the program's own.
    let known = |name: &String| {
        wrappers.contains_key(name)
            || name.starts_with("ampl_")
            || OF_TOOLS.iter().any(|beginning| name.starts_with(beginning))
            || BESIDES.iter().any(|(besides, _)| besides == name)
    };
    let foreign: Vec<&String> = ours.iter().filter(|name| !known(name)).collect();
    assert!(foreign.is_empty(), "exported besides wrappers: {foreign:?}");
    let skipped = skipped();
    let both: Vec<&String> = wrappers.keys().filter(|name| is_skipped(&skipped, name)).collect();
    assert!(both.is_empty(), "wrapped and listed as skipped: {both:?}");
}

fn is_fortran(name: &str) -> bool {
    name == name.to_lowercase() || name == name.to_uppercase()
}

/// Fortran forms that no library of this machine need have, with libraries that have them.
const ELSEWHERE: [(&str, &str); 13] = [
    ("mpi_*_fts_", "Open MPI since 6.0"),
    ("mpi_*_c_f08_", "MPICH since 4.1.3, Open MPI since 6.0"),
    ("mpi_*_c_f08ts_", "MPICH since 4.1.3, Open MPI since 6.0"),
    ("mpi_type_get_*_f08_c_", "Open MPI 6.0"),
    ("mpi_*_init_f08_", "Open MPI since 5.0: buffers of persistent collectives by address"),
    ("mpi_isendrecv_f08_", "Open MPI since 5.0"),
    ("mpi_isendrecv_replace_f08_", "Open MPI since 5.0"),
    ("mpi_file_*_f08ts_large_", "MPICH 4.1"),
    ("mpi_op_create_f08_large_", "MPICH 4.1"),
    ("mpi_register_datarep_f08_large_", "MPICH 4.1"),
    ("mpi_status_set_elements_f08_large_", "MPICH 4.1"),
    ("mpi_*_extent_f08_large_", "MPICH 4.0 and 4.1 where the kinds of counts and addresses differ"),
    ("mpi_type_create_resized_f08_large_", "likewise"),
];

#[test]
fn every_wrapper_goes_on_to_something() {
    let libraries = all_libraries();
    let everything: BTreeSet<&String> = libraries.values().flatten().collect();
    // Functions of the libraries that have Fortran bindings: the standard ABI in C has more.
    let with_fortran =
        |names: &&BTreeSet<String>| names.contains("pmpi_send_") || names.contains("pmpi_send");
    let fortran: BTreeSet<String> =
        libraries.values().filter(with_fortran).flatten().map(|name| name.to_lowercase()).collect();
    let mut nowhere = Vec::new();
    for (name, next) in wrappers() {
        let there = next.iter().any(|next| everything.contains(next));
        let elsewhere = ELSEWHERE.iter().any(|(pattern, _)| matches(pattern, &name));
        if there || elsewhere {
            continue;
        }
        // mpi_x_ where no library has MPI_X in Fortran at all: a function of a later MPI.
        let base = name.to_lowercase();
        let base = base.trim_end_matches('_').trim_end_matches("_large");
        let base = base.trim_end_matches("_f08ts").trim_end_matches("_f08");
        if !is_fortran(&name) || fortran.contains(&format!("{base}_")) {
            nowhere.push(name);
        }
    }
    assert!(nowhere.is_empty(), "no library has what these forward to: {nowhere:?}");
}

#[test]
fn functions_that_this_mpi_lacks_return_an_error() {
    // Open MPI 4.1 has no sessions; a later one has, and then this shows nothing.
    let job = Job::of(Mpi::OpenMpi, 1, "lacking", &[]);
    let plain = job.plain().success();
    let run = monitor(&job, "", Form::Run).success();
    let line = |text: &str, word: &str| {
        let found = text.lines().find_map(|line| line.strip_prefix(word));
        found.unwrap_or_else(|| panic!("no {word} in {text}")).trim().to_owned()
    };
    for word in ["c", "fortran"] {
        let (without, with) = (line(&plain.stdout, word), line(&run.finished.stdout, word));
        assert!(without == "absent" || without == with, "{word}: {without}, then {with}");
        assert!(without != "absent" || with == "error", "{word}: {with}");
    }
    assert_eq!(line(&run.finished.stdout, "end"), line(&plain.stdout, "end"), "MPI works on");
}
