//! A stack with room. Stacks of a program's threads and fibres are made for the program; ampl's work when a job begins
//! and ends, MPI's collectives among it, may need more than is left there.

use std::any::Any;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;

use crate::signals::Held;
use crate::stack;

/// Size of a stack, as of Rust's own threads. Only used pages take memory.
const STACK_BYTES: usize = 2 << 20;
/// Size of the guard below it: an overflow must not reach the memory of others.
const GUARD_BYTES: usize = 64 << 10;

/// Enough room: MPI and ampl have needed up to half of it.
const ENOUGH_BYTES: usize = 256 << 10;

/// Runs `work` on this thread where there is room: on the caller's stack if it is known to have enough left, else on
/// one of its own; without memory for that, on the caller's all the same.
///
/// A reader of the thread's stack from outside, such as a garbage collector, finds it where it expects it. Nothing must
/// unwind out of `work` but a panic, which is passed on.
pub fn with_room<T, F: FnOnce() -> T>(work: F) -> T {
    let left = RemainingStack::here();
    if left.is_enough() {
        return work();
    }
    let Some(stack) = Stack::new() else { return work() };
    // A thread elsewhere while its handler is on the alternate stack seems not to be in one: the next signal's handler
    // would begin at the top of that, over the first one's frames.
    let _held = left.is_alternate.then(Held::all);
    elsewhere(&stack, work)
}

/// Runs `work` on `stack`.
fn elsewhere<T, F: FnOnce() -> T>(stack: &Stack, work: F) -> T {
    let mut call = StackCall { work: Some(work), done: None };
    let mut here = MaybeUninit::uninit();
    let mut there = MaybeUninit::<libc::ucontext_t>::uninit();
    // SAFETY: places for two contexts. The second begins on a stack that outlives it, with the address of a call
    // that does so too, in two halves as arguments are ints, and ends by going on with the first.
    unsafe {
        if libc::getcontext(there.as_mut_ptr()) != 0 {
            return call.finished(true);
        }
        let context = there.assume_init_mut();
        context.uc_stack.ss_sp = stack.0.byte_add(GUARD_BYTES);
        context.uc_stack.ss_size = STACK_BYTES;
        context.uc_link = here.as_mut_ptr();
        let address = (&raw mut call).expose_provenance();
        let entry: extern "C" fn(u32, u32) = run::<T, F>;
        // The type that any function is passed as.
        let entry = std::mem::transmute::<extern "C" fn(u32, u32), extern "C" fn()>(entry);
        libc::makecontext(context, entry, 2, (address >> 32) as u32, address as u32);
        let refused = libc::swapcontext(here.as_mut_ptr(), context) != 0;
        call.finished(refused)
    }
}

/// Room left on the caller's stack.
struct RemainingStack {
    /// Known bytes; 0 on a stack that is not the thread's, a fibre's say.
    bytes: usize,
    /// True where it is the alternate stack of signal handlers.
    is_alternate: bool,
}

impl RemainingStack {
    fn here() -> Self {
        let place = std::hint::black_box(0u8);
        let at = (&raw const place).addr();
        match alternate_stack() {
            Some(lowest) => Self { bytes: at.saturating_sub(lowest), is_alternate: true },
            None => Self { bytes: stack::own().map_or(0, |stack| within(&stack, at)), is_alternate: false },
        }
    }

    fn is_enough(&self) -> bool {
        self.bytes >= ENOUGH_BYTES
    }
}

/// Bytes of `stack` below `at`; none if that is not on it.
fn within(stack: &Range<u64>, at: usize) -> usize {
    let at = at as u64;
    if stack.contains(&at) { (at - stack.start) as usize } else { 0 }
}

/// The lowest address of the alternate signal stack, if the caller is on it.
fn alternate_stack() -> Option<usize> {
    let mut stack = MaybeUninit::<libc::stack_t>::uninit();
    // SAFETY: a place for the answer, which is there if the call succeeds.
    let stack =
        unsafe { (libc::sigaltstack(ptr::null(), stack.as_mut_ptr()) == 0).then(|| stack.assume_init())? };
    (stack.ss_flags & libc::SS_ONSTACK != 0).then(|| stack.ss_sp.addr())
}

/// Work to do, and its result.
struct StackCall<T, F> {
    work: Option<F>,
    done: Option<Result<T, Box<dyn Any + Send>>>,
}

impl<T, F: FnOnce() -> T> StackCall<T, F> {
    fn run(&mut self) {
        if let Some(work) = self.work.take() {
            self.done = Some(catch_unwind(AssertUnwindSafe(work)));
        }
    }

    /// Result of the work; done here if it was `refused` there.
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
    let call = ptr::with_exposed_provenance_mut::<StackCall<T, F>>((upper as usize) << 32 | lower as usize);
    // SAFETY: it is on the stack of `elsewhere`, which waits.
    unsafe { (*call).run() };
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
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    /// Uses `kib` KiB of stack.
    #[inline(never)]
    fn deep(kib: usize) -> usize {
        let here = std::hint::black_box([kib as u8; 1024]);
        if kib == 0 { 0 } else { deep(kib - 1) + usize::from(here[kib % 1024] == kib as u8) }
    }

    /// Does `work` on a thread with so many KiB of stack.
    fn on_thread<T: Send>(kib: usize, work: impl FnOnce() -> T + Send) -> std::thread::Result<T> {
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(kib << 10);
            thread.spawn_scoped(scope, work).expect("a thread").join()
        })
    }

    /// True where `work` is done on the stack that the system gave to this thread. Comparing two addresses does not
    /// suffice: a new mapping may begin where a thread's stack ends.
    fn stays() -> bool {
        let own = stack::own().expect("a thread's stack is known");
        with_room(|| {
            let place = std::hint::black_box(0u8);
            own.contains(&((&raw const place).addr() as u64))
        })
    }

    #[test]
    fn there_is_room_on_a_thread_with_little() {
        assert_eq!(on_thread(64, || with_room(|| deep(256))).expect("it has not panicked"), 256);
    }

    /// A collector of garbage looks for a thread's data on its stack.
    #[test]
    fn a_thread_with_room_stays_on_its_stack() {
        assert!(on_thread(1024, stays).expect("it has not panicked"));
        assert!(!on_thread(128, stays).expect("it has not panicked"));
    }

    #[test]
    fn one_may_be_on_another() {
        let nested = || with_room(|| with_room(|| String::from("inner")) + " outer");
        assert_eq!(on_thread(64, nested).expect("it has not panicked"), "inner outer");
    }

    #[test]
    fn a_panic_comes_through() {
        for kib in [64, 1024] {
            let caught = on_thread(kib, || with_room(|| -> u32 { panic!("seven") }));
            assert_eq!(caught.expect_err("a panic").downcast_ref(), Some(&"seven"));
        }
    }

    static TICKS: AtomicU32 = AtomicU32::new(0);
    static FINISHED: AtomicU32 = AtomicU32::new(0);

    extern "C" fn tick(_: i32) {
        TICKS.fetch_add(1, Ordering::Relaxed);
    }

    /// A handler that ends MPI, and is interrupted by another's signal while it is at it.
    extern "C" fn end(_: i32) {
        let during = with_room(|| {
            // SAFETY: a signal that has a handler.
            unsafe { libc::raise(libc::SIGUSR2) };
            deep(256);
            TICKS.load(Ordering::Relaxed)
        });
        FINISHED.store(1 + during, Ordering::Relaxed);
    }

    #[test]
    fn on_an_alternate_stack_no_other_handler_begins_meanwhile() {
        let handled = on_thread(1024, || {
            let mut memory = vec![0u8; 64 << 10];
            let own = libc::stack_t { ss_sp: memory.as_mut_ptr().cast(), ss_flags: 0, ss_size: memory.len() };
            let none = libc::stack_t { ss_flags: libc::SS_DISABLE, ..own };
            // SAFETY: handlers that only use atomics and this module, on a stack that is there until it is given back.
            unsafe {
                libc::sigaltstack(&raw const own, ptr::null_mut());
                for (signal, handler) in [(libc::SIGUSR1, end as extern "C" fn(i32)), (libc::SIGUSR2, tick)] {
                    let mut action: libc::sigaction = MaybeUninit::zeroed().assume_init();
                    action.sa_sigaction = handler as *const () as usize;
                    action.sa_flags = libc::SA_ONSTACK;
                    libc::sigaction(signal, &raw const action, ptr::null_mut());
                }
                libc::raise(libc::SIGUSR1);
                libc::sigaltstack(&raw const none, ptr::null_mut());
            }
            (FINISHED.load(Ordering::Relaxed), TICKS.load(Ordering::Relaxed))
        });
        assert_eq!(handled.expect("it has not panicked"), (1, 1), "not while it was at it, but afterwards");
    }
}
