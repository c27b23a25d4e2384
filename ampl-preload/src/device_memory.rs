//! Memory of devices: asked of CUDA's driver and of HIP, where the program has loaded them.
//!
//! Nothing is linked or loaded. An address is asked about when it is met first, unless it is in a module or on a stack. The
//! answer holds from then on, as the ranges of addresses of devices are never the host's.

use std::ffi::{CStr, c_int, c_uint, c_void};
use std::sync::{Mutex, PoisonError};

use crate::loader::real_dlopen;
use crate::resolve;

/// `CU_POINTER_ATTRIBUTE_MEMORY_TYPE`, `…_IS_MANAGED`, `…_DEVICE_ORDINAL`.
const MEMORY_TYPE: c_int = 2;
const IS_MANAGED: c_int = 8;
const DEVICE_ORDINAL: c_int = 9;
/// `CU_MEMORYTYPE_DEVICE`.
const DEVICE: c_uint = 2;

const CUDA: &CStr = c"libcuda.so.1";
/// HIP's library, of the versions that there are.
const HIP: [&CStr; 4] = [c"libamdhip64.so", c"libamdhip64.so.7", c"libamdhip64.so.6", c"libamdhip64.so.5"];

/// `cuPointerGetAttribute`
type GetAttribute = unsafe extern "C" fn(*mut c_void, c_int, u64) -> c_int;
/// `hipPointerGetAttributes`
type GetAttributes = unsafe extern "C" fn(*mut HipAttributes, *const c_void) -> c_int;
/// `hipPeekAtLastError`, `hipGetLastError`
type LastError = unsafe extern "C" fn() -> c_int;

/// `hipPointerAttribute_t`, whose first member counts otherwise in each version, and room for more.
#[repr(C)]
#[derive(Default)]
struct HipAttributes {
    kind: c_int,
    device: c_int,
    device_pointer: usize,
    host_pointer: usize,
    is_managed: c_int,
    flags: c_uint,
    room: [u64; 8],
}

#[derive(Clone, Copy)]
enum Runtime {
    Cuda(GetAttribute),
    /// With its last error, which a question must not change.
    Hip(GetAttributes, LastError, LastError),
}

/// The runtimes that the program has, and how many modules had been loaded when they were searched.
#[derive(Clone, Copy)]
struct Known {
    runtimes: [Option<Runtime>; 2],
    modules: (u64, u64),
}

static KNOWN: Mutex<Known> = Mutex::new(Known { runtimes: [None; 2], modules: (0, 0) });

/// The number of the device whose memory holds `address`; `None` for the host's, and for memory that moves between them.
pub fn device_of(address: u64) -> Option<u8> {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let modules = resolve::changes();
    if known.modules != modules {
        *known = Known { runtimes: [cuda(), hip()], modules };
    }
    let runtimes = known.runtimes;
    // The program's library may take locks of its own.
    drop(known);
    runtimes.into_iter().flatten().find_map(|runtime| runtime.device_of(address))
}

impl Runtime {
    fn device_of(self, address: u64) -> Option<u8> {
        match self {
            Self::Cuda(get) => {
                let number = |attribute| {
                    let mut value: c_uint = 0;
                    // SAFETY: the driver's function; each of these attributes is a number of four bytes or fewer.
                    let code = unsafe { get((&raw mut value).cast(), attribute, address) };
                    (code == 0).then_some(value)
                };
                (number(MEMORY_TYPE)? == DEVICE && number(IS_MANAGED).unwrap_or(0) & 0xff == 0)
                    .then_some(())?;
                u8::try_from(number(DEVICE_ORDINAL)?).ok()
            }
            Self::Hip(get, peek, clear) => {
                let mut found = HipAttributes::default();
                // SAFETY: the library's functions; it fills as much of the attributes as its version has.
                let code = unsafe {
                    if peek() != 0 {
                        // The program has not seen that error yet.
                        return None;
                    }
                    let code = get(&raw mut found, address as *const c_void);
                    if code != 0 {
                        clear();
                    }
                    code
                };
                let is_own = code == 0 && found.device_pointer != 0 && found.host_pointer == 0;
                (is_own && found.is_managed == 0).then(|| u8::try_from(found.device).ok())?
            }
        }
    }
}

fn cuda() -> Option<Runtime> {
    let get = function(opened(CUDA)?, c"cuPointerGetAttribute")?;
    // SAFETY: the function of that name has that type.
    Some(Runtime::Cuda(unsafe { std::mem::transmute::<*mut c_void, GetAttribute>(get) }))
}

fn hip() -> Option<Runtime> {
    let library = HIP.into_iter().find_map(opened)?;
    let get = function(library, c"hipPointerGetAttributes")?;
    let (peek, clear) = (function(library, c"hipPeekAtLastError")?, function(library, c"hipGetLastError")?);
    // SAFETY: the functions of these names have these types.
    Some(unsafe {
        Runtime::Hip(
            std::mem::transmute::<*mut c_void, GetAttributes>(get),
            std::mem::transmute::<*mut c_void, LastError>(peek),
            std::mem::transmute::<*mut c_void, LastError>(clear),
        )
    })
}

/// The library of that name, if the program has loaded it. It stays loaded from then on.
fn opened(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: a text; nothing is loaded.
    let library = unsafe { real_dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
    (!library.is_null()).then_some(library)
}

fn function(library: *mut c_void, name: &CStr) -> Option<*mut c_void> {
    // SAFETY: an open library and a text.
    let found = unsafe { libc::dlsym(library, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}
