//! `ampl diff --calibrate`: how much equal runs differ.

use std::process::ExitCode;

use ampl_analysis::comparison::{FEWEST_TO_LEARN, Spread};
use ampl_report::comparison::words;
use ampl_report::human::plural;

use super::{Args, profiles};
use crate::failure::{Failure, INCOMPARABLE, USAGE};
use crate::output;

/// Fewest runs from which a gate can rely on a spread.
const RELIABLE: usize = 10;

/// Learns the spread of the runs that `args` name, and writes it.
///
/// # Errors
/// A [`Failure`] for too few runs, for runs of other jobs, and for a file that cannot be written.
pub fn calibrate(args: &Args) -> anyhow::Result<ExitCode> {
    if args.runs.len() < FEWEST_TO_LEARN {
        let what = format!("{} show no spread", plural(args.runs.len() as u64, "run"));
        let fix = format!("name {FEWEST_TO_LEARN} equal runs or more, {RELIABLE} for a gate");
        return Err(Failure::message(USAGE, what, "--calibrate", fix));
    }
    let runs = profiles(&args.runs)?;
    let found = ampl_analysis::comparison::compare(&runs[..1], &runs[1..], &Default::default());
    let mismatch = found.ok().and_then(|found| found.mismatches.into_iter().next());
    if let Some(mismatch) = mismatch.filter(|_| !args.allow) {
        let what = format!("the runs are not equal: {}", words::mismatch(&mismatch));
        return Err(Failure::message(
            INCOMPARABLE,
            what,
            "--calibrate",
            "name runs of one job, or give --allow",
        ));
    }
    let spread = Spread::learn(&runs);
    if runs.len() < RELIABLE {
        notice!(
            "ampl: {} show the spread of times roughly (--calibrate): record {RELIABLE} for a gate",
            plural(runs.len() as u64, "run")
        );
    }
    match &args.output {
        Some(path) => {
            std::fs::write(path, spread.to_toml()).map_err(|error| {
                let what = format!("cannot write it: {error}");
                Failure::message(USAGE, what, path.display(), "name another file")
            })?;
            notice!("ampl: wrote {}", path.display());
        }
        None if args.json => output::json(&spread)?,
        None => output::print(|out| std::io::Write::write_all(out, spread.to_toml().as_bytes()))?,
    }
    Ok(ExitCode::SUCCESS)
}
