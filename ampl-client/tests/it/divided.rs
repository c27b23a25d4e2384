//! Groups that are divided while the job runs.

use std::collections::BTreeMap;

use ampl_client::simulate::Score;
use ampl_core::config::{Config, GroupStrata, Mechanism, Selection, Sizing, Summaries};
use ampl_core::draw::{kept, stratum};
use ampl_core::message::{Decision, DownMessage, MessageLayout, UpMessage};
use ampl_core::plan::Plan;
use ampl_core::stats::quantile::variance_ratio;
use ampl_core::units::{Rank, WindowId};
use ampl_testkit::population::Total;
use ampl_testkit::{Classes, Kind, Population};

use crate::common::net::Net;
use crate::common::simulated::{from, simulated};
use crate::common::{self, config, group, metric, relative};

const INTERVAL: u64 = 4;

/// One group of `ranks`, to be divided into as many strata as pay.
fn divided(ranks: u32, pinned: &str, mechanism: Mechanism) -> Config {
    let mut config = config(Summaries::Census, Sizing::Neyman, mechanism);
    config.groups.push(group("g", &format!("0-{}", ranks - 1), relative(0.90, 0.08), pinned));
    config.strata.push(GroupStrata { group: "g".into(), k: None });
    config
}

fn undivided(config: &Config) -> Config {
    common::undivided(Config { strata: Vec::new(), ..config.clone() })
}

struct Simulated {
    score: Score,
    decisions: Vec<Decision>,
}

impl Simulated {
    fn of(config: Config, ranks: u32, windows: u64, seed: u64, mut next: impl FnMut() -> Vec<Total>) -> Self {
        let plan = Plan::new(config, ranks).unwrap();
        let guides = || vec![next().into_iter().map(metric).collect()];
        let windows = std::iter::repeat_with(guides).take(windows as usize);
        let (mut scores, decisions) = simulated(&plan, windows, seed);
        let score = scores.swap_remove(0);
        Self { score, decisions }
    }

    /// Decisions for an interval that were made before it began.
    fn update(&self, update: u64) -> Vec<&Decision> {
        let own = self.decisions.iter().filter(|row| row.window == update * INTERVAL);
        own.filter(|row| row.selection == Some(Selection::Predictive)).collect()
    }

    fn most_strata(&self) -> usize {
        let last = self.decisions.iter().map(|row| row.update).max().unwrap_or(0);
        (0..=last).map(|update| self.update(update).len()).max().unwrap_or(0)
    }

    /// Mean size and coverage of the windows from `first` on.
    fn from(&self, first: u64) -> (f64, f64) {
        from(&self.score, first)
    }
}

fn waiting(ranks: u32, seed: u64) -> impl FnMut() -> Vec<Total> {
    let mut job = Classes::wait_times().job(ranks as usize, seed);
    move || job.next_window()
}

#[test]
fn two_classes_take_a_third_of_the_ranks_and_hold_the_bound() {
    const WINDOWS: u64 = 48;
    for mechanism in [Mechanism::Subset, Mechanism::Global] {
        for ranks in [128, 1024, 4096] {
            let (mut with, mut without, mut covered) = (0.0, 0.0, 0.0);
            let seeds = 8;
            for seed in 0..seeds {
                let config = divided(ranks, "", mechanism);
                let one = Simulated::of(undivided(&config), ranks, WINDOWS, seed, waiting(ranks, seed));
                let two = Simulated::of(config, ranks, WINDOWS, seed, waiting(ranks, seed));
                assert_eq!(one.most_strata(), 1);
                assert!(two.update(WINDOWS / INTERVAL - 1).len() >= 2, "{ranks} {seed}");
                // Seen for two intervals, checked for some more windows, sent for the interval after the next, counted
                // in it.
                let first = (0..).find(|&update| two.update(update).len() > 1).unwrap();
                assert!(first <= 7, "{first}");
                with += two.from(first * INTERVAL).0;
                covered += two.from(first * INTERVAL).1;
                without += one.from(first * INTERVAL).0;
            }
            let seeds = seeds as f64;
            println!("{mechanism:?} {ranks}: {} of {}, {}", with / seeds, without / seeds, covered / seeds);
            // A sample of 16 is the smallest there is: of 128 ranks no more can be saved.
            assert!(with <= 0.35 * without, "{mechanism:?} {ranks}: {with} of {without}");
            assert!(covered / seeds >= 0.90, "{mechanism:?} {ranks}: {}", covered / seeds);
        }
    }
}

#[test]
fn noise_stays_one_stratum() {
    const DRAWS: u64 = 80;
    for kind in [Kind::Normal, Kind::LogNormal, Kind::ZeroInflated, Kind::Spikes, Kind::Drift] {
        let alone = (0..DRAWS).filter(|&seed| {
            let mut population = Population::new(kind, 128, 300 + seed);
            let config = divided(128, "", Mechanism::Subset);
            Simulated::of(config, 128, 32, seed, || population.next_window()).most_strata() == 1
        });
        let alone = alone.count() as u64;
        println!("{kind:?}: {alone} of {DRAWS}");
        assert!(10 * alone >= 9 * DRAWS, "{kind:?}: {alone} of {DRAWS} draws");
    }
}

#[test]
fn every_population_is_covered_with_no_more_ranks() {
    const SEEDS: u64 = 8;
    let (mut all, mut saved) = (0.0, 0);
    for kind in Kind::ALL {
        let of = |config: fn(u32) -> Config| {
            let (mut size, mut covered) = (0.0, 0.0);
            for seed in 0..SEEDS {
                let mut population = Population::new(kind, 128, 4000 + seed);
                let run = Simulated::of(config(128), 128, 80, seed, || population.next_window());
                let (own_size, own_covered) = run.from(INTERVAL);
                (size, covered) = (size + own_size / SEEDS as f64, covered + own_covered / SEEDS as f64);
            }
            (size, covered)
        };
        let (one, before) = of(|ranks| undivided(&divided(ranks, "", Mechanism::Subset)));
        let (size, covered) = of(|ranks| divided(ranks, "", Mechanism::Subset));
        println!("{kind:?}: {size:.1} of {one:.1} ranks, {covered:.3} after {before:.3}");
        assert!(covered >= 0.86 && covered >= before - 0.02 && size <= 1.03 * one, "{kind:?}");
        all += covered / Kind::ALL.len() as f64;
        saved += usize::from(size <= 0.6 * one);
    }
    assert!(all >= 0.90, "{all}");
    // Bimodal and heterogeneous ranks, few slow ones, and counts that go with values.
    assert!(saved >= 4, "{saved} populations");
}

#[test]
fn strata_keep_their_numbers_while_classes_last() {
    let ranks = 512;
    let mut job = Classes::equal(&[1.0, 3.0], 0.1).job(ranks, 5);
    let labels = job.labels.clone();
    let mut window = 0;
    // From window 60 on, every other rank of the slow ones is three times as slow.
    let next = || {
        window += 1;
        let mut totals = job.next_window();
        for (rank, total) in totals.iter_mut().enumerate().filter(|(rank, _)| labels[*rank] == 1) {
            total.y *= if window > 60 && rank % 2 == 0 { 3.0 } else { 1.0 };
        }
        totals
    };
    let run = Simulated::of(divided(ranks as u32, "", Mechanism::Subset), ranks as u32, 160, 1, next);
    let numbers = |update| run.update(update).iter().map(|row| row.stratum).collect::<Vec<_>>();
    let first = (0..).find(|&update| numbers(update).len() == 2).unwrap();
    assert_eq!(numbers(first).iter().copied().max(), Some(1), "one goes on as 0, the other is new");
    for update in first..15 {
        assert_eq!(numbers(update), numbers(first), "{update}");
    }
    let last = numbers(39);
    assert_eq!(last.len(), 3, "{last:?}");
    assert!(numbers(first).iter().all(|number| last.contains(number)) && last.contains(&2), "{last:?}");
    let populations = |update| run.update(update).iter().map(|row| row.population).sum::<u64>();
    assert_eq!((populations(first), populations(39)), (512, 512));
}

#[test]
fn groups_that_take_turns_are_all_divided() {
    // Each of the 8 groups continues its check in one window of eight.
    let (groups, each) = (8, 64);
    let ranks = groups * each;
    let mut config = divided(ranks, "", Mechanism::Subset);
    config.groups = (0..groups)
        .map(|index| {
            let members = format!("{}-{}", index * each, (index + 1) * each - 1);
            group(&index.to_string(), &members, relative(0.90, 0.04), "")
        })
        .collect();
    let own = |group: &ampl_core::config::Group| GroupStrata { group: group.name.clone(), k: None };
    config.strata = config.groups.iter().map(own).collect();
    let run = Simulated::of(config, ranks, 120, 1, waiting(ranks, 1));
    let last = run.update(120 / INTERVAL);
    for index in 0..groups {
        let strata = last.iter().filter(|row| row.group == index.to_string()).count();
        assert!(strata >= 2, "{index}: {last:?}");
    }
}

#[test]
fn so_many_strata_as_asked_for() {
    for k in [1, 2, 3, 5] {
        let mut config = divided(256, "", Mechanism::Subset);
        config.strata[0].k = Some(k);
        let mut population = Population::new(Kind::Heterogeneous, 256, 1);
        let run = Simulated::of(config, 256, 40, 3, || population.next_window());
        assert_eq!(run.update(9).len(), k as usize, "{k}");
    }
}

#[test]
fn decisions_repeat_and_follow_neither_unit_nor_seed_of_others() {
    let run = |unit: f64, seed| {
        let mut next = waiting(300, 3);
        let scaled = || next().into_iter().map(|total| Total { y: total.y * unit, ..total }).collect();
        Simulated::of(divided(300, "0-4", Mechanism::Subset), 300, 40, seed, scaled).decisions
    };
    let sizes = |rows: &[Decision]| rows.iter().map(|row| (row.stratum, row.size)).collect::<Vec<_>>();
    assert_eq!(run(1.0, 7), run(1.0, 7));
    assert_eq!(sizes(&run(1.0, 7)), sizes(&run(2f64.powi(20), 7)));
}

#[test]
fn sizes_follow_neither_units_nor_counts() {
    for kind in Kind::ALL {
        for (ranks, seed) in [(32, 1), (128, 2), (1000, 3)] {
            let sizes = |change: fn(Total) -> Total| -> Vec<(u64, u16, u32)> {
                let mut population = Population::new(kind, ranks as usize, seed);
                let next = || population.next_window().into_iter().map(change).collect();
                let run = Simulated::of(divided(ranks, "", Mechanism::Subset), ranks, 48, seed, next);
                run.decisions.iter().map(|row| (row.window, row.stratum, row.size)).collect()
            };
            let base = sizes(|total| total);
            let twice = sizes(|total| Total { y: total.y * 2f64.powi(20), ..total });
            assert_eq!(base, twice, "{kind:?} {ranks}");
            let often = sizes(|total| Total { n: 7 * total.n, ..total });
            assert_eq!(base, often, "{kind:?} {ranks}");
            let million = sizes(|total| Total { y: total.y * 1e6, ..total });
            assert_eq!(base.len(), million.len(), "{kind:?} {ranks}");
            for (one, other) in base.iter().zip(&million) {
                let same = (one.0, one.1) == (other.0, other.1) && one.2.abs_diff(other.2) <= 1;
                assert!(same, "{kind:?} {ranks}: {one:?} {other:?}");
            }
        }
    }
}

/// A job of real nodes, driven window by window.
fn live(config: Config, ranks: u32, slowest: u32, windows: &[Vec<Total>]) -> Net {
    let mut net = Net::new(config, ranks, 0, slowest, 9);
    for (number, totals) in windows.iter().enumerate() {
        for (rank, &total) in totals.iter().enumerate() {
            net.local(rank, number as u64, total);
        }
        (0..40).for_each(|_| net.step());
    }
    net
}

fn windows(ranks: u32, count: usize, seed: u64) -> Vec<Vec<Total>> {
    let mut next = waiting(ranks, seed);
    (0..count).map(|_| next()).collect()
}

#[test]
fn a_tree_decides_what_the_simulator_does() {
    for mechanism in [Mechanism::Subset, Mechanism::Global] {
        for pinned in ["", "3,70-73"] {
            let (ranks, windows) = (200, windows(200, 40, 2));
            let mut config = divided(ranks, pinned, mechanism);
            config.sampling.seed = 11;
            let mut given = windows.iter().cloned();
            let simulated = Simulated::of(config.clone(), ranks, 40, 11, || given.next().unwrap());
            let net = live(config, ranks, 1, &windows);
            let rows = |decisions: &[Decision], selection: Selection| {
                let own = decisions.iter().filter(|row| row.selection == Some(selection));
                own.map(|row| (row.window, row.stratum, row.population, row.size)).collect::<Vec<_>>()
            };
            let decided = [&net.decisions[..], &net.afterwards].concat();
            for selection in [Selection::Predictive, Selection::Retrospective] {
                let [live, simulated] =
                    [&decided, &simulated.decisions].map(|decisions| rows(decisions, selection));
                assert!(live.len() >= INTERVAL as usize);
                assert_eq!(live, simulated, "{mechanism:?} {pinned}");
            }
            assert!(simulated.most_strata() >= 2);
        }
    }
}

#[test]
fn samples_of_strata_are_of_exactly_the_size_decided() {
    let (ranks, windows) = (200u32, windows(200, 40, 2));
    let mut net = live(divided(ranks, "3,70-73", Mechanism::Subset), ranks, 2, &windows);
    let last = net.decisions.iter().map(|row| row.update).max().unwrap();
    let rows: Vec<Decision> = net.decisions.iter().filter(|row| row.update == last).cloned().collect();
    assert!(rows.len() >= 2, "{rows:?}");
    let window = WindowId(last * INTERVAL);
    let mut found = vec![(0, 0); rows.len()];
    for rank in 0..ranks {
        let directive = net.nodes[rank as usize].directive(window).expect("it has arrived").clone();
        assert_eq!(directive.update, last);
        let keep = kept(&net.plan, Rank(rank), window, &directive);
        let Some(number) = stratum(&net.plan, Rank(rank), &directive) else {
            assert!(keep.kept && keep.probability == 1.0, "rank {rank} is pinned");
            continue;
        };
        let place = rows.iter().position(|row| row.stratum == number).unwrap();
        assert_eq!(keep.probability, rows[place].probability);
        found[place].0 += 1;
        found[place].1 += u64::from(keep.kept);
    }
    let pinned = 5;
    assert_eq!(found.iter().map(|(all, _)| all).sum::<u64>() + pinned, u64::from(ranks));
    let decided: u64 = rows.iter().map(|row| u64::from(row.size)).sum();
    assert_eq!(found.iter().map(|(_, kept)| kept).sum::<u64>() + pinned, decided);
    for ((all, kept), row) in found.iter().zip(&rows) {
        // Pinned ranks are in the strata's numbers.
        let own = row.population - all;
        assert_eq!(kept + own, u64::from(row.size), "{row:?}");
    }
}

#[test]
fn kept_frequencies_equal_the_stored_probabilities() {
    let (ranks, windows) = (120u32, windows(120, 40, 4));
    let mut counts = vec![(0.0, 0.0, 0.0); ranks as usize];
    let seeds = 1000;
    // How many more were drawn than were to be, by seed and stratum.
    let mut more = BTreeMap::<_, f64>::new();
    // Strata of one run; what is drawn follows the seed of the directive alone.
    let mut net = live(divided(ranks, "", Mechanism::Subset), ranks, 0, &windows);
    let window = WindowId(40);
    for rank in 0..ranks {
        let directive = net.nodes[rank as usize].directive(window).unwrap().clone();
        assert!(directive.divided(0).is_some());
        let number = stratum(&net.plan, Rank(rank), &directive).expect("nobody is pinned");
        for seed in 0..seeds {
            let keep = kept(
                &net.plan,
                Rank(rank),
                window,
                &ampl_core::message::Directive { seed, ..directive.clone() },
            );
            let count = &mut counts[rank as usize];
            count.0 += f64::from(u8::from(keep.kept));
            count.1 += keep.probability;
            count.2 += keep.probability * (1.0 - keep.probability);
            *more.entry((seed, number)).or_default() += f64::from(u8::from(keep.kept)) - keep.probability;
        }
    }
    assert!(more.len() >= 2 * seeds as usize, "{}", more.len());
    for (of, more) in more {
        assert!(more.abs() < 1e-9, "seed and stratum {of:?}: {more} ranks more than decided");
    }
    let chi: f64 = counts.iter().map(|(kept, mean, variance)| (kept - mean).powi(2) / variance).sum();
    let freedom = f64::from(ranks);
    assert!(chi < freedom * variance_ratio(0.9999, freedom), "{chi}");
}

#[test]
fn messages_have_one_size_and_others_pay_nothing() {
    let shape = |config: &Config, ranks| MessageLayout::of(&Plan::new(config.clone(), ranks).unwrap());
    let sizes = [1000, 1_000_000].map(|ranks| {
        let shape = shape(&divided(ranks, "0-4", Mechanism::Subset), ranks);
        (UpMessage::encoded_len(&shape), DownMessage::encoded_len(&shape))
    });
    assert_eq!(sizes[0], sizes[1]);
    assert!(sizes[0].0 <= 16 << 10 && sizes[0].1 <= 4096, "{sizes:?}");
    // With a budget the first interval's decisions are predictive, too.
    let alone = |mut config: Config| {
        config.sampling.budget = Some(1e6);
        shape(&config, 1000)
    };
    let only = alone(divided(1000, "0-4", Mechanism::Subset));
    assert!(UpMessage::encoded_len(&only) <= 4096 && only.divisions.is_some());
    let plain = alone(undivided(&divided(1000, "0-4", Mechanism::Subset)));
    assert_eq!(plain.divisions, None);
    assert_eq!((UpMessage::encoded_len(&plain), DownMessage::encoded_len(&plain)), (2264, 52));
}

#[test]
fn late_ranks_draw_with_the_probability_that_they_are_told() {
    // One rank hears of nothing for a while, another one reports too late to be counted.
    let (ranks, windows) = (150u32, windows(150, 60, 6));
    let mut net = Net::new(divided(ranks, "", Mechanism::Subset), ranks, 0, 1, 9);
    net.step_ns = 200_000_000;
    for (number, totals) in windows.iter().enumerate() {
        net.away[149] = (6..40).contains(&number);
        for (rank, &total) in totals.iter().enumerate() {
            net.local(rank, number as u64, total);
        }
        (0..40).for_each(|_| net.step());
    }
    let last = net.decisions.iter().map(|row| row.update).max().unwrap();
    let rows: Vec<&Decision> = net.decisions.iter().filter(|row| row.update == last).collect();
    assert!(rows.len() >= 2, "{rows:?}");
    let window = WindowId(last * INTERVAL);
    let probabilities: Vec<f64> = rows.iter().map(|row| row.probability).collect();
    for rank in 0..ranks {
        let directive = net.nodes[rank as usize].directive(window).unwrap().clone();
        let keep = kept(&net.plan, Rank(rank), window, &directive);
        assert!(probabilities.contains(&keep.probability), "{rank}: {keep:?} of {probabilities:?}");
    }
    net.finish();
    for window in net.census.iter().filter(|window| !window.late && window.windows() == 1) {
        let all: f64 = window.partial.cells.iter().map(|cell| cell.metrics[0].census.y).sum();
        let truth: f64 = windows[window.first_window.0 as usize].iter().map(|total| total.y).sum();
        assert!((all / truth - 1.0).abs() < 1e-12, "{:?}", window.first_window);
        let sums = &window.partial.divided[0];
        assert!(sums.counts().map(|(ranks, _)| ranks).sum::<u64>() <= u64::from(ranks));
    }
}

#[test]
fn windows_decided_by_themselves_have_strata_to_fall_back_on() {
    let (ranks, windows) = (200, windows(200, 40, 2));
    let mut config = divided(ranks, "", Mechanism::Subset);
    config.sampling.selection = Selection::Retrospective;
    let mut given = windows.iter().cloned();
    let run = Simulated::of(config.clone(), ranks, 40, 1, || given.next().unwrap());
    assert!(run.update(9).len() >= 2);
    let of_windows = |run: &Simulated| {
        let rows = run.decisions.iter().filter(|row| row.selection == Some(Selection::Retrospective));
        rows.cloned().collect::<Vec<_>>()
    };
    let mut given = windows.iter().cloned();
    let plain = Simulated::of(undivided(&config), ranks, 40, 1, || given.next().unwrap());
    // What becomes of windows that are decided by themselves is the same.
    assert_eq!(of_windows(&run), of_windows(&plain));
    assert!(!of_windows(&run).is_empty());
}
