//! Parts of the run that the other lines do not cover.

use ampl_analysis::missing_data::{self, GuideReason, Lacks, LessReason, Missing, missing};
use ampl_core::config::SiteTrace;
use ampl_core::plan::Plan;
use ampl_core::units::RankSet;
use ampl_reader::Trace;
use ampl_reader::model::{Alone, GaveUp};

use crate::gaps;
use crate::human::{count, duration, of_event, percent, plural};
use crate::layout::{Page, field, paragraph};

pub(super) fn write(out: &mut Page, trace: &Trace, plan: Option<&Plan>) {
    out.push('\n');
    let found = missing(trace, plan);
    for (index, gap) in found.iter().enumerate() {
        paragraph(out, if index == 0 { "not covered" } else { "" }, &sentence(gap));
    }
    if found.is_empty() {
        field(out, "not covered", "nothing is known to be missing");
    }
}

/// Steps down in recording calls of some ranks, a sentence each.
pub fn done_less(trace: &Trace, plan: Option<&Plan>) -> Vec<String> {
    missing_data::done_less(trace, plan).iter().map(sentence).collect()
}

/// Parts that the numbers of a run do not cover, a sentence each.
pub fn not_covered(trace: &Trace, plan: Option<&Plan>) -> Vec<String> {
    missing(trace, plan).iter().map(sentence).collect()
}

fn sentence(gap: &Missing) -> String {
    match gap {
        Missing::Calls(recorded) => gaps::sentence(recorded).unwrap_or_default(),
        Missing::Absent(ranks) => format!("{} left nothing that is readable here: {ranks}", number(ranks)),
        Missing::GaveUp { ranks, why } => {
            let what = match why {
                GaveUp::NoRoom => "found no room for their journals (output.journal)",
                GaveUp::Failed => "failed in ampl itself",
            };
            format!("{} ({ranks}) {what} and went on without ampl", number(ranks))
        }
        Missing::Unfinished(ranks) => format!("{} did not reach MPI_Finalize: {ranks}", number(ranks)),
        Missing::NotMerged => {
            "the ranks' journals were not merged: the job still runs, ended too early, or could not \
                               write the trace"
                .into()
        }
        Missing::Damage { faults, first } => {
            let rank = first.rank.map_or(String::new(), |rank| format!("rank {rank}: "));
            let faults = if *faults == 1 { "1 fault".into() } else { format!("{} faults", count(*faults)) };
            format!("{faults} in the files, the first: {rank}{}", first.what)
        }
        Missing::Windows { lacking, all } => {
            format!("{} of {} without a summary of every rank", count(*lacking), plural(*all, "window"))
        }
        Missing::NoWindowEnded(marker) => format!(
            "the marker {marker} ended no window, all of the run is window 0: use one that the program meets, or \
             period:250ms"
        ),
        Missing::MarkerNotMet(ranks) => {
            format!("the marker of {} ({ranks}): not met there, all of the run is in window 0", number(ranks))
        }
        Missing::LateDecisions(late) => {
            format!("{} did not wait for every rank (late)", plural(*late, "decision"))
        }
        Missing::Paused { ranks, share, most } => {
            let (whose, most) = match most {
                None => ("its", String::new()),
                Some((rank, share)) => ("their", format!(" (most: {} of rank {rank})", percent(*share))),
            };
            let share = percent(*share);
            format!(
                "{} for {share} of {whose} time{most}: calls in it were counted, and are in no other total",
                paused(ranks)
            )
        }
        Missing::PausedUnknown(ranks) => format!("{}, for how long is not known", paused(ranks)),
        Missing::Counter { metric, silent, why } => {
            let why = why.as_ref().map_or(String::new(), |why| format!(": {why}"));
            let ranks = silent
                .map_or(String::new(), |[silent, all]| format!(" on {silent} of {}", plural(all, "rank")));
            format!("{metric} not counted{ranks}{why}")
        }
        Missing::Guide { metric, event, observed, why } => format!(
            "the guide {} was {} in every window of every rank{}",
            of_event(metric, event),
            if *observed { "0" } else { "not observed" },
            match why {
                Some(GuideReason::Name) => ": is that its name?",
                Some(GuideReason::Threads) => ": threads of a rank were in MPI all the time",
                None => "",
            },
        ),
        Missing::DoneLess { ranks, lacks, why, from_ns } => {
            let lacks = match lacks {
                Lacks::Times => "stored without their times",
                Lacks::Calls => "not stored",
                Lacks::DrawnBeforehand => "drawn beforehand",
                Lacks::AllButCounts => "only counted",
            };
            let why = match *why {
                LessReason::RoomOfProgram => "more would take the program's room".to_owned(),
                LessReason::NoRoom => "there was no room for more".to_owned(),
                LessReason::Limit(limit) => format!("{} was reached", limit.key()),
                LessReason::Overhead(share, allowed) => {
                    format!(
                        "ampl took {}, may take {}",
                        percent(share.min(1.0)),
                        percent(allowed.unwrap_or(0.0))
                    )
                }
            };
            format!(
                "calls of {} ({ranks}) were {lacks} from {} on: {why}",
                number(ranks),
                duration(*from_ns as f64)
            )
        }
        Missing::NotStored { ranks, missing, all } => format!(
            "{} of {} of these ranks ({ranks}) are not stored: they are counted",
            count(*missing),
            plural(*all, "call")
        ),
        Missing::ByClock { ranks, from_ns } => format!(
            "windows of {} ({ranks}) end by the clock from {} on: the marker does not come",
            number(ranks),
            duration(*from_ns as f64)
        ),
        Missing::DifferentTimes => "other ranks meet it: windows of one number are of different times".into(),
        Missing::Policy { trace, names } => {
            let (names, more) = some(names);
            let lacks = match trace {
                SiteTrace::Aggregate => "stored without their times, which are added up by call site",
                _ => "neither stored nor added up by call site",
            };
            format!("calls of {names}{more} are {lacks}: [[site]] says so")
        }
        Missing::ShortRegions(short) => {
            let visits: u64 = short.iter().map(|region| region.visits).sum();
            let names: Vec<String> = short.iter().map(|region| region.region.clone()).collect();
            let (names, more) = some(&names);
            format!(
                "{} of {names}{more}: on average as short as trace.region_floor or hooks.floor",
                plural(visits, "visit")
            )
        }
        Missing::AgentFailures(failures) => {
            format!("ampl itself failed {} (the program was not affected)", plural(*failures, "time"))
        }
        Missing::TooMuchTime(allowed) => format!(
            "ampl took more than the {} of agent.max_overhead: it disturbed the times",
            percent(*allowed)
        ),
        Missing::FurtherSites => {
            "more call sites than the table holds: the rest is added up as '(further sites)'".into()
        }
        Missing::NoSite(calls) => format!(
            "where {} were made: there was no room for it, they are added up by function",
            plural(*calls, "call")
        ),
        Missing::Hidden(names) => {
            let (names, more) = some(names);
            format!("{names}{more}: the program, or a tool loaded before ampl, defines them itself")
        }
        Missing::Extensions(names) => {
            let (names, more) = some(names);
            format!("{names}{more}: extensions of this MPI that the program uses are not recorded")
        }
        Missing::DeviceCalls { libraries, asked_for } => {
            let why = if *asked_for {
                "the program finds its functions by dlsym, or called none"
            } else {
                "--hooks nccl asks for them"
            };
            format!("calls of {}: {why}", libraries.join(", "))
        }
        Missing::Alone(alone) => alone_among(alone),
        Missing::EarlyCalls(calls) => {
            format!("{} of rank 0 before MPI_Init: counted, not in the sequence", plural(*calls, "call"))
        }
        Missing::NestedCalls(calls) => format!(
            "{} of rank 0 made within others (callbacks, or after a jump that left no trace): counted, not in the \
             sequence",
            plural(*calls, "call")
        ),
        Missing::Spawned => {
            "the processes that the program spawned: only those it was started with are recorded".into()
        }
        Missing::NoArguments(names) => {
            let (names, more) = some(names);
            format!("arguments of calls that did not return (a jump, an exception): {names}{more}")
        }
        Missing::Threads => {
            "several threads call MPI: summaries add up what each has done since its window before".into()
        }
    }
}

/// `8 ranks`.
fn number(ranks: &RankSet) -> String {
    plural(ranks.len(), "rank")
}

fn paused(ranks: &RankSet) -> String {
    format!("{} ({ranks}) paused ampl (MPI_Pcontrol)", number(ranks))
}

/// The first names, and an ellipsis for the rest.
fn some(names: &[String]) -> (String, &'static str) {
    (names[..names.len().min(4)].join(", "), if names.len() > 4 { ", …" } else { "" })
}

/// Sentence about a run that is one of several processes of its launcher, each a world of its own.
fn alone_among(alone: &Alone) -> String {
    let Alone { processes, variable, lost, .. } = alone;
    let (why, fix) = match lost {
        true => (
            format!("the launcher's variables, {variable}={processes} among them, did not reach the program"),
            "Let what stands between, as 'env -i' does, leave them",
        ),
        false => (
            format!("the launcher said {variable}={processes}, which the program's MPI did not hear"),
            "Start the program with its own MPI's launcher",
        ),
    };
    format!(
        "this is one of {processes} processes that each ran alone, as a world of one rank: {why}; the others have runs beside \
         this one. {fix}"
    )
}
