//! Which module an address of code lies in.

use std::ffi::CStr;

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
    let (_, map) = look_up(own_module as *const () as u64)?;
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

fn look_up(address: u64) -> Option<(libc::Dl_info, *const LinkMap)> {
    const LINK_MAP: libc::c_int = 2; // RTLD_DL_LINKMAP
    let mut map: *mut LinkMap = std::ptr::null_mut();
    // SAFETY: an all-zero Dl_info is valid, and dladdr1 only fills it and the pointer.
    let (found, info) = unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        let at = (&raw mut map).cast();
        (libc::dladdr1(address as *const libc::c_void, &mut info, at, LINK_MAP), info)
    };
    (found != 0 && !info.dli_fname.is_null() && !map.is_null()).then_some((info, map.cast_const()))
}

/// Path of the module that holds `address`, and the address as its file counts; an empty path if none does.
pub fn module(address: u64) -> (String, u64) {
    let Some((info, map)) = look_up(address) else { return (String::new(), address) };
    // SAFETY: dladdr succeeded, so the name is a string of the loader.
    let name = unsafe { CStr::from_ptr(info.dli_fname) }.to_string_lossy().into_owned();
    // The main program is named as it was started, which need not be a path.
    let path = if name.contains('/') { name } else { executable().unwrap_or(name) };
    let path = std::fs::canonicalize(&path).map_or(path, |full| full.to_string_lossy().into_owned());
    // SAFETY: dladdr1 has filled in the loader's own record of a module that is loaded.
    let loaded_at = unsafe { (*map).address };
    (path, address.wrapping_sub(loaded_at))
}

/// Whether both addresses lie in one module: cheaper than comparing paths.
pub fn is_in_same_module(one: u64, other: u64) -> bool {
    let base = |address| look_up(address).map(|(info, _)| info.dli_fbase);
    base(one).is_some() && base(one) == base(other)
}

/// Path of the running program.
pub fn executable() -> Option<String> {
    std::fs::read_link("/proc/self/exe").ok().map(|path| path.to_string_lossy().into_owned())
}
