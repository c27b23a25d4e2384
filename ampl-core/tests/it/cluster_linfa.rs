//! k-medoids as linfa has it, and linfa's own clusterings beside it.

use ampl_core::cluster::estimator::{KMedoidsError, KMedoidsModel};
use ampl_core::cluster::linfa_baselines::{dbscan, k_means, silhouette};
use ampl_core::cluster::{Effort, Initial, KMedoids, Metric, Points};
use ampl_testkit::Classes;
use ampl_testkit::medoids::adjusted_rand;
use linfa::DatasetBase;
use linfa::prelude::{Fit, ParamGuard, Predict};
use ndarray::{Array1, Array2};

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
fn means_and_chains_find_the_same_classes() {
    let few = Effort { all_up_to: 300, sample_points: 200, ..Effort::default() };
    for (ranks, effort) in [(120, Effort::default()), (900, few)] {
        let (records, labels) = classes(ranks);
        let points = points(&records);
        for metric in Metric::ALL {
            let means = k_means(&points, 3, metric, effort);
            let chains = dbscan(&points, 4, metric, effort);
            for found in [means, chains] {
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
    for found in [k_means(&same, 3, Metric::Euclidean, effort), dbscan(&same, 3, Metric::Euclidean, effort)] {
        assert_eq!((found.labels, found.deviation), (vec![0; 6], 0.0));
    }
    let none = points(&Array2::zeros((0, 2)));
    assert!(k_means(&none, 2, Metric::Manhattan, effort).labels.is_empty());
    assert!(dbscan(&none, 2, Metric::Manhattan, effort).labels.is_empty());
    let one = points(&Array2::ones((1, 2)));
    assert_eq!(k_means(&one, 2, Metric::Manhattan, effort).labels, [0]);
    assert_eq!(dbscan(&one, 2, Metric::Manhattan, effort).labels, [0]);
    let flat = points(&Array2::zeros((4, 0)));
    assert_eq!(dbscan(&flat, 2, Metric::Euclidean, effort).labels, [0; 4]);
    assert_eq!(k_means(&flat, 2, Metric::Euclidean, effort).labels, [0; 4]);
    assert_eq!(silhouette(&same, &[0, 0, 0, 1, 1, 1], 1), None);
}
