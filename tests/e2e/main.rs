//! Whole runs: adaptive sampling against planted truth, real applications, and what goes wrong.

mod adaptive;
mod applications;
mod misfortune;
