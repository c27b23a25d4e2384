//! Cost of a whole update under the default selection, with retrospective decisions: microseconds by the number of
//! ranks and groups, and bytes of what goes down the tree.
//!
//! Per window of the interval the census comes in, then the ranks by bin, and the decision goes out, encoded; once per
//! interval so do the directive and the reference by which ranks are to bin themselves. What ranks do for that, binning
//! themselves, is not in it.

use ampl_client::Policy;
use ampl_core::config::Selection;
use ampl_core::message::{CensusWindow, DownMessage, MessageLayout, MetricSummary, Reference, Summary};
use ampl_core::plan::Plan;
use ampl_core::units::{Rank, WindowId};
use ampl_testkit::{Kind, Population};

use super::{Cost, UPDATES, WINDOWS, numbered, timed};

const RANKS: [u32; 4] = [1_000, 10_000, 100_000, 1_000_000];
const GROUPS: [u32; 4] = [1, 2, 8, 64];

/// Prints them; at most 200 us an update, however many ranks there are, and messages of one size.
pub fn measure() {
    println!(
        "\n{:<10} {:>9} {:>7} {:>20}   {:>9}   {:>9} {:>8}   {:>8}",
        "whole", "ranks", "groups", "update of 4 windows,", "dearest", "directive", "decision", "ranks"
    );
    println!("{:<28} {:>20}   {:>9}   {:>18}   {:>8}", "", "us, min  median", "window", "bytes", "kept");
    GROUPS.into_iter().for_each(of_groups);
}

fn of_groups(groups: u32) {
    let (mut sizes, mut costs) = (Vec::new(), Vec::new());
    for ranks in RANKS {
        let Row { update, window, directive, decision, kept } = Job::new(ranks, groups).run();
        println!(
            "{:<10} {ranks:>9} {groups:>7} {:>10.2} {:>9.2}   {:>9.2}   {directive:>9} {decision:>8}   {kept:>8.0}",
            "",
            update.0 / 1e3,
            update.1 / 1e3,
            window / 1e3,
        );
        assert!(groups > 1 || update.0 <= 200_000.0, "{ranks} ranks: an update takes {} ns", update.0);
        assert!(directive.max(decision) <= 4096, "{ranks} ranks: {directive} and {decision} bytes");
        assert!(kept >= 2.0 && kept < f64::from(ranks), "{ranks} ranks: {kept} are kept");
        sizes.push((directive, decision));
        costs.push(update.0);
    }
    let (least, most) = costs.iter().fold((f64::INFINITY, 0.0), |(a, b), &cost| (cost.min(a), cost.max(b)));
    assert!(most < 2.0 * least, "costs depend on ranks: {costs:?} ns");
    assert!(sizes.iter().all(|size| *size == sizes[0]), "sizes depend on ranks: {sizes:?}");
}

struct Row {
    update: Cost,
    /// The dearest window, each by the smallest of its times; nanoseconds.
    window: f64,
    /// Bytes.
    directive: usize,
    decision: usize,
    /// Ranks of a window, mean.
    kept: f64,
}

struct Job {
    plan: Plan,
    shape: MessageLayout,
    /// The group of every rank.
    groups: Vec<usize>,
    /// By window and rank, the totals of the two guides.
    totals: Vec<Vec<[(u64, f64); 2]>>,
    census: Vec<CensusWindow>,
    /// Windows by bin, as long as they are binned by the same reference.
    binned: Vec<Option<(Reference, CensusWindow)>>,
}

impl Job {
    fn new(ranks: u32, groups: u32) -> Self {
        let mut config = super::plan(ranks, groups, super::CENSUS).config;
        config.sampling.selection = Selection::Retrospective;
        let plan = Plan::new(config, ranks).expect("groups inside the job");
        let shape = MessageLayout::of(&plan);
        let guides = &shape.retrospective.as_ref().expect("windows are decided when they are over").guides;
        assert_eq!(guides.len(), 2, "the guides of a job without a configuration");
        let mut first = Population::new(Kind::Heterogeneous, ranks as usize, 1);
        // The second guide has nothing to do with the first one.
        let mut second = Population::new(Kind::LogNormal, ranks as usize, 2);
        let window = |_| {
            let pairs = first.next_window().into_iter().zip(second.next_window());
            pairs.map(|(one, two)| [(1, one.y), (1, two.y)]).collect()
        };
        let totals: Vec<Vec<[(u64, f64); 2]>> = (0..WINDOWS).map(window).collect();
        let cells: Vec<usize> = (0..ranks).map(|rank| shape.cell_of(&plan, Rank(rank))).collect();
        let mut summary = Summary::empty(&plan);
        let census = totals.iter().map(|totals| {
            let mut census = CensusWindow::new(&shape, WindowId(0), WindowId(0));
            for (&cell, pair) in cells.iter().zip(totals) {
                summary.metrics.fill(MetricSummary::one(1.0));
                for (&guide, &(_, y)) in guides.iter().zip(pair) {
                    summary.metrics[usize::from(guide)] = MetricSummary::one(y);
                }
                census.partial.add(&shape, cell, 1, &summary);
                census.reported += 1;
            }
            census
        });
        let census = census.collect();
        let groups =
            (0..ranks).map(|rank| shape.cells[shape.cell_of(&plan, Rank(rank))].group.into()).collect();
        Self { plan, groups, totals, census, binned: vec![None; WINDOWS as usize], shape }
    }

    /// Ranks of window `number` by bin, as they arrive at the root.
    fn binned(&mut self, number: u64, reference: &Reference) -> CensusWindow {
        let Self { shape, groups, totals, binned, .. } = self;
        let index = (number % WINDOWS) as usize;
        let known = binned[index].take().filter(|(by, _)| by.groups == reference.groups);
        let (_, window) = binned[index].insert(known.unwrap_or_else(|| {
            let mut window = CensusWindow::binned(shape, WindowId(number), WindowId(number));
            let bins = shape.retrospective.as_ref().map_or(0, |second| second.bins);
            for (&group, pair) in groups.iter().zip(&totals[index]) {
                let how = reference.groups[group].as_ref().expect("there was a window before");
                let (bin, points) = how.stand(bins, *pair);
                window.partial.binned[group].add(bin, &points);
                window.reported += 1;
            }
            (reference.clone(), window)
        }));
        (window.first_window, window.last_window) = (WindowId(number), WindowId(number));
        window.clone()
    }

    fn run(&mut self) -> Row {
        let interval = u64::from(self.plan.config.sampling.windows_per_update);
        let mut policy = Policy::new(&self.plan);
        policy.first_directive();
        let mut references: Vec<Reference> = Vec::new();
        let mut updates = Vec::new();
        let mut least = vec![f64::INFINITY; WINDOWS as usize];
        let (mut directive, mut decision) = (0, 0);
        let (mut kept, mut judged) = (0, 0u64);
        let mut bytes = Vec::new();
        for update in 0..UPDATES {
            let mut all = 0.0;
            for (place, number) in (update * interval..(update + 1) * interval).enumerate() {
                let census = numbered(&self.census, number);
                let (mut decided, mut reference) = (None, None);
                let mut spent = timed(|| {
                    decided = policy.end_window(&census);
                    if let Some((decided, _)) = &decided {
                        bytes.clear();
                        DownMessage::Directive(decided.clone()).encode(&self.shape, &mut bytes);
                        directive = directive.max(bytes.len());
                    }
                    reference = policy.reference();
                    if let Some(reference) = &reference {
                        bytes.clear();
                        DownMessage::Reference(reference.clone()).encode(&self.shape, &mut bytes);
                    }
                });
                assert_eq!(
                    decided.is_some(),
                    place as u64 + 1 == interval,
                    "the directive ends the interval"
                );
                references.retain(|reference| reference.last_window.0 >= number);
                references.extend(reference);
                let by = references.iter().find(|reference| reference.first_window.0 <= number);
                let binned = self.binned(number, &by.expect("references come ahead").clone());
                let mut said = None;
                spent += timed(|| {
                    said = policy.judge(&binned);
                    if let Some((said, _)) = &said {
                        bytes.clear();
                        DownMessage::Retrospective(said.clone()).encode(&self.shape, &mut bytes);
                        decision = decision.max(bytes.len());
                    }
                });
                let (_, decisions) = said.expect("every rank has been told how to bin itself");
                kept += decisions.iter().map(|decision| u64::from(decision.size)).sum::<u64>();
                judged += 1;
                let least = &mut least[(number % WINDOWS) as usize];
                *least = spent.min(*least);
                all += spent;
            }
            updates.push(all);
        }
        let window = least.into_iter().fold(0.0, f64::max);
        Row { update: Cost::of(updates), window, directive, decision, kept: kept as f64 / judged as f64 }
    }
}
