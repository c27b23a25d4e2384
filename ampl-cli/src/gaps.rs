//! Gaps of a run as JSON, and as a sentence.

use std::collections::BTreeMap;

use ampl_core::mpi::FUNCTIONS;
use ampl_core::units::RankSet;
use ampl_reader::Reason;
use ampl_reader::gaps::{MissingCalls, Recorded};
use serde::Serialize;

use crate::human::{count, percent, plural};

/// Calls of some ranks that were counted and not recorded, for one reason.
#[derive(Debug, Serialize)]
pub struct Row {
    ranks: String,
    from_ns: Option<i64>,
    until_ns: Option<i64>,
    reason: &'static str,
    calls: u64,
    functions: BTreeMap<&'static str, u64>,
    sites: Vec<SiteCalls>,
}

#[derive(Debug, Serialize)]
struct SiteCalls {
    function: &'static str,
    /// Name of the site; `null` where it is not known.
    site: Option<String>,
    calls: u64,
}

/// The gaps of `recorded`.
pub fn rows(recorded: &Recorded) -> Vec<Row> {
    recorded.gaps.iter().map(row).collect()
}

fn row(gap: &MissingCalls) -> Row {
    // Numbers of a damaged file may name no function.
    let name = |function: u16| FUNCTIONS.get(usize::from(function)).map_or("?", |spec| spec.name);
    let sites = gap.sites.iter().map(|((function, site), &calls)| SiteCalls {
        function: name(*function),
        site: site.clone(),
        calls,
    });
    Row {
        ranks: ranks(&gap.ranks),
        from_ns: gap.span_ns.map(|(from, _)| from),
        until_ns: gap.span_ns.map(|(_, until)| until),
        reason: gap.reason.name(),
        calls: gap.calls,
        functions: gap.functions.iter().map(|(&function, &calls)| (name(function), calls)).collect(),
        sites: sites.collect(),
    }
}

/// Ascending ranks as ranges, `0-3,8`.
fn ranks(ranks: &[u32]) -> String {
    let text: Vec<String> = ranks.iter().map(u32::to_string).collect();
    RankSet::parse(&text.join(",")).map_or_else(|_| String::new(), |set| set.to_string())
}

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
    }
}

#[cfg(test)]
mod tests {
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
        let rows = serde_json::to_value(rows(&recorded)).unwrap();
        assert_eq!((&rows[0]["ranks"], &rows[1]["until_ns"]), (&"0-2,5".into(), &9.into()), "{rows}");
    }
}
