//! Compiles the table of this MPI's handles and constants, where the feature `mpi` asks for it.

#[cfg(not(feature = "mpi"))]
fn main() {}

#[cfg(feature = "mpi")]
fn main() {
    mpi::main();
}

#[cfg(feature = "mpi")]
mod mpi {
    use std::fmt::Write as _;
    use std::path::Path;
    use std::{env, fs};

    const PREDEFINED: &str = "../ampl-core/src/mpi/predefined.rs";
    /// Constants in the order of `Constant`.
    const CONSTANTS: [&str; 7] = [
        "MPI_ANY_SOURCE",
        "MPI_ANY_TAG",
        "MPI_PROC_NULL",
        "MPI_ROOT",
        "MPI_UNDEFINED",
        "MPI_IN_PLACE",
        "MPI_UNWEIGHTED",
    ];
    /// C types of handles in the order of `ObjectKind`.
    const TYPES: [&str; 11] = [
        "MPI_Comm",
        "MPI_Datatype",
        "MPI_Op",
        "MPI_Group",
        "MPI_Info",
        "MPI_Errhandler",
        "MPI_File",
        "MPI_Win",
        "MPI_Message",
        "MPI_Session",
        "MPI_Request",
    ];

    pub fn main() {
        println!("cargo:rerun-if-changed={PREDEFINED}");
        println!("cargo:rerun-if-changed=build.rs");
        println!("cargo:rerun-if-env-changed=MPICC");
        let table = fs::read_to_string(PREDEFINED).expect("the table of predefined handles");
        let out = env::var("OUT_DIR").expect("cargo sets OUT_DIR");
        let file = Path::new(&out).join("handles.c");
        fs::write(&file, source(&names(&table))).expect("a C file in OUT_DIR");
        let library = build_probe_mpi::probe().expect("an MPI with a compiler: set MPICC");
        let mut build = cc::Build::new();
        match library.mpicc {
            Some(mpicc) => drop(build.compiler(mpicc)),
            None => drop(build.includes(&library.include_paths)),
        }
        // Old names are in the table, too.
        build.file(file).flag_if_supported("-Wno-deprecated-declarations").compile("ampl_replay_handles");
    }

    /// Names in the lines `    (Kind, "NAME"),`, in their order.
    fn names(table: &str) -> Vec<&str> {
        let rows = table.lines().filter(|line| line.starts_with("    (") && line.ends_with("\"),"));
        rows.filter_map(|line| line.split('"').nth(1)).collect()
    }

    /// Names that headers keep only to say that they are gone.
    const REMOVED: [&str; 2] = ["MPI_LB", "MPI_UB"];

    fn source(names: &[&str]) -> String {
        let mut text = String::from(
            "#include <mpi.h>\n#include <stddef.h>\n#include <stdint.h>\n\n\
             int ampl_replay_handle(int index, uintptr_t *word) {\n  switch (index) {\n",
        );
        let mut case = |index: usize, name: &str| {
            let set = format!("*word = (uintptr_t) {name}; return 1;");
            _ = writeln!(text, "#ifdef {name}\n  case {index}: {set}\n#endif");
        };
        let kept = names.iter().enumerate().filter(|(_, name)| !REMOVED.contains(name));
        kept.for_each(|(index, name)| case(index, name));
        text += "  default: return 0;\n  }\n}\n\nint ampl_replay_constant(int index, intptr_t *word) {\n  switch (index) {\n";
        for (index, name) in CONSTANTS.iter().enumerate() {
            // Some are variables, which no `#ifdef` finds.
            _ = writeln!(text, "  case {index}: *word = (intptr_t) {name}; return 1;");
        }
        text += "  default: return 0;\n  }\n}\n\nint ampl_replay_width(int kind) {\n  switch (kind) {\n";
        for (index, name) in TYPES.iter().enumerate() {
            let guard = match *name {
                "MPI_Session" => "#if MPI_VERSION >= 4\n",
                _ => "#if 1\n",
            };
            _ = writeln!(text, "{guard}  case {index}: return sizeof({name});\n#endif");
        }
        text += "  default: return sizeof(void *);\n  }\n}\n\n\
                 int ampl_replay_family(void) {\n#if defined(OPEN_MPI)\n  return 0;\n\
                 #elif defined(MPI_ABI_VERSION)\n  return 2;\n#else\n  return 1;\n#endif\n}\n";
        text
    }
}
