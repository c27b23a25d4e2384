//! Which module an address of code lies in.

use std::ffi::CStr;

/// The beginning of the loader's `struct link_map`: what to add to a file's addresses.
#[repr(C)]
struct LinkMap {
    address: u64,
}

/// Path of the module that holds `address`, and the address as its file counts; an empty path if none does.
pub fn module(address: u64) -> (String, u64) {
    const LINK_MAP: libc::c_int = 2; // RTLD_DL_LINKMAP
    let mut map: *mut LinkMap = std::ptr::null_mut();
    // SAFETY: an all-zero Dl_info is valid, and dladdr1 only fills it and the pointer.
    let info = unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        let at = (&raw mut map).cast();
        let found = libc::dladdr1(address as *const libc::c_void, &mut info, at, LINK_MAP);
        if found == 0 || info.dli_fname.is_null() || map.is_null() {
            return (String::new(), address);
        }
        info
    };
    // SAFETY: dladdr succeeded, so the name is a string of the loader.
    let name = unsafe { CStr::from_ptr(info.dli_fname) }.to_string_lossy().into_owned();
    // The main program is named as it was started, which need not be a path.
    let path = if name.contains('/') { name } else { executable().unwrap_or(name) };
    let path = std::fs::canonicalize(&path).map_or(path, |full| full.to_string_lossy().into_owned());
    // SAFETY: dladdr1 has filled in the loader's own record of a module that is loaded.
    let loaded_at = unsafe { (*map).address };
    (path, address.wrapping_sub(loaded_at))
}

/// Path of the running program.
pub fn executable() -> Option<String> {
    std::fs::read_link("/proc/self/exe").ok().map(|path| path.to_string_lossy().into_owned())
}
