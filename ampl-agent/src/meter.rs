//! The agent's own time per call, from a few calls that are measured.
//!
//! Measuring every call would double what is measured. Distances between measured calls are drawn: a fixed
//! one would meet the same call of a loop again and again.

/// Mean distance of two measured calls.
const DISTANCE: u64 = 256;
/// Calls that the mean remembers.
const MEMORY: u64 = 64 * DISTANCE;
/// Limit as a multiple of the mean: a measured call that took more was descheduled, and counts as that much.
const OUTLIER: u64 = 16;
/// Longest time that a call takes the agent, about 100 µs: beyond, the processor went elsewhere. The first calls have
/// no mean.
const LONGEST: u64 = 300_000;
/// Bits behind the point of the mean.
const FRACTION: u32 = 16;

/// A running mean of the agent's own time per call, ticks.
#[derive(Debug)]
pub struct Meter {
    /// Calls until the next measured one.
    left: u64,
    /// Calls that the next measured one stands for.
    stands_for: u64,
    /// Calls stood for so far, at most [`MEMORY`].
    known: u64,
    /// State of the generator of distances.
    seed: u64,
    /// The mean, a fixed-point number.
    mean: u64,
    /// Ticks that about a tenth of the calls stay below, fixed-point too: calls that found their data in the caches.
    low: u64,
}

/// Program time lost per call beside the agent's own, as a part of the agent's excess over warm caches. Lines that the
/// agent fetches drive out lines that the program or MPI fetch again; the part is below 1, for not all are needed
/// again.
const DRIVEN_OUT: f64 = 0.5;

impl Default for Meter {
    fn default() -> Self {
        Self { left: 1, stands_for: 1, known: 0, seed: 1, mean: 0, low: 0 }
    }
}

impl Meter {
    /// True where the call that begins now is to be measured. It need not reach [`Meter::take`]: a jump may leave it.
    #[inline(always)]
    pub fn is_due(&mut self) -> bool {
        if self.left > 1 {
            self.left -= 1;
            return false;
        }
        self.left = self.stands_for;
        true
    }

    /// True where [`is_due`](Self::is_due) would return false.
    #[inline(always)]
    pub fn rests(&self) -> bool {
        self.left > 1
    }

    /// Ticks per call, as far as is known.
    #[inline(always)]
    pub fn per_call(&self) -> u64 {
        self.mean >> FRACTION
    }

    /// Ratio of the true cost of calls to the measured one, at least 1; `outside` are the ticks of a call outside of
    /// what is measured.
    pub fn surcharge(&self, outside: u64) -> f64 {
        if self.mean == 0 {
            return 1.0;
        }
        let [mean, low] = [self.mean, self.low].map(|ticks| ticks as f64 / (1u64 << FRACTION) as f64);
        1.0 + (DRIVEN_OUT * (mean - low).max(0.0) + outside as f64) / mean
    }

    /// A call that was due took `ticks` of the agent's.
    #[cold]
    pub fn take(&mut self, ticks: u64) {
        let mut ticks = ticks.min(LONGEST) << FRACTION;
        if self.known >= DISTANCE {
            ticks = ticks.min(self.mean.saturating_mul(OUTLIER));
        }
        // Robbins and Monro (1951): a step up is a ninth of a step down, so that they balance at the tenth.
        let step = (self.low / 16).max(1);
        self.low = match (self.low, ticks < self.low) {
            (0, _) => ticks,
            (low, true) => low - step * 9 / 10,
            (low, false) => low + step / 10,
        };
        // Weighted by the calls it stands for: the first are the dearest, and stand for themselves only.
        self.known = (self.known + self.stands_for).min(MEMORY);
        let step = (ticks as i64 - self.mean as i64) / self.known as i64 * self.stands_for as i64;
        self.mean = self.mean.saturating_add_signed(step);
        // Every call at first, then more and more rarely.
        let distance = (self.known / 8).clamp(1, DISTANCE);
        // Knuth, The Art of Computer Programming, vol. 2, 3.3.4: MMIX's generator; its upper bits.
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.stands_for = 1 + (self.seed >> 33) % (2 * distance - 1);
        self.left = self.stands_for;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ratio of the meter's sum to the true one, where call number `call` takes `ticks` of the agent's.
    fn said_over_true(calls: u64, ticks: impl Fn(u64) -> u64) -> f64 {
        let mut meter = Meter::default();
        let (mut said, mut sum) = (0, 0);
        for call in 0..calls {
            if meter.is_due() {
                meter.take(ticks(call));
            }
            said += meter.per_call();
            sum += ticks(call);
        }
        said as f64 / sum as f64
    }

    #[test]
    fn a_loop_is_not_met_at_one_place() {
        // One call in sixteen is dear, as a MPI_Waitall is: a distance of 256 would see all or none.
        for dear in 0..16 {
            let ratio = said_over_true(2_000_000, |call| if call % 16 == dear { 2000 } else { 150 });
            assert!((0.9..1.1).contains(&ratio), "{dear}: {ratio}");
        }
    }

    #[test]
    fn a_measured_call_may_never_return() {
        let mut meter = Meter::default();
        let due = (0..10_000)
            .filter(|call| {
                let due = meter.is_due();
                if due && call % 3 == 0 {
                    meter.take(200);
                }
                due
            })
            .count();
        assert!(due > 20, "{due}");
        assert_eq!(meter.per_call(), 200);
    }

    #[test]
    fn cold_calls_cost_more_than_they_take() {
        let after = |ticks: fn(u64) -> u64| {
            let mut meter = Meter::default();
            (0..500_000).for_each(|call| {
                if meter.is_due() {
                    meter.take(ticks(call));
                }
            });
            meter.surcharge(0)
        };
        // In a loop of their own calls find everything where it was.
        assert!((after(|_| 200) - 1.0).abs() < 0.01);
        // Three of four come after much work of the program's: (200 + 3 · 1000) / 4 is the mean, of which 600 are more.
        let cold = after(|call| if call % 4 == 0 { 200 } else { 1000 });
        assert!((cold - (1.0 + 0.5 * 600.0 / 800.0)).abs() < 0.06, "{cold}");
        assert_eq!(Meter::default().surcharge(70), 1.0);
    }

    #[test]
    fn a_busy_machine_does_not_make_calls_dear() {
        // A few calls, one of which lost the processor for 10 ms.
        let said = |call| if call == 3 { 30_000_000 } else { 2000 };
        let mut meter = Meter::default();
        let mut sum = 0;
        for call in 0..100 {
            if meter.is_due() {
                meter.take(said(call));
            }
            sum += meter.per_call();
        }
        assert!(sum < 100 * 2000 + 40 * LONGEST, "{sum}");
    }

    #[test]
    fn first_calls_and_a_descheduled_one_stand_for_themselves() {
        let cold = said_over_true(500_000, |call| if call < 20 { 20_000 } else { 200 });
        assert!((0.98..1.06).contains(&cold), "{cold}");
        let mut meter = Meter::default();
        for _ in 0..10_000 {
            if meter.is_due() {
                meter.take(200);
            }
        }
        meter.take(LONGEST);
        assert!((200..=300).contains(&meter.per_call()), "{}", meter.per_call());
    }
}
