//! Partitioning around medoids, by eager swaps.

use super::distance::Distances;
use crate::draw::{Key, position};

/// How the first medoids are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Initial {
    /// BUILD of Kaufman & Rousseeuw: one after the other, the best of all points.
    #[default]
    Build,
    /// Linear approximative BUILD: the best of a few points, judged by these few.
    Lab,
}

/// Medoids of a set of points.
#[derive(Clone, Debug, PartialEq)]
pub struct Medoids {
    /// The medoids, numbers of points, ascending.
    pub medoids: Vec<usize>,
    /// For every point, the index in `medoids` of its nearest one, the first of equally near ones.
    pub labels: Vec<usize>,
    /// Σ of the points' dissimilarities to their nearest medoids.
    pub deviation: f64,
    /// Swaps that were made.
    pub swaps: usize,
}

/// First medoids by BUILD: the point with the smallest sum of dissimilarities, then always the one that takes most
/// off the deviation. `k` of them, or all points.
///
/// # Source
/// Kaufman & Rousseeuw, *Finding Groups in Data* (1990), ch. 2.
pub fn build(distances: &Distances, k: usize) -> Vec<usize> {
    let points = distances.len();
    let mut near = vec![f64::INFINITY; points];
    let mut medoids = Vec::new();
    for _ in 0..k.min(points) {
        let all = (0..points).filter(|point| !medoids.contains(point));
        let next = least(all, |candidate| deviation_with(distances.from(candidate), &near));
        medoids.extend(next);
        take(&mut near, distances, next);
    }
    medoids
}

/// First medoids by LAB: as [`build`], but each medoid is the best of 10 + ⌈√n⌉ points that a seeded permutation
/// gives, and only these are looked at to tell which is best.
///
/// # Source
/// Schubert & Rousseeuw, *Information Systems* 101 (2021), §4.3.
pub fn lab(distances: &Distances, k: usize, seed: u64) -> Vec<usize> {
    let points = distances.len();
    let few = points.min(10 + (points as f64).sqrt().ceil() as usize);
    let mut near = vec![f64::INFINITY; points];
    let mut medoids = Vec::new();
    for round in 0..k.min(points) {
        let drawn: Vec<usize> = some(seed, Purpose::Lab, round as u64, few, points).collect();
        let free = |point: &usize| !medoids.contains(point);
        let candidates: Vec<usize> = match drawn.iter().copied().filter(free).collect::<Vec<_>>() {
            // Everyone who was drawn is a medoid already.
            none if none.is_empty() => (0..points).filter(free).take(1).collect(),
            candidates => candidates,
        };
        let next = least(candidates.into_iter(), |candidate| {
            let from = distances.from(candidate);
            drawn.iter().map(|&point| near[point].min(from[point])).sum()
        });
        medoids.extend(next);
        take(&mut near, distances, next);
    }
    medoids
}

/// Medoids from which no single swap takes anything off the deviation, starting from `medoids`.
///
/// Fewer come back where points coincide: a medoid that stands on another one has no points of its own. At most
/// `most_swaps` swaps are made.
///
/// # Source
/// FasterPAM: Schubert & Rousseeuw, *Fast and eager k-medoids clustering*, Information Systems 101 (2021), §4.1:
/// for a candidate, the change of the deviation for each medoid that it could replace comes from one pass over the
/// points, since it differs from that of adding the candidate only for points of which the medoid is the nearest
/// or the second; the best swap of a candidate is made as soon as it is one. Departures: what removing a medoid
/// costs is summed anew after a swap (as many steps as updating it, and no drift), and a swap must take off more
/// than rounding can.
pub fn faster_pam(distances: &Distances, medoids: Vec<usize>, most_swaps: usize) -> Medoids {
    let points = distances.len();
    if medoids.len() <= 1 || points == 0 {
        let best = medoids.first().and_then(|_| least(0..points, |point| distances.from(point).iter().sum()));
        return finished(distances, best.into_iter().collect(), 0);
    }
    let mut search = Search::new(distances, medoids);
    let (mut swaps, mut candidate, mut unchanged) = (0, 0, 0);
    while unchanged < points && swaps < most_swaps {
        if !search.is_medoid[candidate] {
            let (slot, change) = search.best_swap(candidate);
            if change < -1e-12 * search.deviation {
                search.swap(slot, candidate);
                swaps += 1;
                unchanged = 0;
            }
        }
        unchanged += 1;
        candidate = (candidate + 1) % points;
    }
    finished(distances, search.medoids, swaps)
}

/// A point's nearest medoid and second nearest: index and dissimilarity.
#[derive(Clone, Copy, Debug)]
struct Near {
    first: (usize, f64),
    second: (usize, f64),
}

struct Search<'d> {
    distances: &'d Distances,
    medoids: Vec<usize>,
    is_medoid: Vec<bool>,
    near: Vec<Near>,
    /// What it would add to the deviation to do without each medoid.
    removal: Vec<f64>,
    deviation: f64,
    /// Change of the deviation for each medoid that a candidate could replace.
    change: Vec<f64>,
}

impl<'d> Search<'d> {
    /// At least two medoids.
    fn new(distances: &'d Distances, medoids: Vec<usize>) -> Self {
        let mut is_medoid = vec![false; distances.len()];
        medoids.iter().for_each(|&medoid| is_medoid[medoid] = true);
        let k = medoids.len();
        let near = (0..distances.len()).map(|point| two_nearest(distances.from(point), &medoids)).collect();
        let mut search = Self {
            distances,
            medoids,
            is_medoid,
            near,
            removal: vec![0.0; k],
            deviation: 0.0,
            change: vec![0.0; k],
        };
        search.sum();
        search
    }

    fn sum(&mut self) {
        self.removal.fill(0.0);
        self.deviation = 0.0;
        for near in &self.near {
            self.deviation += near.first.1;
            self.removal[near.first.0] += near.second.1 - near.first.1;
        }
    }

    /// The medoid that it is best to put `candidate` in the place of, and what that changes the deviation by.
    fn best_swap(&mut self, candidate: usize) -> (usize, f64) {
        self.change.copy_from_slice(&self.removal);
        let mut added = 0.0;
        for (near, &distance) in self.near.iter().zip(self.distances.from(candidate)) {
            let (first, second) = (near.first.1, near.second.1);
            if distance < first {
                added += distance - first;
                self.change[near.first.0] += first - second;
            } else if distance < second {
                self.change[near.first.0] += distance - second;
            }
        }
        let slot = least(0..self.change.len(), |slot| self.change[slot]).expect("there are medoids");
        (slot, self.change[slot] + added)
    }

    fn swap(&mut self, slot: usize, candidate: usize) {
        self.is_medoid[self.medoids[slot]] = false;
        self.is_medoid[candidate] = true;
        self.medoids[slot] = candidate;
        for (point, near) in self.near.iter_mut().enumerate() {
            let new = (slot, self.distances.from(candidate)[point]);
            if near.first.0 == slot || near.second.0 == slot {
                *near = two_nearest(self.distances.from(point), &self.medoids);
            } else if new.1 < near.first.1 {
                *near = Near { first: new, second: near.first };
            } else if new.1 < near.second.1 {
                near.second = new;
            }
        }
        self.sum();
    }
}

fn two_nearest(from: &[f64], medoids: &[usize]) -> Near {
    let none = (0, f64::INFINITY);
    medoids.iter().enumerate().fold(Near { first: none, second: none }, |near, (slot, &medoid)| {
        match (slot, from[medoid]) {
            new if new.1 < near.first.1 => Near { first: new, second: near.first },
            new if new.1 < near.second.1 => Near { second: new, ..near },
            _ => near,
        }
    })
}

/// The medoids in order and without those that stand on another one; every point's nearest.
fn finished(distances: &Distances, mut medoids: Vec<usize>, swaps: usize) -> Medoids {
    medoids.sort_unstable();
    let mut apart: Vec<usize> = Vec::new();
    for medoid in medoids {
        if apart.iter().all(|&other| distances.from(medoid)[other] > 0.0) {
            apart.push(medoid);
        }
    }
    let nearest = |point: usize| {
        let from = distances.from(point);
        least(0..apart.len(), |slot| from[apart[slot]])
    };
    let labels: Vec<usize> = (0..distances.len()).filter_map(nearest).collect();
    let deviation = labels.iter().enumerate().map(|(point, &slot)| distances.from(point)[apart[slot]]).sum();
    Medoids { medoids: apart, labels, deviation, swaps }
}

/// The first of those with the smallest cost.
fn least(items: impl Iterator<Item = usize>, cost: impl Fn(usize) -> f64) -> Option<usize> {
    let costs = items.map(|item| (item, cost(item)));
    costs.reduce(|best, next| if next.1 < best.1 { next } else { best }).map(|(item, _)| item)
}

fn deviation_with(from: &[f64], near: &[f64]) -> f64 {
    from.iter().zip(near).map(|(distance, near)| near.min(*distance)).sum()
}

fn take(near: &mut [f64], distances: &Distances, medoid: Option<usize>) {
    let Some(medoid) = medoid else { return };
    near.iter_mut().zip(distances.from(medoid)).for_each(|(near, distance)| *near = near.min(*distance));
}

/// What points are drawn for: different uses of one seed see different ones.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    Lab,
    Sample,
    Judges,
}

/// `count` different numbers below `of`, a function of seed, purpose and round.
pub(super) fn some(
    seed: u64,
    purpose: Purpose,
    round: u64,
    count: usize,
    of: usize,
) -> impl Iterator<Item = usize> {
    // No group of a job has that number.
    let key = Key { seed, group: u16::MAX, stratum: purpose as u16, update: round };
    (0..count.min(of) as u64).map(move |place| position(key, place, of as u64) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{Metric, Points};

    /// Points of a small lattice: many ties, some of them equal.
    fn lattice(points: usize, seed: u64) -> Distances {
        let value = |index: usize| {
            (position(Key { seed, group: 0, stratum: 0, update: 7 }, index as u64, 997) % 12) as f64
        };
        let values = (0..2 * points).map(value).collect();
        let points = Points::new(points, 2, values).unwrap();
        Distances::of(&points, &(0..points.len()).collect::<Vec<_>>(), &Metric::Manhattan)
    }

    fn deviation(distances: &Distances, medoids: &[usize]) -> f64 {
        let near = |point| medoids.iter().map(|&m| distances.from(m)[point]).fold(f64::INFINITY, f64::min);
        (0..distances.len()).map(near).sum()
    }

    #[test]
    fn the_change_of_a_swap_is_what_counting_again_says() {
        for seed in 0..20 {
            let distances = lattice(23, seed);
            let medoids: Vec<usize> = some(seed, Purpose::Sample, 3, 4, 23).collect();
            let mut search = Search::new(&distances, medoids.clone());
            for step in 0..12 {
                let now = deviation(&distances, &search.medoids);
                assert!((search.deviation - now).abs() < 1e-9);
                for candidate in 0..23 {
                    if search.medoids.contains(&candidate) {
                        continue;
                    }
                    let (slot, change) = search.best_swap(candidate);
                    let swapped = |slot: usize| {
                        let mut swapped = search.medoids.clone();
                        swapped[slot] = candidate;
                        deviation(&distances, &swapped) - now
                    };
                    assert!((change - swapped(slot)).abs() < 1e-9, "{seed} {candidate}");
                    assert!((0..4).all(|other| swapped(other) >= change - 1e-9), "{seed} {candidate}");
                }
                // Any swap, better or worse: what is kept up to date must stay true.
                let next = (seed as usize * 5 + step * 7) % 23;
                if !search.is_medoid[next] {
                    search.swap(step % 4, next);
                }
            }
        }
    }

    #[test]
    fn first_medoids_differ() {
        let distances = lattice(40, 3);
        for k in [1, 2, 5, 39, 40, 60] {
            for mut first in [build(&distances, k), lab(&distances, k, 9)] {
                first.sort_unstable();
                first.dedup();
                assert_eq!(first.len(), k.min(40), "{k}");
            }
        }
        assert!(build(&lattice(0, 1), 3).is_empty() && lab(&lattice(0, 1), 3, 1).is_empty());
    }
}
