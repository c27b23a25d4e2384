//! Quantiles of the distributions that bounds are stated in.

use statrs::distribution::{ChiSquared, ContinuousCDF, Normal, StudentsT};

/// Degrees of freedom from which Student's quantiles differ from the normal ones in the sixth digit only.
const NORMAL_FROM: f64 = 1e5;

/// z with P(|Z| ≤ z) = `confidence` for a standard normal Z; `confidence` in (0, 1).
pub fn normal_two_sided(confidence: f64) -> f64 {
    Normal::standard().inverse_cdf(0.5 + 0.5 * confidence.clamp(0.0, 1.0))
}

/// t with P(|T| ≤ t) = `confidence` for Student's T with `freedom` degrees of freedom, not
/// necessarily whole; infinite without a degree of freedom.
pub fn student_two_sided(confidence: f64, freedom: f64) -> f64 {
    if freedom >= NORMAL_FROM {
        return normal_two_sided(confidence);
    }
    match StudentsT::new(0.0, 1.0, freedom) {
        Ok(student) => student.inverse_cdf(0.5 + 0.5 * confidence.clamp(0.0, 1.0)),
        Err(_) => f64::INFINITY,
    }
}

/// P(T > `t`) for Student's T with `freedom` degrees of freedom; 1 without a degree of freedom.
pub fn student_above(t: f64, freedom: f64) -> f64 {
    match StudentsT::new(0.0, 1.0, freedom) {
        Ok(student) => student.sf(t),
        Err(_) => 1.0,
    }
}

/// t for Student's T where `z` is the normal quantile of the same confidence, in closed form: within 2 % from 4
/// degrees of freedom on where `z` is at most 2.6, and within 1 in 1000 from 20 on.
///
/// For decisions that are made many times over; what is printed has [`student_two_sided`].
///
/// # Source
/// Wallace, *Ann. Math. Statist.* 30 (1959), 1124–1130, solved for t:
/// z ≈ (8ν + 1)/(8ν + 3) · √(ν ln(1 + t²/ν)).
pub fn student_from_normal(z: f64, freedom: f64) -> f64 {
    if freedom >= NORMAL_FROM {
        return z;
    }
    let corrected = z * (8.0 * freedom + 3.0) / (8.0 * freedom + 1.0);
    (freedom * (corrected * corrected / freedom).exp_m1()).sqrt()
}

/// P(|Z| > `z`) for a standard normal Z: the risk of leaving a bound of `z` standard errors.
pub fn normal_outside(z: f64) -> f64 {
    2.0 * normal_above(z.abs())
}

/// P(Z > `z`) for a standard normal Z.
pub fn normal_above(z: f64) -> f64 {
    Normal::standard().cdf(-z)
}

/// The `probability` quantile of χ²/ν with ν = `freedom` > 0: what a variance estimate exceeds its
/// truth by in that share of samples from a normal population.
pub fn variance_ratio(probability: f64, freedom: f64) -> f64 {
    match ChiSquared::new(freedom) {
        Ok(chi) => chi.inverse_cdf(probability) / freedom,
        Err(_) => f64::INFINITY,
    }
}

/// The quantile of χ²/ν where `z` is the normal quantile of the same probability, in closed form: within 2 % from
/// 2 degrees of freedom on where `z` is at most 2.6. For decisions, as [`student_from_normal`].
///
/// # Source
/// Wilson & Hilferty, *Proc. Nat. Acad. Sci.* 17 (1931), 684–688.
pub fn variance_ratio_from_normal(z: f64, freedom: f64) -> f64 {
    let spread = 2.0 / (9.0 * freedom);
    (1.0 - spread + z * spread.sqrt()).powi(3)
}

/// ν of a variance estimated from `points` points of a population with that kurtosis:
/// (m − 1)·2/(κ − 1), and m − 1 for a normal population (κ = 3).
///
/// # Source
/// Var(s²) ≈ σ⁴ (κ − 1)/m, matched to the χ² with the same mean and variance (Cochran §2.15).
/// κ is taken as at least 1.5.
pub fn variance_freedom(points: u64, kurtosis: f64) -> f64 {
    points.saturating_sub(1) as f64 * freedom_share(kurtosis)
}

/// Degrees of freedom that one more point adds to [`variance_freedom`]: 1 for a normal population.
pub fn freedom_share(kurtosis: f64) -> f64 {
    2.0 / (kurtosis.max(1.5) - 1.0)
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
        assert!((student_above(1.833_113, 9.0) - 0.05).abs() < 1e-6 && student_above(-1.833_113, 9.0) > 0.94);
        assert_eq!((student_above(0.0, 4.0), student_above(3.0, 0.0)), (0.5, 1.0));
        assert!((normal_outside(1.644_854) - 0.10).abs() < 1e-6);
        assert!((variance_ratio(0.99, 15.0) - 30.578 / 15.0).abs() < 1e-3);
        assert_eq!(variance_freedom(16, 3.0), 15.0);
    }

    #[test]
    fn closed_forms_are_near_the_quantiles() {
        for confidence in [0.5, 0.8, 0.9, 0.95, 0.99] {
            let z = normal_two_sided(confidence);
            for freedom in [4.0, 4.5, 7.0, 15.0, 20.0, 31.5, 200.0, 1e4, 1e6] {
                let exact = student_two_sided(confidence, freedom);
                let ratio = student_from_normal(z, freedom) / exact;
                let wrong = if freedom < 20.0 { 0.02 } else { 0.001 };
                assert!((ratio - 1.0).abs() < wrong, "{confidence} {freedom}: {ratio}");
            }
            assert_eq!(student_from_normal(z, f64::INFINITY), z);
            let below = 0.5 + 0.5 * confidence;
            for freedom in [2.0, 3.3, 10.0, 300.0] {
                let ratio = variance_ratio_from_normal(z, freedom) / variance_ratio(below, freedom);
                assert!((ratio - 1.0).abs() < 0.02, "{below} {freedom}: {ratio}");
            }
        }
    }
}
