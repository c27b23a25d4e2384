//! Groups that are divided while the job runs, beside other settings that say how many ranks are kept: a budget, and
//! bounds of call sites.

use ampl_core::config::{
    Config, Event, GroupStrata, Mechanism, Members, Metric, Quantity, SiteMatch, SitePolicy, SiteTrace,
    Sizing, Summaries,
};
use ampl_core::draw::{Keep, kept};
use ampl_core::message::{Decision, DecisionLimit, MetricSummary, Summary};
use ampl_core::plan::Plan;
use ampl_core::units::{Rank, WindowId};
use ampl_testkit::population::Total;
use ampl_testkit::{Classes, Kind, Population};

use crate::common::net::Net;
use crate::common::simulated::{from, simulated};
use crate::common::{config, group, relative, undivided};

const INTERVAL: u64 = 4;
const WALL_NS: f64 = 1e8;
const BYTES: u64 = 1000;

/// A guide that is two classes of ranks, in a group of `ranks` that is to be divided.
fn divided(ranks: u32, pinned: &str, error: f64, mechanism: Mechanism) -> Config {
    let mut config = config(Summaries::Census, Sizing::Neyman, mechanism);
    config.groups.push(group("g", &format!("0-{}", ranks - 1), relative(0.90, error), pinned));
    config.strata.push(GroupStrata { group: "g".into(), k: None });
    config
}

struct Ran {
    /// Bytes kept, of every window.
    windows: Vec<u64>,
    decisions: Vec<Decision>,
}

impl Ran {
    fn rate(&self, from: usize) -> f64 {
        let kept: u64 = self.windows[from..].iter().sum();
        kept as f64 / ((self.windows.len() - from) as f64 * WALL_NS * 1e-9)
    }

    /// The last directive's decisions, stratum by stratum.
    fn last(&self) -> Vec<&Decision> {
        let last = self.decisions.iter().map(|row| row.update).max().unwrap_or_default();
        self.decisions.iter().filter(|row| row.update == last).collect()
    }

    fn size(&self) -> u32 {
        self.last().iter().map(|row| row.size).sum()
    }
}

/// A job of real nodes whose windows take 0.1 s, and 1000 bytes where they are kept.
fn live(mut config: Config, budget: Option<f64>, windows: u64) -> Ran {
    config.sampling.budget = budget;
    config.metrics =
        vec![Metric { quantity: Quantity::MpiTime, event: Event::Window, guide: true, optional: false }];
    let Members::Listed(members) = &config.groups[0].members else { panic!("{:?}", config.groups) };
    let ranks = members.len() as u32;
    let mut job = Classes::wait_times().job(ranks as usize, 3);
    let mut net = Net::new(config, ranks, 0, 0, 9);
    let wall = Quantity::Wall.slot().unwrap();
    let mut stored = Vec::new();
    for number in 0..windows {
        let mut bytes = 0;
        for (rank, total) in job.next_window().into_iter().enumerate() {
            let window = WindowId(number);
            let directive = net.nodes[rank].directive(window);
            let keep = directive.map_or(Keep::ALWAYS, |d| kept(&net.plan, Rank(rank as u32), window, d));
            let mut metrics = vec![MetricSummary::one(total.y); net.plan.metrics.len()];
            metrics[wall] = MetricSummary::one(WALL_NS);
            let own = if keep.kept { BYTES } else { 0 };
            let summary =
                Summary { metrics, kept: keep.kept, probability: keep.probability, bytes: own, spent: 0 };
            net.nodes[rank].local(window, window, &summary);
            bytes += own;
        }
        stored.push(bytes);
        (0..40).for_each(|_| net.step());
    }
    Ran { windows: stored, decisions: net.decisions }
}

#[test]
fn a_budget_cuts_the_samples_of_strata() {
    for mechanism in [Mechanism::Subset, Mechanism::Global] {
        // A bound that takes far more than the fewest ranks, so that there is something to be cut.
        let job = || divided(400, "0-3", 0.01, mechanism);
        let free = live(job(), None, 60);
        assert!(free.last().len() >= 2 && free.last().iter().all(|row| row.limit.is_none()));
        let asked = free.rate(40);
        let rich = live(job(), Some(1e9), 60);
        assert_eq!(rich.last().len(), free.last().len());
        assert!(rich.last().iter().all(|row| row.limit.is_none()));
        assert!((f64::from(rich.size()) / f64::from(free.size()) - 1.0).abs() < 0.15);
        for share in [0.8, 0.4] {
            let ran = live(job(), Some(share * asked), 60);
            let rows = ran.last();
            assert!(rows.len() >= 2, "{mechanism:?} {share}: {rows:?}");
            let rate = ran.rate(40);
            let margin = if mechanism == Mechanism::Global { 0.1 } else { 0.02 };
            assert!(rate <= share * asked * (1.0 + margin), "{mechanism:?}: {rate} of {}", share * asked);
            assert!(rate >= share * asked * (0.9 - margin), "{mechanism:?}: {rate} of {}", share * asked);
            for row in &rows {
                assert_eq!(row.limit, Some(DecisionLimit::Budget));
                // Attained errors are those of the smaller samples, and the same for all strata together.
                let wider = row.error_attained.unwrap() / row.error_required.unwrap();
                assert!(wider > 1.05, "{mechanism:?} {share}: {wider}");
                assert_eq!(row.error_attained, rows[0].error_attained);
            }
            let pinned: u64 = rows.iter().map(|row| row.population).sum();
            assert_eq!(pinned, 400);
        }
    }
}

#[test]
fn floors_of_strata_give_way_to_a_budget_and_pinned_ranks_do_not() {
    // Four pinned ranks take 40 kB/s, and the fewest that are drawn 120 kB/s more.
    let job = || divided(400, "0-3", 0.03, Mechanism::Subset);
    let ran = live(job(), Some(100e3), 100);
    assert!(ran.last().len() >= 2, "{:?}", ran.last());
    assert!(ran.rate(20) <= 105e3, "{}", ran.rate(20));
    assert!((5..16).contains(&ran.size()), "{}", ran.size());
    let ran = live(job(), Some(20e3), 100);
    assert_eq!(ran.size(), 4, "{:?}", ran.last());
    assert!(ran.last().iter().all(|row| row.error_attained.is_none()), "nobody was drawn");
}

#[test]
fn strata_hold_the_bound_of_a_site_and_that_of_the_group() {
    const RANKS: usize = 1024;
    let site = |confidence, error| SitePolicy {
        matches: SiteMatch::Function("MPI_Waitsome".into()),
        trace: SiteTrace::On,
        confidence,
        error,
    };
    let run = |sites: Vec<SitePolicy>, strata: bool, seed: u64| {
        let mut config = divided(RANKS as u32, "", 0.08, Mechanism::Subset);
        config.sites = sites;
        if !strata {
            config.strata.clear();
            config = undivided(config);
        }
        // Windows differ by chance, times in MPI_Waitsome by class.
        let mut waits = Classes::wait_times().job(RANKS, seed);
        let mut walls = Population::new(Kind::Normal, RANKS, 100 + seed);
        let guide =
            |totals: Vec<Total>| totals.into_iter().map(|total| MetricSummary::one(total.y)).collect();
        let windows = std::iter::repeat_with(|| [walls.next_window(), waits.next_window()].map(guide).into());
        simulated(&Plan::new(config, RANKS as u32).unwrap(), windows.take(80), seed)
    };
    let (mut one, mut two, mut site_covered, mut group_covered) = (0.0, 0.0, 0.0, 0.0);
    const SEEDS: u64 = 8;
    for seed in 0..SEEDS {
        let tight = || vec![site(Some(0.95), Some(0.04))];
        let (scores, rows) = run(tight(), true, seed);
        let last: Vec<&Decision> = rows.iter().filter(|row| row.update == 80 / INTERVAL).collect();
        assert!(last.len() >= 2, "{seed}: {last:?}");
        for row in &last {
            assert_eq!((row.guide.as_deref(), row.error_required), (Some("mpi.time"), Some(0.04)), "{row:?}");
            assert_eq!(row.event.as_deref(), Some("MPI_Waitsome"));
            assert!(row.error_attained.unwrap() <= 0.04 * (1.0 + 1e-9), "{row:?}");
        }
        assert_eq!(scores.len(), 2);
        let from_strata = 40;
        group_covered += from(&scores[0], from_strata).1 / SEEDS as f64;
        let (size, covered) = from(&scores[1], from_strata);
        (two, site_covered) = (two + size / SEEDS as f64, site_covered + covered / SEEDS as f64);
        one += from(&run(tight(), false, seed).0[1], from_strata).0 / SEEDS as f64;
    }
    println!("{two} of {one} ranks; {site_covered} of the site's windows, {group_covered} of the group's");
    assert!(two <= 0.5 * one, "{two} of {one} ranks");
    assert!(site_covered >= 0.94 && group_covered >= 0.90, "{site_covered} {group_covered}");
    // A bound that is wider than the group's leaves the group's to decide.
    let (_, rows) = run(vec![site(None, Some(0.5))], true, 1);
    let last = rows.iter().rfind(|row| row.update == 80 / INTERVAL).unwrap();
    assert_eq!((last.event.as_deref(), last.error_required), (Some("*"), Some(0.08)), "{last:?}");
}
