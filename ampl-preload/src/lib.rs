//! libampl.so: where agent and client meet MPI.
//!
//! Loaded before an MPI library, it defines every MPI function, records the call and forwards it
//! unchanged. It needs no `mpi.h` and links no MPI: every argument is a machine word, and differences between
//! implementations are data ([`abi`]).

pub mod abi;
mod align;
pub mod api;
mod backoff;
mod batch;
mod caller;
mod cgroup;
mod clock;
mod counters;
mod deferred_mpi;
mod ending;
mod entry;
mod environment;
mod finalize;
mod fortran;
mod frames;
mod hook_plan;
mod hooks;
mod init;
mod inquiry;
mod intercept;
mod large_stack;
mod metadata;
mod once;
mod pmpi;
mod presence;
mod process;
mod reader;
mod resolve;
mod signals;
mod sleep;
mod stack;
mod symbol;
mod thread_state;
mod transport;
mod tree;
mod uncovered;
mod walk;
mod watch;
mod wrappers;
mod yield_suppressor;
