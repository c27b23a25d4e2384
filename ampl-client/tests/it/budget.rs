//! `sampling.budget`: what a job keeps stays under it, and no group pays for another.

use ampl_client::Policy;
use ampl_core::config::{Mechanism, Sizing, Summaries, Target};
use ampl_core::draw::kept;
use ampl_core::message::{CensusWindow, Decision, DecisionLimit, MessageLayout, MetricSummary, Summary};
use ampl_core::plan::Plan;
use ampl_core::units::{Rank, WindowId};

use crate::common::{config, group, relative};

const RANKS: u32 = 300;
const WINDOWS: u64 = 400;
const WALL_NS: f64 = 1e8;

/// 0-199 by a bound, 200-299 with 40 ranks, 200-203 of them pinned.
fn plan(mechanism: Mechanism, budget: Option<f64>) -> Plan {
    let mut config = config(Summaries::Census, Sizing::Neyman, mechanism);
    config.sampling.budget = budget;
    config.groups = vec![
        group("bound", "0-199", relative(0.9, 0.03), ""),
        group("fixed", "200-299", Target::Static { ranks: 40 }, "200-203"),
    ];
    Plan::new(config, RANKS).unwrap()
}

/// Bytes of a rank's window: the second group's take ten times as many.
fn bytes(rank: u32) -> u64 {
    if rank < 200 { 1000 } else { 10_000 }
}

struct Ran {
    /// Bytes per second kept: of every window in bytes, and over the whole run.
    windows: Vec<f64>,
    decisions: Vec<Decision>,
}

impl Ran {
    fn rate(&self, from: usize) -> f64 {
        let seconds = (self.windows.len() - from) as f64 * WALL_NS * 1e-9;
        self.windows[from..].iter().sum::<f64>() / seconds
    }

    fn last(&self, group: &str) -> &Decision {
        self.decisions.iter().rfind(|decision| decision.group == group).expect("a decision")
    }
}

/// A job whose ranks' windows take 0.1 s, give or take a tenth, and `factor(window)` times their bytes.
fn run(plan: &Plan, factor: impl Fn(u64) -> f64) -> Ran {
    let (mut policy, shape) = (Policy::new(plan), MessageLayout::of(plan));
    let (mut directive, mut decisions) = policy.first_directive();
    let mut windows = Vec::new();
    for number in 0..WINDOWS {
        let window = WindowId(number);
        let (mut census, mut stored) = (CensusWindow::new(&shape, window, window), 0.0);
        for rank in 0..RANKS {
            let keep = kept(plan, Rank(rank), window, &directive);
            let wall = MetricSummary::one(WALL_NS * if rank % 2 == 0 { 0.9 } else { 1.1 });
            let bytes = if keep.kept { (bytes(rank) as f64 * factor(number)) as u64 } else { 0 };
            let summary = Summary {
                metrics: vec![wall; plan.metrics.len()],
                kept: keep.kept,
                probability: keep.probability,
                bytes,
                spent: bytes,
            };
            census.reported += 1;
            census.partial.add(&shape, shape.cell_of(plan, Rank(rank)), 1, &summary);
            stored += bytes as f64;
        }
        windows.push(stored);
        if let Some((next, made)) = policy.end_window(&census) {
            directive = next;
            decisions.extend(made);
        }
    }
    Ran { windows, decisions }
}

#[test]
fn a_budget_that_is_not_reached_changes_nothing_but_the_beginning() {
    let free = run(&plan(Mechanism::Subset, None), |_| 1.0);
    let rich = run(&plan(Mechanism::Subset, Some(1e9)), |_| 1.0);
    // The margin has learnt a little less from a first interval of fewer ranks.
    let pairs = free.decisions.iter().zip(&rich.decisions).skip(2);
    let apart = pairs.map(|(free, rich)| (f64::from(rich.size) / f64::from(free.size) - 1.0).abs());
    let worst = apart.fold(0.0, f64::max);
    assert!(worst < 0.15, "{worst}");
    assert_eq!(rich.decisions[0].limit, Some(DecisionLimit::Budget), "what keeping takes is not known yet");
    assert!(rich.decisions[2..].iter().all(|decision| decision.limit.is_none()));
}

#[test]
fn the_bound_attained_is_told_and_groups_give_alike() {
    for mechanism in [Mechanism::Subset, Mechanism::Global] {
        let free = run(&plan(mechanism, None), |_| 1.0);
        let asked = free.rate(20);
        for share in [0.8, 0.6] {
            let ran = run(&plan(mechanism, Some(share * asked)), |_| 1.0);
            let rate = ran.rate(20);
            assert!(rate <= share * asked * 1.01, "{mechanism:?}: {rate} of {}", share * asked);
            assert!(rate >= share * asked * 0.9, "what may be kept is kept: {rate} of {}", share * asked);
            let (bound, fixed) = (ran.last("bound"), ran.last("fixed"));
            assert_eq!(
                (bound.limit, fixed.limit),
                (Some(DecisionLimit::Budget), Some(DecisionLimit::Budget))
            );
            let wider = bound.error_attained.unwrap() / bound.error_required.unwrap();
            assert!(wider > 1.1, "{wider}");
            // 36 ranks are drawn, and the error of m is as 1/√m.
            let shrunk = f64::from(fixed.size - 4) / 36.0;
            assert!((shrunk * wider * wider - 1.0).abs() < 0.15, "{shrunk} {wider}");
        }
    }
}

#[test]
fn floors_give_way_and_pinned_ranks_do_not() {
    // Four pinned ranks alone take 400 kB/s.
    let ran = run(&plan(Mechanism::Subset, Some(200e3)), |_| 1.0);
    assert_eq!((ran.last("bound").size, ran.last("fixed").size), (0, 4));
    assert_eq!(ran.last("bound").error_attained, None, "nobody was drawn");
    let budget = 700e3;
    let ran = run(&plan(Mechanism::Subset, Some(budget)), |_| 1.0);
    let (bound, fixed) = (ran.last("bound").size, ran.last("fixed").size);
    assert!(bound < 16 && fixed < 4 + 16, "{bound} {fixed}");
    assert!(ran.rate(0) <= budget * 1.05, "{}", ran.rate(0));
}

/// Less than the smallest sample takes: there is a sample now and then, and it is noticed when it has become cheap.
#[test]
fn the_smallest_budget_gives_a_sample_now_and_then() {
    let mut plan = plan(Mechanism::Subset, Some(30e3));
    plan.groups.truncate(1);
    plan.groups[0].members = ampl_core::units::RankSet::range(0, RANKS - 1);
    let ran = run(&plan, |_| 1.0);
    let sampled = ran.decisions.iter().skip(1).filter(|decision| decision.size > 0).count();
    assert!((1..20).contains(&sampled), "{sampled} of {}", ran.decisions.len());
    assert!(ran.rate(0) <= 30e3 * 1.2, "{}", ran.rate(0));
    let ran = run(&plan, |window| if window < 8 { 1.0 } else { 1e-3 });
    assert_eq!(ran.last("bound").limit, None, "everything fits once it costs next to nothing");
}

#[test]
fn what_was_too_much_is_paid_back() {
    // Traffic grows tenfold now and then, which cannot be foreseen.
    let grown = |window: u64| window / 8 % 10 == 4;
    let factor = |window| if grown(window) { 10.0 } else { 1.0 };
    let mut ran = run(&plan(Mechanism::Subset, Some(2e6)), factor);
    // The last growth has nothing behind it in which to pay back.
    let paid = (0..WINDOWS).rfind(|&window| !grown(window)).expect("calm windows") as usize + 1;
    ran.windows.truncate(paid);
    let mut worst: f64 = 0.0;
    for from in (0..WINDOWS as usize / 2).step_by(40) {
        worst = worst.max(ran.rate(from));
    }
    // From any moment on there may be a smallest sample's worth saved up.
    assert!(worst <= 2e6 * 1.15 && ran.rate(0) <= 2e6 * 1.05, "{worst} {}", ran.rate(0));
}
