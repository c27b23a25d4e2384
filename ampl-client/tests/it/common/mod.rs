//! A job without processes: populations, plans, and windows added up directly.

pub mod net;
pub mod simulated;
pub mod swarm;

use ampl_client::Policy;
use ampl_core::config::{
    Config, ErrorBound, Event, Group, Mechanism, Metric, Quantity, Selection, Sizing, Summaries, Target,
};
use ampl_core::draw::kept;
use ampl_core::message::{CensusWindow, Decision, Directive, MessageLayout, MetricSummary, Summary};
use ampl_core::plan::Plan;
use ampl_core::stats::estimate::{Item, ratio_estimate};
use ampl_core::stats::quantile::normal_two_sided;
use ampl_core::stats::sizing::simple_random;
use ampl_core::stats::{Estimate, Moments};
use ampl_core::units::{Rank, RankSet, WindowId};
use ampl_testkit::population::Total;
use ampl_testkit::{Kind, Population};

/// Index of the guide of [`config`] in the plan.
pub const GUIDE: usize = 0;

pub fn config(summaries: Summaries, sizing: Sizing, mechanism: Mechanism) -> Config {
    let mut config = Config::default();
    config.sampling.summaries = summaries;
    config.sampling.selection = Selection::Predictive;
    config.sampling.sizing = sizing;
    config.sampling.update_mechanism = mechanism;
    config.metrics =
        vec![Metric { quantity: Quantity::Wall, event: Event::Window, guide: true, optional: false }];
    undivided(config)
}

/// Groups are divided only where that is asked for.
pub fn undivided(mut config: Config) -> Config {
    config.whole = config.groups.iter().map(|group| group.name.clone()).collect();
    config.whole.push("all".into());
    config
}

/// Summary of a metric of that total for the simulator's rank: observations that are alike.
pub fn metric(Total { n, y }: Total) -> MetricSummary {
    let mean = y / n.max(1) as f64;
    MetricSummary { n, sum: y, sum_sq: mean * y, min: mean, max: mean }
}

pub fn relative(confidence: f64, error: f64) -> Target {
    Target::Bound { confidence, error: ErrorBound::Relative(error) }
}

pub fn group(name: &str, members: &str, target: Target, pinned: &str) -> Group {
    let set = |text| RankSet::parse(text).unwrap();
    Group { name: name.into(), members: set(members).into(), target, pinned: set(pinned) }
}

/// A summary in which every metric is that total.
pub fn summary(plan: &Plan, total: Total) -> Summary {
    Summary {
        metrics: vec![metric(total); plan.metrics.len()],
        kept: false,
        probability: 0.0,
        bytes: 0,
        spent: 0,
    }
}

/// Ranks' totals, each with its draw, and their sums.
pub struct Window {
    pub census: CensusWindow,
    pub kept: Vec<(Rank, Item)>,
}

/// Census that the client would get of `window` if every rank had the directive in time, and the kept ranks. Interval
/// totals are over the windows since `interval` was last empty.
pub fn add_up(
    plan: &Plan,
    window: u64,
    totals: &[Total],
    directive: &Directive,
    interval: &mut Vec<Option<Vec<MetricSummary>>>,
) -> Window {
    let shape = MessageLayout::of(plan);
    let window = WindowId(window);
    let mut census = CensusWindow::new(&shape, window, window);
    let mut items = Vec::new();
    interval.resize(totals.len(), None);
    let updates = u64::from(plan.config.sampling.windows_per_update);
    for (rank, &total) in totals.iter().enumerate() {
        let cell = shape.cell_of(plan, Rank(rank as u32));
        let keep = kept(plan, Rank(rank as u32), window, directive);
        let mut summary = summary(plan, total);
        summary.kept = keep.kept;
        summary.probability = keep.probability;
        census.reported += 1;
        census.partial.add(&shape, cell, 1, &summary);
        if keep.kept {
            let Total { n, y } = total;
            items.push((Rank(rank as u32), Item { n, y, probability: keep.probability }));
            let empty = || vec![MetricSummary::default(); plan.metrics.len()];
            let sums = interval[rank].get_or_insert_with(empty);
            sums.iter_mut().zip(&summary.metrics).for_each(|(sum, metric)| sum.merge(metric));
        }
        if (window.0 + 1).is_multiple_of(updates)
            && shape.interval
            && let Some(sums) = &interval[rank]
        {
            census.partial.add_interval(&shape, cell, sums);
        }
    }
    if (window.0 + 1).is_multiple_of(updates) {
        interval.clear();
    }
    Window { census, kept: items }
}

/// Score of the estimates of a run of windows.
#[derive(Clone, Debug, Default)]
pub struct Score {
    pub windows: f64,
    pub covered: f64,
    /// Windows in which the stated interval held the truth.
    pub stated: f64,
    pub size: f64,
    pub oracle: f64,
    pub decisions: Vec<Decision>,
}

impl Score {
    pub fn coverage(&self) -> f64 {
        self.covered / self.windows
    }

    /// Ranks kept over the smallest simple random sample that would have done, at least 16.
    pub fn cost(&self) -> f64 {
        self.size / self.oracle
    }
}

/// Scores the whole loop on one population, one group, the first interval left out.
pub fn run(plan: &Plan, kind: Kind, windows: u64, seed: u64, scale: f64) -> Score {
    let ranks = plan.ranks as usize;
    let Target::Bound { confidence, error: ErrorBound::Relative(error) } = plan.groups[0].target else {
        panic!("scores are for relative bounds");
    };
    let mut population = Population::new(kind, ranks, seed);
    let mut policy = Policy::new(plan);
    let (mut directive, decisions) = policy.first_directive();
    let mut score = Score { decisions, ..Score::default() };
    let mut interval = Vec::new();
    for number in 0..windows {
        let mut totals = population.next_window();
        totals.iter_mut().for_each(|total| total.y *= scale);
        let window = add_up(plan, number, &totals, &directive, &mut interval);
        let truth = totals.iter().fold(Moments::default(), |sum, total| {
            sum.merged(&Moments::of_rank(total.n, total.y, 0.0, 0.0, 0.0))
        });
        if number >= u64::from(plan.config.sampling.windows_per_update) {
            let kept = window.kept.iter().map(|&(_, item)| item);
            let estimate: Option<Estimate> = ratio_estimate(kept, u64::from(plan.ranks), confidence, None);
            let mean = truth.ratio().unwrap();
            let off = estimate.map_or(f64::INFINITY, |estimate| (estimate.mean - mean).abs());
            let allowed = (error / normal_two_sided(confidence)).powi(2);
            let oracle = simple_random(u64::from(plan.ranks), truth.residual_variance(), allowed).max(16);
            score.windows += 1.0;
            score.covered += f64::from(off <= error * mean);
            score.stated += f64::from(estimate.is_some_and(|estimate| estimate.covers(mean)));
            score.size += window.kept.len() as f64;
            score.oracle += oracle as f64;
        }
        if let Some((next, decisions)) = policy.end_window(&window.census) {
            directive = next;
            score.decisions.extend(decisions);
        }
    }
    score
}

/// The scores of several seeds, added up.
pub fn run_seeds(config: &Config, kind: Kind, ranks: u32, windows: u64, seeds: u64) -> Score {
    let mut sum = Score::default();
    for seed in 0..seeds {
        let mut config = config.clone();
        config.sampling.seed = seed;
        let plan = Plan::new(config, ranks).unwrap();
        let score = run(&plan, kind, windows, 1000 + seed, 1.0);
        sum.windows += score.windows;
        sum.covered += score.covered;
        sum.stated += score.stated;
        sum.size += score.size;
        sum.oracle += score.oracle;
    }
    sum
}
