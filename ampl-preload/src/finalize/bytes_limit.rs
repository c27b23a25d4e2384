//! Limit of a trace, `output.max_bytes`: times of the last windows are left out first, then which buffers calls had, then the
//! last calls.

use ampl_trace::format::Part;
use ampl_trace::format::v1::Kind;
use ampl_trace::from_journal::Within;

/// Bytes that facts about a process take at most, as a rule.
const PROCESS: u64 = 48;
/// Bytes that a section takes besides its payload.
pub const HEAD: u64 = 24;
/// Rounds after which the rest of a kind is left out at once: each reads the journals again.
const ROUNDS: u32 = 3;

/// Bytes of the ranks' own parts, as far as ranks have nothing in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnBytes {
    /// Times of calls.
    pub times: u64,
    /// Buffers of calls that have several.
    pub buffers: u64,
    /// Everything else.
    pub other: u64,
    /// Windows of the rank that has most.
    pub windows: u64,
}

impl OwnBytes {
    /// Bytes of one rank's `parts`.
    pub fn of(parts: &[Part<'_>], windows: u64) -> Self {
        let mut own = Self { windows, ..Self::default() };
        for part in parts {
            let bytes = part.payload.len() as u64 + HEAD;
            match part.kind {
                Kind::Times => own.times += bytes,
                Kind::Buffers => own.buffers += bytes,
                Kind::Processes => own.other += PROCESS,
                _ => own.other += bytes,
            }
        }
        own
    }

    /// Adds another rank's.
    pub fn join(&mut self, other: Self) {
        self.times = self.times.saturating_add(other.times);
        self.buffers = self.buffers.saturating_add(other.buffers);
        self.other = self.other.saturating_add(other.other);
        self.windows = self.windows.max(other.windows);
    }

    /// As bytes of a message.
    pub fn encode(&self) -> Vec<u8> {
        [self.times, self.buffers, self.other, self.windows].map(u64::to_le_bytes).concat()
    }

    /// Reads those back.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let &[times, buffers, other, windows] = bytes.as_chunks::<8>().0 else { return None };
        let [times, buffers, other, windows] = [times, buffers, other, windows].map(u64::from_le_bytes);
        Some(Self { times, buffers, other, windows })
    }
}

/// Part of the journals to take next, where a trace of `own` bytes of ranks, `structure` bytes of calls and `rest` bytes
/// of other common parts, made of the part `was` in the round `round`, exceeds `limit`; `None` where it does not, or nothing more can be
/// left out.
pub fn less(
    limit: u64,
    own: OwnBytes,
    [structure, rest]: [u64; 2],
    was: Within,
    round: u32,
) -> Option<Within> {
    let fixed = own.other.saturating_add(rest);
    let calls = structure.saturating_add(own.buffers);
    let all = fixed.saturating_add(calls).saturating_add(own.times);
    if all <= limit {
        return None;
    }
    if was.times_before > 0 && own.times > 0 {
        let room = limit.saturating_sub(fixed.saturating_add(calls));
        let share = if round < ROUNDS { 0.9 * room as f64 / own.times as f64 } else { 0.0 };
        let times_before = (was.times_before.min(own.windows) as f64 * share) as u64;
        return Some(Within { times_before, ..was });
    }
    if was.buffers && own.buffers > 0 {
        return Some(Within { times_before: 0, buffers: false, ..was });
    }
    if was.calls > 0.0 {
        let room = limit.saturating_sub(fixed);
        // A part may take as much as the whole: what repeats takes nothing.
        let share = if round < 2 * ROUNDS { 0.7 * room as f64 / structure.max(1) as f64 } else { 0.0 };
        let calls = was.calls * if share < 0.01 { 0.0 } else { share.min(0.7) };
        return Some(Within { times_before: 0, calls, ..was });
    }
    None
}

/// Message of rank 0 to the others: to go on with what they have, or to take part of their journals again.
pub fn told(next: Option<Within>) -> Vec<u8> {
    let (again, Within { times_before, buffers, calls }) = (next.is_some(), next.unwrap_or_default());
    let mut bytes = vec![1 + u8::from(again) + u8::from(!buffers)];
    bytes.extend(times_before.to_le_bytes());
    bytes.extend(calls.to_bits().to_le_bytes());
    bytes
}

/// Bytes of such a message.
pub const TOLD: usize = 17;

/// Reads it. The outer `None`: there will be no trace.
pub fn heard(bytes: &[u8]) -> Option<Option<Within>> {
    let (&[told], rest) = bytes.split_first_chunk()?;
    let &[times_before, calls] = rest.as_chunks::<8>().0 else { return None };
    let within = Within {
        times_before: u64::from_le_bytes(times_before),
        buffers: told != 3,
        calls: f64::from_bits(u64::from_le_bytes(calls)),
    };
    match told {
        1 => Some(None),
        2 | 3 => Some(Some(within)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A job whose times and calls take as much as is taken of them.
    fn fit(limit: u64, times: u64, structure: u64) -> (Within, u64) {
        fit_with(limit, times, structure, 0)
    }

    fn fit_with(limit: u64, times: u64, structure: u64, buffers: u64) -> (Within, u64) {
        let (mut within, rest) = (Within::default(), 500);
        for round in 0..20 {
            let share = within.times_before.min(100) as f64 / 100.0;
            let buffers = if within.buffers { buffers } else { 0 };
            let own = OwnBytes { times: (times as f64 * share) as u64, buffers, other: 300, windows: 100 };
            let structure = (structure as f64 * within.calls) as u64;
            match less(limit, own, [structure, rest], within, round) {
                Some(next) => within = next,
                None => return (within, own.times + own.buffers + structure + own.other + rest),
            }
        }
        panic!("no end");
    }

    #[test]
    fn times_go_first_and_calls_last() {
        assert_eq!(fit(10_000, 4000, 4000).0, Within::default());
        let (within, bytes) = fit(10_000, 40_000, 4000);
        assert!(within.calls == 1.0 && (5..20).contains(&within.times_before), "{within:?}");
        assert!(bytes <= 10_000);
        let (within, bytes) = fit(10_000, 40_000, 20_000);
        assert!(within.times_before == 0 && within.calls > 0.2 && within.calls < 0.5, "{within:?}");
        assert!(bytes <= 10_000);
        // What is always there may be more.
        assert_eq!(fit(700, 40_000, 20_000).1, 800);
        assert_eq!(fit(700, 40_000, 20_000).0.calls, 0.0);
        // Buffers go before calls, and behind times.
        let (within, bytes) = fit_with(10_000, 40_000, 4000, 30_000);
        assert!(!within.buffers && within.calls == 1.0 && bytes <= 10_000, "{within:?}");
        assert!(fit_with(10_000, 40_000, 4000, 300).0.buffers);
    }

    #[test]
    fn messages_come_back() {
        let within = Within { times_before: 7, buffers: true, calls: 0.25 };
        for next in [None, Some(within), Some(Within { buffers: false, ..within })] {
            assert_eq!((told(next).len(), heard(&told(next))), (TOLD, Some(next)));
        }
        assert_eq!(heard(&[0; TOLD]), None);
        let mut own = OwnBytes { times: 1, buffers: 4, other: 2, windows: 9 };
        own.join(OwnBytes { times: 10, buffers: 5, other: 20, windows: 3 });
        assert_eq!(own, OwnBytes { times: 11, buffers: 9, other: 22, windows: 9 });
        assert_eq!(OwnBytes::decode(&own.encode()), Some(own));
    }
}
