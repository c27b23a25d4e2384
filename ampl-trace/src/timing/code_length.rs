//! Code length with which sizes are compared.

use rustc_hash::{FxHashMap, FxHashSet};

use super::models::{Kind, Symbol};

/// Counts of each value of each signature and kind.
#[derive(Clone, Debug, Default)]
pub struct CodeLength(FxHashMap<(u64, Kind), FxHashMap<Symbol, u64>>);

impl CodeLength {
    /// Counts a value.
    pub(super) fn count(&mut self, signature: u64, kind: Kind, symbol: Symbol) {
        *self.0.entry((signature, kind)).or_default().entry(symbol).or_default() += 1;
    }

    /// Adds the counts of `other`: those of each signature there, thread and terminal, to the signature that `name`
    /// gives.
    pub fn join(&mut self, other: &Self, name: impl Fn(u32, u32) -> u64) {
        for (&(signature, kind), counts) in &other.0 {
            let all = self.0.entry((name((signature >> 32) as u32, signature as u32), kind)).or_default();
            for (&symbol, count) in counts {
                *all.entry(symbol).or_default() += count;
            }
        }
    }

    /// Number of values that were counted.
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
        self.bits_over(|_, counts| counts.len())
    }

    /// Bits of an adaptive code that knows beforehand which values a kind has at all, but not which a signature has: a
    /// decoder can know that much without a list for every signature.
    pub fn bits_of_one_alphabet(&self) -> f64 {
        let alphabets = self.alphabets();
        self.bits_over(|kind, _| alphabets[&kind].len())
    }

    /// Bits as in [`CodeLength::bits`], and of each signature's choice of the values that there are of a kind: `log2`
    /// of the number of such choices.
    pub fn bits_with_alphabets(&self) -> f64 {
        let alphabets = self.alphabets();
        let choice = |(&(_, kind), counts): (&(u64, Kind), &FxHashMap<Symbol, u64>)| {
            let (all, few) = (alphabets[&kind].len(), counts.len());
            (0..few).map(|chosen| ((all - chosen) as f64 / (chosen + 1) as f64).log2()).sum::<f64>()
        };
        self.bits() + sorted_sum(self.0.iter().map(choice))
    }

    /// All values of each kind.
    fn alphabets(&self) -> FxHashMap<Kind, FxHashSet<Symbol>> {
        let mut alphabets: FxHashMap<Kind, FxHashSet<Symbol>> = FxHashMap::default();
        for (&(_, kind), counts) in &self.0 {
            alphabets.entry(kind).or_default().extend(counts.keys());
        }
        alphabets
    }

    /// Bits of an adaptive code. `different` is the number of values known beforehand, of a kind and one signature's
    /// counts.
    fn bits_over(&self, different: impl Fn(Kind, &FxHashMap<Symbol, u64>) -> usize) -> f64 {
        let sum =
            |count: u64, offset: f64| (0..count).map(|before| (before as f64 + offset).log2()).sum::<f64>();
        let of_one = |(&(_, kind), counts): (&(u64, Kind), &FxHashMap<Symbol, u64>)| {
            let different = different(kind, counts) as f64;
            sum(counts.values().sum(), different / 2.0)
                - counts.values().map(|&count| sum(count, 0.5)).sum::<f64>()
        };
        sorted_sum(self.0.iter().map(of_one))
    }
}

/// Sum of `values`, sorted: sums of floats depend on the order.
fn sorted_sum(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timing::scale::Bin;

    #[test]
    fn a_known_alphabet_costs_less_than_all_that_there_is() {
        let mut counted = CodeLength::default();
        let symbol = |group| Symbol { bin: Bin { group, ..Bin::default() }, ..Symbol::default() };
        // One signature has always the same value, and another two in turn.
        for value in [0, 1, 0, 1] {
            counted.count(1, Kind::Gap, symbol(7));
            counted.count(2, Kind::Gap, symbol(value));
        }
        // Two values: (1/2)/1 · (1/2)/2 · (3/2)/3 · (3/2)/4; a value without alternatives is sure.
        assert!((counted.bits() - (128.0f64 / 3.0).log2()).abs() < 1e-9, "{}", counted.bits());
        // With three values the divisors are 3/2, 5/2, 7/2 and 9/2, in both signatures.
        let two = (16.0 * 1.5 * 2.5 * 3.5 * 4.5 / 9.0f64).log2();
        let one = (1.5 * 2.5 * 3.5 * 4.5 / (0.5 * 1.5 * 2.5 * 3.5f64)).log2();
        let all = counted.bits_of_one_alphabet();
        assert!((all - two - one).abs() < 1e-9, "{all}");
        // One value of three, and two of three: three choices each.
        let told = counted.bits_with_alphabets() - counted.bits();
        assert!((told - 9f64.log2()).abs() < 1e-9, "{told}");
    }
}
