//! A stack with room. Threads and fibres of a program have stacks for what they call themselves; what ampl does when a job
//! begins and ends, MPI's collectives among it, may need more than is left there.

use std::any::Any;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;

/// As large as the stacks of Rust's own threads. Of its pages those are taken that are used.
const STACK_BYTES: usize = 2 << 20;
/// Below it, so that what is too deep all the same meets no memory of others.
const GUARD_BYTES: usize = 64 << 10;

/// Runs `work` on a stack of its own, on this thread; where there is no memory for one, on the caller's.
///
/// Nothing must unwind out of it but a panic, which is passed on.
pub fn with_room<T, F: FnOnce() -> T>(work: F) -> T {
    let Some(stack) = Stack::new() else { return work() };
    let mut errand = Errand { work: Some(work), done: None };
    let mut here = MaybeUninit::uninit();
    let mut there = MaybeUninit::<libc::ucontext_t>::uninit();
    // SAFETY: places for two contexts. The second begins on a stack that outlives it, with the address of an errand that
    // does so too, in two halves as arguments are ints, and ends by going on with the first.
    unsafe {
        if libc::getcontext(there.as_mut_ptr()) != 0 {
            return errand.finished(true);
        }
        let context = there.assume_init_mut();
        context.uc_stack.ss_sp = stack.0.byte_add(GUARD_BYTES);
        context.uc_stack.ss_size = STACK_BYTES;
        context.uc_link = here.as_mut_ptr();
        let address = (&raw mut errand).expose_provenance();
        let entry: extern "C" fn(u32, u32) = run::<T, F>;
        // The type that any function is passed as.
        let entry = std::mem::transmute::<extern "C" fn(u32, u32), extern "C" fn()>(entry);
        libc::makecontext(context, entry, 2, (address >> 32) as u32, address as u32);
        let refused = libc::swapcontext(here.as_mut_ptr(), context) != 0;
        errand.finished(refused)
    }
}

/// What is to be done, and what came of it.
struct Errand<T, F> {
    work: Option<F>,
    done: Option<Result<T, Box<dyn Any + Send>>>,
}

impl<T, F: FnOnce() -> T> Errand<T, F> {
    fn run(&mut self) {
        if let Some(work) = self.work.take() {
            self.done = Some(catch_unwind(AssertUnwindSafe(work)));
        }
    }

    /// What came of it; done here if it was `refused` there.
    fn finished(mut self, refused: bool) -> T {
        if refused {
            self.run();
        }
        match self.done.expect("it was done") {
            Ok(value) => value,
            Err(panic) => resume_unwind(panic),
        }
    }
}

extern "C" fn run<T, F: FnOnce() -> T>(upper: u32, lower: u32) {
    let errand = ptr::with_exposed_provenance_mut::<Errand<T, F>>((upper as usize) << 32 | lower as usize);
    // SAFETY: the errand of the caller, who waits.
    unsafe { (*errand).run() };
}

/// Memory for a stack, and its guard.
struct Stack(*mut libc::c_void);

impl Stack {
    fn new() -> Option<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK;
        let all = GUARD_BYTES + STACK_BYTES;
        // SAFETY: a new mapping, and access to a part of it.
        unsafe {
            let base = libc::mmap(ptr::null_mut(), all, libc::PROT_NONE, flags, -1, 0);
            if base == libc::MAP_FAILED {
                return None;
            }
            let stack = Self(base);
            let opened =
                libc::mprotect(base.byte_add(GUARD_BYTES), STACK_BYTES, libc::PROT_READ | libc::PROT_WRITE);
            (opened == 0).then_some(stack)
        }
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: our own mapping, which nothing uses any more.
        unsafe { libc::munmap(self.0, GUARD_BYTES + STACK_BYTES) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uses so many KiB of stack.
    #[inline(never)]
    fn deep(kib: usize) -> usize {
        let here = std::hint::black_box([kib as u8; 1024]);
        if kib == 0 { 0 } else { deep(kib - 1) + usize::from(here[kib % 1024] == kib as u8) }
    }

    #[test]
    fn there_is_room_on_a_thread_with_little() {
        let thread = std::thread::Builder::new().stack_size(64 << 10);
        let done = thread.spawn(|| with_room(|| deep(256))).expect("a thread").join();
        assert_eq!(done.expect("it has not panicked"), 256);
    }

    #[test]
    fn one_may_be_on_another() {
        assert_eq!(with_room(|| with_room(|| String::from("inner")) + " outer"), "inner outer");
    }

    #[test]
    fn a_panic_comes_through() {
        let caught = catch_unwind(|| with_room(|| -> u32 { panic!("seven") }));
        assert_eq!(caught.expect_err("a panic").downcast_ref(), Some(&"seven"));
    }
}
