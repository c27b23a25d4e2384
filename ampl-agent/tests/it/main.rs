//! Tests of ampl-agent, one module per subject: one program, because each links everything.

mod common;
mod counters;
mod crash;
mod full_journal;
mod gaps;
mod governor;
mod growth;
mod journal;
mod model;
mod partners;
mod paths;
mod program;
mod regions;
mod requests;
mod retrospective;
mod steps;
mod structure;
mod thread;
