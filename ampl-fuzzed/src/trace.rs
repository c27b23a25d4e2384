//! Bytes as a trace file: read to an end, every rank's calls too, in memory that the bytes bound.
//!
//! Checksums would hide what lies behind them from nearly all inputs, so the bytes are read twice: as the
//! file itself, and as its sections: kind, one more than the rank, length (2 bytes, the lower first),
//! payload.

use ampl_trace::communicators::Communicators;
use ampl_trace::decode::Calls;
use ampl_trace::format::{Kind, read, v1};
use ampl_trace::{RankTrace, Trace};

/// Calls of a rank, and ranks, that are read of one input: a few bytes may stand for any number.
const MOST_CALLS: usize = 10_000;
const MOST_RANKS: usize = 6;
/// Calls that are looked at for communicators.
const MOST_MAKING: usize = 1 << 12;

/// Reads `bytes`.
///
/// # Panics
/// Where the property does not hold.
pub fn check(bytes: &[u8]) {
    look_at(bytes);
    look_at(&assembled(bytes));
}

/// A file of the sections in `bytes`, checksums as they should be.
fn assembled(mut bytes: &[u8]) -> Vec<u8> {
    let mut writer = v1::Writer::new(Vec::new()).expect("memory takes everything");
    while let Some((&[kind, rank, low, high], rest)) = bytes.split_first_chunk() {
        let length = usize::from(u16::from_le_bytes([low, high])).min(rest.len());
        let (payload, behind) = rest.split_at(length);
        let kind = Kind::from_number(kind % 18).unwrap_or(Kind::Structure);
        let rank = u32::from(rank).checked_sub(1);
        writer.section(kind, rank, payload).expect("memory takes everything");
        bytes = behind;
    }
    writer.finish().expect("memory takes everything")
}

fn look_at(bytes: &[u8]) {
    let Ok(trace) = read(bytes) else { return };
    trace.function_calls();
    trace.windows();
    trace.kept_windows();
    let comms = Communicators::within(&trace, MOST_MAKING);
    assert!(comms.iter().all(|comm| comm.ranks.as_ref().is_none_or(|ranks| !ranks.is_empty())));
    let nothing = RankTrace::default();
    let ranks: Vec<u32> = trace.structure.ranks().take(MOST_RANKS).collect();
    for number in ranks {
        calls(&trace, number, trace.rank(number).unwrap_or(&nothing), &comms);
    }
    // Ranks of which there are times and places, whether or not they called anything.
    for rank in trace.ranks.iter().take(MOST_RANKS) {
        calls(&trace, rank.process.rank, rank, &comms);
    }
    trace
        .ranks
        .iter()
        .take(MOST_RANKS)
        .for_each(|rank| assert!(rank.windows.iter().take(MOST_CALLS).count() <= MOST_CALLS));
}

fn calls(trace: &Trace, number: u32, rank: &RankTrace, comms: &Communicators) {
    let structure = trace.structure.rank(number).unwrap_or_default();
    let mut failed = false;
    for call in Calls::naming(&structure, rank, comms).take(MOST_CALLS) {
        // An error is the last thing there is.
        assert!(!failed);
        failed = call.is_err();
    }
}
