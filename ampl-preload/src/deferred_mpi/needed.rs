//! Libraries that an ELF file needs, read before the loader does.

use std::collections::HashSet;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::libraries::is_library_of_mpi;

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const DT_NEEDED: u64 = 1;
const DT_STRTAB: u64 = 5;
const DT_RPATH: u64 = 15;
const DT_RUNPATH: u64 = 29;
/// More program headers or dynamic entries than this are no library's.
const MOST: u64 = 4096;
/// Libraries that one library needs, in turn too: of more it is not known what they bring.
const MOST_FILES: usize = 1024;
/// The loader's list of libraries.
const CACHE: &str = "/etc/ld.so.cache";
/// Directories in which it looks at last.
const DEFAULT: [&str; 4] = ["/lib64", "/usr/lib64", "/lib", "/usr/lib"];

/// A module's own search path, and whether `LD_LIBRARY_PATH` comes before it (`DT_RUNPATH`).
type SearchPath = Option<(String, bool)>;

/// A module's needs, for the loader.
#[derive(Debug, PartialEq, Eq)]
pub struct Needs {
    /// Its `DT_NEEDED` names.
    pub names: Vec<String>,
    /// The module's own search path.
    paths: SearchPath,
    directory: PathBuf,
}

/// Needs of the file at `path`; `None` if it is no readable 64-bit ELF file, or a name that the loader must search.
pub fn by_file(path: &Path) -> Option<Needs> {
    if !path.to_string_lossy().contains('/') {
        return None;
    }
    let directory = path.canonicalize().ok()?.parent()?.to_owned();
    let (names, paths) = Image(File::open(path).ok()?).needed()?;
    Some(Needs { names, paths, directory })
}

/// True where the loader, asked for `path`, loads a library of MPI: because the file needs one, or libraries that it needs
/// do. Those that are `loaded` have theirs already. What cannot be found or read is not loaded either.
pub fn brings_mpi(path: &Path, loaded: &[String]) -> bool {
    let is_loaded = |name: &str| loaded.iter().any(|path| path.rsplit('/').next() == Some(name));
    let mut seen = HashSet::new();
    let mut files: Vec<PathBuf> = located(path).into_iter().collect();
    while let Some(file) = files.pop() {
        let Some(needs) = by_file(&file) else { continue };
        for name in &needs.names {
            if is_library_of_mpi(name) || seen.len() == MOST_FILES {
                return true;
            }
            if !is_loaded(name) && seen.insert(name.clone()) {
                files.extend(needs.find(name).and_then(|found| located(&found)));
            }
        }
    }
    false
}

/// The file that the loader finds for `path`: itself, or where its name is searched.
fn located(path: &Path) -> Option<PathBuf> {
    let name = path.to_str()?;
    if name.contains('/') {
        return Some(path.to_owned());
    }
    let preferred = std::env::var("LD_LIBRARY_PATH").unwrap_or_default();
    let preferred: Vec<&str> = preferred.split([':', ';']).filter(|part| !part.is_empty()).collect();
    let within = |directories: &[&str]| {
        directories.iter().map(|directory| Path::new(directory).join(name)).find(|path| path.is_file())
    };
    within(&preferred).or_else(|| in_cache(&fs::read(CACHE).ok()?, name)).or_else(|| within(&DEFAULT))
}

/// The path of the library `name` in the loader's `cache`, whose texts end in 0.
fn in_cache(cache: &[u8], name: &str) -> Option<PathBuf> {
    let end = format!("/{name}\0");
    let at = cache.windows(end.len()).position(|part| part == end.as_bytes())?;
    let start = cache[..at].iter().rposition(|&byte| byte == 0)? + 1;
    let path = PathBuf::from(std::str::from_utf8(&cache[start..at + end.len() - 1]).ok()?);
    path.is_absolute().then_some(path)
}

impl Needs {
    /// Path of the library `name` as the loader would find it for this module: a path where the module's own search
    /// path has it, else the name; `None` where that is unknown.
    pub fn find(&self, name: &str) -> Option<PathBuf> {
        let Some((paths, late)) = &self.paths else { return Some(name.into()) };
        let before = if *late { std::env::var("LD_LIBRARY_PATH").unwrap_or_default() } else { String::new() };
        for part in before.split([':', ';']).chain(paths.split(':')).filter(|part| !part.is_empty()) {
            let origin = self.directory.to_string_lossy();
            let part = part.replace("${ORIGIN}", &origin).replace("$ORIGIN", &origin);
            if part.contains('$') {
                return None;
            }
            let path = Path::new(&part).join(name);
            if path.is_file() {
                return Some(path);
            }
        }
        Some(name.into())
    }
}

struct Image(File);

impl Image {
    fn bytes<const N: usize>(&self, at: u64) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        self.0.read_exact_at(&mut bytes, at).ok()?;
        Some(bytes)
    }

    fn u16(&self, at: u64) -> Option<u64> {
        self.bytes(at).map(|bytes| u64::from(u16::from_le_bytes(bytes)))
    }

    fn u32(&self, at: u64) -> Option<u32> {
        self.bytes(at).map(u32::from_le_bytes)
    }

    fn u64(&self, at: u64) -> Option<u64> {
        self.bytes(at).map(u64::from_le_bytes)
    }

    fn needed(&self) -> Option<(Vec<String>, SearchPath)> {
        // The identification says 64 bits, little-endian.
        if self.bytes::<6>(0)? != *b"\x7fELF\x02\x01" {
            return None;
        }
        let (headers, size, count) = (self.u64(32)?, self.u16(54)?, self.u16(56)?.min(MOST));
        let header = |index: u64| headers.checked_add(index * size);
        let mut segments = Vec::new();
        let mut dynamic = None;
        for at in (0..count).map(header) {
            let at = at?;
            let (kind, offset, address, length) =
                (self.u32(at)?, self.u64(at + 8)?, self.u64(at + 16)?, self.u64(at + 32)?);
            match kind {
                PT_LOAD => segments.push((address, length, offset)),
                PT_DYNAMIC => dynamic = Some((offset, length)),
                _ => {}
            }
        }
        let (offset, length) = dynamic?;
        let mut entries = Vec::new();
        for index in 0..(length / 16).min(MOST) {
            let at = offset.checked_add(index * 16)?;
            entries.push((self.u64(at)?, self.u64(at + 8)?));
        }
        let strings = entries.iter().find(|(tag, _)| *tag == DT_STRTAB)?.1;
        let &(address, _, start) = segments
            .iter()
            .find(|(address, length, _)| strings.checked_sub(*address).is_some_and(|into| into < *length))?;
        let strings = start.checked_add(strings - address)?;
        let texts = |wanted: u64| -> Option<Vec<String>> {
            let found = entries.iter().filter(|(tag, _)| *tag == wanted);
            found.map(|(_, name)| self.text(strings.checked_add(*name)?)).collect()
        };
        let paths = match texts(DT_RUNPATH)?.pop() {
            Some(runpath) => Some((runpath, true)),
            None => texts(DT_RPATH)?.pop().map(|rpath| (rpath, false)),
        };
        Some((texts(DT_NEEDED)?, paths))
    }

    fn text(&self, at: u64) -> Option<String> {
        let mut bytes = [0; 4096];
        let read = self.0.read_at(&mut bytes, at).ok()?;
        let end = bytes[..read].iter().position(|&byte| byte == 0)?;
        Some(String::from_utf8_lossy(&bytes[..end]).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolve::loaded_modules;

    #[test]
    fn a_program_needs_its_c_library() {
        let own = std::env::current_exe().expect("the test itself");
        let needed = by_file(&own).expect("an ELF file");
        assert!(needed.names.iter().any(|name| name.starts_with("libc.so")), "{needed:?}");
    }

    #[test]
    fn a_module_is_searched_where_it_says() {
        let scratch = tempfile::tempdir().expect("a temporary directory");
        let here = scratch.path().to_owned();
        std::fs::create_dir_all(here.join("lib")).expect("a writable temporary directory");
        std::fs::write(here.join("lib/libmpi.so.40"), "").expect("as above");
        let needs = |paths: Option<&str>| Needs {
            names: Vec::new(),
            paths: paths.map(|paths| (paths.to_owned(), false)),
            directory: here.clone(),
        };
        let name = "libmpi.so.40";
        assert_eq!(needs(None).find(name), Some(name.into()));
        assert_eq!(needs(Some("/none:$ORIGIN/lib")).find(name), Some(here.join("lib").join(name)));
        assert_eq!(needs(Some("${ORIGIN}")).find(name), Some(name.into()));
        assert_eq!(needs(Some("/none/$LIB")).find(name), None);
    }

    #[test]
    fn libraries_are_found_as_the_loader_finds_them() {
        let cache = b"glibc-ld.so.cache1.1\0libz.so.1\0/lib/x/libz.so.1\0libmpi.so.40\0/opt/a/libmpi.so.40\0";
        assert_eq!(in_cache(cache, "libmpi.so.40"), Some("/opt/a/libmpi.so.40".into()));
        assert_eq!(in_cache(cache, "libz.so"), None);
        assert_eq!(in_cache(&[], "libz.so.1"), None);
        // What it needs is loaded, found, or not there; none of it is MPI.
        let own = std::env::current_exe().expect("the test itself");
        assert!(!brings_mpi(&own, &loaded_modules()) && !brings_mpi(&own, &[]));
        assert!(!brings_mpi(Path::new("libresolv.so.2"), &[]) && !brings_mpi(Path::new("libnone.so.1"), &[]));
    }

    #[test]
    fn other_files_need_nothing_known() {
        let here = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        assert_eq!(by_file(Path::new(here)), None);
        assert_eq!(by_file(Path::new("libmpi.so.40")), None);
    }
}
