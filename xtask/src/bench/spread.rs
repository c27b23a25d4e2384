//! Medians of values, and their spread.

use std::fmt;

/// Median and quartiles, with the median's confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Half of the values are below.
    pub median: f64,
    /// A quarter of the values is below.
    pub low: f64,
    /// A quarter of the values is above.
    pub high: f64,
    /// The median's confidence interval, at 95 % or more; `None` of fewer than 6 values.
    pub interval: Option<(f64, f64)>,
}

impl Spread {
    /// Spread of `values`; `None` without values.
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().checked_sub(1)?;
        // Linear between neighbours, Hyndman and Fan's type 7.
        let quantile = |share: f64| {
            let at = share * last as f64;
            let (below, above) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
            below + (above - below) * at.fract()
        };
        let interval = outside(sorted.len()).map(|tail| (sorted[tail], sorted[last - tail]));
        Some(Self { median: quantile(0.5), low: quantile(0.25), high: quantile(0.75), interval })
    }
}

/// Number of `count` ascending values that may be cut off at either end so that the median lies between the rest with
/// a probability of 95 %, whatever the distribution: each value is below it with probability 1/2 (David and Nagaraja,
/// Order Statistics, 7.1).
fn outside(count: usize) -> Option<usize> {
    // Logarithms: the first terms of a thousand values are below what a number holds.
    let (mut term, mut below, mut cut) = (count as f64 * 0.5f64.ln(), 0.0, None);
    for k in 0..count / 2 {
        below += term.exp();
        if below > 0.025 {
            break;
        }
        cut = Some(k);
        term += ((count - k) as f64 / (k + 1) as f64).ln();
    }
    cut
}

/// As per cent with sign: `+0.42 % [+0.38, +0.47] (+0.30 .. +0.55)`, the median's interval in brackets.
impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [median, low, high] = [self.median, self.low, self.high].map(|value| 100.0 * value);
        let interval = self.interval.map(|(from, to)| format!(" [{:+.2}, {:+.2}]", 100.0 * from, 100.0 * to));
        f.pad(&format!("{median:+.2} %{} ({low:+.2} .. {high:+.2})", interval.unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_lie_between_neighbours() {
        let spread = Spread::of(&[4.0, 1.0, 2.0, 3.0]).unwrap();
        assert_eq!(spread, Spread { low: 1.75, median: 2.5, high: 3.25, interval: None });
        assert_eq!(Spread::of(&[7.0]).unwrap().low, 7.0);
        assert_eq!(Spread::of(&[]), None);
        assert_eq!(spread.to_string(), "+250.00 % (+175.00 .. +325.00)");
    }

    #[test]
    fn a_median_lies_where_tables_say() {
        // Conover, Practical Nonparametric Statistics, table A3: of 6 values all, of 20 the 6th to the 15th.
        assert_eq!([5, 6, 20].map(outside), [None, Some(0), Some(5)]);
        // By the normal approximation 61.6 of 150.
        assert!(outside(150).is_some_and(|cut| (60..=62).contains(&cut)), "{:?}", outside(150));
        let spread = Spread::of(&[0.0, 0.01, 0.02, 0.03, 0.04, 0.05]).unwrap();
        assert_eq!(spread.to_string(), "+2.50 % [+0.00, +5.00] (+1.25 .. +3.75)");
    }
}
