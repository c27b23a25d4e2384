//! Agreement of two ways to divide ranks into classes.

use std::collections::BTreeMap;

/// The adjusted Rand index of two labellings of the same things: 1 where the classes are the same up to their names, 0 on
/// average where they have nothing to do with each other; 1 where both have a single class.
///
/// # Source
/// Hubert & Arabie, *Journal of Classification* 2 (1985), eq. (5).
pub fn agreement(a: &[usize], b: &[usize]) -> f64 {
    let both = || a.iter().copied().zip(b.iter().copied());
    let together = pairs(both());
    let (in_a, in_b) = (pairs(both().map(|(a, _)| a)), pairs(both().map(|(_, b)| b)));
    let all = pairs(both().map(|_| ()));
    let expected = if all > 0.0 { in_a * in_b / all } else { 0.0 };
    let most = (in_a + in_b) / 2.0;
    if most == expected { 1.0 } else { (together - expected) / (most - expected) }
}

/// Number of pairs of equal labels.
fn pairs<L: Ord>(labels: impl Iterator<Item = L>) -> f64 {
    let mut counts: BTreeMap<L, u64> = BTreeMap::new();
    labels.for_each(|label| *counts.entry(label).or_default() += 1);
    counts.values().map(|&count| (count * (count - 1) / 2) as f64).sum()
}
