//! The data reductions of AMPL 2008 (§4), and what the same runs would take here: normal populations of the spread
//! that is given, over as many windows, the first update interval included.
//!
//! A reduction is rank-windows over kept rank-windows: what the summaries take is not in it. Nothing is asserted.

use ampl_client::simulate::{Census, Job, Run, Score, Window};
use ampl_core::config::{
    Config, ErrorBound, Event, Group, Metric, Quantity, Selection, Sizing, Summaries, Target,
};
use ampl_core::message::MetricSummary;
use ampl_core::plan::Plan;
use ampl_core::units::RankSet;
use ampl_testkit::{Kind, Population};

const SEEDS: u64 = 10;

/// A run of the paper.
struct Headline {
    name: &'static str,
    ranks: u32,
    windows: u64,
    /// Coefficient of variation.
    spread: f64,
    paper: &'static str,
}

const HEADLINES: [Headline; 4] = [
    Headline { name: "sPPM check", ranks: 32, windows: 20, spread: 0.152, paper: "-" },
    Headline { name: "sPPM", ranks: 2048, windows: 20, spread: 0.152, paper: "11" },
    Headline { name: "ADCIRC", ranks: 2048, windows: 56, spread: 0.3, paper: "28" },
    Headline { name: "Chombo", ranks: 128, windows: 20, spread: 0.152, paper: "15" },
];

fn main() {
    println!("90/8, 4 windows per update interval, {SEEDS} seeds");
    println!(
        "{:<12} {:>6} {:>8} {:>6} {:>7}   {:<14} {:>9} {:>9} {:>9}",
        "", "ranks", "windows", "cv", "paper", "selection", "reduction", "after 1st", "coverage"
    );
    for headline in &HEADLINES {
        for selection in [Selection::Predictive, Selection::Retrospective] {
            let Headline { name, ranks, windows, spread, paper } = headline;
            let (all, later, coverage) = run(headline, selection);
            println!(
                "{name:<12} {ranks:>6} {windows:>8} {spread:>6} {paper:>7}   {:<14} {all:>9.1} {later:>9.1} {coverage:>9.3}",
                match selection {
                    Selection::Predictive => "predictive",
                    Selection::Retrospective => "retrospective",
                },
            );
        }
    }
}

/// Reduction over the whole run and after its first interval, and coverage of all windows.
fn run(headline: &Headline, selection: Selection) -> (f64, f64, f64) {
    let job = job(headline.ranks, selection);
    let (mut kept, mut kept_later, mut windows, mut later, mut covered) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for seed in 0..SEEDS {
        let mut population = Population::new(Kind::Normal, headline.ranks as usize, 900 + seed);
        let (mut run, mut score) = (Run::new(&job, seed).0, Score::new(0, 0));
        for number in 0..headline.windows {
            let totals = population.next_window();
            let count = totals.len() as f64;
            let mean = totals.iter().map(|total| total.y).sum::<f64>() / count;
            let squares = totals.iter().map(|total| (total.y / mean - 1.0).powi(2)).sum::<f64>();
            let scale = headline.spread / (squares / count).sqrt();
            let value = |y: f64| MetricSummary::one((1e6 * (1.0 + scale * (y / mean - 1.0))).max(1e4));
            let guides = vec![totals.iter().map(|total| value(total.y)).collect()];
            let window = Window { number, guides };
            let census = Census::of_all(&job, &window);
            let (draws, _) = run.draw_all(&job, &window, &census);
            score.window(&job, number, &census, &draws);
            run.end_window(&job, &window, &census, &draws);
        }
        for scored in score.first.iter().chain(&score.windows) {
            kept += scored.size as f64;
            windows += 1.0;
            covered += f64::from(u8::from(scored.covered == Some(true)));
        }
        kept_later += score.windows.iter().map(|scored| scored.size as f64).sum::<f64>();
        later += score.windows.len() as f64;
    }
    let ranks = f64::from(headline.ranks);
    (ranks * windows / kept, ranks * later / kept_later, covered / windows)
}

fn job(ranks: u32, selection: Selection) -> Job {
    let mut config = Config::default();
    let sampling = &mut config.sampling;
    (sampling.summaries, sampling.sizing, sampling.selection) =
        (Summaries::Census, Sizing::Neyman, selection);
    config.metrics =
        vec![Metric { quantity: Quantity::Wall, event: Event::Window, guide: true, optional: false }];
    config.groups = vec![Group {
        name: "all".into(),
        members: RankSet::range(0, ranks - 1),
        target: Target::Bound { confidence: 0.9, error: ErrorBound::Relative(0.08) },
        pinned: RankSet::default(),
    }];
    Job::new(Plan::new(config, ranks).expect("the group is the job"))
}
