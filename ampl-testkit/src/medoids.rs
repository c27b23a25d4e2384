//! k-medoids by the book, slowly, and how alike two ways to divide things are.

use std::collections::BTreeMap;

/// Σ of the distances of `points` points to the nearest of `medoids`.
pub fn deviation(distance: &dyn Fn(usize, usize) -> f64, points: usize, medoids: &[usize]) -> f64 {
    let near = |point| medoids.iter().map(|&medoid| distance(point, medoid)).fold(f64::INFINITY, f64::min);
    (0..points).map(near).sum()
}

/// The swap of a medoid (index) for another point that leaves the smallest deviation, and that deviation.
pub fn best_swap(
    distance: &dyn Fn(usize, usize) -> f64,
    points: usize,
    medoids: &[usize],
) -> Option<(usize, usize, f64)> {
    let slots = 0..medoids.len();
    let swaps = slots.flat_map(|slot| (0..points).map(move |point| (slot, point)));
    let swaps = swaps.filter(|(_, point)| !medoids.contains(point)).map(|(slot, point)| {
        let mut swapped = medoids.to_vec();
        swapped[slot] = point;
        (slot, point, deviation(distance, points, &swapped))
    });
    swaps.reduce(|best, next| if next.2 < best.2 { next } else { best })
}

/// Medoids by the swap phase of PAM (Kaufman & Rousseeuw): the best of all swaps, until none helps.
pub fn pam(distance: &dyn Fn(usize, usize) -> f64, points: usize, mut medoids: Vec<usize>) -> Vec<usize> {
    let mut now = deviation(distance, points, &medoids);
    while let Some((slot, point, then)) = best_swap(distance, points, &medoids) {
        if then >= now * (1.0 - 1e-12) {
            break;
        }
        medoids[slot] = point;
        now = then;
    }
    medoids
}

/// Likeness of two ways to divide things into classes: 1 where they are the same up to names, 0 on average where they
/// have nothing to do with each other.
///
/// # Source
/// Hubert & Arabie, *Journal of Classification* 2 (1985), eq. (5).
pub fn adjusted_rand(a: &[usize], b: &[usize]) -> f64 {
    assert_eq!(a.len(), b.len(), "two ways to divide the same things");
    let pairs = |count: u64| (count * count.saturating_sub(1) / 2) as f64;
    let mut cells: BTreeMap<(usize, usize), u64> = BTreeMap::new();
    let (mut rows, mut columns): (BTreeMap<usize, u64>, BTreeMap<usize, u64>) = Default::default();
    for (&a, &b) in a.iter().zip(b) {
        *cells.entry((a, b)).or_default() += 1;
        *rows.entry(a).or_default() += 1;
        *columns.entry(b).or_default() += 1;
    }
    let together: f64 = cells.values().map(|&count| pairs(count)).sum();
    let in_a: f64 = rows.values().map(|&count| pairs(count)).sum();
    let in_b: f64 = columns.values().map(|&count| pairs(count)).sum();
    let expected = in_a * in_b / pairs(a.len() as u64).max(1.0);
    let most = (in_a + in_b) / 2.0;
    if most == expected { 1.0 } else { (together - expected) / (most - expected) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rand_index_agrees_with_its_definition() {
        assert_eq!(adjusted_rand(&[0, 0, 1, 1], &[5, 5, 3, 3]), 1.0);
        assert_eq!(adjusted_rand(&[0, 0, 0], &[0, 0, 0]), 1.0);
        // Σ over cells of pairs 2, in rows 6, in columns 7 of 21: (2 − 2)/(6.5 − 2).
        let index = adjusted_rand(&[0, 0, 0, 1, 1, 1, 2], &[0, 0, 1, 1, 1, 1, 0]);
        let by_hand = (4.0 - 6.0 * 9.0 / 21.0) / (7.5 - 6.0 * 9.0 / 21.0);
        assert!((index - by_hand).abs() < 1e-12, "{index}");
    }

    #[test]
    fn pam_finds_two_heaps() {
        let at = [0.0_f64, 1.0, 2.0, 10.0, 11.0, 12.0];
        let distance = |a: usize, b: usize| (at[a] - at[b]).abs();
        let mut medoids = pam(&distance, 6, vec![0, 1]);
        medoids.sort_unstable();
        assert_eq!((medoids, deviation(&distance, 6, &[1, 4])), (vec![1, 4], 4.0));
    }
}
