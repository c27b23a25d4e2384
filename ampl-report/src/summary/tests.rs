use std::path::Path;

use ampl_analysis::storage;
use ampl_core::mpi::Function;
use ampl_reader::RankTrace;
use ampl_reader::cells::{Cell, Cells};
use ampl_reader::model::{Level, Step};
use ampl_reader::structure::{JobStructure, Signature};
use ampl_testkit::synthetic::{Synthetic, put_cell};

use super::*;
use crate::layout::WIDTH;

/// The summary of `trace` from the run directory `run`.
pub(super) fn text(trace: &Trace, run: &Path) -> String {
    super::text(trace, &Source { run, has_file: true, width: WIDTH })
}

fn summary(job: &Synthetic) -> String {
    let text = text(&job.trace(), Path::new("ampl-app-1"));
    assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
    text
}

/// The line that begins with `label`.
#[track_caller]
pub(super) fn line<'a>(text: &'a str, label: &str) -> &'a str {
    let found = text.lines().find(|line| line.trim_start().starts_with(label));
    found.unwrap_or_else(|| panic!("no {label}: {text}"))
}

#[track_caller]
pub(super) fn says(text: &str, label: &str, words: &[&str]) {
    let line = line(text, label);
    words.iter().for_each(|word| assert!(line.contains(word), "'{word}' is not in: {line}\n{text}"));
}

#[test]
fn a_whole_run_is_summed_up() {
    let job = Synthetic { ranks: 20, size: 8, ..Synthetic::default() };
    let text = summary(&job);
    println!("{text}");
    assert!((22..=HEIGHT).contains(&text.lines().count()), "{text}");
    says(&text, "ampl: ./app in.txt", &[]);
    says(&text, "MPI library", &["Open MPI v4.1.4"]);
    says(&text, "processes", &["20 ranks on 5 hosts (node0, node1, node2, …); complete"]);
    says(&text, "run time", &["120 ms", "1,340 MPI calls"]);
    // Times of the synthetic job, by hand.
    let mpi = |rank: u32| (0..12).map(|window| job.mpi_ns(rank, window) as f64).sum::<f64>();
    let compute: Vec<f64> = (0..20).map(|rank| 120e6 - mpi(rank) - 12e3).collect();
    let most = compute.iter().copied().fold(0.0, f64::max);
    let mean = compute.iter().sum::<f64>() / 20.0;
    says(&text, "Efficiency", &["exact", "census of all ranks"]);
    says(&text, "parallel", &[&percent(mean / 120e6)]);
    says(&text, "load balance", &[&percent(mean / most)]);
    says(&text, "communication", &[&percent(most / 120e6)]);
    let share = (0..20).map(mpi).sum::<f64>() / 20.0 / 120e6;
    says(&text, "time in MPI", &[&percent(share)]);
    says(&text, "time in MPI", &["; kept traces alone say ", " at 90 %"]);
    says(&text, "Sampling (12 windows", &["period:250ms"]);
    // 20 of 20 in the first interval, then 8.
    says(&text, "group all", &["12 of 20 ranks"]);
    says(&text, "from window 8: 8 of 20", &["mpi.time ± 5 % (bound 8 %)"]);
    says(&text, "trace file", &["times kept for 144 of 240 rank-windows; all would take about "]);
    says(&text, "ampl's own time", &["240 us", "0.0100 %"]);
    says(&text, "MPI_Allreduce @ app+0x11c0 ", &["240", "100 %"]);
    says(&text, "not covered", &["nothing is known to be missing"]);
    says(&text, "next", &["RUN=ampl-app-1"]);
    says(&text, "ampl estimate $RUN ", &["every mean"]);
    says(&text, "ampl decode $RUN --rank", &[]);
    assert_eq!(text.matches("ampl-app-1").count(), 1, "{text}");
}

#[test]
fn sampled_summaries_have_exact_totals_and_an_interval() {
    let config = "[sampling]\nsummaries = 'sampled'\nselection = 'predictive'\n".into();
    let text = summary(&Synthetic { config, ranks: 20, size: 10, ..Synthetic::default() });
    says(&text, "Efficiency", &["call totals of all ranks"]);
    says(&text, "time in MPI", &["; sampled summaries alone say ", " at 90 %"]);
}

#[test]
fn windows_kept_for_partners_are_told_apart() {
    let config = "[sampling]\npartners = 'keep'\n".into();
    let job = Synthetic { config, ranks: 20, size: 4, ..Synthetic::default() };
    let (trace, plan) = (job.trace(), job.plan());
    // The partners of a drawn rank in a ring; drawn anew in each interval, the first of which keeps every rank.
    let kept = |window: u64| -> Vec<u32> {
        let of = trace.ranks.iter().filter(|rank| rank.windows.entries()[window as usize].kept);
        of.map(|rank| rank.process.rank).collect()
    };
    let drawn = |window: u64| -> Vec<u32> {
        let of = trace.ranks.iter().filter(|rank| rank.windows.entries()[window as usize].drawn);
        of.map(|rank| rank.process.rank).collect()
    };
    for window in 4..12 {
        assert_eq!(drawn(window).len(), 4);
        let mut with = drawn(window);
        with.extend(drawn(window).iter().flat_map(|rank| [(rank + 1) % 20, (rank + 19) % 20]));
        with.sort_unstable();
        with.dedup();
        assert_eq!(kept(window), with);
    }
    let partners: usize = (4..12).map(|window| kept(window).len() - 4).sum();
    assert_eq!(trace.partner_windows(), partners as u64);
    let stated = format!("{partners} of {} kept rank-windows", 80 + 32 + partners);
    says(&summary(&job), "partners", &[&stated]);
    assert!(!summary(&Synthetic::default()).contains("partners"));
    // The bytes of everything do not depend on the kept ranks: all have the same calls.
    let everything = |job: &Synthetic| storage::everything(&job.trace()).unwrap();
    let all = everything(&Synthetic { size: 20, config: job.config.clone(), ..job.clone() });
    let found = everything(&job);
    assert!((found / all - 1.0).abs() < 0.25, "{found} {all}");
    assert_eq!(plan.config.sampling.windows_per_update, 4);
}

#[test]
fn what_is_missing_is_said() {
    let job = Synthetic { killed: vec![2], ..Synthetic::default() };
    let mut trace = job.trace();
    trace.ranks.retain(|rank| rank.process.rank != 5);
    trace.ranks[0].process.agent_failures = 3;
    trace.ranks[0].process.own_ns = 40_000_000;
    trace.decisions[1].late = true;
    trace.damage.push(ampl_reader::Damage { rank: Some(5), what: "gone".into() });
    let text = text(&trace, Path::new("r"));
    says(&text, "processes", &["INCOMPLETE"]);
    for gap in [
        "1 rank left nothing that is readable here: 5",
        "1 rank did not reach MPI_Finalize: 2",
        "1 fault in the files, the first: rank 5: gone",
        "12 windows without a summary of every rank",
        "1 decision did not wait",
        "ampl itself failed 3 times",
        "ampl took more than the 1 % of agent.max_overhead",
    ] {
        assert!(text.contains(gap), "{gap}: {text}");
    }
    says(&text, "Efficiency", &["the 7 ranks read"]);
}

/// Three windows that one rank did not measure are in no efficiency; time in MPI lies between bounds.
#[test]
fn what_some_ranks_did_not_measure_is_bounded() {
    let mut trace = Synthetic { ranks: 20, size: 8, ..Synthetic::default() }.trace();
    let slots = ["wall", "mpi.time", "compute.time"]
        .map(|name| trace.run.metrics.iter().position(|metric| metric.name == name).unwrap());
    for rank in &mut trace.ranks {
        let number = rank.process.rank;
        for window in rank.windows.entries_mut() {
            // Windows of all lengths: most of each is MPI's, except in windows that not all ranks measured.
            let wall = f64::from(1 + number % 7) * 1e6;
            let mpi = wall * if window.window < 9 { 0.9 + f64::from(number % 3) * 0.01 } else { 0.2 };
            for (slot, time) in slots.into_iter().zip([wall, mpi, wall - mpi]) {
                put_cell(window, slot, Cell::one(time));
            }
        }
    }
    let step = Step { window: 9, at: 90_000_000, level: Level::Off, share: 0.2, limit: None };
    trace.ranks[3].process.steps = vec![step];
    trace.ranks[3].windows.entries_mut()[9..].iter_mut().for_each(|window| window.cells = Cells::default());
    let said = text(&trace, Path::new("r"));
    // Only bounds of the run are printed: the missing windows are the ones without waiting.
    let said = line(&said, "time in MPI");
    assert!(said.contains("not known (9 of 12 windows): between"), "{said}");
    assert!(!said.contains('±'), "{said}");
    let numbers: Vec<f64> = said.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [_nine, low, high, ..] = numbers[..] else { panic!("{said}") };
    let length = |rank: u32| f64::from(1 + rank % 7);
    let mpi: f64 =
        (0..20).map(|rank| length(rank) * (9.0 * (0.9 + f64::from(rank % 3) * 0.01) + 3.0 * 0.2)).sum();
    let all: f64 = (0..20).map(|rank| 12.0 * length(rank)).sum();
    let truth = 100.0 * mpi / all;
    assert!(low <= truth && truth <= high && high - low < 10.0, "{low} {truth} {high}: {said}");
}

#[test]
fn next_to_nothing_is_summed_up_too() {
    says(
        &summary(&Synthetic { ranks: 1, windows: 1, ..Synthetic::default() }),
        "processes",
        &["1 rank on 1 host (node0)"],
    );
    let text = summary(&Synthetic { ranks: 1, windows: 0, ..Synthetic::default() });
    says(&text, "windows", &["none was closed"]);
    let empty = self::text(&Trace::default(), Path::new("r"));
    says(&empty, "ampl: a run whose program is not known", &[]);
    says(&empty, "MPI library", &["not known"]);
}

#[test]
fn libraries_are_named_shortly() {
    assert_eq!(library("MPICH Version:\t4.0.2\nMPICH Release date: x"), "MPICH Version: 4.0.2");
    assert_eq!(library("Open MPI v4.1.4, package: Debian, ident"), "Open MPI v4.1.4");
}

#[test]
fn who_keeps_everything_has_no_error() {
    let text = summary(&Synthetic { size: 8, ..Synthetic::default() });
    says(&text, "from window 8: 8 of 8", &["everything kept for mpi.time (bound 8 %)"]);
    assert!(!text.contains("± 0 %"), "{text}");
    assert!(line(&text, "time in MPI").ends_with("of all time"), "{text}");
}

#[test]
fn many_groups_leave_the_summary_short() {
    let groups = |number: u32| {
        let group = |rank| format!("[[group]]\nname = 'g{rank}'\nmembers = '{rank}'\n");
        let config = (0..number).map(group).collect();
        summary(&Synthetic { config, ranks: 7, size: 1, ..Synthetic::default() })
    };
    for number in [1, 3, 6] {
        let text = groups(number);
        assert!(text.lines().count() <= HEIGHT, "{text}");
    }
    says(&groups(6), "4 groups more", &["ampl decisions"]);
}

#[test]
fn odd_paths_stay_whole_and_quoted() {
    let path = format!("/{}/it's here", "long".repeat(40));
    let text = text(&Synthetic::default().trace(), Path::new(&path));
    let (_, shown) = line(&text, "next").split_once("RUN=").unwrap();
    assert_eq!(shown, format!("'/{}/it'\\''s here'", "long".repeat(40)));
    says(&text, "ampl estimate \"$RUN\"", &[]);
}

/// Drawn ranks and stored calls differ, and each is called by its own name.
#[test]
fn the_sample_is_told_from_what_is_stored() {
    let of = |config: &str| {
        summary(&Synthetic { config: config.into(), ranks: 20, size: 8, ..Synthetic::default() })
    };
    let off = of("[trace]\nstructure = 'off'\n");
    says(&off, "group all", &["12 of 20 ranks drawn", "no calls are stored"]);
    says(&off, "trace file", &["times kept for 0 of 240 rank-windows"]);
    assert!(!off.contains("traced") && !off.contains("0 of 20"), "{off}");
    let verify = of("[output]\nverify = true\n");
    says(&verify, "group all", &["12 of 20 ranks drawn", "calls of all are stored"]);
    says(&verify, "trace file", &["times kept for all 240 rank-windows; 144 would be kept"]);
    let everyone = Synthetic { config: "[trace]\ntiming = 'off'\n".into(), size: 8, ..Synthetic::default() };
    says(&summary(&everyone), "from window 8: 8 of 8", &["everybody drawn for"]);
}

#[test]
fn windows_without_a_summary_are_all_counted() {
    let job = Synthetic { ranks: 20, size: 8, ..Synthetic::default() };
    let mut trace = job.trace();
    let lost = trace
        .ranks
        .iter_mut()
        .flat_map(|rank| rank.windows.entries_mut())
        .filter(|window| window.window >= 9);
    lost.for_each(|window| window.cells = Cells::default());
    let text = text(&trace, Path::new("r"));
    assert!(text.contains("3 of 12 windows without a summary of every rank"), "{text}");
}

#[test]
fn sites_are_left_out_in_two_ways() {
    let sites =
        "[[site]]\nmatch = 'MPI_Send'\ntrace = 'off'\n[[site]]\nmatch = 'MPI_Iprobe'\ntrace = 'aggregate'\n";
    let text = summary(&Synthetic { config: sites.into(), ..Synthetic::default() });
    assert!(text.contains("calls of MPI_Iprobe are stored without their times"), "{text}");
    assert!(text.contains("calls of MPI_Send are neither stored nor added up"), "{text}");
    let sampled = format!("[sampling]\nsummaries = 'sampled'\nselection = 'predictive'\n{sites}");
    let text = summary(&Synthetic { config: sampled, ..Synthetic::default() });
    says(&text, "Efficiency", &["calls that are off count as computing"]);
    assert!(!text.contains("Efficiency (exact"), "{text}");
}

#[test]
fn windows_by_the_clock_say_where_and_whether_others_have_other_ones() {
    let mut trace = Synthetic::default().trace();
    let step = Step { window: 1, at: 10_000_000_000, level: Level::Clock, share: 0.0, limit: None };
    trace.ranks[3].process.steps = vec![step.clone()];
    let said = text(&trace, Path::new("r"));
    assert!(said.contains("windows of 1 rank (3) end by the clock from 10 s on"), "{said}");
    assert!(said.contains("other ranks meet it: windows of one number are of different times"), "{said}");
    trace.ranks.iter_mut().for_each(|rank| rank.process.steps = vec![step.clone()]);
    let said = text(&trace, Path::new("r"));
    assert!(said.contains("end by the clock") && !said.contains("other ranks"), "{said}");
}

#[test]
fn the_heading_says_what_really_ended_windows() {
    let job = |marker: &str, windows| {
        let config = format!("[window]\nmarker = '{marker}'\n");
        Synthetic { config, windows, ..Synthetic::default() }
    };
    says(&summary(&job("auto", 12)), "Sampling (12 windows", &["each ends at period:250ms)"]);
    says(&summary(&job("region:NOPE", 12)), "Sampling (12 windows", &["each ends at region:NOPE)"]);
    let mut trace = job("region:NOPE", 12).trace();
    let step = Step { window: 1, at: 10_000_000_000, level: Level::Clock, share: 0.0, limit: None };
    trace.ranks[3].process.steps = vec![step.clone()];
    let some = text(&trace, Path::new("r"));
    says(&some, "Sampling", &["each ends at region:NOPE, on 1 of 8 ranks by the clock)"]);
    trace.ranks.iter_mut().for_each(|rank| rank.process.steps = vec![step.clone()]);
    let all = text(&trace, Path::new("r"));
    says(&all, "Sampling", &["(12 windows, by the clock from 10 s on, for want of region:NOPE)"]);
    // Over before the missing region could be noticed.
    let short = summary(&job("region:NOPE", 1));
    says(&short, "Sampling", &["(1 window, all of the run: region:NOPE ended none)"]);
    says(&short, "not covered", &["the marker region:NOPE ended no window"]);
    assert!(!short.contains("nothing is known to be missing"), "{short}");
    says(&summary(&job("period:1s", 1)), "not covered", &["nothing is known to be missing"]);
}

#[test]
fn a_census_counts_the_windows_in_which_all_were_there() {
    let mut trace = Synthetic::default().trace();
    let whole = text(&trace, Path::new("r"));
    says(&whole, "Efficiency", &["(exact: census of all ranks in every window)"]);
    trace.ranks[5].windows.entries_mut().pop();
    let short = text(&trace, Path::new("r"));
    says(&short, "Efficiency", &["(exact: census of all ranks; all were there in 11 of 12 windows)"]);
    trace.ranks[5].process.finalized = false;
    let died = text(&trace, Path::new("r"));
    says(&died, "Efficiency", &["(of 11 of 12 windows, 91.7 % of the run's time; all ranks)"]);
    for label in ["parallel", "load balance", "communication", "time in MPI"] {
        assert!(line(&died, label).ends_with("; of 11 of 12 windows, 91.7 % of the run's time"), "{died}");
    }
}

#[test]
fn a_guide_that_nobody_observes_and_a_marker_that_a_rank_never_meets_are_named() {
    let config =
        "[window]\nmarker = 'pcontrol'\n[[metric]]\nname = 'bytes.sent'\nrole = 'guide'\n".to_owned();
    let job = Synthetic { config, ..Synthetic::default() };
    let mut trace = job.trace();
    let slot = trace.run.metrics.iter().position(|metric| metric.name == "bytes.sent").unwrap();
    for window in trace.ranks.iter_mut().flat_map(|rank| rank.windows.entries_mut()) {
        put_cell(window, slot, Cell { n: 1.0, ..Cell::default() });
    }
    let said = text(&trace, Path::new("r"));
    assert!(said.contains("the guide bytes.sent was 0 in every window"), "{said}");
    assert!(!said.contains("the marker of"), "{said}");
    trace.ranks[2].windows.entries_mut().truncate(1);
    trace.ranks[2].windows.entries_mut()[0].partial = true;
    let said = text(&trace, Path::new("r"));
    assert!(said.contains("the marker of 1 rank (2): not met there"), "{said}");
    // Text that does not fit on a line continues in the next one.
    assert!(said.lines().all(|line| line.chars().count() <= WIDTH && !line.ends_with('…')), "{said}");
}

#[test]
fn a_counter_that_nobody_could_read_is_named_once() {
    let config = "[[metric]]\nname = 'papi.PAPI_FP_INS'\nrole = 'guide'\noptional = true\n".to_owned();
    let mut trace = Synthetic { config, ..Synthetic::default() }.trace();
    let slot = trace.run.metrics.iter().position(|metric| metric.name == "papi.PAPI_FP_INS").unwrap();
    trace.run.unmeasured = vec![("papi.PAPI_FP_INS".into(), "no libpapi.so is found here".into())];
    for window in trace.ranks.iter_mut().flat_map(|rank| rank.windows.entries_mut()) {
        put_cell(window, slot, Cell::default());
    }
    // Two ranks have reported nothing at all.
    for rank in &mut trace.ranks[..2] {
        rank.windows.entries_mut().iter_mut().for_each(|window| window.cells = Cells::default());
    }
    let said = text(&trace, Path::new("r"));
    assert!(said.contains("papi.PAPI_FP_INS not counted: no libpapi.so"), "{said}");
    assert!(!said.contains("the guide papi"), "{said}");
    put_cell(
        &mut trace.ranks[7].windows.entries_mut()[3],
        slot,
        Cell { n: 1.0, sum: 5.0, ..Cell::default() },
    );
    let said = text(&trace, Path::new("r"));
    assert!(said.contains("papi.PAPI_FP_INS not counted on 5 of 8 ranks: no libpapi.so"), "{said}");
}

/// Takes a share of some windows' time out of what a rank measured, as a pause does.
fn pause(rank: &mut RankTrace, windows: &[usize], share: f64) {
    rank.process.calls.push((Function::by_name("MPI_Pcontrol").unwrap().0, 2));
    for &window in windows {
        let window = &mut rank.windows.entries_mut()[window];
        let cell = window.cells.get(0).unwrap();
        put_cell(window, 0, Cell { sum: cell.sum * (1.0 - share), ..cell });
    }
}

#[test]
fn pauses_say_which_ranks_and_for_how_much_of_the_time() {
    let mut trace = Synthetic::default().trace();
    assert_eq!(trace.run.metrics[0].name, "wall");
    assert!(!text(&trace, Path::new("r")).contains("MPI_Pcontrol"));
    // A rank that calls it for markers only has none.
    pause(&mut trace.ranks[1], &[], 0.0);
    assert!(!text(&trace, Path::new("r")).contains("MPI_Pcontrol"));
    pause(&mut trace.ranks[3], &[2, 3, 4], 0.4);
    let said = text(&trace, Path::new("r"));
    assert!(said.contains("1 rank (3) paused ampl (MPI_Pcontrol) for 10 % of its time"), "{said}");
    pause(&mut trace.ranks[5], &[0, 1, 2], 0.8);
    let said = text(&trace, Path::new("r")).replace("\n                        ", " ");
    assert!(said.contains("2 ranks (3,5) paused ampl (MPI_Pcontrol) for 15 % of their time"), "{said}");
    assert!(said.contains("most: 20 % of rank 5"), "{said}");
    assert!(!said.contains("nothing is known to be missing"), "{said}");
    assert!(said.contains("Where MPI time goes (while measured: all ranks)"), "{said}");
}

#[test]
fn what_stands_for_a_part_is_not_called_the_whole() {
    let mut trace = Synthetic::default().trace();
    assert!(storage::everything(&trace).is_some());
    let step = |level| Step { window: 3, at: 1, level, share: 0.1, limit: None };
    trace.ranks[1].process.steps.push(step(Level::Drawn));
    assert!(storage::everything(&trace).is_some());
    trace.ranks[1].process.steps.push(step(Level::Structure));
    assert_eq!(storage::everything(&trace), None);
    let config = "[[site]]\nmatch = 'MPI_Barrier'\ntrace = 'off'\n".to_owned();
    let said = text(&Synthetic { config, ..Synthetic::default() }.trace(), Path::new("r"));
    assert!(said.contains("Where MPI time goes (traced calls: all ranks)"), "{said}");
}

/// Estimated bytes of all windows, against those they do take; ranks behave alike, so that the times of few stand
/// for all. So short runs have little else in their files that an error of the times would be small beside.
#[test]
fn what_all_would_take_is_near_what_all_take() {
    let mut wrong = Vec::new();
    for (ranks, windows, size) in [(20, 40, 4), (20, 200, 5), (8, 400, 2), (40, 12, 10)] {
        let job = Synthetic { ranks, windows, size, ..Synthetic::default() };
        let all = Synthetic { size: ranks, ..job.clone() }.trace().sizes.total as f64;
        let kept = job.trace();
        let found = storage::everything(&kept).unwrap();
        let off = found / all - 1.0;
        println!("{ranks} ranks, {windows} windows: {found} of {all}, {} kept", kept.sizes.total);
        wrong.extend((off.abs() > 0.18).then_some(off));
    }
    assert_eq!(wrong, [0.0; 0]);
}

#[test]
fn pauses_whose_length_is_not_stored_are_named_too() {
    let config = "[output]\nrank_summaries = 'off'\n".to_owned();
    let mut trace = Synthetic { config, ..Synthetic::default() }.trace();
    let pcontrol = Function::by_name("MPI_Pcontrol").unwrap().0;
    let mut structure = trace.structure.rank(2).unwrap();
    let level = |level| Signature { function: pcontrol, words: vec![level], ..Signature::default() };
    for (words, paused) in [(7, false), (0, true)] {
        structure.threads[0].signatures[1] = level(words);
        trace.structure = JobStructure::new(8);
        trace.structure.join(JobStructure::of(structure.clone()));
        trace.ranks[2].process.calls.push((pcontrol, 2));
        let said = text(&trace, Path::new("r")).replace("\n                        ", " ");
        let known = said.contains("1 rank (2) paused ampl (MPI_Pcontrol), for how long is not known");
        assert_eq!(known, paused, "{said}");
    }
}

#[test]
fn a_full_journal_says_since_when() {
    let mut trace = Synthetic::default().trace();
    let step = Step { window: 7, at: 73_000_000, level: Level::Summaries, share: 0.0, limit: None };
    trace.ranks[3].process.steps = vec![step];
    let text = text(&trace, Path::new("r"));
    assert!(
        text.contains("calls of 1 rank (3) were not stored from 73 ms on: there was no room for more"),
        "{text}"
    );
}

#[test]
fn nothing_is_exact_where_functions_are_out_of_sight() {
    let mut trace = Synthetic::default().trace();
    trace.run.hidden = vec!["MPI_Alltoall".into()];
    let said = text(&trace, Path::new("r"));
    assert!(!said.contains("all counted") && !said.contains("exact"), "{said}");
    says(&said, "parallel", &["not known (ampl does not see all MPI functions)"]);
}
