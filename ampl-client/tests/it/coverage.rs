//! Coverage under decided sizes, on small versions of STATISTICS §4's populations.
//!
//! Everything is seeded: the numbers repeat.

use ampl_client::Policy;
use ampl_core::config::{Mechanism, Selection, Sizing, Summaries};
use ampl_core::permute::order;
use ampl_core::plan::Plan;
use ampl_core::units::Rank;
use ampl_testkit::population::Total;
use ampl_testkit::{Classes, Kind};

use crate::common::{Score, config, group, metric, relative, run, run_seeds, simulated, undivided};

const RANKS: u32 = 128;
const SEEDS: u64 = 12;

fn scores(summaries: Summaries, sizing: Sizing, mechanism: Mechanism) -> Vec<(Kind, Score)> {
    let config = config(summaries, sizing, mechanism);
    let score = |kind| (kind, run_seeds(&config, kind, RANKS, 60, SEEDS));
    Kind::ALL.into_iter().map(score).collect()
}

fn mean_coverage(scores: &[(Kind, Score)]) -> f64 {
    scores.iter().map(|(_, score)| score.coverage()).sum::<f64>() / scores.len() as f64
}

fn mean_cost(scores: &[(Kind, Score)]) -> f64 {
    (scores.iter().map(|(_, score)| score.cost().ln()).sum::<f64>() / scores.len() as f64).exp()
}

fn print(scores: &[(Kind, Score)]) {
    for (kind, score) in scores {
        let size = score.size / score.windows;
        println!("{kind:?}: coverage {:.3} size {size:.1} cost {:.2}", score.coverage(), score.cost());
    }
    println!("mean {:.3}, gm {:.3}", mean_coverage(scores), mean_cost(scores));
}

/// Asserts, under both mechanisms, that coverage is at most `worst` below 90 % of any population's windows and `mean`
/// below it on average, at 1.1 times the oracle's price.
fn holds(summaries: Summaries, worst: f64, mean: f64) {
    for mechanism in [Mechanism::Subset, Mechanism::Global] {
        let scores = scores(summaries, Sizing::Neyman, mechanism);
        print(&scores);
        for (kind, score) in &scores {
            assert!(score.coverage() >= 0.90 - worst, "{mechanism:?} {kind:?}: {}", score.coverage());
        }
        assert!(mean_coverage(&scores) >= 0.90 - mean, "{mechanism:?}: {}", mean_coverage(&scores));
        assert!(mean_cost(&scores) <= 1.1, "{mechanism:?}: {}", mean_cost(&scores));
    }
}

#[test]
fn predictive_census_holds_its_bound_at_the_oracles_price() {
    // Without a take-all stratum, STATISTICS §2 measured a price of 1.19.
    holds(Summaries::Census, 0.05, 0.005);
}

#[test]
fn sampled_summaries_hold_their_bound_too() {
    // The few slow ranks and the rare spikes above all: a sample that misses them must not make the next one smaller.
    holds(Summaries::Sampled, 0.07, 0.01);
}

#[test]
fn ampl_2008_falls_short_where_windows_vary() {
    let scores = scores(Summaries::Sampled, Sizing::Ampl2008, Mechanism::Subset);
    print(&scores);
    let of = |wanted| scores.iter().find(|(kind, _)| *kind == wanted).unwrap().1.coverage();
    // The control: interval totals average independent noise away, so windows are missed; the
    // same ranks' persistent differences stay.
    for kind in [Kind::Normal, Kind::LogNormal, Kind::Phases, Kind::Drift, Kind::ZeroInflated] {
        assert!(of(kind) < 0.80, "{kind:?}: {}", of(kind));
    }
    for kind in [Kind::Bimodal, Kind::Heterogeneous] {
        assert!(of(kind) > 0.83, "{kind:?}: {}", of(kind));
    }
}

#[test]
fn other_levels_hold_too() {
    for (confidence, error) in [(0.95, 0.05), (0.99, 0.03)] {
        let mut config = config(Summaries::Census, Sizing::Neyman, Mechanism::Subset);
        config.groups.push(group("g", "0-127", relative(confidence, error), ""));
        for kind in [Kind::Normal, Kind::LogNormal, Kind::Bimodal, Kind::Slow, Kind::Phases] {
            let score = run_seeds(&config, kind, RANKS, 60, 8);
            assert!(score.coverage() >= confidence - 0.05, "{kind:?}: {}", score.coverage());
            assert!(score.cost() <= 1.25, "{kind:?}: {}", score.cost());
        }
    }
}

#[test]
fn a_rank_or_two_that_are_slow_are_not_left_out_more_often_than_was_promised() {
    const WINDOWS: usize = 40;
    for (ranks, slow, times) in [(32, 1, 4.0), (100, 1, 10.0), (128, 2, 10.0)] {
        let classes = [(f64::from(slow) / f64::from(ranks), times), (1.0, 1.0)];
        let classes = Classes { classes: classes.into(), lasting: 0.0, noise: 0.1 };
        for (confidence, error) in [(0.90, 0.08), (0.95, 0.05)] {
            for summaries in [Summaries::Census, Summaries::Sampled] {
                let mut config = config(summaries, Sizing::Neyman, Mechanism::Subset);
                let members = format!("0-{}", ranks - 1);
                config.groups.push(group("g", &members, relative(confidence, error), ""));
                let plan = Plan::new(undivided(config), ranks).unwrap();
                let seeds = 60;
                let of_seed = |seed| {
                    let mut job = classes.job(ranks as usize, seed);
                    let window = || vec![job.next_window().into_iter().map(metric).collect()];
                    let windows: Vec<_> = std::iter::repeat_with(window).take(WINDOWS).collect();
                    simulated::from(&simulated::simulated(&plan, windows, seed).0[0], 4).1
                };
                let coverage = (0..seeds).map(of_seed).sum::<f64>() / seeds as f64;
                println!("{slow} of {ranks}, {confidence}, {summaries:?}: {coverage:.3}");
                assert!(coverage >= confidence - 0.02, "{slow} of {ranks}, {confidence}: {coverage}");
            }
        }
    }
}

#[test]
fn a_slow_rank_of_lasting_strata_is_not_left_out_more_often_than_was_promised() {
    const WINDOWS: u32 = 120;
    let (confidence, error) = (0.90, 0.08);
    for (ranks, share, slow) in [(64, 0.5, 3.0), (100, 0.5, 3.0), (100, 0.8, 4.0)] {
        let classes =
            Classes { classes: [(share, 1.0), (1.0 - share, slow)].into(), lasting: 0.0, noise: 0.1 };
        let mut config = config(Summaries::Census, Sizing::Neyman, Mechanism::Subset);
        config.groups.push(group("g", &format!("0-{}", ranks - 1), relative(confidence, error), ""));
        let plan = Plan::new(config, ranks).unwrap();
        let seeds = 30;
        let of_seed = |seed| {
            let mut job = classes.job(ranks as usize, seed);
            let slow: Vec<usize> = (0..ranks as usize).filter(|&rank| job.labels[rank] == 1).collect();
            // Another one of the slow ranks in every window.
            let window = |window| {
                let mut totals = job.next_window();
                totals[slow[order(seed, Rank(window)) as usize % slow.len()]].y *= 6.0;
                vec![totals.into_iter().map(metric).collect()]
            };
            let windows: Vec<_> = (0..WINDOWS).map(window).collect();
            simulated::from(&simulated::simulated(&plan, windows, seed).0[0], 4).1
        };
        let coverage = (0..seeds).map(of_seed).sum::<f64>() / seeds as f64;
        println!("{ranks} ranks, {share}: {coverage:.3}");
        // Where it is a quarter more than was promised, that is not worth more ranks.
        assert!(coverage >= 1.0 - 1.3 * (1.0 - confidence), "{ranks} ranks, {share}: {coverage}");
    }
}

#[test]
fn decisions_do_not_depend_on_the_unit_and_repeat() {
    for (summaries, sizing) in [
        (Summaries::Census, Sizing::Neyman),
        (Summaries::Sampled, Sizing::Neyman),
        (Summaries::Sampled, Sizing::Ampl2008),
    ] {
        let plan = Plan::new(config(summaries, sizing, Mechanism::Subset), RANKS).unwrap();
        for kind in Kind::ALL {
            let sizes = |scale| -> Vec<(u64, u32, f64)> {
                let decisions = run(&plan, kind, 40, 5, scale).decisions;
                decisions.iter().map(|d| (d.window, d.size, d.probability)).collect()
            };
            let base = sizes(1.0);
            let of_intervals: Vec<u64> =
                base.iter().map(|row| row.0).filter(|window| window % 4 == 0).collect();
            assert_eq!(of_intervals, (0..=40).step_by(4).collect::<Vec<u64>>(), "{kind:?}");
            assert!(base.len() == 11 || summaries == Summaries::Census, "{kind:?}");
            assert_eq!(base, sizes((1u64 << 20) as f64), "{sizing:?} {kind:?}");
            for (a, b) in base.iter().zip(sizes(1e6)) {
                assert!(a.1.abs_diff(b.1) <= 1, "{sizing:?} {kind:?}");
            }
        }
        let again = || run(&plan, Kind::Drift, 40, 5, 1.0).decisions;
        assert_eq!(again(), again());
        assert_eq!(Policy::new(&plan).first_directive().0.strata[0].size, RANKS);
    }
}

#[test]
fn windows_in_which_ranks_do_the_same_take_few_of_small_groups() {
    for (ranks, floor, least) in
        [(20, None, 2), (64, None, 2), (128, None, 4), (256, None, 8), (1000, None, 8), (64, Some(8), 8)]
    {
        let mut config = config(Summaries::Census, Sizing::Neyman, Mechanism::Subset);
        config.sampling.selection = Selection::Retrospective;
        config.sampling.floor = floor;
        let same = vec![vec![metric(Total { n: 1, y: 1.0 }); ranks as usize]];
        let windows = std::iter::repeat_n(same, 12);
        let (scores, _) = simulated::simulated(&Plan::new(config, ranks).unwrap(), windows, 3);
        let sizes: Vec<u64> = scores[0].windows.iter().map(|scored| scored.size).collect();
        assert_eq!(sizes, vec![least; sizes.len()], "{ranks} ranks");
    }
}
