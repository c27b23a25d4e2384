//! `ampl query RUN sites` and `ampl info RUN --calls`: one table.

use std::process::ExitCode;

use ampl_analysis::calls::{self, Row};
use ampl_analysis::in_call;
use ampl_reader::sites::Symbols;
use ampl_report::calls as text;
use ampl_report::layout::width;
use ampl_trace::Trace;
use ampl_trace::communicators::Communicators;
use serde::Serialize;

use super::part::Part;
use crate::output;
use crate::rundir::RunArg;
use ampl_launch::environment;

/// Prints the call sites of the whole run.
///
/// # Errors
/// Errors of [`RunArg::read`], a failure of status 2 where a part is asked for, and failures to write.
pub fn of_query(run: &RunArg, part: &Part) -> anyhow::Result<ExitCode> {
    part.refuse("totals of call sites are of the whole run", "ask for 'summary', which takes a part")?;
    let trace = run.read()?;
    print(&trace, part.json)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the call sites of `trace`.
///
/// # Errors
/// Failures to write.
pub fn print(trace: &Trace, json: bool) -> anyhow::Result<()> {
    let mut table = calls::table(trace);
    match json {
        true => output::json(&Site::all(trace, &table.rows)),
        false => {
            let text = text::text(&mut table, width(environment::columns()));
            output::text(&text)
        }
    }
}

/// An element of the output in JSON.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Site<'a> {
    /// A call site.
    Of(&'a Row),
    /// Last, of an unfinished run.
    Under {
        /// Calls that its ranks are in.
        in_call: Vec<in_call::Row>,
    },
}

impl<'a> Site<'a> {
    fn all(trace: &Trace, rows: &'a [Row]) -> Vec<Self> {
        let in_call = in_call::rows(trace, &Communicators::of(trace), &mut Symbols::default());
        let under = (!in_call.is_empty()).then_some(Self::Under { in_call });
        rows.iter().map(Self::Of).chain(under).collect()
    }
}
