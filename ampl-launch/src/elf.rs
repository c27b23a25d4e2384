//! Properties of an executable file that decide whether and how ampl can be loaded into it.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ampl_core::mpi::{FUNCTIONS, Function};
use object::elf::DT_NEEDED;
use object::read::elf::{Dyn, ElfFile64, FileHeader, ProgramHeader};
use object::{Endianness, Object, ObjectSymbol, ReadCache, ReadRef, SymbolKind};

use crate::environment;

/// The functions with which MPI begins.
const BEGINNINGS: [&str; 2] = ["MPI_Init", "MPI_Init_thread"];

/// Properties of an executable file that matter to ampl.
#[derive(Clone, Debug, Default)]
pub struct Executable {
    /// A script or another format than ELF: nothing more is known.
    pub opaque: bool,
    /// No dynamic linker loads it.
    pub is_static: bool,
    /// It contains MPI itself, or at least its init functions.
    pub defines_mpi: bool,
    /// MPI functions that it defines itself, in C or Fortran, as its symbols have them.
    pub own_functions: Vec<String>,
    /// Functions among `own_functions` that ampl cannot intercept.
    pub hidden: Vec<String>,
    /// Extensions of an MPI library (`MPIX_*`) that it refers to.
    pub extensions: Vec<String>,
    /// The address sanitizer's library, if it is loaded with the program.
    pub sanitizer: Option<String>,
    /// Set-user-id, set-group-id or with file capabilities: the dynamic linker ignores LD_PRELOAD for it.
    pub set_id: bool,
}

impl Executable {
    /// Examines `path`; `None` if it cannot be read.
    pub fn read(path: &Path) -> Option<Self> {
        let file = File::open(path).ok()?;
        let set_id = file.metadata().ok()?.permissions().mode() & 0o6000 != 0 || has_capabilities(path);
        let cache = ReadCache::new(file);
        let Ok(object::File::Elf64(elf)) = object::File::parse(&cache) else {
            return Some(Self { opaque: true, set_id, ..Self::default() });
        };
        let endian = elf.endian();
        let interpreted = elf.elf_header().program_headers(endian, &cache).is_ok_and(|headers| {
            headers.iter().any(|header| header.p_type(endian) == object::elf::PT_INTERP)
        });
        // A stripped file has the first table only, a static one the second.
        let symbols = elf.dynamic_symbols().chain(elf.symbols());
        let functions = symbols.filter(|symbol| {
            symbol.is_definition() && symbol.is_global() && symbol.kind() == SymbolKind::Text
        });
        let names = functions.filter_map(|symbol| symbol.name().ok());
        let own: BTreeSet<String> = names.filter(|name| is_mpi_function(name)).map(str::to_owned).collect();
        let undefined = elf.dynamic_symbols().filter(|symbol| symbol.is_undefined());
        let taken: BTreeSet<&str> = undefined.filter_map(|symbol| symbol.name().ok()).collect();
        let contains = |name: &&str| own.contains(*name);
        // A profiling layer takes MPI's own functions from a shared library.
        let is_layer = taken.iter().any(|name| name.starts_with("PMPI_") || name.starts_with("pmpi_"));
        let defines_mpi = !is_layer && BEGINNINGS.iter().any(contains);
        // Where these call their profiling names, ampl begins and ends there.
        let goes_on = |name: &&str| taken.contains(format!("P{name}").as_str());
        let begins = BEGINNINGS.iter().any(goes_on);
        let is_seen = |name: &str| match name {
            "MPI_Finalize" => true,
            name if BEGINNINGS.contains(&name) => begins,
            _ => false,
        };
        let hidden = own.iter().filter(|name| !is_seen(name)).cloned().collect();
        let own_functions = own.into_iter().collect();
        let extensions = of_mpi(path, taken.into_iter().filter(|name| is_extension(name)).collect());
        let sanitizer = needed(&elf, &cache).into_iter().find(|name| name.starts_with("libasan.so"));
        Some(Self {
            opaque: false,
            is_static: !interpreted,
            defines_mpi,
            own_functions,
            hidden,
            extensions,
            sanitizer,
            set_id,
        })
    }

    /// Reasons why ampl may record nothing, or not all, each with a remedy.
    pub fn obstacles(&self) -> Vec<(String, &'static str)> {
        let mut found = Vec::new();
        if self.is_static {
            let what = "the program is statically linked, so ampl cannot be loaded";
            found.push((what.to_owned(), "link it dynamically"));
        }
        if self.defines_mpi {
            let own = few(&self.own_functions);
            let what = format!("the program contains MPI itself ({own}), so ampl may see no calls");
            found.push((what, "link MPI as a shared library"));
        } else if !self.hidden.is_empty() {
            let own = few(&self.hidden);
            let what = format!("the program defines {own} itself, so ampl does not see these calls");
            found.push((what, "build it without wrappers of its own"));
        }
        if !self.extensions.is_empty() {
            let names = few(&self.extensions);
            let what =
                format!("the program uses extensions of its MPI ({names}), which ampl does not record");
            found.push((what, "count their time to the program's own"));
        }
        if let Some(name) = self.sanitizer.as_ref().filter(|_| environment::checks_asan_order()) {
            let what = format!("the program will not start, for {name} wants to be loaded before ampl");
            found.push((what, "set ASAN_OPTIONS=verify_asan_link_order=0, or link with -static-libasan"));
        }
        if self.set_id {
            let what = "the program is setuid, setgid or has capabilities, so LD_PRELOAD is ignored";
            found.push((what.to_owned(), "run a copy without them"));
        }
        found
    }
}

/// Names of the libraries that the program itself asks for.
fn needed<'data, R: ReadRef<'data>>(elf: &ElfFile64<'data, Endianness, R>, data: R) -> Vec<String> {
    let (endian, sections) = (elf.endian(), elf.elf_section_table());
    let Ok(Some((entries, index))) = sections.dynamic(endian, data) else { return Vec::new() };
    let Ok(strings) = sections.strings(endian, data, index) else { return Vec::new() };
    let needed = entries.iter().filter(|entry| entry.tag(endian) == DT_NEEDED);
    let names = needed.filter_map(|entry| entry.string(endian, strings).ok());
    names.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
}

/// The first names of a list, and how many more there are.
pub fn few<T: AsRef<str>>(names: &[T]) -> String {
    const SHOWN: usize = 4;
    let shown: Vec<&str> = names.iter().take(SHOWN).map(AsRef::as_ref).collect();
    match names.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// True where `symbol` is an MPI function's name in C, or one of its spellings in Fortran.
fn is_mpi_function(symbol: &str) -> bool {
    if Function::by_name(symbol).is_some() {
        return true;
    }
    let lower = symbol.to_lowercase();
    // Other names in mixed case are the program's own.
    if !lower.starts_with("mpi_") || (symbol != lower && symbol != symbol.to_uppercase()) {
        return false;
    }
    let mut base = lower.trim_end_matches('_');
    for form in ["_large", "_f08ts", "_f08", "_fts", "_c", "_cptr"] {
        base = base.strip_suffix(form).unwrap_or(base);
    }
    FUNCTIONS.iter().any(|spec| spec.name.eq_ignore_ascii_case(base))
}

/// True where `symbol` is named like an extension of an MPI library, in C or Fortran.
fn is_extension(symbol: &str) -> bool {
    symbol.starts_with("MPIX_") || symbol.starts_with("mpix_")
}

/// Names among `extensions` that an MPI library of `program` exports: other libraries use such names, too.
fn of_mpi(program: &Path, mut extensions: BTreeSet<&str>) -> Vec<String> {
    if !extensions.is_empty()
        && let Some(libraries) = libraries(program)
    {
        let symbols = libraries.iter().filter(|path| is_mpi_library(path)).filter_map(|path| exported(path));
        let symbols: BTreeSet<String> = symbols.flatten().collect();
        extensions.retain(|name| symbols.contains(*name));
    }
    extensions.into_iter().map(str::to_owned).collect()
}

/// True where `path` is named like an MPI library.
pub fn is_mpi_library(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("lib") && name.contains("mpi")
}

/// True where the file has capabilities: it runs with more than the user's own rights.
fn has_capabilities(path: &Path) -> bool {
    let mut value = [0; 64];
    rustix::fs::getxattr(path, "security.capability", &mut value[..]).is_ok_and(|length| length > 0)
}

/// The libraries that the dynamic linker would load for `program`, as `ldd` lists them; absent without `ldd`.
pub fn libraries(program: &Path) -> Option<Vec<PathBuf>> {
    Some(ldd_paths(&ldd(program)?))
}

/// Names of the libraries that the dynamic linker would not find for `program`; none without `ldd`.
pub fn missing_libraries(program: &Path) -> Vec<String> {
    ldd(program).map(|output| ldd_missing(&output)).unwrap_or_default()
}

fn ldd(program: &Path) -> Option<String> {
    let program = std::path::absolute(program).ok()?;
    let mut ldd = Command::new("ldd");
    // What the user has preloaded may need an MPI that a shell lacks.
    ldd.arg(program).stdin(Stdio::null()).stderr(Stdio::null()).env_remove(environment::PRELOAD);
    let output = ldd.output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

// "	libm.so.6 => /lib/libm.so.6 (0x…)"; lines without "=>" name the loader or nothing.
fn ldd_paths(output: &str) -> Vec<PathBuf> {
    let path = |line: &str| {
        let found = line.split_once(" => ")?.1.split(" (0x").next()?.trim();
        found.starts_with('/').then(|| PathBuf::from(found))
    };
    output.lines().filter_map(path).collect()
}

fn ldd_missing(output: &str) -> Vec<String> {
    let missing = |line: &str| Some(line.trim().strip_suffix(" => not found")?.to_owned());
    output.lines().filter_map(missing).collect()
}

/// Names of the functions and objects that `library` defines for others.
pub fn exported(library: &Path) -> Option<BTreeSet<String>> {
    let cache = ReadCache::new(File::open(library).ok()?);
    let file = object::File::parse(&cache).ok()?;
    let defined = file.dynamic_symbols().filter(|symbol| symbol.is_definition());
    Some(defined.filter_map(|symbol| symbol.name().ok().map(str::to_owned)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_test_is_dynamic_and_without_mpi() {
        let me = Executable::read(&std::env::current_exe().unwrap()).unwrap();
        assert!(!me.opaque && !me.is_static && !me.defines_mpi && !me.set_id);
        assert!(me.own_functions.is_empty() && me.obstacles().is_empty());
    }

    #[test]
    fn mpi_functions_are_known_in_every_spelling() {
        for name in [
            "MPI_Send",
            "MPI_Send_c",
            "mpi_send_",
            "mpi_send__",
            "mpi_send",
            "MPI_SEND",
            "mpi_send_f08_",
            "mpi_send_c_f08ts_",
            "mpi_send_f08ts_large_",
            "mpi_send_fts_",
            "mpi_alloc_mem_cptr_",
        ] {
            assert!(is_mpi_function(name), "{name}");
        }
        for name in ["MPI_Helper", "mpi_helper_", "Mpi_send", "PMPI_Send", "mpi_", "send"] {
            assert!(!is_mpi_function(name), "{name}");
        }
    }

    #[test]
    fn few_names_are_named() {
        assert_eq!(few(&["a", "b"]), "a, b");
        assert_eq!(few(&["a", "b", "c", "d", "e", "f"]), "a, b, c, d and 2 more");
    }

    #[test]
    fn scripts_are_opaque_and_set_id_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("script");
        std::fs::write(&script, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o4755)).unwrap();
        let read = Executable::read(&script).unwrap();
        assert!(read.opaque && read.set_id && !read.is_static);
        assert_eq!(read.obstacles().len(), 1);
        assert!(Executable::read(&dir.path().join("absent")).is_none());
    }

    #[test]
    fn ldd_output_is_read() {
        let output = "\tlinux-vdso.so.1 (0x00007ffe)\n\tlibmpi.so.40 => /usr/lib/libmpi.so.40 (0x00007f)\n\
                      \tlibgone.so => not found\n\t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n";
        assert_eq!(ldd_paths(output), [PathBuf::from("/usr/lib/libmpi.so.40")]);
        assert_eq!(ldd_missing(output), ["libgone.so"]);
    }
}
