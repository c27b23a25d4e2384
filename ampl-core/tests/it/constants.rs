//! Values of MPI's constants are those that each `mpi.h` on this machine gives them.

use std::collections::HashSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ampl_core::mpi::constants::{AbiFamily, Set};

const SETS: [Set; 17] = [
    Set::SplitType,
    Set::Comparison,
    Set::Topology,
    Set::WindowAssert,
    Set::FileMode,
    Set::Seek,
    Set::LockType,
    Set::Combiner,
    Set::TypeClass,
    Set::Order,
    Set::Distribution,
    Set::ThreadLevel,
    Set::WindowFlavor,
    Set::WindowModel,
    Set::Keyval,
    Set::ErrorClass,
    Set::Special,
];

/// Errors of the compiler for a program that asserts every constant of `family`; `None` where there is no such
/// compiler.
fn complaints(compiler: &Path, family: AbiFamily) -> Option<String> {
    let mut command = Command::new(compiler);
    command.args(["-fsyntax-only", "-std=c11", "-w", "-fmax-errors=0", "-x", "c", "-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).env("LC_ALL", "C");
    let mut child = command.spawn().ok()?;
    let mut program = String::from("#include <mpi.h>\n");
    for (name, value) in SETS.iter().flat_map(|set| set.of(family)) {
        program.push_str(&format!("_Static_assert(({name}) == ({value}), \"{name} is another\");\n"));
    }
    child.stdin.take().expect("it is piped").write_all(program.as_bytes()).expect("the compiler reads");
    let output = child.wait_with_output().expect("the compiler ends");
    Some(String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn constants_are_as_in_each_header() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/mpi-abi/bin");
    let compilers = [
        (PathBuf::from("mpicc.openmpi"), AbiFamily::OpenMpi),
        (PathBuf::from("mpicc.mpich"), AbiFamily::Mpich),
        (own.join("mpicc"), AbiFamily::Mpich),
        (own.join("mpicc_abi"), AbiFamily::Standard),
    ];
    for (compiler, family) in compilers {
        let Some(complaints) = complaints(&compiler, family) else {
            eprintln!("skipped: {} is not here", compiler.display());
            continue;
        };
        assert!(!complaints.contains("is another"), "{}:\n{complaints}", compiler.display());
        // Constants of a later version than the header's, and those that it has no more.
        let names: HashSet<&str> = SETS.iter().flat_map(|set| set.of(family)).map(|(name, _)| name).collect();
        let lacking =
            names.iter().filter(|name| complaints.contains(&format!("'{name}' undeclared"))).count();
        assert!(lacking * 5 < names.len(), "{}:\n{complaints}", compiler.display());
    }
}
