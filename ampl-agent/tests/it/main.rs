//! What holds of ampl-agent, one module per subject: one program, because each links everything.

mod after;
mod common;
mod counters;
mod crash;
mod full;
mod governor;
mod journal;
mod model;
mod partners;
mod paths;
mod program;
mod requests;
mod structure;
mod thread;
