//! Shared parts of the end-to-end tests: MPI libraries, jobs with a time limit, runs of ampl, and the comparison of
//! a decoded trace with a log that the program wrote itself.
//!
//! The tests need an installation (`AMPL_TEST_DIST`, or else `target/dist` by `cargo xtask dist`) and what
//! `cargo xtask setup` installs; what is missing fails the test that needs it.

#![forbid(unsafe_code)]

pub mod browser;
pub mod differential;
pub mod hosts;
pub mod job;
pub mod place;
pub mod process;
pub mod python;
pub mod reference;
pub mod run;
