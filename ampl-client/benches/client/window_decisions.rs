//! Cost of a retrospective decision about a window of one group: microseconds by the number of ranks, on the dearest of
//! the populations. The bins are 128, the guides two.

use std::hint::black_box;

use ampl_core::stats::Moments;
use ampl_core::stats::bins::{Histogram, Origin, bin};
use ampl_core::stats::quantile::normal_two_sided;
use ampl_core::stats::sizing::retrospective_floor;
use ampl_core::stats::strata::{Need, Terms, stratify};
use ampl_testkit::population::Total;
use ampl_testkit::{Kind, Population};

use super::{Cost, RANKS, timed};

const BINS: usize = 128;
const ERROR: f64 = 0.03;
const TIMES: usize = 50;

/// Prints them; at most 200 us each, however many ranks there are.
pub fn measure() {
    println!("\n{:<10} {:>9} {:>17}   dearest", "decision", "ranks", "us, min  median");
    for ranks in RANKS {
        let costs = Kind::ALL.map(|kind| (cost(kind, ranks), kind));
        let dearest = costs.iter().max_by(|a, b| a.0.0.total_cmp(&b.0.0)).expect("there are populations");
        let (Cost(least, median), kind) = dearest;
        println!("{:<10} {ranks:>9} {:>8.2} {:>8.2}   {}", "", least / 1e3, median / 1e3, kind.name());
        assert!(*least <= 200_000.0, "{ranks} ranks: a decision takes {least} ns");
    }
}

fn cost(kind: Kind, ranks: u32) -> Cost {
    let mut population = Population::new(kind, ranks as usize, 1);
    // The second guide has nothing to do with the first one.
    let mut other = Population::new(Kind::LogNormal, ranks as usize, 2);
    let mut origins = None;
    let mut next = || {
        let pairs = population.next_window().into_iter().zip(other.next_window());
        let pairs: Vec<[Total; 2]> = pairs.map(|(one, two)| [one, two]).collect();
        let means = [0, 1].map(|guide| {
            let mut all = Moments::default();
            for pair in &pairs {
                let Total { n, y } = pair[guide];
                all.merge(&Moments::of_rank(n, y, y * y, y, y));
            }
            let (ratio, mean_n) = (all.ratio().expect("observations"), all.mean_n());
            Origin { ratio, mean_n, unit: ratio * mean_n }
        });
        (pairs, means, origins.replace(means))
    };
    next();
    let (pairs, means, from) = next();
    let from = from.expect("there was a window before");
    let mut histogram = Histogram::new(BINS, 2);
    for pair in &pairs {
        let points = [0, 1].map(|guide| from[guide].point(pair[guide].n, pair[guide].y));
        histogram.add(bin(points[0].z / ERROR, BINS), &points);
    }
    let needs = [0, 1].map(|guide| {
        let Origin { ratio, unit, .. } = means[guide];
        let shift = from[guide].shift(ratio, unit);
        Some(Need { shift, error: ERROR, quantile: normal_two_sided(0.99) })
    });
    let population = u64::from(ranks);
    let terms =
        Terms { population, floor: retrospective_floor(population), strata: 8, groups: 1, coins: false };
    let decide = |_| timed(|| _ = black_box(stratify(&histogram, 0, &needs, terms)));
    Cost::of((0..TIMES).map(decide).collect())
}
