//! Retrospective sizes along a grid of bounds.

use ampl_core::config::{Mechanism, Selection, Sizing, Summaries};
use ampl_core::plan::Plan;
use ampl_testkit::{Kind, Population};

use crate::common::{config, group, metric, relative, simulated};

#[test]
fn a_looser_bound_keeps_no_more_ranks() {
    for (kind, ranks) in Kind::ALL.into_iter().flat_map(|kind| [(kind, 128), (kind, 300)]) {
        let mut population = Population::new(kind, ranks, 11);
        let mut window = || vec![population.next_window().into_iter().map(metric).collect()];
        let windows: Vec<Vec<_>> = (0..24).map(|_| window()).collect();
        let mut before = f64::INFINITY;
        for error in [0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.2] {
            let mut config = config(Summaries::Census, Sizing::Neyman, Mechanism::Subset);
            config.sampling.selection = Selection::Retrospective;
            config.sampling.windows_per_update = 4;
            config.groups = vec![group("g", &format!("0-{}", ranks - 1), relative(0.95, error), "")];
            let (scores, _) =
                simulated::simulated(&Plan::new(config, ranks as u32).unwrap(), windows.clone(), 1);
            let size = simulated::from(&scores[0], 4).0;
            assert!(size <= before, "{kind:?}, {ranks} ranks, {error}: {size}, {before} at a tighter bound");
            before = size;
        }
    }
}
