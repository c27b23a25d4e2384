//! Quantiles of the distributions that bounds are stated in.

use statrs::distribution::{ChiSquared, ContinuousCDF, Normal, StudentsT};

/// z with P(|Z| ≤ z) = `confidence` for a standard normal Z; `confidence` in (0, 1).
pub fn normal_two_sided(confidence: f64) -> f64 {
    Normal::standard().inverse_cdf(0.5 + 0.5 * confidence.clamp(0.0, 1.0))
}

/// t with P(|T| ≤ t) = `confidence` for Student's T with `freedom` degrees of freedom, not
/// necessarily whole; infinite without a degree of freedom.
pub fn student_two_sided(confidence: f64, freedom: f64) -> f64 {
    // Beyond this the two quantiles differ in the sixth digit only.
    const NORMAL_FROM: f64 = 1e5;
    if freedom >= NORMAL_FROM {
        return normal_two_sided(confidence);
    }
    match StudentsT::new(0.0, 1.0, freedom) {
        Ok(student) => student.inverse_cdf(0.5 + 0.5 * confidence.clamp(0.0, 1.0)),
        Err(_) => f64::INFINITY,
    }
}

/// P(|Z| > `z`) for a standard normal Z: the risk of leaving a bound of `z` standard errors.
pub fn normal_outside(z: f64) -> f64 {
    2.0 * Normal::standard().cdf(-z.abs())
}

/// The `probability` quantile of χ²/ν with ν = `freedom` > 0: what a variance estimate exceeds its
/// truth by in that share of samples from a normal population.
pub fn variance_ratio(probability: f64, freedom: f64) -> f64 {
    match ChiSquared::new(freedom) {
        Ok(chi) => chi.inverse_cdf(probability) / freedom,
        Err(_) => f64::INFINITY,
    }
}

/// ν of a variance estimated from `points` points of a population with that kurtosis:
/// (m − 1)·2/(κ − 1), and m − 1 for a normal population (κ = 3).
///
/// # Source
/// Var(s²) ≈ σ⁴ (κ − 1)/m, matched to the χ² with the same mean and variance (Cochran §2.15).
/// κ is taken as at least 1.5.
pub fn variance_freedom(points: u64, kurtosis: f64) -> f64 {
    points.saturating_sub(1) as f64 * 2.0 / (kurtosis.max(1.5) - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_agree_with_the_tables() {
        assert!((normal_two_sided(0.90) - 1.644_854).abs() < 1e-6);
        assert!((normal_two_sided(0.99) - 2.575_829).abs() < 1e-6);
        assert!((student_two_sided(0.90, 9.0) - 1.833_113).abs() < 1e-5);
        assert!((student_two_sided(0.95, 15.0) - 2.131_450).abs() < 1e-5);
        assert!((student_two_sided(0.90, 1e6) - 1.644_854).abs() < 1e-5);
        assert_eq!(student_two_sided(0.90, 0.0), f64::INFINITY);
        assert!((normal_outside(1.644_854) - 0.10).abs() < 1e-6);
        assert!((variance_ratio(0.99, 15.0) - 30.578 / 15.0).abs() < 1e-3);
        assert_eq!(variance_freedom(16, 3.0), 15.0);
    }
}
