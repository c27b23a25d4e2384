//! Cost of the dearest update of a run where a group is divided while the job runs: microseconds by the number of
//! ranks, of jobs in which strata are found and of jobs in which they are searched for in vain. A check is spread over
//! windows, so that no update pays for all of it.

use std::hint::black_box;

use ampl_client::Policy;
use ampl_core::cluster::Metric;
use ampl_core::config::GroupStrata;
use ampl_core::message::{
    CensusWindow, Directive, DownMessage, MessageLayout, MetricSummary, Sampled, Stratification,
    Stratifications, StratumSums, Summary,
};
use ampl_core::plan::Plan;
use ampl_core::stats::Moments;
use ampl_core::units::{Rank, WindowId};
use ampl_testkit::population::Total;
use ampl_testkit::{Classes, Kind, Population};

use super::timed;

const RANKS: [u32; 2] = [1_000, 1_000_000];
/// Updates of a run, and different windows that they are made from.
const UPDATES: u64 = 100;
const WINDOWS: usize = 8;
/// Runs; of each update the shortest counts, for what else the machine does comes now here, now there.
const RUNS: usize = 15;

/// Prints them; no window takes more than 200 us at once, however many ranks there are.
pub fn measure() {
    println!(
        "\n{:<10} {:>9} {:>8} {:>8} {:>8}   {:<14} strata",
        "divided", "ranks", "update,", "dearest", "window", "job"
    );
    println!("{:<20} {:>8} {:>8} {:>8}", "", "us, med.", "update", "in it");
    for ranks in RANKS {
        let noise = |kind| {
            let mut population = Population::new(kind, ranks as usize, 1);
            windows(|| population.next_window())
        };
        let mut classes = Classes::wait_times().job(ranks as usize, 1);
        let jobs = [
            ("wait times", windows(|| classes.next_window())),
            ("heterogeneous", noise(Kind::Heterogeneous)),
            ("lognormal", noise(Kind::LogNormal)),
            ("spikes", noise(Kind::Spikes)),
        ];
        for (name, windows) in jobs {
            let mut job = Job::new(ranks, windows);
            let Run { updates, window, strata } = job.run();
            let (dearest, median) = (updates[updates.len() - 1], updates[updates.len() / 2]);
            println!(
                "{:<10} {ranks:>9} {:>8.2} {:>8.2} {:>8.2}   {name:<14} {strata}",
                "",
                median / 1e3,
                dearest / 1e3,
                window / 1e3
            );
            assert!(window <= 200_000.0, "{ranks} ranks, {name}: a window takes {window} ns");
            assert!(name != "wait times" || strata > 1, "{ranks} ranks: two classes are one stratum");
        }
    }
}

fn windows(next: impl FnMut() -> Vec<Total>) -> Vec<Vec<Total>> {
    std::iter::repeat_with(next).take(WINDOWS).collect()
}

struct Job {
    plan: Plan,
    shape: MessageLayout,
    divisions: Stratifications,
    windows: Vec<Vec<Total>>,
    /// The same summed by cells, without strata.
    census: Vec<CensusWindow>,
    /// Ranks whose observations go up.
    sampled: Vec<Rank>,
    /// Divisions that were sent, the newest last: the stratum of every rank, and the sums of every window.
    known: Vec<(Stratification, Vec<u8>, Vec<Vec<StratumSums>>)>,
}

struct Run {
    /// Ascending, nanoseconds.
    updates: Vec<f64>,
    /// The dearest window of any.
    window: f64,
    /// Most strata of a directive.
    strata: usize,
}

impl Job {
    fn new(ranks: u32, windows: Vec<Vec<Total>>) -> Self {
        let mut config = super::plan(ranks, 1, super::CENSUS).config;
        config.strata.push(GroupStrata { group: "group0".into(), k: None });
        let plan = Plan::new(config, ranks).expect("groups inside the job");
        let shape = MessageLayout::of(&plan);
        let divisions = shape.divisions.clone().expect("a group to be divided");
        let cells: Vec<usize> = (0..ranks).map(|rank| shape.cell_of(&plan, Rank(rank))).collect();
        let mut summary = Summary::empty(&plan);
        let census = windows.iter().map(|totals| {
            let mut census = CensusWindow::new(&shape, WindowId(0), WindowId(0));
            for (&cell, &total) in cells.iter().zip(totals) {
                summary.metrics.fill(of_rank(total));
                census.partial.add(&shape, cell, 1, &summary);
                census.reported += 1;
            }
            census
        });
        let census = census.collect();
        let seed = plan.config.sampling.seed;
        let mut order: Vec<(u32, Rank)> =
            (0..ranks).map(|rank| (ampl_core::permute::order(seed, Rank(rank)), Rank(rank))).collect();
        order.sort_unstable();
        let sampled = order.iter().take(divisions.sample.into()).map(|&(_, rank)| rank).collect();
        Self { plan, shape, divisions, windows, census, sampled, known: Vec::new() }
    }

    /// Window `number` as it arrives at the root.
    fn window(&self, number: u64) -> CensusWindow {
        let index = number as usize % WINDOWS;
        let mut window = self.census[index].clone();
        (window.first_window, window.last_window) = (WindowId(number), WindowId(number));
        let known = self.known.iter().rev().find(|(division, ..)| division.from.0 <= number);
        let mut summary = Summary::empty(&self.plan);
        let sums = &mut window.partial.divided[0];
        if let Some((division, _, strata)) = known {
            (sums.number, sums.strata) = (division.number, strata[index].clone());
        }
        for &rank in &self.sampled {
            summary.metrics.fill(of_rank(self.windows[index][rank.0 as usize]));
            let stratum = known.map(|(_, labels, _)| labels[rank.0 as usize]);
            let seed = self.plan.config.sampling.seed;
            sums.sample(sums.number, Sampled::of(&self.divisions, seed, rank, stratum, &summary));
        }
        window
    }

    /// Puts every rank into its stratum of a division that it has not heard of.
    fn learn(&mut self, directive: &Directive) {
        let Some(division) = directive.divided.first().and_then(|divided| divided.newest.clone()) else {
            return;
        };
        if self.known.last().is_some_and(|(last, ..)| last.number == division.number) {
            return;
        }
        let guides = self.divisions.guides.len();
        let wanted: Vec<usize> = division.windows().map(|window| window as usize % WINDOWS).collect();
        let label = |rank: usize| {
            let seen = |&window: &usize| {
                let total = self.windows[window][rank];
                (total.n as f64, total.y)
            };
            let seen: Vec<(f64, f64)> = wanted.iter().map(seen).collect();
            division.reference.stratum_of(&vec![seen; guides], &Metric::Euclidean) as u8
        };
        let labels: Vec<u8> = (0..self.windows[0].len()).map(label).collect();
        let strata = labels.iter().max().map_or(0, |&most| usize::from(most) + 1);
        let sums = self.windows.iter().map(|totals| {
            let none = StratumSums { guides: vec![Moments::default(); guides], ..StratumSums::default() };
            let mut sums = vec![none; strata];
            for (&label, total) in labels.iter().zip(totals) {
                let stratum = &mut sums[usize::from(label)];
                stratum.ranks += 1;
                let own = Moments::of_rank_windows(1, total.n, total.y, 0.0, 0.0, 0.0);
                stratum.guides.iter_mut().for_each(|guide| guide.merge(&own));
            }
            sums
        });
        let sums = sums.collect();
        self.known.push((division, labels, sums));
        if self.known.len() > 2 {
            self.known.remove(0);
        }
    }

    fn run(&mut self) -> Run {
        let interval = u64::from(self.plan.config.sampling.windows_per_update);
        // Ranks' messages depend on the directives that they get; they are the same in every run.
        let mut policy = Policy::new(&self.plan);
        policy.first_directive();
        let mut given = Vec::new();
        let mut most = 1;
        for number in 0..UPDATES * interval {
            let window = self.window(number);
            if let Some((directive, decisions)) = policy.end_window(&window) {
                self.learn(&directive);
                most = most.max(decisions.len());
            }
            given.push(window);
        }
        let mut updates = vec![f64::INFINITY; UPDATES as usize];
        let mut each = vec![f64::INFINITY; given.len()];
        let mut bytes = Vec::new();
        for _ in 0..RUNS {
            let mut policy = Policy::new(&self.plan);
            policy.first_directive();
            for (update, least) in updates.iter_mut().enumerate() {
                let first = update * interval as usize;
                let mut all = 0.0;
                for (window, least) in given[first..].iter().zip(&mut each[first..]).take(interval as usize) {
                    let spent = timed(|| {
                        if let Some((directive, _)) = black_box(policy.end_window(window)) {
                            bytes.clear();
                            DownMessage::Directive(directive).encode(&self.shape, &mut bytes);
                        }
                    });
                    all += spent;
                    *least = spent.min(*least);
                }
                *least = all.min(*least);
            }
        }
        assert!(bytes.len() <= 4096, "a directive takes {} bytes", bytes.len());
        updates.sort_by(f64::total_cmp);
        Run { updates, window: each.into_iter().fold(0.0, f64::max), strata: most }
    }
}

fn of_rank(total: Total) -> MetricSummary {
    let mean = total.y / total.n.max(1) as f64;
    MetricSummary { n: total.n, sum: total.y, sum_sq: mean * total.y, min: mean, max: mean }
}
