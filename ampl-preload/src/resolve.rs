//! Modules of code addresses.

use std::borrow::Cow;
use std::ffi::{CStr, OsStr, c_char};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::environment::escaped;

/// The beginning of the loader's `struct link_map`.
#[repr(C)]
struct LinkMap {
    /// Difference of a loaded address and the file's.
    address: u64,
    name: *const libc::c_char,
    dynamic: *const [u64; 2],
}

/// `Elf64_Sym`
#[repr(C)]
pub struct ElfSymbol {
    /// Where its name begins in the table of strings.
    pub name: u32,
    /// Kind and binding.
    pub info: u8,
    /// Visibility.
    pub other: u8,
    /// Number of the section that defines it; 0 if the module does not.
    pub section: u16,
    /// Its address, as the file counts.
    pub value: u64,
    /// Bytes of the named object.
    pub size: u64,
}

/// `Elf64_Rela`
#[repr(C)]
struct Relocation {
    place: u64,
    /// The symbol's index in the upper half.
    info: u64,
    addend: i64,
}

pub const DT_STRTAB: u64 = 5;
pub const DT_SYMTAB: u64 = 6;
const DT_PLTRELSZ: u64 = 2;
const DT_RELA: u64 = 7;
const DT_RELASZ: u64 = 8;
const DT_JMPREL: u64 = 23;

/// A loaded module.
#[derive(Clone, Copy, Debug)]
pub struct Module {
    /// Difference of a loaded address and the file's.
    pub base: u64,
    dynamic: *const [u64; 2],
}

impl Module {
    /// Its dynamic section: tags and values.
    pub fn dynamic(self) -> impl Iterator<Item = (u64, u64)> {
        let mut at = self.dynamic;
        std::iter::from_fn(move || {
            // SAFETY: the loader's own pointer to a section that ends with tag 0.
            let [tag, value] = unsafe { at.read() };
            // SAFETY: not the last entry, or this is not reached.
            (tag != 0).then(|| unsafe {
                at = at.add(1);
                (tag, value)
            })
        })
    }

    /// Address of the table that its dynamic section has under `tag`.
    pub fn table(self, tag: u64) -> Option<u64> {
        let found = self.dynamic().find(|&(have, _)| have == tag)?.1;
        // The loader turns most of these into addresses in place.
        Some(if found < self.base { found + self.base } else { found })
    }

    /// Names of the symbols that it takes from other modules and for which `wanted` is true, as often as it does.
    ///
    /// Read from its relocations: each taken symbol has one, while the symbol table's length is recorded nowhere.
    pub fn taken(self, wanted: fn(&[u8]) -> bool) -> Vec<String> {
        let (Some(strings), Some(symbols)) = (self.table(DT_STRTAB), self.table(DT_SYMTAB)) else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for (table, bytes) in [(DT_JMPREL, DT_PLTRELSZ), (DT_RELA, DT_RELASZ)] {
            let bytes = self.dynamic().find(|&(have, _)| have == bytes);
            let (Some(table), Some((_, bytes))) = (self.table(table), bytes) else { continue };
            // SAFETY: the loader reads these tables itself, which stay as long as the module is loaded.
            let relocations = unsafe {
                std::slice::from_raw_parts(
                    table as *const Relocation,
                    bytes as usize / size_of::<Relocation>(),
                )
            };
            let named =
                relocations.iter().map(|relocation| relocation.info >> 32).filter(|&index| index != 0);
            found.extend(named.filter_map(|index| {
                // SAFETY: as above: a relocation names a symbol of the module's.
                let (section, name) = unsafe {
                    let symbol = &*(symbols as *const ElfSymbol).add(index as usize);
                    (symbol.section, CStr::from_ptr((strings as *const c_char).add(symbol.name as usize)))
                };
                (section == 0 && wanted(name.to_bytes())).then(|| name.to_string_lossy().into_owned())
            }));
        }
        found
    }
}

/// This library.
pub fn own_module() -> Option<Module> {
    let map = link_map(own_module as *const () as u64)?;
    // SAFETY: the loader's own record of a module that is loaded.
    let map = unsafe { &*map };
    (!map.dynamic.is_null()).then_some(Module { base: map.address, dynamic: map.dynamic })
}

/// Paths of all loaded modules but the main program.
pub fn loaded_modules() -> Vec<String> {
    let mut found = Vec::new();
    each_module(&mut |path, _| {
        if !path.is_empty() {
            found.push(path.into_owned());
        }
    });
    found
}

/// Called by [`each_module`] with a path and a module.
type Visit<'a> = &'a mut dyn FnMut(Cow<'_, str>, Module);

/// Calls `visit` with all loaded modules and their paths; that of the main program is empty. No module is unloaded
/// meanwhile.
pub fn each_module(mut visit: Visit) {
    unsafe extern "C" fn step(info: *mut libc::dl_phdr_info, _: usize, visit: *mut libc::c_void) -> i32 {
        // SAFETY: the loader passes its record with that many headers, and `visit` is the closure below.
        let (info, headers, name, visit) = unsafe {
            let info = &*info;
            let headers = std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum));
            (info, headers, CStr::from_ptr(info.dlpi_name), &mut *visit.cast::<Visit>())
        };
        if let Some(dynamic) = headers.iter().find(|header| header.p_type == libc::PT_DYNAMIC) {
            let dynamic = (info.dlpi_addr + dynamic.p_vaddr) as *const [u64; 2];
            visit(name.to_string_lossy(), Module { base: info.dlpi_addr, dynamic });
        }
        0
    }
    // SAFETY: the callback gets a pointer to the closure and keeps nothing.
    unsafe { libc::dl_iterate_phdr(Some(step), (&raw mut visit).cast()) };
}

fn link_map(address: u64) -> Option<*const LinkMap> {
    const LINK_MAP: libc::c_int = 2; // RTLD_DL_LINKMAP
    let mut map: *mut LinkMap = std::ptr::null_mut();
    // SAFETY: an all-zero Dl_info is valid, and dladdr1 only fills it and the pointer.
    let found = unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        libc::dladdr1(address as *const libc::c_void, &mut info, (&raw mut map).cast(), LINK_MAP)
    };
    (found != 0 && !map.is_null()).then_some(map.cast_const())
}

/// A module's code: its place, the difference to its file's addresses, and its path.
#[derive(Debug)]
struct Mapped {
    start: u64,
    end: u64,
    base: u64,
    path: String,
}

/// The modules known, and how many had been loaded and unloaded by then.
static MAPPED: Mutex<(Vec<Mapped>, (u64, u64))> = Mutex::new((Vec::new(), (0, 0)));

/// Path of the module that holds `address`, and the address as its file counts; an empty path if none does.
pub fn module(address: u64) -> (String, u64) {
    let mut known = MAPPED.lock().unwrap_or_else(PoisonError::into_inner);
    let find = |known: &[Mapped]| {
        let found = known.iter().find(|mapped| (mapped.start..mapped.end).contains(&address))?;
        Some((found.path.clone(), address - found.base))
    };
    // Not dladdr: it looks for the nearest symbol, through all of them.
    // An unloaded module may have left its place to another.
    let changes = changes();
    if known.1 != changes {
        *known = (mapped(), changes);
    }
    find(&known.0).unwrap_or((String::new(), address))
}

/// How many modules have been loaded so far, and how many unloaded.
pub fn changes() -> (u64, u64) {
    unsafe extern "C" fn first(info: *mut libc::dl_phdr_info, _: usize, out: *mut libc::c_void) -> i32 {
        // SAFETY: the loader passes its record, and `out` is the pair below.
        unsafe { *out.cast::<(u64, u64)>() = ((*info).dlpi_adds, (*info).dlpi_subs) };
        1
    }
    let mut changes = (0u64, 0u64);
    // SAFETY: the callback gets a pointer to the numbers and keeps nothing.
    unsafe { libc::dl_iterate_phdr(Some(first), (&raw mut changes).cast()) };
    changes
}

/// The segments of all loaded modules.
fn mapped() -> Vec<Mapped> {
    unsafe extern "C" fn add(info: *mut libc::dl_phdr_info, _: usize, out: *mut libc::c_void) -> i32 {
        // SAFETY: the loader passes its record with that many headers, and `out` is the vector below.
        let (info, headers, name, out) = unsafe {
            let info = &*info;
            let headers = std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum));
            (info, headers, CStr::from_ptr(info.dlpi_name), &mut *out.cast::<Vec<Mapped>>())
        };
        let name = Path::new(OsStr::from_bytes(name.to_bytes()));
        // The main program has no name here, and as it was started it need not be a path.
        let is_path = name.as_os_str().as_bytes().contains(&b'/');
        let own = std::fs::read_link("/proc/self/exe").ok().filter(|_| !is_path);
        let path = own.unwrap_or_else(|| name.to_owned());
        let path = std::fs::canonicalize(&path).unwrap_or(path);
        let path = escaped(path.as_os_str().as_bytes());
        for header in headers.iter().filter(|header| header.p_type == libc::PT_LOAD) {
            let start = info.dlpi_addr + header.p_vaddr;
            out.push(Mapped { start, end: start + header.p_memsz, base: info.dlpi_addr, path: path.clone() });
        }
        0
    }
    let mut found: Vec<Mapped> = Vec::new();
    // SAFETY: the callback gets a pointer to the vector and keeps nothing.
    unsafe { libc::dl_iterate_phdr(Some(add), (&raw mut found).cast()) };
    found
}

/// True where both addresses lie in one module.
pub fn is_in_same_module(one: u64, other: u64) -> bool {
    let (one, other) = (module(one).0, module(other).0);
    !one.is_empty() && one == other
}

/// Path of the running program.
pub fn executable() -> Option<String> {
    std::fs::read_link("/proc/self/exe").ok().map(|path| escaped(path.as_os_str().as_bytes()))
}
