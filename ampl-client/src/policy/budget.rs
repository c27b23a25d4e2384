//! A limit on what the whole job keeps, in bytes per second.
//!
//! Where the samples that the bounds ask for would cost more than that, every bound is widened by one and the
//! same factor until they fit, so no group pays for another; fixed sizes shrink as if they had been asked for
//! by a bound. Only when every sample is at its floor do floors give way, down to nobody. Pinned ranks are kept
//! whatever it costs.
//!
//! The cost of a rank-window is measured, not assumed, so a first interval starts from floors. An interval's excess is
//! taken off the next ones. Its surplus is lost, because a file system that was idle before is none the faster for it.
//! Only as much as an interval at the floors takes is saved up. So the smallest of budgets has a sample now and then,
//! and its cost stays known.

use std::collections::VecDeque;

use ampl_core::config::Quantity;
use ampl_core::message::CensusWindow;
use ampl_core::stats::Moments;

use super::stratum::StratumState;

/// Bytes, seconds and what is left of them.
#[derive(Clone, Debug)]
pub(super) struct Budget {
    /// Bytes per second of the whole job.
    rate: f64,
    /// Place of the windows' duration in a summary.
    wall: Option<usize>,
    /// Excess of the intervals so far, bytes; negative where something is saved up.
    debt: f64,
    /// Groups with retrospective decisions: their cells report what ranks have buffered, and a [`Ledger`] accounts for
    /// what is kept of it.
    buffered: Vec<u16>,
    /// Bytes kept in this interval.
    kept: f64,
    /// Duration of the interval so far, seconds.
    seconds: f64,
    /// Windows of the interval so far.
    windows: u64,
}

impl Budget {
    /// Budget of at most `rate` bytes per second.
    pub fn new(rate: f64, buffered: Vec<u16>) -> Self {
        Self { rate, wall: Quantity::Wall.slot(), debt: 0.0, buffered, kept: 0.0, seconds: 0.0, windows: 0 }
    }

    /// Takes a window: the bytes kept of it, and its duration, the mean over the ranks that reported one.
    pub fn observe(&mut self, window: &CensusWindow) {
        let mut wall = Moments::default();
        for cell in &window.partial.cells {
            if !self.buffered.contains(&cell.key.group) {
                self.kept += cell.bytes as f64;
            }
            let of_cell = self.wall.and_then(|wall| cell.metrics.get(wall));
            let known =
                of_cell.map(|moments| if moments.census.n > 0 { moments.census } else { moments.kept });
            wall.merge(&known.unwrap_or_default());
        }
        if wall.n > 0 {
            self.windows += window.windows();
            self.seconds += wall.y / wall.n as f64 * 1e-9 * window.windows() as f64;
        }
    }

    /// Ends an interval: bytes that the next one of `windows` windows may take, if `smallest` is what it takes at
    /// the floors; none while no window's duration is known.
    fn allowance(&mut self, windows: u64, smallest: f64) -> Option<f64> {
        if self.windows == 0 {
            return None;
        }
        let per_window = self.seconds / self.windows as f64;
        self.debt = (self.debt + self.kept - self.rate * self.seconds).max(-smallest);
        (self.kept, self.seconds, self.windows) = (0.0, 0.0, 0);
        Some((self.rate * per_window * windows as f64 - self.debt).max(0.0))
    }

    /// Cuts the sizes that `strata` have just decided for the next interval of `windows` windows.
    pub fn cut(&mut self, strata: &mut [StratumState], windows: u64) {
        let bytes = |pressure: Pressure| {
            let each = strata.iter().map(|stratum| {
                let cost = stratum.cost().unwrap_or_default();
                cost.pinned * stratum.pinned() as f64 + cost.drawn * stratum.under(pressure) as f64
            });
            each.sum::<f64>() * windows as f64
        };
        let known = strata.iter().all(|stratum| stratum.cost().is_some());
        let pressure = match self.allowance(windows, bytes(Pressure::FLOORS)).filter(|_| known) {
            None => Pressure::FLOORS,
            Some(allowance) if bytes(Pressure::NONE) <= allowance => Pressure::NONE,
            Some(allowance) => Pressure::least(|pressure| bytes(pressure) <= allowance),
        };
        strata.iter_mut().for_each(|stratum| stratum.limit(pressure));
    }
}

/// The same limit on windows that are decided one by one, when the cost of keeping them is roughly known.
///
/// Each is taken to cost what its ranks expect. The actual cost is reported with later windows, and set off against
/// those that follow.
#[derive(Clone, Debug)]
pub(super) struct Ledger {
    /// Bytes per second of the whole job.
    rate: f64,
    /// Excess of the windows so far, bytes; negative where something is saved up, at most what a window takes at the
    /// floors.
    debt: f64,
    /// Expected bytes of all windows so far, corrected by what ranks have reported.
    expected: f64,
    /// The same up to each of the latest windows, oldest first.
    earlier: VecDeque<f64>,
    /// Bytes that ranks have kept.
    spent: f64,
}

/// Windows after which ranks have certainly reported what one of them took.
const UNDERWAY: usize = 8;

impl Ledger {
    /// Ledger of at most `rate` bytes per second.
    pub fn new(rate: f64) -> Self {
        Self { rate, debt: 0.0, expected: 0.0, earlier: VecDeque::with_capacity(UNDERWAY + 1), spent: 0.0 }
    }

    /// Takes the bytes that ranks have kept since their last report.
    pub fn spend(&mut self, bytes: f64) {
        self.spent += bytes;
        // Some of what was decided is kept by now, at most all of it.
        let least = self.earlier.front().filter(|_| self.earlier.len() >= UNDERWAY && self.spent > 0.0);
        let off = match least {
            _ if self.spent > self.expected => self.spent - self.expected,
            Some(&least) if self.spent < least => self.spent - least,
            _ => 0.0,
        };
        self.debt += off;
        self.expected += off;
        self.earlier.iter_mut().for_each(|expected| *expected += off);
    }

    /// Result of `price` under the least pressure at which a window of `seconds` may take its `bytes`, and `true` if
    /// there is any pressure. Where the duration of the window is unknown, the floors.
    pub fn fit<T>(
        &mut self,
        seconds: Option<f64>,
        price: impl Fn(Pressure) -> T,
        bytes: impl Fn(&T) -> f64,
    ) -> (T, bool) {
        let floors = price(Pressure::FLOORS);
        let Some(seconds) = seconds else { return (floors, true) };
        let (income, smallest) = (self.rate * seconds, bytes(&floors));
        let allowance = (income - self.debt).max(0.0);
        let wanted = price(Pressure::NONE);
        let limited = bytes(&wanted) > allowance;
        let found = match limited {
            true => price(Pressure::least(|pressure| bytes(&price(pressure)) <= allowance)),
            false => wanted,
        };
        let taken = bytes(&found);
        self.debt = (self.debt + taken - income).max(-smallest);
        self.expected += taken;
        self.earlier.push_back(self.expected);
        if self.earlier.len() > UNDERWAY {
            self.earlier.pop_front();
        }
        (found, limited)
    }
}

/// Cost of a rank-window of a stratum, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Cost {
    /// Cost of a rank that is drawn.
    pub drawn: f64,
    /// Cost of a pinned rank.
    pub pinned: f64,
}

/// Reduction of samples below what they ask for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pressure {
    /// Bounds are this many times as wide.
    pub wider: f64,
    /// Share of the floor that is left.
    pub floor: f64,
}

impl Pressure {
    /// No reduction.
    pub const NONE: Self = Self { wider: 1.0, floor: 1.0 };
    /// Every sample at its floor.
    pub const FLOORS: Self = Self { wider: 1e6, floor: 1.0 };

    /// Least pressure that fits, approximately; no rank is drawn where none fits. Sizes fall as pressure rises, except
    /// where outliers make a wider bound worth more ranks.
    fn least(fits: impl Fn(Self) -> bool) -> Self {
        // By factors while bounds are widened, then by shares of the floors.
        let widened = |share: f64| Self { wider: Self::FLOORS.wider.powf(share), floor: 1.0 };
        let floored = |share: f64| Self { floor: 1.0 - share, ..Self::FLOORS };
        match fits(Self::FLOORS) {
            true => bisected(widened, fits),
            false => bisected(floored, fits),
        }
    }
}

/// The pressure at the least share in [0, 1] that fits; at 1 where none does.
fn bisected(at: impl Fn(f64) -> Pressure, fits: impl Fn(Pressure) -> bool) -> Pressure {
    const STEPS: usize = 30;
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..STEPS {
        let middle = (low + high) / 2.0;
        if fits(at(middle)) { high = middle } else { low = middle }
    }
    at(high)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Share of the budget that is kept from a window on, where a window takes `ratio` times as much as ranks expect;
    /// they report that three windows later.
    fn used(ratio: f64, windows: usize, from: usize) -> f64 {
        const RATE: f64 = 200.0;
        let mut ledger = Ledger::new(RATE);
        let mut taken: Vec<f64> = Vec::new();
        for window in 0..windows {
            if let Some(&bytes) = window.checked_sub(3).and_then(|told| taken.get(told)) {
                ledger.spend(bytes);
            }
            let ranks = |pressure: Pressure| (64.0 / pressure.wider.powi(2)).max(pressure.floor);
            let (ranks, limited) = ledger.fit(Some(1.0), ranks, |ranks| 100.0 * ranks);
            assert!(limited, "{ratio}: {ranks}");
            taken.push(100.0 * ratio * ranks);
        }
        taken[from..].iter().sum::<f64>() / (RATE * (windows - from) as f64)
    }

    #[test]
    fn the_budget_is_of_what_was_kept_whatever_was_expected() {
        for ratio in [0.25, 0.5, 0.8, 1.0, 1.25, 2.0, 4.0] {
            let all = used(ratio, 100, 0);
            // What it costs less than was expected is known some windows later.
            assert!((0.7..=1.1).contains(&all), "{ratio}: {all}");
            let later = used(ratio, 200, 50);
            assert!((0.9..=1.05).contains(&later), "{ratio}: {later}");
        }
    }
}
