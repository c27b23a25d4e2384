//! Rounded summaries lead to the same strata as exact ones, and to samples whose sizes differ by a twentieth at most.

use std::convert::Infallible;

use ampl_analysis::strata::{Request, Stratification};
use ampl_analysis::what_if::{Recorded, simulated};
use ampl_client::simulate::{Job, Window};
use ampl_core::config::Quantity;
use ampl_testkit::synthetic::Synthetic;
use ampl_trace::Trace;
use ampl_trace::cells::Cell;
use ampl_trace::rounding::round_windows;

const WINDOWS: u64 = 40;

/// A run whose ranks are of two classes, with noise of so many thousandths.
fn run(job: &Synthetic, seed: u64, noise: u64) -> Trace {
    let mut trace = job.trace();
    let mut state = seed;
    let slot = Quantity::MpiTime.slot().unwrap();
    for rank in &mut trace.ranks {
        let usual = 2_000_000 + 3_100_007 * u64::from(rank.process.rank % 2);
        for window in rank.windows.entries_mut() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let value = usual + usual / 1000 * ((state >> 33) % noise);
            let own = |(metric, cell)| if metric == slot { Cell::one(value as f64) } else { cell };
            window.cells = window.cells.iter().enumerate().map(own).collect();
        }
    }
    trace
}

/// Rank-windows that each bound would keep, and ranks of a window.
type Kept = Vec<(Option<f64>, Option<f64>)>;

/// Ranks of each stratum, and what bounds would keep.
fn decided(trace: &Trace, job: &Synthetic) -> (Vec<String>, Kept) {
    let plan = job.plan();
    let of_strata = Job::new(plan.clone());
    let mut recorded = Recorded::new(trace, &of_strata);
    let mut window = Window::default();
    let each = |take: &mut dyn FnMut(&Window)| {
        (0..WINDOWS).for_each(|number| {
            recorded.fill(number, &mut window);
            take(&window);
        });
        Ok::<(), Infallible>(())
    };
    let Ok(found) = Stratification::of(&Request::default(), &of_strata, &[], each) else {
        panic!("a group that can be divided");
    };
    let strata = found.strata.iter().map(|stratum| stratum.ranks.to_string());
    let kept = [0.02, 0.05, 0.08].map(|error| {
        let row = simulated(trace, &plan, (Some(0.9), Some(error)), 2, || ());
        (row.kept_windows, row.groups[0].mean_size)
    });
    (strata.collect(), kept.into())
}

#[test]
fn decisions_are_those_of_exact_summaries() {
    let config = "[[metric]]\nname = 'mpi.time'\nrole = 'guide'\n".to_owned();
    let job = Synthetic { config, ranks: 40, windows: WINDOWS, ..Synthetic::default() };
    for seed in 1..=10 {
        let exact = run(&job, seed, 40 * seed);
        let mut rounded = run(&job, seed, 40 * seed);
        for rank in &mut rounded.ranks {
            rounded.census.join(round_windows(&job.plan(), rank));
        }
        assert!(!rounded.census.is_empty());
        let ((strata, kept), (exact_strata, exact_kept)) = (decided(&rounded, &job), decided(&exact, &job));
        assert_eq!(strata, exact_strata, "{seed}");
        // Ranks at the edge of a class may be drawn otherwise.
        for (found, exact) in kept.iter().zip(&exact_kept) {
            let near = |(found, exact): (Option<f64>, Option<f64>)| match (found, exact) {
                (Some(found), Some(exact)) => (found - exact).abs() <= 0.05 * exact,
                (found, exact) => found == exact,
            };
            assert!(near((found.0, exact.0)) && near((found.1, exact.1)), "{seed}: {kept:?} {exact_kept:?}");
        }
        // The same means of all ranks.
        let means = |trace: &Trace| -> Vec<(Option<u64>, f64)> {
            let rows = ampl_analysis::estimate::rows(trace, &job.plan());
            let census = rows.iter().filter(|row| !row.drawn);
            census.filter_map(|row| Some((row.window, row.mean?))).collect()
        };
        let (found, exact) = (means(&rounded), means(&exact));
        assert!(found.len() > WINDOWS as usize);
        assert_eq!(found.len(), exact.len());
        for (found, exact) in found.iter().zip(&exact) {
            assert!(
                found.0 == exact.0 && (found.1 - exact.1).abs() <= 1e-9 * exact.1.abs(),
                "{found:?} {exact:?}"
            );
        }
    }
}
