//! Starting a job under ampl: the program and its libraries, the launcher, the configuration in its layers, this
//! machine, and what dead jobs have left on it.
//!
//! No MPI is linked, and `libampl.so` is found by path. Messages go to stderr. Arguments and exit codes are the
//! command's.
//!
//! ```
//! use std::ffi::OsString;
//!
//! use ampl_launch::launcher::{Flavour, insert_exec};
//!
//! let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
//! let line = words("mpirun -n 4 --bind-to core numactl -l ./app input.txt");
//! let inserted = insert_exec(Flavour::OpenMpi, &line, &words("ampl exec --"))?;
//! assert_eq!(inserted.argv, words("mpirun -n 4 --bind-to core ampl exec -- numactl -l ./app input.txt"));
//! assert_eq!(inserted.programs, words("./app"));
//! # Ok::<(), ampl_launch::launcher::LauncherError>(())
//! ```
#![deny(unsafe_code)]

/// A line for people, on stderr; write errors are ignored.
#[macro_export]
macro_rules! notice {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        // One write: ranks share the place, and their lines must not run into each other.
        _ = std::io::stderr().write_all(($crate::plain(&format!($($text)*)) + "\n").as_bytes());
    }};
}

pub use ampl_core::plain::plain;

pub mod apart;
pub mod application;
pub mod copying;
pub mod counting;
pub mod directory;
pub mod elf;
pub mod environment;
pub mod examination;
pub mod failure;
pub mod hint;
#[allow(unsafe_code)]
pub mod inherited;
pub mod interrupted;
pub mod job;
mod job_text;
pub mod launcher;
pub mod leftovers;
pub mod library;
pub mod machine;
pub mod marker_site;
pub mod mpi;
pub mod once;
mod options;
pub mod prefix;
pub mod program;
pub mod recover;
pub mod script;
pub mod site_file;
pub mod start;
pub mod tool_hooks;
