//! Calls that had not returned at the end of the observation, by place.

use std::collections::BTreeMap;

use ampl_core::mpi::Function;
use ampl_core::units::RankSet;
use ampl_trace::Trace;
use ampl_trace::totals::Extreme;

use super::places::{Number, Places, named};

/// Calls at one place that had not returned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unreturned {
    /// Number of calls.
    pub calls: u64,
    /// Their time until the end of the observation, nanoseconds.
    pub ns: u64,
    /// The one that began first.
    pub longest: Extreme,
    /// Ranks that are in them.
    pub ranks: RankSet,
}

/// Calls that ranks of `trace` are in, by place; without those that were only counted, whose time is not known.
pub fn unreturned<'a>(trace: &'a Trace, places: &mut Places<'a>) -> BTreeMap<Number, Unreturned> {
    let mut found: BTreeMap<Number, (Unreturned, Vec<u32>)> = BTreeMap::new();
    let Some(end) = trace.run.end.filter(|_| !trace.complete) else { return BTreeMap::new() };
    for process in trace.ranks.iter().map(|rank| &rank.process).filter(|process| !process.finalized) {
        for thread in process.threads.iter().filter(|thread| thread.inside && !thread.at_most) {
            let Some(function) = Function::by_name(&thread.function) else { continue };
            let path = thread.site.iter().map(|site| (site.module.as_str(), site.offset)).collect();
            let number = Some(places.number(function.0, named(path)));
            let ns = u64::try_from(thread.inside_ns(end)).unwrap_or(0);
            let (calls, ranks) = found.entry(number).or_default();
            calls.calls += 1;
            calls.ns = calls.ns.saturating_add(ns);
            if calls.calls == 1 || ns > calls.longest.ns {
                calls.longest = Extreme { ns, rank: process.rank };
            }
            ranks.push(process.rank);
        }
    }
    let set = |(number, (calls, ranks)): (Number, (Unreturned, Vec<u32>))| {
        (number, Unreturned { ranks: ranks.into_iter().collect(), ..calls })
    };
    found.into_iter().map(set).collect()
}

#[cfg(test)]
mod tests {
    use ampl_trace::RankTrace;
    use ampl_trace::model::{End, EndBasis, Place, Process, ThreadPlace};

    use super::*;

    #[test]
    fn their_time_reaches_to_the_end() {
        let mut trace = Trace::default();
        trace.run.end = Some(End { at_ns: 1000, basis: EndBasis::Now });
        let thread = |function: &str, since_ns| ThreadPlace {
            function: function.into(),
            inside: true,
            since_ns,
            site: vec![Place { module: "/bin/app".into(), offset: 64 }],
            ..ThreadPlace::default()
        };
        let counted = ThreadPlace { at_most: true, ..thread("MPI_Recv", 0) };
        let outside = ThreadPlace { inside: false, ..thread("MPI_Recv", 0) };
        for (rank, place) in (0..).zip([
            thread("MPI_Recv", 400),
            thread("MPI_Recv", 100),
            thread("MPI_Barrier", 900),
            counted,
            outside,
        ]) {
            let process = Process { rank, threads: vec![place], ..Process::default() };
            trace.ranks.push(RankTrace { process, ..RankTrace::default() });
        }
        let mut places = Places::default();
        let found = unreturned(&trace, &mut places);
        let of = |number: &Number| Function(places.places[number.unwrap()].function).name();
        let rows: Vec<_> = found.iter().map(|(number, of_it)| (of(number), of_it.clone())).collect();
        let recv = Unreturned {
            calls: 2,
            ns: 1500,
            longest: Extreme { ns: 900, rank: 1 },
            ranks: RankSet::range(0, 1),
        };
        let barrier = Unreturned {
            calls: 1,
            ns: 100,
            longest: Extreme { ns: 100, rank: 2 },
            ranks: RankSet::range(2, 2),
        };
        assert_eq!(rows, [("MPI_Recv", recv), ("MPI_Barrier", barrier)]);
        trace.complete = true;
        assert!(unreturned(&trace, &mut Places::default()).is_empty());
    }
}
