//! Other processes, other tools, other ways to load MPI: recorded, or reported as not recorded.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::Duration;

use ampl_tests::differential::{Same, compare};
use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::{Scratch, ampl, dist, home, program};
use ampl_tests::process;
use ampl_tests::python;
use ampl_tests::run::{Form, monitor, parse};
use serde_json::Value;

use crate::ranks_to_the_end;

const RANKS: u32 = 2;

/// Asserts that ampl's messages have `words`: they report calls that are not recorded.
fn says(same: &Same, words: &[&str]) {
    let said = same.said().to_lowercase();
    assert!(words.iter().all(|word| said.contains(word)), "no {words:?} in\n{}", same.said());
}

#[test]
fn spawned_processes() {
    for mpi in [Mpi::OpenMpi, Mpi::Abi] {
        for mode in [&[][..], &["disconnect"]] {
            let same = compare(&Job::of(mpi, RANKS, "spawn", mode)).kept_only().without_stderr().run();
            assert_eq!(same.plain.sorted_lines().len(), 4, "{}", same.plain.stdout);
            let same = same.complete();
            assert_eq!(same.functions()["MPI_Allreduce"], 10 * u64::from(RANKS));
            says(&same, &["spawned", "not covered"]);
            for rank in 0..RANKS {
                let calls = same.kept.decode(rank);
                let spawn = calls.iter().find(|call| call["fn"] == "MPI_Comm_spawn").expect("it is there");
                let command = spawn["args"]["command"].as_str();
                assert!(command.is_some_and(|path| path.ends_with("/spawn")) == (rank == 0), "{spawn}");
                assert_eq!(command.is_none(), rank > 0, "{spawn}");
            }
        }
    }
}

/// Debian's MPICH cannot spawn: the root ends the job by its error handler, while the other rank dies of signal 11 as
/// it words the same error. Its launcher reports either of them: without ampl, too, ranks died so in 19 of 40 jobs.
#[test]
fn processes_that_cannot_be_spawned() {
    const ENDS: [Option<i32>; 2] = [Some(15), Some(11)];
    for mode in [&[][..], &["disconnect"]] {
        let job = Job::of(Mpi::Mpich, RANKS, "spawn", mode);
        let plain = job.plain();
        let watched = monitor(&job, "[trace]\ntiming = \"all\"\n", Form::Run).finished;
        for finished in [&plain, &watched] {
            assert!(ENDS.contains(&finished.status.code()), "{}: {}", finished.status, finished.stderr);
            // The launcher words a death by a signal on stdout, too.
            let own = |line: &&str| line.starts_with("parent") || line.starts_with("child");
            assert_eq!(finished.sorted_lines().into_iter().find(own), None);
        }
    }
}

/// A program may close any number, and get it again for a file of its own: that one stays as it is.
#[test]
fn descriptors_are_closed_behind_our_back() {
    const CALLS: u64 = 50_000;
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let each = [("Comm_rank", 1), ("Finalize", 1), ("Init", 1), ("Sendrecv", CALLS)];
        let job = Job::of(mpi, RANKS, "closes", &[&CALLS.to_string()]);
        let same = compare(&job).kept_only().run().complete().expect(RANKS, &each, &[]);
        same.stored();
    }
}

/// Under Open MPI each nonblocking collective takes the next of its communicator's tags for good, and a program may
/// depend on the world's next tag: ampl takes none. If ampl duplicated the world, 20 and 21 collectives would end as
/// 23 and 24 do without it: mostly in waiting for ever.
#[test]
fn tags_of_the_world() {
    for before in [20, 21, 20, 21] {
        let job = Job::of(Mpi::OpenMpi, 3, "edge_tags", &[&before.to_string()]);
        let same = compare(&job).kept_only().run().complete();
        assert_eq!(same.functions()["MPI_Ibarrier"], 3 * before);
    }
}

const SESSION: [(&str, u64); 4] =
    [("Comm_create_from_group", 1), ("Comm_free", 1), ("Group_free", 1), ("Group_from_session_pset", 1)];

#[test]
fn sessions_beside_a_world() {
    for mpi in [Mpi::Mpich, Mpi::Abi] {
        let each = [&SESSION[..], &[("Allreduce", 30), ("Comm_rank", 2), ("Comm_size", 1), ("Finalize", 1)]];
        let once = [("Init", 1), ("Session_finalize", 1), ("Session_get_num_psets", 1), ("Session_init", 1)];
        let each = [each.concat(), once.to_vec()].concat();
        compare(&Job::of(mpi, RANKS, "sessions", &["inside"]))
            .kept_only()
            .run()
            .complete()
            .expect(RANKS, &each, &[])
            .stored();
        // Calls before MPI_Init are counted only.
        let same = compare(&Job::of(mpi, RANKS, "sessions", &["around"])).kept_only().run().complete();
        let reductions = same.functions()["MPI_Allreduce"];
        assert!(reductions >= 40 * u64::from(RANKS), "{mpi:?}: {reductions} reductions");
        says(&same, &["not covered", "before mpi_init"]);
    }
}

#[test]
fn sessions_alone() {
    for mpi in [Mpi::Mpich, Mpi::Abi] {
        let same = compare(&Job::of(mpi, RANKS, "sessions", &["only"])).kept_only().run();
        assert!(!same.kept.run.exists());
        says(&same, &["no run was recorded", "session"]);
    }
    // MPICH 4.0 dies of this one, with ampl and without; MPICH 5 in 3 of 65 jobs of two ranks, without ampl: the
    // ranks of a second world may still read the addresses of the first. In 0 of 60 jobs of one rank.
    let same = compare(&Job::of(Mpi::Abi, 1, "sessions", &["after"])).kept_only().run();
    says(&same, &["after mpi_finalize"]);
}

/// MPI comes with a plug-in, out of the global search order.
#[test]
fn mpi_in_a_plugin() {
    let each = [("Allreduce", 10), ("Comm_rank", 1), ("Comm_size", 1), ("Finalize", 1), ("Get_version", 1)];
    let each = [&each[..], &[("Init", 1)]].concat();
    for mpi in Mpi::ALL {
        let early = mpi.compile_as("early.so", "plugin.c", &["-fPIC", "-shared", "-DCONSTRUCTOR"]);
        for plugin in [mpi.compile_as("plugin.so", "plugin.c", &["-fPIC", "-shared"]), early] {
            let job = Job::of(mpi, RANKS, "dlopened", &[plugin.to_str().expect("a path of ours")]);
            compare(&job).kept_only().run().complete().expect(RANKS, &each, &[]);
        }
    }
}

/// mpi4py's wheel detects the MPI before it loads one, by weak symbols and by dlsym.
#[test]
fn mpi4py_from_its_wheel() {
    for (mpi, told) in [(Mpi::OpenMpi, false), (Mpi::OpenMpi, true), (Mpi::Mpich, true), (Mpi::Abi, true)] {
        let job = python::job(mpi, RANKS, "ring.py", told);
        let same = compare(&job).kept_only().run().complete();
        assert!(same.plain.status.success(), "{}", same.plain.stderr);
        assert!(same.plain.stdout.contains("refused as True"), "{}", same.plain.stdout);
        let functions = same.functions();
        let exchanges = functions.get("MPI_Sendrecv").or(functions.get("MPI_Sendrecv_c"));
        assert_eq!(exchanges, Some(&40), "{mpi:?}: {functions:?}");
        // Pickled messages are on a communicator of mpi4py's own, which it frees in MPI_Finalize.
        let info = same.kept.info();
        let made = info["communicators"].as_array().expect("a list").iter();
        let made: Vec<_> = made.filter(|comm| comm["name"] != "world" && comm["name"] != "self").collect();
        assert!(!made.is_empty() && info.get("communicators_cut").is_none(), "{mpi:?}: {info}");
        assert!(made.iter().all(|comm| comm["ranks"] == "0-1"), "{mpi:?}: {made:?}");
        for rank in 0..RANKS {
            for call in same.kept.decode(rank) {
                let comm = call["args"]["comm"].as_str().unwrap_or("none");
                assert!(!comm.contains("unknown") && !comm.contains('?'), "{mpi:?}: {call}");
            }
        }
    }
}

/// Told of an MPI that is not there, mpi4py raises an error that the program catches.
#[test]
fn mpi4py_told_of_an_mpi_that_is_absent() {
    const PROGRAM: &str = "try:\n    from mpi4py import MPI\nexcept ImportError:\n    print('no MPI')\nelse:\n    print('MPI')\n";
    let job = Job::new(Mpi::OpenMpi, RANKS, program(&["python3"]), &["-c", PROGRAM]);
    let job = job.with("PYTHONPATH", python::mpi4py()).with("MPI4PY_MPIABI", "mpich");
    // Of this name Debian has no MPICH.
    let job = job.with("LD_LIBRARY_PATH", "");
    let plain = job.plain().success();
    assert_eq!(plain.sorted_lines(), ["no MPI"; RANKS as usize], "{}", plain.stderr);
    for form in [Form::Run, Form::Exec] {
        let run = monitor(&job, "", form).success();
        assert_eq!(run.finished.sorted_lines(), plain.sorted_lines(), "{form:?}: {}", run.finished.stderr);
        assert!(!run.run.exists(), "{form:?}: {}", run.finished.stderr);
    }
}

/// A program that asks for functions by weak symbols and dlsym gets another answer only for functions
/// that `ampl doctor` names.
#[test]
fn features_that_mislead_are_named() {
    for mpi in Mpi::ALL {
        let job = Job::of(mpi, 1, "features", &[]);
        let (plain, watched) = (job.plain().success(), monitor(&job, "", Form::Run).success());
        let mut doctor = Command::new(ampl());
        doctor.args(["doctor", "--json"]).arg(mpi.compile("features"));
        let named = parse(&process::run(&mut doctor, Duration::from_secs(30)).success().stdout);
        let missing = named["mpi"][0]["missing"].as_array().expect("an array");
        let (before, after) = (plain.sorted_lines(), watched.finished.sorted_lines());
        assert_eq!((before.len(), after.len()), (4, 4), "{after:?}");
        for (before, after) in before.iter().zip(&after).filter(|(before, after)| before != after) {
            let function = format!("MPI_{}", before.split(':').next().unwrap_or_default());
            assert!(missing.contains(&Value::from(function)), "{mpi:?}: {before} became {after}");
        }
    }
}

/// Functions that the program defines itself are not intercepted: ampl names them.
#[test]
fn programs_with_a_layer_of_their_own() {
    let each = [("Comm_rank", 1), ("Comm_size", 1), ("Finalize", 1), ("Init", 1), ("Irecv", 10)];
    for mpi in Mpi::ALL {
        let same = compare(&Job::of(mpi, RANKS, "own_layer", &[])).kept_only().run().complete().expect(
            RANKS,
            &each,
            &[],
        );
        says(&same, &["not covered", "mpi_send", "mpi_wait"]);
    }
    let whole = Mpi::OpenMpi.compile_as("own_layer_whole", "own_layer.c", &["-DWHOLE"]);
    // Over MPI_Init and MPI_Finalize, too: these two are intercepted where they call their profiling names.
    let same = compare(&Job::new(Mpi::OpenMpi, RANKS, whole, &[])).kept_only().run().complete();
    let same = same.expect(RANKS, &each, &[]);
    says(&same, &["not covered", "mpi_send", "mpi_wait"]);
}

/// Another profiling library, preloaded too: both see every call if ampl stands first.
#[test]
fn other_tools_are_preloaded() {
    for mpi in Mpi::ALL {
        let ranks = ranks_to_the_end(mpi);
        let tool = mpi.compile_as("tool.so", "tool.c", &["-fPIC", "-shared"]);
        let job = Job::of(mpi, ranks, "ends", &["callbacks"]).with("LD_PRELOAD", &tool);
        let same = compare(&job).kept_only().run().complete();
        assert_eq!(same.functions()["MPI_Comm_dup"], 2 * u64::from(ranks));
        // The tool first: its functions are not intercepted, except for init and finalize.
        let mut both = tool.clone().into_os_string();
        both.push(":");
        both.push(dist().join("lib/libampl.so"));
        let place = Scratch::new("behind");
        let job = Job::of(mpi, ranks, "ends", &["callbacks"]).with("LD_PRELOAD", both);
        let behind = Job { directory: Some(place.path().to_owned()), ..job }.plain();
        assert_eq!(behind.status, same.plain.status, "{mpi:?}: {}", behind.stderr);
        let said = ampl_tests::run::text_of(&place.path().join("ends.0"));
        assert!(said.contains("the tool saw 22 exchanges"), "{mpi:?}: {said}");
        let recorded = place.path().read_dir().expect("a directory of ours").flatten();
        let trace = |entry: &std::fs::DirEntry| entry.path().join("trace.ampl").is_file();
        assert_eq!(recorded.filter(trace).count(), 1, "{mpi:?}: {}", behind.stderr);
    }
}

/// Shells and other programs between the launcher and the one that calls MPI.
#[test]
fn programs_in_between() {
    let each = [("Comm_rank", 1), ("Comm_size", 1), ("Finalize", 1), ("Init", 1), ("Sendrecv", 21)];
    for mpi in Mpi::ALL {
        let ranks = ranks_to_the_end(mpi);
        let path = mpi.compile("ends");
        let path = path.to_str().expect("a path of ours");
        let line = format!("echo before; env NAME=value {path} atexit; echo after $?");
        let shell = Job::new(mpi, ranks, program(&["sh"]), &["-c", &line]);
        compare(&shell).kept_only().run().complete().expect(ranks, &each, &[]);
        let nice = Job::new(mpi, ranks, program(&["env"]), &["NAME=value", "nice", path, "atexit"]);
        compare(&nice).kept_only().under_exec().run().complete().expect(ranks, &each, &[]);
    }
}

/// A program with another user's rights does not load ampl, and a message reports it.
#[test]
fn privileged_programs() {
    let place = Scratch::new("privileged");
    let copy = place.path().join("ends");
    std::fs::copy(Mpi::Mpich.compile("ends"), &copy).expect("the scratch directory is ours");
    // As root another owner makes the difference; anyone may ask for the bit on their own file, but
    // then nothing differs and AT_SECURE is not set.
    if std::os::unix::fs::chown(&copy, Some(65534), None).is_err() {
        eprintln!("not root: a setuid program of another user cannot be made here");
        return;
    }
    std::fs::set_permissions(&copy, std::fs::Permissions::from_mode(0o4755)).expect("it is ours");
    let run = |words: &[&str]| {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).current_dir(place.path());
        process::run(&mut command, Duration::from_secs(30))
    };
    let ampl = ampl();
    let (copy, ampl) = (copy.to_str().expect("text"), ampl.to_str().expect("text"));
    let alone = run(&[copy, "never"]);
    let watched = run(&[ampl, "exec", "-o", "result", "--", copy, "never"]);
    assert_eq!((watched.status, &watched.stdout), (alone.status, &alone.stdout));
    assert_eq!(alone.status.code(), Some(5), "{}", alone.stderr);
    assert!(watched.stderr.contains("setuid"), "{}", watched.stderr);
    assert!(!place.path().join("result").exists());
}

/// A program with another user's rights that is linked with libampl takes nothing of it from its environment.
#[test]
fn privileged_programs_linked_with_the_library() {
    // The other user must reach the library and the results.
    let place = Shared::new();
    let at = |name: &str| place.0.join(name);
    std::fs::copy(dist().join("lib/libampl.so"), at("libampl.so")).expect("a directory of ours");
    let mut compile = Command::new(Mpi::Mpich.compiler());
    compile.args(["-O1", "-Wl,--no-as-needed"]).arg("-o").arg(at("steady"));
    compile.arg(at("libampl.so")).arg(format!("-Wl,-rpath,{}", place.0.display()));
    compile.arg(home().join("programs/steady.c"));
    process::run(&mut compile, Duration::from_secs(120)).success();
    std::fs::copy(at("steady"), at("secure")).expect("a directory of ours");
    if std::os::unix::fs::chown(at("secure"), Some(65534), None).is_err() {
        eprintln!("SKIPPED: not root, so a setuid program of another user cannot be made here");
        return;
    }
    std::fs::set_permissions(at("secure"), std::fs::Permissions::from_mode(0o4755)).expect("it is ours");
    let run = |program: &str, config: &str| {
        let mut command = Command::new(at(program));
        command.arg("3").current_dir(&place.0);
        command
            .env("AMPL_DIR", at(&format!("{program}-run")))
            .env("AMPL_CONFIG", config)
            .env("AMPL_EXEC_HOOKS", "nvtx");
        process::run(&mut command, Duration::from_secs(30)).success()
    };
    let watched = run("steady", "");
    assert_eq!(watched.stdout, "3 turns\n");
    assert!(at("steady-run/trace.ampl").is_file(), "{}", watched.stderr);
    for config in ["", "/etc/shadow", "no = \"settings\"\n"] {
        let secure = run("secure", config);
        assert_eq!((secure.stdout.as_str(), secure.stderr.as_str()), ("3 turns\n", ""));
        assert!(!at("secure-run").exists());
    }
}

/// A directory that everybody may write to, for as long as this lives.
struct Shared(std::path::PathBuf);

impl Shared {
    fn new() -> Self {
        let place = std::env::temp_dir().join(format!("ampl-test-shared-{}", std::process::id()));
        std::fs::create_dir(&place).expect("a temporary directory");
        let mode = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(&place, mode).expect("it is ours");
        Self(place)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
