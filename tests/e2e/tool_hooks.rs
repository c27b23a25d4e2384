//! Regions that programs tell other tools of, as the programs of `integrations` count them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ampl_tests::job::{Job, Mpi, compile_library};
use ampl_tests::place::{Scratch, dist};
use ampl_tests::python;
use ampl_tests::run::{Form, Monitored, called, monitor, number, text_of};

const RANKS: u32 = 2;
const STEPS: u32 = 20;
const MPIS: [Mpi; 2] = [Mpi::OpenMpi, Mpi::Mpich];

/// Entries and exits of each region of `rank`, by what `name` makes of its name.
fn passed(run: &Monitored, rank: u32, name: fn(&str) -> &str) -> BTreeMap<String, [usize; 2]> {
    let mut named: BTreeMap<String, [usize; 2]> = BTreeMap::new();
    for (region, [entries, exits]) in run.passed(rank) {
        let sum = named.entry(name(&region).to_owned()).or_default();
        *sum = [sum[0] + entries, sum[1] + exits];
    }
    named
}

/// Lines of `stderr` that are the program's own.
fn own_stderr(stderr: &str) -> Vec<&str> {
    stderr.lines().filter(|line| !line.starts_with("ampl:")).collect()
}

/// `job` prints the same with the hook `key` off, and no region is recorded; with it on, the regions that it counts. Where
/// the tool's own library says that a tool is there, `says` is its line.
fn check(job: &Job, key: &str, name: fn(&str) -> &str, says: &str) -> Monitored {
    let plain = job.plain().success();
    let off = monitor(job, "", Form::Exec).success();
    // Ranks print in any order.
    assert_eq!(off.finished.sorted_lines(), plain.sorted_lines(), "{key} off");
    assert_eq!(own_stderr(&off.finished.stderr), own_stderr(&plain.stderr), "{key} off");
    assert_eq!(passed(&off, 0, name), BTreeMap::new(), "{key} off");
    // Kokkos makes regions of its own where it sets memory.
    let config = format!(
        "[hooks]\n{key}\n[trace]\nregions = \"!Kokkos::*\"\n\
         [agent]\nmax_overhead = 0.9\nmax_structure_overhead = 0.99\n"
    );
    let on = monitor(job, &config, Form::Run).success();
    // Ranks may print the line and its end in turns: without the line, its end is left.
    let (said, rest) = match says {
        "" => (0, on.finished.stdout.clone()),
        says => (on.finished.stdout.matches(says).count(), on.finished.stdout.replace(says, "")),
    };
    let mut own: Vec<&str> = rest.lines().collect();
    own.sort_unstable();
    assert!(own[..said].iter().all(|line| line.is_empty()), "{key} on: {own:?}");
    assert_eq!(own[said..], plain.sorted_lines(), "{key} on");
    assert!(on.finished.stdout.contains(says), "{key} on");
    assert_eq!(on.functions(), off.functions(), "{key}");
    on.adds_up();
    let counted = called(&plain.stdout);
    assert!(counted.values().all(|&times| times > 0) && !counted.is_empty(), "{}", plain.stdout);
    let both: BTreeMap<String, [usize; 2]> =
        counted.into_iter().map(|(name, times)| (name, [times; 2])).collect();
    for rank in 0..RANKS {
        assert_eq!(passed(&on, rank, name), both, "{key} rank {rank}");
    }
    on
}

fn same(name: &str) -> &str {
    name
}

fn example(mpi: Mpi, tool: &str, file: &str, flags: &[&str]) -> PathBuf {
    mpi.compile_as(&format!("{tool}-stencil"), &format!("../../integrations/{tool}/{file}"), flags)
}

fn steps(mpi: Mpi, program: PathBuf) -> Job {
    Job::new(mpi, RANKS, program, &[&STEPS.to_string()])
}

/// A job of an example in Python.
fn script(mpi: Mpi, tool: &str, packages: &Path) -> Job {
    let job = python::job(mpi, RANKS, &format!("../../integrations/{tool}/stencil.py"), true);
    let path = std::env::join_paths([python::mpi4py().as_path(), packages]).expect("paths of ours");
    job.with("PYTHONPATH", path)
}

#[test]
fn kokkos_regions_and_kernels() {
    if !Path::new("/usr/include/trilinos/Kokkos_Core.hpp").is_file() {
        eprintln!("SKIPPED: no Kokkos (cargo xtask setup installs libtrilinos-kokkos-dev)");
        return;
    }
    let library = dist().join("lib/libampl.so");
    for mpi in MPIS {
        let flags = ["-I/usr/include/trilinos", "-Wl,--no-as-needed", "-ltrilinos_kokkoscore"];
        // Kokkos 3 knows the older variable alone.
        let job = steps(mpi, example(mpi, "kokkos", "stencil.cc", &flags))
            .with("KOKKOS_PROFILE_LIBRARY", library.canonicalize().expect("it is there"));
        check(&job, "kokkos = true", same, "");
    }
}

#[test]
fn nvtx_ranges() {
    for mpi in MPIS {
        check(&script(mpi, "nvtx", &python::nvtx()), "nvtx = true", same, "");
    }
}

#[test]
fn itt_tasks() {
    for mpi in MPIS {
        check(&script(mpi, "itt", &python::ittapi()), "itt = true", same, "");
    }
}

#[test]
fn parallel_regions_of_openmp() {
    const LIBRARY: &str = "/usr/lib/x86_64-linux-gnu/libomp.so.5";
    if !Path::new(LIBRARY).is_file() {
        eprintln!("SKIPPED: no OpenMP run time with OMPT (cargo xtask setup installs libomp-dev)");
        return;
    }
    for mpi in MPIS {
        // Before GCC's own run time, which has no OMPT: the other knows the same calls.
        let flags = ["-fopenmp", "-Wl,--no-as-needed", LIBRARY];
        let job = steps(mpi, example(mpi, "ompt", "stencil.c", &flags));
        check(&job, "ompt = true", |name| name.split(' ').next().expect("a word"), "");
        let both = monitor(
            &job.clone().with("OMP_TOOL_LIBRARIES", "/nowhere/tool.so"),
            "[hooks]\nompt = true\n",
            Form::Run,
        )
        .success();
        assert_eq!(passed(&both, 0, same), BTreeMap::new(), "a tool of the user's goes before");
        assert!(both.finished.stderr.contains("OMP_TOOL_LIBRARIES"), "{}", both.finished.stderr);
    }
}

#[test]
fn perfstubs_timers_and_counters() {
    let library = python::adios2().join("adios2/libadios2_perfstubs.so");
    let says = "Found ps_tool_initialize(), registering tool";
    for mpi in MPIS {
        let program = example(mpi, "perfstubs", "stencil.c", &["-ldl"]);
        let arguments = [library.to_str().expect("a path of ours"), &STEPS.to_string()];
        let job = Job::new(mpi, RANKS, program, &arguments);
        check(&job, "perfstubs = true", same, says);
        let config = "[hooks]\nperfstubs = true\n[[metric]]\nname = \"moved\"\nrole = \"guide\"\n\
                      [window]\nmarker = \"region:step\"\n";
        let run = monitor(&job, config, Form::Run).success();
        assert_eq!(run.finished.stdout.matches(says).count(), RANKS as usize, "once a rank");
        let moved: Vec<_> = run.estimate().into_iter().filter(|row| row["metric"] == "moved").collect();
        // One sample in each step, which is a window; the last one has the end.
        for window in 0..STEPS {
            let mut rows = moved.iter().filter(|row| row["window"] == window && row["basis"] == "census");
            assert_eq!(rows.next().map(|row| number(&row["mean"])), Some(8.0), "{mpi:?} window {window}");
        }
    }
}

/// With a stand-in for Caliper.
#[test]
fn caliper_annotations() {
    let stand_in = compile_library("libcaliper.so", "fake_caliper.cc");
    let directory = stand_in.parent().expect("it lies in a directory");
    let programs = ampl_tests::place::home().join("programs");
    let flags = [
        format!("-I{}", programs.display()),
        "-Wl,--no-as-needed".to_owned(),
        stand_in.display().to_string(),
        format!("-Wl,-rpath,{}", directory.display()),
    ];
    for mpi in MPIS {
        for binding in ["-Wl,-z,lazy", "-Wl,-z,now"] {
            let flags: Vec<&str> = flags.iter().map(String::as_str).chain([binding]).collect();
            let name = format!("caliper-stencil{binding}");
            let program = mpi.compile_as(&name, "../../integrations/caliper/stencil.cc", &flags);
            // Caliper gets as many calls as without ampl: its count is part of what is printed.
            check(&steps(mpi, program).with("CALIPER_COUNTS", "1"), "caliper = true", same, "");
        }
    }
}

/// The function of a call of NCCL's.
fn function(name: &str) -> &str {
    name.split(' ').next().expect("a word")
}

/// With a stand-in for NCCL.
#[test]
fn calls_of_nccl() {
    let stand_in = compile_library("libnccl.so.2", "fake_nccl.cc");
    let library = stand_in.to_str().expect("a path of ours");
    let programs = ampl_tests::place::home().join("programs/nccl");
    let include = format!("-I{}", programs.display());
    let path = format!("-Wl,-rpath,{}", stand_in.parent().expect("it lies in a directory").display());
    for mpi in MPIS {
        for binding in ["-Wl,-z,lazy", "-Wl,-z,now"] {
            let flags = [include.as_str(), "-Wl,--no-as-needed", library, &path, "-ldl", binding];
            let name = format!("nccl-training{binding}");
            let program = mpi.compile_as(&name, "../../integrations/nccl/training.c", &flags);
            let scratch = Scratch::new("nccl");
            let counts = scratch.path().join("counts");
            let job = steps(mpi, program.clone()).with("NCCL_COUNTS", &counts);
            let run = check(&job, "nccl = true", function, "");
            // The library got as many calls as without ampl, with the same arguments: three jobs, and a line of each rank.
            let said = text_of(&counts);
            let mut lines: Vec<&str> = said.lines().collect();
            lines.sort_unstable();
            assert_eq!(lines.len(), 3 * RANKS as usize, "{said}");
            assert!(lines.chunks(3).all(|jobs| jobs.iter().all(|&line| line == jobs[0])), "{said}");
            device_lines(&run);
            let off = monitor(&job, "", Form::Run).success();
            let covered = off.finished.stderr.contains("calls of libnccl.so.2: --hooks nccl asks for them");
            assert!(covered, "{}", off.finished.stderr);
            let arguments = [&STEPS.to_string(), "dlsym", library];
            let past = Job::new(mpi, RANKS, program, &arguments);
            let past = monitor(&past, "[hooks]\nnccl = true\n", Form::Run).success();
            assert_eq!(passed(&past, 0, function), BTreeMap::new(), "{mpi:?}");
            assert!(
                past.finished.stderr.contains("calls of libnccl.so.2: the program finds"),
                "{}",
                past.finished.stderr
            );
        }
    }
}

/// The lines and totals of calls of NCCL's in `run`.
fn device_lines(run: &Monitored) {
    let steps = u64::from(STEPS);
    let lines = run.events(1);
    let sums: Vec<_> = lines.iter().filter(|line| line["device"]["function"] == "ncclAllReduce").collect();
    assert_eq!(sums.len() as u64, 2 * steps);
    for line in sums {
        assert_eq!(line["class"], "device");
        let call = &line["device"];
        let of = ["count", "datatype_bytes", "bytes", "communicator"].map(|key| call[key].as_u64());
        assert_eq!(of, [65_536, 4, 262_144, 0].map(Some), "{line}");
    }
    let second = lines.iter().find(|line| line["device"]["function"] == "ncclBcast").expect("it is called");
    assert_eq!(second["device"]["communicator"], 1, "{second}");
    // Between its group's beginning and end.
    let names: Vec<_> =
        lines.iter().filter_map(|line| Some((line["region"].as_str()?, line["enter"] == true))).collect();
    let begin = names.iter().position(|&edge| edge == ("ncclGroup", true)).expect("a group");
    assert!(names[begin + 1].0.starts_with("ncclSend"), "{:?}", &names[begin..begin + 3]);
    let info = run.info();
    let totals = info["metadata"]["device_calls"].as_array().expect("they are asked for");
    let bytes = |name: &str| {
        totals.iter().find(|total| total["function"] == name).map(|total| number(&total["bytes"]))
    };
    assert_eq!(bytes("ncclAllReduce"), Some((steps * 262_144) as f64), "{totals:?}");
    assert_eq!((bytes("ncclBcast"), bytes("ncclBroadcast")), (Some(16.0), Some(262_144.0)), "{totals:?}");
}

/// By the package `ampl`, which needs no hook.
#[test]
fn a_python_program_names_its_parts() {
    let package = ampl_tests::place::home().join("../integrations/python/src");
    let config = "[window]\nmarker = \"region:step\"\n[[metric]]\nname = \"moved\"\nrole = \"guide\"\n\
                  [agent]\nmax_overhead = 0.9\nmax_structure_overhead = 0.99\n";
    for mpi in MPIS {
        let path = std::env::join_paths([&python::mpi4py(), &package]).expect("paths of ours");
        let job = python::job(mpi, RANKS, "../../integrations/python/examples/stencil.py", true);
        let job = job.with("PYTHONPATH", path).with("PYTHONDONTWRITEBYTECODE", "1");
        let plain = job.plain().success();
        let run = monitor(&job, config, Form::Exec).success();
        assert_eq!(run.finished.stdout, plain.stdout, "{mpi:?}");
        let both: BTreeMap<String, [usize; 2]> =
            called(&plain.stdout).into_iter().map(|(name, times)| (name, [times; 2])).collect();
        assert_eq!(both.len(), 4, "{}", plain.stdout);
        for rank in 0..RANKS {
            assert_eq!(passed(&run, rank, same), both, "{mpi:?} rank {rank}");
        }
        let moved = run.estimate().into_iter().filter(|row| row["metric"] == "moved" && row["window"] == 3);
        assert_eq!(moved.map(|row| number(&row["mean"])).next(), Some(8.0), "{mpi:?}");
    }
}

/// Functions of interfaces exist where they are asked for, and only there.
#[test]
fn symbols_are_there_where_they_are_asked_for() {
    for mpi in MPIS {
        let job = Job::of(mpi, 1, "tool_symbols", &[]);
        let plain = job.plain().success();
        assert!(!plain.stdout.contains(" yes"), "{}", plain.stdout);
        for form in [Form::Run, Form::Exec] {
            assert_eq!(monitor(&job, "", form).success().finished.stdout, plain.stdout, "{mpi:?}");
        }
        for (key, beginnings) in [
            ("kokkos = true", &["kokkosp_"][..]),
            ("nvtx = true", &["InitializeInjectionNvtx2"]),
            ("itt = true", &["__itt_api_init"]),
            ("ompt = true", &["ompt_start_tool"]),
            ("perfstubs = true", &["ps_tool_"]),
            ("caliper = true", &["cali_", "_ZN4cali"]),
            // NCCL is not there.
            ("nccl = true", &[]),
        ] {
            let run = monitor(&job, &format!("[hooks]\n{key}\n"), Form::Run).success();
            for line in run.finished.stdout.lines() {
                let wanted = beginnings.iter().any(|beginning| line.starts_with(beginning));
                assert_eq!(line.ends_with(" yes"), wanted, "{key}: {line}");
            }
        }
        let disabled = monitor(&job.with("AMPL_DISABLE", "1"), "[hooks]\nompt = true\n", Form::Run);
        assert_eq!(disabled.finished.stdout, plain.stdout);
    }
}

/// Null names, ends without beginnings, tables with holes, threads that end within regions, and children that go on.
#[test]
fn interfaces_that_are_used_wrongly_harm_nothing() {
    let sources = ["kokkos", "nvtx", "itt", "ompt", "perfstubs", "caliper", "functions"];
    let hooks: String = sources.iter().map(|source| format!("{source} = true\n")).collect();
    let config = format!("[[metric]]\nname = \"wild\"\n[hooks]\n{hooks}[agent]\nmax_overhead = 0.9\n");
    for mpi in MPIS {
        let job = Job::of(mpi, RANKS, "half_tools", &[]);
        let plain = job.plain().success();
        let run = monitor(&job, &config, Form::Run).success();
        assert_eq!(run.finished.sorted_lines(), plain.sorted_lines(), "{mpi:?}");
        let info = run.info();
        assert_eq!(
            (&info["complete"], &info["agent_failures"]),
            (&true.into(), &0.into()),
            "{mpi:?}: {info}"
        );
        // Names of any bytes are there, and what is no name is not.
        let passed = run.passed(1);
        let found = |name: &str| passed.get(name).is_some_and(|[entries, _]| *entries > 0);
        assert!(found("a\nb\t\u{1b}[2J") && found("wild") && !found(""), "{mpi:?}: {:?}", passed.keys());
        let estimates = run.estimate();
        let wild = estimates.iter().filter(|row| row["metric"] == "wild");
        assert!(
            wild.clone().count() > 0 && wild.clone().all(|row| row["mean"] == 0.0),
            "{mpi:?}: {estimates:?}"
        );
    }
}
