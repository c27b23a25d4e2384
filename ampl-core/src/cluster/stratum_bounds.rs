//! Strata as groups of their own: bounds of theirs that together keep the bound of the group they come from.

use crate::config::{ErrorBound, Target};

/// Fewest ranks of a stratum from which its own error is estimated.
const LEAST: u64 = 2;

/// Share of its ranks from which a stratum is taken as a whole.
const ALL: f64 = 0.95;

/// The share of `floor`, the fewest ranks of a group, that each of its `strata` has.
pub fn floor_of_each(floor: u64, strata: usize) -> u64 {
    floor.div_ceil(strata.max(1) as u64).max(LEAST)
}

/// Target of a stratum of `ranks` ranks of which `size` are to be drawn: the bound `error` on its own mean at
/// `confidence` ([`super::Price`]), rounded down to hundredths of a percent. The target is all its ranks where hardly
/// any would be left out. Where the ranks do not differ, any bound holds: `whole`, the bound of all strata together, if
/// it is relative, else 8 %.
pub fn target_of(ranks: u64, size: f64, error: f64, confidence: f64, whole: ErrorBound) -> Target {
    if size >= ALL * ranks as f64 {
        return Target::Static { ranks: u32::try_from(ranks).unwrap_or(u32::MAX) };
    }
    let error = match (error, whole) {
        (0.0, ErrorBound::Relative(_)) => whole,
        // An absolute bound is the whole group's: how the stratum's mean compares is not known.
        (0.0, ErrorBound::Absolute(_)) => ErrorBound::Relative(ANY),
        (error, _) => ErrorBound::Relative(((error * 1e4).floor() / 1e4).clamp(1e-4, 0.99)),
    };
    Target::Bound { confidence, error }
}

/// A relative bound that ranks which do not differ keep like any other.
const ANY: f64 = 0.08;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stratum_has_its_share_of_the_floor_and_of_the_bound() {
        assert_eq!([1, 2, 3, 20].map(|strata| floor_of_each(16, strata)), [16, 8, 6, 2]);
        let whole = ErrorBound::Relative(0.08);
        let of = |size, error, whole| target_of(100, size, error, 0.9, whole);
        let bound = |error| Target::Bound { confidence: 0.9, error: ErrorBound::Relative(error) };
        assert_eq!(of(95.0, 0.01, whole), Target::Static { ranks: 100 });
        assert_eq!(of(10.0, 0.123_456, whole), bound(0.1234));
        assert_eq!(of(1.0, f64::INFINITY, whole), bound(0.99));
        assert_eq!(of(1.0, 0.0, whole), bound(0.08));
        assert_eq!(of(1.0, 0.0, ErrorBound::Absolute(5.0)), bound(0.08));
    }
}
