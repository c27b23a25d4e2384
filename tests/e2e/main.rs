//! Whole runs: adaptive sampling against planted truth, real applications, all of MPI, and what goes wrong.

mod adaptive;
mod applications;
mod clocks;
mod communicators;
mod completeness;
mod counters;
mod deaf;
mod doctor;
mod figure4;
mod floor;
mod full;
mod governor;
mod journals;
mod late;
mod misfortune;
mod partners;
mod paths;
mod recipes;
mod recover;
mod retrospective;
mod site_names;
mod sites;
mod strata;
mod summaries;
mod trace;
mod verify;
