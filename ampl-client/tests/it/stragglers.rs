//! Ranks that are not like the others: silent, late, gone, or counting windows of their own.
//!
//! In all cases the others' windows go on, every update interval is decided once, every rank-window is in one census or
//! counted as dropped, and a window that not every rank reported is flagged.

use ampl_client::Node;
use ampl_core::config::{Mechanism, Sizing, Summaries};
use ampl_core::draw::kept;
use ampl_core::message::{Directive, StratumDirective};
use ampl_core::plan::Plan;
use ampl_core::stats::estimate::{Item, ratio_estimate};
use ampl_core::units::{Rank, WindowId};
use ampl_testkit::population::Total;

use crate::common::config;
use crate::common::net::Net;

const RANKS: u32 = 40;
/// A leaf, and a rank with children of its own.
const LEAF: usize = 30;
const INNER: usize = 2;
/// Steps of the network in a window of 250 ms.
const STEPS: u64 = 25;

/// Action of a rank when a window of the others ends.
#[derive(Clone, Copy, PartialEq)]
enum Act {
    /// Reports up to this window and goes on.
    To(u64),
    /// Reports nothing, and makes MPI calls.
    Nothing,
    /// Makes no MPI call.
    Away,
    /// Reports up to this window, and then that it has finished.
    End(u64),
}

/// A job of [`RANKS`] ranks in which `odd` ranks follow `act`; all others report every window.
struct Job {
    net: Net,
    /// First window each rank has not reported.
    at: Vec<u64>,
    windows: u64,
    /// Number of rank-windows that were handed to nodes.
    reported: u64,
}

impl Job {
    fn run(how: (Mechanism, Summaries), windows: u64, act: impl Fn(usize, u64) -> Act) -> Self {
        let config = config(how.1, Sizing::Neyman, how.0);
        let mut net = Net::new(config, RANKS, 0, 3, 1);
        net.step_ns = 250_000_000 / STEPS;
        let mut job = Self { net, at: vec![0; RANKS as usize], windows, reported: 0 };
        for window in 0..windows {
            for rank in 0..RANKS as usize {
                let act = act(rank, window);
                job.net.away[rank] = act == Act::Away;
                match act {
                    Act::To(end) => job.report(rank, end),
                    Act::Nothing | Act::Away => {}
                    Act::End(end) => {
                        job.report(rank, end);
                        job.net.nodes[rank].local_finished();
                    }
                }
            }
            (0..STEPS).for_each(|_| job.net.step());
        }
        job
    }

    fn report(&mut self, rank: usize, end: u64) {
        for window in self.at[rank]..end {
            self.net.local(rank, window, Total { n: 1, y: 100.0 + (rank % 3) as f64 });
            self.reported += 1;
        }
        self.at[rank] = self.at[rank].max(end);
    }

    /// Number of ranks that reported each window so far, and `true` if it was late; all single windows.
    fn census(&self) -> Vec<(u64, bool)> {
        let single = |(number, window): (usize, &ampl_core::message::CensusWindow)| {
            let found = (window.first_window.0, window.last_window.0);
            assert_eq!(found, (number as u64, number as u64));
            (window.reported, window.late)
        };
        self.net.census.iter().enumerate().map(single).collect()
    }

    /// Ends the job and checks what always holds.
    fn end(mut self) -> Net {
        self.net.away.fill(false);
        self.net.finish();
        let net = self.net;
        let census: u64 = net.census.iter().map(|window| window.reported).sum();
        let dropped: u64 = net.nodes.iter().map(Node::dropped).sum();
        assert_eq!(census + dropped, self.reported, "every rank-window once");
        let mut next = 0;
        for window in &net.census {
            assert_eq!(window.first_window.0, next);
            next = window.last_window.0 + 1;
            assert!(!window.late || window.reported < u64::from(RANKS) * window.windows());
        }
        assert_eq!(next, self.windows);
        // A decision is for the interval after the windows it was made from: one, or as many as a range
        // spans.
        let mut decisions = net.decisions[1..].iter();
        let mut since = 0;
        for (index, window) in net.census.iter().enumerate() {
            if (window.last_window.0 + 1) / 4 > window.first_window.0 / 4 {
                let of = &net.census[since..=index];
                since = index + 1;
                let decision = decisions.next().expect("a decision per interval");
                assert_eq!(decision.update, (window.last_window.0 + 1) / 4);
                let fewest = of.iter().map(|window| window.reported / window.windows()).min();
                assert_eq!(Some(decision.reported), fewest);
                assert_eq!(decision.late, of.iter().any(|window| window.late));
                assert_eq!(decision.population, u64::from(RANKS));
            }
        }
        assert!(decisions.next().is_none(), "and none besides");
        net
    }
}

fn everywhere(test: impl Fn((Mechanism, Summaries))) {
    for mechanism in [Mechanism::Subset, Mechanism::Global] {
        for summaries in [Summaries::Census, Summaries::Sampled] {
            test((mechanism, summaries));
        }
    }
}

#[test]
fn a_rank_that_skips_every_marker_is_missing_and_flagged() {
    everywhere(|how| {
        for silent in [LEAF, INNER] {
            let mut job = Job::run(how, 80, |rank, window| match rank == silent {
                true => Act::Nothing,
                false => Act::To(window + 1),
            });
            let census = job.census();
            // Waited for at first, for some seconds in all, and then no longer than the limit.
            assert!(census.len() >= 72, "{}", census.len());
            assert!(census.iter().all(|&window| window == (39, true)), "{census:?}");
            // The others are sampled all the same.
            assert!(job.net.decisions.last().unwrap().size < RANKS);
            job.report(silent, 1); // MPI_Finalize closes its only window
            assert_eq!(job.end().nodes[silent].dropped(), u64::from(silent == INNER));
        }
    });
}

#[test]
fn a_rank_that_finishes_early_is_not_waited_for_and_not_late() {
    everywhere(|how| {
        for early in [LEAF, INNER] {
            let job = Job::run(how, 40, |rank, window| match (rank == early, window) {
                (true, 10) => Act::End(11),
                (true, 11..) => Act::Nothing,
                _ => Act::To(window + 1),
            });
            let census = job.census();
            assert_eq!(census.len(), 40, "nobody waits");
            assert!(census[..11].iter().all(|&window| window == (40, false)));
            assert!(census[11..].iter().all(|&window| window == (39, false)), "{census:?}");
            let net = job.end();
            let last = net.decisions.last().unwrap();
            assert_eq!((last.reported, last.late), (39, false), "not all, but all there are");
        }
    });
}

#[test]
fn a_rank_that_starts_a_minute_late_counts_from_then_on() {
    everywhere(|how| {
        for (late, minute) in [(LEAF, 240), (INNER, 240), (0, 240)] {
            let job = Job::run(how, 320, |rank, window| match rank == late && window < minute {
                true => Act::Away,
                false => Act::To(window + 1),
            });
            let below = match late {
                LEAF => 1,
                INNER => 9,
                _ => 40,
            };
            let net = job.end();
            let flagged = net.census.iter().filter(|window| window.late).count();
            let whole = net.census.iter().filter(|w| w.reported == 40 * w.windows()).count();
            assert_eq!(flagged + whole, net.census.len());
            if late == 0 {
                // No rank was polled meanwhile, and nothing was lost: the others' edges merged.
                assert!(net.census.iter().all(|window| !window.late), "{flagged}");
                continue;
            }
            let early = &net.census[..200];
            assert!(early.iter().all(|window| (window.late, window.reported) == (true, 40 - below)));
            let after = &net.census[net.census.len() - 60..];
            assert!(after.iter().all(|window| (window.late, window.reported) == (false, 40)));
            let last = net.decisions.last().unwrap();
            assert_eq!((last.reported, last.late), (40, false));
        }
    });
}

#[test]
fn ranks_that_count_different_numbers_of_windows() {
    everywhere(|how| {
        // Counted markers: rank r comes by 60 − 3·(r mod 5) times, as fast as the others.
        let windows = |rank: usize| 60 - 3 * (rank % 5) as u64;
        let job = Job::run(how, 60, |rank, window| match window + 1 {
            end if end < windows(rank) => Act::To(end),
            end if end == windows(rank) => Act::End(end),
            _ => Act::Nothing,
        });
        let census = job.census();
        let there = |window| (0..RANKS as usize).filter(|&rank| windows(rank) > window).count() as u64;
        let expected: Vec<_> = (0..60).map(|window| (there(window), false)).collect();
        assert_eq!(census, expected);
        job.end();
        // Or it has as many, at half the pace: behind by more than the limit, it is given up.
        let job = Job::run(how, 60, |rank, window| match rank {
            LEAF => Act::To((window + 1).div_ceil(2)),
            _ => Act::To(window + 1),
        });
        let census = job.census();
        assert!(census.iter().all(|&(reported, late)| late == (reported == 39)), "{census:?}");
        assert!(census[0] == (40, false) && census[50] == (39, true));
        let dropped = job.net.nodes[3].dropped();
        assert!(dropped > 10, "{dropped}");
        let mut job = job;
        job.report(LEAF, 60);
        job.end();
    });
}

/// Late ranks are a stratum of their own without being told: each window keeps the probability of the
/// directive that its rank knew, and the estimate that weighs by it is not biased.
#[test]
fn late_ranks_are_kept_at_the_probability_they_knew() {
    for mechanism in [Mechanism::Subset, Mechanism::Global] {
        let plan = Plan::new(config(Summaries::Census, Sizing::Neyman, mechanism), 60).unwrap();
        let directive = |update: u64, size: u32, seed| Directive {
            update,
            first_window: WindowId(4 * update),
            seed,
            mechanism,
            strata: vec![StratumDirective {
                group: 0,
                stratum: 0,
                size,
                probability: f64::from(size) / 60.0,
                policy: update as u32,
            }],
            divided: Vec::new(),
        };
        // The late third measures more than the others: wrong weights would show.
        let y = |rank: u32| if rank < 20 { 300.0 } else { 100.0 + f64::from(rank % 2) };
        let truth = (0..60).map(y).sum::<f64>() / 60.0;
        let seeds = 3000;
        let (mut sum, mut squares, mut unweighted) = (0.0, 0.0, 0.0);
        for seed in 0..seeds {
            let known = |rank: u32| if rank < 20 { directive(1, 45, seed) } else { directive(2, 20, seed) };
            let mut items = Vec::new();
            for rank in 0..60 {
                let keep = kept(&plan, Rank(rank), WindowId(9), &known(rank));
                assert_eq!(keep.probability, if rank < 20 { 0.75 } else { 20.0 / 60.0 });
                if keep.kept {
                    items.push(Item { n: 1, y: y(rank), probability: keep.probability });
                }
            }
            unweighted += items.iter().map(|item| item.y).sum::<f64>() / items.len() as f64;
            let mean = ratio_estimate(items, 60, 0.9, None).unwrap().mean;
            sum += mean;
            squares += mean * mean;
        }
        let mean = sum / seeds as f64;
        let error = ((squares / seeds as f64 - mean * mean) / seeds as f64).sqrt();
        // A ratio's own bias is of the order of its variance over its mean, here under 1 %.
        assert!((mean - truth).abs() < 4.0 * error + 0.01 * truth, "{mechanism:?}: {mean} for {truth}");
        assert!(unweighted / seeds as f64 > 1.1 * truth, "or weights would not matter");
    }
}
