//! Tests of ampl-trace, one module per subject: one program, because each links everything.

mod common;
mod communicators;
mod gaps;
mod golden;
mod grammar;
mod journal;
mod journal_damage;
mod left_out;
mod properties;
mod recorder;
mod regions;
mod spread;
mod structure;
mod timing;
mod totals_only;
mod unify;
mod unknown_communicators;
