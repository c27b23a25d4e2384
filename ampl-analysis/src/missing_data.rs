//! Parts of a run that its numbers do not cover.

mod kinds;

use std::collections::BTreeSet;

use ampl_core::config::{Event, Keep, Quantity, SiteTrace};
use ampl_core::mpi::{Direction, FUNCTION_COUNT, Function};
use ampl_core::plan::Plan;
use ampl_core::units::RankSet;
use ampl_reader::gaps::Recorded;
use ampl_trace::model::{GaveUp, Level};
use ampl_trace::record::{CALL_NO_ARGS, GAP};
use ampl_trace::totals::SEVERAL;
use ampl_trace::{RankTrace, Trace};

use crate::estimate::windows_lacking;
use crate::overhead::{Overhead, RankStep, StepReason};
use crate::pauses::{self, Paused};
use crate::{short_regions, uncovered, unstored};

pub use kinds::{GuideReason, Lacks, LessReason, Missing};

/// Parts that the numbers of `trace` do not cover; empty where nothing is known to be missing.
pub fn missing(trace: &Trace, plan: Option<&Plan>) -> Vec<Missing> {
    let mut found = Vec::new();
    // Traces of before have lines of their own about it.
    if trace.run.has_gaps {
        let recorded = Recorded::of(trace, None);
        found.extend((recorded.calls < recorded.counted).then_some(Missing::Calls(recorded)));
    }
    ranks(trace, &mut found);
    if let Some(first) = trace.damage.first() {
        found.push(Missing::Damage { faults: trace.damage.len() as u64, first: first.clone() });
    }
    if let Some(plan) = plan {
        windows(trace, plan, &mut found);
    }
    let late = trace.decisions.iter().filter(|decision| decision.late).count() as u64;
    if late > 0 {
        found.push(Missing::LateDecisions(late));
    }
    paused(trace, &mut found);
    counters(trace, &mut found);
    if let Some(plan) = plan {
        guides(trace, plan, &mut found);
    }
    let Overhead { steps, windows_share: share, .. } = Overhead::of(trace, 0);
    steps_down(&steps, plan, &mut found);
    // Otherwise the missing calls were not to be stored.
    if plan.is_none_or(|plan| plan.config.trace.structure == Keep::All) {
        not_stored(trace, &steps, &mut found);
    }
    by_clock(&steps, trace.run.ranks.into(), &mut found);
    if let Some(plan) = plan {
        policies(plan, &mut found);
    }
    let short = short_regions::of(trace);
    found.extend((!short.is_empty()).then_some(Missing::ShortRegions(short)));
    let failures: u64 = trace.ranks.iter().map(|rank| rank.process.agent_failures).sum();
    if failures > 0 {
        found.push(Missing::AgentFailures(failures));
    }
    if let (Some(share), Some(allowed)) = (share, allowed(plan))
        && share > allowed
    {
        found.push(Missing::TooMuchTime(allowed));
    }
    if trace.totals.places().any(|(function, ..)| function == SEVERAL) {
        found.push(Missing::FurtherSites);
    }
    let nameless =
        trace.totals.places().filter(|(function, path, _)| *function != SEVERAL && path.is_empty());
    let calls: u64 = nameless.map(|(.., total)| total.calls).sum();
    if calls > 0 {
        found.push(Missing::NoSite(calls));
    }
    let hidden = uncovered::functions(trace);
    if !hidden.is_empty() {
        found.push(Missing::Hidden(hidden));
    }
    if !trace.run.extensions.is_empty() {
        found.push(Missing::Extensions(trace.run.extensions.clone()));
    }
    let device = uncovered::device_calls(trace);
    found.extend(device.map(|(libraries, asked_for)| Missing::DeviceCalls { libraries, asked_for }));
    found.extend(trace.run.alone.clone().map(Missing::Alone));
    if trace.run.early_calls > 0 {
        found.push(Missing::EarlyCalls(trace.run.early_calls));
    }
    nested(trace, &mut found);
    let spawns = ["MPI_Comm_spawn", "MPI_Comm_spawn_multiple"].map(Function::by_name);
    if trace.function_calls().iter().any(|&(function, _)| spawns.contains(&Some(Function(function)))) {
        found.push(Missing::Spawned);
    }
    calls_of(trace, &mut found);
    found
}

/// Steps down in recording calls of some ranks, each a [`Missing::DoneLess`].
pub fn done_less(trace: &Trace, plan: Option<&Plan>) -> Vec<Missing> {
    let mut found = Vec::new();
    steps_down(&Overhead::of(trace, 0).steps, plan, &mut found);
    found
}

/// True where the run was over before its marker ended a window on any rank.
pub fn ended_none(trace: &Trace, plan: &Plan) -> bool {
    let one = |rank: &RankTrace| rank.process.finalized && rank.windows.count() == 1;
    !plan.config.window.marker.is_clock() && trace.windows() == 1 && trace.ranks.iter().all(one)
}

/// The share of the job that the agents may take.
fn allowed(plan: Option<&Plan>) -> Option<f64> {
    plan?.config.max_overhead()
}

fn ranks(trace: &Trace, found: &mut Vec<Missing>) {
    let there: BTreeSet<u32> = trace.ranks.iter().map(|rank| rank.process.rank).collect();
    let absent = RankSet::from_iter((0..trace.run.ranks).filter(|rank| !there.contains(rank)));
    let none_absent = absent.is_empty();
    if !none_absent {
        found.push(Missing::Absent(absent));
    }
    let left = |rank: &&RankTrace| !rank.process.finalized;
    for why in [GaveUp::NoRoom, GaveUp::Failed] {
        let gave_up = trace.ranks.iter().filter(left).filter(|rank| rank.process.gave_up == Some(why));
        let ranks = RankSet::from_iter(gave_up.map(|rank| rank.process.rank));
        if !ranks.is_empty() {
            found.push(Missing::GaveUp { ranks, why });
        }
    }
    let unfinished = trace.ranks.iter().filter(left).filter(|rank| rank.process.gave_up.is_none());
    let unfinished = RankSet::from_iter(unfinished.map(|rank| rank.process.rank));
    if !unfinished.is_empty() {
        found.push(Missing::Unfinished(unfinished));
    }
    let all_finished = trace.ranks.iter().all(|rank| rank.process.finalized);
    if !trace.complete && none_absent && all_finished && trace.damage.is_empty() {
        found.push(Missing::NotMerged);
    }
}

fn windows(trace: &Trace, plan: &Plan, found: &mut Vec<Missing>) {
    let lacking = windows_lacking(trace, plan);
    if lacking > 0 {
        found.push(Missing::Windows { lacking, all: trace.windows() });
    }
    if ended_none(trace, plan) {
        found.push(Missing::NoWindowEnded(plan.config.window.marker.clone()));
    }
    if trace.windows() > 1 && !plan.config.window.marker.is_clock() {
        let unmet = |rank: &&RankTrace| {
            let first = rank.windows.get(0).filter(|_| rank.windows.count() == 1);
            rank.process.finalized && first.is_some_and(|only| only.partial)
        };
        let ranks = RankSet::from_iter(trace.ranks.iter().filter(unmet).map(|rank| rank.process.rank));
        if !ranks.is_empty() {
            found.push(Missing::MarkerNotMet(ranks));
        }
    }
}

/// Adds spans that the program itself has paused.
fn paused(trace: &Trace, found: &mut Vec<Missing>) {
    let (known, unknown): (Vec<Paused>, Vec<Paused>) =
        pauses::of(trace).into_iter().partition(|paused| paused.paused_ns.is_some());
    let ranks = |paused: &[Paused]| RankSet::from_iter(paused.iter().map(|paused| paused.rank));
    let share = |paused: &Paused| paused.share.unwrap_or_default();
    if let Some(most) = known.iter().max_by(|a, b| share(a).total_cmp(&share(b))) {
        let time: f64 = known.iter().map(|paused| paused.of_ns).sum();
        let paused: u64 = known.iter().filter_map(|paused| paused.paused_ns).sum();
        found.push(Missing::Paused {
            ranks: ranks(&known),
            share: paused as f64 / time,
            most: (known.len() > 1).then(|| (most.rank, share(most))),
        });
    }
    if !unknown.is_empty() {
        found.push(Missing::PausedUnknown(ranks(&unknown)));
    }
}

/// Adds counters that some ranks could not read: their windows have no observation of them.
fn counters(trace: &Trace, found: &mut Vec<Missing>) {
    for (slot, metric) in trace.run.metrics.iter().enumerate() {
        if !is_counter(&metric.name) {
            continue;
        }
        let cells = |rank: &RankTrace| {
            rank.windows.entries().iter().filter_map(|window| window.cells.get(slot)).collect::<Vec<_>>()
        };
        let counted = |rank: &RankTrace| cells(rank).iter().any(|cell| cell.n > 0.0);
        let silent = trace.ranks.iter().filter(|rank| !cells(rank).is_empty() && !counted(rank));
        let silent = silent.count() as u64;
        if silent > 0 {
            let why = trace.run.unmeasured.iter().find(|(name, _)| *name == metric.name);
            // Ranks without a summary have not counted it either.
            let any = trace.ranks.iter().any(counted);
            found.push(Missing::Counter {
                metric: metric.name.clone(),
                silent: any.then_some([silent, trace.ranks.len() as u64]),
                why: why.map(|(_, why)| why.clone()),
            });
        }
    }
}

fn is_counter(metric: &str) -> bool {
    ["perf.", "papi."].iter().any(|family| metric.starts_with(family))
}

/// Adds guides without any observation: the program most likely does not use the name.
fn guides(trace: &Trace, plan: &Plan, found: &mut Vec<Missing>) {
    let threads = trace.ranks.iter().any(|rank| rank.process.mpi_threads > 1);
    for (slot, metric) in plan.metrics.iter().enumerate().filter(|(_, metric)| metric.guide) {
        let entries = trace.ranks.iter().flat_map(|rank| rank.windows.entries());
        let cells = entries.filter_map(|window| window.cells.get(slot));
        let (mut any, mut observed, mut seen) = (false, false, false);
        for cell in cells {
            any = true;
            observed |= cell.n > 0.0;
            seen |= cell.n > 0.0 && (cell.sum != 0.0 || cell.sum_sq != 0.0);
        }
        // A counter that no rank could read has been named with its reason.
        if any && !seen && (observed || !is_counter(&metric.name())) {
            let is_known = metric.event == Event::Window && metric.quantity.slot().is_some();
            let why = match &metric.quantity {
                _ if !is_known => Some(GuideReason::Name),
                // Computing of one thread while another is in MPI is not measured.
                Quantity::ComputeTime if threads => Some(GuideReason::Threads),
                _ => None,
            };
            let (metric, event) = (metric.name().into_owned(), metric.event.name().into_owned());
            found.push(Missing::Guide { metric, event, observed, why });
        }
    }
}

/// Adds steps down of ranks, for overhead or want of room.
fn steps_down(steps: &[RankStep], plan: Option<&Plan>, found: &mut Vec<Missing>) {
    let allowed = allowed(plan);
    let structure = plan.map(|plan| plan.config.agent.max_structure_overhead.max(allowed.unwrap_or(0.0)));
    for (reason, level, lacks) in [
        (StepReason::Journal, Level::Structure, Lacks::Times),
        (StepReason::Journal, Level::Summaries, Lacks::Calls),
        (StepReason::Limit, Level::Structure, Lacks::Times),
        (StepReason::Limit, Level::Summaries, Lacks::Calls),
        (StepReason::Overhead, Level::Drawn, Lacks::DrawnBeforehand),
        (StepReason::Overhead, Level::Structure, Lacks::Times),
        (StepReason::Overhead, Level::Summaries, Lacks::Calls),
        (StepReason::Overhead, Level::Off, Lacks::AllButCounts),
    ] {
        let such = || steps.iter().filter(|step| step.reason == reason && step.level == level);
        let Some(first) = such().min_by_key(|step| step.at_ns) else { continue };
        let ranks = RankSet::from_iter(such().map(|step| step.rank));
        let why = match (reason, lacks) {
            (StepReason::Journal, Lacks::Times) => LessReason::RoomOfProgram,
            (StepReason::Journal, _) => LessReason::NoRoom,
            (StepReason::Limit, _) => first.limit.map_or(LessReason::NoRoom, LessReason::Limit),
            _ => {
                // Calls go at the limit of their own, if they have not gone before.
                let before = steps.iter().rfind(|step| step.rank == first.rank && step.at_ns < first.at_ns);
                let had_calls = before.is_none_or(|step| step.level != Level::Summaries);
                let of_calls =
                    matches!(lacks, Lacks::Calls) || (matches!(lacks, Lacks::AllButCounts) && had_calls);
                LessReason::Overhead(first.share, if of_calls { structure } else { allowed })
            }
        };
        found.push(Missing::DoneLess { ranks, lacks, why, from_ns: first.at_ns });
    }
}

/// Adds calls that are not stored, of ranks whose journals had no room: as many as were counted besides.
fn not_stored(trace: &Trace, steps: &[RankStep], found: &mut Vec<Missing>) {
    let full = |step: &&RankStep| {
        matches!(step.reason, StepReason::Journal | StepReason::Limit) && step.level == Level::Summaries
    };
    let ranks: BTreeSet<u32> = steps.iter().filter(full).map(|step| step.rank).collect();
    let (mut missing, mut all) = (0u64, 0u64);
    for (rank, stored) in unstored::stored(trace, &ranks) {
        let counted = trace.rank(rank).map_or(0, |rank| unstored::in_sequence(&rank.process));
        missing = missing.saturating_add(counted.saturating_sub(stored));
        all = all.saturating_add(counted);
    }
    if missing > 0 {
        found.push(Missing::NotStored { ranks: RankSet::from_iter(ranks), missing, all });
    }
}

/// Adds windows that end by the clock because the program does not name the marker's region, of `all` ranks.
fn by_clock(steps: &[RankStep], all: u64, found: &mut Vec<Missing>) {
    let such = || steps.iter().filter(|step| step.level == Level::Clock);
    let Some(first) = such().min_by_key(|step| step.at_ns) else { return };
    let ranks = RankSet::from_iter(such().map(|step| step.rank));
    let others = ranks.len() < all;
    found.push(Missing::ByClock { ranks, from_ns: first.at_ns });
    if others {
        found.push(Missing::DifferentTimes);
    }
}

/// Adds calls that the configuration has left out.
fn policies(plan: &Plan, found: &mut Vec<Missing>) {
    for trace in [SiteTrace::Aggregate, SiteTrace::Off] {
        let such = plan.config.sites.iter().filter(|policy| policy.trace == trace);
        let names: Vec<String> = such.map(|policy| policy.matches.name().into_owned()).collect();
        if !names.is_empty() {
            found.push(Missing::Policy { trace, names });
        }
    }
}

/// Adds calls that the program made during another call, and calls that could not be distinguished from them.
fn nested(trace: &Trace, found: &mut Vec<Missing>) {
    let whole =
        |rank: &&RankTrace| rank.process.rank == 0 && rank.process.finalized && rank.process.steps.is_empty();
    let Some(first) = trace.ranks.first().filter(whole) else { return };
    let Some(group) = trace.structure.groups().find(|group| group.contains(0)) else { return };
    // Calls that were not recorded have their own reasons.
    if group.calls_any(|function| function == GAP) {
        return;
    }
    let stored = unstored::stored(trace, &BTreeSet::from([0])).into_values().sum::<u64>();
    let counted = unstored::in_sequence(&first.process);
    let nested = counted.saturating_sub(trace.run.early_calls).saturating_sub(stored);
    if nested > 0 && stored > 0 {
        found.push(Missing::NestedCalls(nested));
    }
}

/// Adds gaps in stored calls, by their signatures.
fn calls_of(trace: &Trace, found: &mut Vec<Missing>) {
    let mut bare = BTreeSet::new();
    let mut threads = false;
    for thread in trace.structure.groups().flat_map(|group| group.threads()) {
        threads |= thread.number() != 0 && !thread.is_empty();
        for (function, flags, _) in thread.calls() {
            let lacks = flags & CALL_NO_ARGS != 0 && usize::from(function) < FUNCTION_COUNT;
            let name = if lacks { Function(function).name() } else { continue };
            let mut params = Function(function).spec().params.iter();
            let has_inputs = params.any(|param| param.direction != Direction::Out);
            if has_inputs && !name.starts_with("MPI_Init") {
                bare.insert(name);
            }
        }
    }
    if !bare.is_empty() {
        found.push(Missing::NoArguments(bare.into_iter().map(str::to_owned).collect()));
    }
    if threads {
        found.push(Missing::Threads);
    }
}
