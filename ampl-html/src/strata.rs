//! Ranks that behave alike: configured groups, or strata found in the run's own windows.

use std::collections::BTreeSet;
use std::convert::Infallible;

use ampl_analysis::efficiency::{RunTimes, run_times};
use ampl_analysis::strata::{Request, Stratification};
use ampl_analysis::what_if::Recorded;
use ampl_client::simulate::{Job, Window};
use ampl_core::plan::Plan;
use ampl_core::units::{Rank, RankSet};
use ampl_reader::Trace;
use ampl_report::human::{digits, percent};
use serde::Serialize;

/// Most rank-windows in which strata are searched: a report must not take minutes.
const MOST: u64 = 2_000_000;
/// Most ranks among which they are searched.
const RANKS: u32 = 1024;

/// A stratum, and what its ranks do.
#[derive(Clone, Debug, Serialize)]
pub struct Stratum {
    /// Its name.
    pub name: String,
    /// Its ranks.
    pub ranks: String,
    /// Number of its ranks.
    pub population: u64,
    /// Its hosts.
    pub hosts: String,
    /// Share of its ranks' time that computes.
    pub compute: String,
    /// Mean compute time over that of all ranks.
    pub over_mean: String,
    /// Share of its ranks' time that is in MPI.
    pub mpi: String,
}

/// Strata of a run, and how they came about.
#[derive(Debug, Default, Serialize)]
pub struct Strata {
    /// The strata.
    pub strata: Vec<Stratum>,
    /// Words about their origin.
    pub about: String,
    /// Number of the stratum of each rank of the job.
    #[serde(skip)]
    pub of_rank: Vec<usize>,
}

impl Strata {
    /// Configured groups where there are several; else the strata that pay, or one for all.
    pub fn of(trace: &Trace, plan: Option<&Plan>) -> Self {
        let all = || vec![("all".to_owned(), RankSet::range(0, trace.run.ranks.saturating_sub(1)))];
        let (sets, about) = match plan {
            Some(plan) if plan.groups.len() > 1 => {
                let groups = plan.groups.iter().map(|group| (group.name.clone(), group.members.clone()));
                (groups.collect(), "the groups of the job file".to_owned())
            }
            Some(plan) => {
                found(trace, plan).unwrap_or_else(|| (all(), "all ranks; strata were not searched".into()))
            }
            None => (all(), "all ranks; the settings of the run are not known".into()),
        };
        let times = run_times(trace);
        let mut of_rank = vec![0; trace.run.ranks as usize];
        for (number, (_, ranks)) in sets.iter().enumerate() {
            ranks.iter().for_each(|rank| {
                if let Some(of) = of_rank.get_mut(rank.0 as usize) {
                    *of = number
                }
            });
        }
        let strata = sets.iter().map(|(name, ranks)| stratum(trace, &times, name, ranks)).collect();
        Self { strata, about, of_rank }
    }
}

fn stratum(trace: &Trace, times: &RunTimes, name: &str, ranks: &RankSet) -> Stratum {
    let sum = |of: &dyn Fn(u32) -> bool| {
        let own = times.times.iter().filter(|times| of(times.rank));
        own.fold((0.0, 0.0, 0.0), |sum: (f64, f64, f64), times| {
            (sum.0 + times.compute, sum.1 + times.mpi, sum.2 + 1.0)
        })
    };
    let (compute, mpi, count) = sum(&|rank| ranks.contains(Rank(rank)));
    let (all, _, whole) = sum(&|_| true);
    let share =
        |part: f64| if compute + mpi > 0.0 { percent(part / (compute + mpi)) } else { "not known".into() };
    let mean = (compute / count) / (all / whole);
    let hosts: BTreeSet<&str> =
        ranks.iter().filter_map(|rank| trace.rank(rank.0)).map(|rank| rank.process.host.as_str()).collect();
    let more = if hosts.len() > 4 { format!(" and {} more", hosts.len() - 4) } else { String::new() };
    Stratum {
        name: name.to_owned(),
        ranks: ranks.to_string(),
        population: ranks.len(),
        hosts: hosts.into_iter().take(4).collect::<Vec<_>>().join(", ") + &more,
        compute: share(compute),
        over_mean: if mean.is_finite() { digits(mean) } else { "not known".into() },
        mpi: share(mpi),
    }
}

type Named = Vec<(String, RankSet)>;

/// The strata that pay, by the windows of `trace`.
fn found(trace: &Trace, plan: &Plan) -> Option<(Named, String)> {
    // Of more, windows evenly over the run.
    let step = trace.windows().saturating_mul(plan.ranks.into()).div_ceil(MOST).max(1);
    if plan.ranks > RANKS || !trace.damage.is_empty() || plan.leaves_out_summaries() || plan.ranks < 2 {
        return None;
    }
    let job = Job::new(plan.clone());
    if job.guides.is_empty() {
        return None;
    }
    let each = |take: &mut dyn FnMut(&Window)| -> Result<(), Infallible> {
        let (mut recorded, mut window) = (Recorded::new(trace, &job), Window::default());
        for number in (0..trace.windows()).step_by(step as usize) {
            recorded.fill(number, &mut window);
            take(&window);
        }
        Ok(())
    };
    let division = Stratification::of(&Request::default(), &job, &[], each).ok()?;
    let strata = division.strata.iter().map(|stratum| (stratum.name.clone(), stratum.ranks.clone()));
    let part = if step > 1 { format!(" in one of {step} windows") } else { String::new() };
    let about = match division.strata.len() {
        1 => format!(
            "one, since no part of the ranks is worth sampling apart{part}; ranks may differ nevertheless, see their bars"
        ),
        several => {
            format!(
                "{several} strata of ranks that behave alike, found by {}{part}",
                division.guides.join(" and ")
            )
        }
    };
    Some((strata.collect(), about))
}
