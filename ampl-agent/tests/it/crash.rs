//! A process that dies at any moment leaves every call that it had made.

use ampl_trace::journal::{BLOCK_HEADER_WORDS, BLOCK_MAGIC, BlockKind, HEADER_WORDS, head};
use proptest::prelude::*;

use crate::model::{Look, Process, Step, check, program};

const LOOK: Look = Look { base: 0x40_0000, handles: (0x9800, 1), last_first: true, drawn: 1.0 };

/// Checks the journal of `process` as of now: everything, but for the times of windows that are not wanted.
fn check_dead(process: &Process, bytes: &[u8], calls: usize) {
    let kept = |window: u64| Some(process.decisions.get(&window).copied().unwrap_or(true));
    check(bytes, &process.made[..calls], kept);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_call_is_there_at_once(after: bool, most in 0..6usize, mut steps in program()) {
        let mut process = Process::new(after, "", LOOK);
        process.gather(most);
        steps.truncate(100);
        for (thread, step) in steps {
            // A client that decides before windows begin sends no later decisions.
            if after || !matches!(step, Step::Judge(_)) {
                process.step(thread, step);
            }
            check_dead(&process, &process.bytes(), process.made.len());
        }
    }
}

/// A block of a journal's words: where it begins, its kind, and its header.
#[derive(Clone, Copy, Debug)]
struct RequestRef {
    at: usize,
    kind: u64,
    order: u64,
    capacity: usize,
}

impl RequestRef {
    fn range(self) -> std::ops::Range<usize> {
        self.at..self.at + BLOCK_HEADER_WORDS + self.capacity
    }

    fn is(self, kind: BlockKind) -> bool {
        self.kind == kind.number()
    }
}

fn places(words: &[u64]) -> Vec<RequestRef> {
    let (mut places, mut at) = (Vec::new(), HEADER_WORDS);
    while words.get(at) == Some(&BLOCK_MAGIC) {
        let word = |word: usize| words[at + word];
        let capacity = word(head::CAPACITY) as usize;
        places.push(RequestRef { at, kind: word(head::KIND), order: word(head::ORDER), capacity });
        at += BLOCK_HEADER_WORDS + capacity;
    }
    places
}

fn words(bytes: &[u8]) -> Vec<u64> {
    bytes.as_chunks().0.iter().map(|&word| u64::from_le_bytes(word)).collect()
}

fn bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// The number of the latest snapshot.
fn latest(words: &[u64]) -> u64 {
    let snapshots = places(words).into_iter().filter(|place| place.is(BlockKind::Snapshot));
    snapshots.map(|place| place.order).max().unwrap_or(0)
}

/// States of the journal while a call had a snapshot written, from `before` it to `after` it.
fn moments(before: &[u64], after: &[u64]) -> Vec<(&'static str, Vec<u64>)> {
    let epoch = latest(after);
    // New blocks are there, and empty.
    let mut begun = before.to_vec();
    begun.resize(after.len(), 0);
    for place in places(after).into_iter().filter(|place| place.at >= before.len()) {
        begun[place.at..place.at + 4].copy_from_slice(&after[place.at..place.at + 4]);
    }
    let mut written = begun.clone();
    for place in places(after).into_iter().filter(|place| place.is(BlockKind::Snapshot)) {
        written[place.range()].copy_from_slice(&after[place.range()]);
    }
    let new = *places(&written)
        .iter()
        .find(|place| place.is(BlockKind::Snapshot) && place.order == epoch)
        .expect("the new snapshot");
    let mut half = written.clone();
    half[new.at + head::ORDER] = 0;
    let payload = new.at + BLOCK_HEADER_WORDS;
    let middle = payload + half[payload] as usize / 16;
    half[middle..payload + new.capacity].iter_mut().for_each(|word| *word = word.wrapping_mul(77) ^ !0);
    let mut garbage = half.clone();
    garbage[payload..payload + new.capacity].iter_mut().for_each(|word| *word = !*word);
    garbage[new.at + head::COMMITTED] = u64::MAX;
    let mut forgotten = written.clone();
    for place in places(before).into_iter().filter(|place| place.is(BlockKind::Log)) {
        forgotten[place.at + head::COMMITTED] = 0;
    }
    let mut ready = forgotten.clone();
    let log = places(after).into_iter().find(|place| place.is(BlockKind::Log) && place.order == epoch);
    ready[log.expect("the log").at + head::ORDER] = epoch;
    vec![
        ("before", before.to_vec()),
        ("begun", begun),
        ("half written", half),
        ("garbage", garbage),
        ("written, with the log that it has taken in", written),
        ("written", forgotten),
        ("written, with a log", ready),
    ]
}

#[test]
fn snapshots_may_be_interrupted_anywhere() {
    let mut process = Process::new(false, "", LOOK);
    let mut random = 1u64;
    let mut draw = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    let (mut before, mut written) = (words(&process.bytes()), 0);
    for number in 1..=7000 {
        // A loop whose body changes sometimes, and many calls that never repeat.
        let tag = if draw(5) == 0 { draw(3000) } else { number % 7 };
        process.step(0, Step::Send { tag, site: 0, fails: false, buffer: 0 });
        let now = process.bytes();
        let after = words(&now);
        if latest(&after) > latest(&before) {
            written += 1;
            let calls = process.made.len();
            for (_what, moment) in moments(&before, &after) {
                check_dead(&process, &bytes(&moment), calls - 1);
            }
            check_dead(&process, &now, calls);
        } else if number % 499 == 0 {
            check_dead(&process, &now, process.made.len());
        }
        before = after;
    }
    assert!(written >= 4, "{written} snapshots");
    process.finish();
    assert_eq!(latest(&words(&process.bytes())), latest(&before) + 1);
    check_dead(&process, &process.bytes(), process.made.len());
}
