//! libampl.so: where agent and client meet MPI.
//!
//! Loaded before an MPI library, it defines every MPI function, records the call and forwards it
//! unchanged. It needs no `mpi.h` and links no MPI: every argument is a machine word, and differences between
//! implementations are data ([`abi`]).
//!
//! ```
//! // A process that has loaded no MPI has no such data.
//! assert!(ampl::abi::detect().is_none());
//! ```

pub mod abi;
mod align;
mod allocated;
pub mod api;
mod awaited;
mod backoff;
mod batch;
mod caller;
mod cgroup;
mod clock;
mod contain;
mod control;
mod copier;
mod counters;
mod counts;
mod decision;
mod deferred_mpi;
mod device_memory;
mod displaced;
mod ending;
mod entry;
mod environment;
mod exports;
mod filled;
mod finalize;
mod fortran;
mod frames;
mod function_names;
mod functions;
mod hook_plan;
mod hooks;
mod hot_state;
mod init;
mod inquiry;
mod intercept;
mod large_stack;
mod libraries;
mod lifecycle;
mod loader;
mod metadata;
mod nodes;
mod once;
mod own_command;
mod places;
mod pmpi;
mod presence;
mod process;
mod progress_timer;
mod reader;
mod report;
mod resolve;
mod signals;
mod sleep;
mod stack;
mod switches;
mod symbol;
mod thread_state;
mod tools;
mod transport;
mod tree;
mod uncovered;
mod walk;
mod watch;
mod wrappers;
mod yield_suppressor;
