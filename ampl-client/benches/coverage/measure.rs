//! Runs over populations: every one is generated once, and all methods and levels see the same windows.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use ampl_client::simulate::{Census, Job, Run, Score, Window};
use ampl_core::config::{Config, ErrorBound, Event, Group, Metric, Quantity, Target};
use ampl_core::message::MetricSummary;
use ampl_core::plan::Plan;
use ampl_core::units::RankSet;
use ampl_testkit::population::Total;
use ampl_testkit::{Kind, Population};

use super::options::{Level, Method, Options};
use super::undeclared::{Other, Undeclared};

/// Sums over the scored windows of one method, level and population.
#[derive(Clone, Debug, Default)]
pub struct Sums {
    pub windows: f64,
    pub covered: f64,
    pub size: f64,
    pub oracle: f64,
    pub intervals: f64,
    pub intervals_covered: f64,
    pub undeclared: Undeclared,
}

impl Sums {
    fn add(&mut self, score: &Score) {
        self.windows += score.windows.len() as f64;
        self.covered += score.windows.iter().filter(|window| window.covered == Some(true)).count() as f64;
        self.size += score.windows.iter().map(|window| window.size as f64).sum::<f64>();
        self.oracle += score.windows.iter().filter_map(|window| window.oracle).sum::<u64>() as f64;
        self.intervals += score.intervals.len() as f64;
        self.intervals_covered += score.intervals.iter().filter(|covered| **covered).count() as f64;
    }

    fn merge(&mut self, other: &Self) {
        self.windows += other.windows;
        self.covered += other.covered;
        self.size += other.size;
        self.oracle += other.oracle;
        self.intervals += other.intervals;
        self.intervals_covered += other.intervals_covered;
        self.undeclared.merge(&other.undeclared);
    }

    pub fn coverage(&self) -> f64 {
        self.covered / self.windows
    }

    pub fn mean_size(&self) -> f64 {
        self.size / self.windows
    }

    pub fn oracle_size(&self) -> f64 {
        self.oracle / self.windows
    }

    /// m / max(16, SRS oracle).
    pub fn cost(&self) -> f64 {
        self.mean_size() / self.oracle_size().max(16.0)
    }
}

/// One method and level on every population.
pub struct Cell {
    pub method: Method,
    pub level: Level,
    pub populations: Vec<(Kind, Sums)>,
}

/// Every method and level, levels outermost, in the order of `options`.
pub fn measure(options: &Options, ranks: u32) -> Vec<Cell> {
    let pairs: Vec<(Level, Method)> = options
        .levels
        .iter()
        .flat_map(|&level| options.methods.iter().map(move |&method| (level, method)))
        .collect();
    let jobs: Vec<Job> = pairs.iter().map(|&(level, method)| job(options, ranks, level, method)).collect();
    let seeds = options.seeds as usize;
    let tasks = options.populations.len() * seeds;
    let next = AtomicUsize::new(0);
    let empty = vec![vec![Sums::default(); options.populations.len()]; jobs.len()];
    let sums = Mutex::new(empty);
    let work = || {
        loop {
            let task = next.fetch_add(1, Ordering::Relaxed);
            if task >= tasks {
                break;
            }
            let (population, seed) = (task / seeds, options.first_seed + (task % seeds) as u64);
            let scores = run(options, &jobs, options.populations[population], seed);
            // Whole numbers: the order of additions does not matter.
            let mut sums = sums.lock().expect("no thread panics");
            for (sums, score) in sums.iter_mut().zip(&scores) {
                sums[population].merge(score);
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(tasks);
    std::thread::scope(|scope| {
        (1..threads).for_each(|_| drop(scope.spawn(work)));
        work();
    });
    let sums = sums.into_inner().expect("no thread panics");
    let cells = pairs.into_iter().zip(sums);
    cells
        .map(|((level, method), sums)| {
            let populations = options.populations.iter().copied().zip(sums).collect();
            Cell { method, level, populations }
        })
        .collect()
}

fn job(options: &Options, ranks: u32, level: Level, method: Method) -> Job {
    let mut config = Config::default();
    let sampling = &mut config.sampling;
    (sampling.summaries, sampling.selection, sampling.sizing) = method.settings();
    sampling.update_mechanism = options.mechanism;
    sampling.windows_per_update = options.interval;
    config.metrics =
        vec![Metric { quantity: Quantity::Wall, event: Event::Window, guide: true, optional: false }];
    let error = ErrorBound::Relative(level.error);
    config.groups = vec![Group {
        name: "all".into(),
        members: RankSet::range(0, ranks - 1).into(),
        target: Target::Bound { confidence: level.confidence, error },
        pinned: RankSet::default(),
    }];
    Job::new(Plan::new(config, ranks).expect("the group is the job"))
}

/// All jobs over one population; draws and population have seeds of their own.
fn run(options: &Options, jobs: &[Job], kind: Kind, seed: u64) -> Vec<Sums> {
    let ranks = jobs[0].plan.ranks;
    let mut population = Population::new(kind, ranks as usize, seed);
    let begin = |job: &Job| (Run::new(job, seed << 2 | 1).0, Score::new(0, 0), Undeclared::default());
    let mut runs: Vec<_> = jobs.iter().map(begin).collect();
    let mut other = options.undeclared.then(|| Other::new(ranks, seed));
    for number in 0..options.windows {
        let totals = population.next_window();
        let window = Window { number, guides: vec![totals.into_iter().map(summary).collect()] };
        let census = Census::of_jobs(jobs, &window);
        let values = other.as_mut().map(|other| other.next_window(&window.guides[0]));
        for (job, (run, score, undeclared)) in jobs.iter().zip(&mut runs) {
            let (draws, _) = run.draw_all(job, &window, &census);
            score.window(job, number, &census, &draws);
            if let Some(values) = values.as_ref().filter(|_| number >= job.interval()) {
                let kept: Vec<(u32, f64)> =
                    job.chunks().flat_map(|ranks| run.kept(job, &window, ranks)).collect();
                undeclared.window(values, &kept, job);
            }
            run.end_window(job, &window, &census, &draws);
        }
    }
    let score = |(job, (_, mut score, undeclared)): (&Job, (Run, Score, Undeclared))| {
        score.end(job);
        let mut sums = Sums { undeclared, ..Sums::default() };
        sums.add(&score);
        sums
    };
    jobs.iter().zip(runs).map(score).collect()
}

/// Summary of a rank that had observed equal shares of `total`.
fn summary(total: Total) -> MetricSummary {
    let Total { n, y } = total;
    let mean = y / n.max(1) as f64;
    MetricSummary { n, sum: y, sum_sq: mean * y, min: mean, max: mean }
}
