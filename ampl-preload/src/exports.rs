//! This library's own exported names, to be hidden from the dynamic linker and shown again.
//!
//! A symbol whose value is 0 is passed over in every search (ELF gABI, "symbol values"; glibc checks
//! for it), so hiding is writing one word of our own symbol table.

use std::ffi::{CStr, c_char};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::resolve::{DT_STRTAB, DT_SYMTAB, ElfSymbol, own_module};

const DT_GNU_HASH: u64 = 0x6fff_fef5;

/// Some of the functions in this library's symbol table.
pub struct Exports {
    /// Name, place of its value, and the value.
    symbols: Vec<(&'static CStr, &'static AtomicU64, u64)>,
}

impl Exports {
    /// The exported functions whose name is `wanted`; `None` if there is none, the loader's records are not as expected, or
    /// not to be written.
    pub fn find(wanted: impl Fn(&[u8]) -> bool) -> Option<Self> {
        let module = own_module()?;
        let (strings, table, hash) =
            (module.table(DT_STRTAB)?, module.table(DT_SYMTAB)?, module.table(DT_GNU_HASH)?);
        // SAFETY: the loader itself reads these tables, whose extent the hash table tells.
        let symbols = unsafe { exported(strings, table, hash, wanted) };
        let (first, last) = (symbols.first()?.1, symbols.last()?.1);
        writable(std::ptr::from_ref(first) as usize, std::ptr::from_ref(last) as usize)
            .then_some(Self { symbols })
    }

    /// Shows the functions for which `has` is true, hides the others.
    pub fn show(&self, has: impl Fn(&CStr) -> bool) {
        for &(name, place, value) in &self.symbols {
            place.store(if has(name) { value } else { 0 }, Ordering::Release);
        }
    }
}

/// # Safety
/// The addresses must be those of a loaded module's string, symbol and hash tables.
unsafe fn exported(
    strings: u64,
    table: u64,
    hash: u64,
    wanted: impl Fn(&[u8]) -> bool,
) -> Vec<(&'static CStr, &'static AtomicU64, u64)> {
    // SAFETY: the caller's promise, and so on for what follows.
    let word = |at: usize| unsafe { (hash as *const u32).add(at).read() };
    let (buckets, first, bloom) = (word(0) as usize, word(1) as usize, word(2) as usize);
    let chains = 4 + bloom * 2 + buckets;
    let last_chain = (0..buckets).map(|bucket| word(4 + bloom * 2 + bucket) as usize).max().unwrap_or(0);
    let mut end = last_chain.max(first);
    while last_chain >= first && word(chains + end - first) & 1 == 0 {
        end += 1;
    }
    let mut found = Vec::new();
    for index in first..=end {
        // SAFETY: as above: the hash table ends with the symbol table.
        let symbol = unsafe { (table as *const ElfSymbol).add(index) };
        // SAFETY: as above.
        let (name, value) = unsafe {
            let name = CStr::from_ptr((strings as *const c_char).add((*symbol).name as usize));
            (name, &*(&raw const (*symbol).value).cast::<AtomicU64>())
        };
        if wanted(name.to_bytes()) && value.load(Ordering::Relaxed) != 0 {
            found.push((name, value, value.load(Ordering::Relaxed)));
        }
    }
    found.sort_by_key(|&(_, place, _)| std::ptr::from_ref(place) as usize);
    found
}

/// Makes the pages from `first` to `last` writable: private copies of this process.
fn writable(first: usize, last: usize) -> bool {
    // SAFETY: only asks for the size.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
    let start = first & !(page - 1);
    let length = last + size_of::<ElfSymbol>() - start;
    // SAFETY: pages of our own file; reading them stays allowed.
    unsafe { libc::mprotect(start as *mut libc::c_void, length, libc::PROT_READ | libc::PROT_WRITE) == 0 }
}
