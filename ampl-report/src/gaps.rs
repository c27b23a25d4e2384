//! A sentence about the calls of a run that are not recorded one by one.

use ampl_reader::Reason;
use ampl_reader::gaps::Recorded;

use crate::human::{count, percent, plural};

/// A sentence about the calls that cannot be decoded; `None` where all can.
pub fn sentence(recorded: &Recorded) -> Option<String> {
    let missing = recorded.counted.saturating_sub(recorded.calls);
    let each = recorded.gaps.iter().map(|gap| format!("{} {}", count(gap.calls), why(gap.reason)));
    (missing > 0).then(|| {
        format!(
            "{} of {} ({}) are not recorded one by one: {}",
            count(missing),
            plural(recorded.counted, "call"),
            percent(1.0 - recorded.share()),
            each.collect::<Vec<_>>().join(", ")
        )
    })
}

/// Reason of calls that are not recorded, behind their number.
fn why(reason: Reason) -> &'static str {
    match reason {
        Reason::Overhead => "to limit the cost",
        Reason::Paused => "in pauses",
        Reason::Site => "by [[site]]",
        Reason::Structure => "by trace.structure",
        Reason::Room => "for want of room",
        Reason::Nested => "made within other calls",
        Reason::Early => "made before MPI_Init",
        Reason::Unfinished => "that had not returned",
        Reason::Failed => "after a failure of ampl",
        Reason::Unknown => "for reasons that are not known",
        Reason::Limit => "to stay within agent.max_memory or output.max_bytes",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use ampl_reader::gaps::MissingCalls;

    use super::*;

    #[test]
    fn a_sentence_names_what_is_missing_and_why() {
        let gap = |reason, calls| MissingCalls {
            reason,
            ranks: vec![0, 1, 2, 5],
            calls,
            span_ns: Some((5, 9)),
            functions: BTreeMap::from([(0, calls)]),
            sites: BTreeMap::from([((0, None), calls)]),
        };
        let gaps = vec![gap(Reason::Overhead, 1500), gap(Reason::Paused, 500)];
        let recorded = Recorded { counted: 8000, calls: 6000, gaps };
        assert_eq!(
            sentence(&recorded).unwrap(),
            "2,000 of 8,000 calls (25 %) are not recorded one by one: 1,500 to limit the cost, 500 in pauses"
        );
        assert_eq!(sentence(&Recorded { counted: 8000, calls: 8000, gaps: Vec::new() }), None);
    }
}
