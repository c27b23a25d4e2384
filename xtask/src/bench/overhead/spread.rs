//! A middle and how far the values lie from it.

use std::fmt;

/// Median and quartiles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Half of the values are below.
    pub median: f64,
    /// A quarter of the values is below.
    pub low: f64,
    /// A quarter of the values is above.
    pub high: f64,
}

impl Spread {
    /// Of `values`; `None` of no values.
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
        Some(Self { median: quantile(0.5), low: quantile(0.25), high: quantile(0.75) })
    }
}

/// As per cent with sign: `+0.42 % (+0.30 .. +0.55)`.
impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [median, low, high] = [self.median, self.low, self.high].map(|value| 100.0 * value);
        f.pad(&format!("{median:+.2} % ({low:+.2} .. {high:+.2})"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_lie_between_neighbours() {
        let spread = Spread::of(&[4.0, 1.0, 2.0, 3.0]).unwrap();
        assert_eq!(spread, Spread { low: 1.75, median: 2.5, high: 3.25 });
        assert_eq!(Spread::of(&[7.0]).unwrap().low, 7.0);
        assert_eq!(Spread::of(&[]), None);
        assert_eq!(spread.to_string(), "+250.00 % (+175.00 .. +325.00)");
    }
}
