//! Code length of times as they are stored, with which the size of coded times is compared.

use std::collections::HashMap;

use ampl_trace::timing::{Terminal, Time, Window};

/// Part of a call's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Gap,
    Duration,
}

/// Number of times that each stored value occurs.
type Counts = HashMap<i64, u64>;

/// Counts of the stored values of each signature and kind.
#[derive(Clone, Debug, Default)]
pub struct CodeLength {
    counts: HashMap<(u64, Kind), Counts>,
    /// Values that are one, nanoseconds: those not beyond it.
    floor: i64,
    thread: u32,
    /// End of the call before, and true before the first call of a window.
    end: (i64, bool),
}

impl CodeLength {
    /// Counts of nothing yet, of times that are stored with this floor.
    pub fn new(floor_ns: u64) -> Self {
        Self { floor: floor_ns as i64, ..Self::default() }
    }

    /// Begins a window, as a decoder returns it.
    pub fn window(&mut self, window: &Window) {
        (self.thread, self.end) = (window.thread, (window.start_ns, true));
    }

    /// Counts gap and duration of the window's next call, as a decoder returns it.
    pub fn call(&mut self, terminal: Terminal, time: Time) {
        let signature = u64::from(self.thread) << 32 | u64::from(terminal.number);
        let (before, first) = self.end;
        let end = time.start_ns + time.duration_ns as i64;
        // A call that began before its window is stored by its end.
        let gap = if first && time.start_ns < before { end - before } else { time.start_ns - before };
        self.count(signature, Kind::Gap, gap);
        self.count(signature, Kind::Duration, time.duration_ns as i64);
        self.end = (end, false);
    }

    /// Counts a value.
    fn count(&mut self, signature: u64, kind: Kind, value: i64) {
        let value = if value.abs() <= self.floor { 0 } else { value };
        *self.counts.entry((signature, kind)).or_default().entry(value).or_default() += 1;
    }

    /// Bits of an adaptive code of all values, given the signature and kind of each.
    ///
    /// For each signature and kind the `n` values are `m` different ones, which are
    /// known beforehand; the value after `i` has the probability `(seen + 1/2) / (i + m/2)`, where `seen`
    /// of the `i` were the same. That is the sum of `log2` of `i + m/2` over `i < n`, less that of `s +
    /// 1/2` over `s <` its count for each different value, whatever their order.
    ///
    /// # Source
    /// Krichevsky and Trofimov, *The performance of universal encoding*, IEEE Trans. Inf. Theory 27 (1981).
    pub fn bits(&self) -> f64 {
        let sum =
            |count: u64, offset: f64| (0..count).map(|before| (before as f64 + offset).log2()).sum::<f64>();
        let of_one = |counts: &Counts| {
            sum(counts.values().sum(), counts.len() as f64 / 2.0)
                - counts.values().map(|&count| sum(count, 0.5)).sum::<f64>()
        };
        sorted_sum(self.counts.values().map(of_one))
    }
}

/// Sum of `values`, sorted: sums of floats depend on the order.
fn sorted_sum(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.iter().sum()
}
