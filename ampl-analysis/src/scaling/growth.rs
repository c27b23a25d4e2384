//! Growth of a quantity with the number of ranks.

/// Relative growth from the first number of ranks to the last that counts.
const LEAST: f64 = 0.2;

/// Law by which a quantity grows with the number of ranks P.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Law {
    /// As its logarithm.
    Logarithm,
    /// As its square root.
    Root,
    /// In proportion, beside a constant part.
    Linear,
    /// As P log P.
    Linearithmic,
    /// As its square.
    Square,
}

impl Law {
    const ALL: [Self; 5] = [Self::Logarithm, Self::Root, Self::Linear, Self::Linearithmic, Self::Square];

    /// As it is written: `O(P)`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Logarithm => "O(log P)",
            Self::Root => "O(sqrt P)",
            Self::Linear => "O(P)",
            Self::Linearithmic => "O(P log P)",
            Self::Square => "O(P^2)",
        }
    }

    fn of(self, ranks: f64) -> f64 {
        match self {
            Self::Logarithm => ranks.ln(),
            Self::Root => ranks.sqrt(),
            Self::Linear => ranks,
            Self::Linearithmic => ranks * ranks.ln(),
            Self::Square => ranks * ranks,
        }
    }
}

/// The law by which `points` (ranks, value; ranks ascend) grow: of `a + b · law(P)` the one with the least error. `None`
/// where they do not grow from each number of ranks to the next, or by less than a fifth in all.
///
/// With two points every law fits: then it is the one whose power of P is nearest.
pub fn law(points: &[(f64, f64)]) -> Option<Law> {
    let (&(few, first), &(many, last)) = (points.first()?, points.last()?);
    let grows = points.windows(2).all(|pair| pair[1].0 > pair[0].0 && pair[1].1 > pair[0].1);
    if points.len() < 2 || !grows || few < 1.0 || last < first * (1.0 + LEAST) {
        return None;
    }
    if points.len() == 2 {
        let power = if first > 0.0 { (last / first).ln() / (many / few).ln() } else { 1.0 };
        return Some(match power {
            power if power < 0.25 => Law::Logarithm,
            power if power < 0.75 => Law::Root,
            power if power < 1.5 => Law::Linear,
            _ => Law::Square,
        });
    }
    let errors = Law::ALL.map(|law| error(points, law));
    let best = (0..errors.len()).min_by(|&a, &b| errors[a].total_cmp(&errors[b]))?;
    Some(Law::ALL[best])
}

/// Sum of squared errors of the best `a + b · law(P)`.
fn error(points: &[(f64, f64)], law: Law) -> f64 {
    let n = points.len() as f64;
    let x = |point: &(f64, f64)| law.of(point.0);
    let (mean_x, mean_y) =
        (points.iter().map(x).sum::<f64>() / n, points.iter().map(|point| point.1).sum::<f64>() / n);
    let (mut xy, mut xx) = (0.0, 0.0);
    for point in points {
        xy += (x(point) - mean_x) * (point.1 - mean_y);
        xx += (x(point) - mean_x).powi(2);
    }
    let slope = if xx > 0.0 { xy / xx } else { 0.0 };
    points.iter().map(|point| (point.1 - mean_y - slope * (x(point) - mean_x)).powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RANKS: [f64; 4] = [4.0, 8.0, 16.0, 32.0];

    proptest! {
        #[test]
        fn laws_are_found_in_their_own_values(at in 0usize..5, a in 0.0f64..20.0, b in 0.5f64..1000.0) {
            let own = Law::ALL[at];
            let points: Vec<(f64, f64)> = RANKS.iter().map(|&ranks| (ranks, a + b * own.of(ranks))).collect();
            let grows = points[3].1 >= points[0].1 * 1.2;
            prop_assert_eq!(law(&points), grows.then_some(own));
        }
    }

    #[test]
    fn what_stays_falls_or_saturates_does_not_grow() {
        let of = |values: [f64; 4]| law(&RANKS.into_iter().zip(values).collect::<Vec<_>>());
        assert_eq!(of([5.0; 4]), None);
        assert_eq!(of([8.0, 4.0, 2.0, 1.0]), None);
        // Neighbours in a plane: inner ranks have four.
        assert_eq!(of([2.0, 3.0, 4.0, 4.0]), None);
        assert_eq!(of([100.0, 101.0, 102.0, 103.0]), None);
        // Rounds of a binomial tree.
        assert_eq!(of([2.0, 3.0, 4.0, 5.0]), Some(Law::Logarithm));
        assert_eq!(of([3.0, 7.0, 15.0, 31.0]), Some(Law::Linear));
        assert_eq!(law(&[(4.0, 4.0), (32.0, 32.0)]), Some(Law::Linear));
        assert_eq!(law(&[(4.0, 0.0)]), None);
    }
}
