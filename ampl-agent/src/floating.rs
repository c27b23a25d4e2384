//! The floating-point environment of the program's thread, which hooks compute in and leave as it was.
//!
//! Reading the register twice takes longer than most hooks, so hooks count in whole numbers.

use std::arch::asm;
use std::ops::{Deref, DerefMut};

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

/// Masks the thread's floating-point exceptions while it lives, then restores the environment. The program must not see
/// the inexact result of a mean, let alone end where it traps that.
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

/// A value to compute with while it is held, in an [`Environment`] of its own.
#[derive(Debug)]
pub struct Computing<T> {
    held: T,
    _as_it_was: Environment,
}

impl<T> Computing<T> {
    /// `held`, from now on.
    pub fn with(held: T) -> Self {
        Self { held, _as_it_was: Environment::begin() }
    }
}

impl<T: Deref> Deref for Computing<T> {
    type Target = T::Target;

    fn deref(&self) -> &T::Target {
        &self.held
    }
}

impl<T: DerefMut> DerefMut for Computing<T> {
    fn deref_mut(&mut self) -> &mut T::Target {
        &mut self.held
    }
}
