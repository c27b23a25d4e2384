//! Gaps that the other lines do not cover.

use std::collections::BTreeSet;

use ampl_core::config::{Event, Keep, Quantity, SiteTrace};
use ampl_core::mpi::Function;
use ampl_core::plan::Plan;
use ampl_core::units::RankSet;
use ampl_reader::gaps::Recorded;
use ampl_trace::decode::Calls;
use ampl_trace::model::{Alone, GaveUp, STEP_CLOCK};
use ampl_trace::record::GAP;
use ampl_trace::totals::SEVERAL;
use ampl_trace::{RankTrace, Trace};

use super::sampling::ended_none;
use crate::estimate::windows_lacking;
use crate::human::{count, duration, of_event, percent, plural};
use crate::layout::{field, paragraph};
use crate::overhead::{Overhead, RankStep};
use crate::pauses::{self, Paused};
use crate::unstored;

/// Most stored calls that are examined for gaps, over all ranks: the summary must take almost no time.
const LOOKED_AT: usize = 200_000;

pub(super) fn write(out: &mut String, trace: &Trace, plan: Option<&Plan>) {
    out.push('\n');
    let gaps = list(trace, plan);
    for (index, gap) in gaps.iter().enumerate() {
        paragraph(out, if index == 0 { "not covered" } else { "" }, gap);
    }
    if gaps.is_empty() {
        field(out, "not covered", "nothing is known to be missing");
    }
}

fn list(trace: &Trace, plan: Option<&Plan>) -> Vec<String> {
    let mut gaps = Vec::new();
    // Traces of before have lines of their own about it.
    if trace.run.has_gaps {
        gaps.extend(crate::gaps::sentence(&Recorded::of(trace, None)));
    }
    ranks(trace, &mut gaps);
    if let Some(first) = trace.damage.first() {
        let rank = first.rank.map_or(String::new(), |rank| format!("rank {rank}: "));
        gaps.push(format!(
            "{} in the files, the first: {rank}{}",
            faults(trace.damage.len() as u64),
            first.what
        ));
    }
    if let Some(plan) = plan {
        windows(trace, plan, &mut gaps);
    }
    late(trace, &mut gaps);
    paused(trace, &mut gaps);
    counters(trace, &mut gaps);
    if let Some(plan) = plan {
        guides(trace, plan, &mut gaps);
    }
    let Overhead { steps, windows_share: share, .. } = Overhead::of(trace, 0);
    less(&steps, allowed(plan), &mut gaps);
    // Otherwise the missing calls were not to be stored.
    if plan.is_none_or(|plan| plan.config.trace.structure == Keep::All) {
        unstored(trace, &steps, &mut gaps);
    }
    by_clock(&steps, trace.run.ranks.into(), &mut gaps);
    if let Some(plan) = plan {
        policies(plan, &mut gaps);
    }
    let failures: u64 = trace.ranks.iter().map(|rank| rank.process.agent_failures).sum();
    if failures > 0 {
        gaps.push(format!("ampl itself failed {} (the program was not affected)", plural(failures, "time")));
    }
    if let (Some(share), Some(allowed)) = (share, allowed(plan))
        && share > allowed
    {
        gaps.push(format!(
            "ampl took more than the {} of agent.max_overhead: it disturbed the times",
            percent(allowed)
        ));
    }
    if trace.totals.places().any(|(function, ..)| function == SEVERAL) {
        gaps.push("more call sites than the table holds: the rest is added up as '(further sites)'".into());
    }
    nameless(trace, &mut gaps);
    let hidden = unseen(trace);
    if !hidden.is_empty() {
        let (names, more) = some(&hidden);
        gaps.push(format!("{names}{more}: the program, or a tool loaded before ampl, defines them itself"));
    }
    if !trace.run.extensions.is_empty() {
        let (names, more) = some(&trace.run.extensions);
        gaps.push(format!("{names}{more}: extensions of this MPI that the program uses are not recorded"));
    }
    if let Some(alone) = &trace.run.alone {
        gaps.push(alone_among(alone));
    }
    if trace.run.early_calls > 0 {
        gaps.push(format!(
            "{} of rank 0 before MPI_Init: counted, not in the sequence",
            plural(trace.run.early_calls, "call")
        ));
    }
    within(trace, &mut gaps);
    let spawns = ["MPI_Comm_spawn", "MPI_Comm_spawn_multiple"].map(Function::by_name);
    if trace.function_calls().iter().any(|&(function, _)| spawns.contains(&Some(Function(function)))) {
        gaps.push(
            "the processes that the program spawned: only those it was started with are recorded".into(),
        );
    }
    calls(trace, &mut gaps);
    gaps
}

/// Adds call sites without a record, for want of room.
fn nameless(trace: &Trace, gaps: &mut Vec<String>) {
    let such = trace.totals.places().filter(|(function, path, _)| *function != SEVERAL && path.is_empty());
    let calls: u64 = such.map(|(.., total)| total.calls).sum();
    if calls > 0 {
        gaps.push(format!(
            "where {} were made: there was no room for it, they are added up by function",
            plural(calls, "call")
        ));
    }
}

/// Adds calls that are not stored, of ranks whose journals had no room: as many as were counted besides.
fn unstored(trace: &Trace, steps: &[RankStep], gaps: &mut Vec<String>) {
    let full = |step: &&RankStep| step.reason == "journal" && step.level == "summaries";
    let ranks: BTreeSet<u32> = steps.iter().filter(full).map(|step| step.rank).collect();
    let (mut missing, mut all) = (0u64, 0u64);
    for rank in trace.ranks.iter().filter(|rank| ranks.contains(&rank.process.rank)) {
        let (stored, counted) = (unstored::stored(trace, rank), unstored::in_sequence(&rank.process));
        missing = missing.saturating_add(counted.saturating_sub(stored));
        all = all.saturating_add(counted);
    }
    if missing > 0 {
        gaps.push(format!(
            "{} of {} of these ranks ({}) are not stored: they are counted",
            count(missing),
            plural(all, "call"),
            set(ranks.into_iter())
        ));
    }
}

/// Functions that a library before ampl defines, and of which ampl intercepted no call. A tool may go on to the next
/// definition, and then ampl intercepts its calls. Init shows by the run itself, and finalize without a call.
fn unseen(trace: &Trace) -> Vec<String> {
    let seen = trace.function_calls();
    let ended = trace.complete || trace.ranks.iter().all(|rank| rank.process.finalized);
    let began = ["MPI_Init", "MPI_Init_thread"];
    let is_seen = |name: &&String| {
        let function = Function::by_name(name).map(|function| function.0);
        let counted = seen.iter().any(|&(of, calls)| Some(of) == function && calls > 0);
        counted || began.contains(&name.as_str()) || (ended && *name == "MPI_Finalize")
    };
    trace.run.hidden.iter().filter(|name| !is_seen(name)).cloned().collect()
}

/// Adds calls that the program made during another call, and calls that could not be distinguished from them.
fn within(trace: &Trace, gaps: &mut Vec<String>) {
    let whole =
        |rank: &&RankTrace| rank.process.rank == 0 && rank.process.finalized && rank.process.steps.is_empty();
    let Some(first) = trace.ranks.first().filter(whole) else { return };
    let Some(structure) = trace.structure.rank(0) else { return };
    let mut signatures = structure.threads.iter().flat_map(|thread| &thread.signatures);
    // Calls that were not recorded have their own reasons.
    if signatures.any(|signature| signature.function == GAP) {
        return;
    }
    let (stored, counted) = (unstored::stored(trace, first), unstored::in_sequence(&first.process));
    let within = counted.saturating_sub(trace.run.early_calls).saturating_sub(stored);
    if within > 0 && stored > 0 {
        gaps.push(format!(
            "{} of rank 0 made within others (callbacks, or after a jump that left no trace): counted, not in the \
             sequence",
            plural(within, "call")
        ));
    }
}

/// Adds spans that the program itself has paused.
fn paused(trace: &Trace, gaps: &mut Vec<String>) {
    let (known, unknown): (Vec<Paused>, Vec<Paused>) =
        pauses::of(trace).into_iter().partition(|paused| paused.paused_ns.is_some());
    let ranks = |paused: &[Paused]| {
        let ranks = set(paused.iter().map(|paused| paused.rank));
        format!("{} ({ranks}) paused ampl (MPI_Pcontrol)", plural(ranks.len(), "rank"))
    };
    let share = |paused: &Paused| paused.share.unwrap_or_default();
    if let Some(most) = known.iter().max_by(|a, b| share(a).total_cmp(&share(b))) {
        let time: f64 = known.iter().map(|paused| paused.of_ns).sum();
        let paused: u64 = known.iter().filter_map(|paused| paused.paused_ns).sum();
        let (whose, most) = match known.len() {
            1 => ("its", String::new()),
            _ => ("their", format!(" (most: {} of rank {})", percent(share(most)), most.rank)),
        };
        gaps.push(format!(
            "{} for {} of {whose} time{most}: calls in it were counted, and are in no other total",
            ranks(&known),
            percent(paused as f64 / time),
        ));
    }
    if !unknown.is_empty() {
        gaps.push(format!("{}, for how long is not known", ranks(&unknown)));
    }
}

/// Adds counters that some ranks could not read: their windows have no observation of them.
fn counters(trace: &Trace, gaps: &mut Vec<String>) {
    for (slot, metric) in trace.run.metrics.iter().enumerate() {
        if !is_counter(&metric.name) {
            continue;
        }
        let cells =
            |rank: &RankTrace| rank.windows.iter().filter_map(|window| window.cells.get(slot)).count();
        let counted = |rank: &RankTrace| {
            rank.windows.iter().filter_map(|window| window.cells.get(slot)).any(|cell| cell.n > 0.0)
        };
        let silent = trace.ranks.iter().filter(|rank| cells(rank) > 0 && !counted(rank)).count();
        if silent > 0 {
            let why = trace.run.unmeasured.iter().find(|(name, _)| *name == metric.name);
            let why = why.map_or(String::new(), |(_, why)| format!(": {why}"));
            let ranks = match trace.ranks.len() {
                // Ranks without a summary have not counted it either.
                _ if !trace.ranks.iter().any(counted) => String::new(),
                all => format!(" on {silent} of {}", plural(all as u64, "rank")),
            };
            gaps.push(format!("{} not counted{ranks}{why}", metric.name));
        }
    }
}

fn is_counter(metric: &str) -> bool {
    ["perf.", "papi."].iter().any(|family| metric.starts_with(family))
}

/// Adds guides without any observation: the program most likely does not use the name.
fn guides(trace: &Trace, plan: &Plan, gaps: &mut Vec<String>) {
    let threads = trace.ranks.iter().any(|rank| rank.process.mpi_threads > 1);
    for (slot, metric) in plan.metrics.iter().enumerate().filter(|(_, metric)| metric.guide) {
        let cells =
            trace.ranks.iter().flat_map(|rank| &rank.windows).filter_map(|window| window.cells.get(slot));
        let (mut any, mut observed, mut seen) = (false, false, false);
        for cell in cells {
            any = true;
            observed |= cell.n > 0.0;
            seen |= cell.n > 0.0 && (cell.sum != 0.0 || cell.sum_sq != 0.0);
        }
        // A counter that no rank could read has been named with its reason.
        if any && !seen && (observed || !is_counter(&metric.name())) {
            let is_known = metric.event == Event::Window && metric.quantity.slot().is_some();
            gaps.push(format!(
                "the guide {} was {} in every window of every rank{}",
                of_event(&metric.name(), &metric.event.name()),
                if observed { "0" } else { "not observed" },
                match &metric.quantity {
                    _ if !is_known => ": is that its name?",
                    // Computing of one thread while another is in MPI is not measured.
                    Quantity::ComputeTime if threads => ": threads of a rank were in MPI all the time",
                    _ => "",
                },
            ));
        }
    }
}

/// The share of the job that the agents may take.
fn allowed(plan: Option<&Plan>) -> Option<f64> {
    plan?.config.max_overhead()
}

/// Steps down in recording calls of some ranks, a sentence each.
pub fn done_less(trace: &Trace, plan: Option<&Plan>) -> Vec<String> {
    let mut gaps = Vec::new();
    less(&Overhead::of(trace, 0).steps, allowed(plan), &mut gaps);
    gaps
}

/// Sentence about a run that is one of several processes of its launcher, each a world of its own.
fn alone_among(alone: &Alone) -> String {
    let Alone { processes, variable, .. } = alone;
    format!(
        "this is one of {processes} processes that each ran alone, as a world of one rank: the launcher said \
         {variable}={processes}, which the program's MPI did not hear; the others have runs beside this one. Start the program \
         with its own MPI's launcher"
    )
}

/// The first names, and an ellipsis for the rest.
fn some(names: &[String]) -> (String, &'static str) {
    (names[..names.len().min(4)].join(", "), if names.len() > 4 { ", …" } else { "" })
}

fn faults(number: u64) -> String {
    if number == 1 { "1 fault".into() } else { format!("{} faults", count(number)) }
}

fn ranks(trace: &Trace, gaps: &mut Vec<String>) {
    let there: BTreeSet<u32> = trace.ranks.iter().map(|rank| rank.process.rank).collect();
    let absent = set((0..trace.run.ranks).filter(|rank| !there.contains(rank)));
    if !absent.is_empty() {
        gaps.push(format!("{} left nothing that is readable here: {absent}", plural(absent.len(), "rank")));
    }
    let left = |rank: &&RankTrace| !rank.process.finalized;
    for (why, what) in [
        (GaveUp::NoRoom, "found no room for their journals (output.journal)"),
        (GaveUp::Failed, "failed in ampl itself"),
    ] {
        let gave_up = trace.ranks.iter().filter(left).filter(|rank| rank.process.gave_up == Some(why));
        let gave_up = set(gave_up.map(|rank| rank.process.rank));
        if !gave_up.is_empty() {
            let ranks = plural(gave_up.len(), "rank");
            gaps.push(format!("{ranks} ({gave_up}) {what} and went on without ampl"));
        }
    }
    let unfinished = trace.ranks.iter().filter(left).filter(|rank| rank.process.gave_up.is_none());
    let unfinished = set(unfinished.map(|rank| rank.process.rank));
    if !unfinished.is_empty() {
        gaps.push(format!("{} did not reach MPI_Finalize: {unfinished}", plural(unfinished.len(), "rank")));
    }
    let all_finished = trace.ranks.iter().all(|rank| rank.process.finalized);
    if !trace.complete && absent.is_empty() && all_finished && trace.damage.is_empty() {
        gaps.push(
            "the ranks' journals were not merged: the job still runs, ended too early, or could not write the \
             trace"
                .into(),
        );
    }
}

fn set(ranks: impl Iterator<Item = u32>) -> RankSet {
    let text: Vec<String> = ranks.map(|rank| rank.to_string()).collect();
    RankSet::parse(&text.join(",")).unwrap_or_default()
}

/// Calls that the configuration has left out.
fn policies(plan: &Plan, gaps: &mut Vec<String>) {
    for (trace, lacks) in [
        (SiteTrace::Aggregate, "stored without their times, which are added up by call site"),
        (SiteTrace::Off, "neither stored nor added up by call site"),
    ] {
        let such = plan.config.sites.iter().filter(|policy| policy.trace == trace);
        let names: Vec<String> = such.map(|policy| policy.matches.name().into_owned()).collect();
        if !names.is_empty() {
            let (names, more) = some(&names);
            gaps.push(format!("calls of {names}{more} are {lacks}: [[site]] says so"));
        }
    }
}

/// Adds steps down of ranks, for overhead or want of room.
fn less(steps: &[RankStep], allowed: Option<f64>, gaps: &mut Vec<String>) {
    for (reason, level, lacks) in [
        ("journal", "structure", "stored without their times"),
        ("journal", "summaries", "not stored"),
        ("overhead", "drawn", "drawn beforehand"),
        ("overhead", "structure", "stored without their times"),
        ("overhead", "summaries", "not stored"),
        ("overhead", "off", "only counted"),
    ] {
        let such = || steps.iter().filter(|step| step.reason == reason && step.level == level);
        let Some(first) = such().min_by_key(|step| step.at_ns) else { continue };
        let ranks = set(such().map(|step| step.rank).collect::<BTreeSet<_>>().into_iter());
        let why = match (reason, level) {
            ("journal", "structure") => "more would take the program's room".to_owned(),
            ("journal", _) => "there was no room for more".to_owned(),
            _ => format!("ampl took {}, may take {}", percent(first.share), percent(allowed.unwrap_or(0.0))),
        };
        gaps.push(format!(
            "calls of {} ({ranks}) were {lacks} from {} on: {why}",
            plural(ranks.len(), "rank"),
            duration(first.at_ns as f64),
        ));
    }
}

/// Adds windows that end by the clock because the program does not name the marker's region, on how many of `all`
/// ranks.
fn by_clock(steps: &[RankStep], all: u64, gaps: &mut Vec<String>) {
    let such = || steps.iter().filter(|step| step.level == STEP_CLOCK);
    let Some(first) = such().min_by_key(|step| step.at_ns) else { return };
    let ranks = set(such().map(|step| step.rank));
    gaps.push(format!(
        "windows of {} ({ranks}) end by the clock from {} on: no region of the marker",
        plural(ranks.len(), "rank"),
        duration(first.at_ns as f64),
    ));
    if ranks.len() < all {
        gaps.push("other ranks name it: windows of one number are of different times".into());
    }
}

fn windows(trace: &Trace, plan: &Plan, gaps: &mut Vec<String>) {
    let short = windows_lacking(trace, plan);
    if short > 0 {
        gaps.push(format!(
            "{} of {} without a summary of every rank",
            count(short),
            plural(trace.windows(), "window")
        ));
    }
    if ended_none(trace, plan) {
        gaps.push(format!(
            "the marker {} ended no window, all of the run is window 0: use one that the program meets, or \
             period:250ms",
            plan.config.window.marker
        ));
    }
    if trace.windows() > 1 && !plan.config.window.marker.is_clock() {
        let unmet = |rank: &&RankTrace| {
            rank.process.finalized && matches!(&rank.windows[..], [only] if only.window == 0 && only.partial)
        };
        let ranks = set(trace.ranks.iter().filter(unmet).map(|rank| rank.process.rank));
        if !ranks.is_empty() {
            gaps.push(format!(
                "the marker of {} ({ranks}): not met there, all of the run is in window 0",
                plural(ranks.len(), "rank")
            ));
        }
    }
}

/// Adds decisions that were made without some ranks.
fn late(trace: &Trace, gaps: &mut Vec<String>) {
    let late = trace.decisions.iter().filter(|decision| decision.late).count() as u64;
    if late > 0 {
        gaps.push(format!("{} did not wait for every rank (late)", plural(late, "decision")));
    }
}

/// Gaps in stored calls; a prefix of each rank's is examined.
fn calls(trace: &Trace, gaps: &mut Vec<String>) {
    let each = (LOOKED_AT / trace.ranks.len().max(1)).max(100);
    let mut bare = BTreeSet::new();
    let mut threads = false;
    for rank in &trace.ranks {
        let Some(structure) = trace.structure.rank(rank.process.rank) else { continue };
        for call in Calls::new(&structure, rank).take(each).flatten() {
            threads |= call.thread != 0;
            if call.lacks_arguments() && !call.function.name().starts_with("MPI_Init") {
                bare.insert(call.function.name());
            }
        }
    }
    if !bare.is_empty() {
        let (names, more) = some(&bare.into_iter().map(str::to_owned).collect::<Vec<_>>());
        gaps.push(format!("arguments of calls that did not return (a jump, an exception): {names}{more}"));
    }
    if threads {
        gaps.push(
            "several threads call MPI: summaries add up what each has done since its window before".into(),
        );
    }
}
