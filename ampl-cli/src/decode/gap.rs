//! A gap as a JSON line.

use std::collections::BTreeMap;

use ampl_core::mpi::Function;
use ampl_report::decode::gap::functions;
use ampl_trace::gaps::Gap;
use serde::Serialize;

/// A gap as a JSON line; the order of fields is part of the format.
#[derive(Serialize)]
pub struct JsonGap {
    /// Only where several ranks were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    rank: Option<u32>,
    seq: u64,
    gap: Contents,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<u32>,
}

#[derive(Serialize)]
struct Contents {
    calls: u64,
    /// Calls by function; `null` where it is not known of all of them.
    functions: Option<BTreeMap<&'static str, u64>>,
    reason: &'static str,
    from_ns: Option<i64>,
    until_ns: Option<i64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sites: Vec<SiteCalls>,
}

#[derive(Serialize)]
struct SiteCalls {
    function: &'static str,
    site: Option<String>,
    calls: u64,
}

impl JsonGap {
    /// A line about `gap`; `site` names a call site by its index.
    pub fn of(rank: Option<u32>, gap: &Gap, mut site: impl FnMut(u32) -> Option<String>) -> Self {
        let sites = gap.parts.iter().map(|part| SiteCalls {
            function: Function::name_of(part.function),
            site: part.site.and_then(&mut site),
            calls: part.calls,
        });
        Self {
            rank,
            seq: gap.seq,
            gap: Contents {
                calls: gap.calls,
                functions: functions(gap),
                reason: gap.reason.name(),
                from_ns: gap.span_ns.map(|(from, _)| from),
                until_ns: gap.span_ns.map(|(_, until)| until),
                sites: sites.collect(),
            },
            thread: Some(gap.thread).filter(|&thread| thread != 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ampl_trace::gaps::{Part, Reason};

    fn gap(known: bool) -> Gap {
        let part = |name, site, calls| Part { function: Function::by_name(name).unwrap().0, site, calls };
        let parts =
            vec![part("MPI_Send", Some(4), 1000), part("MPI_Send", None, 5), part("MPI_Recv", None, 7)];
        Gap {
            seq: 12,
            thread: if known { 0 } else { 3 },
            calls: 1012 + u64::from(!known),
            reason: Reason::Overhead,
            parts,
            span_ns: known.then_some((1_250_000_000, 3_250_000_000)),
        }
    }

    #[test]
    fn json_has_the_contract_s_fields_in_order() {
        let print = |known, rank| {
            let gap = JsonGap::of(rank, &gap(known), |site| Some(format!("main.c:{site}")));
            serde_json::to_string(&gap).unwrap()
        };
        assert_eq!(
            print(true, None),
            "{\"seq\":12,\"gap\":{\"calls\":1012,\"functions\":{\"MPI_Recv\":7,\"MPI_Send\":1005},\
             \"reason\":\"overhead\",\"from_ns\":1250000000,\"until_ns\":3250000000,\"sites\":[\
             {\"function\":\"MPI_Send\",\"site\":\"main.c:4\",\"calls\":1000},\
             {\"function\":\"MPI_Send\",\"site\":null,\"calls\":5},\
             {\"function\":\"MPI_Recv\",\"site\":null,\"calls\":7}]}}"
        );
        let unknown = print(false, Some(9));
        assert!(unknown.starts_with("{\"rank\":9,\"seq\":12,\"gap\":{\"calls\":1013,\"functions\":null"));
        assert!(unknown.contains("\"from_ns\":null,\"until_ns\":null"));
        assert!(unknown.ends_with("],\"thread\":3}") || unknown.ends_with("},\"thread\":3}"), "{unknown}");
    }
}
