//! Regions of which visits are not recorded, because they are short.

use std::collections::BTreeMap;

use ampl_core::units::RankSet;
use ampl_reader::sites::as_written;
use ampl_trace::Trace;

/// A region of which visits were left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShortRegion {
    /// Its name in the source.
    pub region: String,
    /// Visits left out, of all ranks.
    pub visits: u64,
    /// The ranks.
    pub ranks: RankSet,
}

/// Regions of which visits were left out on some rank, the most first.
pub fn of(trace: &Trace) -> Vec<ShortRegion> {
    let mut found: BTreeMap<String, (u64, Vec<u32>)> = BTreeMap::new();
    for process in trace.ranks.iter().map(|rank| &rank.process) {
        for own in &process.regions_left_out {
            let (visits, ranks) = found.entry(as_written(&own.region)).or_default();
            *visits = visits.saturating_add(own.visits);
            ranks.push(process.rank);
        }
    }
    let mut all: Vec<ShortRegion> = found
        .into_iter()
        .map(|(region, (visits, ranks))| ShortRegion { region, visits, ranks: ranks.into_iter().collect() })
        .collect();
    all.sort_by_key(|region| std::cmp::Reverse(region.visits));
    all
}

#[cfg(test)]
mod tests {
    use ampl_trace::RankTrace;
    use ampl_trace::model::LeftOutRegion;

    use super::*;

    #[test]
    fn regions_of_all_ranks_are_added_up_by_name() {
        let rank = |number: u32, own: &[(&str, u64)]| {
            let mut rank = RankTrace::default();
            rank.process.rank = number;
            let own = own.iter().map(|&(region, visits)| LeftOutRegion { region: region.into(), visits });
            rank.process.regions_left_out = own.collect();
            rank
        };
        let ranks = vec![rank(0, &[("a", 1), ("_Z4tinyi", 5)]), rank(1, &[]), rank(2, &[("_Z4tinyi", 7)])];
        let found = of(&Trace { ranks, ..Trace::default() });
        let of = |at: usize| (&*found[at].region, found[at].visits, found[at].ranks.to_string());
        assert_eq!((found.len(), of(0), of(1)), (2, ("tiny", 12, "0,2".into()), ("a", 1, "0".into())));
    }
}
