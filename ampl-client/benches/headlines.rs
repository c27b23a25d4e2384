//! The data reductions of AMPL 2008 (§4), and what the same runs would take here: normal populations of the spread
//! that is given, over as many windows, the first update interval included.
//!
//! A reduction is rank-windows over kept rank-windows: what the summaries take is not in it. Nothing is asserted. Below
//! it is what strata save where ranks fall into two classes. Words: `--seeds N` (64), `--first-seed S` (1).

use std::ops::Range;

use ampl_client::simulate::{Census, Job, Run, Score, Scored, Window};
use ampl_core::cluster::{
    Aim, Effort, Metric as Distance, Rule, Tried, Vectors, choose, floor_of_each, k_medoids, target_of,
};
use ampl_core::config::{
    Config, ErrorBound, Event, Group, Metric, Quantity, Selection, Sizing, Summaries, Target,
};
use ampl_core::message::MetricSummary;
use ampl_core::plan::{GroupPlan, Plan};
use ampl_core::stats::sizing;
use ampl_core::units::RankSet;
use ampl_testkit::{Classes, Kind, Population};

/// The bound of the paper's runs.
const CONFIDENCE: f64 = 0.9;
const ERROR: f64 = 0.08;

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
    let seeds = seeds();
    println!("90/8, 4 windows per update interval, seeds {seeds:?}");
    println!(
        "{:<12} {:>6} {:>8} {:>6} {:>7}   {:<14} {:>9} {:>9} {:>9}",
        "", "ranks", "windows", "cv", "paper", "selection", "reduction", "after 1st", "coverage"
    );
    for headline in &HEADLINES {
        for selection in [Selection::Predictive, Selection::Retrospective] {
            let Headline { name, ranks, windows, spread, paper } = headline;
            let (all, later, coverage) = run(headline, selection, seeds.clone());
            println!(
                "{name:<12} {ranks:>6} {windows:>8} {spread:>6} {paper:>7}   {:<14} {all:>9.1} {later:>9.1} {coverage:>9.3}",
                match selection {
                    Selection::Predictive => "predictive",
                    Selection::Retrospective => "retrospective",
                },
            );
        }
    }
    wait_times(&seeds);
}

/// The seeds that the command line asks for.
fn seeds() -> Range<u64> {
    let words: Vec<String> = std::env::args().collect();
    let number = |name: &str| {
        let at = words.iter().position(|word| word == name)?;
        let given = words.get(at + 1).and_then(|word| word.parse().ok());
        Some(given.unwrap_or_else(|| panic!("{name} takes a number")))
    };
    let first = number("--first-seed").unwrap_or(1);
    first..first + number("--seeds").unwrap_or(64)
}

/// Ranks kept in a run of wait times in two classes: as one stratum, in two that an earlier run of the same job was
/// divided into, which is the paper's way, and in those found while the job runs.
fn wait_times(seeds: &Range<u64>) {
    const WINDOWS: u64 = 56;
    println!("\nwait times of two classes, predictive, {WINDOWS} windows; the paper's two strata: -25 %");
    println!(
        "{:>6} {:<24} {:>9} {:>7} {:>9} {:>10} {:>7}",
        "ranks", "strata", "whole run", "saved", "coverage", "later", "saved"
    );
    for ranks in [128, 1024, 2048] {
        let mut one = None;
        for strata in [WaitStrata::One, WaitStrata::EarlierRun, WaitStrata::WhileItRuns] {
            let (mut kept, mut later, mut covered) = (0.0, 0.0, 0.0);
            for seed in seeds.clone() {
                let mut classes = Classes::wait_times().job(ranks as usize, seed);
                let mut next = || -> Vec<MetricSummary> {
                    classes.next_window().iter().map(|total| MetricSummary::one(1e6 * total.y)).collect()
                };
                let earlier: Vec<_> = (0..WINDOWS).map(|_| next()).collect();
                let job = strata.job(ranks, &earlier);
                let scores = scored(&job, seed, WINDOWS, next);
                let of = |score: &Score| score.first.iter().chain(&score.windows).copied().collect();
                let groups: Vec<Vec<Scored>> = scores.iter().map(of).collect();
                for window in 0..WINDOWS as usize {
                    let parts = || groups.iter().map(|group| &group[window]).zip(&job.plan.groups);
                    let size: f64 = parts().map(|(part, _)| part.size as f64).sum();
                    kept += size;
                    // Strata that are found while the job runs are in force from window 16 on, or 24.
                    later += if window >= 24 { size } else { 0.0 };
                    // Every rank has one observation.
                    let mean = |of: fn(&Scored) -> f64| {
                        let total =
                            |(part, group): (&Scored, &GroupPlan)| of(part) * group.members.len() as f64;
                        parts().map(total).sum::<f64>() / f64::from(ranks)
                    };
                    let truth = mean(|part| part.truth);
                    let estimate = mean(|part| part.estimate.expect("the floor is two ranks"));
                    covered += f64::from(u8::from((estimate - truth).abs() <= ERROR * truth));
                }
            }
            let runs = seeds.end - seeds.start;
            let all = (runs * WINDOWS) as f64;
            let sizes = [kept / all, later / (runs * (WINDOWS - 24)) as f64];
            let one = *one.get_or_insert(sizes);
            let [whole, later] = [0, 1].map(|at| 100.0 * (sizes[at] / one[at] - 1.0));
            println!(
                "{ranks:>6} {:<24} {:>9.1} {whole:>5.0} % {:>9.3} {:>10.1} {later:>5.0} %",
                strata.name(),
                sizes[0],
                covered / all,
                sizes[1],
            );
        }
    }
}

/// Knowledge of classes of ranks before a run.
#[derive(Clone, Copy)]
enum WaitStrata {
    One,
    EarlierRun,
    WhileItRuns,
}

impl WaitStrata {
    fn name(self) -> &'static str {
        match self {
            Self::One => "one",
            Self::EarlierRun => "two, of an earlier run",
            Self::WhileItRuns => "found while it runs",
        }
    }

    /// The job, of which `earlier` are windows of an earlier run.
    fn job(self, ranks: u32, earlier: &[Vec<MetricSummary>]) -> Job {
        let mut plan = job(ranks, Selection::Predictive).plan;
        match self {
            Self::WhileItRuns => {}
            Self::One => plan.config.whole = vec!["all".into()],
            Self::EarlierRun => divide(&mut plan, earlier),
        }
        Job::new(Plan::new(plan.config, ranks).expect("the groups are the job"))
    }
}

/// Makes two groups of the one of `plan`, as `ampl strata --k 2` does.
fn divide(plan: &mut Plan, earlier: &[Vec<MetricSummary>]) {
    let bound = ErrorBound::Relative(ERROR);
    let aim = Aim { guide: 0, confidence: CONFIDENCE, error: bound };
    let mut vectors = Vectors::new(plan.ranks as usize, 1);
    earlier.iter().for_each(|window| vectors.push(window.iter().map(|seen| (seen.n as f64, seen.sum))));
    let choice = choose(&vectors, &[aim], Rule::Exactly(2), |features| {
        k_medoids(features, Distance::Euclidean, Effort::default())
    });
    let Tried { labels, price, .. } = choice.strata();
    plan.config.sampling.floor = Some(floor_of_each(sizing::FLOOR, 2) as u32);
    plan.config.groups = (0..2)
        .map(|label| {
            let own = labels.iter().enumerate().filter(|(_, own)| **own == label);
            let own: RankSet = own.map(|(rank, _)| rank as u32).collect();
            let (size, error) = (price.sizes[label], price.errors[label]);
            Group {
                name: format!("all-{}", label + 1),
                target: target_of(own.len(), size, error, CONFIDENCE, bound),
                members: own.into(),
                pinned: RankSet::default(),
            }
        })
        .collect();
    plan.config.whole = vec!["all-1".into(), "all-2".into()];
}

/// The scores of a run over `windows` windows, one per group.
fn scored(job: &Job, seed: u64, windows: u64, mut next: impl FnMut() -> Vec<MetricSummary>) -> Vec<Score> {
    let (mut run, mut scores) = (Run::new(job, seed).0, Score::of_all(job));
    for number in 0..windows {
        let window = Window { number, guides: vec![next()] };
        let census = Census::of_all(job, &window);
        let (draws, _) = run.draw_all(job, &window, &census);
        scores.iter_mut().for_each(|score| score.window(job, number, &census, &draws));
        run.end_window(job, &window, &census, &draws);
    }
    scores
}

/// Reduction over the whole run and after its first interval, and coverage of all windows.
fn run(headline: &Headline, selection: Selection, seeds: Range<u64>) -> (f64, f64, f64) {
    let job = job(headline.ranks, selection);
    let (mut kept, mut kept_later, mut windows, mut later, mut covered) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for seed in seeds {
        let mut population = Population::new(Kind::Normal, headline.ranks as usize, seed);
        let score = scored(&job, seed, headline.windows, || {
            let totals = population.next_window();
            let count = totals.len() as f64;
            let mean = totals.iter().map(|total| total.y).sum::<f64>() / count;
            let squares = totals.iter().map(|total| (total.y / mean - 1.0).powi(2)).sum::<f64>();
            let scale = headline.spread / (squares / count).sqrt();
            let value = |y: f64| MetricSummary::one((1e6 * (1.0 + scale * (y / mean - 1.0))).max(1e4));
            totals.iter().map(|total| value(total.y)).collect()
        });
        let [score] = &score[..] else { unreachable!("there is one group") };
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
        members: RankSet::range(0, ranks - 1).into(),
        target: Target::Bound { confidence: CONFIDENCE, error: ErrorBound::Relative(ERROR) },
        pinned: RankSet::default(),
    }];
    Job::new(Plan::new(config, ranks).expect("the group is the job"))
}
