//! The verdict, before all numbers.

use ampl_analysis::verdict::Finding;

use crate::layout::{Page, paragraph, title};
use crate::verdict;

/// Findings that a summary has; `ampl info --json` and the report have all.
const MOST: usize = 3;

pub(super) fn write(out: &mut Page, findings: &[Finding]) {
    title(out, "Verdict, by the time it costs");
    for finding in findings.iter().take(MOST) {
        paragraph(out, verdict::title(finding.kind()), &verdict::sentence(finding));
    }
}
