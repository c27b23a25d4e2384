//! Properties of the statistics and of the messages, for any input.

use ampl_core::config::{Config, Group, Mechanism, Sizing, Summaries, Target};
use ampl_core::message::{
    CensusWindow, Directive, DownMessage, MessageLayout, MetricSummary, StratumDirective, Summary, UpMessage,
};
use ampl_core::plan::Plan;
use ampl_core::stats::Moments;
use ampl_core::stats::estimate::{Item, ratio_estimate};
use ampl_core::stats::sizing::{Stratum, mean_variance, neyman, simple_random};
use ampl_core::units::{RankSet, WindowId};
use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

type Point = (u64, f64);

fn moments(points: &[Point]) -> Moments {
    points.iter().fold(Moments::default(), |sum, &(n, y)| sum.merged(&of_rank((n, y))))
}

fn of_rank((n, y): Point) -> Moments {
    Moments::of_rank(n, y, y * y, y, y)
}

fn points() -> impl Strategy<Value = Vec<Point>> {
    prop::collection::vec((0u64..2000, 1.0..1e9f64), 2..60)
}

fn close(a: f64, b: f64, scale: f64) -> bool {
    (a - b).abs() <= 1e-12 * scale.abs().max(a.abs()).max(b.abs())
}

/// Merged pairwise from the leaves up, as the tree does.
fn tree(points: &[Point]) -> Moments {
    match points {
        [] => Moments::default(),
        [point] => of_rank(*point),
        _ => {
            let (low, high) = points.split_at(points.len() / 2);
            tree(low).merged(&tree(high))
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn merging_does_not_depend_on_the_order(points in points()) {
        let forward = moments(&points);
        let backward = moments(&points.iter().rev().copied().collect::<Vec<_>>());
        for other in [backward, tree(&points)] {
            prop_assert_eq!((forward.ranks, forward.n), (other.ranks, other.n));
            prop_assert!(close(forward.y, other.y, 0.0));
            prop_assert!(close(forward.cyy, other.cyy, 0.0));
            let cross = (forward.cyy * forward.cnn).sqrt();
            prop_assert!(close(forward.cyn, other.cyn, cross));
            prop_assert!(close(forward.cnn, other.cnn, 0.0));
            prop_assert!(close(forward.cy4, other.cy4, 0.0));
            prop_assert!(close(forward.cy3, other.cy3, forward.cyy.powf(1.5)));
            prop_assert_eq!((forward.min, forward.max), (other.min, other.max));
        }
    }

    #[test]
    fn moments_equal_the_naive_definition(points in points()) {
        let moments = tree(&points);
        let live: Vec<Point> =
            points.iter().map(|&(n, y)| if n == 0 { (0, 0.0) } else { (n, y) }).collect();
        let n: u64 = live.iter().map(|point| point.0).sum();
        let y: f64 = live.iter().map(|point| point.1).sum();
        prop_assume!(n > 0);
        let ratio = y / n as f64;
        prop_assert!(close(moments.ratio().unwrap(), ratio, 0.0));
        let squares: f64 = live.iter().map(|&(n, y)| (y - ratio * n as f64).powi(2)).sum();
        let m = live.len() as f64;
        let scale = moments.cyy + ratio * ratio * moments.cnn;
        prop_assert!((moments.residual_squares(ratio) - squares).abs() <= 1e-11 * scale);
        let unit_free = squares / (m - 1.0) / (y / m).powi(2);
        let tolerance = 1e-10 * scale / (m - 1.0) / (y / m).powi(2);
        prop_assert!((moments.residual_variance() - unit_free).abs() <= tolerance);
    }

    #[test]
    fn a_power_of_two_leaves_the_variance_bit_identical(points in points()) {
        let scaled: Vec<Point> =
            points.iter().map(|&(n, y)| (n, y * (1u64 << 20) as f64)).collect();
        let (one, other) = (moments(&points), moments(&scaled));
        prop_assert_eq!(one.residual_variance().to_bits(), other.residual_variance().to_bits());
        let kurtosis = |moments: &Moments| moments.kurtosis().map(f64::to_bits);
        prop_assert_eq!(kurtosis(&one), kurtosis(&other));
    }

    #[test]
    fn allocations_hold_the_bound_within_their_limits(
        strata in prop::collection::vec((0u64..500, 0.0..50.0f64), 1..6),
        extra in 0u64..100,
        allowed in 1e-6..0.1f64,
    ) {
        let strata: Vec<Stratum> =
            strata.into_iter().map(|(ranks, variance)| Stratum { ranks, variance }).collect();
        let population = extra + strata.iter().map(|stratum| stratum.ranks).sum::<u64>();
        prop_assume!(population > 0);
        let sizes = neyman(&strata, population, allowed);
        let mut variance = 0.0;
        for (stratum, &size) in strata.iter().zip(&sizes) {
            prop_assert!(size <= stratum.ranks && (size > 0 || stratum.ranks == 0));
            variance += mean_variance(*stratum, size as f64, population);
        }
        prop_assert!(variance <= allowed * (1.0 + 1e-9));
    }

    #[test]
    fn the_oracle_is_the_smallest_sample(ranks in 2u64..5000, s2 in 1e-4..50.0f64, v0 in 1e-6..0.1f64) {
        let m = simple_random(ranks, s2, v0) as f64;
        let variance = |m: f64| (1.0 / m - 1.0 / ranks as f64) * s2;
        prop_assert!(variance(m) <= v0 * (1.0 + 1e-9));
        prop_assert!(m < 2.0 || variance(m - 1.0) >= v0 * (1.0 - 1e-9));
    }

    #[test]
    fn hostile_bytes_never_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..200), kind in 0u8..5) {
        let _ = (UpMessage::decode(&bytes), DownMessage::decode(&bytes));
        // Past the first checks, too.
        if bytes.len() > 2 {
            (bytes[0], bytes[1]) = (1, kind);
        }
        let _ = (UpMessage::decode(&bytes), DownMessage::decode(&bytes));
    }

    #[test]
    fn damaged_messages_never_panic_and_cut_ones_are_refused(
        plan in plans(), values in values(), at in any::<prop::sample::Index>(), byte: u8,
    ) {
        let shape = MessageLayout::of(&plan);
        let mut bytes = Vec::new();
        up(&plan, &values).encode(&shape, &mut bytes);
        let cut = at.index(bytes.len());
        prop_assert!(UpMessage::decode(&bytes[..cut]).is_err());
        bytes[cut] = byte;
        if let Ok(mut message) = UpMessage::decode(&bytes)
            && let Some(window) = &mut message.window
            && window.partial.cells.len() == shape.cells.len()
        {
            let again = window.clone();
            window.merge(&again);
            window.partial.cells.iter().flat_map(|cell| &cell.metrics).for_each(|metric| {
                let _ = metric.census.residual_variance();
            });
        }
    }

    #[test]
    fn up_messages_come_back_and_have_one_size(plan in plans(), values in values()) {
        let shape = MessageLayout::of(&plan);
        let message = up(&plan, &values);
        let mut bytes = Vec::new();
        message.encode(&shape, &mut bytes);
        prop_assert!(bytes.len() <= UpMessage::encoded_len(&shape));
        prop_assert_eq!(UpMessage::decode(&bytes), Ok(message));
    }

    #[test]
    fn directives_come_back_and_have_one_size(
        plan in plans(), update: u64, seed: u64, sizes in prop::collection::vec((any::<u32>(), 0.0..=1.0f64), 4),
        global: bool,
    ) {
        let shape = MessageLayout::of(&plan);
        let strata = (0..shape.strata()).map(|group| StratumDirective {
            group: group as u16,
            stratum: 0,
            size: sizes[group].0,
            probability: sizes[group].1,
            policy: sizes[group].0 ^ 5,
        });
        let message = DownMessage::Directive(Directive {
            update,
            first_window: WindowId(update ^ 77),
            seed,
            mechanism: if global { Mechanism::Global } else { Mechanism::Subset },
            strata: strata.collect(),
            divided: Vec::new(),
        });
        let mut bytes = Vec::new();
        message.encode(&shape, &mut bytes);
        prop_assert_eq!(bytes.len(), DownMessage::encoded_len(&shape));
        prop_assert_eq!(DownMessage::decode(&bytes), Ok(message));
    }
}

/// Plans of one to three groups, in every legal combination of summaries and sizing.
fn plans() -> impl Strategy<Value = Plan> {
    (0usize..3, 0usize..3, any::<bool>()).prop_map(|(groups, combination, pinned)| {
        let mut config = Config::default();
        (config.sampling.summaries, config.sampling.sizing) = [
            (Summaries::Census, Sizing::Neyman),
            (Summaries::Sampled, Sizing::Neyman),
            (Summaries::Sampled, Sizing::Ampl2008),
        ][combination];
        for (index, name) in ["a", "b"].into_iter().take(groups).enumerate() {
            let first = 10 * index as u32;
            config.groups.push(Group {
                name: name.into(),
                members: RankSet::range(first, first + 7).into(),
                target: Target::Static { ranks: 4 },
                pinned: if pinned { RankSet::range(first + 1, first + 2) } else { RankSet::default() },
            });
        }
        Plan::new(config, 30).unwrap()
    })
}

fn values() -> impl Strategy<Value = Vec<(u64, f64, bool)>> {
    prop::collection::vec((0u64..100, -1e6..1e9f64, any::<bool>()), 30)
}

fn up(plan: &Plan, values: &[(u64, f64, bool)]) -> UpMessage {
    let shape = MessageLayout::of(plan);
    let mut window = CensusWindow::new(&shape, WindowId(8), WindowId(11));
    for (rank, &(n, y, kept)) in values.iter().enumerate() {
        let cell = shape.cell_of(plan, ampl_core::units::Rank(rank as u32));
        let metric = MetricSummary { n, sum: y, sum_sq: y * y, min: y, max: y };
        let metrics = vec![metric; plan.metrics.len()];
        window.partial.add(&shape, cell, 4, &Summary { metrics, kept, probability: 0.5, bytes: 3, spent: 2 });
        if shape.interval {
            window.partial.add_interval(&shape, cell, &vec![metric; plan.metrics.len()]);
        }
        window.reported += 4;
    }
    window.late = values[0].2;
    UpMessage { pass: 0, finished: values[1].0 as u32, window: Some(window) }
}

#[test]
fn stated_intervals_hold_the_truth_as_often_as_they_say() {
    let mut random = ChaCha8Rng::seed_from_u64(11);
    let mut normal = || {
        let radius = (-2.0 * (1.0 - random.random::<f64>()).ln()).sqrt();
        radius * (std::f64::consts::TAU * random.random::<f64>()).cos()
    };
    let population = 200;
    let rounds = 4000;
    for (pinned, p, confidence) in [(0, 0.05, 0.90), (0, 0.2, 0.90), (20, 0.1, 0.95)] {
        for coin in [false, true] {
            let (mut held, mut known) = (0, 0);
            for round in 0..rounds {
                let all: Vec<Item> = (0..population)
                    .map(|rank| {
                        let (n, probability) = (4 + rank % 2, if rank < pinned { 1.0 } else { p });
                        Item { n, y: n as f64 * 10.0 + 3.0 * normal(), probability }
                    })
                    .collect();
                let truth = moments(&all.iter().map(|item| (item.n, item.y)).collect::<Vec<_>>());
                let others: Vec<Point> =
                    all.iter().skip(pinned as usize).map(|item| (item.n, item.y)).collect();
                let ratio = truth.ratio().unwrap();
                let variance = moments(&others).residual_variance_about(ratio);
                let mut draw = ChaCha8Rng::seed_from_u64(round);
                let mut left = (p * (population - pinned) as f64).round();
                let mut open = (population - pinned) as f64;
                let mut keep = |item: &&Item| {
                    if item.probability == 1.0 {
                        return true;
                    }
                    // Selection sampling: exactly `left` of `open`; or an independent coin.
                    let kept = draw.random::<f64>() < if coin { p } else { left / open };
                    open -= 1.0;
                    left -= if kept { 1.0 } else { 0.0 };
                    kept
                };
                let items: Vec<Item> = all.iter().filter(|item| keep(item)).copied().collect();
                let estimate =
                    |variance| ratio_estimate(items.iter().copied(), population, confidence, variance);
                held += u32::from(estimate(None).is_some_and(|e| e.covers(ratio)));
                known += u32::from(estimate(Some(variance)).is_some_and(|e| e.covers(ratio)));
            }
            for share in [held, known].map(|count| f64::from(count) / rounds as f64) {
                let range = confidence - 0.015..confidence + 0.025;
                assert!(range.contains(&share), "{pinned} {p} {coin}: {share} not {confidence}");
            }
        }
    }
}
