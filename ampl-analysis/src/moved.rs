//! Bytes that the run has moved to and from files and windows.

use ampl_core::mpi::{FUNCTIONS, FunctionSpec};
use ampl_trace::Trace;
use serde::Serialize;

/// Bytes of all calls of all ranks, as the calls asked for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Moved {
    /// `MPI_File_read*` and `MPI_File_iread*`.
    #[serde(rename = "io.bytes_read")]
    pub read: u64,
    /// `MPI_File_write*` and `MPI_File_iwrite*`.
    #[serde(rename = "io.bytes_written")]
    pub written: u64,
    /// Bytes that went to windows: `MPI_Put`, `MPI_Accumulate` and functions that fetch as well.
    #[serde(rename = "rma.bytes_put")]
    pub put: u64,
    /// Bytes that came from windows: `MPI_Get` and functions that fetch.
    #[serde(rename = "rma.bytes_got")]
    pub got: u64,
}

impl Moved {
    /// Bytes moved in `trace`; `None` where nothing was moved.
    pub fn of(trace: &Trace) -> Option<Self> {
        let mut moved = Self::default();
        for (function, _, total) in trace.totals.places() {
            let Some(FunctionSpec { traffic, .. }) = FUNCTIONS.get(usize::from(function)) else { continue };
            let (out, back) = match (traffic.is_file(), traffic.is_window()) {
                (true, _) => (&mut moved.written, &mut moved.read),
                (_, true) => (&mut moved.put, &mut moved.got),
                _ => continue,
            };
            *out = out.saturating_add(total.sent);
            *back = back.saturating_add(total.received);
        }
        (moved != Self::default()).then_some(moved)
    }
}
