//! Recorded calls of a run, and the counted ones that are missing.
//!
//! Recorded calls and those in gaps add up to the counted ones, function by function, in any state of a run. Functions
//! that are [counted only](Class::CountOnly), such as `MPI_Wtime`, have no place in a sequence: they are in neither.

use std::collections::BTreeMap;

use ampl_core::mpi::{Class, FUNCTIONS};
use ampl_trace::gaps::Reason;
use ampl_trace::structure::FunctionCalls;
use ampl_trace::{RankTrace, Trace};

use crate::sites::Symbols;

/// Recorded calls of a run, and its gaps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Counted calls of functions that have a place in the sequence.
    pub counted: u64,
    /// Calls that are recorded.
    pub calls: u64,
    /// Calls that are not, by reason.
    pub gaps: Vec<MissingCalls>,
}

/// Calls of some ranks that were counted and not recorded, for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingCalls {
    /// Reason.
    pub reason: Reason,
    /// The ranks, ascending.
    pub ranks: Vec<u32>,
    /// Number of calls.
    pub calls: u64,
    /// First and last moment, nanoseconds since T0, where these are known.
    pub span_ns: Option<(i64, i64)>,
    /// Calls by function: index in the function table, ascending.
    pub functions: BTreeMap<u16, u64>,
    /// Calls by function and name of the site; the site is `None` where it is not known.
    pub sites: BTreeMap<(u16, Option<String>), u64>,
}

impl Recorded {
    /// True where every counted call is in the sequence.
    pub fn is_whole(&self) -> bool {
        self.gaps.is_empty()
    }

    /// Share of the calls that can be decoded, in [0, 1]; 1 where there are none.
    pub fn share(&self) -> f64 {
        if self.counted == 0 { 1.0 } else { self.calls as f64 / self.counted as f64 }
    }

    /// Recorded calls and gaps of `trace`; call sites are named by `symbols`, or not.
    pub fn of(trace: &Trace, mut symbols: Option<&mut Symbols>) -> Self {
        let mut found = Self::default();
        let calls = (!trace.run.has_gaps).then(|| trace.structure.function_calls());
        for rank in &trace.ranks {
            found.add(rank, calls.as_ref(), symbols.as_deref_mut());
        }
        found
    }

    /// Adds a `rank`. Where not all gaps are recorded, calls that are neither in one nor among the `recorded` ones are
    /// missing.
    pub fn add(
        &mut self,
        rank: &RankTrace,
        recorded: Option<&FunctionCalls<'_>>,
        mut symbols: Option<&mut Symbols>,
    ) {
        let counted = rank.process.calls.iter().filter(|&&(function, _)| is_sequenced(function));
        let counted: BTreeMap<u16, u64> = counted.copied().collect();
        let all = sum(counted.values());
        let mut missing = 0u64;
        for own in rank.gaps.missing() {
            missing = missing.saturating_add(own.calls);
            let group = self.group(own.reason, rank.process.rank, own.calls, own.span_ns);
            for part in own.parts {
                let site = part.site.and_then(|site| symbols.as_mut()?.site(rank, site));
                group.put(part.function, site, part.calls);
            }
        }
        if let Some(recorded) = recorded.filter(|_| rank.gaps.is_empty()) {
            let recorded = recorded.of(rank.process.rank);
            let less = |(&function, &calls): (&u16, &u64)| {
                let of = recorded.and_then(|recorded| recorded.get(&function));
                (function, calls.saturating_sub(of.copied().unwrap_or(0)))
            };
            let unknown: BTreeMap<u16, u64> = counted.iter().map(less).filter(|own| own.1 > 0).collect();
            missing = sum(unknown.values());
            if missing > 0 {
                let group = self.group(Reason::Unknown, rank.process.rank, missing, None);
                unknown.into_iter().for_each(|(function, calls)| group.put(function, None, calls));
            }
        }
        self.counted = self.counted.saturating_add(all);
        self.calls = self.calls.saturating_add(all.saturating_sub(missing));
    }

    /// The entry of `reason`, to which `rank` and so many calls are added.
    fn group(
        &mut self,
        reason: Reason,
        rank: u32,
        calls: u64,
        span_ns: Option<(i64, i64)>,
    ) -> &mut MissingCalls {
        let at = self.gaps.partition_point(|group| group.reason < reason);
        if self.gaps.get(at).is_none_or(|group| group.reason != reason) {
            let (functions, sites) = Default::default();
            let new = MissingCalls { reason, ranks: Vec::new(), calls: 0, span_ns: None, functions, sites };
            self.gaps.insert(at, new);
        }
        let group = &mut self.gaps[at];
        group.ranks.push(rank);
        group.calls = group.calls.saturating_add(calls);
        group.span_ns = match (group.span_ns, span_ns) {
            (Some(one), Some(other)) => Some((one.0.min(other.0), one.1.max(other.1))),
            (one, other) => one.or(other),
        };
        group
    }
}

impl MissingCalls {
    fn put(&mut self, function: u16, site: Option<String>, calls: u64) {
        for total in
            [self.functions.entry(function).or_default(), self.sites.entry((function, site)).or_default()]
        {
            *total = total.saturating_add(calls);
        }
    }
}

/// True where calls of the function have a place in the sequence.
fn is_sequenced(function: u16) -> bool {
    FUNCTIONS.get(usize::from(function)).is_some_and(|spec| spec.class != Class::CountOnly)
}

fn sum<'a>(calls: impl Iterator<Item = &'a u64>) -> u64 {
    calls.fold(0, |sum, &calls| sum.saturating_add(calls))
}
