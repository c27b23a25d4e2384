//! NVTX: what its headers, which are part of the program, call in the library that `NVTX_INJECTION64_PATH` names.
//!
//! Each module that includes the headers calls `InitializeInjectionNvtx2` once, and has tables of its own. Ranges that are
//! pushed and popped are regions of the thread. Ranges that are started and ended belong to no thread and are left out.

use std::ffi::{c_char, c_int, c_void};

use ampl_core::hook_source::HookSource;

use super::open_regions;
use crate::api;

/// `NVTX_ETID_CALLBACKS`
const CALLBACKS: u32 = 1;
/// `NVTX_CB_MODULE_CORE` and `NVTX_CB_MODULE_CORE2`
const CORE: u32 = 1;
const CORE2: u32 = 5;
/// Kinds of message: characters, wide characters, and a name that was registered.
const ASCII: i32 = 1;
const UNICODE: i32 = 2;
const REGISTERED: i32 = 3;
/// `NVTX_NO_PUSH_POP_TRACKING`, which is also what a pop without its push returns.
const NO_LEVEL: c_int = -2;
/// Characters of a wide name that count.
const LONGEST: usize = 255;

/// `NvtxExportTableCallbacks`
#[repr(C)]
pub struct Callbacks {
    size: usize,
    functions: Option<unsafe extern "C" fn(u32, *mut *mut Slot, *mut u32) -> c_int>,
}

/// Entries of a table of functions: where the module has its pointer to each.
type Slot = *mut *const ();
type ExportTable = unsafe extern "C" fn(u32) -> *const c_void;

/// `nvtxEventAttributes_t`, as far as it is read.
#[repr(C)]
pub struct Attributes {
    version: u16,
    size: u16,
    category: u32,
    colours: [i32; 2],
    payload_kind: i32,
    reserved: i32,
    payload: u64,
    message_kind: i32,
    message: *const c_void,
}

/// The number of the region that wide characters name.
///
/// # Safety
/// `text` must be null or wide characters that end in 0.
unsafe fn wide_region(text: *const libc::wchar_t) -> c_int {
    if text.is_null() {
        return 0;
    }
    let mut bytes = [0; 4 * LONGEST];
    let mut length = 0;
    for at in 0..LONGEST {
        // SAFETY: the caller's promise: the end has not been met.
        let character = unsafe { text.add(at).read() };
        if character == 0 {
            break;
        }
        let character = char::from_u32(character as u32).unwrap_or(char::REPLACEMENT_CHARACTER);
        length += character.encode_utf8(&mut bytes[length..]).len();
    }
    api::region_number(&bytes[..length])
}

/// The number of the region that `attributes` name.
///
/// # Safety
/// `attributes` must be null or NVTX's own.
unsafe fn region_of(attributes: *const Attributes) -> c_int {
    // SAFETY: the caller's promise.
    let Some(attributes) = (unsafe { attributes.as_ref() }) else { return 0 };
    if usize::from(attributes.size) < size_of::<Attributes>() {
        return 0;
    }
    match attributes.message_kind {
        // SAFETY: the kind says that.
        ASCII => unsafe { api::ampl_region_register(attributes.message.cast()) },
        // SAFETY: likewise.
        UNICODE => unsafe { wide_region(attributes.message.cast()) },
        // `register` has returned the number.
        REGISTERED => c_int::try_from(attributes.message as usize).unwrap_or(0),
        _ => 0,
    }
}

fn push(domain: u64, region: c_int) -> c_int {
    open_regions::enter(HookSource::Nvtx, domain, region) as c_int
}

fn pop(domain: u64) -> c_int {
    open_regions::leave(HookSource::Nvtx, domain).map_or(NO_LEVEL, |level| level as c_int)
}

unsafe extern "C" fn range_push(text: *const c_char) -> c_int {
    // SAFETY: NVTX's own arguments, and so on below.
    push(0, unsafe { api::ampl_region_register(text) })
}

unsafe extern "C" fn range_push_wide(text: *const libc::wchar_t) -> c_int {
    // SAFETY: see above.
    push(0, unsafe { wide_region(text) })
}

unsafe extern "C" fn range_push_with(attributes: *const Attributes) -> c_int {
    // SAFETY: see above.
    push(0, unsafe { region_of(attributes) })
}

extern "C" fn range_pop() -> c_int {
    pop(0)
}

unsafe extern "C" fn domain_push(domain: *const c_void, attributes: *const Attributes) -> c_int {
    // SAFETY: see above.
    push(domain as u64, unsafe { region_of(attributes) })
}

extern "C" fn domain_pop(domain: *const c_void) -> c_int {
    pop(domain as u64)
}

unsafe extern "C" fn register(_domain: *const c_void, text: *const c_char) -> *const c_void {
    // SAFETY: see above.
    std::ptr::without_provenance(unsafe { api::ampl_region_register(text) } as usize)
}

unsafe extern "C" fn register_wide(_domain: *const c_void, text: *const libc::wchar_t) -> *const c_void {
    // SAFETY: see above.
    std::ptr::without_provenance(unsafe { wide_region(text) } as usize)
}

/// A domain by its name: ranges of one name nest together, whichever module has made the domain.
unsafe extern "C" fn make_domain(text: *const c_char) -> *const c_void {
    // SAFETY: see above.
    let text = unsafe { api::text(text) };
    std::ptr::without_provenance(api::hash(text) as usize | 1 << 63)
}

/// Puts `function` where entry `at` of `table` says.
///
/// # Safety
/// `table` must have `size` entries, each null or a place for a function's address.
unsafe fn fill(table: *mut Slot, size: u32, at: u32, function: *const ()) {
    // Entry 0 is none, and the size counts it.
    if at < size {
        // SAFETY: the caller's promise.
        let place = unsafe { table.add(at as usize).read() };
        if !place.is_null() {
            // SAFETY: the caller's promise.
            unsafe { place.write(function) };
        }
    }
}

/// `int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t)`
///
/// # Safety
/// NVTX calls it.
// SAFETY: the name that NVTX looks for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn InitializeInjectionNvtx2(tables: Option<ExportTable>) -> c_int {
    let core: [(u32, *const ()); 4] = [
        (8, range_push_with as *const ()),
        (9, range_push as *const ()),
        (10, range_push_wide as *const ()),
        (11, range_pop as *const ()),
    ];
    let core2: [(u32, *const ()); 5] = [
        (4, domain_push as *const ()),
        (5, domain_pop as *const ()),
        (10, register as *const ()),
        (11, register_wide as *const ()),
        (12, make_domain as *const ()),
    ];
    let Some(tables) = tables else { return 0 };
    // SAFETY: NVTX's own function: null or the table that is asked for.
    let callbacks = unsafe { tables(CALLBACKS).cast::<Callbacks>().as_ref() };
    let callbacks = callbacks.filter(|callbacks| callbacks.size >= size_of::<Callbacks>());
    let Some(functions) = callbacks.and_then(|callbacks| callbacks.functions) else { return 0 };
    for (module, own) in [(CORE, &core[..]), (CORE2, &core2[..])] {
        let (mut table, mut size) = (std::ptr::null_mut(), 0);
        // SAFETY: places for the table's address and size.
        if unsafe { functions(module, &raw mut table, &raw mut size) } == 0 || table.is_null() {
            continue;
        }
        for &(at, function) in own {
            // SAFETY: NVTX's own table.
            unsafe { fill(table, size, at, function) };
        }
    }
    1
}
