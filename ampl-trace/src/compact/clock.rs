//! A journal's clock: ticks to nanoseconds.

use crate::journal::word;

/// Ticks to nanoseconds since T0, through a journal's two clock pairs.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    ticks: u64,
    nanos: i64,
    /// Nanoseconds of a tick.
    pub per_tick: f64,
}

impl Clock {
    /// The clock of the journal with this header page.
    pub fn new(header: &[u64]) -> Self {
        let ticks = header[word::TICKS_LAST].wrapping_sub(header[word::TICKS_FIRST]);
        let nanos = header[word::NANOS_LAST].wrapping_sub(header[word::NANOS_FIRST]) as i64;
        let per_tick = if ticks == 0 { 1.0 } else { nanos as f64 / ticks as f64 };
        Self { ticks: header[word::TICKS_FIRST], nanos: header[word::NANOS_FIRST] as i64, per_tick }
    }

    /// Nanoseconds of so many ticks.
    #[inline]
    pub fn duration(self, ticks: u64) -> f64 {
        // The same number; a signed word takes an instruction, an unsigned one seven.
        let exact = i64::try_from(ticks).map_or_else(|_| ticks as f64, |ticks| ticks as f64);
        exact * self.per_tick
    }

    /// The same, whole; 0 where a damaged header has time run backwards.
    #[inline]
    pub fn whole_duration(self, ticks: u64) -> u64 {
        let exact = self.duration(ticks);
        round(exact).unwrap_or_else(|| exact.round() as u64)
    }

    /// Nanoseconds since T0 at that tick, whole.
    #[inline]
    pub fn instant(self, ticks: u64) -> i64 {
        let exact = ticks.wrapping_sub(self.ticks) as i64 as f64 * self.per_tick;
        let since = round(exact).map_or_else(|| exact.round() as i64, |since| since as i64);
        // Words of a damaged journal may be anything.
        self.nanos.saturating_add(since)
    }
}

/// From here on a float has no fraction: 2^52.
const WHOLE: f64 = 4_503_599_627_370_496.0;

/// `value.round()` where that is easy, as it nearly always is: `round` itself is a call on processors
/// without SSE4.1.
#[inline]
fn round(value: f64) -> Option<u64> {
    // In this order come 0, all numbers below 2^52, all others, and all with a sign.
    (value.to_bits() < WHOLE.to_bits()).then(|| {
        let whole = value as i64;
        let fraction = value - whole as f64; // exact
        whole as u64 + u64::from(fraction >= 0.5)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(value: f64) {
        // One tick that lasts so long.
        let clock = Clock { ticks: 0, nanos: 0, per_tick: value };
        assert_eq!(clock.whole_duration(1), value.round() as u64, "{value:e}");
        assert_eq!(clock.instant(1), value.round() as i64, "{value:e}");
    }

    #[test]
    fn halves_and_their_neighbours_round_as_round_does() {
        let powers = (0..70).map(|bit| 2f64.powi(bit));
        for power in powers.chain((0..100).map(f64::from)) {
            for value in [power, power + 0.5, power - 0.5, power / 3.0, f64::MAX, f64::MIN_POSITIVE, 0.0] {
                for value in [value.next_down(), value, value.next_up()] {
                    check(value);
                    check(-value);
                }
            }
        }
        [f64::INFINITY, f64::NEG_INFINITY, f64::NAN].into_iter().for_each(check);
    }

    proptest! {
        #[test]
        fn any_number_rounds_as_round_does(value: f64, moderate in -1e7..1e7f64, half in -1i64 << 53..1 << 53) {
            check(value);
            check(moderate);
            check(half as f64 / 2.0);
        }
    }
}
