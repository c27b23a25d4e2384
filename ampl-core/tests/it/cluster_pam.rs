//! k-medoids against k-medoids by the book, and what does not look like points.

use ampl_core::cluster::{
    Dissimilarity, Distances, Effort, Initial, KMedoids, Metric, Points, build, faster_pam, lab,
};
use ampl_testkit::medoids::{adjusted_rand, best_swap, deviation, pam};
use ampl_testkit::population::normal;
use proptest::prelude::*;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

fn all(points: &Points, metric: &impl Dissimilarity) -> Distances {
    Distances::of(points, &(0..points.len()).collect::<Vec<_>>(), metric)
}

/// Standard normal points.
fn cloud(rows: usize, dimensions: usize, seed: u64) -> Points {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    Points::new(rows, dimensions, (0..rows * dimensions).map(|_| normal(&mut random)).collect()).unwrap()
}

/// Points around `centres`, one after the other.
fn heaps(rows: usize, centres: &[f64], seed: u64) -> (Points, Vec<usize>) {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let labels: Vec<usize> = (0..rows).map(|row| row % centres.len()).collect();
    let values = labels.iter().flat_map(|&label| [centres[label], -centres[label]].map(|c| (c, label)));
    let values = values.map(|(centre, _)| centre + normal(&mut random)).collect();
    (Points::new(rows, 2, values).unwrap(), labels)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// No swap that counting everything again would find is left.
    #[test]
    fn no_swap_helps_any_more(rows in 2usize..28, k in 1usize..6, seed: u64, rough: bool, early: bool) {
        let points = cloud(rows, 3, seed);
        // Rounded numbers tie.
        let values = points.values().iter().map(|value| if rough { value.round() } else { *value });
        let points = Points::new(rows, 3, values.collect()).unwrap();
        let distances = all(&points, &Metric::Euclidean);
        let first = if early { lab(&distances, k, seed) } else { build(&distances, k) };
        let found = faster_pam(&distances, first.clone(), usize::MAX);
        let between = |a: usize, b: usize| Metric::Euclidean.between(points.row(a), points.row(b));
        let before = deviation(&between, rows, &first);
        let after = deviation(&between, rows, &found.medoids);
        prop_assert!((after - found.deviation).abs() <= 1e-9 * before.max(1.0));
        prop_assert!(after <= before * (1.0 + 1e-9));
        if let Some((_, _, swapped)) = best_swap(&between, rows, &found.medoids) {
            prop_assert!(swapped >= after - 1e-9 * before.max(1.0), "{swapped} < {after}");
        }
        // Every point is with its nearest medoid, and every medoid with itself.
        for (row, &label) in found.labels.iter().enumerate() {
            let nearest = found.medoids.iter().map(|&medoid| between(row, medoid)).fold(f64::INFINITY, f64::min);
            prop_assert_eq!(between(row, found.medoids[label]), nearest);
        }
        for (label, &medoid) in found.medoids.iter().enumerate() {
            prop_assert_eq!(found.labels[medoid], label);
        }
    }
}

#[test]
fn eager_swaps_end_as_low_as_the_best_ones() {
    let (mut ours, mut theirs, mut higher) = (0.0, 0.0, 0);
    for seed in 0..200 {
        let points = cloud(30, 2, seed);
        let distances = all(&points, &Metric::Euclidean);
        let between = |a: usize, b: usize| distances.from(a)[b];
        let first = build(&distances, 4);
        let naive = deviation(&between, 30, &pam(&between, 30, first.clone()));
        let eager = faster_pam(&distances, first, usize::MAX).deviation;
        ours += eager;
        theirs += naive;
        higher += usize::from(eager > naive * (1.0 + 1e-9));
    }
    // Both end where no swap helps; where there are several such ends, either may find the lower one.
    assert!(ours <= theirs * 1.002, "{ours} against {theirs}");
    assert!(higher <= 20, "{higher} of 200 end higher");
}

#[test]
fn heaps_are_found_whatever_is_done_first() {
    let (points, labels) = heaps(90, &[0.0, 12.0, 30.0], 1);
    for initial in [Initial::Build, Initial::Lab] {
        for metric in Metric::ALL {
            let effort = Effort { initial, ..Effort::default() };
            let found = KMedoids::new(&points, metric, effort).clusters(3);
            assert_eq!(adjusted_rand(&found.labels, &labels), 1.0, "{initial:?} {metric:?}");
            let sampled = Effort { all_up_to: 10, sample_points: 30, ..effort };
            let sampled = KMedoids::new(&points, metric, sampled).clusters(3);
            assert_eq!(adjusted_rand(&sampled.labels, &labels), 1.0, "{initial:?} {metric:?}");
            assert!(sampled.deviation < 1.2 * found.deviation);
        }
    }
}

#[test]
fn samples_repeat_with_their_seed_and_the_best_is_taken() {
    let points = cloud(3000, 4, 5);
    let fit = |seed, samples| {
        let effort = Effort { seed, samples, sample_points: 100, judges: 2000, ..Effort::default() };
        KMedoids::new(&points, Metric::Euclidean, effort).clusters(5)
    };
    assert_eq!(fit(1, 3), fit(1, 3));
    assert_ne!(fit(1, 3).medoids, fit(2, 3).medoids);
    let mean = |samples| (0..20).map(|seed| fit(seed, samples).deviation).sum::<f64>() / 20.0;
    assert!(mean(6) < mean(1), "{} {}", mean(6), mean(1));
    let mut whole =
        KMedoids::new(&points, Metric::Euclidean, Effort { all_up_to: 3000, ..Effort::default() });
    assert!(whole.clusters(5).deviation <= fit(1, 6).deviation);
}

#[test]
fn equal_points_are_one() {
    let values = [[1.0, 1.0]; 7].into_iter().chain([[4.0, 4.0]; 2]).chain([[9.0, 1.0]]).flatten().collect();
    let points = Points::new(10, 2, values).unwrap();
    for k in [3, 4, 10, 50] {
        for initial in [Initial::Build, Initial::Lab] {
            let effort = Effort { initial, ..Effort::default() };
            let found = KMedoids::new(&points, Metric::Euclidean, effort).clusters(k);
            assert_eq!(found.medoids.len(), 3, "{k} {initial:?}: {found:?}");
            assert_eq!(found.deviation, 0.0);
            assert_eq!(found.labels, [0, 0, 0, 0, 0, 0, 0, 1, 1, 2]);
        }
    }
}

#[test]
fn little_to_cluster_is_no_trouble() {
    let fit = |rows, dimensions, k| {
        let points = Points::new(rows, dimensions, vec![2.5; rows * dimensions]).unwrap();
        KMedoids::new(&points, Metric::Euclidean, Effort::default()).clusters(k)
    };
    assert_eq!((fit(1, 3, 1).medoids, fit(1, 3, 4).labels), (vec![0], vec![0]));
    assert!(fit(0, 3, 2).medoids.is_empty() && fit(0, 3, 2).labels.is_empty());
    // Points without coordinates are all the same.
    assert_eq!((fit(5, 0, 2).medoids, fit(5, 0, 2).labels), (vec![0], vec![0; 5]));
    assert_eq!(fit(5, 1, 0).medoids, Vec::<usize>::new());
}
