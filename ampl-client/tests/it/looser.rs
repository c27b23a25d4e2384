//! Retrospective sizes along a grid of bounds.

use ampl_core::config::{Mechanism, Selection, Sizing, Summaries, Target};
use ampl_core::plan::Plan;
use ampl_testkit::{Kind, Population};

use crate::common::{config, group, metric, relative, simulated};

/// No target of `targets`, from the tightest on, keeps more ranks in the mean than the one before.
fn check(targets: &[Target]) {
    for (kind, ranks) in Kind::ALL.into_iter().flat_map(|kind| [(kind, 128), (kind, 300)]) {
        let mut population = Population::new(kind, ranks, 11);
        let mut window = || vec![population.next_window().into_iter().map(metric).collect()];
        let windows: Vec<Vec<_>> = (0..24).map(|_| window()).collect();
        let mut before = f64::INFINITY;
        for &target in targets {
            let mut config = config(Summaries::Census, Sizing::Neyman, Mechanism::Subset);
            config.sampling.selection = Selection::Retrospective;
            config.sampling.windows_per_update = 4;
            config.groups = vec![group("g", &format!("0-{}", ranks - 1), target, "")];
            let (scores, _) =
                simulated::simulated(&Plan::new(config, ranks as u32).unwrap(), windows.clone(), 1);
            let size = simulated::from(&scores[0], 4).0;
            assert!(
                size <= before,
                "{kind:?}, {ranks} ranks, {target:?}: {size}, {before} at a tighter bound"
            );
            before = size;
        }
    }
}

#[test]
fn a_larger_error_keeps_no_more_ranks() {
    check(&[0.005, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.2].map(|error| relative(0.95, error)));
}

#[test]
fn a_lower_confidence_keeps_no_more_ranks() {
    for error in [0.01, 0.03, 0.08] {
        check(&[0.99, 0.95, 0.9, 0.8].map(|confidence| relative(confidence, error)));
    }
}
