//! Gaps of a run as JSON.

use std::collections::BTreeMap;

use ampl_core::mpi::Function;
use ampl_core::units::RankSet;
use ampl_reader::gaps::{MissingCalls, Recorded};
use serde::Serialize;

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
    let name = Function::name_of;
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
    ranks.iter().copied().collect::<RankSet>().to_string()
}

#[cfg(test)]
mod tests {
    use ampl_reader::Reason;

    use super::*;

    #[test]
    fn gaps_have_ranks_and_times() {
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
        let rows = serde_json::to_value(rows(&recorded)).unwrap();
        assert_eq!((&rows[0]["ranks"], &rows[1]["until_ns"]), (&"0-2,5".into(), &9.into()), "{rows}");
    }
}
