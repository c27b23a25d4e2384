//! Which module an address of code lies in.

use std::ffi::CStr;
use std::sync::{Mutex, PoisonError};

/// The beginning of the loader's `struct link_map`.
#[repr(C)]
struct LinkMap {
    /// What to add to a file's addresses.
    address: u64,
    name: *const libc::c_char,
    dynamic: *const [u64; 2],
}

/// A loaded module.
#[derive(Clone, Copy, Debug)]
pub struct Module {
    /// What to add to its file's addresses.
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
    unsafe extern "C" fn add(info: *mut libc::dl_phdr_info, _: usize, out: *mut libc::c_void) -> i32 {
        // SAFETY: the loader passes its record, and `out` is the vector below.
        let (name, out) = unsafe { (CStr::from_ptr((*info).dlpi_name), &mut *out.cast::<Vec<String>>()) };
        if !name.is_empty() {
            out.push(name.to_string_lossy().into_owned());
        }
        0
    }
    let mut found: Vec<String> = Vec::new();
    // SAFETY: the callback gets a pointer to the vector and keeps nothing.
    unsafe { libc::dl_iterate_phdr(Some(add), (&raw mut found).cast()) };
    found
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

/// A module's code: where it is, what to add to its file's addresses, and its path.
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
    // What has been unloaded may have left its place to another.
    let changes = changes();
    if known.1 != changes {
        *known = (mapped(), changes);
    }
    find(&known.0).unwrap_or((String::new(), address))
}

/// How many modules have been loaded so far, and how many unloaded.
fn changes() -> (u64, u64) {
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
        let name = name.to_string_lossy().into_owned();
        // The main program has no name here, and as it was started it need not be a path.
        let path = if name.contains('/') { name } else { executable().unwrap_or(name) };
        let path = std::fs::canonicalize(&path).map_or(path, |full| full.to_string_lossy().into_owned());
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

/// Whether both addresses lie in one module.
pub fn is_in_same_module(one: u64, other: u64) -> bool {
    let (one, other) = (module(one).0, module(other).0);
    !one.is_empty() && one == other
}

/// Path of the running program.
pub fn executable() -> Option<String> {
    std::fs::read_link("/proc/self/exe").ok().map(|path| path.to_string_lossy().into_owned())
}
