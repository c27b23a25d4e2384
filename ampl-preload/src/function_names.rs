//! Names of functions, from the symbols in the files of their modules: for filters, once for each function.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, PoisonError};

/// Section types of symbols: all, or those for the loader.
const SYMTAB: u32 = 2;
const DYNSYM: u32 = 11;
/// Bytes of a symbol, and its type for functions.
const SYMBOL_BYTES: usize = 24;
const FUNCTION: u8 = 2;
/// Most bytes of a table that is read: files may be damaged.
const MOST_BYTES: u64 = 1 << 30;

/// The symbols of a module.
struct Symbols {
    path: String,
    symbols: Vec<u8>,
    strings: Vec<u8>,
}

/// The module that was asked for last.
static LAST: Mutex<Option<Symbols>> = Mutex::new(None);

/// Name of the function whose code begins at `offset` of the module at `path`; `None` where no symbol is there.
pub fn name(path: &str, offset: u64) -> Option<String> {
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if last.as_ref().is_none_or(|last| last.path != path) {
        *last = Some(read(path).unwrap_or_else(|| Symbols {
            path: path.to_owned(),
            symbols: Vec::new(),
            strings: Vec::new(),
        }));
    }
    last.as_ref()?.at(offset)
}

impl Symbols {
    fn at(&self, offset: u64) -> Option<String> {
        let found = self
            .symbols
            .as_chunks::<SYMBOL_BYTES>()
            .0
            .iter()
            .find(|symbol| number(*symbol, 8, 8) == Some(offset) && symbol[4] & 15 == FUNCTION)?;
        let name = self.strings.get(number(found, 0, 4)? as usize..)?;
        let end = name.iter().position(|&byte| byte == 0)?;
        Some(String::from_utf8_lossy(&name[..end]).into_owned())
    }
}

/// The number of so many bytes at `at`.
fn number(bytes: &[u8], at: usize, length: usize) -> Option<u64> {
    let mut eight = [0; 8];
    eight[..length].copy_from_slice(bytes.get(at..at.checked_add(length)?)?);
    Some(u64::from_le_bytes(eight))
}

/// The largest table of symbols in the file at `path`, and its strings.
fn read(path: &str) -> Option<Symbols> {
    let file = File::open(path).ok()?;
    let part = |at: u64, length: u64| -> Option<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(length).ok().filter(|_| length <= MOST_BYTES)?];
        file.read_exact_at(&mut bytes, at).ok()?;
        Some(bytes)
    };
    let head = part(0, 64)?;
    if !head.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let (table, entry, entries) = (number(&head, 40, 8)?, number(&head, 58, 2)?, number(&head, 60, 2)?);
    if entry < 64 {
        return None;
    }
    let sections = part(table, entry * entries)?;
    let section = |index: u64| sections.chunks(entry as usize).nth(usize::try_from(index).ok()?);
    let kind = |section: &[u8]| number(section, 4, 4).unwrap_or(0) as u32;
    let own = |wanted: u32| (0..entries).filter_map(section).find(|section| kind(section) == wanted);
    let symbols = own(SYMTAB).or_else(|| own(DYNSYM))?;
    let strings = section(number(symbols, 40, 4)?)?;
    let contents = |section: &[u8]| part(number(section, 24, 8)?, number(section, 32, 8)?);
    Some(Symbols { path: path.to_owned(), symbols: contents(symbols)?, strings: contents(strings)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_s_functions_are_found() {
        let me = std::env::current_exe().unwrap();
        let me = me.to_str().unwrap();
        let symbols = read(me).unwrap();
        let own = symbols.symbols.as_chunks::<SYMBOL_BYTES>().0.iter();
        let functions = own.filter(|symbol| symbol[4] & 15 == FUNCTION && number(*symbol, 8, 8) > Some(0));
        let some: Vec<u64> = functions.filter_map(|symbol| number(symbol, 8, 8)).take(50).collect();
        assert!(some.len() == 50 && some.iter().all(|&offset| name(me, offset).is_some()));
        assert!(symbols.strings.windows(17).any(|name| name == b"s_functions_are_f"), "names of this module");
        assert_eq!((name(me, 1), name("/nowhere", 1), name("/proc/self/status", 1)), (None, None, None));
    }

    #[test]
    fn damaged_files_have_no_names() {
        let place = tempfile::NamedTempFile::new().unwrap();
        let path = place.path().to_str().unwrap();
        let whole = std::fs::read("/proc/self/exe").unwrap();
        for length in [0, 5, 63, 64, whole.len() / 2] {
            std::fs::write(path, &whole[..length]).unwrap();
            assert!(read(path).is_none(), "{length}");
        }
        let mut wrong = whole[..4096].to_vec();
        wrong[40..64].fill(0xff);
        std::fs::write(path, wrong).unwrap();
        assert!(read(path).is_none());
    }
}
