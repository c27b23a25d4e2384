//! The summary of a run, on the terminal.

use std::path::Path;

use ampl_reader::directory;
use ampl_report::layout::width;
use ampl_report::summary::{self, Source};
use ampl_trace::Trace;

use crate::{failure, rundir};
use ampl_launch::environment;

/// The summary of `trace`, which was read from `run`.
pub fn text(trace: &Trace, run: &Path) -> String {
    let has_file = !directory::has_no_trace(run);
    summary::text(trace, &Source { run, has_file, width: width(environment::columns()) })
}

/// Prints the summary of the run in `dir` to stderr, or why there is none; returns the run.
pub fn print(dir: &Path) -> Option<Trace> {
    match directory::read(dir) {
        Ok(trace) => {
            notice!("{}", text(&trace, dir).trim_end());
            Some(trace)
        }
        Err(error) => {
            failure::report(&rundir::failure(error));
            None
        }
    }
}
