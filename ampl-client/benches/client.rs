//! Cost of the client, by the number of ranks and groups: microseconds of one update and bytes of its messages. Neither
//! may depend on the number of ranks.
//!
//! An update is what happens once per update interval: four census windows are observed, the sample is
//! priced, the directive is made and encoded. `message` is what a node above a busy edge pays for one
//! message of a child, and `draw` what a rank pays to find out whether it is kept.

#[path = "client/divided.rs"]
mod divided;
#[path = "client/whole.rs"]
mod whole;
#[path = "client/window_decisions.rs"]
mod window_decisions;

use std::hint::black_box;
use std::time::Instant;

use ampl_client::{Node, Policy};
use ampl_core::config::{Config, DEFAULT_TARGET, Group, Mechanism, Selection, Sizing, Summaries};
use ampl_core::draw::kept;
use ampl_core::message::{
    CensusWindow, Directive, DownMessage, MessageLayout, MetricSummary, Summary, UpMessage,
};
use ampl_core::plan::Plan;
use ampl_core::stats::sizing::FLOOR;
use ampl_core::units::{Rank, RankSet, WindowId};
use ampl_testkit::{Kind, Population};

const RANKS: [u32; 5] = [10, 1_000, 10_000, 100_000, 1_000_000];
const GROUPS: [u32; 3] = [1, 8, 64];
/// Cases that are measured by number of ranks, each with its numbers of groups.
const CASES: [(Case, &[u32]); 3] = [(CENSUS, &GROUPS), (GLOBAL, &GROUPS), (SAMPLED, &[64])];
const CENSUS: Case = Case { name: "subset", summaries: Summaries::Census, mechanism: Mechanism::Subset };
const GLOBAL: Case = Case { name: "global", mechanism: Mechanism::Global, ..CENSUS };
const SAMPLED: Case = Case { name: "sampled", summaries: Summaries::Sampled, ..CENSUS };
/// Updates timed.
const UPDATES: u64 = 400;
/// Different windows that updates are made from.
const WINDOWS: u64 = 8;
/// Draws timed together, as each is shorter than a reading of the clock.
const DRAWS: u64 = 200;

fn main() {
    println!(
        "{:<10} {:>9} {:>7} {:>17} {:>17} {:>15} {:>10} {:>8}",
        "", "ranks", "groups", "update, us", "message, us", "draw, ns", "directive", "up"
    );
    println!(
        "{:<28} {}{:>16} {:>10} {:>8}",
        "",
        "     min  median  ".repeat(2),
        "min  median",
        "bytes",
        "bytes"
    );
    let mut rows = Vec::new();
    for (case, groups) in CASES {
        for &groups in groups {
            for ranks in RANKS.into_iter().filter(|&ranks| ranks >= groups) {
                let row = measure(ranks, groups, case);
                println!("{row}");
                rows.push(row);
            }
        }
    }
    check(&rows);
    divided::measure();
    window_decisions::measure();
    whole::measure();
}

/// Minimum and median, nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Cost(f64, f64);

impl Cost {
    /// Least and median of all times `spent`.
    fn of(mut spent: Vec<f64>) -> Self {
        spent.sort_by(f64::total_cmp);
        Self(spent[0], spent[spent.len() / 2])
    }
}

/// Nanoseconds that `work` took.
fn timed(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_nanos() as f64
}

/// Properties of a plan, apart from its size.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Case {
    name: &'static str,
    summaries: Summaries,
    mechanism: Mechanism,
}

struct Row {
    case: Case,
    ranks: u32,
    groups: u32,
    update: Cost,
    message: Cost,
    draw: Cost,
    directive: usize,
    up: usize,
}

impl std::fmt::Display for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { case: Case { name, .. }, ranks, groups, update, message, draw, directive, up } = self;
        let us = |cost: &Cost| format!("{:>8.2} {:>8.2}", cost.0 / 1e3, cost.1 / 1e3);
        write!(
            f,
            "{name:<10} {ranks:>9} {groups:>7} {} {} {:>7.0} {:>7.0} {directive:>10} {up:>8}",
            us(update),
            us(message),
            draw.0,
            draw.1
        )
    }
}

fn plan(ranks: u32, groups: u32, case: Case) -> Plan {
    let mut config = Config::default();
    config.sampling.summaries = case.summaries;
    config.sampling.selection = Selection::Predictive;
    config.sampling.sizing = Sizing::Neyman;
    config.sampling.update_mechanism = case.mechanism;
    let first = |group: u32| (u64::from(group) * u64::from(ranks) / u64::from(groups)) as u32;
    config.groups = (0..groups)
        .map(|group| Group {
            name: format!("group{group}"),
            members: RankSet::range(first(group), first(group + 1) - 1).into(),
            target: DEFAULT_TARGET,
            pinned: RankSet::default(),
        })
        .collect();
    Plan::new(config, ranks).expect("groups inside the job")
}

/// Windows of all ranks, as they arrive at the root. Where only the sample's sums do, all ranks are in it: which ones
/// are makes no difference to the cost.
fn census(plan: &Plan) -> Vec<CensusWindow> {
    let shape = MessageLayout::of(plan);
    let cells: Vec<usize> = (0..plan.ranks).map(|rank| shape.cell_of(plan, Rank(rank))).collect();
    let mut population = Population::new(Kind::Heterogeneous, plan.ranks as usize, 1);
    let mut summary = Summary::empty(plan);
    summary.kept = !shape.census;
    let window = |window| {
        let mut census = CensusWindow::new(&shape, WindowId(window), WindowId(window));
        for (&cell, total) in cells.iter().zip(population.next_window()) {
            summary.metrics.fill(MetricSummary::one(total.y));
            census.partial.add(&shape, cell, 1, &summary);
            census.reported += 1;
        }
        census
    };
    (0..WINDOWS).map(window).collect()
}

fn measure(ranks: u32, groups: u32, case: Case) -> Row {
    let plan = plan(ranks, groups, case);
    let windows = census(&plan);
    let (update, directive) = updates(&plan, &windows);
    let Directives { last, bytes } = directive;
    let (message, up) = messages(&plan, &windows);
    let draw = draws(&plan, &last);
    Row { case, ranks, groups, update, message, draw, directive: bytes, up }
}

/// The last directive and the bytes of the largest.
struct Directives {
    last: Directive,
    bytes: usize,
}

fn numbered(windows: &[CensusWindow], number: u64) -> CensusWindow {
    let mut window = windows[(number % WINDOWS) as usize].clone();
    (window.first_window, window.last_window) = (WindowId(number), WindowId(number));
    window
}

fn updates(plan: &Plan, windows: &[CensusWindow]) -> (Cost, Directives) {
    let shape = MessageLayout::of(plan);
    let interval = u64::from(plan.config.sampling.windows_per_update);
    let mut policy = Policy::new(plan);
    let mut directives = Directives { last: policy.first_directive().0, bytes: 0 };
    let mut bytes = Vec::new();
    let update = |update: u64| {
        let first = update * interval;
        let windows: Vec<_> = (first..first + interval).map(|number| numbered(windows, number)).collect();
        let mut decided = None;
        let spent = timed(|| {
            decided = windows.iter().filter_map(|window| policy.end_window(window)).last();
            if let Some((directive, _)) = &decided {
                bytes.clear();
                DownMessage::Directive(directive.clone()).encode(&shape, &mut bytes);
            }
        });
        let (directive, decisions) = decided.expect("an interval ends in a decision");
        assert_eq!((directive.update, decisions.len()), (update + 1, plan.groups.len()));
        directives.last = directive;
        directives.bytes = directives.bytes.max(bytes.len());
        spent
    };
    let spent = (0..UPDATES).map(update).collect();
    (Cost::of(spent), directives)
}

/// Cost to a parent of a child's message, taken in, added up and passed on; and the bytes of it.
fn messages(plan: &Plan, windows: &[CensusWindow]) -> (Cost, usize) {
    let shape = MessageLayout::of(plan);
    // A root with as many children as there are; their message is as large as any.
    let mut node = Node::new(plan, Rank(0));
    let children: Vec<Rank> = node.children().collect();
    let silent = Summary::empty(plan);
    let mut bytes = Vec::new();
    let mut message = |number: u64| {
        bytes.clear();
        let window = Some(numbered(windows, number));
        UpMessage { pass: 0, finished: 0, window }.encode(&shape, &mut bytes);
        let spent = timed(|| {
            node.local(WindowId(number), WindowId(number), &silent);
            for &child in &children {
                node.receive_up(child, &bytes).expect("a message of this plan");
            }
            black_box(node.next_census().expect("everyone has reported"));
        });
        (spent / children.len() as f64, bytes.len())
    };
    let (spent, sizes): (Vec<f64>, Vec<usize>) = (0..UPDATES).map(&mut message).unzip();
    (Cost::of(spent), sizes.into_iter().max().unwrap_or_default())
}

fn draws(plan: &Plan, directive: &Directive) -> Cost {
    let draw = |round: u64| {
        // Ranks from everywhere in the job.
        let rank = |draw: u64| Rank((draw * 7919 % u64::from(plan.ranks)) as u32);
        let window = WindowId(round);
        let all = |draw| black_box(kept(plan, rank(draw), window, directive)).kept;
        let count = || (0..DRAWS).filter(|&draw| all(draw)).count();
        timed(|| _ = black_box(count())) / DRAWS as f64
    };
    Cost::of((0..UPDATES / 4).map(draw).collect())
}

/// The limits: an update within 200 us and a directive within 4 KiB, neither growing with the ranks.
fn check(rows: &[Row]) {
    for row in rows {
        let what = format!("{} {} ranks {} groups", row.case.name, row.ranks, row.groups);
        assert!(row.update.0 <= 200_000.0, "{what}: an update takes {} ns", row.update.0);
        assert!(row.directive <= 4096, "{what}: a directive takes {} bytes", row.directive);
        let alike = |other: &&Row| (other.case, other.groups) == (row.case, row.groups);
        for other in rows.iter().filter(alike) {
            // A group that is no larger than the floor is not divided, and what is said of it is shorter.
            let divided = |row: &Row| row.ranks / row.groups > FLOOR as u32;
            let sizes = |row: &Row| (row.directive, row.up);
            assert!(
                divided(row) != divided(other) || sizes(row) == sizes(other),
                "{what}: sizes depend on ranks"
            );
            // Minima, and twofold: other work on the machine is no growth. Groups no larger than the
            // floor are priced at once, whatever else the job is.
            let growth = row.update.0 / other.update.0;
            let is_priced = other.ranks / other.groups >= 100;
            assert!(!is_priced || growth < 2.0, "{what}: {growth} times that of {} ranks", other.ranks);
        }
    }
}
