//! The verdict in JSON.

use std::path::Path;

use ampl_analysis::verdict::{self, Finding};
use ampl_report::{human, verdict as words};
use ampl_trace::Trace;
use serde::Serialize;

/// A finding in JSON; the order of fields is part of the format.
#[derive(Debug, Serialize)]
pub struct Found {
    kind: &'static str,
    /// Time that it costs over the ranks' time; null where it costs no known time.
    cost_share: Option<f64>,
    /// The ranks that it names.
    ranks: Option<String>,
    hosts: Vec<String>,
    /// Where most of the waiting is, or the calls that take the time.
    site: Option<String>,
    function: Option<&'static str>,
    /// The finding in one sentence.
    text: String,
    basis: &'static str,
    /// Share of the ranks' time that its numbers rest on.
    coverage: f64,
    /// The command that examines it.
    next: String,
}

/// Findings of `trace`, which was read from `run`.
pub fn of(trace: &Trace, run: &Path) -> Vec<Found> {
    let run = human::shell_word(&run.display().to_string());
    verdict::of(trace).into_iter().map(|finding| Found::of(finding, &run)).collect()
}

impl Found {
    fn of(finding: Finding, run: &str) -> Self {
        Self {
            kind: finding.kind().name(),
            cost_share: finding.cost_share,
            ranks: finding.ranks.as_ref().map(ToString::to_string),
            site: finding.place.as_ref().and_then(|place| place.site.clone()),
            function: finding.place.as_ref().map(|place| place.function),
            text: words::sentence(&finding),
            basis: finding.basis.name(),
            coverage: finding.coverage,
            next: words::next(finding.next, run),
            hosts: finding.hosts,
        }
    }
}
