//! Growth of windows: from a number that is known beforehand on they last twice as long, and so on, so that a long job
//! has few windows. Every rank computes the same without a message.

/// Lengths of windows, in units: a period, or the markers that `window.every` asks for.
///
/// The first `most` windows last one unit. Then half as many last two, and as many again four: the length doubles
/// where `most`, twice as many, four times as many … units have passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowGrowth {
    most: u64,
}

impl WindowGrowth {
    /// Growth from window `most` on, which is 2 at least.
    pub fn new(most: u32) -> Self {
        Self { most: u64::from(most).max(2) }
    }

    /// Windows of each length above one unit.
    fn half(self) -> u64 {
        self.most / 2
    }

    /// How often the length has doubled before `window`.
    pub fn doublings(self, window: u64) -> u32 {
        match window.checked_sub(self.most) {
            None => 0,
            Some(beyond) => u32::try_from(beyond / self.half() + 1).unwrap_or(u32::MAX),
        }
    }

    /// The first window behind `window` that lasts longer.
    pub fn longer_from(self, window: u64) -> u64 {
        let halves = u64::from(self.doublings(window)).saturating_mul(self.half());
        self.most.saturating_add(halves)
    }

    /// Units that `window` lasts; no more than 2^63.
    pub fn units(self, window: u64) -> u64 {
        1 << self.doublings(window).min(63)
    }

    /// Units before `window` begins; `u64::MAX` where they are more.
    pub fn begin(self, window: u64) -> u64 {
        let doublings = self.doublings(window);
        if doublings == 0 {
            return window;
        }
        let behind = u128::from((window - self.most) % self.half());
        let units = 1u128.checked_shl(doublings.min(90)).unwrap_or(u128::MAX);
        let before = u128::from(self.most) + u128::from(self.half()) * (units - 2);
        u64::try_from(before + behind * units).unwrap_or(u64::MAX)
    }

    /// The window in which a unit lies.
    pub fn window_of(self, unit: u64) -> u64 {
        if unit < self.most {
            return unit;
        }
        let first = |doublings: u32| self.most + (u64::from(doublings) - 1) * self.half();
        let doublings = (1..=63).rev().find(|&doublings| self.begin(first(doublings)) <= unit).unwrap_or(1);
        first(doublings) + ((unit - self.begin(first(doublings))) >> doublings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_double_where_it_is_known_beforehand() {
        let growth = WindowGrowth::new(20_000);
        let begins = [0, 19_999, 20_000, 20_001, 30_000, 30_001, 40_000, 50_000];
        assert_eq!(
            begins.map(|window| growth.begin(window)),
            [0, 19_999, 20_000, 20_002, 40_000, 40_004, 80_000, 160_000]
        );
        assert_eq!([0, 19_999, 20_000, 30_000].map(|window| growth.units(window)), [1, 1, 2, 4]);
        // A day of 250 ms is some 345,600 units; a year 126 million.
        assert_eq!(growth.window_of(345_600), 60_800);
        assert!(growth.window_of(126_000_000) < 20_000 + 13 * 10_000 + 1);
    }

    /// Oracle: one window after the other.
    #[test]
    fn units_and_windows_are_each_others_inverse() {
        for most in [0, 2, 3, 4, 7, 100] {
            let growth = WindowGrowth::new(most);
            let (mut begin, most) = (0u64, u64::from(most).max(2));
            for window in 0..most + 20 * (most / 2) {
                assert_eq!(growth.begin(window), begin, "{most} {window}");
                let units = growth.units(window);
                assert_eq!(units, 1 << if window < most { 0 } else { (window - most) / (most / 2) + 1 });
                let longer = (window + 1..).find(|&next| growth.units(next) > units);
                assert_eq!(Some(growth.longer_from(window)), longer, "{most} {window}");
                for unit in [begin, begin + units / 2, begin + units - 1] {
                    assert_eq!(growth.window_of(unit), window, "{most} {unit}");
                }
                begin += units;
            }
        }
    }

    #[test]
    fn numbers_without_end_are_no_overflow() {
        for most in [2, 3, 20_000, u32::MAX] {
            let growth = WindowGrowth::new(most);
            assert_eq!(growth.begin(u64::MAX), u64::MAX);
            let last = growth.window_of(u64::MAX);
            assert!(growth.begin(last) > u64::MAX / 2 && growth.units(u64::MAX) == 1 << 63);
        }
    }
}
