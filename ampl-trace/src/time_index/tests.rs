//! An index has the times of the trace, call by call and in sums.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{Call, Classes, RankIndex, encode};
use crate::record::{CALL_MISS, CALL_UNFINISHED, GAP};
use crate::structure::{RankStructure, Signature, ThreadStructure};
use crate::timed::for_each;
use crate::timing::{Decoder, Encoder, Settings, Terminal, Time, Window};

/// A stored call of a test.
#[derive(Clone, Debug)]
struct Stored {
    terminal: u32,
    gap_ns: i64,
    duration_ns: u64,
    polls: u64,
    /// True for the first call of another window.
    begins: bool,
}

fn signature(function: u16, flags: u8) -> Signature {
    Signature { function, flags, ..Signature::default() }
}

/// Signatures: two calls, a failed poll, a gap of the record, a call that has not returned, the first with another word.
fn signatures() -> Vec<Signature> {
    vec![
        signature(1, 0),
        signature(2, 0),
        signature(3, CALL_MISS),
        signature(GAP, 0),
        signature(1, CALL_UNFINISHED),
        Signature { words: vec![7], ..signature(1, 0) },
    ]
}

/// Structure and times of these calls, in one thread for each list.
fn rank(settings: Settings, threads: &[Vec<Stored>]) -> (RankStructure, Vec<u8>) {
    let mut encoder = Encoder::new(settings);
    let mut structure = RankStructure::default();
    for (thread, stored) in (0..).zip(threads) {
        let mut grammar = crate::grammar::Builder::default();
        let (mut at, mut seq, mut number) = (0i64, 0u64, 0u64);
        let mut window: Option<(Window, Vec<(Terminal, Time)>)> = None;
        let put = |encoder: &mut Encoder, window: Option<(Window, Vec<(Terminal, Time)>)>| {
            let Some((window, calls)) = window else { return };
            encoder.window(window);
            calls.into_iter().for_each(|(terminal, time)| encoder.call(terminal, time));
        };
        for call in stored {
            if call.begins || window.is_none() {
                put(&mut encoder, window.take());
                if call.begins {
                    grammar.push(3, 2);
                    seq += 2;
                }
                number += 1;
                window = Some((Window { thread, window: number, first_seq: seq, start_ns: at }, Vec::new()));
            }
            let folds = call.terminal == 2;
            let count = if folds { call.polls } else { 1 };
            grammar.push(call.terminal, count);
            let start_ns = at + call.gap_ns;
            let terminal = Terminal {
                number: call.terminal,
                like: signatures()[call.terminal as usize].function,
                folds,
            };
            let time = Time { start_ns, duration_ns: call.duration_ns, count };
            window.as_mut().unwrap().1.push((terminal, time));
            at = start_ns + call.duration_ns as i64;
            seq += count;
        }
        put(&mut encoder, window);
        structure.threads.push(ThreadStructure {
            thread,
            signatures: signatures(),
            grammar: grammar.into_grammar(),
        });
    }
    (structure, encoder.finish())
}

/// Calls by thread and window, in their order.
type ByWindow = BTreeMap<(u32, u64), Vec<Call>>;

/// Returns the number of sums by function and site.
fn check(settings: Settings, threads: &[Vec<Stored>]) -> usize {
    let (structure, times) = rank(settings, threads);
    check_classes(&structure, &times);
    let mut naive = ByWindow::new();
    for_each(&structure, &mut Decoder::new(&times).unwrap(), |window, terminal, time| {
        let Time { start_ns, duration_ns, count } = time;
        let call = Call { terminal: terminal.number, start_ns, duration_ns, count };
        naive.entry((window.thread, window.window)).or_default().push(call);
    })
    .unwrap();
    let bytes = encode(&structure, &times, None, usize::MAX).unwrap().unwrap();
    let index = RankIndex::read(&bytes).unwrap();
    assert_eq!(index.settings(), Decoder::new(&times).unwrap().settings());
    let mut reader = index.reader(&structure);
    let (mut found, mut summed) = (ByWindow::new(), 0);
    for chunk in index.chunks() {
        let mut calls = Vec::new();
        reader.chunk(chunk, |call| calls.push(call)).unwrap();
        let end = |call: &Call| call.start_ns + call.duration_ns as i64;
        assert_eq!(chunk.low_ns, calls.iter().map(|call| call.start_ns).min().unwrap());
        assert_eq!(chunk.high_ns, calls.iter().map(end).max().unwrap());
        assert_eq!(chunk.is_unfinished, calls.iter().any(|call| call.terminal == 4));
        let mut alike: BTreeMap<(u32, u64, u64), u64> = BTreeMap::new();
        calls.iter().for_each(|call| {
            *alike.entry((call.terminal, call.count, call.duration_ns)).or_default() += 1;
        });
        if chunk.has_groups() {
            let mut groups = BTreeMap::new();
            let put = |group: super::Group| {
                groups.insert((group.terminal, group.count, group.duration_ns), group.times);
            };
            chunk.groups(put).unwrap();
            assert_eq!(groups, alike);
        }
        for sum in chunk.sums().into_iter().flatten() {
            let place = |terminal: u32| signatures()[terminal as usize].function;
            let own = calls.iter().filter(|call| place(call.terminal) == place(sum.terminal));
            assert_eq!(sum.calls, own.clone().map(|call| call.count).sum::<u64>());
            assert_eq!(sum.duration_ns, own.clone().map(|call| call.duration_ns).sum::<u64>());
            let error_ns: f64 = own.map(|call| settings.error_ns(call.duration_ns as f64)).sum();
            assert!((sum.error_ns - error_ns).abs() <= 1e-9 * error_ns, "{sum:?} {error_ns}");
        }
        summed += chunk.sums().map_or(0, |sums| sums.len());
        let mut by_function: BTreeMap<u16, u64> = BTreeMap::new();
        for call in &calls {
            *by_function.entry(signatures()[call.terminal as usize].function).or_default() += call.count;
        }
        assert_eq!(chunk.functions().unwrap(), by_function.into_iter().collect::<Vec<_>>());
        let mut at = 0;
        chunk
            .blocks(|block, sums| {
                let mut own = Vec::new();
                reader.block(block, |call| own.push(call)).unwrap();
                assert_eq!(own[..], calls[at..at + own.len()]);
                at += own.len();
                assert_eq!(block.low_ns, own.iter().map(|call| call.start_ns).min().unwrap());
                assert_eq!(block.high_ns, own.iter().map(end).max().unwrap());
                for &(function, ns) in sums {
                    let of = |call: &&Call| signatures()[call.terminal as usize].function == function;
                    assert_eq!(ns, own.iter().filter(of).map(|call| call.duration_ns).sum::<u64>());
                }
            })
            .unwrap();
        assert_eq!(at, calls.len());
        found.entry((chunk.thread, chunk.window)).or_default().extend(calls);
    }
    assert_eq!(found, naive);
    summed
}

/// Bytes that calls of each terminal move: the first and the last share a class.
const BYTES: [Option<u64>; 6] = [Some(8), Some(9), None, Some(0), Some(u64::MAX), Some(8)];

/// An index with classes has the same calls, by signature and by class, and sums of their bytes.
fn check_classes(structure: &RankStructure, times: &[u8]) {
    let bytes = vec![BYTES.to_vec(); structure.threads.len()];
    let classes = Classes::of(structure, &bytes).expect("few");
    let coded = encode(structure, times, Some(&classes), usize::MAX).unwrap().unwrap();
    let index = RankIndex::read(&coded).unwrap();
    assert!(RankIndex::has_classes(&coded));
    assert_eq!(index.classes(), Some(&classes.0));
    let mut naive = ByWindow::new();
    for_each(structure, &mut Decoder::new(times).unwrap(), |window, terminal, time| {
        let Time { start_ns, duration_ns, count } = time;
        let call = Call { terminal: terminal.number, start_ns, duration_ns, count };
        naive.entry((window.thread, window.window)).or_default().push(call);
    })
    .unwrap();
    let (mut by_signature, mut by_class) = (index.reader(structure), index.class_reader());
    let mut found = ByWindow::new();
    for chunk in index.chunks() {
        let (mut own, mut classed) = (Vec::new(), Vec::new());
        by_signature.chunk(chunk, |call| own.push(call)).unwrap();
        by_class.chunk(chunk, |call| classed.push(call)).unwrap();
        let class = |call: &Call| classes.1[&chunk.thread][call.terminal as usize];
        let expected: Vec<Call> = own.iter().map(|call| Call { terminal: class(call), ..*call }).collect();
        assert_eq!(classed, expected);
        for sum in chunk.sums().into_iter().flatten() {
            let of = &classes.0.signatures()[sum.terminal as usize];
            let own = own.iter().filter(|call| {
                let signature = &structure.threads[0].signatures[call.terminal as usize];
                (signature.function, signature.site) == (of.function, of.site)
            });
            let bytes = own.map(|call| Some(BYTES[call.terminal as usize]?.saturating_mul(call.count)));
            let bytes = bytes.reduce(|sum, own| Some(sum?.saturating_add(own?))).flatten();
            assert_eq!(sum.bytes, bytes.filter(|&bytes| bytes < u64::MAX));
        }
        found.entry((chunk.thread, chunk.window)).or_default().extend(own);
    }
    assert_eq!(found, naive);
    assert!(!classes.0.structure(3).threads.iter().any(|thread| thread.signatures.is_empty()));
}

fn stored() -> impl Strategy<Value = Vec<Stored>> {
    let number = prop_oneof![4 => 0..50u64, 2 => 0..5000u64, 1 => 0..1u64 << 40];
    let call = (0..5u32, number.clone(), -20..20i64, number, 1..5u64, 0..60u32);
    let call = call.prop_map(|(terminal, gap, less, duration_ns, polls, begins)| Stored {
        terminal: if terminal >= 3 { terminal + 1 } else { terminal },
        gap_ns: if gap < 25 { gap as i64 + less } else { gap as i64 },
        duration_ns,
        polls,
        begins: begins == 0,
    });
    prop::collection::vec(call, 0..1500)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn an_index_has_all_times_of_a_trace(threads in prop::collection::vec(stored(), 0..3), error in 0..3u32) {
        check(Settings { error: f64::from(error) * 0.05, floor_ns: 0 }, &threads);
    }

    #[test]
    fn any_bytes_end(mut bytes: Vec<u8>, at: usize, value: u8) {
        let call = Stored { terminal: 0, gap_ns: 5, duration_ns: 9, polls: 1, begins: false };
        let (structure, times) = rank(Settings { error: 0.1, floor_ns: 0 }, &[vec![call; 700]]);
        let mut index = encode(&structure, &times, None, usize::MAX).unwrap().unwrap();
        let at = at % index.len();
        index[at] = value;
        bytes.splice(0..0, [0; 8]);
        for bytes in [bytes, index] {
            let Some(index) = RankIndex::read(&bytes) else { continue };
            let mut reader = index.reader(&structure);
            for chunk in index.chunks() {
                let _ = reader.chunk(chunk, |_| ());
                let _ = chunk.groups(|_| ());
                let _ = (chunk.sums(), chunk.visits());
            }
        }
    }
}

/// Blocks are longer where the index must be smaller, and hold the same calls.
#[test]
fn a_limit_makes_blocks_longer() {
    let call = |number: u64| Stored {
        terminal: (number % 2) as u32,
        gap_ns: (number % 7) as i64,
        duration_ns: 100 + number % 3,
        polls: 1,
        begins: false,
    };
    let (structure, times) = rank(Settings { error: 0.1, floor_ns: 0 }, &[(0..20_000).map(call).collect()]);
    let calls = |bytes: &[u8]| {
        let (index, mut calls, mut blocks) = (RankIndex::read(bytes).unwrap(), Vec::new(), 0);
        let mut reader = index.reader(&structure);
        for chunk in index.chunks() {
            reader.chunk(chunk, |call| calls.push(call)).unwrap();
            chunk.blocks(|_, _| blocks += 1).unwrap();
        }
        (calls, blocks)
    };
    let with = |most_bytes: usize| encode(&structure, &times, None, most_bytes).unwrap();
    let short = with(usize::MAX).unwrap();
    let long = with(short.len() - 1).unwrap();
    assert!(long.len() < short.len());
    let ((short_calls, short_blocks), (long_calls, long_blocks)) = (calls(&short), calls(&long));
    assert_eq!(short_calls, long_calls);
    assert_eq!((short_blocks, long_blocks), (20, 5));
    assert!(with(long.len() - 1).is_none());
}

/// Chunks and blocks end where they are full, and frequencies of the first calls hold for all.
#[test]
fn many_calls_are_in_many_chunks() {
    let call = |number: u64| Stored {
        terminal: (number % 2) as u32,
        gap_ns: (number % 7) as i64,
        duration_ns: number * number % 1013,
        polls: 1,
        begins: number.is_multiple_of(200_000),
    };
    let summed = check(Settings { error: 0.1, floor_ns: 2 }, &[(0..300_000).map(call).collect()]);
    assert_eq!(summed, 2 * (4 + 2), "two functions in each chunk of two windows");
}
