//! k-medoids as linfa has it, and linfa's own clusterings beside it.

use ampl_core::cluster::estimator::{KMedoidsError, KMedoidsModel, search};
use ampl_core::cluster::linfa_baselines::{dbscan, k_means, mixture, silhouette};
use ampl_core::cluster::{
    Aim, Effort, Initial, KMedoids, Metric, NoClasses, Points, Rule, Vectors, agreement, choose, k_medoids,
};
use ampl_core::config::ErrorBound;
use ampl_testkit::Classes;
use ampl_testkit::medoids::adjusted_rand;
use linfa::DatasetBase;
use linfa::prelude::{Fit, ParamGuard, Predict};
use ndarray::{Array1, Array2};
use proptest::prelude::*;

/// Ranks in three classes, as vectors of four windows.
fn classes(ranks: usize) -> (Array2<f64>, Vec<usize>) {
    let mut job = Classes::equal(&[1.0, 2.0, 4.0], 0.05).job(ranks, 3);
    let windows: Vec<Vec<f64>> =
        (0..4).map(|_| job.next_window().iter().map(|total| total.y / 100.0).collect()).collect();
    (Array2::from_shape_fn((ranks, 4), |(rank, window)| windows[window][rank]), job.labels)
}

fn points(records: &Array2<f64>) -> Points {
    Points::new(records.nrows(), records.ncols(), records.iter().copied().collect()).unwrap()
}

#[test]
fn the_estimator_fits_and_predicts() {
    let (records, labels) = classes(150);
    let model =
        KMedoidsModel::params(3).initial(Initial::Lab).seed(7).fit(&DatasetBase::from(records.view()));
    let model = model.unwrap();
    assert_eq!((model.medoids().nrows(), model.rows().len()), (3, 3));
    for (place, &row) in model.rows().iter().enumerate() {
        assert_eq!(model.medoids().row(place), records.row(row), "medoids are members");
    }
    let predicted: Array1<usize> = model.predict(&records);
    assert_eq!(adjusted_rand(&predicted.to_vec(), &labels), 1.0);
    // Columns first, or ranks that were not there: the same strata.
    let turned = records.t().as_standard_layout().to_owned();
    let turned: Array1<usize> = model.predict(&turned.t());
    assert_eq!(turned, predicted);
    let (others, other_labels) = classes(40);
    let predicted: Array1<usize> = model.predict(&others);
    assert_eq!(adjusted_rand(&predicted.to_vec(), &other_labels), 1.0);
    let one: usize = model.predict(&others.row(5));
    assert_eq!(one, predicted[5]);
    // The estimator is the algorithm and nothing else.
    let effort = Effort { initial: Initial::Lab, seed: 7, ..Effort::default() };
    let points = points(&records);
    let plain = KMedoids::new(&points, Metric::Euclidean, effort).clusters(3);
    assert_eq!((plain.medoids.as_slice(), plain.deviation), (model.rows(), model.deviation()));
}

#[test]
fn any_dissimilarity_fits() {
    let (records, labels) = classes(60);
    let first = |a: &[f64], b: &[f64]| (a[0] - b[0]).abs();
    let model =
        KMedoidsModel::<Metric>::params_with(3, first).fit(&DatasetBase::from(records.clone())).unwrap();
    let predicted: Array1<usize> = model.predict(&records);
    assert_eq!(adjusted_rand(&predicted.to_vec(), &labels), 1.0);
}

#[test]
fn what_cannot_be_clustered_is_refused() {
    let fit = |records: Array2<f64>, k| KMedoidsModel::params(k).fit(&DatasetBase::from(records));
    let mut records = classes(9).0;
    assert!(matches!(KMedoidsModel::params(0).check(), Err(KMedoidsError::NoClusters)));
    assert!(matches!(fit(records.clone(), 0), Err(KMedoidsError::NoClusters)));
    let effort = Effort { sample_points: 0, ..Effort::default() };
    assert!(matches!(KMedoidsModel::params(2).effort(effort).check_ref(), Err(KMedoidsError::NoSample)));
    assert!(matches!(fit(Array2::zeros((0, 4)), 2), Err(KMedoidsError::NoPoints)));
    for wrong in [f64::NAN, f64::INFINITY] {
        records[(7, 2)] = wrong;
        let error = fit(records.clone(), 2).unwrap_err();
        assert_eq!(error.to_string(), "coordinate 2 of point 7 is not finite");
    }
    assert_eq!(fit(Array2::ones((9, 4)), 3).unwrap().rows(), [0]);
}

#[test]
fn the_others_find_the_same_classes() {
    let few = Effort { all_up_to: 300, sample_points: 200, ..Effort::default() };
    for (ranks, effort) in [(120, Effort::default()), (900, few)] {
        let (records, labels) = classes(ranks);
        let points = points(&records);
        for metric in Metric::ALL {
            let means = k_means(&points, 3, metric, effort);
            let chains = dbscan(&points, 4, metric, effort);
            let gaussians = mixture(&points, 3, metric, effort);
            for found in [means, chains, gaussians] {
                let found = found.unwrap();
                assert_eq!(found.medoids.len(), 3, "{ranks} {metric:?}");
                assert_eq!(adjusted_rand(&found.labels, &labels), 1.0, "{ranks} {metric:?}");
                assert!(
                    found.medoids.iter().enumerate().all(|(label, &medoid)| found.labels[medoid] == label)
                );
            }
        }
        let right = silhouette(&points, &labels, 1).unwrap();
        let halves: Vec<usize> = labels.iter().map(|&label| usize::from(label > 0)).collect();
        assert!(right > 0.8 && silhouette(&points, &halves, 1).unwrap() < right, "{right}");
        assert_eq!(silhouette(&points, &vec![0; ranks], 1), None);
    }
}

#[test]
fn little_to_cluster_is_no_trouble_for_the_others() {
    let same = points(&Array2::ones((6, 2)));
    let effort = Effort::default();
    for found in [
        k_means(&same, 3, Metric::Euclidean, effort),
        dbscan(&same, 3, Metric::Euclidean, effort),
        mixture(&same, 3, Metric::Euclidean, effort),
    ] {
        let found = found.unwrap();
        assert_eq!((found.labels, found.deviation, found.unclassed), (vec![0; 6], 0.0, 0));
    }
    for (records, labels) in [
        (Array2::zeros((0, 2)), vec![]),
        (Array2::ones((1, 2)), vec![0]),
        (Array2::zeros((4, 0)), vec![0; 4]),
    ] {
        let points = points(&records);
        for found in [
            k_means(&points, 2, Metric::Manhattan, effort),
            dbscan(&points, 2, Metric::Manhattan, effort),
            mixture(&points, 2, Metric::Manhattan, effort),
        ] {
            assert_eq!(found.unwrap().labels, labels);
        }
    }
    assert_eq!(silhouette(&same, &[0, 0, 0, 1, 1, 1], 1), None);
}

#[test]
fn what_a_method_cannot_do_it_reports() {
    let effort = Effort::default();
    // Three points have two others each, and chains ask for four.
    let few = points(&Array2::from_shape_fn((3, 1), |(row, _)| row as f64));
    assert_eq!(dbscan(&few, 4, Metric::Euclidean, effort), Err(NoClasses::AllNoise));
    // A point that is far from two heaps has no probability.
    let mut far = Array2::from_shape_fn((40, 2), |(row, column)| ((row * 7 + column) % 5) as f64 * 0.01);
    far.row_mut(39).fill(1e6);
    let found = mixture(&points(&far), 3, Metric::Euclidean, effort);
    assert!(found.as_ref().is_ok_and(|found| found.labels.len() == 40) || found.is_err(), "{found:?}");
    // Points off every chain are counted, and have a label all the same.
    let mut chained = Array2::from_shape_fn((60, 1), |(row, _)| (row % 2 * 100 + row / 2) as f64 * 0.1);
    chained[(59, 0)] = 500.0;
    let found = dbscan(&points(&chained), 4, Metric::Euclidean, effort).unwrap();
    assert_eq!((found.medoids.len(), found.unclassed, found.labels.len()), (2, 1, 60));
}

proptest! {
    /// linfa's traits are a way to call the algorithm, and change nothing about what it finds.
    #[test]
    fn the_search_by_linfa_finds_what_the_algorithm_finds(
        (ranks, windows, values) in (2..40usize, 2..6usize).prop_flat_map(|(ranks, windows)| {
            (Just(ranks), Just(windows), prop::collection::vec(0..20u8, ranks * windows))
        }),
        manhattan in any::<bool>(),
        few in any::<bool>(),
    ) {
        let mut vectors = Vectors::new(ranks, 1);
        values.chunks(ranks).for_each(|window| vectors.push(window.iter().map(|&y| (1.0, f64::from(y)))));
        let aims = [Aim { guide: 0, confidence: 0.90, error: ErrorBound::Relative(0.08) }];
        let metric = if manhattan { Metric::Manhattan } else { Metric::Euclidean };
        let sampled = Effort { all_up_to: 10, samples: 2, sample_points: 9, ..Effort::default() };
        let effort = if few { sampled } else { Effort::default() };
        prop_assume!(vectors.windows() == windows);
        for rule in [Rule::Pays(5), Rule::Exactly(3)] {
            let by_linfa = choose(&vectors, &aims, rule, |features| search(features, metric, effort));
            let plain = choose(&vectors, &aims, rule, |features| k_medoids(features, metric, effort));
            prop_assert_eq!(by_linfa, plain);
        }
    }

    #[test]
    fn agreement_is_the_adjusted_rand_index(labels in prop::collection::vec((0..5usize, 0..4usize), 0..40)) {
        let (a, b): (Vec<usize>, Vec<usize>) = labels.into_iter().unzip();
        let (here, naive) = (agreement(&a, &b), adjusted_rand(&a, &b));
        prop_assert!((here - naive).abs() < 1e-12, "{here} {naive}");
        let renamed: Vec<usize> = a.iter().map(|label| 9 - label).collect();
        prop_assert_eq!(agreement(&a, &renamed), 1.0);
    }

    /// Whatever the points, every method returns: classes with labels of all points, or why there are none.
    #[test]
    fn any_points_are_clustered_or_refused(
        (rows, columns, values) in (0..30usize, 0..4usize).prop_flat_map(|(rows, columns)| {
            let value = prop_oneof![-1e6..1e6f64, (0..3i8).prop_map(f64::from), Just(1e-300), Just(1e-12)];
            (Just(rows), Just(columns), prop::collection::vec(value, rows * columns))
        }),
        k in 1..9usize,
    ) {
        let points = Points::new(rows, columns, values).unwrap();
        let effort = Effort::default();
        for found in [
            k_means(&points, k, Metric::Euclidean, effort),
            dbscan(&points, 4, Metric::Euclidean, effort),
            mixture(&points, k, Metric::Euclidean, effort),
        ].into_iter().flatten() {
            prop_assert_eq!(found.labels.len(), rows);
            prop_assert!(found.labels.iter().all(|&label| label < found.medoids.len()), "{:?}", found);
        }
    }
}
