//! Retrospective decisions: references, decisions, and a simulator that does what ranks, each by itself, would do.

use ampl_client::Policy;
use ampl_client::simulate::Score;
use ampl_core::config::{Config, ErrorBound, Mechanism, Selection, Sizing, Summaries, Target};
use ampl_core::draw::{Keep, kept, kept_after};
use ampl_core::message::RetrospectiveDecision as WindowDecision;
use ampl_core::message::{
    CensusWindow, Decision, DecisionLimit, MOST_STRATA, MessageLayout, Reference, Summary,
};
use ampl_core::plan::Plan;
use ampl_core::stats::estimate::{Item, ratio_estimate};
use ampl_core::stats::quantile::variance_ratio;
use ampl_core::units::{Rank, WindowId};
use ampl_testkit::population::Total;
use ampl_testkit::{Kind, Population};
use proptest::prelude::*;

use crate::common::{config, group, metric, relative, simulated, summary};

fn is_after(row: &&Decision) -> bool {
    row.selection == Some(Selection::Retrospective)
}

fn base(mechanism: Mechanism, windows_per_update: u32) -> Config {
    let mut config = config(Summaries::Census, Sizing::Neyman, mechanism);
    config.sampling.selection = Selection::Retrospective;
    config.sampling.windows_per_update = windows_per_update;
    config
}

fn plan_of(config: Config, ranks: u32) -> Plan {
    let plan = Plan::new(config, ranks).unwrap();
    assert!(MessageLayout::of(&plan).retrospective.is_some());
    plan
}

fn windows(kind: Kind, ranks: usize, count: usize, seed: u64) -> Vec<Vec<Total>> {
    let mut population = Population::new(kind, ranks, seed);
    (0..count).map(|_| population.next_window()).collect()
}

fn census(plan: &Plan, number: u64, totals: &[Total], bytes: u64) -> CensusWindow {
    let (shape, window) = (MessageLayout::of(plan), WindowId(number));
    let mut census = CensusWindow::new(&shape, window, window);
    for (rank, &total) in (0..).zip(totals) {
        census.reported += 1;
        let summary = Summary { bytes, ..summary(plan, total) };
        census.partial.add(&shape, shape.cell_of(plan, Rank(rank)), 1, &summary);
    }
    census
}

/// Every rank's bin, and their sums.
fn bins(
    plan: &Plan,
    reference: &Reference,
    number: u64,
    totals: &[Total],
) -> (Vec<Option<usize>>, CensusWindow) {
    let (shape, window) = (MessageLayout::of(plan), WindowId(number));
    let second = shape.retrospective.clone().unwrap();
    let mut binned = CensusWindow::binned(&shape, window, window);
    let stand = |(rank, total): (u32, &Total)| {
        let group = plan.group_of(Rank(rank));
        let place = second.group(group).filter(|_| !plan.groups[group].pinned.contains(Rank(rank)))?;
        let seen = second.guides.iter().map(|_| (total.n, if total.n == 0 { 0.0 } else { total.y }));
        let (bin, points) = reference.groups[place].as_ref()?.stand(second.bins, seen);
        binned.reported += 1;
        binned.partial.binned[place].add(bin, &points);
        Some(bin)
    };
    let found = (0..).zip(totals).map(stand).collect();
    (found, binned)
}

/// Draw of every rank by the decision; `None` where the decision does not cover it.
fn decision_keeps(plan: &Plan, decision: &WindowDecision, bins: &[Option<usize>]) -> Vec<Option<Keep>> {
    let second = MessageLayout::of(plan).retrospective.unwrap();
    let mut places = vec![[0; MOST_STRATA]; second.groups.len()];
    let mechanism = plan.config.sampling.update_mechanism;
    let keep = |(rank, bin): (Rank, &Option<usize>)| {
        let place = second.group(plan.group_of(rank))?;
        let group = decision.groups[place].as_ref()?;
        let Some(stratum) = group.stratum((*bin)?) else { return Some(Keep::ALWAYS) };
        let before = places[place][stratum];
        places[place][stratum] += 1;
        let named = (stratum, group.strata[stratum]);
        Some(kept_after(mechanism, rank, second.groups[place], named, before, decision))
    };
    (0..).map(Rank).zip(bins).map(keep).collect()
}

/// A job whose messages all arrive at once.
struct Direct {
    plan: Plan,
    policy: Policy,
    directive: ampl_core::message::Directive,
    references: Vec<Reference>,
    decisions: Vec<Decision>,
    decision: Option<WindowDecision>,
    bins: Vec<Option<usize>>,
}

impl Direct {
    fn new(plan: &Plan) -> Self {
        let mut policy = Policy::new(plan);
        let (directive, decisions) = policy.first_directive();
        let (references, bins) = (Vec::new(), Vec::new());
        Self { plan: plan.clone(), policy, directive, references, decisions, decision: None, bins }
    }

    /// Draw of every rank in the next window.
    fn window(&mut self, number: u64, totals: &[Total], bytes: u64) -> Vec<Keep> {
        let told = self.policy.end_window(&census(&self.plan, number, totals, bytes));
        self.references.extend(self.policy.reference());
        assert!(self.policy.reference().is_none(), "one at a time");
        let covers = |it: &&Reference| it.first_window.0 <= number && number <= it.last_window.0;
        let reference = self.references.iter().find(covers).expect("every window has a reference");
        let (bins, binned) = bins(&self.plan, reference, number, totals);
        let judged = self.policy.judge(&binned);
        let about = judged.as_ref().map(|(decision, _)| decision_keeps(&self.plan, decision, &bins));
        let beforehand = |rank| kept(&self.plan, Rank(rank), WindowId(number), &self.directive);
        let keeps: Vec<Keep> = (0..self.plan.ranks)
            .map(|rank| {
                about.as_ref().and_then(|about| about[rank as usize]).unwrap_or_else(|| beforehand(rank))
            })
            .collect();
        (self.decision, self.bins) = (None, bins);
        if let Some((decision, decisions)) = judged {
            self.decisions.extend(decisions);
            self.decision = Some(decision);
        }
        if let Some((directive, decisions)) = told {
            self.directive = directive;
            self.decisions.extend(decisions);
        }
        keeps
    }
}

/// The simulator's scores, and what was decided.
fn simulated(plan: &Plan, windows: &[Vec<Total>], seed: u64) -> (Vec<Score>, Vec<Decision>) {
    let guides = |totals: &Vec<Total>| vec![totals.iter().map(|&total| metric(total)).collect()];
    simulated::simulated(plan, windows.iter().map(guides), seed)
}

fn check(plan: &Plan, windows: &[Vec<Total>]) {
    let (scores, decisions) = simulated(plan, windows, plan.config.sampling.seed);
    let mut direct = Direct::new(plan);
    let keeps: Vec<Vec<Keep>> =
        (0..).zip(windows).map(|(number, totals)| direct.window(number, totals, 0)).collect();
    assert_eq!(decisions, direct.decisions);
    for (index, score) in scores.iter().enumerate() {
        for scored in score.first.iter().chain(&score.windows) {
            let (keeps, totals) = (&keeps[scored.window as usize], &windows[scored.window as usize]);
            let mut kept = Vec::new();
            for rank in plan.groups[index].members.iter().map(|rank| rank.0 as usize) {
                let Total { n, y } = totals[rank];
                let y = if n == 0 { 0.0 } else { y };
                kept.extend(keeps[rank].kept.then_some(Item { n, y, probability: keeps[rank].probability }));
            }
            assert_eq!(scored.size, kept.len() as u64);
            if plan.config.sampling.update_mechanism == Mechanism::Subset {
                // Weights sum to the ranks that they stand for, stratum by stratum.
                let population = plan.groups[index].members.len();
                let naive = ratio_estimate(kept, population, 0.9, None).map(|estimate| estimate.mean);
                let close = scored.estimate.zip(naive).map(|(a, b)| (a - b).abs() <= 1e-9 * b.abs().max(1.0));
                assert!(close == Some(true) || naive.is_none(), "{scored:?} {naive:?}");
            }
        }
    }
}

#[test]
fn the_simulator_does_what_ranks_do_by_themselves() {
    for (index, kind) in Kind::ALL.into_iter().enumerate() {
        let mechanism = if index % 3 == 2 { Mechanism::Global } else { Mechanism::Subset };
        let plan = plan_of(base(mechanism, 1 + index as u32 % 4), 130);
        check(&plan, &windows(kind, 130, 14, 5));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 50, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn groups_pins_gaps_and_signs_are_simulated_as_well(
        global in any::<bool>(),
        per_update in 1..4u32,
        seed in any::<u64>(),
        absolute in any::<bool>(),
        cells in prop::collection::vec(prop::collection::vec((0..4u64, -5.0..40.0f64), 60), 1..10),
        silent in any::<u16>(),
    ) {
        let mut config = base(if global { Mechanism::Global } else { Mechanism::Subset }, per_update);
        config.sampling.seed = seed;
        let target = match absolute {
            true => Target::Bound { confidence: 0.9, error: ErrorBound::Absolute(4.0) },
            false => relative(0.8, 0.3),
        };
        config.groups = vec![
            group("a", "0-38", target, "3,7-8"),
            group("b", "45-59", Target::Static { ranks: 5 }, ""),
        ];
        let plan = plan_of(config, 60);
        let window = |(number, ranks): (usize, &Vec<(u64, f64)>)| {
            let quiet = silent >> number & 1 == 1;
            ranks.iter().map(|&(n, y)| Total { n: if quiet { 0 } else { n }, y }).collect()
        };
        let windows: Vec<Vec<Total>> = cells.iter().enumerate().map(window).collect();
        check(&plan, &windows);
    }

    /// However windows are put together on the way, ranges of references follow each other and are far enough ahead.
    #[test]
    fn references_follow_each_other(per_update in 1..6u32, steps in prop::collection::vec(1..12u64, 1..30)) {
        let plan = plan_of(base(Mechanism::Subset, per_update), 8);
        let totals = windows(Kind::Normal, 8, 1, 1).remove(0);
        let mut policy = Policy::new(&plan);
        let (interval, mut next, mut referred) = (u64::from(per_update), 0, 0);
        for step in steps {
            let mut told = census(&plan, next, &totals, 0);
            told.last_window = WindowId(next + step - 1);
            policy.end_window(&told);
            next += step;
            if let Some(reference) = policy.reference() {
                prop_assert_eq!(reference.first_window.0, referred);
                prop_assert!(reference.last_window >= reference.first_window);
                prop_assert!(reference.groups.iter().all(Option::is_some));
                referred = reference.last_window.0 + 1;
            }
            // Two whole intervals after those that have ended.
            prop_assert_eq!(referred, (next / interval + 2) * interval);
        }
    }
}

/// Bounds hold at the required cost, on seeds of their own; the benchmark `coverage` has the rest.
#[test]
fn bounds_hold_and_take_less_than_half_of_a_simple_random_sample() {
    for (ranks, seeds, most) in [(32, 6, 0.5), (128, 4, 0.4), (1024, 1, 0.4)] {
        let (mut coverages, mut costs) = (Vec::new(), Vec::new());
        for kind in Kind::ALL {
            let plan = plan_of(base(Mechanism::Subset, 4), ranks);
            let (mut windows_of, mut covered, mut size, mut oracle) = (0.0, 0.0, 0.0, 0.0);
            for seed in 0..seeds {
                let (scores, _) = simulated(&plan, &windows(kind, ranks as usize, 48, 70 + seed), seed);
                for scored in &scores[0].windows {
                    windows_of += 1.0;
                    covered += f64::from(u8::from(scored.covered == Some(true)));
                    size += scored.size as f64;
                    oracle += scored.oracle.unwrap() as f64;
                }
            }
            coverages.push(covered / windows_of);
            costs.push(f64::ln(size / windows_of / f64::max(16.0, oracle / windows_of)));
            assert!(covered / windows_of >= 0.87, "{ranks} {kind:?}: {}", covered / windows_of);
        }
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        assert!(mean(&coverages) >= 0.9, "{ranks}: {coverages:?}");
        assert!(mean(&costs).exp() <= most, "{ranks}: {}", mean(&costs).exp());
    }
}

#[test]
fn the_first_interval_is_decided_as_well() {
    let plan = plan_of(base(Mechanism::Subset, 4), 2048);
    let (scores, _) = simulated(&plan, &windows(Kind::Normal, 2048, 4, 3), 3);
    assert!(scores[0].first.iter().all(|window| window.size < 40), "{:?}", scores[0].first);
}

/// Every rank's frequency over seeds is what is stored with it, though the client knows what all of them observed.
#[test]
fn kept_frequencies_equal_the_stored_probabilities() {
    const SEEDS: u64 = 1000;
    const RANKS: usize = 60;
    for mechanism in [Mechanism::Subset, Mechanism::Global] {
        for kind in [Kind::LogNormal, Kind::Bimodal, Kind::VaryingCounts] {
            let windows = windows(kind, RANKS, 3, 8);
            let (mut counts, mut stored) = (vec![0u64; RANKS], vec![0.0; RANKS]);
            let mut config = base(mechanism, 2);
            config.groups = vec![group("g", "0-59", relative(0.9, 0.08), "4")];
            let plan = plan_of(config, RANKS as u32);
            let mut direct = Direct::new(&plan);
            (0..).zip(&windows).for_each(|(number, totals)| _ = direct.window(number, totals, 0));
            let (bins, mut decision) = (direct.bins, direct.decision.expect("a decision"));
            for seed in 0..SEEDS {
                decision.seed = seed;
                let keeps = decision_keeps(&plan, &decision, &bins);
                for (rank, keep) in keeps.into_iter().enumerate() {
                    // A pinned rank is in no bin.
                    let keep = keep.unwrap_or(Keep::ALWAYS);
                    counts[rank] += u64::from(keep.kept);
                    assert!(seed == 0 || stored[rank] == keep.probability, "one decision under all seeds");
                    stored[rank] = keep.probability;
                }
            }
            let (mut chi, mut freedom) = (0.0, 0.0);
            for (rank, (&count, &p)) in counts.iter().zip(&stored).enumerate() {
                if p == 1.0 {
                    assert_eq!(count, SEEDS, "rank {rank}");
                    continue;
                }
                let mean = p * SEEDS as f64;
                chi += (count as f64 - mean).powi(2) / (mean * (1.0 - p));
                freedom += 1.0;
            }
            assert_eq!(stored[4], 1.0, "pinned");
            assert!(freedom > 20.0, "too few ranks are drawn to tell: {stored:?}");
            assert!(
                chi < freedom * variance_ratio(0.9999, freedom),
                "{mechanism:?} {kind:?}: {chi} {freedom}"
            );
        }
    }
}

/// Ranks per stratum and sizes of every window.
fn sizes(plan: &Plan, windows: &[Vec<Total>]) -> Vec<Vec<(u64, u32)>> {
    let mut direct = Direct::new(plan);
    (0..)
        .zip(windows)
        .map(|(number, totals)| {
            let from = direct.decisions.len();
            direct.window(number, totals, 0);
            let rows = direct.decisions[from..].iter();
            rows.filter(is_after).map(|row| (row.population, row.size)).collect()
        })
        .collect()
}

#[test]
fn sizes_do_not_depend_on_the_unit_or_on_how_often() {
    for kind in Kind::ALL {
        let plan = plan_of(base(Mechanism::Subset, 4), 400);
        let windows = windows(kind, 400, 12, 4);
        let scaled = |factor: f64, times: u64| -> Vec<Vec<Total>> {
            let total = |total: &Total| Total { n: times * total.n, y: factor * total.y };
            windows.iter().map(|window| window.iter().map(total).collect()).collect()
        };
        let original = sizes(&plan, &windows);
        assert_eq!(original, sizes(&plan, &windows), "equal seeds");
        assert_eq!(original, sizes(&plan, &scaled(f64::from(1 << 20), 1)), "{kind:?}");
        assert_eq!(original, sizes(&plan, &scaled(1.0, 7)), "{kind:?}");
        let sum = |window: &Vec<(u64, u32)>| window.iter().map(|&(_, size)| i64::from(size)).sum::<i64>();
        for (ours, theirs) in original.iter().zip(&sizes(&plan, &scaled(1e6, 1))) {
            assert!((sum(ours) - sum(theirs)).abs() <= 1, "{kind:?}: {ours:?} {theirs:?}");
        }
    }
}

#[test]
fn rows_say_who_keeps_the_window() {
    let mut config = base(Mechanism::Subset, 4);
    config.groups = vec![group("most", "0-299", relative(0.95, 0.05), "7,9")];
    let plan = plan_of(config, 310);
    let windows = windows(Kind::Spikes, 310, 6, 2);
    let mut direct = Direct::new(&plan);
    for (number, totals) in (0..).zip(&windows) {
        let from = direct.decisions.len();
        let keeps = direct.window(number, totals, 0);
        let rows: Vec<&Decision> = direct.decisions[from..].iter().filter(is_after).collect();
        let most: Vec<&&Decision> = rows.iter().filter(|row| row.group == "most").collect();
        assert!(most.iter().enumerate().all(|(stratum, row)| usize::from(row.stratum) == stratum));
        assert_eq!(most.iter().map(|row| row.population).sum::<u64>(), 300);
        assert_eq!((most[0].population, most[0].probability), (u64::from(most[0].size), 1.0));
        assert!(most[0].size >= 2, "pinned ranks");
        let size: u32 = most.iter().map(|row| row.size).sum();
        assert_eq!(keeps[..300].iter().filter(|keep| keep.kept).count(), size as usize);
        let attained = most[0].error_attained.unwrap();
        assert!(attained <= 0.05 && attained > 0.0, "{attained}");
        for row in &most {
            assert_eq!((row.update, row.window, row.late), (number / 4, number, false));
            assert_eq!((row.guide.as_deref(), row.error_required), (Some("wall"), Some(0.05)));
            assert_eq!(row.error_attained, Some(attained));
        }
        let decision = direct.decision.as_ref().expect("a decision");
        assert!(decision.groups.iter().flatten().flat_map(|group| &group.strata).all(|it| it.before == 0));
    }
    let before: Vec<&Decision> =
        direct.decisions.iter().filter(|row| row.selection == Some(Selection::Predictive)).collect();
    assert_eq!(before.len(), 2 * plan.groups.len(), "the fall-back is decided as ever");
}

#[test]
fn what_cannot_be_decided_is_left_to_the_fall_back() {
    let plan = plan_of(base(Mechanism::Subset, 4), 64);
    let totals = windows(Kind::LogNormal, 64, 1, 3).remove(0);
    let mut policy = Policy::new(&plan);
    let idle = vec![Total { n: 0, y: 0.0 }; 64];
    policy.end_window(&census(&plan, 0, &idle, 0));
    let nothing = policy.reference().expect("ranges follow each other whatever is known");
    assert_eq!(nothing.groups, [None]);
    let (_, binned) = bins(&plan, &nothing, 0, &idle);
    assert!(policy.judge(&binned).is_none(), "no reference for the group");
    for number in 1..9 {
        policy.end_window(&census(&plan, number, &totals, 0));
        let reference = policy.reference();
        if number < 8 {
            assert_eq!(reference.is_some(), number % 4 == 3);
        }
    }
    let reference = {
        let mut other = Policy::new(&plan);
        other.end_window(&census(&plan, 0, &totals, 0));
        other.reference().unwrap()
    };
    let (_, mut binned) = bins(&plan, &reference, 8, &totals);
    assert!(policy.judge(&binned).is_some());
    binned.last_window = WindowId(9);
    assert!(policy.judge(&binned).is_none(), "a range");
    (binned.first_window, binned.last_window) = (WindowId(9), WindowId(9));
    assert!(policy.judge(&binned).is_none(), "its census is not known");
    for number in 9..300 {
        policy.end_window(&census(&plan, number, &totals, 0));
        policy.reference();
    }
    (binned.first_window, binned.last_window) = (WindowId(8), WindowId(8));
    assert!(policy.judge(&binned).is_none(), "long ago");
}

#[test]
fn a_decision_says_what_its_reference_was_measured_from() {
    let plan = plan_of(base(Mechanism::Subset, 1), 64);
    let totals = windows(Kind::LogNormal, 64, 1, 3).remove(0);
    let mut policy = Policy::new(&plan);
    let single = |number: u64| census(&plan, number, &totals, 0);
    let mut range = single(0);
    (1..=2).for_each(|number| range.merge(&single(number)));
    for (before, number, merged) in [(range, 3, 3), (single(4), 5, 0)] {
        policy.end_window(&before);
        let reference = policy.reference().expect("an interval has ended");
        policy.end_window(&single(number));
        let (_, decisions) = policy.judge(&bins(&plan, &reference, number, &totals).1).expect("a decision");
        assert!(decisions.iter().all(|row| row.merged_windows == merged), "{decisions:?}");
    }
}

#[test]
fn stragglers_are_not_in_the_decision() {
    let plan = plan_of(base(Mechanism::Subset, 4), 64);
    let totals = windows(Kind::LogNormal, 64, 1, 3).remove(0);
    let mut policy = Policy::new(&plan);
    policy.end_window(&census(&plan, 0, &totals, 0));
    let reference = policy.reference().unwrap();
    let nobody = bins(&plan, &reference, 0, &[]).1;
    assert!(policy.judge(&nobody).is_none(), "what was drawn holds where no rank knew its bin");
    let binned = bins(&plan, &reference, 0, &totals[..60]).1;
    let (decision, rows) = policy.judge(&binned).unwrap();
    assert_eq!(rows.iter().map(|row| row.population).sum::<u64>(), 64);
    assert_eq!(rows.iter().map(|row| row.reported).sum::<u64>(), 60);
    // Those that are not in the decision are with those that it does not ask about.
    assert!(rows.iter().all(|row| row.late && (row.stratum == 0 || row.reported == row.population)));
    let strata = &decision.groups[0].as_ref().unwrap().strata;
    assert!(strata.iter().map(|stratum| stratum.ranks).sum::<u32>() <= 60);
}

/// Buffered bytes of every rank are known; the bounds of all groups are widened until what is kept of them fits.
#[test]
fn a_budget_widens_bounds_until_what_is_kept_fits() {
    let keep = |budget: Option<f64>| {
        let mut config = base(Mechanism::Subset, 4);
        config.sampling.budget = budget;
        config.groups = vec![group("all", "0-999", relative(0.99, 0.005), "")];
        let mut direct = Direct::new(&plan_of(config, 1000));
        let windows = windows(Kind::Normal, 1000, 40, 3);
        let mut kept = Vec::new();
        for (number, totals) in (0..).zip(&windows) {
            // A tenth of a second, give or take what the population says.
            let totals: Vec<Total> = totals.iter().map(|&Total { n, y }| Total { n, y: 1e8 * y }).collect();
            let keeps = direct.window(number, &totals, 1000);
            kept.push(keeps.iter().filter(|keep| keep.kept).count());
        }
        let seconds = windows.iter().map(|window| window.iter().map(|t| t.y / 1e4).sum::<f64>()).sum::<f64>();
        (kept, seconds, direct.decisions)
    };
    let (free, seconds, _) = keep(None);
    let asked = 1000.0 * free.iter().sum::<usize>() as f64 / seconds;
    let (same, _, rows) = keep(Some(2.0 * asked));
    assert_eq!(free, same, "what is not reached changes nothing");
    assert!(rows.iter().filter(is_after).all(|row| row.limit.is_none()));
    for share in [0.5, 0.1, 0.02] {
        let (kept, _, rows) = keep(Some(share * asked));
        let rate = 1000.0 * kept.iter().sum::<usize>() as f64 / seconds;
        assert!(rate <= share * asked * 1.02, "{share}: {rate} of {}", share * asked);
        assert!(
            rate >= share * asked * 0.8,
            "what may be kept is kept: {share}: {rate} of {}",
            share * asked
        );
        let row = rows.iter().rfind(is_after).unwrap();
        assert_eq!(row.limit, Some(DecisionLimit::Budget));
        assert_eq!(row.error_required, Some(0.005));
        assert!(row.error_attained.is_none_or(|attained| attained > 0.005), "{row:?}");
    }
}
