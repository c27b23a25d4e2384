//! Sums over ranks against rational arithmetic, in whatever order they are merged.

use ampl_core::stats::Moments;
use ampl_core::stats::bins::{Histogram, Point, Residuals};
use num_rational::BigRational;
use proptest::prelude::*;

fn exact(value: f64) -> BigRational {
    BigRational::from_float(value).expect("a finite number")
}

fn whole(value: u64) -> BigRational {
    BigRational::from_integer(value.into())
}

/// Σ xᵢ.
fn sum(values: impl IntoIterator<Item = BigRational>) -> BigRational {
    values.into_iter().fold(whole(0), |sum, value| sum + value)
}

/// Σ Πₖ (xₖᵢ − x̄ₖ), and Σ Πₖ |xₖᵢ − x̄ₖ|: what rounding is measured by.
fn centred(factors: &[&[BigRational]]) -> (BigRational, BigRational) {
    let count = factors[0].len();
    let mean = |values: &[BigRational]| sum(values.iter().cloned()) / whole(count as u64);
    let means: Vec<BigRational> = factors.iter().map(|values| mean(values)).collect();
    let products = (0..count).map(|i| {
        factors.iter().zip(&means).fold(whole(1), |product, (values, mean)| product * (&values[i] - mean))
    });
    let products: Vec<BigRational> = products.collect();
    let size = |value: &BigRational| if *value < whole(0) { -value.clone() } else { value.clone() };
    (sum(products.iter().cloned()), sum(products.iter().map(size)))
}

fn close(found: f64, truth: &BigRational, scale: &BigRational) -> Result<(), TestCaseError> {
    let off = exact(found) - truth;
    let off = if off < whole(0) { -off } else { off };
    // Some thousand roundings at the most, of 2⁻⁵³ each.
    let allowed = scale * BigRational::new(1.into(), (1u64 << 40).into());
    prop_assert!(off <= allowed, "{found} for {truth}");
    Ok(())
}

/// Merges all into one, neighbours that `order` picks first.
fn merged<T: Clone>(parts: Vec<T>, order: &[prop::sample::Index], merge: impl Fn(&mut T, &T)) -> T {
    let mut parts = parts;
    let mut order = order.iter().cycle();
    while parts.len() > 1 {
        let left = order.next().map_or(0, |index| index.index(parts.len() - 1));
        let right = parts.remove(left + 1);
        merge(&mut parts[left], &right);
    }
    parts.remove(0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn moments_are_those_of_rational_arithmetic(
        points in prop::collection::vec((1u64..1_000_000, -1e6..1e6f64), 1..40),
        level in prop::sample::select(vec![0.0, 1.0, 1e9]),
        order in prop::collection::vec(any::<prop::sample::Index>(), 1..40),
    ) {
        let points: Vec<(u64, f64)> = points.iter().map(|&(n, y)| (n, y + level)).collect();
        let parts = points.iter().map(|&(n, y)| Moments::of_rank(n, y, y * y, y, y)).collect();
        let moments = merged(parts, &order, |sum, more| sum.merge(more));
        let n: Vec<BigRational> = points.iter().map(|&(n, _)| whole(n)).collect();
        let y: Vec<BigRational> = points.iter().map(|&(_, y)| exact(y)).collect();
        prop_assert_eq!(whole(moments.n), sum(n.iter().cloned()));
        let size = sum(points.iter().map(|&(_, y)| exact(y.abs())));
        close(moments.y, &sum(y.iter().cloned()), &size)?;
        // Centred sums lose what the mean's own rounding takes, which the level decides.
        let spread = exact((level + 1e6) * 2f64.powi(-12));
        for (found, factors) in [
            (moments.cyy, vec![&y[..], &y]),
            (moments.cyn, vec![&y, &n]),
            (moments.cnn, vec![&n, &n]),
            (moments.cy3, vec![&y, &y, &y]),
            (moments.cy4, vec![&y, &y, &y, &y]),
        ] {
            let (truth, scale) = centred(&factors);
            let floor = factors.iter().fold(whole(points.len() as u64), |product, _| product * &spread);
            // The mean's rounding moves every product by its derivative, which is one power lower.
            let (_, slope) = centred(&factors[1..]);
            let moved = slope * whole(factors.len() as u64) * &spread;
            close(found, &truth, &(scale + moved + floor * BigRational::new(1.into(), (1u64 << 20).into())))?;
        }
    }

    #[test]
    fn bins_are_those_of_rational_arithmetic(
        ranks in prop::collection::vec((0usize..4, -1e3..1e3f64, -1.0..50.0f64), 1..40),
        order in prop::collection::vec(any::<prop::sample::Index>(), 1..40),
    ) {
        let part = |&(bin, z, v): &(usize, f64, f64)| {
            let mut one = Histogram::new(4, 1);
            one.add(bin, &[Point { z, v }]);
            one
        };
        let all = merged(ranks.iter().map(part).collect(), &order, |sum, more| sum.merge(more));
        for bin in 0..4 {
            let inside: Vec<_> = ranks.iter().filter(|rank| rank.0 == bin).collect();
            let occupied = all.occupied().find(|occupied| occupied.bin == bin);
            prop_assert_eq!(occupied.map_or(0, |occupied| occupied.ranks), inside.len() as u64);
            let Some(occupied) = occupied else { continue };
            let Residuals { z, zz, v, vv, zv, min, max } = occupied.residuals[0];
            for (found, of) in [
                (z, (|z, _| z) as fn(f64, f64) -> f64),
                (zz, |z, _| z * z),
                (v, |_, v| v),
                (vv, |_, v| v * v),
                (zv, |z, v| z * v),
            ] {
                let terms = || inside.iter().map(|rank| exact(of(rank.1, rank.2)));
                let size = sum(inside.iter().map(|rank| exact(of(rank.1, rank.2).abs())));
                close(found, &sum(terms()), &size)?;
            }
            let least = inside.iter().fold(f64::INFINITY, |least, rank| least.min(rank.1));
            prop_assert_eq!(min, least);
            prop_assert!(inside.is_empty() || inside.iter().any(|rank| rank.1 == max));
        }
    }
}
