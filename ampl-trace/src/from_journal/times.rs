//! Times of a thread's stored windows.

use super::clock::Clock;
use crate::record::{CALL_MISS, Kind, Record, Records, Word};
use crate::structure::ThreadStructure;
use crate::timed::Numbers;
use crate::timing::{Encoder, Terminal, Time, Window};

/// Start, duration, terminal and count of a call.
pub fn call(record: Record<'_>) -> Option<[u64; 3]> {
    Some(record.body.first_chunk()?.map(u64::from_le_bytes))
}

/// Window, start, probability, update, calls before.
pub fn open(record: Record<'_>) -> Option<[u64; 5]> {
    Some(record.body.first_chunk()?.map(u64::from_le_bytes))
}

/// Passes the calls in `blocks` of a thread to `encoder`, window by window up to that `before`, except calls that are not in its sequence,
/// whose end may be lost: readers could not assign their times. Edges of regions count as calls here.
pub fn encode<'a>(
    structure: &ThreadStructure,
    blocks: impl Iterator<Item = &'a [Word]>,
    clock: Clock,
    before: u64,
    encoder: &mut Encoder,
) {
    let (thread, calls) = (structure.thread, structure.grammar.len());
    let numbers = Numbers::of(&structure.signatures);
    // Windows that are decided late are stored behind later ones; readers go by the sequence.
    let mut windows: Vec<(u64, Vec<&'a [Word]>)> = vec![(0, Vec::new())];
    for words in blocks {
        let (mut from, mut at) = (0, 0);
        for record in Records::new(words) {
            if record.kind == Kind::Open {
                windows.last_mut().expect("one at least").1.push(&words[from..at]);
                let first_seq = open(record).map_or(0, |[.., first_seq]| first_seq);
                windows.push((first_seq, Vec::new()));
                from = at;
            }
            at += 1 + record.body.len();
        }
        windows.last_mut().expect("one at least").1.push(&words[from..at]);
    }
    windows.sort_by_key(|&(first_seq, _)| first_seq);
    let records = windows.iter().flat_map(|(_, words)| words).flat_map(|words| Records::new(words));
    // Windows without calls are left out.
    let (mut opened, mut next, mut wanted) = (None, 0u64, before > 0);
    for record in records {
        match record.kind {
            Kind::Open => {
                opened = open(record).map(|[window, start, _, _, first_seq]| {
                    (next, wanted) = (first_seq, window < before);
                    Window { thread, window, first_seq, start_ns: clock.instant(start) }
                });
            }
            Kind::Call => {
                let Some([start, duration, which]) = call(record) else { continue };
                next = next.saturating_add((which >> 32).max(1));
                if next > calls || !wanted {
                    continue;
                }
                if let Some(window) = opened.take() {
                    encoder.window(window);
                }
                let number = which as u32;
                let like =
                    structure.signatures.get(number as usize).map_or(0, |signature| signature.function);
                let folds = record.flags & CALL_MISS != 0;
                // Both ends are rounded alike, so that calls that do not overlap still do not.
                let [begin, end] = [start, start.wrapping_add(duration)].map(|at| clock.instant(at));
                let time = Time {
                    start_ns: begin,
                    duration_ns: end.saturating_sub(begin).max(0) as u64,
                    count: which >> 32,
                };
                encoder.call(Terminal { number: numbers.name(number), like, folds }, time);
            }
            _ => {}
        }
    }
}
