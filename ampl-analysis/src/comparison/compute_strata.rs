//! Strata by compute time: ranks whose time is clearly another than the rest's, in nearly every run.

use std::collections::BTreeMap;

use ampl_core::units::RankSet;

use super::bootstrap::median;
use super::profile::Profile;

/// Ratio of neighbouring compute times that parts strata, where several runs agree on it.
const GAP: f64 = 1.05;
/// The same by one or two runs, whose noise may look alike.
const GAP_OF_FEW: f64 = 1.25;
/// Runs from which on they are several.
const SEVERAL: usize = 3;
/// Part of the runs that agree, at least: of five, one may be disturbed.
const MOSTLY: f64 = 0.8;
/// Most strata.
const MOST: usize = 8;

/// Strata of the ranks of `runs`, `0-3,8` each, in the order of their smallest ranks; empty where there is one, or too
/// many.
///
/// Ranks are sorted by their share of the run's compute time. A gap of 5 % parts them if four fifths of three runs or more have it
/// between the same ranks; one or two runs need 25 %. So the noise of one run makes no strata.
pub fn strata(runs: &[Profile]) -> Vec<String> {
    let mut shares: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for run in runs {
        let mean = run.ranks.iter().map(|rank| rank.compute).sum::<f64>() / run.ranks.len() as f64;
        for rank in &run.ranks {
            shares.entry(rank.rank).or_default().push(rank.compute / mean);
        }
    }
    parted(shares, runs.len(), runs.len())
}

/// Strata of ranks whose compute time changed otherwise than that of the rest, in nearly every run of `new` against the base's
/// medians; the limits are those of [`strata`].
pub fn changed(base: &[Profile], new: &[Profile]) -> Vec<String> {
    let mut before: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for rank in base.iter().flat_map(|run| &run.ranks) {
        before.entry(rank.rank).or_default().push(rank.compute);
    }
    before.retain(|_, all| all.len() == base.len());
    let mut ratios: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for rank in new.iter().flat_map(|run| &run.ranks) {
        if let Some(middle) = before.get(&rank.rank).and_then(|all| median(all)) {
            ratios.entry(rank.rank).or_default().push(rank.compute / middle);
        }
    }
    // One base's noise is in each of the ratios.
    parted(ratios, new.len(), base.len().min(new.len()))
}

/// Parts of ranks with these values, one of each run, of which so many are independent.
fn parted(mut values: BTreeMap<u32, Vec<f64>>, runs: usize, independent: usize) -> Vec<String> {
    values.retain(|_, all| all.len() == runs && all.iter().all(|value| value.is_finite()));
    let mut sorted: Vec<(u32, Vec<f64>)> = values.into_iter().collect();
    let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len() as f64;
    sorted.sort_by(|a, b| mean(&a.1).total_cmp(&mean(&b.1)));
    let gap = if independent < SEVERAL { GAP_OF_FEW } else { GAP };
    let mut parts: Vec<Vec<u32>> = vec![Vec::new()];
    for at in 0..sorted.len() {
        if at > 0 && is_gap(&sorted, at, gap) {
            parts.push(Vec::new());
        }
        if let Some(last) = parts.last_mut() {
            last.push(sorted[at].0);
        }
    }
    if !(2..=MOST).contains(&parts.len()) {
        return Vec::new();
    }
    parts.iter_mut().for_each(|part| part.sort_unstable());
    parts.sort();
    parts.iter().map(|part| RankSet::from_iter(part.iter().copied()).to_string()).collect()
}

/// True where in [most](MOSTLY) runs the values of all ranks from `at` on are more than `gap` times those before.
fn is_gap(sorted: &[(u32, Vec<f64>)], at: usize, gap: f64) -> bool {
    let runs = sorted[at].1.len();
    let parts = |run: &usize| {
        let run = *run;
        let below = sorted[..at].iter().map(|(_, values)| values[run]).fold(0.0, f64::max);
        let above = sorted[at..].iter().map(|(_, values)| values[run]).fold(f64::INFINITY, f64::min);
        above > below * gap
    };
    (0..runs).filter(parts).count() as f64 >= MOSTLY * runs as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::profile::RankTimes;

    fn run(computes: &[f64]) -> Profile {
        let of = |(rank, &compute): (usize, &f64)| RankTimes { rank: rank as u32, mpi: 1.0, compute };
        Profile { ranks: computes.iter().enumerate().map(of).collect(), ..Profile::default() }
    }

    #[test]
    fn gaps_that_every_run_has_part_strata() {
        let runs = [run(&[1.0, 2.0, 1.01, 1.99, 4.0]), run(&[2.02, 4.0, 2.0, 4.1, 8.1])];
        assert_eq!(strata(&runs), ["0,2", "1,3", "4"]);
        // In one run rank 3 is as quick as ranks 0 and 2.
        let noisy = [runs[0].clone(), run(&[1.0, 2.0, 1.0, 1.0, 4.0])];
        assert_eq!(strata(&noisy), ["0-3", "4"]);
        let close = run(&[1.0, 1.0, 1.1]);
        assert!(strata(&[close.clone(), close.clone()]).is_empty());
        assert_eq!(strata(&[close.clone(), close.clone(), close]), ["0-1", "2"]);
        assert!(strata(&[run(&[]), run(&[])]).is_empty() && strata(&[]).is_empty());
        assert!(strata(&[run(&[0.0, 0.0])]).is_empty());
        // Every rank differs: strata would say nothing.
        let all: Vec<f64> = (0..12).map(|rank| 1.5f64.powi(rank)).collect();
        assert!(strata(&[run(&all)]).is_empty());
    }

    #[test]
    fn ranks_that_changed_otherwise_are_a_stratum_though_they_were_like_others() {
        let base = [run(&[1.0, 1.01, 0.99, 1.0, 2.0]), run(&[1.01, 1.0, 1.0, 0.99, 2.0])];
        let base = [&base[..], &base[..1]].concat();
        let slower = run(&[1.0, 1.1, 1.0, 1.11, 2.01]);
        let new = [slower.clone(), run(&[0.99, 1.1, 1.0, 1.09, 1.99]), slower];
        assert_eq!(changed(&base, &new), ["0,2,4", "1,3"]);
        assert!(changed(&base, &base).is_empty());
        // One of five may be disturbed, one of three not.
        let disturbed = run(&[1.3, 1.0, 1.0, 1.4, 2.0]);
        let five = [&new[..], &new[..1], std::slice::from_ref(&disturbed)].concat();
        let base = [&base[..], &base[..2]].concat();
        assert_eq!(changed(&base, &five), ["0,2,4", "1,3"]);
        assert!(changed(&base, &five[2..]).is_empty());
        // All of them by as much: no part of them differs.
        let all: Vec<Profile> = (0..3).map(|_| run(&[1.1, 1.11, 1.09, 1.1, 2.2])).collect();
        assert!(changed(&base, &all).is_empty());
        // A rank that a run lacks is left out.
        let short = [run(&[1.0, 1.1]), run(&[1.0, 1.1]), run(&[1.0, 1.1, 1.0])];
        assert_eq!(changed(&base, &short), ["0", "1"]);
        assert!(changed(&[], &new).is_empty() && changed(&base[..1], &new).is_empty());
    }
}
