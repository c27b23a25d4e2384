//! Per-thread entry block: the caller of a wrapper, and the thread's state.
//!
//! Every exported symbol is a four-instruction stub that leaves the stack pointer, where the return
//! address is, and rbp in a thread-local block and jumps to the Rust body. Without it the call site
//! would need frame pointers in a build the user may not control. The block uses the initial-exec
//! model: one load, no call into the loader.

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
compile_error!(
    "libampl.so is written for x86-64 Linux: entry.rs and clock.rs hold what another machine needs"
);

use std::arch::{asm, global_asm};
use std::ops::Range;

use ampl_core::mpi::Function;
use libc::c_void;

global_asm!(
    ".pushsection .tbss.ampl_entry,\"awT\",@nobits",
    ".p2align 6",
    ".globl ampl_entry",
    ".hidden ampl_entry",
    ".type ampl_entry,@object",
    ".size ampl_entry,112",
    "ampl_entry:",
    ".zero 112",
    ".popsection",
);

/// Function by which a thread yields its processor.
pub type Yield = extern "C" fn() -> i32;

/// The thread-local block of a thread; calls read one line of memory of it. Pointers are opaque: modules that own what
/// they point to know the types.
#[repr(C)]
#[derive(Debug)]
pub struct Entry {
    /// rbp at the entry of the wrapper entered last: how some functions find their frame.
    pub bp: u64,
    /// Stack pointer at its entry.
    pub stack: u64,
    /// The thread's [state](crate::thread_state::ThreadState); null before its first recorded call.
    pub thread: *mut c_void,
    /// Stack pointer of the outermost wrapper now running; 0 outside MPI.
    pub inside: u64,
    /// The call of that wrapper.
    pub outer: Outer,
    /// Function by which it yields its processor ([`crate::yield_suppressor`]); `None` before its first time.
    pub yields: Option<Yield>,
    /// The thread's state for the [C API](crate::api); null before its first call of it that matters.
    pub api: *mut c_void,
    /// Its [own stack](crate::stack::own); empty until that has been looked for.
    pub own_stack: Range<u64>,
    /// rbp at the entry of the outermost wrapper now running.
    pub outer_bp: u64,
    /// True while it is in a [hook of a function](crate::functions).
    pub in_hook: bool,
    /// Times that it has yielded its processor.
    pub yielded: u64,
}

const _: () = assert!(size_of::<Entry>() == 112 && std::mem::offset_of!(Entry, api) == 64);

/// Where a wrapper was called, as its stub found the machine.
#[derive(Clone, Copy, Debug)]
pub struct Origin {
    /// Its return address.
    pub address: u64,
    /// Where on the stack that is.
    pub stack: u64,
    /// rbp.
    pub bp: u64,
}

impl Entry {
    /// Where the wrapper entered last was called.
    ///
    /// # Safety
    /// That wrapper must not have returned.
    #[inline(always)]
    pub unsafe fn origin(&self) -> Origin {
        // SAFETY: the stack pointer at a function's entry points to its return address.
        let address = unsafe { (self.stack as *const u64).read() };
        Origin { address, stack: self.stack, bp: self.bp }
    }
}

/// The call that an outermost wrapper is forwarding.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Outer {
    /// Its return address, which lies where `inside` points as long as it runs.
    pub address: u64,
    /// When it was entered, ticks; 0 if it is not recorded.
    pub start: u64,
    /// Its function.
    pub function: Function,
    /// True once its frame has been found on the stack, by going up from a callback.
    pub seen: bool,
}

/// The calling thread's block.
#[inline(always)]
pub fn entry() -> *mut Entry {
    let block: *mut Entry;
    // SAFETY: reads the thread pointer and the offset of our own thread-local block.
    unsafe {
        asm!(
            "mov {0}, qword ptr fs:[0]",
            "add {0}, qword ptr [rip + ampl_entry@GOTTPOFF]",
            out(reg) block,
            options(pure, readonly, nostack),
        );
    }
    block
}

/// Defines exported symbols that note where their caller is and continue in `$body`.
///
/// r11 is free at a function's entry; argument registers and the stack stay untouched.
macro_rules! stubs {
    ($body:path, $($name:ident)+) => {
        $(
            // SAFETY: an exported MPI symbol, as the dynamic linker must find it.
            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            unsafe extern "C-unwind" fn $name() {
                core::arch::naked_asm!(
                    "mov r11, qword ptr [rip + ampl_entry@GOTTPOFF]",
                    "mov qword ptr fs:[r11], rbp",
                    "mov qword ptr fs:[r11 + 8], rsp",
                    "jmp {body}",
                    body = sym $body,
                )
            }
        )+
    };
}
pub(crate) use stubs;
