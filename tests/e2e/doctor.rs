//! `ampl doctor` on typical programs: it names the obstacles, and nothing else.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::{Scratch, ampl, program};
use ampl_tests::process;
use ampl_tests::run::{Form, monitor, parse};
use serde_json::Value;

/// Sends through a wrapper of its own, as programs do that measure themselves.
const OWN_SEND: &str = "\
#include <mpi.h>
int MPI_Send(const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm) {
    return PMPI_Send(buf, count, type, dest, tag, comm);
}
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int sent = 1, received = 0;
    MPI_Request request;
    MPI_Irecv(&received, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &request);
    MPI_Send(&sent, 1, MPI_INT, 0, 0, MPI_COMM_SELF);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return received != 1;
}
";
const FORTRAN: &str = "\
program hello
  use mpi_f08
  call MPI_Init()
  call MPI_Finalize()
end program hello
";
/// Uses an extension of its MPI, and a function of another library that is named like one.
const EXTENDED: &str = "\
#include <mpi.h>
int MPIX_Query_cuda_support(void);
int MPIX_Ours(MPI_Comm comm);
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int has = MPIX_Query_cuda_support();
    MPIX_Ours(MPI_COMM_WORLD);
    MPI_Finalize();
    return has;
}
";
/// The other library, which uses an extension of the MPI.
const EXTENDING: &str = "\
#include <mpi.h>
#ifdef OPEN_MPI
int MPIX_Barrier_init(MPI_Comm comm, MPI_Info info, MPI_Request *request);
#else
int MPIX_Comm_agree(MPI_Comm comm, int *flag);
#endif
int MPIX_Ours(MPI_Comm comm) {
#ifdef OPEN_MPI
    MPI_Request request;
    MPIX_Barrier_init(comm, MPI_INFO_NULL, &request);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return MPI_Request_free(&request);
#else
    int flag = 1;
    return comm == MPI_COMM_NULL ? MPIX_Comm_agree(comm, &flag) : MPI_Barrier(comm);
#endif
}
";
const NO_MPI: &str = "int main(void) { return 0; }\n";

fn build(scratch: &Scratch, compilers: &[&str], source: &str, text: &str, options: &[&str]) -> PathBuf {
    let source = scratch.write(source, text);
    let output = source.with_extension("");
    let mut compile = Command::new(program(compilers));
    compile.arg("-o").arg(&output).arg(&source).args(options);
    process::run(&mut compile, Duration::from_secs(120)).success();
    output
}

fn doctor(words: &[&str], path: Option<&Path>) -> String {
    let mut command = Command::new(ampl());
    command.arg("doctor").args(words).args(path);
    process::run(&mut command, Duration::from_secs(60)).success().stdout
}

/// Output of `ampl doctor PROGRAM --json`.
fn examined(program: &Path) -> Value {
    parse(&doctor(&["--json"], Some(program)))
}

/// Problems in `report`, without journals of other jobs: those are this machine's history, and no matter of the
/// program.
fn problems(report: &Value) -> Vec<&str> {
    let problems = report["problems"].as_array().expect("a list");
    let problems = problems.iter().map(|problem| problem.as_str().expect("a message"));
    problems.filter(|problem| !is_of_other_jobs(problem)).collect()
}

fn is_of_other_jobs(problem: &str) -> bool {
    problem.starts_with("ampl: journals of ") && problem.contains("of this node's memory (/dev/shm/")
}

fn count(value: &Value) -> usize {
    value.as_u64().map(|count| count as usize).or_else(|| Some(value.as_array()?.len())).expect("a count")
}

#[test]
fn each_mpi_is_named_with_what_is_covered() {
    for (mpi, name) in [(Mpi::OpenMpi, "Open MPI"), (Mpi::Mpich, "MPICH"), (Mpi::Abi, "MPI-5 ABI")] {
        let program = mpi.compile("counts");
        let report = examined(&program);
        assert_eq!(problems(&report), Vec::<&str>::new());
        assert_eq!(report["app"]["kind"], "dynamic");
        assert_eq!(count(&report["app"]["own_functions"]), 0);
        let libraries = report["mpi"].as_array().expect("a list");
        assert_eq!(libraries.len(), 1, "{name}: {libraries:?}");
        let library = &libraries[0];
        assert_eq!(library["implementation"], name);
        // Every function is there, or is named as missing.
        assert_eq!(count(&library["functions"]) + count(&library["missing"]), count(&library["known"]));
        // A function with a profiling twin is wrapped, or named; a few of the standard ABI have none.
        let covered = count(&library["profiled"]) - count(&library["unwrapped"]);
        let functions = count(&library["functions"]);
        assert!(covered >= 405 && (functions - 10..=functions).contains(&covered), "{name}: {library}");
        let unwrapped = library["unwrapped"].as_array().expect("a list");
        let extension = |name: &Value| name.as_str().is_some_and(|name| name.starts_with("MPIX_"));
        assert!(unwrapped.iter().all(extension), "{name}: {unwrapped:?}");
        let text = doctor(&[], Some(&program));
        let wrapped = format!("{covered} of its {} functions", library["profiled"]);
        assert!(text.contains(&wrapped), "{text}");
        let absent = format!("{} functions of {}", count(&library["missing"]), library["known"]);
        assert!(text.contains(&absent) && text.contains("dlsym"), "{text}");
    }
}

#[test]
fn fortran_libraries_are_counted_too() {
    let scratch = Scratch::new("doctor");
    for (name, compilers) in
        [("openmpi.f90", &["mpif90.openmpi", "mpif90"][..]), ("mpich.f90", &["mpif90.mpich"][..])]
    {
        let report = examined(&build(&scratch, compilers, name, FORTRAN, &[]));
        let wrapped: usize = report["fortran"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|library| count(&library["wrapped"]))
            .sum();
        assert!(wrapped > 1000, "{name}: {report}");
        assert_eq!(problems(&report), Vec::<&str>::new());
    }
}

#[test]
fn a_program_with_its_own_wrappers_is_named_with_them() {
    let scratch = Scratch::new("doctor");
    let own = build(&scratch, &["mpicc.openmpi", "mpicc"], "own.c", OWN_SEND, &[]);
    let report = examined(&own);
    assert_eq!(report["app"]["own_functions"], Value::from(vec!["MPI_Send"]));
    assert_eq!(report["app"]["defines_mpi"], false);
    let [problem] = problems(&report)[..] else { panic!("{report}") };
    assert!(problem.contains("defines MPI_Send itself"), "{problem}");
    // The program's own function is the only one that is not recorded.
    let run = monitor(&Job::new(Mpi::OpenMpi, 1, own, &[]), "", Form::Exec).success();
    assert!(run.finished.stderr.contains("defines MPI_Send itself"), "{}", run.finished.stderr);
    let functions = run.functions();
    assert_eq!(functions.get("MPI_Irecv"), Some(&1));
    assert_eq!(functions.get("MPI_Send"), None);
}

#[test]
fn extensions_that_are_not_recorded_are_named() {
    for (mpi, compilers, inner) in [
        (Mpi::OpenMpi, &["mpicc.openmpi", "mpicc"][..], "MPIX_Barrier_init"),
        (Mpi::Mpich, &["mpicc.mpich"], "MPIX_Comm_agree"),
    ] {
        let scratch = Scratch::new("doctor");
        let library = build(&scratch, compilers, "libours.so.c", EXTENDING, &["-shared", "-fPIC"]);
        let linked = library.to_str().expect("a path of ours");
        let program = build(&scratch, compilers, "extended.c", EXTENDED, &[linked]);
        let report = examined(&program);
        assert_eq!(report["app"]["extensions"], Value::from(vec!["MPIX_Query_cuda_support"]));
        let [problem] = problems(&report)[..] else { panic!("{report}") };
        let says = "uses extensions of its MPI (MPIX_Query_cuda_support), which ampl does not record";
        assert!(problem.contains(says), "{problem}");
        let run =
            monitor(&Job::new(mpi, 2, program, &[]), "[trace]\ntiming = \"all\"\n", Form::Run).success();
        let said = run.finished.stderr.replace("\n                        ", " ");
        assert!(said.contains(says), "{said}");
        // Not those of other libraries.
        let summary = format!("not covered         {inner}, MPIX_Query_cuda_support: extensions of this MPI");
        assert!(said.contains(&summary) && !said.contains("nothing is known to be missing"), "{said}");
    }
}

#[test]
fn what_keeps_ampl_out_is_said() {
    let scratch = Scratch::new("doctor");
    let only = |program: &Path, words: &str| {
        let report = examined(program);
        let [problem] = problems(&report)[..] else { panic!("{report}") };
        assert!(problem.contains(words), "{problem}");
        assert!(doctor(&[], Some(program)).contains(words));
    };
    let linked = build(&scratch, &["gcc", "cc"], "static.c", NO_MPI, &["-static"]);
    only(&linked, "statically linked");
    let without = build(&scratch, &["gcc", "cc"], "without.c", NO_MPI, &[]);
    only(&without, "no MPI among its libraries");
    let privileged = scratch.path().join("privileged");
    std::fs::copy(Mpi::OpenMpi.compile("counts"), &privileged).expect("it can be copied");
    std::fs::set_permissions(&privileged, std::fs::Permissions::from_mode(0o4755)).expect("it is ours");
    only(&privileged, "setuid");
    let source = "#include <mpi.h>\nint main(void) { return MPI_Init(0, 0) || MPI_Finalize(); }\n";
    let checked = build(&scratch, &["mpicc.openmpi", "mpicc"], "checked.c", source, &["-fsanitize=address"]);
    only(&checked, "wants to be loaded before ampl");
}

#[test]
fn a_library_that_is_not_found_is_named() {
    let scratch = Scratch::new("doctor");
    let own = "int MPI_Initialized(int *flag) { return *flag = 0; }\n";
    let source = scratch.write("mpi.c", own);
    let library = scratch.path().join("libmpi_gone.so.1");
    let mut compile = Command::new(program(&["gcc", "cc"]));
    compile.args(["-shared", "-fPIC", "-Wl,-soname,libmpi_gone.so.1", "-o"]).arg(&library).arg(&source);
    process::run(&mut compile, Duration::from_secs(60)).success();
    let text = "int MPI_Initialized(int *);\nint main(void) { int flag; return MPI_Initialized(&flag); }\n";
    let linked = library.to_str().expect("a path of ours");
    let program = build(&scratch, &["gcc", "cc"], "gone.c", text, &[linked]);
    std::fs::remove_file(&library).expect("it was just made");
    let report = examined(&program);
    let [problem] = problems(&report)[..] else { panic!("{report}") };
    assert!(problem.contains("does not find libmpi_gone.so.1"), "{problem}");
}

#[test]
fn scripts_get_the_libraries_of_this_machine() {
    let scratch = Scratch::new("doctor");
    let script = scratch.write("script.sh", "#!/bin/sh\nexec \"$@\"\n");
    let report = examined(&script);
    assert_eq!(report["app"]["kind"], "script or unknown");
    assert!(count(&report["mpi"]) >= 2, "{report}");
    assert_eq!(problems(&report), Vec::<&str>::new());
}
