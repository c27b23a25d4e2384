//! The configuration of the AMPL paper's Figure 4 on 256 ranks in one process: one half is sized by its guide,
//! the other has exactly as many ranks as it says, the pinned ones among them.

use std::collections::BTreeSet;

use ampl_client::Policy;
use ampl_core::config::Config;
use ampl_core::draw::kept;
use ampl_core::message::{Decision, Directive};
use ampl_core::plan::Plan;
use ampl_core::units::{Rank, WindowId};
use ampl_testkit::{Kind, Population};

use crate::common::add_up;

const RANKS: u32 = 256;
const WINDOWS: u64 = 40;
const PER_UPDATE: u64 = 4;

fn plan() -> Plan {
    let text = include_str!("../../../configs/figure4.toml");
    let (mut config, _) = Config::parse(text).expect("the file is right");
    // The counter is not there, and optional.
    config.metrics.retain(|metric| !metric.optional);
    Plan::new(config, RANKS).expect("the job has these ranks")
}

/// Every window's kept ranks, and all decisions.
fn run(plan: &Plan, seed: u64) -> (Vec<BTreeSet<u32>>, Vec<Directive>, Vec<Decision>) {
    let mut population = Population::new(Kind::Normal, RANKS as usize, seed);
    let mut policy = Policy::new(plan);
    let (mut directive, mut decisions) = policy.first_directive();
    let (mut all, mut directives, mut interval) = (Vec::new(), Vec::new(), Vec::new());
    for window in 0..WINDOWS {
        let totals = population.next_window();
        let keeps = |rank: &u32| kept(plan, Rank(*rank), WindowId(window), &directive).kept;
        all.push((0..RANKS).filter(keeps).collect());
        let census = add_up(plan, window, &totals, &directive, &mut interval).census;
        if let Some((next, made)) = policy.end_window(&census) {
            directives.push(std::mem::replace(&mut directive, next));
            decisions.extend(made);
        }
    }
    (all, directives, decisions)
}

#[test]
fn each_half_is_sampled_in_its_own_way() {
    let plan = plan();
    let (all, _, decisions) = run(&plan, 4);
    for (window, ranks) in all.iter().enumerate() {
        let adaptive = ranks.iter().filter(|&&rank| rank < 128).count();
        let fixed: Vec<u32> = ranks.iter().copied().filter(|&rank| rank >= 128).collect();
        assert_eq!(fixed.len(), 30, "window {window}");
        assert!((128..=137).all(|rank| fixed.contains(&rank)), "window {window}: {fixed:?}");
        // All ranks are kept before the first observation; then as many as the guide asks for.
        let decision = decisions
            .iter()
            .rfind(|decision| decision.group == "Adaptive" && decision.window <= window as u64);
        let decision = decision.expect("every window has its decision");
        assert_eq!(decision.update, window as u64 / PER_UPDATE);
        assert_eq!(adaptive, decision.size as usize, "window {window}");
        assert_eq!(window as u64 / PER_UPDATE == 0, adaptive == 128, "window {window}");
    }
    let later = decisions.iter().filter(|decision| decision.update > 0);
    for decision in later.clone().filter(|decision| decision.group == "Adaptive") {
        assert_eq!(decision.guide.as_deref(), Some("compute.time"));
        assert!(decision.error_attained.unwrap() <= 0.03 + 1e-12, "{decision:?}");
        assert!((48..128).contains(&decision.size), "{decision:?}");
        assert_eq!(decision.probability, f64::from(decision.size) / 128.0);
    }
    for (number, decision) in later.filter(|decision| decision.group == "Static").enumerate() {
        assert_eq!((decision.size, decision.guide.as_deref()), (30, None));
        assert_eq!(decision.probability, 20.0 / 118.0);
        assert_eq!((decision.reported, decision.late), (128, false));
        assert_eq!(decision.policy as usize, number + 1);
    }
    // Not always the same twenty.
    let drawn: BTreeSet<u32> = all.iter().flatten().copied().filter(|&rank| rank >= 138).collect();
    assert!(drawn.len() > 60, "{}", drawn.len());
}

#[test]
fn equal_jobs_are_decided_alike() {
    let plan = plan();
    let first = run(&plan, 7);
    assert_eq!(first, run(&plan, 7));
    assert_ne!(first.2, run(&plan, 8).2);
}

#[test]
fn another_seed_draws_others() {
    let drawn = |seed| {
        let mut plan = plan();
        plan.config.sampling.seed = seed;
        run(&plan, 7).0
    };
    assert_eq!(drawn(1), drawn(1));
    let (one, other) = (drawn(1), drawn(2));
    let alike = one.iter().zip(&other).filter(|(one, other)| one == other).count();
    // All ranks of one half are kept before the first decision; 20 of 118 of the other are drawn.
    assert_eq!(alike, 0, "of {WINDOWS} windows");
}
