//! The floating-point environment of the program's thread, which hooks compute in and leave as it was.

use std::arch::asm;

/// All exceptions masked: none is a signal.
const MASKED: u32 = 0x1F80;

/// The control and status register of the thread: which exceptions have occurred, and which are trapped.
#[inline(always)]
fn register() -> u32 {
    let mut value = 0u32;
    // SAFETY: writes the register to a place of ours.
    unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut value, options(nostack, preserves_flags)) };
    value
}

#[inline(always)]
fn set(value: u32) {
    // SAFETY: a value that the register had, with more exceptions masked at most.
    unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const value, options(nostack, preserves_flags)) };
}

/// While it lives, no exception of the thread's arithmetic is a signal; then the environment is what it was. A mean that
/// cannot be represented exactly must not be seen by a program that asks, let alone end one that traps that.
#[derive(Debug)]
pub struct Environment(u32);

impl Environment {
    /// From now on.
    #[inline(always)]
    pub fn begin() -> Self {
        let before = register();
        if before & MASKED != MASKED {
            set(before | MASKED);
        }
        Self(before)
    }
}

impl Drop for Environment {
    #[inline(always)]
    fn drop(&mut self) {
        // As a rule nothing was computed: reading costs less than writing.
        if register() != self.0 {
            set(self.0);
        }
    }
}
