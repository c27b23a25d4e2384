//! Time lost to imbalance and MPI, and the kind of imbalance.

use std::collections::BTreeMap;

use ampl_core::units::{Rank, RankSet};
use rustc_hash::FxHashSet;
use serde::{Serialize, Serializer};

use crate::window_times::Times;

/// Share of the imbalance over the whole run from which it counts as persistent, in (0, 1).
const LASTS: f64 = 0.5;
/// Least correlation of ranks' compute time in successive windows at which the imbalance drifts: chance in what ranks
/// compute makes it smaller, the more of it there is.
const SLOW: f64 = 0.25;
/// The same in standard deviations of the correlation of what does not depend on the window before.
const BY_CHANCE: f64 = 3.0;
/// Part of what ranks compute beyond the mean that is in one part of the run, if the imbalance is.
const HELD: f64 = 0.9;
/// Longest part of the run that is less than the run.
const ONE_PART: f64 = 2.0 / 3.0;
/// Share of the run, or of its part, in which ranks compute more by half of what they do on average there, if they do
/// throughout.
const OFTEN: f64 = 0.5;
/// Parts of the run that are compared; windows are joined where there are more.
const PARTS: usize = 256;
/// Least number of windows that tell a part of the run from all of it.
const FEWEST: usize = 4;
/// Compute time over the mean from which the ranks of a node differ from the others.
const APART: f64 = 1.05;

/// Time of an average rank that does not compute, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Lost {
    /// Length of the run without the time that ampl took of the longest rank.
    pub run_ns: f64,
    /// Time by which it exceeds the mean compute time because ranks compute unequally, in each window or over the
    /// run.
    pub imbalance_ns: f64,
    /// The rest: MPI would take it with balanced ranks, too.
    pub mpi_ns: f64,
    /// How near `imbalance_ns` and `mpi_ns` are to the truth.
    pub bound: Bound,
}

/// How near the two parts of the lost time are to the truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Bound {
    /// Imbalance costs at least as much, MPI at most: ranks that take turns within a window are balanced in it.
    #[serde(rename = "at least")]
    AtLeast,
    /// Windows end where a marker does, one rank's at other times than another's: imbalance may be less or more.
    Estimate,
}

/// Course of the imbalance in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Course {
    /// The same ranks compute more throughout.
    Persistent,
    /// The same ranks compute more in one part of the run, and as much as others in the rest.
    Phase,
    /// The same ranks compute more now and then.
    Recurrent,
    /// Ranks that compute more in a window do so in the next, but not over the run.
    Drift,
    /// Other ranks compute more in every window.
    Turns,
}

/// Ranks that compute more than others, and when.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Imbalance {
    /// Course in time.
    pub course: Course,
    /// The ranks that compute most over the run.
    #[serde(serialize_with = "as_text")]
    pub ranks: RankSet,
    /// The host that has these ranks and no others, or whose ranks take turns.
    pub host: Option<String>,
    /// Their compute time over the mean of all ranks; in the windows of `phase`, where there is one.
    pub over_mean: f64,
    /// First and last window of the part of the run in which they compute more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<[u64; 2]>,
    /// Windows in which each of them, or their host, computes more than the mean; of the least frequent one.
    pub windows: u64,
    /// Windows that all ranks measured.
    pub of_windows: u64,
    /// The mean over the windows of the greatest compute time over the mean.
    pub most_over_mean: f64,
    /// Correlation of what ranks compute beyond their own mean, in windows that follow each other.
    pub correlation: Option<f64>,
}

fn as_text<S: Serializer>(ranks: &RankSet, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(ranks)
}

fn mean(times: &[Times]) -> f64 {
    times.iter().map(|times| times.compute).sum::<f64>() / times.len().max(1) as f64
}

fn most(times: &[Times]) -> f64 {
    times.iter().map(|times| times.compute).fold(0.0, f64::max)
}

impl Imbalance {
    /// Lost time and imbalance of ranks with these times in the `run`, and in the numbered `windows` that all of
    /// them measured.
    ///
    /// With an ideal network the length of a run is the sum of its windows' greatest compute times, or more where ranks
    /// wait for each other several times in a window; the rest is MPI's. Where a call ends windows they are not of one
    /// time on all ranks, and the sum may exceed the run. So imbalance is at most the run's length less the mean
    /// compute time, and at least that of the run's totals.
    pub fn of<'a>(
        run: &[Times],
        numbered: &[(u64, &[Times])],
        bound: Bound,
        host: impl Fn(u32) -> &'a str,
    ) -> Option<(Lost, Option<Self>)> {
        let run_ns = run.iter().map(Times::of_program).fold(0.0, f64::max);
        let (mean_ns, most_ns) = (mean(run), most(run));
        if run_ns <= 0.0 || most_ns <= 0.0 {
            return None;
        }
        let windows: Vec<&[Times]> = numbered.iter().map(|(_, times)| *times).collect();
        let windows = &windows[..];
        // A rank that had ended computes nothing: it is missing in a window's times, and counts.
        let count = run.len() as f64;
        let means: Vec<f64> = windows.iter().map(|times| mean(times) * times.len() as f64 / count).collect();
        let waited: f64 = windows.iter().map(|times| most(times)).sum();
        let in_turn = waited.clamp(most_ns, run_ns.max(most_ns));
        let lost =
            Lost { run_ns, imbalance_ns: in_turn - mean_ns, mpi_ns: (run_ns - in_turn).max(0.0), bound };
        if run.len() < 2 || mean_ns <= 0.0 || lost.imbalance_ns <= 0.0 {
            return Some((lost, None));
        }
        let lasting = (most_ns - mean_ns) / (waited.max(most_ns) - mean_ns);
        let ratios = windows.iter().zip(&means).filter(|(_, mean)| **mean > 0.0);
        let ratios: Vec<f64> = ratios.map(|(times, mean)| most(times) / mean).collect();
        let (correlation, pairs) = correlation(windows).map_or((None, 0), |(of, pairs)| (Some(of), pairs));
        let above = |of: &dyn Fn(u32) -> bool| -> BTreeMap<u32, u64> {
            let mut above = BTreeMap::new();
            for (times, mean) in windows.iter().zip(&means) {
                for of in times.iter().filter(|times| of(times.rank)) {
                    *above.entry(of.rank).or_default() += u64::from(of.compute > *mean);
                }
            }
            above
        };
        let mut found = Self {
            course: Course::Persistent,
            ranks: RankSet::default(),
            host: None,
            over_mean: most_ns / mean_ns,
            phase: None,
            windows: 0,
            of_windows: windows.len() as u64,
            most_over_mean: ratios.iter().sum::<f64>() / ratios.len().max(1) as f64,
            correlation,
        };
        // Ranks nearer to the greatest than to the mean.
        let set: Vec<&Times> =
            run.iter().filter(|times| times.compute > mean_ns + (most_ns - mean_ns) / 2.0).collect();
        found.ranks = RankSet::from_iter(set.iter().map(|times| times.rank));
        let members: FxHashSet<u32> = set.iter().map(|times| times.rank).collect();
        if windows.is_empty() || lasting >= LASTS {
            let counts = above(&|rank| members.contains(&rank));
            found.over_mean = set.iter().map(|times| times.compute).sum::<f64>() / set.len() as f64 / mean_ns;
            found.windows = counts.values().copied().min().unwrap_or(0);
            let of = host(set[0].rank);
            let all = run.iter().filter(|times| host(times.rank) == of).count();
            let alone = set.iter().all(|times| host(times.rank) == of) && set.len() == all;
            found.host = (alone && set.len() > 1 && all < run.len()).then(|| of.to_owned());
            return Some((lost, Some(found.in_time(numbered, &means))));
        }
        if let Some((of, over_mean, counted)) = slow_host(run, windows, &host) {
            let own = run.iter().map(|times| times.rank).filter(|&rank| host(rank) == of);
            let (ranks, host) = (RankSet::from_iter(own), Some(of.to_owned()));
            let found = Self { ranks, host, over_mean, windows: counted, ..found };
            return Some((lost, Some(found.in_time(numbered, &means))));
        }
        let least = SLOW.max(BY_CHANCE / (pairs.max(1) as f64).sqrt());
        found.course = if correlation.is_some_and(|of| of >= least) { Course::Drift } else { Course::Turns };
        found.windows = above(&|rank| members.contains(&rank)).values().copied().min().unwrap_or(0);
        Some((lost, Some(found)))
    }
}

impl Imbalance {
    /// The same with the course of what its ranks compute beyond the `means` of these windows.
    fn in_time(mut self, numbered: &[(u64, &[Times])], means: &[f64]) -> Self {
        let own = |times: &[Times]| -> f64 {
            let own = times.iter().filter(|times| self.ranks.contains(Rank(times.rank)));
            own.map(|times| times.compute).sum::<f64>() / self.ranks.len().max(1) as f64
        };
        let own: Vec<f64> = numbered.iter().map(|(_, times)| own(times)).collect();
        let beyond: Vec<f64> = own.iter().zip(means).map(|(own, mean)| own - mean).collect();
        let each = beyond.len().div_ceil(PARTS).max(1);
        let parts: Vec<f64> = beyond.chunks(each).map(|part| part.iter().sum()).collect();
        let all: f64 = parts.iter().sum();
        if parts.len() < FEWEST || all <= 0.0 {
            return self;
        }
        let (from, until) = shortest(&parts, HELD * all);
        // True where they compute more in most of these parts.
        let is_often = |parts: &[f64]| {
            let usual = parts.iter().sum::<f64>() / parts.len() as f64;
            parts.iter().filter(|&&part| part > 0.5 * usual).count() as f64 >= OFTEN * parts.len() as f64
        };
        if (until - from) as f64 <= ONE_PART * parts.len() as f64 && is_often(&parts[from..until]) {
            let windows = from * each..(until * each).min(own.len());
            let sum = |of: &[f64]| of[windows.clone()].iter().sum::<f64>();
            self.course = Course::Phase;
            self.over_mean = sum(&own) / sum(means);
            self.phase = Some([numbered[windows.start].0, numbered[windows.end - 1].0]);
        } else if !is_often(&parts) {
            self.course = Course::Recurrent;
        }
        self
    }
}

/// The shortest span of `parts` with at least this sum; of several the first.
fn shortest(parts: &[f64], least: f64) -> (usize, usize) {
    let mut found = (0, parts.len());
    for from in 0..parts.len() {
        let mut sum = 0.0;
        for (at, part) in parts.iter().enumerate().skip(from).take(found.1 - found.0 - 1) {
            sum += part;
            if sum >= least {
                found = (from, at + 1);
                break;
            }
        }
    }
    found
}

/// The host whose ranks compute more on average throughout, though they may take turns: its name, its mean compute time
/// over that of all, and in how many windows it was above the mean.
fn slow_host<'a>(
    run: &[Times],
    windows: &[&[Times]],
    host: &impl Fn(u32) -> &'a str,
) -> Option<(&'a str, f64, u64)> {
    let means = |times: &[Times]| {
        let mut sums: BTreeMap<&'a str, (f64, f64)> = BTreeMap::new();
        for times in times {
            let (sum, ranks) = sums.entry(host(times.rank)).or_default();
            (*sum, *ranks) = (*sum + times.compute, *ranks + 1.0);
        }
        sums.into_iter().map(|(host, (sum, ranks))| (host, sum / ranks)).collect::<Vec<_>>()
    };
    let total = means(run);
    let (of, most) = total.iter().copied().reduce(|a, b| if b.1 > a.1 { b } else { a })?;
    let mean_ns = mean(run);
    let (mut waited, mut counted) = (0.0, 0);
    for times in windows {
        let hosts = means(times);
        waited += hosts.iter().map(|of| of.1).fold(0.0, f64::max);
        counted += u64::from(hosts.iter().any(|&(name, own)| name == of && own > mean(times)));
    }
    let lasts = most - mean_ns >= LASTS * (waited - mean_ns);
    (total.len() > 1 && lasts && most >= APART * mean_ns).then_some((of, most / mean_ns, counted))
}

/// Correlation of what ranks compute in a window with the next, beyond what each computes on average and the window's
/// mean, with the number of pairs that it rests on; `None` of fewer than three windows.
fn correlation(windows: &[&[Times]]) -> Option<(f64, u64)> {
    if windows.len() < 3 {
        return None;
    }
    let mut own: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
    for times in windows {
        let mean = mean(times);
        for of in *times {
            let (sum, count) = own.entry(of.rank).or_default();
            (*sum, *count) = (*sum + of.compute - mean, *count + 1.0);
        }
    }
    let beyond = |times: &[Times]| -> BTreeMap<u32, f64> {
        let mean = mean(times);
        times.iter().map(|of| (of.rank, of.compute - mean - own[&of.rank].0 / own[&of.rank].1)).collect()
    };
    let (mut both, mut first, mut second, mut pairs) = (0.0, 0.0, 0.0, 0);
    let mut before = beyond(windows[0]);
    for times in &windows[1..] {
        let now = beyond(times);
        for (rank, value) in &now {
            if let Some(earlier) = before.get(rank) {
                (both, first, second) =
                    (both + earlier * value, first + earlier * earlier, second + value * value);
                pairs += 1;
            }
        }
        before = now;
    }
    Some((both / (first * second).sqrt(), pairs)).filter(|found| found.0.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Windows of 100 in which rank r of `ranks` computes `compute(window, r)`.
    fn of(windows: u32, ranks: u32, compute: impl Fn(u32, u32) -> f64) -> (Lost, Imbalance) {
        let times = |window: u32| -> Vec<Times> {
            let one = |rank| {
                let compute = compute(window, rank);
                Times { rank, wall: 100.0, mpi: 100.0 - compute, compute, weight: 1.0 }
            };
            (0..ranks).map(one).collect()
        };
        let all: Vec<Vec<Times>> = (0..windows).map(times).collect();
        let sum = |rank: u32| {
            let own = all.iter().map(|window| window[rank as usize]);
            let none = Times { rank, weight: 1.0, ..Times::default() };
            own.fold(none, |sum, of| Times {
                wall: sum.wall + of.wall,
                mpi: sum.mpi + of.mpi,
                compute: sum.compute + of.compute,
                ..sum
            })
        };
        let run: Vec<Times> = (0..ranks).map(sum).collect();
        let windows: Vec<(u64, &[Times])> = (10..).zip(all.iter().map(|window| &window[..])).collect();
        let (lost, imbalance) = Imbalance::of(&run, &windows, Bound::AtLeast, |_| "a").unwrap();
        (lost, imbalance.unwrap())
    }

    /// A pseudo-random number in [0, 1) for a window and rank.
    fn noise(window: u32, rank: u32) -> f64 {
        let mixed =
            (u64::from(window) << 32 | u64::from(rank)).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed >> 40) as f64 / f64::from(1 << 24)
    }

    #[test]
    fn two_slow_ranks_among_noise_are_a_set() {
        let slow = |window, rank| match rank {
            3 | 8 => 60.0 + 30.0 * noise(window, rank),
            _ => 15.0 + if noise(window, rank) < 0.2 { 20.0 } else { 0.0 },
        };
        let (lost, found) = of(60, 12, slow);
        assert_eq!((found.course, found.ranks.to_string().as_str()), (Course::Persistent, "3,8"));
        assert!(
            found.over_mean > 2.5 && found.windows >= 55 && lost.imbalance_ns > lost.mpi_ns,
            "{found:?} {lost:?}"
        );
        assert!((lost.imbalance_ns + lost.mpi_ns) < lost.run_ns);
    }

    #[test]
    fn turns_and_drift_are_told_apart() {
        let turn = |window: u32, rank: u32| if rank == window * 5 % 7 { 90.0 } else { 20.0 };
        assert_eq!(of(70, 7, turn).1.course, Course::Turns);
        let random = |window, rank| if noise(window, rank) < 0.15 { 80.0 } else { 20.0 };
        assert_eq!(of(100, 8, random).1.course, Course::Turns);
        // Each rank has its ten windows.
        let drift = |window: u32, rank: u32| if rank == window / 10 { 90.0 } else { 20.0 };
        assert_eq!(of(70, 7, drift).1.course, Course::Drift);
        // The same on a busy machine: chance adds nearly as much in a quarter of the windows.
        for seed in 0..20 {
            let busy = |window: u32, rank: u32| {
                let noise = if noise(window + 1000 * seed, rank) < 0.25 { 35.0 } else { 0.0 };
                noise + if rank == window / 8 { 50.0 } else { 8.0 }
            };
            assert_eq!(of(48, 6, busy).1.course, Course::Drift, "{seed}");
            let turns = |window: u32, rank: u32| {
                let noise = if noise(window + 1000 * seed, rank) < 0.25 { 35.0 } else { 0.0 };
                noise + if rank == window * 5 % 6 { 50.0 } else { 8.0 }
            };
            assert_eq!(of(48, 6, turns).1.course, Course::Turns, "{seed}");
        }
        // A hump that moves on.
        let hump = |window: u32, rank: u32| {
            20.0 + 70.0 * (-(f64::from(rank) - f64::from(window) / 10.0).powi(2)).exp()
        };
        assert_eq!(of(120, 12, hump).1.course, Course::Drift);
    }

    #[test]
    fn slow_ranks_of_one_part_of_the_run_are_not_slow_throughout() {
        let noisy = |window, rank| 20.0 + 8.0 * noise(window, rank);
        let found = |windows: u32, slow: &dyn Fn(u32) -> bool| {
            let compute =
                |window, rank| noisy(window, rank) + if rank == 2 && slow(window) { 50.0 } else { 0.0 };
            of(windows, 8, compute).1
        };
        for windows in [24, 300, 2000] {
            let first = found(windows, &|window| window < windows / 3);
            let Some([from, to]) = first.phase else { panic!("{first:?}") };
            assert_eq!((first.course, first.ranks.to_string().as_str()), (Course::Phase, "2"));
            let part = (to + 1 - from) as f64 / f64::from(windows);
            assert!(from <= 10 + u64::from(windows) / 20 && (0.25..0.36).contains(&part), "{from} {to}");
            assert!((2.0..3.0).contains(&first.over_mean), "{first:?}");
            let last = found(windows, &|window| window >= windows / 2);
            assert_eq!(last.course, Course::Phase, "{last:?}");
            assert_eq!(found(windows, &|_| true).course, Course::Persistent);
            // All but the first tenth, as after a start-up.
            assert_eq!(found(windows, &|window| window >= windows / 10).course, Course::Persistent);
        }
        let random = found(300, &|window| noise(window, 99) < 0.2);
        assert_eq!((random.course, random.phase), (Course::Recurrent, None));
        let twice = found(300, &|window| window % 150 < 30);
        assert_eq!((twice.course, twice.ranks.to_string().as_str()), (Course::Recurrent, "2"));
    }

    #[test]
    fn turns_within_windows_make_imbalance_a_lower_bound() {
        // In each of the 20 steps of a window another rank computes 9, the others 1.
        let naive = 60.0 * 20.0 * 9.0;
        let (run, windows): (Vec<Times>, Vec<Vec<Times>>) = {
            let one = |rank, count: f64| {
                let (compute, wall) = (count * (4.0 * 5.0 * 1.0 + 5.0 * 8.0), count * 20.0 * 10.0);
                Times { rank, wall, mpi: wall - compute, compute, weight: 1.0 }
            };
            let all = |count| (0..4).map(|rank| one(rank, count)).collect();
            (all(60.0), vec![all(1.0); 60])
        };
        let windows: Vec<(u64, &[Times])> = (0..).zip(windows.iter().map(|window| &window[..])).collect();
        let (lost, _) = Imbalance::of(&run, &windows, Bound::AtLeast, |_| "a").unwrap();
        let truth = naive - run[0].compute;
        assert!(lost.imbalance_ns <= truth && lost.mpi_ns >= lost.run_ns - naive, "{lost:?} {truth}");
        assert_eq!(lost.bound, Bound::AtLeast);
    }

    #[test]
    fn windows_that_overlap_cost_no_more_than_the_run() {
        // Rank r's windows are as long as it computes: added up over windows the longest exceed the run.
        let compute = |window: u32, rank: u32| if noise(window, rank) < 0.3 { 50.0 } else { 10.0 };
        let times = |window: u32| -> Vec<Times> {
            let of = |rank| {
                let compute = compute(window, rank);
                Times { rank, wall: compute, compute, weight: 1.0, ..Times::default() }
            };
            (0..6).map(of).collect()
        };
        let all: Vec<Vec<Times>> = (0..50).map(times).collect();
        let windows: Vec<(u64, &[Times])> = (0..).zip(all.iter().map(|window| &window[..])).collect();
        let sums: Vec<f64> = (0..6).map(|rank| all.iter().map(|window| window[rank].compute).sum()).collect();
        let run_ns = sums.iter().copied().fold(0.0, f64::max) * 1.2;
        let run: Vec<Times> = sums
            .iter()
            .enumerate()
            .map(|(rank, &compute)| Times {
                rank: rank as u32,
                wall: run_ns,
                mpi: run_ns - compute,
                compute,
                weight: 1.0,
            })
            .collect();
        let (lost, _) = Imbalance::of(&run, &windows, Bound::Estimate, |_| "a").unwrap();
        let mean = sums.iter().sum::<f64>() / 6.0;
        assert!((lost.imbalance_ns + lost.mpi_ns + mean - run_ns).abs() < 1e-6 * run_ns, "{lost:?}");
    }
}
