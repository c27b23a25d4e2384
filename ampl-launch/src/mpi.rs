//! MPI libraries, and which of the functions that ampl wraps they lack.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ampl_core::mpi::{FUNCTIONS, Function};
use serde::Serialize;

use crate::{elf, environment};

/// One MPI library.
#[derive(Debug, Serialize)]
pub struct MpiLibrary {
    /// Its file.
    pub path: PathBuf,
    /// `Open MPI`, `MPICH`, `MPI-5 ABI` or `unknown`.
    pub implementation: &'static str,
    /// Functions of ampl's table that it has.
    pub functions: usize,
    /// Functions in ampl's table.
    pub known: usize,
    /// Functions of the table that it lacks.
    pub missing: Vec<&'static str>,
    /// Functions that it has under a profiling name too.
    pub profiled: usize,
    /// Profiled functions that ampl does not wrap.
    pub unwrapped: Vec<String>,
}

impl MpiLibrary {
    /// Lines about the library: its file, and which of its functions are wrapped.
    pub fn lines(&self) -> Vec<String> {
        const ALL: &str = "(--json names all)";
        let (wrapped, profiled) = (self.profiled - self.unwrapped.len(), self.profiled);
        let mut lines = vec![
            format!("{} ({})", self.path.display(), self.implementation),
            format!("{wrapped} of its {profiled} functions with a profiling twin are wrapped"),
        ];
        if !self.unwrapped.is_empty() {
            lines.push(format!("not wrapped: {} {ALL}", elf::few(&self.unwrapped)));
        }
        if !self.missing.is_empty() {
            let (count, known) = (self.missing.len(), self.known);
            lines.push(format!("{count} functions of {known} that ampl knows are absent {ALL}:"));
            lines.push(elf::few(&self.missing));
            lines.push("a program that looks for them by dlsym or weak symbols finds ampl's,".into());
            lines.push("which return an error".into());
        }
        lines
    }
}

/// A library with Fortran bindings.
#[derive(Debug, Serialize)]
pub struct FortranLibrary {
    /// Its file.
    pub path: PathBuf,
    /// Symbols that `libampl.so` wraps; each function has one per spelling.
    pub wrapped: usize,
}

/// MPI libraries that a program links.
#[derive(Debug, Default)]
pub struct Linked {
    /// The MPI libraries.
    pub mpi: Vec<MpiLibrary>,
    /// Libraries that hold Fortran bindings apart.
    pub fortran: Vec<FortranLibrary>,
    /// Names of MPI libraries that the dynamic linker does not find.
    pub missing: Vec<String>,
}

/// The MPI libraries among those of `program`; `wrapped` is what `libampl.so` exports.
pub fn of_program(program: &Path, wrapped: &BTreeSet<String>) -> Linked {
    let mut linked = Linked { missing: elf::missing_libraries(program), ..Linked::default() };
    linked.missing.retain(|name| name.contains("mpi"));
    for path in elf::libraries(program).unwrap_or_default() {
        match examine(&path) {
            Some(library) => linked.mpi.push(library),
            None => linked.fortran.extend(examine_fortran(&path, wrapped)),
        }
    }
    linked
}

/// The MPI libraries in the usual places and on LD_LIBRARY_PATH, links to one file counted once.
pub fn installed() -> Vec<MpiLibrary> {
    let dirs = library_directories();
    let entries = dirs.iter().filter_map(|dir| dir.read_dir().ok()).flatten().flatten();
    let named = entries.filter(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        ["libmpi.so", "libmpich.so", "libmpi_abi.so"].iter().any(|stem| name.starts_with(stem))
    });
    let files: BTreeSet<PathBuf> = named.filter_map(|entry| entry.path().canonicalize().ok()).collect();
    files.iter().filter_map(|path| examine(path)).collect()
}

/// LD_LIBRARY_PATH and the usual places.
pub fn library_directories() -> Vec<PathBuf> {
    let mut dirs = environment::library_path();
    for root in ["/usr/local/lib", "/usr/lib64", "/usr/lib", "/lib"] {
        dirs.push(root.into());
        // Debian keeps libraries one level down, by machine.
        dirs.extend(
            ["x86_64", "aarch64"].map(|machine| Path::new(root).join(format!("{machine}-linux-gnu"))),
        );
    }
    dirs
}

/// Examines `path`; `None` unless it holds Fortran bindings of MPI.
fn examine_fortran(path: &Path, wrapped: &BTreeSet<String>) -> Option<FortranLibrary> {
    if !path.file_name()?.to_string_lossy().contains("mpi") {
        return None;
    }
    let symbols = elf::exported(path)?;
    let wrapped = symbols.iter().filter(|name| name.starts_with("mpi_") && wrapped.contains(*name)).count();
    (wrapped > 0).then(|| FortranLibrary { path: path.to_owned(), wrapped })
}

/// Examines `path`; `None` unless it is an MPI library.
fn examine(path: &Path) -> Option<MpiLibrary> {
    if !elf::is_mpi_library(path) {
        return None;
    }
    let name = path.file_name()?.to_string_lossy();
    let symbols = elf::exported(path).filter(|symbols| symbols.contains("MPI_Init"))?;
    let missing: Vec<&str> =
        FUNCTIONS.iter().map(|spec| spec.name).filter(|name| !symbols.contains(*name)).collect();
    let implementation = if symbols.contains("ompi_mpi_comm_world") {
        "Open MPI"
    } else if name.starts_with("libmpi_abi.") {
        "MPI-5 ABI"
    } else if symbols.iter().any(|symbol| symbol.starts_with("MPIR_") || symbol.starts_with("MPICH_")) {
        "MPICH"
    } else {
        "unknown"
    };
    let functions = FUNCTIONS.len() - missing.len();
    let in_c = |name: &str| name.starts_with("MPI") && name.contains(|letter: char| letter.is_lowercase());
    // Open MPI names its Fortran functions so once more; no compiler calls them.
    let inner = |name: &str| name.ends_with("_f") || name.ends_with("_f08");
    let profiled: Vec<&String> = symbols
        .iter()
        .filter(|name| in_c(name) && !inner(name) && symbols.contains(&format!("P{name}")))
        .collect();
    let unwrapped: Vec<String> = profiled
        .iter()
        .filter(|name| Function::by_name(name).is_none())
        .map(|name| (*name).clone())
        .collect();
    Some(MpiLibrary {
        path: path.to_owned(),
        implementation,
        functions,
        known: FUNCTIONS.len(),
        missing,
        profiled: profiled.len(),
        unwrapped,
    })
}
