//! Tests of ampl-client, one module per subject: one program, because each links everything.

mod budget;
mod common;
mod coverage;
mod divided;
mod divided_bounds;
mod few_observers;
mod figure4;
mod looser;
mod lossy;
mod policy;
mod rests;
mod retrospective;
mod retrospective_strata;
mod simulate;
mod steps;
mod stragglers;
mod tree;
