//! Whole runs: adaptive sampling against planted truth, real applications, all of MPI, and what goes wrong.

mod adaptive;
mod applications;
mod completeness;
mod counters;
mod doctor;
mod figure4;
mod governor;
mod misfortune;
mod partners;
