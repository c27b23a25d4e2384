//! A call that has returned, as the hooks pass it to its thread.

use ampl_core::mpi::Function;

use crate::buffers::Terminal;

/// A call that has returned.
#[derive(Clone, Copy, Debug)]
pub struct CallEnd {
    /// The function.
    pub function: Function,
    /// Return address into the caller.
    pub address: u64,
    /// Ticks just before MPI was entered.
    pub start: u64,
    /// Ticks just after MPI returned.
    pub end: u64,
    /// Bytes sent.
    pub sent: u64,
    /// Bytes received.
    pub received: u64,
    /// Call flags of [`ampl_trace::record`].
    pub flags: u8,
    /// Its [terminal](crate::Thread::terminal), if it is recorded.
    pub terminal: Option<Terminal>,
    /// True where its time is part of the time in MPI.
    pub timed: bool,
    /// True where its bytes are those of files or windows: they count for its site, not for messages.
    pub apart: bool,
}
