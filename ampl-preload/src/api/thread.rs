//! Where a call of the API meets the thread that makes it.
//!
//! Threads that call MPI have a state, which a call of the API uses too; others have a bystander. The
//! thread that finalises MPI takes what the others have left while they may be in a call of the API: so
//! each thread has a flag that says so, and no call begins once the end has.

use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use ampl_agent::meter::Meter;
use ampl_agent::regions::Bystander;
use ampl_agent::thread::NamedRegion;
use ampl_agent::uncancelled::Uncancelled;

use super::names::REGIONS;
use crate::contain::contained;
use crate::control;
use crate::decision;
use crate::entry::entry;
use crate::hot_state;
use crate::process;
use crate::thread_state::ThreadState;

/// How long the end waits for a call of the API on another thread.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// State of a thread for the API.
#[derive(Debug)]
pub struct ApiThread {
    /// True while the thread is in a call of the API.
    busy: AtomicBool,
    bystander: Option<Bystander>,
    meter: Meter,
}

/// True once calls have no effect any more.
static ENDED: AtomicBool = AtomicBool::new(false);
static THREADS: Mutex<Threads> = Mutex::new(Threads { all: Vec::new(), free: Vec::new(), key: None });

struct Threads {
    all: Vec<*mut ApiThread>,
    /// States of threads that have ended.
    free: Vec<*mut ApiThread>,
    key: Option<libc::pthread_key_t>,
}

// SAFETY: the pointers are only followed as `ApiThread::busy` allows.
unsafe impl Send for Threads {}

/// The calling thread, as the agent knows it.
pub enum Caller<'a> {
    /// It calls MPI.
    Rank(&'a mut ThreadState),
    /// It does not, so far.
    Bystander(&'a mut Bystander),
}

/// True where calls have an effect, as far as can be seen at once.
#[inline(always)]
pub fn is_open() -> bool {
    hot_state::is_active() && !ENDED.load(Ordering::Relaxed)
}

/// Does `call` at the present tick, for the thread that makes it. `call` returns whether windows were closed.
///
/// `None` if there is no agent any more, or the thread is in a call already, which a signal handler has interrupted.
pub fn with_caller<T>(call: impl FnOnce(Caller<'_>, u64) -> (bool, T)) -> Option<T> {
    // SAFETY: the calling thread's own block.
    let mut here = unsafe { (*entry()).api.cast::<ApiThread>() };
    if here.is_null() {
        here = contained(adopt).flatten()?;
    }
    // SAFETY: states of the API are never freed.
    if unsafe { (*here).busy.swap(true, Ordering::Acquire) } {
        return None;
    }
    // Checked again: the end reads the flag after it has set `ENDED`.
    let made = if is_open() {
        // SAFETY: the thread's own, and the flag keeps others out.
        contained(|| unsafe { make(&mut *here, call) }).flatten()
    } else {
        None
    };
    // SAFETY: as above.
    unsafe { (*here).busy.store(false, Ordering::Release) };
    let (closed, result) = made?;
    if closed {
        decision::tell();
    }
    Some(result)
}

/// The result of `call`, behind whether it has closed windows.
///
/// # Safety
/// `here` must be the calling thread's.
unsafe fn make<T>(
    here: &mut ApiThread,
    call: impl FnOnce(Caller<'_>, u64) -> (bool, T),
) -> Option<(bool, T)> {
    let process = process::current()?;
    // SAFETY: the calling thread's own state: a wrapper holds no reference to it while MPI runs, and none
    // of the agent's own doings ends up here.
    let state = unsafe { (*entry()).state().as_mut() };
    let now = within_call().unwrap_or_else(hot_state::now);
    let Some(state) = state else {
        let bystander = here.bystander.get_or_insert_with(|| Bystander::new(process.shared.clone()));
        return Some((false, call(Caller::Bystander(bystander), now).1));
    };
    if let Some(mut bystander) = here.bystander.take() {
        state.thread.take_over(&mut bystander);
        for region in bystander.take_open() {
            if let Some(name) = REGIONS.get(region as i32) {
                let region = NamedRegion { number: region, name: name.label(), declared: None };
                state.thread.begin_inside(region, now);
            }
        }
    }
    let measured = here.meter.is_due();
    let from = if measured { hot_state::now() } else { 0 };
    let (closed, result) = call(Caller::Rank(state), now);
    if measured && !closed {
        here.meter.take(hot_state::now() - from);
    }
    state.thread.add_own(here.meter.per_call());
    if closed {
        control::window_closed_by_program(state);
    }
    Some((closed, result))
}

/// Ticks at which the call of MPI began that the program's callback runs in; `None` outside of MPI. Events in a
/// callback have that time, because the call's time is accounted for as a whole when it has returned.
#[inline]
fn within_call() -> Option<u64> {
    // SAFETY: the calling thread's own block.
    let (inside, start) = unsafe { ((*entry()).inside, (*entry()).outer.start) };
    let here = 0u8;
    // A call that was left by a jump may be noted still; its frame was below ours or is gone.
    (inside != 0 && start != 0 && (&raw const here as u64) < inside).then_some(start)
}

#[cold]
fn adopt() -> Option<*mut ApiThread> {
    let _whole = Uncancelled::begin();
    let mut threads = THREADS.lock().unwrap_or_else(PoisonError::into_inner);
    let key = *threads.key.get_or_insert_with(|| {
        let mut key = libc::pthread_key_t::MAX;
        // SAFETY: a place for the key, and a function that takes its value. Without a key (the program has
        // used them all) states of ended threads are not used again.
        unsafe { libc::pthread_key_create(&raw mut key, Some(ended)) };
        key
    });
    let here = threads.free.pop().unwrap_or_else(|| {
        let fresh = ApiThread { busy: AtomicBool::new(false), bystander: None, meter: Meter::default() };
        ptr::from_mut(Box::leak(Box::new(fresh)))
    });
    if !threads.all.contains(&here) {
        threads.all.push(here);
    }
    // SAFETY: the calling thread's own block.
    unsafe {
        libc::pthread_setspecific(key, here.cast());
        (*entry()).api = here.cast();
    }
    Some(here)
}

/// A thread that has used the API has ended.
unsafe extern "C" fn ended(here: *mut libc::c_void) {
    // SAFETY: the calling thread's own block.
    unsafe { (*entry()).api = ptr::null_mut() };
    if !hot_state::is_active() {
        return; // perhaps a forked child, where another thread may have held the lock
    }
    let here = here.cast::<ApiThread>();
    // SAFETY: states of the API are never freed.
    if unsafe { (*here).busy.swap(true, Ordering::Acquire) } {
        return;
    }
    contained(|| {
        // SAFETY: the flag keeps others out, and the thread will not use it any more.
        if let Some(mut bystander) = unsafe { (*here).bystander.take() }.filter(|_| is_open()) {
            bystander.end();
        }
    });
    // SAFETY: as above.
    unsafe { (*here).busy.store(false, Ordering::Release) };
    contained(|| THREADS.lock().unwrap_or_else(PoisonError::into_inner).free.push(here));
}

/// Ends the API, as `MPI_Finalize` is entered: no further call has an effect, and bystanders' totals are collected.
pub fn close() {
    ENDED.store(true, Ordering::SeqCst);
    decision::close();
    let until = Instant::now() + LONGEST_WAIT;
    for &thread in &THREADS.lock().unwrap_or_else(PoisonError::into_inner).all {
        // SAFETY: states of the API are never freed.
        while unsafe { (*thread).busy.swap(true, Ordering::Acquire) } {
            if Instant::now() > until {
                return;
            }
            std::thread::yield_now();
        }
        // SAFETY: the flag keeps the thread out.
        if let Some(bystander) = unsafe { &mut (*thread).bystander } {
            bystander.hand_over();
        }
        // SAFETY: as above.
        unsafe { (*thread).busy.store(false, Ordering::Release) };
    }
}
