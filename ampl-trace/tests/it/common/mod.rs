//! Shared parts of this crate's tests: a small journal, and readers that use everything.

use ampl_core::mpi::{FUNCTION_COUNT, Function, PREDEFINED};
use ampl_core::value::ObjectKind;
use ampl_trace::args::predefined_word;
use ampl_trace::cells::{Cell, Cells};
use ampl_trace::decode::Calls;
use ampl_trace::from_journal::{Compacted, compact};
use ampl_trace::grammar::Builder;
use ampl_trace::journal::{
    self, BLOCK_MAGIC, BlockKind, HEADER_WORDS, MAGIC, SITE_WORDS, VERSION, flag, table_checksum, word,
};
use ampl_trace::record::{
    CALL_ERROR, CALL_MISS, CALL_NO_ARGS, CALL_UNFINISHED, GAP, Kind, WINDOW_DRAWN, WINDOW_INCLUSION,
    WINDOW_KEPT, WINDOW_PARTNER, WINDOW_RUN, header, put_text,
};
use ampl_trace::structure::RankStructure;
use ampl_trace::timing::Settings;
use ampl_trace::{RankTrace, ReadError, Trace};

/// Uses everything that reading commands use; must end without panic.
pub fn look_at(trace: &Trace) {
    trace.function_calls();
    trace.windows();
    trace.kept_windows();
    for rank in &trace.ranks {
        if let Some(structure) = trace.structure.rank(rank.process.rank) {
            look_at_calls(&structure, rank);
        }
    }
}

/// Reads some of the calls, of which damaged ones may be any number.
pub fn look_at_calls(structure: &RankStructure, rank: &RankTrace) {
    let found: Vec<_> = Calls::new(structure, rank).take(1000).collect();
    // An error is the last thing there is.
    assert!(found.iter().rev().skip(1).all(Result::is_ok));
}

/// As [`compact`] makes them, times exact.
pub fn compacted(bytes: &[u8]) -> Result<Compacted, ReadError> {
    compact(bytes, Settings { error: 0.0, floor_ns: 0 })
}

pub fn journal_header() -> Vec<u64> {
    let mut words = vec![0; HEADER_WORDS];
    words[word::MAGIC] = MAGIC;
    words[word::VERSION] = VERSION;
    words[word::TABLE] = table_checksum().into();
    words
}

pub fn push_block(words: &mut Vec<u64>, kind: BlockKind, thread: u32, payload: &[u64]) {
    let length = payload.len() as u64;
    words.extend([BLOCK_MAGIC, kind.number(), u64::from(thread), length, length, 0, 0, 0]);
    words.extend(payload);
}

/// A block of a thread that has a number in the order of their contents.
pub fn push_ordered(words: &mut Vec<u64>, kind: BlockKind, thread: u32, order: u64, payload: &[u64]) {
    let at = words.len();
    push_block(words, kind, thread, payload);
    words[at + journal::head::ORDER] = order;
}

pub fn bytes_of(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// The payload of a snapshot of these runs: of the grammar, or of what grows.
pub fn snapshot(runs: &[(u32, u64)]) -> Vec<u64> {
    let (mut builder, mut bytes) = (Builder::new(), Vec::new());
    runs.iter().for_each(|&(terminal, count)| builder.push(terminal, count));
    if runs.len().is_multiple_of(2) {
        bytes.push(journal::snapshot::GRAMMAR);
        builder.grammar().write(&mut bytes);
    } else {
        bytes.push(journal::snapshot::BUILDER);
        builder.dump(&mut bytes);
    }
    let mut words = vec![bytes.len() as u64];
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    words.extend(bytes.as_chunks().0.iter().map(|&word| u64::from_le_bytes(word)));
    words
}

/// The payload of a log of these runs.
pub fn log(runs: &[(u32, u64)]) -> Vec<u64> {
    runs.iter().map(|&(terminal, count)| u64::from(terminal) | count << 32).collect()
}

pub fn number(name: &str) -> u16 {
    Function::by_name(name).unwrap().0
}

pub fn predefined(name: &str) -> u64 {
    predefined_word(PREDEFINED.iter().position(|&(_, have)| have == name).unwrap() as u16)
}

pub fn push(words: &mut Vec<u64>, kind: Kind, flags: u8, function: u16, body: &[u64]) {
    words.push(header(kind, flags, function, body.len() + 1));
    words.extend_from_slice(body);
}

/// Two threads, two kept windows and a dropped one; two ticks are a nanosecond.
pub fn small_journal() -> Vec<u8> {
    let mut words = journal_header();
    (words[word::RANK], words[word::RANKS], words[word::FLAGS]) = (3, 4, flag::FINALIZED);
    (words[word::TICKS_FIRST], words[word::NANOS_FIRST]) = (1000, (-50i64) as u64);
    (words[word::TICKS_LAST], words[word::NANOS_LAST]) = (9000, 3950);
    words[word::OWN_TICKS] = 20;
    let mut texts = Vec::new();
    ["node", "0-1"].iter().for_each(|text| put_text(&mut texts, text));
    words[word::TEXTS..word::TEXTS + texts.len()].copy_from_slice(&texts);

    let mut counts = vec![0; FUNCTION_COUNT];
    counts[usize::from(number("MPI_Barrier"))] = 4;
    push_block(&mut words, BlockKind::Counters, 0, &counts);
    push_block(&mut words, BlockKind::Counters, 1, &counts);
    let mut sites = vec![0; 3 * SITE_WORDS];
    sites[SITE_WORDS..2 * SITE_WORDS].copy_from_slice(&[
        9,
        number("MPI_Barrier").into(),
        4,
        400,
        0,
        50,
        150,
        8,
        0,
        0,
    ]);
    push_block(&mut words, BlockKind::Sites, 0, &sites);

    let world = predefined("MPI_COMM_WORLD");
    let mut stream = Vec::new();
    let mut text = vec![0];
    put_text(&mut text, "/bin/app");
    push(&mut stream, Kind::Module, 0, 0, &text);
    push(&mut stream, Kind::Site, 0, 0, &[1, 0, 0x40]);
    push(&mut stream, Kind::Open, 0, 0, &[0, 1000, 1f64.to_bits(), 0, 1]);
    push(&mut stream, Kind::Signature, 0, GAP, &[0]);
    push(&mut stream, Kind::Signature, 0, number("MPI_Barrier"), &[1, world]);
    push(&mut stream, Kind::Call, 0, 0, &[1100, 100, 1 | 1 << 32]);
    push(&mut stream, Kind::Signature, CALL_MISS, number("MPI_Iprobe"), &[1, 2, 5, world]);
    push(&mut stream, Kind::Call, CALL_MISS, 0, &[1300, 60, 2 | 4 << 32]);
    push(&mut stream, Kind::Signature, CALL_ERROR, number("MPI_Barrier"), &[1, 13, world]);
    push(&mut stream, Kind::Call, CALL_ERROR, 0, &[1500, 10, 3 | 1 << 32]);
    push(&mut stream, Kind::Place, 0, 0, &[ampl_trace::places::other(None, 3), 0x7fff_0000]);
    push(&mut stream, Kind::Object, 0, 0, &[ObjectKind::Comm as u64, 5, 16, 2]);
    let window = |number: u64, kept: bool| {
        let mut body = vec![number, 1000 + 2000 * number, 3000 + 2000 * number, 4, 0.5f64.to_bits(), 1];
        Cells::put(&mut body, &[Cell::one(300.0)]);
        (if kept { WINDOW_KEPT | WINDOW_DRAWN } else { 0 }, body)
    };
    let (flags, body) = window(0, true);
    push(&mut stream, Kind::Window, flags, 0, &body);
    // Not drawn, but kept for a partner's sake; behind the cells how many windows, and how likely that was.
    let (_, mut body) = window(1, false);
    body.extend([1, 0.75f64.to_bits()]);
    let flags = WINDOW_KEPT | WINDOW_PARTNER | WINDOW_RUN | WINDOW_INCLUSION;
    push(&mut stream, Kind::Window, flags, 0, &body);
    push(&mut stream, Kind::Open, 0, 0, &[2, 5000, 0.5f64.to_bits(), 1, 20]);
    push(&mut stream, Kind::Signature, CALL_NO_ARGS | CALL_UNFINISHED, number("MPI_Finalize"), &[0]);
    push(&mut stream, Kind::Call, CALL_NO_ARGS | CALL_UNFINISHED, 0, &[6000, 0, 4 | 1 << 32]);
    let (flags, body) = window(2, true);
    push(&mut stream, Kind::Window, flags, 0, &body);
    push_block(&mut words, BlockKind::Stream, 0, &stream);
    // A snapshot, the log that it has taken in, an older snapshot, and what came since.
    let runs = [(0, 1), (1, 1), (2, 4), (3, 1), (0, 13), (4, 1)];
    push_ordered(&mut words, BlockKind::Log, 0, 1, &log(&runs[1..4]));
    push_ordered(&mut words, BlockKind::Snapshot, 0, 2, &snapshot(&runs[..4]));
    push_ordered(&mut words, BlockKind::Snapshot, 0, 1, &snapshot(&runs[..1]));
    push_ordered(&mut words, BlockKind::Log, 0, 2, &log(&runs[4..]));

    let mut other = Vec::new();
    push(&mut other, Kind::Open, 0, 0, &[0, 1000, 1f64.to_bits(), 0, 0]);
    push(&mut other, Kind::Signature, 0, number("MPI_Barrier"), &[0, world]);
    push(&mut other, Kind::Call, 0, 0, &[1200, 20, 1 << 32]);
    push_block(&mut words, BlockKind::Stream, 1, &other);
    push_block(&mut words, BlockKind::Log, 1, &[1 << 32]);
    bytes_of(&words)
}
