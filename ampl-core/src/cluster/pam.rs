//! Partitioning around medoids, by eager swaps.

use super::distance::{Distances, LANES};
use crate::permute::{Key, position};

/// Search for the first medoids.
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
    let mut first = First::new(distances.len());
    (0..k).for_each(|_| first.add(distances, Initial::Build, 0));
    first.medoids
}

/// First medoids by LAB: as [`build`], but each medoid is the best of 10 + ⌈√n⌉ points that a seeded permutation
/// gives, and only these are looked at to tell which is best.
///
/// # Source
/// Schubert & Rousseeuw, *Information Systems* 101 (2021), §4.3.
pub fn lab(distances: &Distances, k: usize, seed: u64) -> Vec<usize> {
    let mut first = First::new(distances.len());
    (0..k).for_each(|_| first.add(distances, Initial::Lab, seed));
    first.medoids
}

/// First medoids, one after the other: those for fewer clusters come first among those for more.
#[derive(Clone, Debug)]
pub(super) struct First {
    pub medoids: Vec<usize>,
    /// Dissimilarity from every point to its nearest medoid.
    near: Vec<f64>,
}

impl First {
    /// No medoid yet, of `points` points.
    pub fn new(points: usize) -> Self {
        Self { medoids: Vec::new(), near: vec![f64::INFINITY; points] }
    }

    /// Adds one, unless all points are medoids.
    pub fn add(&mut self, distances: &Distances, initial: Initial, seed: u64) {
        let next = match initial {
            Initial::Build => self.best(distances),
            Initial::Lab => self.best_of_few(distances, seed),
        };
        let Some(medoid) = next else { return };
        self.medoids.push(medoid);
        self.near
            .iter_mut()
            .zip(distances.from(medoid))
            .for_each(|(near, &distance)| *near = near.min(distance));
    }

    fn best(&self, distances: &Distances) -> Option<usize> {
        // Of all candidates at once, point after point: each one's sum is what it would be alone.
        let mut deviations = vec![0.0; self.near.len()];
        for (point, &near) in self.near.iter().enumerate() {
            for (deviation, &distance) in deviations.iter_mut().zip(distances.from(point)) {
                *deviation += if distance < near { distance } else { near };
            }
        }
        let free = (0..self.near.len()).filter(|point| !self.medoids.contains(point));
        least(free, |candidate| deviations[candidate])
    }

    fn best_of_few(&self, distances: &Distances, seed: u64) -> Option<usize> {
        let points = self.near.len();
        let few = points.min(10 + (points as f64).sqrt().ceil() as usize);
        let drawn: Vec<usize> = some(seed, Purpose::Lab, self.medoids.len() as u64, few, points).collect();
        let free = |point: &usize| !self.medoids.contains(point);
        let candidates: Vec<usize> = match drawn.iter().copied().filter(free).collect::<Vec<_>>() {
            // Every point that was drawn is a medoid already.
            none if none.is_empty() => (0..points).filter(free).take(1).collect(),
            candidates => candidates,
        };
        least(candidates.into_iter(), |candidate| {
            let from = distances.from(candidate);
            drawn.iter().map(|&point| self.near[point].min(from[point])).sum()
        })
    }
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
    let mut swapping = Swapping::new(distances, medoids, most_swaps);
    while swapping.next_units().is_some() {
        swapping.step(distances);
    }
    let medoids = swapping.medoids(distances);
    let nearest = |point: usize| {
        let from = distances.from(point);
        least(0..medoids.len(), |slot| from[medoids[slot]])
    };
    let labels: Vec<usize> = (0..distances.len()).filter_map(nearest).collect();
    let deviation =
        labels.iter().enumerate().map(|(point, &slot)| distances.from(point)[medoids[slot]]).sum();
    Medoids { medoids, labels, deviation, swaps: swapping.swaps }
}

/// The search of [`faster_pam`], step by step.
#[derive(Clone, Debug)]
pub(super) struct Swapping {
    search: Search,
    /// Candidate to compare next.
    candidate: usize,
    /// Candidates compared since the last swap.
    unchanged: usize,
    /// Swap to be made next: the medoid's index, and the candidate that takes its place.
    next: Option<(usize, usize)>,
    swaps: usize,
    most_swaps: usize,
}

impl Swapping {
    /// Work of [`Swapping::new`], in units.
    pub fn units(points: usize, medoids: usize) -> u64 {
        (points * if medoids > 1 { 4 * medoids } else { points }) as u64
    }

    pub fn new(distances: &Distances, mut medoids: Vec<usize>, most_swaps: usize) -> Self {
        if medoids.len() == 1 {
            // There is no second nearest then, and the best one is known at once.
            let best = least(0..distances.len(), |point| distances.from(point).iter().sum());
            medoids = best.into_iter().collect();
        }
        let most_swaps = if medoids.len() > 1 { most_swaps } else { 0 };
        let search = Search::new(distances, medoids);
        Self { search, candidate: 0, unchanged: 0, next: None, swaps: 0, most_swaps }
    }

    /// Work of the next step, in units; `None` where no swap is left.
    pub fn next_units(&self) -> Option<u64> {
        let (points, medoids) = (self.search.near.len(), self.search.medoids.len());
        match self.next {
            Some(_) => Some((points * (8 + 2 * medoids)) as u64),
            None if self.unchanged >= points || self.swaps >= self.most_swaps => None,
            None => Some((LANES * (points + 2 * medoids)) as u64),
        }
    }

    /// Makes the swap that was found last, or searches the next few candidates for one.
    pub fn step(&mut self, distances: &Distances) {
        if let Some((slot, candidate)) = self.next.take() {
            self.search.swap(distances, slot, candidate);
            self.swaps += 1;
            self.unchanged = 1;
            return;
        }
        let points = distances.len();
        let first = self.candidate;
        self.search.compare(distances, first);
        for lane in 0..LANES.min(points - first).min(points - self.unchanged) {
            self.candidate = (first + lane + 1) % points;
            if !self.search.is_medoid[first + lane] {
                let (slot, change) = self.search.best_swap(lane);
                if change < -self.search.rounding(slot) {
                    self.next = Some((slot, first + lane));
                    return;
                }
            }
            self.unchanged += 1;
        }
    }

    /// The medoids in order and without those that stand on another one.
    pub fn medoids(&self, distances: &Distances) -> Vec<usize> {
        let mut medoids = self.search.medoids.clone();
        medoids.sort_unstable();
        let mut apart: Vec<usize> = Vec::new();
        for medoid in medoids {
            if apart.iter().all(|&other| distances.from(medoid)[other] > 0.0) {
                apart.push(medoid);
            }
        }
        apart
    }
}

/// A point's nearest medoid and second nearest: index and dissimilarity.
#[derive(Clone, Copy, Debug)]
struct Near {
    first: (usize, f64),
    second: (usize, f64),
}

#[derive(Clone, Debug)]
struct Search {
    medoids: Vec<usize>,
    is_medoid: Vec<bool>,
    near: Vec<Near>,
    /// Increase of the deviation without each medoid.
    removal: Vec<f64>,
    deviation: f64,
    /// Change of the deviation, by medoid and lane, that depends on which medoid a candidate replaces.
    change: Vec<[f64; LANES]>,
    /// Change of the deviation, by lane, that a candidate brings whichever medoid it replaces.
    added: [f64; LANES],
}

impl Search {
    fn new(distances: &Distances, medoids: Vec<usize>) -> Self {
        let mut is_medoid = vec![false; distances.len()];
        medoids.iter().for_each(|&medoid| is_medoid[medoid] = true);
        let k = medoids.len();
        let near = (0..distances.len()).map(|point| two_nearest(distances.from(point), &medoids)).collect();
        let mut search = Self {
            medoids,
            is_medoid,
            near,
            removal: vec![0.0; k],
            deviation: 0.0,
            change: vec![[0.0; LANES]; k],
            added: [0.0; LANES],
        };
        search.sum();
        search
    }

    fn sum(&mut self) {
        self.removal.fill(0.0);
        self.deviation = 0.0;
        for near in &self.near {
            self.deviation += near.first.1;
            if let Some(removal) = self.removal.get_mut(near.first.0) {
                *removal += near.second.1 - near.first.1;
            }
        }
    }

    /// Computes the changes by candidate `first` and the next ones, as many as there are lanes.
    fn compare(&mut self, distances: &Distances, first: usize) {
        self.change.iter_mut().zip(&self.removal).for_each(|(change, &removal)| *change = [removal; LANES]);
        let mut added = [0.0; LANES];
        for (point, near) in self.near.iter().enumerate() {
            let from = distances.block(point, first);
            let (first, second) = (near.first.1, near.second.1);
            let change = &mut self.change[near.first.0];
            // Without branches: which candidate is nearer than which medoid, no processor can foretell.
            for lane in 0..LANES {
                let nearer = if from[lane] < first { from[lane] } else { first };
                let farther = if from[lane] < first { first } else { from[lane] };
                added[lane] += nearer - first;
                change[lane] += if farther < second { farther } else { second } - second;
            }
        }
        self.added = added;
    }

    /// Medoid that the candidate in `lane` replaces best, and the change of the deviation.
    fn best_swap(&self, lane: usize) -> (usize, f64) {
        let slot = least(0..self.change.len(), |slot| self.change[slot][lane]).expect("there are medoids");
        (slot, self.change[slot][lane] + self.added[lane])
    }

    /// Largest change by rounding alone: where points coincide, the deviation may be 0 while its parts are not.
    fn rounding(&self, slot: usize) -> f64 {
        1e-12 * (self.deviation + self.removal[slot])
    }

    fn swap(&mut self, distances: &Distances, slot: usize, candidate: usize) {
        self.is_medoid[self.medoids[slot]] = false;
        self.is_medoid[candidate] = true;
        self.medoids[slot] = candidate;
        for (point, near) in self.near.iter_mut().enumerate() {
            let new = (slot, distances.from(candidate)[point]);
            if near.first.0 == slot || near.second.0 == slot {
                *near = two_nearest(distances.from(point), &self.medoids);
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

/// First item with the smallest cost.
fn least(items: impl Iterator<Item = usize>, cost: impl Fn(usize) -> f64) -> Option<usize> {
    let costs = items.map(|item| (item, cost(item)));
    costs.reduce(|best, next| if next.1 < best.1 { next } else { best }).map(|(item, _)| item)
}

/// Purpose of a draw of points: each purpose draws other points from one seed.
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
                    let lane = candidate % LANES;
                    search.compare(&distances, candidate - lane);
                    let (slot, change) = search.best_swap(lane);
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
                    search.swap(&distances, step % 4, next);
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
