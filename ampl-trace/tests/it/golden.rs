//! A small trace as it was once written: it reads as it did then; whatever is changed in it, reading ends.
//!
//! `golden/v1/four-ranks.ampl` holds what `made` makes, and `four-ranks.jsonl` what was read from it; `four-ranks-gaps.ampl` is
//! the same without bundles; `four-ranks-rounded.ampl` has rounded windows; in `four-ranks-buffers.ampl` sends have two buffers in
//! turns; in `four-ranks-paths.ampl` calls come to their sites by two ways. A change of the format needs a version of its own, or to
//! be read beside this one. New files: `cargo test -p ampl-trace --test it golden -- --ignored`.

mod buffers;
mod paths;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ampl_core::config::Config;
use ampl_core::message::Decision;
use ampl_core::mpi::{Function, PREDEFINED};
use ampl_core::plan::Plan;
use ampl_trace::args::{NO_STATUS, predefined_word, status_word};
use ampl_trace::buffers::Buffers;
use ampl_trace::cells::Cell;
use ampl_trace::census::Census;
use ampl_trace::decode::{Call, Calls};
use ampl_trace::format::{Writer, rank_parts, read, v1};
use ampl_trace::gaps::Gaps;
use ampl_trace::grammar::Builder;
use ampl_trace::model::{
    Aggregate, ClockFit, GroupInfo, Level, MetricInfo, Process, Site, Step, WindowSummary,
};
use ampl_trace::places::{self, Places};
use ampl_trace::record::{CALL_ERROR, CALL_MISS, CALL_NO_ARGS, CALL_UNFINISHED, GAP};
use ampl_trace::rounding::round_windows;
use ampl_trace::structure::{Comm, JobStructure, RankStructure, Signature, ThreadStructure};
use ampl_trace::timing::{Encoder, Settings, Terminal, Time, Window};
use ampl_trace::totals::{SEVERAL, Totals};
use ampl_trace::{RankTrace, RunInfo, Trace};
use proptest::prelude::*;
use serde_json::{Value, json};

const RANKS: u32 = 4;
const TURNS: u64 = 4;

// ---- what is in it -------------------------------------------------------------------------------

fn predefined(name: &str) -> u64 {
    predefined_word(PREDEFINED.iter().position(|&(_, have)| have == name).expect("MPI has it") as u16)
}

fn text(words: &mut Vec<u64>, text: &str) {
    ampl_trace::record::put_text(words, text);
}

fn signature(name: &str, flags: u8, site: u32, words: &[u64]) -> Signature {
    let function = Function::by_name(name).expect("MPI has it").0;
    Signature { function, flags, site, path: 0, words: words.to_vec() }
}

/// A request by the terminal of the call that made it.
fn request(terminal: u64) -> u64 {
    (terminal + 1) << 20
}

/// Calls of the first thread: a ring that polls before it waits, an error, texts, vectors, a communicator.
fn signatures(rank: u32) -> Vec<Signature> {
    let (left, right) = (u64::from((rank + RANKS - 1) % RANKS), u64::from((rank + 1) % RANKS));
    let (world, int, double) =
        (predefined("MPI_COMM_WORLD"), predefined("MPI_INT"), predefined("MPI_DOUBLE"));
    let null = predefined("MPI_REQUEST_NULL");
    let (heap, module) = (places::other(None, 0), places::module(0, 0x4040));
    let base = 0x7ffe_0000_1000 + u64::from(rank) * 0x1000;
    let stack = places::stack(base, base - 64);
    let mut info = vec![predefined("MPI_INFO_ENV")];
    text(&mut info, "key");
    text(&mut info, "a value of 20 bytes.");
    let others = [u64::from(RANKS), 1, 2, 1, 0];
    let apart = [u64::from(RANKS), 0, 1, 3, 4];
    vec![
        signature("MPI_Init", CALL_NO_ARGS, 1, &[]),
        signature("MPI_Comm_rank", 0, 2, &[world, u64::from(rank)]),
        signature("MPI_Irecv", 0, 3, &[heap, 256, double, left, 7, world, 0]),
        signature("MPI_Isend", 0, 4, &[module, 256, double, right, 7, world, 0]),
        signature("MPI_Iprobe", CALL_MISS, 5, &[left, 99, world]),
        signature(
            "MPI_Waitall",
            0,
            6,
            &[2, 2, request(2), request(3), 2, null, null, 2, status_word(left as i32, 7), NO_STATUS],
        ),
        signature("MPI_Recv", CALL_ERROR, 7, &[15, stack, 1, int, left, 8, world]),
        signature("MPI_Info_set", 0, 0, &info),
        signature(
            "MPI_Alltoallv",
            0,
            0,
            &[&[heap], &others[..], &apart, &[int, u64::MAX], &others, &apart, &[int, world]].concat(),
        ),
        signature("MPI_Comm_dup", 0, 0, &[world, 1]),
        Signature { function: GAP, ..Signature::default() },
        signature("MPI_Finalize", CALL_NO_ARGS | CALL_UNFINISHED, 8, &[]),
    ]
}

/// Runs of the first thread's terminals: the last rank does not poll.
fn runs(rank: u32) -> Vec<(u32, u64)> {
    let mut runs = vec![(0, 1), (1, 1)];
    for turn in 0..TURNS {
        runs.extend([(2, 1), (3, 1)]);
        runs.extend((rank + 1 < RANKS).then_some((4, 1 + turn % 3)));
        runs.push((5, 1));
    }
    runs.extend([(6, 1), (7, 1), (8, 2), (9, 1), (10, 9), (11, 1)]);
    runs
}

fn grammar(runs: &[(u32, u64)]) -> ampl_trace::grammar::Grammar {
    let mut builder = Builder::new();
    runs.iter().for_each(|&(terminal, count)| builder.push(terminal, count));
    builder.grammar()
}

fn structure(rank: u32) -> RankStructure {
    let world = predefined("MPI_COMM_WORLD");
    let barrier = signature("MPI_Barrier", 0, 9, &[1]);
    let threads = vec![
        ThreadStructure { thread: 0, signatures: signatures(rank), grammar: grammar(&runs(rank)) },
        ThreadStructure { thread: 1, signatures: vec![barrier], grammar: grammar(&[(0, TURNS)]) },
    ];
    let site = |number: u64| Site { module: (number == 9).into(), offset: 0x1200 + 16 * number, caller: 0 };
    RankStructure {
        rank,
        threads,
        modules: vec!["/opt/app/ring".into(), "/opt/app/libhalo.so".into()],
        sites: (1..10).map(site).collect(),
        comms: [world, 1].map(|word| Comm { word, size: RANKS.into(), rank: rank.into() }).to_vec(),
    }
}

/// Times of two of three windows, in bins of a tenth.
fn times(rank: u32) -> Vec<u8> {
    let mut encoder = Encoder::new(Settings { error: 0.1, floor_ns: 0 });
    let mut clock = i64::from(rank) * 10;
    let mut seq = 0;
    encoder.window(Window { thread: 0, window: 0, first_seq: 0, start_ns: clock });
    for (index, (terminal, count)) in runs(rank).into_iter().enumerate() {
        let signature = &signatures(rank)[terminal as usize];
        if terminal == 6 {
            clock += 1_000_000;
            encoder.window(Window { thread: 0, window: 2, first_seq: seq, start_ns: clock });
        }
        seq += count;
        if signature.function == GAP {
            continue;
        }
        let folds = signature.flags & CALL_MISS != 0;
        for _ in 0..if folds { 1 } else { count } {
            let duration_ns = 800 + 100 * (index as u64 % 7) + u64::from(terminal) * 50;
            encoder.call(
                Terminal { number: terminal, like: signature.function, folds },
                Time { start_ns: clock, duration_ns, count: if folds { count } else { 1 } },
            );
            clock += duration_ns as i64 + 300;
        }
    }
    let like = Function::by_name("MPI_Barrier").expect("MPI has it").0;
    encoder.window(Window { thread: 1, window: 0, first_seq: 0, start_ns: 5000 });
    for turn in 0..TURNS as i64 {
        let time = Time { start_ns: 5000 + turn * 4000, duration_ns: 2500, count: 1 };
        encoder.call(Terminal { number: 0, like, folds: false }, time);
    }
    encoder.finish()
}

fn rank(number: u32) -> RankTrace {
    let base = 0x7ffe_0000_1000 + u64::from(number) * 0x1000;
    let mut found = Places::default();
    found.take(0, places::other(None, 0), 0x5555_0000_2000 + u64::from(number) * 16);
    found.take(0, places::module(0, 0), 0x5500_0000_0000);
    found.take(0, places::stack(base, base), base);
    let cell = |n: f64, sum: f64| Cell { n, sum, sum_sq: sum * sum / n, min: sum / n, max: sum / n };
    let window = |window: u64| WindowSummary {
        window,
        start_ns: window as i64 * 1_000_000,
        end_ns: (window as i64 + 1) * 1_000_000,
        own_ns: 400,
        kept: window != 1,
        drawn: window == 0,
        partner: window == 2 && number == 1,
        partial: window == 2,
        probability: if window == 0 { 1.0 } else { 0.5 },
        inclusion: (window == 2).then_some(0.75),
        stratum: (window == 2).then_some(3),
        update: window / 2,
        cells: [Cell::default(), cell(1.0, 81_000.0), cell(4.0, f64::from(number) + 0.25)]
            .into_iter()
            .collect(),
        repeat: if window == 1 { 40 } else { 1 },
    };
    let number_of = |name: &str| Function::by_name(name).expect("MPI has it").0;
    let mut calls =
        vec![(number_of("MPI_Isend"), TURNS), (number_of("MPI_Barrier"), TURNS), (number_of("MPI_Wtime"), 9)];
    calls.sort_unstable();
    let steps =
        vec![Step { window: 2, at: 1_500_000, level: Level::Summaries, share: 0.015_625, limit: None }];
    RankTrace {
        process: Process {
            rank: number,
            host: format!("node{}", number / 2),
            cpus: "0-1".into(),
            pid: 1000 + number,
            finalized: true,
            agent_failures: 0,
            own_ns: 12_345,
            elapsed_ns: 3_000_000,
            mpi_threads: 0,
            calls,
            clock: (number == 2).then_some(ClockFit {
                offset_ns: -1_500_000,
                error_ns: 2_100,
                drift_ppm: Some(1.25),
            }),
            steps: if number == 3 { steps } else { Vec::new() },
            ..Process::default()
        },
        modules: Arc::default(),
        sites: Arc::default(),
        windows: (0..3).map(window).collect(),
        digits: 0,
        times: times(number),
        places: found,
        buffers: Buffers::default(),
        gaps: Gaps::default(),
    }
}

fn totals(number: u32) -> Totals {
    let aggregate = |site: Option<u32>, function: &str, calls: u64| Aggregate {
        site,
        // Sites beyond the table are of several functions.
        function: site.map_or(SEVERAL, |_| Function::by_name(function).expect("MPI has it").0),
        calls,
        time_ns: 1000.0 * calls as f64,
        time_sq: 1.5e6 * calls as f64,
        min_ns: 700.0 - f64::from(number),
        max_ns: 1900.0 + f64::from(number % 3),
        sent: calls * 2048,
        received: 0,
    };
    let RankStructure { modules, sites, .. } = structure(number);
    let entries = [aggregate(Some(3), "MPI_Isend", TURNS), aggregate(None, "MPI_Barrier", TURNS)];
    Totals::of(number, &modules, &sites, &entries)
}

fn run() -> RunInfo {
    RunInfo {
        ampl_version: "0.1.0".into(),
        mpi_library: "an MPI".into(),
        ranks: RANKS,
        command: vec!["./ring".into(), "12".into()],
        started_ns: 1_770_000_000_000_000_000,
        config: "[trace]\ntiming = \"kept\"\n".into(),
        metrics: vec![MetricInfo { name: "mpi.time".into(), event: "*".into(), guide: true }],
        groups: vec![GroupInfo { name: "all".into(), members: "0-3".into() }],
        ..RunInfo::default()
    }
}

fn decision() -> Decision {
    let text = r#"{"update":1,"window":2,"group":"all","stratum":0,"mechanism":"subset","population":4,
        "reported":4,"late":false,"size":2,"probability":0.5,"guide":"mpi.time","policy":1}"#;
    serde_json::from_str(text).expect("a decision")
}

/// Differences that rounding makes in a window of one rank.
fn census() -> Census {
    let plan = Plan::new(Config::default(), RANKS).expect("a job of that size");
    let cells = [5e6, 1_234_567.0, 3_456_789.0].map(Cell::one).into_iter().collect();
    let window = WindowSummary { cells, repeat: 1, ..WindowSummary::default() };
    round_windows(&plan, &mut RankTrace { windows: vec![window].into(), ..RankTrace::default() })
}

/// A file.
#[derive(Clone, Copy)]
struct Form {
    name: &'static str,
    /// Significant bits of the windows' values.
    digits: u32,
    /// True where calls have other buffers than their signatures.
    moves: bool,
    /// True where ways to sites are known.
    paths: bool,
}

/// The files that are written now.
const FORMS: [Form; 4] = [
    Form { name: "four-ranks-bundles", digits: 0, moves: false, paths: false },
    Form { name: "four-ranks-rounded", digits: 10, moves: false, paths: false },
    Form { name: "four-ranks-buffers", digits: 0, moves: true, paths: false },
    Form { name: "four-ranks-paths", digits: 0, moves: false, paths: true },
];

/// The file of that form.
fn made(Form { digits, moves, paths, .. }: Form) -> Vec<u8> {
    let (mut merged, mut total) = (JobStructure::new(RANKS), Totals::default());
    for rank in 0..RANKS {
        merged.join(JobStructure::of(if paths { paths::of(rank) } else { structure(rank) }));
        total.join(totals(rank));
    }
    let mut writer = Writer::new(Vec::new()).expect("memory takes everything");
    writer.run(&run(), &[decision()]).expect("memory takes everything");
    writer.structure(&merged).expect("memory takes everything");
    writer.totals(&total).expect("memory takes everything");
    if digits > 0 {
        writer.census(&census()).expect("memory takes everything");
    }
    for number in 0..RANKS {
        let buffers = if moves { buffers::of(number) } else { Buffers::default() };
        let own = RankTrace { digits, buffers, ..rank(number) };
        writer.rank(&rank_parts(&own)).expect("memory takes everything");
    }
    writer.finish().expect("memory takes everything")
}

// ---- how it reads --------------------------------------------------------------------------------

fn call_line(rank: u32, call: &Call) -> Value {
    let named = |values: &[(&'static str, ampl_core::value::Value)]| -> Value {
        values
            .iter()
            .map(|(name, value)| (name.to_string(), json!(value)))
            .collect::<serde_json::Map<_, _>>()
            .into()
    };
    json!({
        "rank": rank, "thread": call.thread, "seq": call.seq, "count": call.count, "fn": call.function.name(),
        "args": named(&call.args), "out": named(&call.out), "code": call.code, "site": call.site,
        "window": call.timed.map(|timed| timed.window), "start_ns": call.timed.map(|timed| timed.start_ns),
        "duration_ns": call.timed.and_then(|timed| timed.duration_ns),
    })
}

/// Everything in `trace`, a line each.
fn lines(trace: &Trace) -> String {
    let mut lines = vec![
        json!({
            "complete": trace.complete, "damage": trace.damage.len(),
            "ranks": trace.structure.ranks().count(),
            "signatures": trace.structure.signatures(), "grammars": trace.structure.grammars(),
        }),
        json!({"run": trace.run}),
    ];
    lines.extend(trace.decisions.iter().map(|decision| json!({"decision": decision})));
    lines.extend(trace.totals.places().map(|place| json!({"total": format!("{place:?}")})));
    lines.extend(trace.totals.shares().map(|share| json!({"share": format!("{share:?}")})));
    for rank in &trace.ranks {
        let number = rank.process.rank;
        lines.push(json!({"process": rank.process, "modules": &rank.modules[..]}));
        let sites = rank.sites.iter().map(|site| json!([site.module, site.offset])).collect::<Vec<_>>();
        lines.push(json!({"rank": number, "sites": sites}));
        lines.extend(
            rank.windows
                .entries()
                .iter()
                .map(|window| json!({"rank": number, "window": format!("{window:?}")})),
        );
        let structure = trace.structure.rank(number).unwrap_or_default();
        let comms =
            structure.comms.iter().map(|comm| json!([comm.word, comm.size, comm.rank])).collect::<Vec<_>>();
        lines.push(json!({"rank": number, "comms": comms}));
        for call in Calls::new(&structure, rank) {
            lines.push(
                call.map_or_else(
                    |error| json!({"error": error.to_string()}),
                    |call| call_line(number, &call),
                ),
            );
        }
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/v1").join(name)
}

fn golden() -> Vec<u8> {
    std::fs::read(path("four-ranks-bundles.ampl")).expect("part of the repository")
}

#[test]
fn what_was_once_written_reads_as_it_did() {
    // Since "gaps" others of the times within the bounds are stored.
    let since =
        ["four-ranks-gaps", "four-ranks-bundles", "four-ranks-rounded"].map(|name| (name, "four-ranks-gaps"));
    let own = ["four-ranks", "four-ranks-buffers"].map(|name| (name, name));
    for (name, lines_of) in own.into_iter().chain(since) {
        let then = path(&format!("{lines_of}.jsonl"));
        let then = std::fs::read_to_string(then).expect("part of the repository");
        let bytes = std::fs::read(path(&format!("{name}.ampl"))).expect("part of the repository");
        assert!(bytes.len() < 10_000);
        let told = lines(&read(&bytes).expect("this version reads it"));
        for (number, (told, then)) in told.lines().zip(then.lines()).enumerate() {
            assert_eq!(told, then, "{name}, line {}", number + 1);
        }
        assert_eq!(told.lines().count(), then.lines().count(), "{name}");
    }
}

/// Checks that the lines above are right, not only that they are as they were.
#[test]
fn what_is_written_now_reads_as_what_was_written_once() {
    for form in FORMS {
        let name = form.name;
        let then = std::fs::read(path(&format!("{name}.ampl"))).expect("part of the repository");
        assert_eq!(made(form), then, "{name}");
    }
    assert_eq!(read(&made(FORMS[1])).expect("a trace").census, census());
    let (then, now) = (read(&golden()).expect("a trace"), read(&made(FORMS[0])).expect("a trace"));
    assert_eq!(lines(&now), lines(&then));
    for number in 0..RANKS {
        assert_eq!(now.structure.rank(number), Some(structure(number)));
        let (stored, made) = (now.rank(number).expect("every rank"), rank(number));
        assert_eq!((&stored.process, &stored.places), (&made.process, &made.places));
        assert_eq!(stored.windows, made.windows);
    }
    let mut total = Totals::default();
    (0..RANKS).rev().for_each(|rank| total.join(totals(rank)));
    assert_eq!(now.totals, total);
}

#[test]
#[ignore = "writes the files anew"]
fn bless() {
    for form in FORMS {
        let bytes = made(form);
        std::fs::write(path(&format!("{}.ampl", form.name)), &bytes).expect("a place to write");
        if form.moves {
            let told = lines(&read(&bytes).expect("a trace"));
            std::fs::write(path(&format!("{}.jsonl", form.name)), told).expect("a place to write");
        }
    }
}

/// Reads some of everything; whatever the bytes are.
fn look_at(bytes: &[u8]) -> Option<Trace> {
    let trace = read(bytes).ok()?;
    for rank in trace.ranks.iter().take(8) {
        let structure = trace.structure.rank(rank.process.rank).unwrap_or_default();
        let found: Vec<bool> = Calls::new(&structure, rank).take(5000).map(|call| call.is_ok()).collect();
        // An error is the last thing there is.
        assert!(found.iter().rev().skip(1).all(|&ok| ok));
    }
    trace.ranks.iter().for_each(|rank| assert!(rank.windows.iter().take(10_000).count() <= 10_000));
    Some(trace)
}

/// Changes to some bytes: where, in thousandths of their length, and to what.
fn changes() -> impl Strategy<Value = Vec<(usize, u8)>> {
    prop::collection::vec((0..1000usize, any::<u8>()), 1..6)
}

fn change(bytes: &mut Vec<u8>, changes: &[(usize, u8)], cut: usize) {
    bytes.truncate(bytes.len() * cut / 1000);
    let length = bytes.len();
    changes.iter().filter(|_| length > 0).for_each(|&(at, to)| bytes[at * length / 1000] ^= to);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// No change behind the header makes a trace unreadable, and whole sections are used.
    #[test]
    fn a_changed_file_is_read_with_what_is_left(changes in changes(), cut in 12..=1000usize) {
        let mut bytes = golden();
        let whole = bytes.clone();
        change(&mut bytes, &changes, cut);
        bytes.splice(..12.min(bytes.len()), whole[..12].iter().copied());
        let trace = look_at(&bytes).expect("its header is whole");
        prop_assert!(bytes == whole || !trace.damage.is_empty());
    }

    /// Contents are checked even where checksums agree.
    #[test]
    fn a_changed_section_with_the_right_checksum_is_read(
        which in 0..32usize,
        changes in changes(),
        cut in 500..=1000usize,
    ) {
        let bytes = golden();
        let (sections, _) = v1::read(&bytes).expect("a trace");
        let mut writer = v1::Writer::new(Vec::new()).expect("memory takes everything");
        for (number, section) in sections.iter().enumerate() {
            let mut payload = section.payload.to_vec();
            if number == which % sections.len() {
                change(&mut payload, &changes, cut);
            }
            writer.section(section.kind, section.rank, &payload).expect("memory takes everything");
        }
        look_at(&writer.finish().expect("memory takes everything"));
    }
}
