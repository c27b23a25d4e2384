//! Bounds on what few ranks observe, an MPI function that some of them call: a sample without any of them has no
//! estimate at all.

use ampl_core::config::{Config, Mechanism, Selection, Sizing, Summaries};
use ampl_core::message::MetricSummary;
use ampl_core::plan::Plan;
use ampl_testkit::{Kind, Population};

use crate::common::{config, group, relative, simulated};

const WINDOWS: u64 = 24;
const SEEDS: u64 = 12;

/// The next window: one of `every` ranks observes, with a cv of `spread`.
fn window(population: &mut Population, every: usize, spread: f64) -> Vec<MetricSummary> {
    let totals = population.next_window();
    let mean = totals.iter().map(|total| total.y).sum::<f64>() / totals.len() as f64;
    let observe = |(rank, y): (usize, f64)| match (rank + 1).is_multiple_of(every) {
        // The population's own is .3.
        true => MetricSummary::one(100.0 * (1.0 + spread / 0.3 * (y / mean - 1.0))),
        false => MetricSummary::default(),
    };
    totals.iter().map(|total| total.y).enumerate().map(observe).collect()
}

/// Share of windows within 8 % of the mean, and ranks kept of a window.
fn covered(config: &Config, ranks: u32, every: usize, spread: f64) -> (f64, f64) {
    let one = |seed: u64| {
        let mut config = config.clone();
        config.sampling.seed = seed;
        config.groups = vec![group("all", &format!("0-{}", ranks - 1), relative(0.9, 0.08), "")];
        let plan = Plan::new(config, ranks).unwrap();
        let mut population = Population::new(Kind::Normal, ranks as usize, seed);
        let guides = (0..WINDOWS).map(|_| vec![window(&mut population, every, spread)]);
        let (scores, _) = simulated::simulated(&plan, guides, seed);
        simulated::from(&scores[0], 0)
    };
    let (kept, covered) = (0..SEEDS).map(one).fold((0.0, 0.0), |sum, of| (sum.0 + of.0, sum.1 + of.1));
    (covered / SEEDS as f64, kept / SEEDS as f64)
}

#[test]
fn somebody_who_observed_is_in_the_sample() {
    for mechanism in [Mechanism::Subset, Mechanism::Global] {
        for (summaries, selection) in [
            (Summaries::Census, Selection::Retrospective),
            (Summaries::Census, Selection::Predictive),
            (Summaries::Sampled, Selection::Predictive),
        ] {
            let mut config = config(summaries, Sizing::Neyman, mechanism);
            config.sampling.selection = selection;
            for (ranks, every, spread) in [(64, 64, 0.0), (256, 80, 0.0), (1024, 50, 0.02), (500, 10, 0.02)] {
                let (covered, kept) = covered(&config, ranks, every, spread);
                let what =
                    format!("{mechanism:?} {selection:?} {summaries:?} 1 of {every}: {covered} with {kept}");
                assert!(covered >= 0.95, "{what}");
                // Ranks that differ are found among all others once a window is over.
                let found = selection == Selection::Retrospective && spread > 0.0;
                assert!(!found || kept < 64.0, "{what}");
            }
        }
    }
}

/// No ranks are added where all ranks observe equally often.
#[test]
fn where_all_observe_nothing_is_added() {
    let mut config = config(Summaries::Census, Sizing::Neyman, Mechanism::Subset);
    let everybody = |config: &Config| covered(config, 500, 1, 0.02).1;
    config.sampling.selection = Selection::Predictive;
    assert_eq!(everybody(&config), 16.0);
}
