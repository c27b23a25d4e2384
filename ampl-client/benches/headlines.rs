//! The data reductions of AMPL 2008 (§4), and what the same runs would take here: normal populations of the spread
//! that is given, over as many windows, the first update interval included.
//!
//! A reduction is rank-windows over kept rank-windows: what the summaries take is not in it. Nothing is asserted. Below
//! it is what dividing a group while the job runs saves, where ranks fall into two classes.

use ampl_client::simulate::{Census, Job, Run, Score, Window};
use ampl_core::config::{
    Config, ErrorBound, Event, Group, Metric, Quantity, Selection, Sizing, Summaries, Target,
};
use ampl_core::message::MetricSummary;
use ampl_core::plan::Plan;
use ampl_core::units::RankSet;
use ampl_testkit::{Classes, Kind, Population};

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
    wait_times();
}

/// Ranks kept of a window of wait times in two classes, as one stratum and divided while the job runs.
fn wait_times() {
    const WINDOWS: u64 = 56;
    println!("\nwait times of two classes, predictive, {WINDOWS} windows; the paper's two strata: -25 %");
    println!(
        "{:>6} {:>8} {:>8} {:>7} {:>9} {:>10}",
        "ranks", "one", "divided", "saved", "coverage", "whole run"
    );
    for ranks in [128, 1024, 2048] {
        let of = |divided: bool| {
            let mut job = job(ranks, Selection::Predictive).plan;
            if !divided {
                job.config.whole = vec!["all".into()];
            }
            let job = Job::new(job);
            let (mut size, mut all, mut covered, mut windows) = (0.0, 0.0, 0.0, 0.0);
            for seed in 0..SEEDS {
                let mut classes = Classes::wait_times().job(ranks as usize, 900 + seed);
                let score = scored(&job, seed, WINDOWS, || {
                    classes.next_window().iter().map(|total| MetricSummary::one(1e6 * total.y)).collect()
                });
                all += score.first.iter().chain(&score.windows).map(|scored| scored.size as f64).sum::<f64>();
                // Where strata are found at all they are in force from window 16 on, or 24.
                for scored in score.windows.iter().filter(|scored| scored.window >= 24) {
                    size += scored.size as f64;
                    covered += f64::from(u8::from(scored.covered == Some(true)));
                    windows += 1.0;
                }
            }
            (size / windows, covered / windows, all)
        };
        let ((one, _, one_all), (size, coverage, all)) = (of(false), of(true));
        let [saved, run] =
            [size / one, all / one_all].map(|share| format!("-{:.0} %", 100.0 * (1.0 - share)));
        println!("{ranks:>6} {one:>8.1} {size:>8.1} {saved:>7} {coverage:>9.3} {run:>10}");
    }
}

/// The score of a run over `windows` windows.
fn scored(job: &Job, seed: u64, windows: u64, mut next: impl FnMut() -> Vec<MetricSummary>) -> Score {
    let (mut run, mut score) = (Run::new(job, seed).0, Score::new(0, 0));
    for number in 0..windows {
        let window = Window { number, guides: vec![next()] };
        let census = Census::of_all(job, &window);
        let (draws, _) = run.draw_all(job, &window, &census);
        score.window(job, number, &census, &draws);
        run.end_window(job, &window, &census, &draws);
    }
    score
}

/// Reduction over the whole run and after its first interval, and coverage of all windows.
fn run(headline: &Headline, selection: Selection) -> (f64, f64, f64) {
    let job = job(headline.ranks, selection);
    let (mut kept, mut kept_later, mut windows, mut later, mut covered) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for seed in 0..SEEDS {
        let mut population = Population::new(Kind::Normal, headline.ranks as usize, 900 + seed);
        let score = scored(&job, seed, headline.windows, || {
            let totals = population.next_window();
            let count = totals.len() as f64;
            let mean = totals.iter().map(|total| total.y).sum::<f64>() / count;
            let squares = totals.iter().map(|total| (total.y / mean - 1.0).powi(2)).sum::<f64>();
            let scale = headline.spread / (squares / count).sqrt();
            let value = |y: f64| MetricSummary::one((1e6 * (1.0 + scale * (y / mean - 1.0))).max(1e4));
            totals.iter().map(|total| value(total.y)).collect()
        });
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
