//! Kokkos Tools: what Kokkos calls in the library that `KOKKOS_TOOLS_LIBS` names.
//!
//! Profile regions, sections and kernels are regions. Kernels are timed where the host starts them and waits for them;
//! Kokkos is told not to wait for a device on our account.

use std::ffi::{c_char, c_int};

use ampl_core::hook_source::HookSource;

use super::open_regions;
use crate::api;

const SOURCE: HookSource = HookSource::Kokkos;

/// `Kokkos_Tools_ToolSettings`
#[repr(C)]
pub struct ToolSettings {
    requires_global_fencing: bool,
    padding: [bool; 255],
}

/// # Safety
/// `name` must be null or a C string, `id` null or a place for a number.
unsafe fn begin_kernel(name: *const c_char, id: *mut u64) {
    // SAFETY: the caller's promise.
    let region = unsafe { api::ampl_region_register(name) };
    if !id.is_null() {
        // Kokkos hands it back at the kernel's end.
        // SAFETY: the caller's promise.
        unsafe { id.write(region as u64) };
    }
    api::enter(region);
}

fn end_kernel(id: u64) {
    api::exit(c_int::try_from(id).unwrap_or(0));
}

/// Defines the two functions of a kind of kernel.
macro_rules! kernels {
    ($($begin:ident $end:ident)+) => {
        $(
            /// # Safety
            /// Kokkos calls it.
            // SAFETY: the name that Kokkos looks for.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $begin(name: *const c_char, _device: u32, id: *mut u64) {
                // SAFETY: Kokkos's own arguments.
                unsafe { begin_kernel(name, id) };
            }

            // SAFETY: the name that Kokkos looks for.
            #[unsafe(no_mangle)]
            pub extern "C" fn $end(id: u64) {
                end_kernel(id);
            }
        )+
    };
}

kernels! {
    kokkosp_begin_parallel_for kokkosp_end_parallel_for
    kokkosp_begin_parallel_reduce kokkosp_end_parallel_reduce
    kokkosp_begin_parallel_scan kokkosp_end_parallel_scan
}

/// Does nothing: regions begin to count with MPI.
// SAFETY: the name that Kokkos looks for, as those below.
#[unsafe(no_mangle)]
pub extern "C" fn kokkosp_init_library(_: c_int, _: u64, _: u32, _: *const ()) {}

/// Does nothing: runs end with MPI.
// SAFETY: see above.
#[unsafe(no_mangle)]
pub extern "C" fn kokkosp_finalize_library() {}

/// Tells Kokkos to wait for no device around kernels.
///
/// # Safety
/// `settings` must be null or Kokkos's own.
// SAFETY: see above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kokkosp_request_tool_settings(_: u32, settings: *mut ToolSettings) {
    // SAFETY: the caller's promise.
    if let Some(settings) = unsafe { settings.as_mut() } {
        settings.requires_global_fencing = false;
    }
}

/// # Safety
/// `name` must be null or a C string.
// SAFETY: see above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kokkosp_push_profile_region(name: *const c_char) {
    // SAFETY: the caller's promise.
    open_regions::enter(SOURCE, 0, unsafe { api::ampl_region_register(name) });
}

// SAFETY: see above.
#[unsafe(no_mangle)]
pub extern "C" fn kokkosp_pop_profile_region() {
    open_regions::leave(SOURCE, 0);
}

/// # Safety
/// `name` must be null or a C string, `id` null or a place for a number.
// SAFETY: see above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kokkosp_create_profile_section(name: *const c_char, id: *mut u32) {
    // SAFETY: the caller's promise.
    let region = unsafe { api::ampl_region_register(name) };
    if !id.is_null() {
        // SAFETY: the caller's promise.
        unsafe { id.write(region as u32) };
    }
}

// SAFETY: see above.
#[unsafe(no_mangle)]
pub extern "C" fn kokkosp_start_profile_section(id: u32) {
    api::enter(c_int::try_from(id).unwrap_or(0));
}

// SAFETY: see above.
#[unsafe(no_mangle)]
pub extern "C" fn kokkosp_stop_profile_section(id: u32) {
    end_kernel(id.into());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kokkos_waits_for_no_device() {
        let mut settings = ToolSettings { requires_global_fencing: true, padding: [true; 255] };
        // SAFETY: a place for the settings; null is allowed.
        unsafe {
            kokkosp_request_tool_settings(1, &raw mut settings);
            kokkosp_request_tool_settings(1, std::ptr::null_mut());
        }
        assert!(!settings.requires_global_fencing && settings.padding == [true; 255]);
        assert_eq!(size_of::<ToolSettings>(), 256);
    }
}
