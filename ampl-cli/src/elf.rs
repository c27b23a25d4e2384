//! What an executable file tells about whether and how ampl can be loaded into it.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use object::read::elf::{FileHeader, ProgramHeader};
use object::{Object, ObjectSymbol, ReadCache};

/// What matters about an executable file.
#[derive(Clone, Debug, Default)]
pub struct Executable {
    /// A script or another format than ELF: nothing more is known.
    pub opaque: bool,
    /// No dynamic linker loads it.
    pub is_static: bool,
    /// It contains MPI itself.
    pub defines_mpi: bool,
    /// The dynamic linker ignores LD_PRELOAD for it.
    pub set_id: bool,
}

impl Executable {
    /// What `path` is; absent if it cannot be read.
    pub fn read(path: &Path) -> Option<Self> {
        let file = File::open(path).ok()?;
        let set_id = file.metadata().ok()?.permissions().mode() & 0o6000 != 0;
        let cache = ReadCache::new(file);
        let Ok(object::File::Elf64(elf)) = object::File::parse(&cache) else {
            return Some(Self { opaque: true, set_id, ..Self::default() });
        };
        let endian = elf.endian();
        let interpreted = elf.elf_header().program_headers(endian, &cache).is_ok_and(|headers| {
            headers.iter().any(|header| header.p_type(endian) == object::elf::PT_INTERP)
        });
        let init = |symbol: &object::read::elf::ElfSymbol64<'_, '_, _, _>| {
            symbol.is_definition()
                && symbol.name().is_ok_and(|name| name == "MPI_Init" || name == "MPI_Init_thread")
        };
        let defines_mpi = elf.dynamic_symbols().chain(elf.symbols()).any(|symbol| init(&symbol));
        Some(Self { opaque: false, is_static: !interpreted, defines_mpi, set_id })
    }

    /// Reasons why ampl may see nothing, each with what to do.
    pub fn obstacles(&self) -> Vec<(&'static str, &'static str)> {
        let mut found = Vec::new();
        if self.is_static {
            found.push(("the program is statically linked, so ampl cannot be loaded", "link it dynamically"));
        }
        if self.defines_mpi {
            found.push((
                "the program contains MPI itself, so ampl may see no calls",
                "link MPI as a shared library",
            ));
        }
        if self.set_id {
            found.push((
                "the program is setuid or setgid, so LD_PRELOAD is ignored",
                "run a copy without that bit",
            ));
        }
        found
    }
}

/// The libraries that the dynamic linker would load for `program`, as `ldd` lists them; absent without `ldd`.
pub fn libraries(program: &Path) -> Option<Vec<PathBuf>> {
    let program = std::path::absolute(program).ok()?;
    let output = Command::new("ldd").arg(program).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    Some(ldd_paths(&String::from_utf8_lossy(&output.stdout)))
}

// "	libm.so.6 => /lib/libm.so.6 (0x…)"; lines without "=>" name the loader or nothing.
fn ldd_paths(output: &str) -> Vec<PathBuf> {
    let path = |line: &str| {
        let found = line.split_once(" => ")?.1.split(" (0x").next()?.trim();
        found.starts_with('/').then(|| PathBuf::from(found))
    };
    output.lines().filter_map(path).collect()
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
        assert!(me.obstacles().is_empty());
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
    }
}
