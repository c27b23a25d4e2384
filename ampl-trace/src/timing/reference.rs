//! The code length that sizes are compared with.

use rustc_hash::FxHashMap;

use super::models::{Kind, Symbol};

/// How often each value of each signature and kind was coded.
#[derive(Clone, Debug, Default)]
pub struct CodeLength(FxHashMap<(u64, Kind), FxHashMap<Symbol, u64>>);

impl CodeLength {
    /// One more of these.
    pub(super) fn count(&mut self, signature: u64, kind: Kind, symbol: Symbol) {
        *self.0.entry((signature, kind)).or_default().entry(symbol).or_default() += 1;
    }

    /// Adds what was counted elsewhere: of each signature there, thread and terminal, to those of the
    /// signature that `name` says.
    pub fn join(&mut self, other: &Self, name: impl Fn(u32, u32) -> u64) {
        for (&(signature, kind), counts) in &other.0 {
            let all = self.0.entry((name((signature >> 32) as u32, signature as u32), kind)).or_default();
            for (&symbol, count) in counts {
                *all.entry(symbol).or_default() += count;
            }
        }
    }

    /// Values that were counted.
    pub fn values(&self) -> u64 {
        self.0.values().flat_map(FxHashMap::values).sum()
    }

    /// Bits of an adaptive code of all values, given the signature and kind of each.
    ///
    /// For each signature and kind the `n` values are `m` different ones (bins; short is one), which are
    /// known beforehand; the value after `i` has the probability `(seen + 1/2) / (i + m/2)`, where `seen`
    /// of the `i` were the same. That is the sum of `log2` of `i + m/2` over `i < n`, less that of `s +
    /// 1/2` over `s <` its count for each different value, whatever their order.
    ///
    /// # Source
    /// Krichevsky and Trofimov, *The performance of universal encoding*, IEEE Trans. Inf. Theory 27 (1981).
    pub fn bits(&self) -> f64 {
        let sum =
            |count: u64, offset: f64| (0..count).map(|before| (before as f64 + offset).log2()).sum::<f64>();
        let of_one = |counts: &FxHashMap<Symbol, u64>| {
            let different = counts.len() as f64;
            sum(counts.values().sum(), different / 2.0)
                - counts.values().map(|&count| sum(count, 0.5)).sum::<f64>()
        };
        // Sorted: sums of floats depend on the order.
        let mut lengths: Vec<f64> = self.0.values().map(of_one).collect();
        lengths.sort_by(f64::total_cmp);
        lengths.iter().sum()
    }
}
