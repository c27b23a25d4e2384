//! Journals are read as they were written, whichever thread wrote which block; damage is reported, and everything else
//! is there.

use std::collections::BTreeMap;

use ampl_core::mpi::FUNCTION_COUNT;
use ampl_trace::Trace;
use ampl_trace::decode::{Calls, Timed};
use ampl_trace::from_journal::Compacted;
use ampl_trace::journal::{self, BLOCK_MAGIC, BlockKind, HEADER_WORDS, SITE_WORDS, flag, word};
use ampl_trace::model::Site;
use ampl_trace::record::{CALL_MISS, Kind, SIGNATURE_WAY};
use ampl_trace::structure::{Comm, JobStructure, Signature};
use ampl_trace::timing::{Decoder, Terminal, Time, Window};
use proptest::prelude::*;

use crate::common::{
    bytes_of, compacted, journal_header, log, look_at, look_at_calls, number, predefined, push, push_block,
    push_ordered, small_journal, snapshot,
};

/// A call whose times are stored: terminal, start, ticks, and how often for a failed poll.
type Stored = (u32, u64, u64, u32);

/// Offset of the caller of all sites.
const CALLER: u64 = 1 << 40;

/// Way of the calls of a site.
fn way_of(site: u32) -> u8 {
    site as u8 % 3
}

/// Records of a thread.
#[derive(Clone, Debug)]
struct Left {
    /// Function, flags, index of the site, words.
    signatures: Vec<(u16, u8, u32, Vec<u64>)>,
    runs: Vec<(u32, u64)>,
    /// Number of runs that each snapshot has taken in, ascending.
    snapshots: Vec<usize>,
    /// Index, offset.
    sites: Vec<(u32, u64)>,
    /// Start, calls before it, calls in it.
    windows: Vec<(u64, u64, Vec<Stored>)>,
}

/// Ticks since when and nanoseconds since T0 of the first clock pair, and a tick in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Pair {
    ticks: u64,
    nanos: i64,
    per_tick: f64,
}

const ELAPSED: u64 = 1 << 40;

/// A journal of these threads, the records of each in blocks of three that alternate with the other threads'.
fn several(pair: Pair, threads: &BTreeMap<u32, Left>) -> Vec<u8> {
    let mut words = journal_header();
    (words[word::RANK], words[word::FLAGS]) = (5, flag::FINALIZED);
    (words[word::TICKS_FIRST], words[word::NANOS_FIRST]) = (pair.ticks, pair.nanos as u64);
    words[word::TICKS_LAST] = pair.ticks.wrapping_add(ELAPSED);
    words[word::NANOS_LAST] = pair.nanos.wrapping_add((ELAPSED as f64 * pair.per_tick) as i64) as u64;
    let mut streams = Vec::new();
    for (&thread, left) in threads {
        push_block(&mut words, BlockKind::Sites, thread, &[0; 4 * SITE_WORDS]);
        let mut records: Vec<Vec<u64>> = Vec::new();
        let mut record = |kind, flags, function, body: &[u64]| {
            let mut words = Vec::new();
            push(&mut words, kind, flags, function, body);
            records.push(words);
        };
        for &(index, offset) in &left.sites {
            record(Kind::Site, 0, 0, &[index.into(), 0, offset]);
            record(Kind::Path, 0, 0, &[index.into(), way_of(index).into(), 0, offset, 0, CALLER]);
        }
        for (function, flags, site, words) in &left.signatures {
            let at = u64::from(*site) | u64::from(way_of(*site)) << SIGNATURE_WAY;
            record(Kind::Signature, *flags, *function, &[&[at], &words[..]].concat());
        }
        for (number, (start, before, calls)) in (0..).zip(&left.windows) {
            record(Kind::Open, 0, 0, &[number, *start, 1f64.to_bits(), 3, *before]);
            for &(terminal, start, ticks, count) in calls {
                let flags = left.signatures[terminal as usize].1;
                record(Kind::Call, flags, 0, &[start, ticks, u64::from(terminal) | u64::from(count) << 32]);
            }
        }
        streams.push((thread, records));
    }
    let mut rest: Vec<_> = streams.iter().map(|(thread, records)| (*thread, records.chunks(3))).collect();
    while !rest.is_empty() {
        rest.retain_mut(|(thread, chunks)| {
            let Some(records) = chunks.next() else { return false };
            push_block(&mut words, BlockKind::Stream, *thread, &records.concat());
            true
        });
    }
    for (&thread, left) in threads {
        // Runs behind the last snapshot are in the log of its number; older logs and snapshots stay.
        let mut taken = 0;
        for (order, &until) in (0..).zip(&left.snapshots) {
            push_ordered(&mut words, BlockKind::Log, thread, order, &log(&left.runs[taken..until]));
            push_ordered(&mut words, BlockKind::Snapshot, thread, order + 1, &snapshot(&left.runs[..until]));
            taken = until;
        }
        let order = left.snapshots.len() as u64;
        push_ordered(&mut words, BlockKind::Log, thread, order, &log(&left.runs[taken..]));
        // One that is being written, and one that was given up.
        push_ordered(&mut words, BlockKind::Snapshot, thread, 0, &[u64::MAX, 7]);
    }
    bytes_of(&words)
}

fn left() -> impl Strategy<Value = Left> {
    // Few starts, so that many are equal; indices within the table of sites and beyond.
    let start = || prop_oneof![990..1020u64, any::<u64>()];
    let site = || prop_oneof![0..6u32, any::<u32>()];
    let value = prop_oneof![0..130u64, (0..300u64).prop_map(|index| !index), any::<u64>()];
    let signature =
        (0..FUNCTION_COUNT as u16, any::<u8>(), site(), prop::collection::vec(value.clone(), 0..9));
    let before = prop_oneof![4 => 0..150u64, 1 => any::<u64>()];
    let window = (start(), before, prop::collection::vec((any::<u32>(), start(), value, 1..9u32), 1..12));
    (
        prop::collection::vec(signature, 1..9),
        prop::collection::vec((any::<u32>(), 1..9u64), 0..60),
        prop::collection::vec(0..60usize, 0..4),
        prop::collection::vec((site(), 0..4u64), 0..5),
        prop::collection::vec(window, 0..5),
    )
        .prop_map(|(signatures, mut runs, mut snapshots, sites, mut windows)| {
            let many = signatures.len() as u32;
            runs.iter_mut().for_each(|(terminal, _)| *terminal %= many);
            snapshots.iter_mut().for_each(|until| *until = (*until).min(runs.len()));
            snapshots.sort_unstable();
            // Readers go by the sequence.
            windows.sort_by_key(|&(_, before, _)| before);
            for (terminal, _, _, count) in windows.iter_mut().flat_map(|(_, _, calls)| calls) {
                *terminal %= many;
                // Only failed polls share an entry.
                *count = if signatures[*terminal as usize].1 & CALL_MISS != 0 { *count } else { 1 };
            }
            Left { signatures, runs, snapshots, sites, windows }
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_thread_s_calls_and_times_are_its_own(
        threads in prop::collection::btree_map(prop_oneof![0..4u32, any::<u32>()], left(), 0..5),
        (ticks, nanos) in (prop_oneof![Just(1000u64), any::<u64>()], prop_oneof![Just(-50i64), any::<i64>()]),
        per_tick in prop_oneof![Just(0.5), 0.0..1000.0],
        shift in 0..8usize,
    ) {
        let pair = Pair { ticks, nanos, per_tick };
        let bytes = several(pair, &threads);
        // At any address: a mapped file's pages are aligned, a buffer need not be.
        let shifted = [vec![0; shift], bytes].concat();
        let found = compacted(&shifted[shift..]).unwrap();
        prop_assert_eq!(found.damage, Vec::<String>::new());
        let elapsed = (ELAPSED as f64 * pair.per_tick) as i64;
        // Exact: a tick of the pairs here is a number of 2^-40 ns. Ticks beyond any clock's wrap.
        let whole = |ticks: i64| {
            (i128::from(ticks) * i128::from(elapsed) + i128::from(ELAPSED / 2)).div_euclid(ELAPSED.into()) as i64
        };
        let instant = |ticks: u64| pair.nanos.wrapping_add(whole(ticks.wrapping_sub(pair.ticks) as i64));
        let mut numbers: Vec<(u64, bool)> = Vec::new();
        let mut times = (!found.rank.times.is_empty()).then(|| Decoder::new(&found.rank.times).unwrap());
        let mut next_stored = None;
        prop_assert_eq!(found.structure.threads.len(), threads.len());
        for (stored, (&thread, left)) in found.structure.threads.iter().zip(&threads) {
            prop_assert_eq!(stored.thread, thread);
            let mut sites = BTreeMap::new();
            for &(index, offset) in &left.sites {
                let both = [false, true].map(|has_caller| {
                    let own = (offset, has_caller);
                    let known = numbers.iter().position(|&have| have == own).unwrap_or_else(|| {
                        numbers.push(own);
                        numbers.len() - 1
                    });
                    known as u32 + 1
                });
                sites.insert(index, both);
            }
            let expected: Vec<Signature> = left
                .signatures
                .iter()
                .map(|&(function, flags, site, ref words)| {
                    let [site, path] = sites.get(&site).copied().unwrap_or_default();
                    Signature { function, flags, site, path, words: words.clone() }
                })
                .collect();
            prop_assert_eq!(&stored.signatures, &expected);
            let each = |(terminal, count)| std::iter::repeat_n(terminal, count as usize);
            let calls: Vec<u32> = stored.grammar.runs().flat_map(each).collect();
            let sequence = calls.len() as u64;
            prop_assert_eq!(calls, left.runs.iter().copied().flat_map(each).collect::<Vec<_>>());
            for (number, (start, before, calls)) in (0..).zip(&left.windows) {
                // Calls that are not in the sequence have no times.
                let mut next = *before;
                let mut is_there = |call: &&Stored| {
                    next = next.saturating_add(call.3.into());
                    next <= sequence
                };
                let calls: Vec<Stored> = calls.iter().filter(|call| is_there(call)).copied().collect();
                if calls.is_empty() {
                    continue;
                }
                let times = times.as_mut().unwrap();
                let (found, entries) = times.window().unwrap();
                // Where calls follow those before, so does time.
                let goes_on = next_stored == Some((thread, *before));
                let start_ns = if goes_on { found.start_ns } else { instant(*start) };
                let window = Window { thread, window: number, first_seq: *before, start_ns };
                prop_assert_eq!((found, entries), (window, calls.len() as u64));
                let each = calls.iter().map(|call| u64::from(call.3));
                next_stored = Some((thread, each.fold(*before, u64::wrapping_add)));
                for (terminal, start, ticks, count) in calls {
                    let folds = expected[terminal as usize].flags & CALL_MISS != 0;
                    let [start_ns, end] = [start, start.wrapping_add(ticks)].map(&instant);
                    let duration_ns = end.saturating_sub(start_ns).max(0) as u64;
                    let time = Time { start_ns, duration_ns, count: count.into() };
                    let like = expected[terminal as usize].function;
                    let terminal = Terminal { number: terminal, like, folds };
                    prop_assert_eq!(times.call(terminal), Ok(time));
                }
            }
        }
        prop_assert_eq!(times.and_then(|mut times| times.window()), None);
        let behind = numbers.len() as u32 + 1;
        let site = |&(offset, has_caller): &(u64, bool)| Site {
            offset,
            caller: if has_caller { behind } else { 0 },
            ..Site::default()
        };
        let caller = (!numbers.is_empty()).then(|| Site { offset: CALLER, ..Site::default() });
        let sites: Vec<Site> = numbers.iter().map(site).chain(caller).collect();
        prop_assert_eq!(&found.structure.sites, &sites);
    }
}

/// Two threads with two barriers each in window 0; `first` gives the first one's blocks.
fn two_threads(first: impl FnOnce(&mut Vec<u64>)) -> Compacted {
    let mut words = journal_header();
    for thread in 0..2 {
        let mut stream = Vec::new();
        push(&mut stream, Kind::Signature, 0, number("MPI_Barrier"), &[0, predefined("MPI_COMM_WORLD")]);
        push(&mut stream, Kind::Open, 0, 0, &[0, 0, 1f64.to_bits(), 0, 0]);
        for start in [10, 50] {
            push(&mut stream, Kind::Call, 0, 0, &[start + thread, 20, 1 << 32]);
        }
        push_block(&mut words, BlockKind::Stream, thread as u32, &stream);
    }
    first(&mut words);
    push_block(&mut words, BlockKind::Log, 1, &log(&[(0, 2)]));
    compacted(&bytes_of(&words)).unwrap()
}

/// Thread, position and start of the calls in it.
fn starts(found: &Compacted) -> Vec<(u32, u64, Option<i64>)> {
    let calls = Calls::new(&found.structure, &found.rank).map(|call| call.expect("decodable"));
    calls.map(|call| (call.thread, call.seq, call.timed.map(|timed| timed.start_ns))).collect()
}

#[test]
fn what_is_lost_of_one_thread_takes_nothing_from_another() {
    let whole = two_threads(|words| push_block(words, BlockKind::Log, 0, &log(&[(0, 2)])));
    let second = [(1, 0, Some(11)), (1, 1, Some(51))];
    assert_eq!(starts(&whole), [&[(0, 0, Some(10)), (0, 1, Some(50))][..], &second].concat());
    assert_eq!(whole.damage, Vec::<String>::new());

    let unknown = two_threads(|words| push_block(words, BlockKind::Log, 0, &log(&[(0, 1), (1, 1)])));
    assert_eq!(unknown.damage, ["thread 0: its calls name signatures that are not there"]);
    assert_eq!(starts(&unknown), second);

    // Its log ends before its times do: as far as it goes.
    let short = two_threads(|words| push_block(words, BlockKind::Log, 0, &log(&[(0, 1)])));
    assert_eq!(starts(&short), [&[(0, 0, Some(10))][..], &second].concat());

    // Later calls cannot be placed.
    let unread = two_threads(|words| {
        push_ordered(words, BlockKind::Snapshot, 0, 3, &[u64::MAX, 1]);
        push_ordered(words, BlockKind::Log, 0, 3, &log(&[(0, 1)]));
    });
    assert_eq!(unread.damage, ["thread 0: its calls up to the last snapshot cannot be read"]);
    assert_eq!(starts(&unread), second);
}

#[test]
fn a_snapshot_that_was_not_written_whole_leaves_the_one_before() {
    for (order, junk) in [(0, vec![u64::MAX]), (0, vec![3, !0, 77]), (0, vec![])] {
        let found = two_threads(|words| {
            push_ordered(words, BlockKind::Log, 0, 6, &log(&[(0, 5)]));
            push_ordered(words, BlockKind::Snapshot, 0, 7, &snapshot(&[(0, 1)]));
            push_ordered(words, BlockKind::Snapshot, 0, order, &junk);
            push_ordered(words, BlockKind::Log, 0, 7, &log(&[(0, 1)]));
        });
        assert_eq!(found.damage, Vec::<String>::new());
        assert_eq!(starts(&found)[..2], [(0, 0, Some(10)), (0, 1, Some(50))]);
    }
}

/// Everything that is read of a converted journal.
fn look_at_journal(found: Compacted) {
    look_at_calls(&found.structure, &found.rank);
    assert!(found.structure.threads.iter().all(|thread| thread.grammar.is_sound()));
    let merged = JobStructure::of(found.structure);
    look_at(&Trace { ranks: vec![found.rank], structure: merged, ..Trace::default() });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_words_behind_a_header_are_a_journal(mut tail: Vec<u64>, magic: bool, length in 0..64u64) {
        let mut words = journal_header();
        if magic && tail.len() > 8 {
            (tail[0], tail[1], tail[3], tail[4]) = (BLOCK_MAGIC, 1 + tail[1] % 6, length, tail[4] % 64);
        }
        words.extend(tail);
        look_at_journal(compacted(&bytes_of(&words)).unwrap());
    }

    #[test]
    fn any_records_are_compacted(
        records in prop::collection::vec(any_record(1..=10), 0..20),
        signatures in prop::collection::vec(any_record(9..=9), 0..12),
        header_words in any::<[u64; 6]>(),
        runs in prop::collection::vec((0..9u64, 0..4u64), 0..30),
    ) {
        let runs: Vec<u64> = runs.into_iter().map(|(terminal, count)| terminal | count << 32).collect();
        let mut words = journal_header();
        words[word::TICKS_FIRST..word::OWN_TICKS].copy_from_slice(&header_words[..5]);
        words[word::OWN_TICKS] = header_words[5];
        push_block(&mut words, BlockKind::Stream, 0, &[records, signatures].concat().concat());
        push_block(&mut words, BlockKind::Log, 0, &runs);
        look_at_journal(compacted(&bytes_of(&words)).unwrap());
    }

    #[test]
    fn any_counters_and_totals_are_compacted(payload in prop::collection::vec(any::<u64>(), 0..40), thread in 0..3u32) {
        let mut words = journal_header();
        for kind in [BlockKind::Counters, BlockKind::Sites, BlockKind::Counters] {
            push_block(&mut words, kind, thread, &payload);
        }
        look_at_journal(compacted(&bytes_of(&words)).unwrap());
    }
}

fn any_record(kinds: std::ops::RangeInclusive<u8>) -> impl Strategy<Value = Vec<u64>> {
    let function = 0..FUNCTION_COUNT as u16 + 2;
    (kinds, any::<u8>(), function, prop::collection::vec(any::<u64>(), 0..20)).prop_map(
        |(kind, flags, function, body)| {
            let mut words = vec![u64::from(kind) | u64::from(flags) << 8 | u64::from(function) << 16];
            words[0] |= (body.len() as u64 + 1) << 32;
            words.extend(body);
            words
        },
    )
}

/// The first reading of the clock is older than the first window: `MPI_Init` is no part of the run.
#[test]
fn a_rank_runs_from_its_first_window_on() {
    let mut bytes = small_journal();
    // 1,000 ticks earlier, at the same rate.
    for (at, value) in [(word::TICKS_FIRST, 0u64), (word::NANOS_FIRST, (-550i64) as u64)] {
        bytes[8 * at..8 * at + 8].copy_from_slice(&value.to_le_bytes());
    }
    let found = compacted(&bytes).unwrap().rank;
    let first = found.windows.entries()[0].start_ns;
    assert_eq!(found.process.elapsed_ns, (3950 - first) as u64);
    assert_eq!(found.process.elapsed_ns, compacted(&small_journal()).unwrap().rank.process.elapsed_ns);
}

#[test]
fn a_journal_becomes_what_it_says() {
    let found = compacted(&small_journal()).unwrap();
    assert_eq!(found.damage, Vec::<String>::new());
    let rank = &found.rank;
    let process = &rank.process;
    assert_eq!(
        (process.rank, process.host.as_str(), process.cpus.as_str(), process.finalized),
        (3, "node", "0-1", true)
    );
    assert_eq!((process.own_ns, process.elapsed_ns), (10, 4000));
    // Recorded calls that the process has not counted yet count, too.
    let mut counted = [("MPI_Barrier", 8), ("MPI_Finalize", 1), ("MPI_Iprobe", 4)]
        .map(|(name, calls)| (number(name), calls));
    counted.sort_unstable();
    assert_eq!(process.calls, counted);
    assert_eq!(
        (found.structure.modules.as_slice(), found.structure.sites.as_slice()),
        (&["/bin/app".to_owned()][..], &[Site { offset: 0x40, ..Site::default() }][..])
    );
    let [site] = &found.aggregates[..] else { panic!("one site: {:?}", found.aggregates) };
    assert_eq!((site.site, site.calls, site.time_ns, site.max_ns, site.sent), (Some(0), 4, 200.0, 75.0, 8));
    let windows: Vec<_> =
        rank.windows.entries().iter().map(|w| (w.window, w.start_ns, w.end_ns, w.kept, w.drawn)).collect();
    assert_eq!(
        windows,
        [(0, -50, 950, true, true), (1, 950, 1950, true, false), (2, 1950, 2950, true, true)]
    );
    let partners: Vec<_> =
        rank.windows.entries().iter().map(|w| (w.partner, w.inclusion(), w.repeat)).collect();
    assert_eq!(partners, [(false, 0.5, 1), (true, 0.75, 1), (false, 0.5, 1)]);
    assert_eq!(
        (rank.windows.entries()[1].probability, rank.windows.entries()[1].cells.get(0).unwrap().sum),
        (0.5, 300.0)
    );
    let calls: Vec<_> = Calls::new(&found.structure, rank).map(Result::unwrap).collect();
    let timed = |window, start_ns, duration_ns| Some(Timed { window, start_ns, duration_ns });
    let short: Vec<_> = calls.iter().map(|c| (c.thread, c.seq, c.function.name(), c.timed)).collect();
    assert_eq!(
        short,
        [
            (0, 1, "MPI_Barrier", timed(0, 0, Some(50))),
            (0, 2, "MPI_Iprobe", timed(0, 100, Some(30))),
            (0, 6, "MPI_Barrier", timed(0, 200, Some(5))),
            (0, 20, "MPI_Finalize", timed(2, 2450, None)),
            (1, 0, "MPI_Barrier", timed(0, 50, Some(10))),
        ]
    );
    assert_eq!((calls[1].count, calls[2].code, calls[2].out.len()), (4, 13, 0));
    assert_eq!((calls[0].site, calls[4].site), (Some(0), None));
    assert_eq!(found.structure.comms, [Comm { word: 5, size: 16, rank: 2 }]);
    assert_eq!(
        rank.places.value(0, ampl_trace::places::other(None, 3)),
        ampl_core::value::Value::Address(0x7fff_0000)
    );
}

#[test]
fn every_truncation_of_a_journal_is_readable() {
    let bytes = small_journal();
    for length in 0..bytes.len() {
        match journal::read(&bytes[..length]) {
            Ok(_) => look_at_journal(compacted(&bytes[..length]).unwrap()),
            Err(_) => assert!(length < HEADER_WORDS * 8),
        }
    }
}

#[test]
fn every_flipped_bit_of_a_journal_is_survived() {
    let bytes = small_journal();
    // Most of it is zeros and counters; steps without a factor of 2 meet every bit of some word.
    let records = bytes.len() * 8 - 160 * 64;
    for bit in (0..records).step_by(203).chain((records..bytes.len() * 8).step_by(7)) {
        let mut bad = bytes.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        if let Ok(found) = compacted(&bad) {
            look_at_journal(found);
        }
    }
}

/// Windows that are decided late are stored behind later ones; calls of two lengths would show mixed-up times.
#[test]
fn windows_may_lie_in_any_order() {
    let mut words = journal_header();
    let mut stream = Vec::new();
    let world = predefined("MPI_COMM_WORLD");
    push(&mut stream, Kind::Signature, 0, number("MPI_Barrier"), &[0, world]);
    push(&mut stream, Kind::Signature, 0, number("MPI_Ibarrier"), &[0, world, 0]);
    for (window, first) in [(0, 0), (2, 8), (1, 4)] {
        push(&mut stream, Kind::Open, 0, 0, &[window, 100 * first, 1f64.to_bits(), 0, first]);
        for call in first..first + 4 {
            push(&mut stream, Kind::Call, 0, 0, &[100 * call, 10 + call, (call % 2) | (1 << 32)]);
        }
    }
    push_block(&mut words, BlockKind::Stream, 0, &stream);
    let runs: Vec<(u32, u64)> = (0..12).map(|call| (call % 2, 1)).collect();
    push_block(&mut words, BlockKind::Log, 0, &log(&runs));
    let found = compacted(&bytes_of(&words)).unwrap();
    let expected: Vec<(u32, u64, Option<i64>)> =
        (0..12).map(|call| (0, call, Some(100 * call as i64))).collect();
    assert_eq!(starts(&found), expected);
}
