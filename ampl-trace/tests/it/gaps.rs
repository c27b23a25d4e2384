//! Gaps in trace files: as they were once written, as they are now, and of traces that have none.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use ampl_core::mpi::Function;
use ampl_trace::decode::{Event, Events};
use ampl_trace::format::{Writer, rank_parts, read};
use ampl_trace::gaps::{Gaps, Reason, Span, ThreadGaps, Unrecorded};
use ampl_trace::grammar::{Builder, Grammar};
use ampl_trace::model::Site;
use ampl_trace::record::{CALL_NO_ARGS, GAP};
use ampl_trace::structure::{JobStructure, RankStructure, Signature, ThreadStructure};
use ampl_trace::{RankTrace, RunInfo, Trace};

const RANKS: u32 = 3;

fn number(name: &str) -> u16 {
    Function::by_name(name).expect("MPI has it").0
}

fn grammar(runs: &[(u32, u64)]) -> Grammar {
    let mut builder = Builder::new();
    runs.iter().for_each(|&(terminal, count)| builder.push(terminal, count));
    builder.grammar()
}

/// Calls with a gap of one call and more, which differs between ranks, and one at the end.
fn structure(rank: u32) -> RankStructure {
    let call = |name, site| Signature {
        function: number(name),
        flags: CALL_NO_ARGS,
        site,
        path: 0,
        words: Vec::new(),
    };
    let gap = Signature { function: GAP, ..Signature::default() };
    let signatures = vec![call("MPI_Init", 1), call("MPI_Send", 2), gap, call("MPI_Barrier", 3)];
    let mut runs = vec![(0, 1)];
    for turn in 0..4 {
        runs.extend([(1, 2), (2, 1 + turn * u64::from(rank)), (3, 1)]);
    }
    let threads = vec![ThreadStructure { thread: 0, signatures, grammar: grammar(&runs) }];
    let site = |number: u64| Site { module: 0, offset: 0x1200 + 16 * number, caller: 0 };
    let (modules, sites) = (vec!["/opt/app/ring".into()], (0..4).map(site).collect());
    RankStructure { rank, threads, modules, sites, comms: Vec::new() }
}

fn gaps(rank: u32) -> Gaps {
    let kinds = vec![
        Unrecorded { function: number("MPI_Iprobe"), site: 4, reason: Reason::Site },
        Unrecorded { function: number("MPI_Test"), site: 0, reason: Reason::Overhead },
        Unrecorded { function: number("MPI_Recv"), site: 0, reason: Reason::Unfinished },
    ];
    let mut runs = Vec::new();
    for turn in 0..4 {
        runs.extend([(0, 1), (1, turn * u64::from(rank))]);
    }
    runs.push((2, 1));
    runs.retain(|&(_, calls)| calls > 0);
    let reasons = Reason::Site.bit() | if rank > 0 { Reason::Overhead.bit() } else { 0 };
    let spans = vec![
        Span { seq: 3, from_ns: 1000, until_ns: 2000 + i64::from(rank), reasons: Reason::Site.bit() },
        Span { seq: 7, from_ns: 5000, until_ns: 5000, reasons },
    ];
    let rest = Some(Span { seq: 11 + u64::from(rank), from_ns: 6000, until_ns: 9000, reasons });
    Gaps { threads: vec![ThreadGaps { thread: 0, kinds, sequence: grammar(&runs), spans, rest }] }
}

fn made() -> Vec<u8> {
    let mut merged = JobStructure::new(RANKS);
    (0..RANKS).for_each(|rank| merged.join(JobStructure::of(structure(rank))));
    let mut writer = Writer::new(Vec::new()).expect("memory takes everything");
    let run = RunInfo { ranks: RANKS, has_gaps: true, ..RunInfo::default() };
    writer.run(&run, &[]).expect("memory takes everything");
    writer.structure(&merged).expect("memory takes everything");
    for number in 0..RANKS {
        let mut rank = RankTrace { gaps: gaps(number), ..RankTrace::default() };
        rank.process.rank = number;
        writer.rank(&rank_parts(&rank)).expect("memory takes everything");
    }
    writer.finish().expect("memory takes everything")
}

/// Calls and gaps of all ranks, and what is missing of each, a line each.
fn lines(trace: &Trace) -> String {
    let mut out = String::new();
    for rank in &trace.ranks {
        let structure = trace.structure.rank(rank.process.rank).expect("its calls");
        for event in Events::new(&structure, rank) {
            match event.expect("decodable") {
                Event::Call(call) => {
                    writeln!(out, "{} {} {}", rank.process.rank, call.seq, call.function.name())
                }
                Event::Gap(gap) => writeln!(
                    out,
                    "{} {} {} calls {} {:?} {:?}",
                    rank.process.rank,
                    gap.seq,
                    gap.calls,
                    gap.reason,
                    gap.span_ns,
                    gap.parts
                        .iter()
                        .map(|part| (name(part.function), part.site, part.calls))
                        .collect::<Vec<_>>()
                ),
                Event::Enter(_) | Event::Exit(_) => unreachable!("the program has no regions"),
            }
            .expect("memory takes everything");
        }
        for own in rank.gaps.missing() {
            let line = (rank.process.rank, own.reason.name(), own.calls, own.span_ns);
            writeln!(out, "{line:?}").expect("memory takes everything");
        }
    }
    out
}

fn name(function: u16) -> &'static str {
    Function(function).name()
}

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/v1").join(name)
}

#[test]
fn what_was_once_written_reads_as_it_did() {
    let bytes = std::fs::read(path("three-ranks-unrecorded.ampl")).expect("part of the repository");
    let then = std::fs::read_to_string(path("three-ranks-unrecorded.txt")).expect("part of the repository");
    let trace = read(&bytes).expect("this version reads it");
    assert_eq!(trace.damage, []);
    assert_eq!(lines(&trace), then);
    let now = read(&made()).expect("a trace");
    assert_eq!(lines(&now), then);
    for (rank, of) in now.ranks.iter().zip(0..) {
        assert_eq!((&rank.gaps, now.structure.rank(of)), (&gaps(of), Some(structure(of))));
    }
}

/// Ranks whose gaps differ share a grammar all the same.
#[test]
fn gaps_do_not_part_ranks() {
    let trace = read(&made()).expect("a trace");
    assert_eq!(trace.structure.grammars(), 1, "the lengths of gaps are counts");
}

/// Traces of before have no section for them.
#[test]
fn a_gap_without_its_calls_has_their_number() {
    let bytes = std::fs::read(path("four-ranks.ampl")).expect("part of the repository");
    let trace = read(&bytes).expect("this version reads it");
    let rank = &trace.ranks[0];
    let structure = trace.structure.rank(0).expect("its calls");
    let found: Vec<_> = Events::new(&structure, rank)
        .filter_map(|event| match event.expect("decodable") {
            Event::Gap(gap) => Some((gap.calls, gap.reason, gap.parts.len(), gap.span_ns)),
            _ => None,
        })
        .collect();
    assert_eq!(found, [(9, Reason::Unknown, 0, None)]);
    assert!(!trace.run.has_gaps);
}

#[test]
#[ignore = "writes the files anew"]
fn bless() {
    let bytes = made();
    std::fs::write(path("three-ranks-unrecorded.ampl"), &bytes).expect("a place to write");
    let lines = lines(&read(&bytes).expect("a trace"));
    std::fs::write(path("three-ranks-unrecorded.txt"), lines).expect("a place to write");
}
