//! Strata of a window that is over, against sums over its ranks.

use std::collections::BTreeSet;

use ampl_core::stats::bins::{Histogram, Origin, Residuals, Shift, bin};
use ampl_core::stats::strata::{Need, Strata, Terms, stratify};
use proptest::prelude::*;

/// Fewest ranks of a group, as it is for large ones.
const FLOOR: u64 = 8;

const BINS: usize = 128;
const QUANTILE: f64 = 1.96;

/// n and y of a rank under each of two guides.
type Seen = [(u64, f64); 2];

struct World {
    histogram: Histogram,
    bins: Vec<usize>,
    needs: Vec<Option<Need>>,
    /// Every rank's residual about the true mean, per guide.
    residuals: [Vec<f64>; 2],
}

fn world(ranks: &[Seen], stale: [(f64, f64); 2], error: f64) -> World {
    let means = [0, 1].map(|guide| {
        let (n, y) =
            ranks.iter().fold((0.0, 0.0), |sum, seen| (sum.0 + seen[guide].0 as f64, sum.1 + seen[guide].1));
        (y / n, n / ranks.len() as f64)
    });
    let origins = [0, 1].map(|guide: usize| {
        let (ratio, mean_n) = (means[guide].0 * stale[guide].0, means[guide].1 * stale[guide].1);
        Origin { ratio, mean_n, unit: ratio * mean_n }
    });
    let mut histogram = Histogram::new(BINS, 2);
    let mut bins = Vec::new();
    for seen in ranks {
        let points = [0, 1].map(|guide| origins[guide].point(seen[guide].0, seen[guide].1));
        bins.push(bin(points[0].z / error, BINS));
        histogram.add(bins[bins.len() - 1], &points);
    }
    let need = |guide: usize| {
        let (ratio, mean_n) = means[guide];
        let shift = origins[guide].shift(ratio, ratio * mean_n);
        Some(Need { shift, error, quantile: QUANTILE })
    };
    let residuals = [0, 1].map(|guide| {
        let (ratio, mean_n) = means[guide];
        let z = |seen: &Seen| (seen[guide].1 - ratio * seen[guide].0 as f64) / (ratio * mean_n);
        ranks.iter().map(z).collect()
    });
    World { histogram, bins, needs: vec![need(0), need(1)], residuals }
}

fn stratum(strata: &Strata, bin: usize) -> Option<usize> {
    (0..strata.parts.len())
        .find(|&h| usize::from(strata.cuts[h]) <= bin && bin < usize::from(strata.cuts[h + 1]))
}

/// S² about the values' own mean.
fn variance(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    if values.len() < 2 { 0.0 } else { squares / (values.len() - 1) as f64 }
}

fn check(ranks: &[Seen], stale: [(f64, f64); 2], error: f64, coins: bool, alike: bool) {
    let world = world(ranks, stale, error);
    let (population, all) = (ranks.len() as u64, ranks.len() as f64);
    let terms = Terms { population, floor: FLOOR, strata: 8, groups: 1, coins };
    let strata = stratify(&world.histogram, 0, &world.needs, terms);
    assert!(strata.size() >= FLOOR.min(population), "{strata:?}");
    // Of ranks with different numbers of observations, bins know the extremes less exactly.
    let alone = if alike { all * error * (1.0 + 1e-9) } else { f64::INFINITY };
    let below = |rank: usize| world.residuals[0][rank] < -all * error * (1.0 - 1e-9);
    let far_bins: BTreeSet<usize> =
        (0..ranks.len()).filter(|&rank| below(rank)).map(|rank| world.bins[rank]).collect();
    let far_below = world.bins.iter().filter(|bin| far_bins.contains(bin)).count();
    let mut full = 0;
    let mut members: [Vec<Vec<f64>>; 2] = [0, 1].map(|_| vec![Vec::new(); strata.parts.len()]);
    for (rank, &bin) in world.bins.iter().enumerate() {
        match stratum(&strata, bin) {
            Some(h) => [0, 1].into_iter().for_each(|g| members[g][h].push(world.residuals[g][rank])),
            None => full += 1,
        }
        let z = world.residuals[0][rank];
        let spike = z > alone || z < -alone && 4 * far_below <= ranks.len();
        assert!(!spike || stratum(&strata, bin).is_none(), "rank {rank} moves the mean beyond the bound");
    }
    assert_eq!(strata.full, full, "{strata:?}");
    for guide in [0, 1] {
        let mut attained = 0.0;
        for (part, values) in strata.parts.iter().zip(&members[guide]) {
            let (ranks, size) = (part.ranks as f64, part.size as f64);
            assert_eq!(part.ranks, values.len() as u64);
            assert!((1..=part.ranks).contains(&part.size));
            let truth = variance(values);
            if guide == strata.guide {
                let near = (part.variance - truth).abs() <= 1e-6 * truth.max(error * error);
                assert!(near, "{part:?} {truth}");
            }
            if part.size == part.ranks {
                continue;
            }
            let worth = if coins { size - 1.0 } else { size };
            assert!(worth >= 2.0, "{part:?}");
            attained += (ranks / all).powi(2) * (1.0 / worth - 1.0 / ranks) * truth;
            let mean = values.iter().sum::<f64>() / ranks;
            let farthest = values.iter().fold(0.0, |most: f64, value| most.max((value - mean).abs()));
            let influence = ranks / worth * farthest / all;
            assert!(!alike || influence <= error / 2.0 * (1.0 + 1e-6), "{influence} {error} {part:?}");
        }
        let allowed = (error / QUANTILE).powi(2) / 1.05;
        assert!(attained <= allowed * (1.0 + 1e-6), "guide {guide}: {attained} {allowed}");
        if guide == strata.guide {
            assert!((strata.attained - attained).abs() <= 1e-6 * allowed, "{} {attained}", strata.attained);
        }
    }
}

fn seen(alike: bool) -> impl Strategy<Value = Vec<Seen>> {
    let value = prop_oneof![4 => 0.5..2.0f64, 1 => 0.0..100.0f64];
    let rank = (1..9u64, value.clone(), 1..9u64, value).prop_map(move |(n, y, k, x)| match alike {
        true => [(3, y), (3, x)],
        false => [(n, y * n as f64), (k, x * k as f64)],
    });
    prop::collection::vec(rank, 1..300)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_bound_is_met_whatever_ranks_were_binned_by(
        ranks in seen(false),
        stale in [(0.3..3.0f64, 0.3..3.0f64), (0.3..3.0f64, 0.3..3.0f64)],
        error in 0.01..0.3f64,
        coins in any::<bool>(),
    ) {
        check(&ranks, stale, error, coins, false);
    }

    #[test]
    fn nobody_weighs_more_than_half_the_bound(
        ranks in seen(true),
        stale in [(0.3..3.0f64, Just(1.0)), (0.3..3.0f64, Just(1.0))],
        error in 0.01..0.3f64,
        coins in any::<bool>(),
    ) {
        check(&ranks, stale, error, coins, true);
    }

    /// Numbers from anywhere: no panic, and no more ranks than there are.
    #[test]
    fn hostile_numbers_are_survived(
        bins in prop::collection::vec((any::<u64>(), any::<[f64; 7]>()), 0..40),
        shift in any::<(f64, f64)>(),
        (error, quantile) in any::<(f64, f64)>(),
        population in any::<u64>(),
        floor in any::<u64>(),
        most in 1..=8usize,
        groups in 0..=70usize,
        coins in any::<bool>(),
        asked in any::<bool>(),
    ) {
        let mut histogram = Histogram::new(BINS, 1);
        for (index, &(ranks, [z, zz, v, vv, zv, min, max])) in bins.iter().enumerate() {
            if let Some(sums) = histogram.append(index * 3, ranks >> (index % 5 * 12)) {
                sums[0] = Residuals { z, zz, v, vv, zv, min, max };
            }
        }
        let shift = Shift { scale: shift.0, offset: shift.1 };
        let needs = [asked.then_some(Need { shift, error, quantile })];
        // A floor that is above what can be told apart from 2⁵³ would be counted up to.
        let terms = Terms { population, floor: floor >> 54, strata: most, groups, coins };
        let strata = stratify(&histogram, 0, &needs, terms);
        prop_assert!(strata.parts.iter().all(|part| part.size <= part.ranks), "{:?}", strata);
        prop_assert!(strata.cuts.is_sorted());
        prop_assert!(strata.parts.len() <= most, "{:?}", strata);
        prop_assert_eq!(strata.cuts.len(), if strata.parts.is_empty() { 0 } else { strata.parts.len() + 1 });
    }
}

#[test]
fn a_spike_is_kept_in_full_and_the_others_hardly() {
    let mut ranks: Vec<Seen> = (0..2000).map(|rank| [(1, 1.0 + f64::from(rank % 10) / 1e3); 2]).collect();
    ranks[77] = [(1, 400.0); 2];
    let world = world(&ranks, [(1.0, 1.0); 2], 0.05);
    let terms = Terms { population: 2000, floor: FLOOR, strata: 8, groups: 1, coins: false };
    let strata = stratify(&world.histogram, 0, &world.needs, terms);
    assert_eq!((stratum(&strata, world.bins[77]), strata.full), (None, 1), "{strata:?}");
    assert_eq!(strata.size(), FLOOR);
}

#[test]
fn many_idle_ranks_stand_for_each_other_and_few_are_kept() {
    // Of 32 ranks and 3 %, each that has nothing moves the mean.
    let kept = |idle: u32, error: f64| {
        let of = |rank: u32| if rank < idle { 0.0 } else { 1.0 + f64::from(rank % 5) / 1e3 };
        let ranks: Vec<Seen> = (0..32).map(|rank| [(1, of(rank)); 2]).collect();
        let world = world(&ranks, [(1.0, 1.0); 2], error);
        let terms = Terms { population: 32, floor: 2, strata: 8, groups: 1, coins: false };
        let strata = stratify(&world.histogram, 0, &world.needs, terms);
        (strata.full, strata.size())
    };
    assert_eq!(kept(1, 0.03), (1, 3));
    assert_eq!(kept(8, 0.03), (8, 10));
    for idle in [9, 16, 24] {
        // At 3.2 % none of them moves the mean by itself.
        let (tighter, looser) = (kept(idle, 0.03), kept(idle, 0.032));
        assert!(looser.1 <= tighter.1 && tighter.1 <= 18, "{idle}: {tighter:?} {looser:?}");
    }
}

#[test]
fn nobody_is_no_trouble_and_no_need_takes_the_floor() {
    let terms = Terms { population: 50, floor: FLOOR, strata: 8, groups: 1, coins: false };
    assert_eq!(stratify(&Histogram::new(BINS, 1), 0, &[None], terms).size(), 0);
    let ranks: Vec<Seen> = (1..=50).map(|rank| [(1, f64::from(rank)); 2]).collect();
    let world = world(&ranks, [(1.0, 1.0); 2], 0.05);
    assert_eq!(stratify(&world.histogram, 0, &[None, None], terms).size(), FLOOR);
    let exact = Need { error: 0.0, ..world.needs[0].unwrap() };
    assert_eq!(stratify(&world.histogram, 0, &[Some(exact), None], terms).size(), 50, "no error is allowed");
}

/// Single windows are compared in `looser.rs`.
#[test]
fn a_looser_bound_takes_fewer_ranks_along_the_same_bins() {
    let mut state = 77_u64;
    let mut uniform = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    let bounds = [0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.2];
    for (kind, population) in (0..4).flat_map(|kind| [(kind, 128), (kind, 300)]) {
        let mut sums = [0; 7];
        for _ in 0..40 {
            let mut value = || {
                let normal = (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
                match kind {
                    0 => 1.0 + 0.2 * normal.clamp(-4.0, 4.0),
                    1 => normal.exp(),
                    2 => (1.0 + 0.05 * normal) * if uniform() < 0.03 { 10.0 } else { 1.0 },
                    _ => {
                        if uniform() < 0.8 {
                            0.0
                        } else {
                            normal.abs()
                        }
                    }
                }
            };
            let ranks: Vec<Seen> = (0..population).map(|_| [(1, value()); 2]).collect();
            let mut world = world(&ranks, [(1.1, 1.0); 2], 0.02);
            let terms = Terms { population, floor: population / 32, strata: 8, groups: 1, coins: false };
            for (sum, error) in sums.iter_mut().zip(bounds) {
                world.needs.iter_mut().flatten().for_each(|need| need.error = error);
                *sum += stratify(&world.histogram, 0, &world.needs, terms).size();
            }
        }
        assert!(sums.is_sorted_by(|tighter, looser| tighter >= looser), "{kind} of {population}: {sums:?}");
    }
}
