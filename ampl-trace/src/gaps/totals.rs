//! Missing calls of a rank, by reason.

use std::collections::BTreeMap;

use super::{Gaps, Part, Reason, Span, ThreadGaps};

/// Unrecorded calls of a rank, for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Reason.
    pub reason: Reason,
    /// Number of calls.
    pub calls: u64,
    /// First and last moment, nanoseconds since T0, where these are known.
    pub span_ns: Option<(i64, i64)>,
    /// The calls by function and site, ascending.
    pub parts: Vec<Part>,
}

impl Gaps {
    /// Unrecorded calls by reason, ascending. The cost does not depend on the number of gaps.
    pub fn missing(&self) -> Vec<Missing> {
        let mut found: BTreeMap<Reason, BTreeMap<(u16, Option<u32>), u64>> = BTreeMap::new();
        for thread in &self.threads {
            for (kind, calls) in thread.sequence.totals() {
                let Some(kind) = thread.kinds.get(kind as usize).filter(|_| calls > 0) else { continue };
                let own = found.entry(kind.reason).or_default();
                let total = own.entry((kind.function, kind.site.checked_sub(1))).or_default();
                *total = total.saturating_add(calls);
            }
        }
        let missing = found.into_iter().map(|(reason, parts)| Missing {
            reason,
            calls: parts.values().fold(0, |sum, &calls| sum.saturating_add(calls)),
            span_ns: self.span(reason),
            parts: parts
                .into_iter()
                .map(|((function, site), calls)| Part { function, site, calls })
                .collect(),
        });
        missing.collect()
    }

    /// First and last moment of gaps for `reason`.
    fn span(&self, reason: Reason) -> Option<(i64, i64)> {
        let spans = self.threads.iter().flat_map(ThreadGaps::all_spans);
        let own = spans.filter(|span| span.reasons & reason.bit() != 0);
        own.map(|span| (span.from_ns, span.until_ns))
            .reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))
    }
}

impl ThreadGaps {
    fn all_spans(&self) -> impl Iterator<Item = &Span> {
        self.spans.iter().chain(&self.rest)
    }
}
