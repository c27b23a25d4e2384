//! The code length that sizes are compared with.

use rustc_hash::FxHashMap;

use super::models::{Kind, Signature, Symbol};

/// Counts of the values of each signature and kind.
#[derive(Debug, Default)]
pub struct Reference(FxHashMap<(u32, Kind), FxHashMap<Symbol, u64>>);

impl Reference {
    /// One more of these.
    pub fn count(&mut self, of: Signature, kind: Kind, symbol: Symbol) {
        let key = (of.number() as u32, kind);
        *self.0.entry(key).or_default().entry(symbol).or_default() += 1;
    }

    /// Bits of an adaptive code of all values, given the signature and kind of each.
    ///
    /// For each signature and kind the `n` values are `m` different ones (bins; short is one), which are
    /// known beforehand; the value after `i` has the probability `(seen + 1/2) / (i + m/2)`, where `seen` of
    /// the `i` were the same. That is the sum of `log2` of `i + m/2` over `i < n`, less that of `s + 1/2`
    /// over `s <` its count for each different value, whatever their order.
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
