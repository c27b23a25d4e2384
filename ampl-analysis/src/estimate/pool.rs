//! One estimate from the samples of several windows.
//!
//! The design makes independent draws per update (`subset`) or per window (`global`), in every stratum of a divided
//! group, and where windows are decided by their own values per window and stratum; so these are the units that are
//! added up. Within a unit a rank counts once, with its totals over all windows that it
//! decided about under directives of that size: ranks that learn of a directive late are handled by this alone, and
//! windows that share a sample are not taken for independent ones. Variances of units are added. Samples of one
//! update that differ in size are parts of each other: of those, standard deviations are added, as if they had
//! everything in common, which overstates the variance rather than understating it.
//!
//! A unit with too few drawn ranks is merged with its neighbour (collapsed strata, Cochran §5A.12), which
//! overstates the variance rather than understating it; Student's ν is the smallest of any unit's.

use std::collections::BTreeMap;

use ampl_core::config::Mechanism;
use ampl_core::stats::Moments;
use ampl_core::stats::quantile::{normal_two_sided, student_two_sided, variance_freedom};

use ampl_trace::model::LASTING_STRATA;

pub use super::observed::Point;
use super::observed::moments;

/// Stratum, and update or window.
type Draw = (Option<u16>, u64);

/// A rank's totals in a unit, and the first of its windows there: they were all drawn together.
struct Totals {
    point: Point,
    n: u64,
    y: f64,
}

/// A drawn rank's totals.
#[derive(Clone, Copy, Debug)]
struct Entry {
    n: f64,
    y: f64,
    probability: f64,
}

/// Ranks that one directive drew from.
#[derive(Clone, Debug, Default)]
struct Unit {
    /// Stratum, and update or window, of its draw.
    draw: Draw,
    /// Totals n and y over ranks kept with certainty.
    certain: (f64, f64),
    /// Drawn ranks among the others.
    drawn: Vec<Entry>,
    /// Number of ranks not kept with certainty.
    others: usize,
    /// All others' moments, where they reported.
    known: Moments,
}

/// Mean and half-width in the metric's unit per observation; infinite where one rank stands for many.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pooled {
    /// R̂.
    pub mean: f64,
    /// Half of the interval.
    pub half_width: f64,
}

/// The estimate from the drawn ones of `points`; `None` without observations, or where no rank stands for ranks that
/// were not kept.
///
/// `census`: every point has its value, so the variance of the residuals is known and the normal quantile
/// applies; otherwise it is estimated from the sample.
pub fn pooled(points: &[Point], mechanism: Mechanism, confidence: f64, census: bool) -> Option<Pooled> {
    let units = units(points, mechanism, if census { 1 } else { 2 });
    let (mut count, mut total) = (0.0, 0.0);
    for unit in &units {
        if unit.drawn.is_empty() && unit.others > 0 {
            return None;
        }
        let (n, y) = unit.totals();
        count += n;
        total += y;
    }
    if count <= 0.0 {
        return None;
    }
    let mean = total / count;
    let (variance, quantile) = if census {
        let ratio = moments(points).ratio().unwrap_or(mean);
        let variances = units.iter().map(|unit| (unit.draw, unit.known_variance(ratio)));
        (together(points, variances), normal_two_sided(confidence))
    } else {
        let mut freedom = f64::INFINITY;
        let estimated = units.iter().filter(|unit| unit.drawn.len() < unit.others).map(|unit| {
            let (variance, own) = unit.estimated_variance(mean);
            freedom = own.min(freedom);
            (unit.draw, variance)
        });
        let variance = together(points, estimated);
        (variance, student_two_sided(confidence, freedom))
    };
    let half_width = if variance == 0.0 { 0.0 } else { quantile * variance.sqrt() / count };
    Some(Pooled { mean, half_width })
}

/// Variance of a sum of units of `points`, from the units' variances: those of one draw vary together, unless they
/// are of one window, where no two units share a rank.
fn together(points: &[Point], units: impl Iterator<Item = (Draw, f64)>) -> f64 {
    if points.windows(2).all(|pair| pair[0].window == pair[1].window) {
        return units.map(|(_, variance)| variance).sum();
    }
    let mut deviations: BTreeMap<Draw, f64> = BTreeMap::new();
    units.for_each(|(draw, variance)| *deviations.entry(draw).or_default() += variance.sqrt());
    deviations.values().map(|deviation| deviation * deviation).sum()
}

/// The units of `points`, each with at least `least` drawn ranks or all of them, unless there is only one.
fn units(points: &[Point], mechanism: Mechanism, least: usize) -> Vec<Unit> {
    let mut draws: BTreeMap<(Draw, u64), BTreeMap<u32, Totals>> = BTreeMap::new();
    for point in points {
        let draw = match (point.stratum, mechanism) {
            (Some(stratum), _) if stratum < LASTING_STRATA => (Some(stratum), point.window),
            (stratum, Mechanism::Subset) => (stratum, point.update),
            (stratum, Mechanism::Global) => (stratum, point.window),
        };
        let (n, y) = point.value.unwrap_or((0, 0.0));
        let first = Totals { point: *point, n: 0, y: 0.0 };
        // Larger probabilities have larger bits.
        let key = (draw, point.probability.max(0.0).to_bits());
        let totals = draws.entry(key).or_default().entry(point.rank).or_insert(first);
        totals.n = totals.n.saturating_add(n);
        totals.y += y;
    }
    let mut units: Vec<Unit> = Vec::new();
    for unit in draws.iter().map(|(&(draw, _), ranks)| Unit::of(draw, ranks.values())) {
        match units.last_mut() {
            // Ranks kept with certainty are no sample, and add nothing to the variance.
            Some(last) if last.is_short(least) || last.others == 0 || unit.others == 0 => last.merge(unit),
            _ => units.push(unit),
        }
    }
    if units.len() > 1 && units.last().is_some_and(|last| last.is_short(least)) {
        let last = units.pop().expect("there are two");
        units.last_mut().expect("there were two").merge(last);
    }
    units
}

impl Unit {
    fn of<'a>(draw: Draw, ranks: impl Iterator<Item = &'a Totals>) -> Self {
        let mut unit = Self { draw, ..Self::default() };
        for &Totals { point, n, y } in ranks {
            if !point.by_chance() {
                unit.certain.0 += n as f64;
                unit.certain.1 += y;
                continue;
            }
            unit.others += 1;
            unit.known.merge(&Moments::of_rank(n, y, 0.0, 0.0, 0.0));
            if point.drawn && point.probability > 0.0 {
                unit.drawn.push(Entry { n: n as f64, y, probability: point.probability });
            }
        }
        unit
    }

    fn is_short(&self, least: usize) -> bool {
        self.drawn.len() < least && self.drawn.len() < self.others
    }

    fn merge(&mut self, other: Self) {
        if self.others == 0 {
            self.draw = other.draw;
        }
        self.certain.0 += other.certain.0;
        self.certain.1 += other.certain.1;
        self.drawn.extend(other.drawn);
        self.others += other.others;
        self.known.merge(&other.known);
    }

    /// Hájek weights: they sum to the number of others.
    fn weight(&self) -> impl Fn(&Entry) -> f64 {
        let inverse: f64 = self.drawn.iter().map(|entry| 1.0 / entry.probability).sum();
        let scale = if inverse > 0.0 { self.others as f64 / inverse } else { 0.0 };
        move |entry| scale / entry.probability
    }

    fn totals(&self) -> (f64, f64) {
        let weight = self.weight();
        let sum = |value: fn(&Entry) -> f64| {
            self.drawn.iter().map(|entry| weight(entry) * value(entry)).sum::<f64>()
        };
        (self.certain.0 + sum(|entry| entry.n), self.certain.1 + sum(|entry| entry.y))
    }

    /// Variance of the total of residuals about `ratio`, known from all others (Cochran §2.6, §6.3).
    fn known_variance(&self, ratio: f64) -> f64 {
        let (m, others) = (self.drawn.len() as f64, self.others as f64);
        if m >= others {
            0.0
        } else {
            others * others * (1.0 / m - 1.0 / others) * self.known.residual_variance_about(ratio)
        }
    }

    /// The same estimated from the drawn ranks, and its degrees of freedom; infinite from a single rank.
    fn estimated_variance(&self, ratio: f64) -> (f64, f64) {
        let m = self.drawn.len();
        if m < 2 {
            return (f64::INFINITY, 1.0);
        }
        let weight = self.weight();
        let residual = |entry: &Entry| entry.y - ratio * entry.n;
        let centre =
            self.drawn.iter().map(|entry| weight(entry) * residual(entry)).sum::<f64>() / self.others as f64;
        let deviations = || self.drawn.iter().map(|entry| weight(entry) * (residual(entry) - centre));
        let squares: f64 = deviations().map(|value| value * value).sum();
        let fourth: f64 = deviations().map(|value| value.powi(4)).sum();
        let count = m as f64;
        // As for one window: a light-tailed sample of a few ranks is not trusted more.
        let kurtosis = if squares > 0.0 { (fourth * count / (squares * squares)).max(3.0) } else { 3.0 };
        let variance = (1.0 - count / self.others as f64) * count / (count - 1.0) * squares;
        (variance, variance_freedom(m as u64, kurtosis))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ampl_core::stats::estimate::{Item, ratio_estimate};

    /// A population with persistent differences between ranks; `drawn` is true for ranks in a window's sample.
    fn population(
        ranks: u32,
        windows: u64,
        per_update: u64,
        p: f64,
        drawn: impl Fn(u32, u64) -> bool,
    ) -> Vec<Point> {
        let mut points = Vec::new();
        for window in 0..windows {
            for rank in 0..ranks {
                let value =
                    100.0 + f64::from(rank * rank % 17) + ((rank as u64 * 7 + window * 13) % 5) as f64;
                let probability = if rank == 0 { 1.0 } else { p };
                points.push(Point {
                    stratum: None,
                    rank,
                    window,
                    update: window / per_update,
                    drawn: rank == 0 || drawn(rank, window / per_update),
                    probability,
                    value: Some((1, value)),
                });
            }
        }
        points
    }

    #[test]
    fn one_window_is_the_core_s_estimate() {
        let points = population(20, 1, 4, 0.3, |rank, _| rank % 3 == 0);
        let items = points.iter().filter(|point| point.drawn).map(|point| {
            let (n, y) = point.value.unwrap();
            Item { n, y, probability: point.probability }
        });
        let ratio = moments(&points).ratio().unwrap();
        let variance =
            moments(points.iter().filter(|point| point.by_chance())).residual_variance_about(ratio);
        for (census, known) in [(false, None), (true, Some(variance))] {
            let core = ratio_estimate(items.clone(), 20, 0.9, known).unwrap();
            for mechanism in [Mechanism::Subset, Mechanism::Global] {
                let pooled = pooled(&points, mechanism, 0.9, census).unwrap();
                assert!((pooled.mean / core.mean - 1.0).abs() < 1e-12);
                assert!((pooled.half_width / core.half_width - 1.0).abs() < 1e-9, "{pooled:?} {core:?}");
            }
        }
    }

    #[test]
    fn everyone_kept_is_exact_and_nobody_says_nothing() {
        let all = population(5, 8, 4, 1.0, |_, _| true);
        let truth = moments(&all).ratio().unwrap();
        let pooled_all = pooled(&all, Mechanism::Subset, 0.9, false).unwrap();
        assert!((pooled_all.mean - truth).abs() < 1e-9);
        assert_eq!(pooled_all.half_width, 0.0);
        assert_eq!(pooled(&population(5, 8, 4, 0.2, |_, _| false), Mechanism::Subset, 0.9, true), None);
        assert_eq!(pooled(&[], Mechanism::Subset, 0.9, true), None);
        let one = population(5, 1, 4, 0.2, |rank, _| rank == 2);
        assert_eq!(pooled(&one, Mechanism::Subset, 0.9, false).unwrap().half_width, f64::INFINITY);
    }

    #[test]
    fn windows_that_share_a_sample_are_not_independent() {
        let shared = population(40, 8, 8, 0.25, |rank, _| rank % 4 == 1);
        let subset = pooled(&shared, Mechanism::Subset, 0.9, false).unwrap().half_width;
        let single = pooled(&shared[..40], Mechanism::Subset, 0.9, false).unwrap().half_width;
        let fresh = pooled(&shared, Mechanism::Global, 0.9, false).unwrap().half_width;
        // Ranks differ for good here: more windows of the same ranks add little, more ranks a lot.
        assert!(subset > 0.8 * single, "{subset} {single}");
        assert!(fresh < 0.5 * single, "{fresh} {single}");
    }

    #[test]
    fn updates_without_a_sample_are_collapsed() {
        let points = population(10, 8, 4, 0.3, |rank, update| update == 0 && rank % 3 == 1);
        let pooled = pooled(&points, Mechanism::Subset, 0.9, true).unwrap();
        assert!(pooled.mean.is_finite() && pooled.half_width > 0.0);
    }

    #[test]
    fn intervals_hold_as_often_as_they_say() {
        let (ranks, windows, per_update, p) = (60u32, 12, 4, 0.2);
        for (mechanism, census) in [
            (Mechanism::Subset, true),
            (Mechanism::Subset, false),
            (Mechanism::Global, true),
            (Mechanism::Global, false),
        ] {
            let trials = 400;
            let mut covered = 0;
            for seed in 0..trials {
                let coin = |rank: u32, key: u64| {
                    let config = ampl_core::units::WindowId(key);
                    ampl_core::permute::coin(seed, ampl_core::units::Rank(rank), config) < p
                };
                let mut points = population(ranks, windows, per_update, p, coin);
                if mechanism == Mechanism::Global {
                    for point in points.iter_mut().filter(|point| point.rank != 0) {
                        point.drawn = coin(point.rank, 1000 + point.window);
                    }
                }
                let truth = moments(&points).ratio().unwrap();
                let found = pooled(&points, mechanism, 0.9, census).unwrap();
                covered += u32::from((found.mean - truth).abs() <= found.half_width);
            }
            let share = f64::from(covered) / trials as f64;
            // Independent draws vary the sample's size, which the normal quantile ignores.
            assert!((0.86..=0.97).contains(&share), "{mechanism:?} {census}: {share}");
        }
    }

    #[test]
    fn a_sample_that_grows_is_not_two() {
        // Six of 40 ranks, then twelve with the same six among them; ranks differ for good.
        let size = |window: u64| if window < 4 { 6 } else { 12 };
        let mut grown = population(40, 8, 8, 0.0, |_, _| false);
        for point in grown.iter_mut().filter(|point| point.rank != 0) {
            point.drawn = u64::from((point.rank * 17) % 39) < size(point.window);
            point.probability = size(point.window) as f64 / 39.0;
        }
        let width =
            |points: &[Point], census| pooled(points, Mechanism::Subset, 0.9, census).unwrap().half_width;
        for census in [false, true] {
            let (one, other) = (width(&grown[..160], census), width(&grown[160..], census));
            let (both, mean) = (width(&grown, census), (one + other) / 2.0);
            assert!((both / mean - 1.0).abs() < 0.1, "{both} of {one} and {other}");
        }
        // In one window, ranks that the directive has not reached differ from those that it has reached.
        let mut mixed: Vec<Point> = grown[..40].to_vec();
        mixed.extend_from_slice(&grown[160..200]);
        mixed.retain(|point| (point.window == 0) == (point.rank % 2 == 0));
        mixed.iter_mut().for_each(|point| point.window = 0);
        let apart =
            |even| mixed.iter().filter(|point| (point.rank % 2 == 0) == even).copied().collect::<Vec<_>>();
        let (one, other) = (width(&apart(true), true), width(&apart(false), true));
        assert!(width(&mixed, true) < 0.6 * (one + other), "{one} {other}");
    }

    #[test]
    fn strata_that_last_are_one_draw_per_interval() {
        // Eight small ranks, of which the first two are drawn, and four large ones, of which one is, for both windows.
        let points: Vec<Point> = (0..2)
            .flat_map(|window| {
                (0..12u32).map(move |rank| Point {
                    rank,
                    window,
                    update: 0,
                    stratum: Some(LASTING_STRATA + u16::from(rank >= 8)),
                    drawn: matches!(rank, 0 | 1 | 9),
                    probability: 0.25,
                    value: Some((1, if rank >= 8 { 50.0 } else { 1.0 + f64::from(rank % 2) })),
                })
            })
            .collect();
        for mechanism in [Mechanism::Subset, Mechanism::Global] {
            let found = pooled(&points, mechanism, 0.9, true).unwrap();
            assert!((found.mean - (8.0 * 1.5 + 4.0 * 50.0) / 12.0).abs() < 1e-9, "{found:?}");
            // The large ranks are alike: of the small ones' totals over both windows only chance is left.
            // One draw of totals that are twice as large, or two independent draws.
            let one: f64 = 64.0 * (1.0 / 2.0 - 1.0 / 8.0) * (8.0 * 0.25 / 7.0);
            let variance = if mechanism == Mechanism::Subset { 4.0 * one } else { 2.0 * one };
            let half_width = normal_two_sided(0.9) * variance.sqrt() / 24.0;
            assert!(
                (found.half_width / half_width - 1.0).abs() < 1e-9,
                "{mechanism:?}: {found:?} {half_width}"
            );
        }
    }

    #[test]
    fn strata_of_a_window_are_drawn_apart() {
        // Two of four small ranks, two of three large ones, and one that is kept in full.
        let ranks = [(1.0, 1), (2.0, 1), (3.0, 1), (2.0, 1), (100.0, 2), (103.0, 2), (106.0, 2), (500.0, 0)];
        let point = |(rank, &(y, stratum)): (usize, &(f64, u16))| Point {
            rank: rank as u32,
            window: 3,
            update: 0,
            stratum: Some(stratum),
            drawn: matches!(rank, 0 | 2 | 4 | 6 | 7),
            probability: [1.0, 0.5, 2.0 / 3.0][usize::from(stratum)],
            value: Some((1, y)),
        };
        let points: Vec<Point> = ranks.iter().enumerate().map(point).collect();
        let found = pooled(&points, Mechanism::Subset, 0.9, true).unwrap();
        assert!((found.mean - (2.0 * (1.0 + 3.0) + 1.5 * (100.0 + 106.0) + 500.0) / 8.0).abs() < 1e-9);
        let part =
            |ranks: f64, drawn: f64, variance: f64| ranks * ranks * (1.0 / drawn - 1.0 / ranks) * variance;
        let variance = part(4.0, 2.0, 2.0 / 3.0) + part(3.0, 2.0, 9.0);
        let expected = normal_two_sided(0.9) * variance.sqrt() / 8.0;
        assert!((found.half_width / expected - 1.0).abs() < 1e-9, "{found:?} {expected}");
    }
}
