//! Decisions of the policy in cases whose answer is known.

use ampl_client::Policy;
use ampl_core::config::{Config, ErrorBound, Event, Mechanism, Metric, Quantity, Sizing, Summaries, Target};
use ampl_core::draw::kept;
use ampl_core::message::{CensusWindow, Decision, Directive, MessageLayout, MetricSummary, Summary};
use ampl_core::plan::Plan;
use ampl_core::stats::Basis;
use ampl_core::stats::estimate::ratio_estimate;
use ampl_core::stats::quantile::normal_two_sided;
use ampl_core::stats::sizing::{ampl_2008, simple_random};
use ampl_core::units::{Rank, WindowId};
use ampl_testkit::population::Total;

use crate::common::{GUIDE, add_up, config, group, relative};

fn census() -> Config {
    config(Summaries::Census, Sizing::Neyman, Mechanism::Subset)
}

/// Feeds `intervals` update intervals of the same totals; returns the last directive.
fn settle(plan: &Plan, totals: &[Total], intervals: u64) -> (Directive, Vec<Decision>) {
    let mut policy = Policy::new(plan);
    let mut now = policy.first_directive();
    let mut interval = Vec::new();
    for window in 0..4 * intervals {
        let census = add_up(plan, window, totals, &now.0, &mut interval).census;
        if let Some(next) = policy.end_window(&census) {
            now = next;
        }
    }
    now
}

/// Ranks at 1 ± `spread`, alternating: S² = spread²·M/(M−1).
fn alternating(ranks: usize, spread: f64) -> Vec<Total> {
    let sign = |rank: usize| if rank.is_multiple_of(2) { 1.0 } else { -1.0 };
    (0..ranks).map(|rank| Total { n: 1, y: 100.0 * (1.0 + sign(rank) * spread) }).collect()
}

#[test]
fn a_constant_population_is_sized_by_the_formula() {
    let plan = Plan::new(census(), 400).unwrap();
    let (directive, decisions) = settle(&plan, &alternating(400, 0.5), 3);
    let s2 = 0.25 * 400.0 / 399.0;
    let z = normal_two_sided(0.9);
    let oracle = simple_random(400, s2, (0.08 / z).powi(2));
    let d = &decisions[0];
    // Sizes round up, so the bound is missed a little less often than allowed: λ moves by less.
    assert!(u64::from(d.size).abs_diff(oracle) <= 1, "{} {oracle}", d.size);
    assert_eq!(directive.strata[0].size, d.size);
    assert_eq!((d.update, d.window, d.policy), (3, 12, 3));
    assert_eq!((d.population, d.reported, d.late), (400, 400, false));
    assert_eq!((d.group.as_str(), d.guide.as_deref()), ("all", Some("wall")));
    assert_eq!(d.probability, f64::from(d.size) / 400.0);
    assert!((d.mean.unwrap() - 100.0).abs() < 1e-9);
    assert!((d.variance.unwrap() / s2 - 1.0).abs() < 0.03);
    assert!(d.error_attained.unwrap() <= d.error_required.unwrap() * 1.02);
}

#[test]
fn floors_static_sizes_and_small_groups() {
    let mut config = census();
    config.groups = vec![
        group("even", "0-99", relative(0.9, 0.08), ""),
        group("small", "100-111", relative(0.9, 0.08), ""),
        group("static", "112-199", Target::Static { ranks: 30 }, "112-121"),
        group("pinned", "200-299", relative(0.9, 0.08), "200-204"),
    ];
    let plan = Plan::new(config, 300).unwrap();
    let first: Vec<u32> = Policy::new(&plan).first_directive().1.iter().map(|d| d.size).collect();
    assert_eq!(first, [100, 12, 30, 100]);
    let (directive, decisions) = settle(&plan, &alternating(300, 0.0), 2);
    let sizes: Vec<u32> = decisions.iter().map(|d| d.size).collect();
    assert_eq!(sizes, [16, 12, 30, 16]);
    assert_eq!(decisions[2].guide, None);
    assert_eq!(decisions[2].probability, 20.0 / 78.0);
    assert_eq!(decisions[3].probability, 11.0 / 95.0);
    let count = |group: usize| {
        let members = plan.groups[group].members.iter();
        members.filter(|&rank| kept(&plan, rank, WindowId(9), &directive).kept).count() as u32
    };
    assert_eq!([count(0), count(1), count(2), count(3)], [16, 12, 30, 16]);
}

#[test]
fn pinning_the_odd_rank_makes_the_rest_cheap() {
    let mut totals = alternating(300, 0.1);
    totals[7].y = 40_000.0;
    let size = |pinned: &str| {
        let mut config = census();
        config.groups.push(group("g", "0-299", relative(0.9, 0.08), pinned));
        settle(&Plan::new(config, 300).unwrap(), &totals, 3).1[0].size
    };
    assert!(size("") > 250, "{}", size(""));
    assert_eq!(size("7"), 16);
}

/// Sizes sent while windows `from`.. differ by so much, four windows per interval: update, window and size.
fn told(config: Config, spreads: &[(u64, f64)]) -> Vec<(u64, u64, u32)> {
    let plan = Plan::new(config, 400).unwrap();
    let mut policy = Policy::new(&plan);
    let mut directive = policy.first_directive().0;
    let (mut interval, mut told) = (Vec::new(), Vec::new());
    for window in 0..20 {
        let spread = spreads.iter().rfind(|&&(from, _)| from <= window).unwrap().1;
        let census = add_up(&plan, window, &alternating(400, spread), &directive, &mut interval).census;
        let Some((next, decisions)) = policy.end_window(&census) else { continue };
        assert_eq!(decisions.len(), 1);
        assert_eq!((decisions[0].window, decisions[0].size), (next.first_window.0, next.strata[0].size));
        assert_eq!((decisions[0].reported, decisions[0].policy), (400, told.len() as u32 + 1));
        told.push((next.update, next.first_window.0, next.strata[0].size));
        directive = next;
    }
    told
}

#[test]
fn a_jump_is_answered_at_the_next_window() {
    let intervals = |told: &[(u64, u64, u32)]| {
        told.iter().filter(|row| row.1 % 4 == 0).map(|row| (row.0, row.1)).collect::<Vec<_>>()
    };
    let each: Vec<(u64, u64)> = (1..=5).map(|update| (update, 4 * update)).collect();
    // A steady spread is sent once per interval; a jump in the first interval is decided at its end.
    for spreads in [&[(0, 0.3)][..], &[(0, 0.1), (2, 0.5)]] {
        let steady = told(census(), spreads);
        assert_eq!((steady.len(), intervals(&steady)), (5, each.clone()), "{spreads:?}");
    }
    let jump = told(census(), &[(0, 0.2), (9, 0.6)]);
    assert_eq!(intervals(&jump), each);
    let size = |window: u64| jump.iter().rfind(|row| row.1 <= window).unwrap().2;
    let asked = |spread: f64| {
        let s2 = spread * spread * 400.0 / 399.0;
        simple_random(400, s2, (0.08 / normal_two_sided(0.9)).powi(2)) as u32
    };
    assert!(size(9).abs_diff(asked(0.2)) <= 1, "{jump:?}");
    assert!(size(10) >= asked(0.6) && jump.iter().any(|row| (row.0, row.1) == (2, 10)), "{jump:?}");
    // A spike is remembered for as long as the average does.
    let spike = told(census(), &[(0, 0.2), (9, 0.6), (10, 0.2)]);
    let sizes: Vec<u32> = spike.iter().filter(|row| row.1 >= 10).map(|row| row.2).collect();
    assert!(sizes.is_sorted_by(|a, b| a >= b) && sizes.len() > 4, "{spike:?}");
    // Under a budget sizes are sent by the interval. With sampled summaries they wait for more drawn ranks.
    let mut thrifty = census();
    thrifty.sampling.budget = Some(1e9);
    let sampled = config(Summaries::Sampled, Sizing::Neyman, Mechanism::Subset);
    for config in [thrifty, sampled] {
        assert_eq!(told(config, &[(0, 0.2), (9, 0.6)]).len(), 5);
    }
}

#[test]
fn global_keeps_one_more_with_its_probability() {
    let sizes = [Mechanism::Subset, Mechanism::Global].map(|mechanism| {
        let mut config = census();
        config.sampling.update_mechanism = mechanism;
        // One interval: λ still has seen only full windows, in both.
        let d = settle(&Plan::new(config, 400).unwrap(), &alternating(400, 0.5), 1).1;
        assert_eq!(d[0].probability, f64::from(d[0].size) / 400.0);
        d[0].size
    });
    assert_eq!(sizes[1], sizes[0] + 1);
}

#[test]
fn absolute_bounds_survive_a_mean_of_zero() {
    let totals: Vec<Total> =
        alternating(400, 0.5).into_iter().map(|Total { n, y }| Total { n, y: y - 100.0 }).collect();
    let size = |error| {
        let mut config = census();
        config.groups.push(group("g", "0-399", Target::Bound { confidence: 0.9, error }, ""));
        settle(&Plan::new(config, 400).unwrap(), &totals, 2).1.remove(0)
    };
    let relative = size(ErrorBound::Relative(0.08));
    assert_eq!((relative.size, relative.variance), (400, None));
    let absolute = size(ErrorBound::Absolute(8.0));
    let oracle = simple_random(400, 2500.0 * 400.0 / 399.0, (8.0 / normal_two_sided(0.9)).powi(2));
    assert!(u64::from(absolute.size).abs_diff(oracle) <= 1, "{} {oracle}", absolute.size);
    assert_eq!(absolute.error_required, Some(8.0));
}

#[test]
fn the_most_demanding_guide_decides() {
    let mut config = census();
    config.metrics = [Quantity::MpiTime, Quantity::BytesSent]
        .map(|quantity| Metric { quantity, event: Event::Window, guide: true, optional: false })
        .into();
    config.metrics.push(Metric {
        quantity: Quantity::Calls,
        event: Event::Function("MPI_Never".into()),
        guide: true,
        optional: false,
    });
    let plan = Plan::new(config, 200).unwrap();
    let shape = MessageLayout::of(&plan);
    let slot = |quantity| plan.metrics.iter().position(|m| m.quantity == quantity).unwrap();
    let mut policy = Policy::new(&plan);
    policy.first_directive();
    let mut last = None;
    for window in 0..8 {
        let mut census = CensusWindow::new(&shape, WindowId(window), WindowId(window));
        for rank in 0..200 {
            let mut summary = Summary::empty(&plan);
            let sign = if rank % 2 == 0 { 1.0 } else { -1.0 };
            summary.metrics[slot(Quantity::MpiTime)] = MetricSummary::one(10.0 + sign);
            summary.metrics[slot(Quantity::BytesSent)] = MetricSummary::one(10.0 + 5.0 * sign);
            census.partial.add(&shape, shape.cell_of(&plan, Rank(rank)), 1, &summary);
        }
        last = policy.end_window(&census).or(last);
    }
    let decision = last.unwrap().1.remove(0);
    assert_eq!(decision.guide.as_deref(), Some("bytes.sent"));
    assert!((60..80).contains(&decision.size), "{}", decision.size);
}

#[test]
fn windows_without_observations_change_nothing() {
    let plan = Plan::new(census(), 200).unwrap();
    let none = vec![Total { n: 0, y: 0.0 }; 200];
    let (_, decisions) = settle(&plan, &none, 2);
    assert_eq!((decisions[0].size, decisions[0].guide.clone()), (200, Some("wall".to_owned())));
    let zero = vec![Total { n: 1, y: 0.0 }; 200];
    assert_eq!(settle(&plan, &zero, 2).1[0].size, 16, "all are equal, at zero");
}

#[test]
fn sampled_sizes_match_their_formulas_when_everyone_was_kept() {
    let totals = alternating(2000, 0.5);
    let s2 = 0.25 * 2000.0 / 1999.0;
    let ampl = config(Summaries::Sampled, Sizing::Ampl2008, Mechanism::Subset);
    let d = settle(&Plan::new(ampl, 2000).unwrap(), &totals, 1).1.remove(0);
    // Four equal windows: both the spread and the count of a rank are four times as large.
    let z = normal_two_sided(0.9);
    assert_eq!(u64::from(d.size), ampl_2008(2000, 16.0 * s2 * 1e4, 4.0, 0.08 * 100.0, z));
    let pooled = config(Summaries::Sampled, Sizing::Neyman, Mechanism::Subset);
    let d = settle(&Plan::new(pooled, 2000).unwrap(), &totals, 1).1.remove(0);
    // ν is held at 300: t is a little more than z.
    let oracle = simple_random(2000, s2, (0.08 / z).powi(2));
    assert!((oracle..oracle + 3).contains(&u64::from(d.size)), "{} {oracle}", d.size);
    for (sizing, floor) in [(Sizing::Ampl2008, 10), (Sizing::Neyman, 16)] {
        let config = config(Summaries::Sampled, sizing, Mechanism::Subset);
        let even = settle(&Plan::new(config, 2000).unwrap(), &alternating(2000, 0.0), 4).1;
        assert_eq!(even[0].size, floor);
    }
}

#[test]
fn late_windows_and_ranges_are_said_and_survived() {
    let plan = Plan::new(census(), 100).unwrap();
    let mut policy = Policy::new(&plan);
    let (directive, _) = policy.first_directive();
    let window = |number: u64| {
        let totals = alternating(100, 0.2);
        add_up(&plan, number, &totals, &directive, &mut Vec::new()).census
    };
    assert!(policy.end_window(&window(0)).is_none());
    let mut late = window(1);
    late.late = true;
    late.partial.cells[0].reported = 60;
    assert!(policy.end_window(&late).is_none());
    // A range over the ends of two intervals: one decision, for the interval it leaves open.
    let mut range = window(2);
    (3..=8).for_each(|number| range.merge(&window(number)));
    let (directive, decisions) = policy.end_window(&range).unwrap();
    assert_eq!((directive.update, directive.first_window), (2, WindowId(8)));
    assert_eq!((decisions[0].late, decisions[0].reported, decisions[0].merged_windows), (true, 60, 7));
    assert!((16..25).contains(&decisions[0].size), "{}", decisions[0].size);
    assert!(policy.end_window(&window(9)).is_none());
    assert!(policy.end_window(&window(10)).is_none());
    let (directive, decisions) = policy.end_window(&window(11)).unwrap();
    assert_eq!((directive.update, decisions[0].late, decisions[0].reported), (3, false, 100));
    assert_eq!(decisions[0].merged_windows, 0);
}

#[test]
fn decisions_serialise_as_the_contract_says() {
    let plan = Plan::new(census(), 100).unwrap();
    let (_, decisions) = settle(&plan, &alternating(100, 0.2), 1);
    let value = serde_json::to_value(&decisions[0]).unwrap();
    let wanted = serde_json::json!({
        "update": 1, "window": 4, "group": "all", "stratum": 0, "mechanism": "subset",
        "population": 100, "reported": 100, "late": false, "size": 16, "probability": 0.16,
        "guide": "wall", "policy": 1,
    });
    assert_eq!(value["event"], "*");
    for (field, wanted) in wanted.as_object().unwrap() {
        assert_eq!(&value[field], wanted, "{field}");
    }
    let back: Decision = serde_json::from_value(value).unwrap();
    assert_eq!(back, decisions[0]);
    let least: Decision = serde_json::from_value(wanted).unwrap();
    assert_eq!(least.mean, None);
}

#[test]
fn windows_are_estimated_from_their_summaries() {
    let totals = alternating(100, 0.2);
    for (summaries, basis) in [(Summaries::Census, Basis::Census), (Summaries::Sampled, Basis::Sampled)] {
        let mut config = config(summaries, Sizing::Neyman, Mechanism::Subset);
        config.groups.push(group("g", "0-89", Target::Static { ranks: 40 }, "0-9"));
        let plan = Plan::new(config, 100).unwrap();
        let (directive, _) = Policy::new(&plan).first_directive();
        let window = add_up(&plan, 0, &totals, &directive, &mut Vec::new());
        let estimate = window.census.estimate(&plan, 0, GUIDE).unwrap();
        assert_eq!((estimate.basis, estimate.population), (basis, 90));
        match basis {
            Basis::Census => {
                assert_eq!((estimate.mean, estimate.half_width, estimate.kept), (100.0, 0.0, 90));
            }
            _ => {
                let items = window.kept.iter().filter(|(rank, _)| rank.0 < 90);
                let traced = ratio_estimate(items.map(|&(_, item)| item), 90, 0.9, None).unwrap();
                assert!((estimate.mean - traced.mean).abs() < 1e-9);
                assert!((estimate.half_width / traced.half_width - 1.0).abs() < 1e-9);
                assert!(estimate.half_width > 1.0 && estimate.covers(100.0));
                assert_eq!(estimate.kept, 40);
            }
        }
        let rest = window.census.estimate(&plan, 1, GUIDE).unwrap();
        assert_eq!((rest.mean, rest.half_width, rest.kept), (100.0, 0.0, 10));
    }
}
