//! Numbers of strata that populations are found to be worth.

use ampl_core::cluster::{
    Aim, Choice, Effort, Metric, OnlineStratum, Rule, Strata, Vectors, choose, k_medoids, propose,
};
use ampl_core::config::ErrorBound;
use ampl_testkit::medoids::adjusted_rand;
use ampl_testkit::population::Total;
use ampl_testkit::{Classes, Kind, Population};

const AIM: Aim = Aim { guide: 0, confidence: 0.90, error: ErrorBound::Relative(0.08) };

fn vectors(ranks: usize, windows: usize, mut next: impl FnMut() -> Vec<Total>) -> Vectors {
    let mut vectors = Vectors::new(ranks, 1);
    (0..windows).for_each(|_| vectors.push(next().into_iter().map(|total| (total.n as f64, total.y))));
    vectors
}

fn chosen(vectors: &Vectors, rule: Rule) -> Choice {
    choose(vectors, &[AIM], rule, |features| k_medoids(features, Metric::Euclidean, Effort::default()))
}

fn of(kind: Kind, ranks: usize, windows: usize, seed: u64) -> Vectors {
    let mut population = Population::new(kind, ranks, seed);
    vectors(ranks, windows, || population.next_window())
}

#[test]
fn noise_is_one_class() {
    let kinds = [Kind::Normal, Kind::LogNormal, Kind::ZeroInflated, Kind::Spikes, Kind::Drift];
    for kind in kinds {
        // `cargo xtask bench strata` has more shapes, and larger ones.
        for (ranks, windows) in [(8, 20), (32, 12)] {
            let alone = (0..200)
                .filter(|&seed| chosen(&of(kind, ranks, windows, seed), Rule::Pays(8)).strata().k == 1);
            let alone = alone.count();
            assert!(alone >= 180, "{} of {ranks} ranks: {alone} of 200 draws", kind.name());
        }
    }
}

#[test]
fn what_lingers_for_a_few_windows_is_no_class() {
    for (ranks, windows) in [(32, 12), (64, 24), (300, 24)] {
        let draws = if ranks > 100 { 20 } else { 60 };
        let alone = (0..draws).filter(|&seed| {
            chosen(&of(Kind::Autoregressive, ranks, windows, seed), Rule::Pays(8)).strata().k == 1
        });
        let alone = alone.count() as u64;
        assert!(10 * alone >= 9 * draws, "{ranks} ranks: {alone} of {draws} draws");
    }
}

#[test]
fn classes_of_half_the_run_are_found() {
    for late in [false, true] {
        let mut job = Classes::equal(&[1.0, 4.0], 0.1).job(120, 3);
        let labels = job.labels.clone();
        let mut window = 0;
        let population = vectors(120, 24, || {
            window += 1;
            let mut totals = job.next_window();
            let alike = (window <= 12) == late;
            totals.iter_mut().zip(&labels).filter(|_| alike).for_each(|(total, &label)| {
                total.y /= [1.0, 4.0][label];
            });
            totals
        });
        let choice = chosen(&population, Rule::Pays(8));
        assert_eq!(adjusted_rand(&choice.strata().labels, &labels), 1.0, "{:?}", sizes(&choice));
    }
}

#[test]
fn planted_classes_are_found_exactly() {
    let kind = Classes::equal(&[1.0, 2.0, 4.0], 0.1);
    for (ranks, seeds, most) in [(64, 20, 8), (2048, 1, 6), (100_000, 1, 4)] {
        for seed in 0..seeds {
            let mut job = kind.job(ranks, seed);
            let labels = job.labels.clone();
            let choice = chosen(&vectors(ranks, 8, || job.next_window()), Rule::Pays(most));
            let found = choice.strata();
            assert_eq!(found.k, 3, "{ranks} {seed}: {:?}", sizes(&choice));
            assert_eq!(adjusted_rand(&found.labels, &labels), 1.0, "{ranks} {seed}");
        }
    }
}

fn sizes(choice: &Choice) -> Vec<(usize, f64, f64)> {
    choice.tried.iter().map(|tried| (tried.k, tried.price.size, tried.gain)).collect()
}

#[test]
fn two_strata_of_wait_times_save_far_more_than_a_quarter() {
    for seed in 0..2 {
        let mut job = Classes::wait_times().job(1024, seed);
        let choice = chosen(&vectors(1024, 56, || job.next_window()), Rule::Exactly(2));
        assert!(choice.strata().gain >= 0.65, "{:?}", sizes(&choice));
        let mut job = Classes::wait_times().job(1024, seed);
        let choice = chosen(&vectors(1024, 56, || job.next_window()), Rule::Pays(8));
        assert!(choice.strata().k >= 2 && choice.strata().gain >= 0.65, "{:?}", sizes(&choice));
    }
}

#[test]
fn classes_that_change_places_are_found_too() {
    // The slow ranks of a window depend on the phase; over the run all classes take as long.
    let mut number = 0;
    let mut noise = Population::new(Kind::Normal, 90, 3);
    let population = vectors(90, 24, || {
        number += 1;
        let slow = (number / 6) % 3;
        let mut window = noise.next_window();
        window.iter_mut().enumerate().for_each(|(rank, total)| {
            total.y = (100.0 + 0.3 * (total.y - 100.0)) * if rank % 3 == slow { 3.0 } else { 1.0 };
        });
        window
    });
    let choice = chosen(&population, Rule::Pays(8));
    let classes: Vec<usize> = (0..90).map(|rank| rank % 3).collect();
    assert_eq!(adjusted_rand(&choice.strata().labels, &classes), 1.0, "{:?}", sizes(&choice));
}

#[test]
fn little_to_choose_from_is_one_class() {
    let one = |vectors: &Vectors| {
        let choice = chosen(vectors, Rule::Pays(8));
        assert_eq!((choice.strata().k, choice.strata().gain), (1, 0.0));
        assert!(choice.strata().labels.iter().all(|&label| label == 0));
        choice
    };
    assert_eq!(one(&Vectors::new(0, 1)).tried.len(), 1);
    assert_eq!(one(&Vectors::new(5, 1)).strata().price.size, 0.0);
    one(&of(Kind::Bimodal, 1, 10, 1));
    // A single window leaves nothing to be judged on.
    assert_eq!(one(&of(Kind::Bimodal, 64, 1, 1)).tried.len(), 1);
    let total = |y| Total { n: 1, y };
    one(&vectors(6, 4, || vec![total(3.0); 6]));
    one(&vectors(6, 4, || vec![total(0.0); 6]));
    one(&vectors(6, 4, || vec![total(f64::NAN); 6]));
}

#[test]
fn as_many_as_are_asked_for_if_so_many_differ() {
    assert_eq!(chosen(&of(Kind::Normal, 40, 8, 1), Rule::Exactly(5)).strata().k, 5);
    let constant = vectors(40, 8, {
        let mut window = 0;
        move || {
            window += 1;
            (0..40).map(|rank| Total { n: 1, y: f64::from(rank % 3 + window) }).collect()
        }
    });
    assert_eq!(chosen(&constant, Rule::Exactly(7)).strata().k, 3);
    assert_eq!(chosen(&constant, Rule::Exactly(1)).strata().k, 1);
}

fn proposal(population: &Vectors, current: &Strata) -> Option<ampl_core::cluster::Proposal> {
    propose(population, current, &[AIM], Rule::Pays(8), Metric::Euclidean, Effort::default())
}

#[test]
fn a_job_gets_other_strata_only_where_these_are_proven() {
    let mut job = Classes::equal(&[1.0, 2.0, 4.0], 0.1).job(300, 5);
    let first = vectors(300, 8, || job.next_window());
    let found = proposal(&first, &Strata::single(300)).expect("three classes pay");
    assert_eq!(found.strata.strata.len(), 3);
    assert!(found.gain > 0.5 && found.price.is_proven(), "{found:?}");
    assert_eq!(adjusted_rand(&found.strata.labels, &job.labels), 1.0);
    // The same job a little later: nothing to gain.
    let later = vectors(300, 8, || job.next_window());
    assert_eq!(proposal(&later, &found.strata), None);
    for seed in 0..20 {
        assert_eq!(proposal(&of(Kind::Normal, 300, 8, seed), &Strata::single(300)), None, "{seed}");
    }
    // Strata of another job, or no windows.
    assert_eq!(proposal(&first, &Strata::single(299)), None);
    assert_eq!(proposal(&Vectors::new(300, 1), &Strata::single(300)), None);
}

#[test]
fn ranks_find_the_strata_that_were_proposed() {
    let mut job = Classes::equal(&[1.0, 2.0, 4.0], 0.1).job(300, 5);
    let population = vectors(300, 8, || job.next_window());
    let found = proposal(&population, &Strata::single(300)).unwrap();
    let reference = found.reference.expect("there are medoids");
    let (windows, _) = population.halves();
    for rank in 0..300 {
        let seen = |&window: &usize| {
            let (n, y) = population.of(window, 0);
            (n[rank], y[rank])
        };
        let own = vec![windows.iter().map(seen).collect()];
        assert_eq!(reference.stratum_of(&own, &Metric::Euclidean), found.strata.labels[rank]);
    }
}

#[test]
fn strata_keep_their_names_while_their_medoids_do() {
    let mut job = Classes::equal(&[1.0, 4.0], 0.1).job(200, 5);
    let two = vectors(200, 8, || job.next_window());
    let before = proposal(&two, &Strata::single(200)).unwrap().strata;
    let ids: Vec<u16> = before.strata.iter().map(|stratum| stratum.id).collect();
    // Rank 0 was the medoid of the only stratum: its stratum goes on as that one.
    assert_eq!((before.strata[before.labels[0]].id, ids.len(), before.next_id), (0, 2, 2));
    // Half of one class slows down.
    let slow = |rank: usize| job.labels[rank] == 1 && rank.is_multiple_of(2);
    let labels: Vec<usize> = (0..200).map(|rank| if slow(rank) { 2 } else { job.labels[rank] }).collect();
    let slowed: Vec<bool> = (0..200).map(slow).collect();
    let mut next = job.clone();
    let three = vectors(200, 8, || {
        let mut window = next.next_window();
        window.iter_mut().zip(&slowed).for_each(|(total, slow)| total.y *= if *slow { 3.0 } else { 1.0 });
        window
    });
    let after = proposal(&three, &before).expect("a third class pays").strata;
    assert_eq!(adjusted_rand(&after.labels, &labels), 1.0);
    for old in &before.strata {
        assert_eq!(after.strata[after.labels[old.medoid]].id, old.id);
    }
    let mut ids: Vec<u16> = after.strata.iter().map(|stratum| stratum.id).collect();
    ids.sort_unstable();
    assert_eq!((ids, after.next_id), (vec![0, 1, 2], 3));
}

#[test]
fn strata_that_cost_more_than_they_save_are_given_up() {
    // A rank of each is enough, and one in all.
    let alike = vectors(200, 8, {
        let mut noise = Population::new(Kind::Normal, 200, 3);
        move || {
            let window = noise.next_window().into_iter();
            window.map(|total| Total { n: 1, y: 1000.0 + total.y }).collect()
        }
    });
    let strata = (0..6).map(|id| OnlineStratum { id: id + 10, medoid: usize::from(id) }).collect();
    let six = Strata { strata, labels: (0..200).map(|rank| rank % 6).collect(), next_id: 16 };
    let found = proposal(&alike, &six).expect("one stratum costs a sixth");
    assert!(found.gain > 0.5 && found.reference.is_none(), "{found:?}");
    assert_eq!((found.strata.strata.len(), found.strata.next_id), (1, 16));
    // All old medoids are in it, and rank 0's stratum had no fewer ranks than the others.
    assert_eq!(found.strata.strata[0].id, 10);
    assert!(found.strata.labels.iter().all(|&label| label == 0));
    // Strata that say nothing but cost nothing either stay.
    let three =
        Strata { strata: six.strata[..3].to_vec(), labels: (0..200).map(|r| r % 3).collect(), next_id: 16 };
    assert_eq!(proposal(&of(Kind::Normal, 200, 8, 1), &three), None);
}
