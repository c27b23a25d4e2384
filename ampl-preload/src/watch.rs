//! Says why `MPI_Init` takes so long, where ranks may be waiting for one that does not run under ampl.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use crate::begin::message;

/// Agreeing takes milliseconds, on a machine that is overloaded seconds.
const LONG: Duration = Duration::from_secs(20);

/// A thread that waits; it ends with the value.
#[derive(Debug)]
pub struct Watch {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Starts to watch, on a few ranks: any of them may be the one that is not there.
    pub fn start(rank: u32) -> Self {
        let (stop, stopped) = channel::<()>();
        let wait = move || {
            if stopped.recv_timeout(LONG) == Err(RecvTimeoutError::Timeout) {
                message(&format!(
                    "rank {rank} has been waiting for the other ranks in MPI_Init for {} s: is every process of the \
                     job started by `ampl exec` (or none), with AMPL_DISABLE set for all of them or for none?",
                    LONG.as_secs()
                ));
            }
        };
        let thread = (rank == 0 || rank.is_power_of_two()).then(|| without_signals(wait)).flatten();
        Self { stop: Some(stop), thread }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A thread that takes none of the signals that are meant for the program; `None` where there can be none.
fn without_signals(work: impl FnOnce() + Send + 'static) -> Option<JoinHandle<()>> {
    // SAFETY: sets of signals are plain data, and each call only fills or reads those passed.
    unsafe {
        let (mut all, mut before): (libc::sigset_t, libc::sigset_t) =
            (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let thread = Builder::new().name("ampl".into()).stack_size(1 << 17).spawn(work).ok();
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
        thread
    }
}
