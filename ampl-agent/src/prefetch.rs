//! Memory that will be needed soon: asked for before the program's call goes on into MPI, it comes while MPI works.
//!
//! A program that computes between its calls leaves nothing of ampl's in the caches, and where ranks share processors the
//! others do. A call would then wait for one line of memory after another, each for as long as ten hot calls take.

/// Asks for the line of memory that holds `at`; nothing waits for it, and any address may be named.
#[inline(always)]
pub fn fetch<T>(at: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint to the processor, which does not fault, whatever the address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}
