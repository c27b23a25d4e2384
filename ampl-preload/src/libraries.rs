//! MPI libraries that are loaded.

use std::ffi::CStr;
use std::path::Path;
use std::ptr::NonNull;

use crate::loader::real_dlopen;
use crate::resolve::loaded_modules;

/// True where the module at `path` is part of an MPI library, by its file's name.
pub fn is_library_of_mpi(path: &str) -> bool {
    const NAMES: [&str; 7] = ["libmpi", "libmpich", "libpmpi", "libopen-", "libompi", "mca_", "libmca_"];
    let name = path.rsplit('/').next().unwrap_or(path);
    NAMES.iter().any(|beginning| name.starts_with(beginning))
}

/// Paths of the MPI libraries that are loaded, components apart.
pub fn mpi_modules() -> Vec<String> {
    loaded_modules().into_iter().filter(|path| is_library_of_mpi(path) && !path.contains("mca_")).collect()
}

/// One reference to a loaded library, given back when dropped.
pub struct Handle(NonNull<libc::c_void>);

// SAFETY: the loader's handles belong to the process.
unsafe impl Send for Handle {}

impl Handle {
    /// A reference, if the loader gives one.
    pub fn open(path: &Path, flags: i32) -> Option<Self> {
        let path = std::ffi::CString::new(path.as_os_str().as_encoded_bytes()).ok()?;
        // SAFETY: a NUL-terminated path.
        let handle = unsafe { real_dlopen(path.as_ptr(), flags) };
        // A `Handle` of a null pointer must never be made: the loader does not survive its dlclose.
        NonNull::new(handle).map(Self)
    }

    /// The same to a library that is already there.
    fn of_loaded(path: &str) -> Option<Self> {
        Self::open(Path::new(path), libc::RTLD_LAZY | libc::RTLD_NOLOAD)
    }

    /// Address of `name` in the library; null if it has none.
    pub fn symbol(&self, name: &CStr) -> *const () {
        // SAFETY: a handle of a loaded library and a NUL-terminated name.
        unsafe { libc::dlsym(self.0.as_ptr(), name.as_ptr()) }.cast_const().cast()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the reference is ours.
        unsafe { libc::dlclose(self.0.as_ptr()) };
    }
}

/// References to the libraries at those paths, as far as they are loaded.
pub fn references(modules: &[String]) -> Vec<Handle> {
    modules.iter().filter_map(|path| Handle::of_loaded(path)).collect()
}

/// The MPI libraries that are loaded, wherever the search order has them.
pub struct Libraries(Vec<Handle>);

impl Libraries {
    /// References to the MPI libraries that are loaded now.
    pub fn loaded() -> Self {
        Self(references(&mpi_modules()))
    }

    /// Address of `name` in one of them; null if none has it.
    pub fn find(&self, name: &CStr) -> *const () {
        let mut found = self.0.iter().map(|handle| handle.symbol(name));
        found.find(|symbol| !symbol.is_null()).unwrap_or(std::ptr::null())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_are_known_by_their_names() {
        for path in
            ["/usr/lib/libmpi.so.40", "/opt/lib/libmpifort.so.12", "/usr/lib/openmpi3/mca_io_romio321.so"]
        {
            assert!(is_library_of_mpi(path), "{path}");
        }
        assert!(!is_library_of_mpi("/opt/app") && !is_library_of_mpi("/opt/lib/libpetsc.so"));
    }
}
