//! libampl.so: where agent and client meet MPI.
//!
//! Loaded before an MPI library, it defines every MPI function, records the call and forwards it
//! unchanged. It needs no `mpi.h` and links no MPI: every argument is a machine word, and what
//! differs between implementations is data ([`abi`]).

pub mod abi;
mod align;
pub mod api;
mod batch;
mod begin;
mod caller;
mod clock;
mod counters;
mod ending;
mod entry;
mod environment;
mod fortran;
mod frames;
mod hooks;
mod inquiry;
mod intercept;
mod late;
mod once;
mod patience;
mod pmpi;
mod presence;
mod process;
mod reader;
mod recipe;
mod resolve;
mod roomy;
mod settle;
mod signals;
mod sleep;
mod stack;
mod symbol;
mod thread_state;
mod transport;
mod tree;
mod turn;
mod unseen;
mod walk;
mod watch;
mod wrappers;
