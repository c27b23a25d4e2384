//! The stored calls of a journal: what they must be, worked out in the simplest way, and what they were.

use std::collections::{BTreeMap, VecDeque};

use ampl_trace::compact::compact;
use ampl_trace::format::{Section, rank_sections};
use ampl_trace::journal::{
    BLOCK_MAGIC, BlockKind, HEADER_WORDS, MAGIC, SITE_WORDS, flag, table_checksum, word,
};
use ampl_trace::record::{Kind, header};
use ampl_trace::varint;
use proptest::prelude::*;

/// A record with a place in the call sequence, or the definition of a call site.
#[derive(Clone, Debug)]
enum Entry {
    Open { window: u64, start: u64, calls_before: u64 },
    Call { function: u16, flags: u8, start: u64, ticks: u64, site: u32, count: u32, arguments: Vec<u64> },
    Site { index: u32, offset: u64 },
}

impl Entry {
    fn push(&self, words: &mut Vec<u64>) {
        let mut push = |kind, flags, function, body: &[u64]| {
            words.push(header(kind, flags, function, body.len() + 1));
            words.extend_from_slice(body);
        };
        match self {
            &Self::Open { window, start, calls_before } => {
                push(Kind::Open, 0, 0, &[window, start, 1f64.to_bits(), 3, calls_before]);
            }
            Self::Call { function, flags, start, ticks, site, count, arguments } => {
                let fixed = [*start, *ticks, u64::from(*site) | u64::from(*count) << 32];
                push(Kind::Call, *flags, *function, &[&fixed[..], arguments].concat());
            }
            &Self::Site { index, offset } => push(Kind::Site, 0, 0, &[index.into(), 0, offset]),
        }
    }
}

/// Ticks since when and nanoseconds since T0 of the first clock pair, and a tick in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Pair {
    ticks: u64,
    nanos: i64,
    per_tick: f64,
}

const ELAPSED: u64 = 1 << 40;

/// A journal of these threads, each in blocks of three entries that alternate with the other threads'.
fn journal(pair: Pair, threads: &BTreeMap<u32, Vec<Entry>>) -> Vec<u8> {
    let mut words = vec![0; HEADER_WORDS];
    for (index, value) in [
        (word::MAGIC, MAGIC),
        (word::TABLE, table_checksum().into()),
        (word::RANK, 5),
        (word::FLAGS, flag::FINALIZED),
        (word::TICKS_FIRST, pair.ticks),
        (word::NANOS_FIRST, pair.nanos as u64),
        (word::TICKS_LAST, pair.ticks.wrapping_add(ELAPSED)),
        (word::NANOS_LAST, pair.nanos.wrapping_add((ELAPSED as f64 * pair.per_tick) as i64) as u64),
    ] {
        words[index] = value;
    }
    let mut block = |kind: BlockKind, thread: u32, payload: &[u64]| {
        let used = payload.len() as u64;
        words.extend([BLOCK_MAGIC, kind.number(), thread.into(), used + 2, used, 0, 0, 0]);
        words.extend_from_slice(payload);
        words.extend([!0; 2]);
    };
    for &thread in threads.keys() {
        let totals: Vec<u64> = (0..4 * SITE_WORDS as u64).map(|word| word * 3).collect();
        block(BlockKind::Sites, thread, &totals);
    }
    let mut rest: Vec<_> = threads.iter().map(|(&thread, entries)| (thread, entries.chunks(3))).collect();
    while !rest.is_empty() {
        rest.retain_mut(|(thread, chunks)| {
            let Some(entries) = chunks.next() else { return false };
            let mut payload = Vec::new();
            entries.iter().for_each(|entry| entry.push(&mut payload));
            block(BlockKind::Stream, *thread, &payload);
            true
        });
    }
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Calls and times as the format has them: of the threads' next entries, the earliest and then the
/// lowest thread's.
fn merged(pair: Pair, threads: &BTreeMap<u32, Vec<Entry>>) -> (Vec<u8>, Vec<u8>) {
    let elapsed = (ELAPSED as f64 * pair.per_tick) as i64;
    // Exact: a tick of the pairs here is a number of 2^-40 ns. What no clock says wraps.
    let whole = |ticks: i64| {
        (i128::from(ticks) * i128::from(elapsed) + i128::from(ELAPSED / 2)).div_euclid(ELAPSED.into()) as i64
    };
    let instant = |ticks: u64| pair.nanos.wrapping_add(whole(ticks.wrapping_sub(pair.ticks) as i64));
    let mut numbers = BTreeMap::new();
    let mut sites = BTreeMap::new();
    let mut queues: BTreeMap<u32, VecDeque<(i64, &Entry)>> = BTreeMap::new();
    for (&thread, entries) in threads {
        for entry in entries {
            let start = match entry {
                &Entry::Site { index, offset } => {
                    let next = numbers.len() as u64 + 1;
                    sites.insert((thread, index), *numbers.entry(offset).or_insert(next));
                    continue;
                }
                Entry::Open { start, .. } | Entry::Call { start, .. } => instant(*start),
            };
            queues.entry(thread).or_default().push_back((start, entry));
        }
    }
    let (mut calls, mut times, mut before) = (Vec::new(), Vec::new(), 0i64);
    let next = |queues: &BTreeMap<u32, VecDeque<(i64, &Entry)>>| {
        queues.iter().filter_map(|(&thread, queue)| Some((queue.front()?.0, thread))).min()
    };
    while let Some((start, thread)) = next(&queues) {
        match queues.get_mut(&thread).unwrap().pop_front().unwrap().1 {
            &Entry::Open { window, calls_before, .. } => {
                [0, thread.into(), window, calls_before]
                    .into_iter()
                    .for_each(|value| varint::put(&mut calls, value));
            }
            Entry::Call { function, flags, ticks, site, count, arguments, .. } => {
                let site = sites.get(&(thread, *site)).copied().unwrap_or(0);
                let length = arguments.len() as u64;
                let fixed =
                    [*function as u64 + 1, (*flags).into(), thread.into(), site, (*count).into(), length];
                fixed.into_iter().for_each(|value| varint::put(&mut calls, value));
                arguments.iter().for_each(|&value| varint::put_signed(&mut calls, value as i64));
                varint::put_signed(&mut times, start.wrapping_sub(before));
                varint::put(&mut times, whole(*ticks as i64) as u64);
                before = start;
            }
            Entry::Site { .. } => unreachable!("not in a queue"),
        }
    }
    (calls, times)
}

/// Values as they are recorded: mostly small, of either sign, some of any size.
fn value() -> impl Strategy<Value = u64> {
    prop_oneof![
        0..130u64,
        (0..300u64).prop_map(|index| !index),
        (any::<u64>(), 0..64u32).prop_map(|(v, s)| v >> s)
    ]
}

fn entry() -> impl Strategy<Value = Entry> {
    // Few starts, so that many are equal; indices within the table of sites and beyond.
    let start = || prop_oneof![990..1020u64, any::<u64>()];
    let site = || prop_oneof![0..6u32, any::<u32>()];
    let arguments =
        prop_oneof![9 => prop::collection::vec(value(), 0..9), 1 => prop::collection::vec(value(), 0..500)];
    let call = (any::<(u16, u8)>(), start(), value(), site(), prop_oneof![0..3u32, any::<u32>()], arguments);
    prop_oneof![
        6 => call.prop_map(|((function, flags), start, ticks, site, count, arguments)| {
            Entry::Call { function, flags, start, ticks, site, count, arguments }
        }),
        1 => (any::<u64>(), start(), value())
            .prop_map(|(window, start, calls_before)| Entry::Open { window, start, calls_before }),
        1 => (site(), 0..4u64).prop_map(|(index, offset)| Entry::Site { index, offset }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn calls_are_stored_in_the_order_of_their_starts(
        threads in prop::collection::btree_map(
            prop_oneof![0..4u32, any::<u32>()],
            prop::collection::vec(entry(), 0..12),
            0..5,
        ),
        (ticks, nanos) in (prop_oneof![Just(1000u64), any::<u64>()], prop_oneof![Just(-50i64), any::<i64>()]),
        per_tick in prop_oneof![Just(0.5), 0.0..1000.0],
        shift in 0..8usize,
    ) {
        let pair = Pair { ticks, nanos, per_tick };
        let bytes = journal(pair, &threads);
        // At any address: a mapped file's pages are aligned, a buffer need not be.
        let shifted = [vec![0; shift], bytes].concat();
        let found = compact(&shifted[shift..]).unwrap();
        prop_assert_eq!(found.damage, Vec::<String>::new());
        let (calls, times) = merged(pair, &threads);
        prop_assert_eq!(found.rank.calls, calls);
        prop_assert_eq!(found.rank.times, times);
    }
}

/// The bytes of a rank's part, summed up when they were first written: files of this version look like this.
#[test]
fn a_ranks_part_is_stored_as_ever() {
    let mut random = 1u64;
    let mut draw = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    let mut threads = BTreeMap::new();
    for thread in [0, 1, 7] {
        let mut clock = 5_000 + 100 * u64::from(thread);
        let mut entries: Vec<Entry> =
            (0..5).map(|index| Entry::Site { index, offset: 0x1000 + 16 * u64::from(index % 4) }).collect();
        for number in 0..600 {
            if number % 50 == 0 {
                entries.push(Entry::Open { window: number / 50, start: clock, calls_before: number });
            }
            let mut arguments: Vec<u64> = (0..draw(7)).map(|_| draw(1 << 31) >> draw(31)).collect();
            arguments.extend([draw(40) | 1 << 63, 0x7f00_0000_0000 + draw(1 << 20), draw(2).wrapping_neg()]);
            let (function, flags, site) = (draw(400) as u16, draw(16) as u8, draw(7) as u32);
            // One in ten was left by a jump and is recorded late.
            let start = if draw(10) == 0 { clock - 4000 } else { clock };
            let count = 1 + draw(2) as u32;
            entries.push(Entry::Call { function, flags, start, ticks: draw(3000), site, count, arguments });
            clock += draw(9000);
        }
        threads.insert(thread, entries);
    }
    let bytes = journal(Pair { ticks: 4_000, nanos: -700, per_tick: 0.37 }, &threads);
    let found = compact(&bytes).unwrap();
    let mut sum = crc32fast::Hasher::new();
    let add = |packed: &[u8]| {
        sum.update(packed);
        Ok::<(), ()>(())
    };
    let sections = rank_sections(&found.rank);
    Section::pack(&sections, 100, add).unwrap();
    assert_eq!((Section::packed_bytes(&sections), sum.finalize()), (67_113, 1_530_880_058));
}

#[test]
fn damage_is_told_block_by_block_the_malformed_record_first() {
    let mut bytes = journal(Pair { ticks: 0, nanos: 0, per_tick: 1.0 }, &BTreeMap::new());
    let call = [header(Kind::Call, 0, 1, 4), 10, 20, 0];
    let first = [&[header(Kind::Open, 0, 0, 2), 7], &call[..], &[header(Kind::Call, 0, 1, 9)]].concat();
    let second = [&[header(Kind::Call, 0, 1, 1)], &call[..]].concat();
    for payload in [first, second] {
        let used = payload.len() as u64;
        let head = [BLOCK_MAGIC, BlockKind::Stream.number(), 2, used, used, 0, 0, 0];
        bytes.extend(head.iter().chain(&payload).flat_map(|word| word.to_le_bytes()));
    }
    bytes.extend([1; 64]);
    let found = compact(&bytes).unwrap();
    let damage = [
        "the journal cannot be read past word 540",
        "thread 2: a record at word 6 of a block is malformed",
        "thread 2: a Open record is too short",
        "thread 2: a Call record is too short",
    ];
    assert_eq!(found.damage, damage);
    // Both whole calls are there: five single bytes and the length of no arguments.
    assert_eq!((found.rank.calls, found.rank.times), ([2, 0, 2, 0, 0, 0].repeat(2), vec![20, 20, 0, 20]));
}
