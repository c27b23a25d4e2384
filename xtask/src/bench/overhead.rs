//! `cargo xtask bench overhead`: cost of ampl for a whole job, measured in independent ways.
//!
//! - *alternating*: one job calls MPI by its public and by its profiling names in turns, milliseconds each; drift and
//!   the other tenants of the machine hit both alike.
//! - *pairs*: whole jobs, bare and watched, follow each other; ratios are taken within a round.
//! - *own*: the agent's report beside the processor time of whole jobs in turns, start and end included, with a
//!   verdict: four programs, one of them expensive, on 2 and on 8 ranks that share two processors.
//! - *levels*: processor time of whole jobs in turns without ampl, with summaries, with decisions afterwards and with
//!   everything kept: two test programs, LAMMPS and HPCC on 2 and on 8 ranks that share two processors.
//! - *instructions*: callgrind counts those spent in and for the library, which no noise reaches.
//!
//! The agent's own report stands beside each. Nothing is asserted: a table is printed.

mod alternating;
mod callgrind;
mod instructions;
mod job;
mod levels;
mod options;
mod own;
mod pairs;
mod program;

use anyhow::Result;

use job::Bench;
use options::{Options, Part};

/// Runs the parts that `arguments` choose and prints a table for each.
///
/// # Errors
/// For unknown options, when a tool is missing or a job fails.
pub fn run(arguments: &[&str]) -> Result<()> {
    let options = Options::parse(arguments)?;
    let bench = Bench::prepare(&options)?;
    match options.parts[..] {
        [Part::Own] => return own::run(&bench, &options),
        [Part::Levels] => return levels::run(&bench, &options),
        _ => {}
    }
    let programs = program::choose(&bench, &options)?;
    for program in &programs {
        println!("\n{}", program.describe());
    }
    for part in &options.parts {
        match part {
            Part::Alternating => alternating::run(&bench, &options, &programs)?,
            Part::Own => own::run(&bench, &options)?,
            Part::Levels => levels::run(&bench, &options)?,
            Part::Pairs => pairs::run(&bench, &options, &programs)?,
            Part::Instructions => instructions::run(&bench, &programs, options.state)?,
        }
    }
    Ok(())
}
