//! The simulator against a naive one: every rank by itself, formulas as they are written down.

use ampl_client::Policy;
use ampl_client::simulate::{Census, Draws, Job, Run, Score, Scored, Window};
use ampl_core::config::{Config, ErrorBound, Mechanism, Selection, Sizing, Summaries, Target};
use ampl_core::draw::kept;
use ampl_core::message::Decision;
use ampl_core::plan::Plan;
use ampl_core::stats::estimate::{Item, ratio_estimate};
use ampl_core::stats::quantile::normal_two_sided;
use ampl_core::units::{Rank, WindowId};
use ampl_testkit::population::Total;
use ampl_testkit::{Kind, Population};
use proptest::prelude::*;

use crate::common::{add_up, config, group, metric, relative, simulated, undivided};

const METHODS: [(Summaries, Sizing); 3] = [
    (Summaries::Census, Sizing::Neyman),
    (Summaries::Sampled, Sizing::Neyman),
    (Summaries::Sampled, Sizing::Ampl2008),
];

/// Scores of every group, and the decisions.
fn simulated(plan: &Plan, windows: &[Vec<Total>]) -> (Vec<Score>, Vec<Decision>) {
    let guides = |totals: &Vec<Total>| vec![totals.iter().map(|&total| metric(total)).collect()];
    simulated::simulated(plan, windows.iter().map(guides), plan.config.sampling.seed)
}

/// A window of one group, looked at rank by rank.
struct Naive {
    /// Score without the oracle's size.
    scored: Scored,
    /// Oracle's size, before it is rounded up.
    oracle: Option<f64>,
    /// Totals n and y of all ranks.
    truth: (f64, f64),
    /// The same as estimated.
    estimate: Option<(f64, f64)>,
}

/// Every window of a group, and the decisions, as if the first interval were predictive: of all ranks.
fn naive(plan: &Plan, windows: &[Vec<Total>], group: usize) -> (Vec<Option<Naive>>, Vec<Decision>) {
    let mut policy = Policy::new(plan);
    let (mut directive, mut decisions) = policy.first_directive();
    let mut interval = Vec::new();
    let mut found = Vec::new();
    for (number, totals) in windows.iter().enumerate() {
        let number = number as u64;
        let members: Vec<u32> = plan.groups[group].members.iter().map(|rank| rank.0).collect();
        let (mut certain, mut drawn) = (Vec::new(), Vec::new());
        for &rank in &members {
            let keep = kept(plan, Rank(rank), WindowId(number), &directive);
            let Total { n, y } = totals[rank as usize];
            let item = Item { n, y: if n == 0 { 0.0 } else { y }, probability: keep.probability };
            if keep.kept {
                if keep.probability == 1.0 { certain.push(item) } else { drawn.push(item) }
            }
        }
        let all: Vec<(f64, f64)> = members
            .iter()
            .map(|&rank| totals[rank as usize])
            .map(|t| (t.n as f64, if t.n == 0 { 0.0 } else { t.y }))
            .collect();
        let truth = all.iter().fold((0.0, 0.0), |sum, value| (sum.0 + value.0, sum.1 + value.1));
        let others = (members.len() - certain.len()) as f64;
        let inverse: f64 = drawn.iter().map(|item| 1.0 / item.probability).sum();
        let total = |value: fn(&Item) -> f64| {
            let weighted: f64 = drawn.iter().map(|item| value(item) / item.probability).sum();
            certain.iter().map(value).sum::<f64>()
                + if others == 0.0 { 0.0 } else { others / inverse * weighted }
        };
        let estimate =
            (others == 0.0 || !drawn.is_empty()).then(|| (total(|item| item.n as f64), total(|item| item.y)));
        let mean = estimate.filter(|sums| sums.0 > 0.0).map(|(n, y)| y / n);
        let size = (certain.len() + drawn.len()) as u64;
        if drawn.len() > 1 {
            let core = ratio_estimate(certain.iter().chain(&drawn).copied(), members.len() as u64, 0.9, None);
            assert!((core.map_or(0.0, |e| e.mean) - mean.unwrap_or(0.0)).abs() < 1e-9);
        }
        found.push((truth.0 > 0.0).then(|| {
            let ratio = truth.1 / truth.0;
            let (oracle, covered) = match plan.groups[group].target {
                Target::Static { .. } => (None, None),
                Target::Bound { confidence, error } => {
                    let count = members.len() as f64;
                    let (scale, allowed, within) = match error {
                        ErrorBound::Relative(e) => (truth.0 / count * ratio, e, e * ratio.abs()),
                        ErrorBound::Absolute(e) => (truth.0 / count, e, e),
                    };
                    let squares: f64 = all.iter().map(|(n, y)| ((y - ratio * n) / scale).powi(2)).sum();
                    let s2 = if count > 1.0 { squares / (count - 1.0) } else { 0.0 };
                    let v0 = (allowed / normal_two_sided(confidence)).powi(2);
                    let oracle = if s2 == 0.0 { 0.0 } else { count * s2 / (count * v0 + s2) };
                    let close = mean.is_some_and(|mean| (mean - ratio).abs() <= within);
                    (Some(oracle), Some(close || size == members.len() as u64))
                }
            };
            let scored = Scored { window: number, truth: ratio, estimate: mean, size, oracle: None, covered };
            Naive { scored, oracle, truth, estimate }
        }));
        let told = add_up(plan, number, totals, &directive, &mut interval).census;
        if let Some((next, more)) = policy.end_window(&told) {
            directive = next;
            decisions.extend(more);
        }
    }
    (found, decisions)
}

fn check(plan: &Plan, windows: &[Vec<Total>]) {
    let (scores, decisions) = simulated(plan, windows);
    let per_update = u64::from(plan.config.sampling.windows_per_update);
    for (index, score) in scores.iter().enumerate() {
        let (found, expected) = naive(plan, windows, index);
        let drawn = decisions.iter().filter(|row| row.selection == Some(Selection::Predictive));
        assert!(drawn.eq(&expected));
        let found: Vec<Naive> = found.into_iter().flatten().collect();
        let first = found.first().map(|window| window.scored.window / per_update);
        let is_first = |window: &&Naive| Some(window.scored.window / per_update) == first;
        let (first, rest): (Vec<&Naive>, Vec<&Naive>) = found.iter().partition(|window| is_first(window));
        // With a census, the first interval's decisions are retrospective.
        let after = plan.config.sampling.summaries == Summaries::Census;
        for (ours, theirs, other) in [(&score.first, &first, after), (&score.windows, &rest, false)] {
            assert_eq!(ours.len(), theirs.len());
            for (ours, Naive { scored, oracle, .. }) in ours.iter().zip(theirs) {
                let near = |a: f64, b: f64| (a - b).abs() <= 1e-9 * b.abs().max(1.0);
                assert!(near(ours.truth, scored.truth), "{ours:?} {scored:?}");
                if other {
                    assert!(ours.window == scored.window && ours.size <= scored.size);
                    continue;
                }
                assert_eq!(ours.estimate.is_some(), scored.estimate.is_some());
                assert!(near(ours.estimate.unwrap_or(0.0), scored.estimate.unwrap_or(0.0)));
                let of = |s: &Scored| (s.window, s.size, s.covered);
                assert_eq!(of(ours), of(scored));
                let up = ours.oracle.zip(*oracle).map(|(whole, real)| whole as f64 - real);
                assert_eq!(ours.oracle.is_some(), oracle.is_some());
                assert!(up.is_none_or(|up| (-1e-9..1.0 + 1e-9).contains(&up)), "{ours:?} {oracle:?}");
            }
        }
        let Target::Bound { error, .. } = plan.groups[index].target else {
            assert!(score.intervals.is_empty());
            continue;
        };
        let add = |a: (f64, f64), b: (f64, f64)| (a.0 + b.0, a.1 + b.1);
        let intervals: Vec<bool> = rest
            .chunk_by(|a, b| a.scored.window / per_update == b.scored.window / per_update)
            .map(|windows| {
                let truth = windows.iter().fold((0.0, 0.0), |sum, window| add(sum, window.truth));
                let truth = truth.1 / truth.0;
                let sums = windows
                    .iter()
                    .try_fold((0.0, 0.0), |sum, window| window.estimate.map(|more| add(sum, more)));
                let within = match error {
                    ErrorBound::Relative(e) => e * truth.abs(),
                    ErrorBound::Absolute(e) => e,
                };
                let everyone = windows.iter().all(|w| w.scored.size == plan.groups[index].members.len());
                let close = |(n, y): (f64, f64)| n > 0.0 && (y / n - truth).abs() <= within;
                everyone || sums.is_some_and(close)
            })
            .collect();
        assert_eq!(score.intervals, intervals);
    }
}

fn base(method: usize, mechanism: Mechanism, windows_per_update: u32) -> Config {
    let (summaries, sizing) = METHODS[method];
    let mut config = config(summaries, sizing, mechanism);
    config.sampling.windows_per_update = windows_per_update;
    config
}

#[test]
fn every_population_is_scored_as_the_naive_way() {
    for (index, kind) in Kind::ALL.into_iter().enumerate() {
        let mechanism = if index % 2 == 0 { Mechanism::Subset } else { Mechanism::Global };
        let plan = Plan::new(base(index % METHODS.len(), mechanism, 4), 100).unwrap();
        let mut population = Population::new(kind, 100, 3);
        let windows: Vec<Vec<Total>> = (0..22).map(|_| population.next_window()).collect();
        check(&plan, &windows);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn groups_pins_gaps_and_signs_are_scored_as_the_naive_way(
        method in 0..3usize,
        global in any::<bool>(),
        per_update in 1..4u32,
        seed in any::<u64>(),
        absolute in any::<bool>(),
        cells in prop::collection::vec(prop::collection::vec((0..4u64, -5.0..40.0f64), 40), 1..12),
        silent in any::<u16>(),
    ) {
        let mechanism = if global { Mechanism::Global } else { Mechanism::Subset };
        let mut config = base(method, mechanism, per_update);
        config.sampling.seed = seed;
        config.sampling.floor = Some(3);
        let target = match absolute {
            true => Target::Bound { confidence: 0.9, error: ErrorBound::Absolute(4.0) },
            false => relative(0.8, 0.3),
        };
        config.groups = vec![
            group("a", "0-18", target, "3,7-8"),
            group("b", "25-39", Target::Static { ranks: 5 }, ""),
        ];
        let plan = Plan::new(undivided(config), 40).unwrap();
        // Under `global`, a live rank forgets that it kept a window in which nothing happened; the sums that this
        // is compared with remember.
        let busy = method == 2 && global;
        let total = |&(n, y): &(u64, f64)| match n.max(u64::from(busy)) {
            0 => Total { n: 0, y: 0.0 },
            n => Total { n, y },
        };
        let silent = if busy { 0 } else { silent };
        let window = |(number, ranks): (usize, &Vec<(u64, f64)>)| match silent >> number & 1 {
            0 => ranks.iter().map(total).collect(),
            _ => vec![Total { n: 0, y: 0.0 }; ranks.len()],
        };
        let windows: Vec<Vec<Total>> = cells.iter().enumerate().map(window).collect();
        check(&plan, &windows);
    }
}

#[test]
fn jobs_of_all_methods_share_a_census() {
    // The first of them divides nothing, predictive selection does.
    let job = |method| {
        let mut config = base(method, Mechanism::Subset, 4);
        config.whole.clear();
        Job::new(Plan::new(config, 64).unwrap())
    };
    let jobs: Vec<Job> = (0..METHODS.len()).rev().map(job).collect();
    let begin = |job: &Job| [Run::new(job, 9).0, Run::new(job, 9).0];
    let mut runs: Vec<[Run; 2]> = jobs.iter().map(begin).collect();
    let mut population = Population::new(Kind::Heterogeneous, 64, 2);
    for number in 0..40 {
        let guides = vec![population.next_window().into_iter().map(metric).collect()];
        let window = Window { number, guides };
        let shared = Census::of_jobs(&jobs, &window);
        for (job, [with, alone]) in jobs.iter().zip(&mut runs) {
            let step = |run: &mut Run, census: &Census| {
                let (draws, _) = run.draw_all(job, &window, census);
                run.end_window(job, &window, census, &draws)
            };
            assert_eq!(step(with, &shared), step(alone, &Census::of_all(job, &window)));
        }
    }
}

#[test]
fn pieces_of_a_large_job_add_up() {
    let ranks = 40_000;
    let job = Job::new(Plan::new(base(0, Mechanism::Subset, 4), ranks).unwrap());
    assert!(job.chunks().count() > 2);
    assert!(job.chunks().flatten().eq(0..ranks));
    let (mut run, _) = Run::new(&job, 9);
    let mut population = Population::new(Kind::Spikes, ranks as usize, 2);
    for number in 0..5 {
        let guides = vec![population.next_window().into_iter().map(metric).collect()];
        let window = Window { number, guides };
        let census = Census::of_all(&job, &window);
        let (draws, _) = run.draw_all(&job, &window, &census);
        let mut again = Draws::none(&job);
        job.chunks().for_each(|chunk| again.merge(run.draw(&job, &window, chunk)));
        let mut score = Score::new(0, 0);
        score.window(&job, number, &census, &again);
        let whole = window.guides[0].iter().map(|summary| summary.sum).sum::<f64>() / f64::from(ranks);
        assert!((score.first[0].truth / whole - 1.0).abs() < 1e-12);
        run.end_window(&job, &window, &census, &draws);
        let sized = score.first[0].size;
        assert!((if number < 4 { 8..50 } else { 50..200 }).contains(&sized), "{sized}");
    }
}
