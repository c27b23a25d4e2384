//! Strata: whether planted classes are found and what that takes, whether noise is left alone, and what two strata
//! of wait times save.
//!
//! Classes and medoids are asserted, times are printed.
#![allow(clippy::disallowed_methods, reason = "a bench looks at the clock")]

use std::time::Instant;

use ampl_core::cluster::linfa_baselines::{MIXTURE_COLUMNS, dbscan, k_means, mixture, silhouette};
use ampl_core::cluster::{
    Aim, Choice, Clustering, Effort, KMedoids, Metric, Rule, Vectors, choose, k_medoids,
};
use ampl_core::config::ErrorBound;
use ampl_testkit::medoids::adjusted_rand;
use ampl_testkit::population::Total;
use ampl_testkit::{Classes, Kind, Population};

const AIM: Aim = Aim { guide: 0, confidence: 0.90, error: ErrorBound::Relative(0.08) };

fn main() {
    planted();
    noise();
    wait_times();
    compared();
}

fn vectors(ranks: usize, windows: usize, mut next: impl FnMut() -> Vec<Total>) -> Vectors {
    let mut vectors = Vectors::new(ranks, 1);
    (0..windows).for_each(|_| vectors.push(next().into_iter().map(|total| (total.n as f64, total.y))));
    vectors
}

fn chosen(vectors: &Vectors, rule: Rule) -> Choice {
    choose(vectors, &[AIM], rule, |features| k_medoids(features, Metric::Euclidean, Effort::default()))
}

fn planted() {
    println!("three classes with means 1, 2 and 4, noise .1, 48 windows; k from 1 to 8 by what it costs");
    println!("{:>9} {:>3} {:>9} {:>10} {:>10} {:>9}", "ranks", "k", "Rand", "m, k = 1", "m", "seconds");
    for ranks in [64, 2048, 100_000] {
        let mut job = Classes::equal(&[1.0, 2.0, 4.0], 0.1).job(ranks, 1);
        let vectors = vectors(ranks, 48, || job.next_window());
        let started = Instant::now();
        let choice = chosen(&vectors, Rule::Pays(8));
        let seconds = started.elapsed().as_secs_f64();
        let found = choice.strata();
        let rand = adjusted_rand(&found.labels, &job.labels);
        let (one, some) = (choice.tried[0].price.size, found.price.size);
        println!("{ranks:>9} {:>3} {rand:>9.4} {one:>10.1} {some:>10.1} {seconds:>9.2}", found.k);
        assert_eq!((found.k, rand), (3, 1.0));
    }
}

fn noise() {
    println!("\nnoise only, 90/8: draws of 200 in which there is one stratum");
    let shapes = [(8, 20), (32, 12), (64, 24), (200, 20)];
    let heads = shapes.map(|(ranks, windows)| format!("{ranks} x {windows}"));
    println!("{:<16} {:>9} {:>9} {:>9} {:>9}   ranks x windows", "", heads[0], heads[1], heads[2], heads[3]);
    for kind in [
        Kind::Normal,
        Kind::LogNormal,
        Kind::ZeroInflated,
        Kind::Spikes,
        Kind::Drift,
        Kind::Phases,
        Kind::Autoregressive,
    ] {
        let alone = shapes.map(|(ranks, windows)| {
            let one = |&seed: &u64| {
                let mut population = Population::new(kind, ranks, seed);
                let vectors = vectors(ranks, windows, || population.next_window());
                chosen(&vectors, Rule::Pays(8)).strata().k == 1
            };
            (0..200).filter(one).count()
        });
        println!("{:<16} {:>9} {:>9} {:>9} {:>9}", kind.name(), alone[0], alone[1], alone[2], alone[3]);
        assert!(alone.iter().all(|&alone| alone >= 180));
    }
}

fn wait_times() {
    println!("\nwait times of 1024 ranks, 56 windows, 90/8: ranks to be drawn of a window");
    let mut job = Classes::wait_times().job(1024, 1);
    let vectors = vectors(1024, 56, || job.next_window());
    for rule in [Rule::Exactly(2), Rule::Pays(8)] {
        let choice = chosen(&vectors, rule);
        let (one, found) = (choice.tried[0].price.size, choice.strata());
        println!(
            "k = {}: {:.1} instead of {one:.1}: {:.0} % less (the paper's two strata: 25 %)",
            found.k,
            found.price.size,
            100.0 * found.gain
        );
        assert!(found.gain >= 0.65);
    }
}

fn compared() {
    println!("\nother clusterings of 2000 ranks in three classes, 24 windows");
    println!("{:<12} {:>3} {:>9} {:>11} {:>10} {:>9}", "", "k", "Rand", "deviation", "silhouette", "seconds");
    let mut job = Classes::equal(&[1.0, 2.0, 4.0], 0.1).job(2000, 1);
    let vectors = vectors(2000, 24, || job.next_window());
    let points = vectors.features(&(0..24).collect::<Vec<_>>()).points;
    let effort = Effort::default();
    type Method<'a> = (&'a str, &'a dyn Fn() -> Clustering);
    // The mixture has full covariances: it gets fewer numbers a rank.
    let coarse = vectors.clone().sampled(2000, MIXTURE_COLUMNS).features(&(0..24).collect::<Vec<_>>()).points;
    let methods: [Method<'_>; 4] = [
        ("k-medoids", &|| KMedoids::new(&points, Metric::Euclidean, effort).clusters(3)),
        ("k-means", &|| k_means(&points, 3, Metric::Euclidean, effort).expect("means at rest")),
        ("dbscan", &|| dbscan(&points, 5, Metric::Euclidean, effort).expect("chains")),
        ("mixture", &|| mixture(&coarse, 3, Metric::Euclidean, effort).expect("a mixture")),
    ];
    for (name, method) in methods {
        let started = Instant::now();
        let found = method();
        let seconds = started.elapsed().as_secs_f64();
        let rand = adjusted_rand(&found.labels, &job.labels);
        let near = silhouette(&points, &found.labels, 1).map_or("-".into(), |score| format!("{score:.3}"));
        let (k, deviation) = (found.medoids.len(), found.deviation);
        println!("{name:<12} {k:>3} {rand:>9.4} {deviation:>11.1} {near:>10} {seconds:>9.2}");
    }
}
