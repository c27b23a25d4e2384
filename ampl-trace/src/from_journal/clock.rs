//! A journal's clock: ticks to nanoseconds.

use crate::journal::word;

/// Ticks to nanoseconds since T0, through a journal's two clock pairs.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    ticks: u64,
    nanos: i64,
    /// Nanoseconds of a tick.
    pub per_tick: f64,
    /// Nanoseconds of a tick in units of 2^-48: a product with it is a multiplication and a shift, and right to a
    /// nanosecond within a day.
    scale: i64,
}

/// Bits of [`Clock::scale`] behind the point.
const FRACTION: u32 = 48;
const HALF: i128 = 1 << (FRACTION - 1);

impl Clock {
    /// The clock of the journal with this header page.
    pub fn new(header: &[u64]) -> Self {
        let ticks = header[word::TICKS_LAST].wrapping_sub(header[word::TICKS_FIRST]);
        let nanos = header[word::NANOS_LAST].wrapping_sub(header[word::NANOS_FIRST]) as i64;
        let per_tick = if ticks == 0 { 1.0 } else { nanos as f64 / ticks as f64 };
        Self::of(header[word::TICKS_FIRST], header[word::NANOS_FIRST] as i64, per_tick)
    }

    /// A clock from its parts. Whole numbers wrap where a damaged journal has impossible ones.
    fn of(ticks: u64, nanos: i64, per_tick: f64) -> Self {
        Self { ticks, nanos, per_tick, scale: (per_tick * (1u64 << FRACTION) as f64).round() as i64 }
    }

    /// Nanoseconds of so many ticks.
    pub fn duration(self, ticks: u64) -> f64 {
        ticks as f64 * self.per_tick
    }

    /// Nanoseconds since T0 at that tick, whole.
    #[inline]
    pub fn instant(self, ticks: u64) -> i64 {
        self.nanos.wrapping_add(self.scaled(ticks.wrapping_sub(self.ticks) as i64))
    }

    #[inline]
    fn scaled(self, ticks: i64) -> i64 {
        ((i128::from(ticks) * i128::from(self.scale) + HALF) >> FRACTION) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn halves_and_their_multiples_are_exact() {
        let clock = Clock::of(1000, 50, 0.5);
        assert_eq!([1000, 1002, 1003, 998, 0].map(|ticks| clock.instant(ticks)), [50, 51, 52, 49, -450]);
    }

    proptest! {
        #[test]
        fn a_day_is_right_to_a_nanosecond(ticks in 0..1u64 << 46, per_tick in 0.2..2.0f64) {
            let clock = Clock::of(0, 0, per_tick);
            let exact = ticks as f64 * per_tick;
            prop_assert!((clock.instant(ticks) as f64 - exact).abs() <= 1.0);
            prop_assert!((clock.instant(ticks.wrapping_neg()) as f64 + exact).abs() <= 1.0);
        }

        #[test]
        fn any_tick_of_any_clock_is_read_without_panic(ticks: u64, first: u64, nanos: i64, per_tick: f64) {
            let clock = Clock::of(first, nanos, per_tick);
            let _ = (clock.instant(ticks), clock.duration(ticks));
        }
    }
}
