//! Extent to which a part of a run is known.

use ampl_analysis::query::Extent;

use crate::human::plural;

/// Gaps in the knowledge of a part, each with its remedy; none where all of it is known.
pub fn lacks(extent: &Extent) -> Vec<(String, &'static str)> {
    let mut lacks = Vec::new();
    if extent.missing_ranks > 0 {
        let what = format!("{} left nothing", plural(extent.missing_ranks, "rank"));
        lacks.push((what, "the answer is without them"));
    }
    if extent.damaged > 0 {
        let what = format!("damaged: times of {}", plural(extent.damaged, "rank"));
        lacks.push((what, "the answer is without them"));
    }
    if extent.unrecorded > 0 {
        let what = format!("counted and not recorded: {}", plural(extent.unrecorded, "call"));
        lacks.push((what, "'ampl info RUN --json' has their reasons under gaps"));
    }
    if extent.untold > 0 {
        let windows = plural(extent.windows, "rank-window");
        let what =
            format!("it is not known which calls of {} of {windows} belong to the time", extent.untold);
        lacks.push((what, "ask for whole windows, or record with --set trace.timing=all"));
    }
    lacks
}
