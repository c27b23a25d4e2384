//! Clustering methods beside each other, on planted classes and on none.

use ampl_core::cluster::methods::{Method, compare};
use ampl_core::cluster::{Aim, Effort, Metric, NoClasses, Vectors, price};
use ampl_core::config::ErrorBound;
use ampl_testkit::medoids::adjusted_rand;
use ampl_testkit::population::Total;
use ampl_testkit::{Classes, Kind, Population};
use proptest::prelude::*;

const AIM: Aim = Aim { guide: 0, confidence: 0.90, error: ErrorBound::Relative(0.08) };

fn vectors(ranks: usize, windows: usize, mut next: impl FnMut() -> Vec<Total>) -> Vectors {
    let mut vectors = Vectors::new(ranks, 1);
    (0..windows).for_each(|_| vectors.push(next().into_iter().map(|total| (total.n as f64, total.y))));
    vectors
}

#[test]
fn planted_classes_are_found_by_all() {
    for (means, ranks, seed) in [(&[1.0, 2.0, 4.0][..], 96, 1), (&[1.0, 3.0], 60, 2)] {
        let mut job = Classes::equal(means, 0.1).job(ranks, seed);
        let labels = job.labels.clone();
        let vectors = vectors(ranks, 12, || job.next_window());
        let compared = compare(&vectors, &[AIM], None, Metric::Euclidean, Effort::default());
        assert_eq!(compared.iter().map(|row| row.method).collect::<Vec<_>>(), Method::ALL);
        for row in &compared {
            let found = row.choice.strata();
            assert_eq!(adjusted_rand(&found.labels, &labels), 1.0, "{row:?}");
            assert!(found.gain > 0.5 && row.silhouette.is_some_and(|score| score > 0.7), "{row:?}");
            assert_eq!((found.k, row.agreement, row.clustered), (means.len(), 1.0, ranks), "{row:?}");
        }
        let again = compare(&vectors, &[AIM], None, Metric::Euclidean, Effort::default());
        assert_eq!(again, compared, "a function of the seed");
        let asked = compare(&vectors, &[AIM], Some(2), Metric::Euclidean, Effort::default());
        assert!(asked.iter().all(|row| row.choice.strata().k == 2 || row.method == Method::Dbscan));
    }
}

/// A gain is claimed where strata differ by more than chance and last, whatever the method.
#[test]
fn noise_is_no_gain_for_any_method() {
    let mut claims = [0; 4];
    for kind in [Kind::Normal, Kind::LogNormal, Kind::Spikes, Kind::Autoregressive] {
        for seed in 0..10 {
            let mut population = Population::new(kind, 32, seed);
            let vectors = vectors(32, 12, || population.next_window());
            let compared = compare(&vectors, &[AIM], None, Metric::Euclidean, Effort::default());
            for (claims, row) in claims.iter_mut().zip(&compared) {
                *claims += usize::from(row.choice.strata().gain != 0.0);
            }
        }
    }
    assert!(claims.iter().all(|&claims| claims <= 4), "of 40: {claims:?}");
}

/// Ten thousand ranks are clustered by samples, so that the time does not grow with them.
#[test]
fn many_ranks_are_sampled_and_that_is_reported() {
    let mut job = Classes::equal(&[1.0, 3.0], 0.1).job(600, 1);
    let labels = job.labels.clone();
    let vectors = vectors(600, 8, || job.next_window());
    let few = Effort { all_up_to: 200, sample_points: 80, ..Effort::default() };
    let compared = compare(&vectors, &[AIM], None, Metric::Euclidean, few);
    for row in &compared {
        let samples = if row.method == Method::KMedoids { 5 } else { 1 };
        assert_eq!(row.clustered, 80 * samples);
        assert_eq!(adjusted_rand(&row.choice.strata().labels, &labels), 1.0, "{row:?}");
    }
}

#[test]
fn what_failed_is_in_the_choice() {
    let mut job = Classes::equal(&[1.0, 3.0], 0.1).job(4, 1);
    let vectors = vectors(4, 8, || job.next_window());
    let compared = compare(&vectors, &[AIM], None, Metric::Euclidean, Effort::default());
    let dbscan = compared.iter().find(|row| row.method == Method::Dbscan).unwrap();
    // No rank has four others.
    assert_eq!(dbscan.choice.failed, [(2, NoClasses::AllNoise)]);
    assert_eq!((dbscan.choice.strata().k, dbscan.choice.strata().gain), (1, 0.0));
}

/// Fewest ranks that bring the variance of the mean within `limit`, found by bisection: m_h = λ M_h S_h within [1, M_h].
/// `true` if no stratum is at either end.
fn fewest(strata: &[(f64, f64)], limit: f64) -> (f64, bool) {
    let all: f64 = strata.iter().map(|(ranks, _)| ranks).sum();
    let sizes = |scale: f64| {
        strata.iter().map(move |&(ranks, deviation)| (scale * ranks * deviation).clamp(1.0, ranks))
    };
    let variance = |scale: f64| -> f64 {
        let parts = strata.iter().zip(sizes(scale));
        parts.map(|(&(ranks, s), size)| (ranks / all).powi(2) * (1.0 / size - 1.0 / ranks) * s * s).sum()
    };
    let (mut low, mut high) = (0.0, 1e9);
    for _ in 0..200 {
        let middle = (low + high) / 2.0;
        match variance(middle) > limit {
            true => low = middle,
            false => high = middle,
        }
    }
    let is_inside = sizes(high).zip(strata).all(|(size, &(ranks, _))| 1.0 < size && size < ranks);
    (sizes(high).sum(), is_inside)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// The price of every method's strata is that of a plain computation over the windows between.
    #[test]
    fn prices_are_those_of_a_plain_computation(
        (ranks, values) in (16..40usize)
            .prop_flat_map(|ranks| (Just(ranks), prop::collection::vec(50..150u32, ranks * 6))),
    ) {
        let mut vectors = Vectors::new(ranks, 1);
        values.chunks(ranks).for_each(|window| vectors.push(window.iter().map(|&y| (1.0, f64::from(y)))));
        let z = ampl_core::stats::quantile::normal_two_sided(0.90);
        let (_, judged_on) = vectors.halves();
        let means: Vec<f64> =
            judged_on.iter().map(|&window| vectors.of(window, 0).1.iter().sum::<f64>() / ranks as f64).collect();
        for row in compare(&vectors, &[AIM], Some(2), Metric::Euclidean, Effort::default()) {
            let found = row.choice.strata();
            let priced = |labels: &[usize], k| {
                let each = judged_on.iter().map(|&window| price(&vectors, &[window], labels, k, &[AIM]).size);
                each.collect::<Vec<f64>>()
            };
            let sizes = priced(&found.labels, found.k);
            for ((&window, mean), size) in judged_on.iter().zip(&means).zip(&sizes) {
                let y = vectors.of(window, 0).1;
                let stratum = |label: usize| {
                    let own = y.iter().zip(&found.labels).filter(|(_, own)| **own == label);
                    let own: Vec<f64> = own.map(|(y, _)| y / mean).collect();
                    let middle = own.iter().sum::<f64>() / own.len() as f64;
                    let squares: f64 = own.iter().map(|value| (value - middle).powi(2)).sum();
                    (own.len() as f64, (squares / (own.len() as f64 - 1.0).max(1.0)).sqrt())
                };
                let strata: Vec<(f64, f64)> = (0..found.k).map(stratum).collect();
                let (naive, is_inside) = fewest(&strata, (0.08 / z).powi(2));
                // A stratum that is fixed at an end stays there, which is not always best.
                let most = if is_inside { naive } else { 1.1 * naive };
                prop_assert!(
                    naive * (1.0 - 1e-6) <= *size && *size <= most * (1.0 + 1e-6),
                    "{:?}, {is_inside}: {size} {naive}", row.method
                );
            }
            let mean = |sizes: &[f64]| sizes.iter().sum::<f64>() / sizes.len() as f64;
            let one = mean(&priced(&vec![0; ranks], 1));
            prop_assert!((found.price.size - mean(&sizes)).abs() < 1e-9 * one);
            let gain = if found.k == 1 { 0.0 } else { 1.0 - mean(&sizes) / one };
            prop_assert!((found.gain - gain).abs() < 1e-9, "{} {gain}", found.gain);
        }
    }
}
