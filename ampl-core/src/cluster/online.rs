//! Strata of a running job: whether others would be better, and what stays the same.

use super::choose::{LEAST_GAIN, Rule, choose, k_medoids, numbered};
use super::{Aim, Effort, Metric, Price, Reference, Vectors, price};

/// A stratum that a job has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnlineStratum {
    /// What decisions and estimates call it, for as long as its medoid is in it.
    pub id: u16,
    /// The rank that stands for it, a number of a rank in [`Vectors`]; a larger one where that rank is not there, so
    /// that nothing continues it.
    pub medoid: usize,
}

/// The strata of a group.
#[derive(Clone, Debug, PartialEq)]
pub struct Strata {
    /// At least one.
    pub strata: Vec<OnlineStratum>,
    /// Index in `strata`, by rank.
    pub labels: Vec<usize>,
    /// No stratum had that id or a larger one.
    pub next_id: u16,
}

impl Strata {
    /// One stratum of `ranks`.
    pub fn single(ranks: usize) -> Self {
        Self { strata: vec![OnlineStratum { id: 0, medoid: 0 }], labels: vec![0; ranks], next_id: 1 }
    }
}

/// Strata that would be better than those in force.
#[derive(Clone, Debug, PartialEq)]
pub struct Proposal {
    /// The strata; those that go on keep their ids.
    pub strata: Strata,
    /// Share of the ranks saved against the strata in force, on windows that were not clustered; at least
    /// [`LEAST_GAIN`], unless so many strata were asked for.
    pub gain: f64,
    /// What they cost there, and the F that proves them.
    pub price: Price,
    /// What is sent to ranks, so that each finds its stratum by itself; none where there is only one.
    pub reference: Option<Reference>,
}

/// Strata for `aims` that are better than `current` by what `vectors` show, the last windows of a group; none where
/// those in force do as well.
///
/// Better is: a gain of [`LEAST_GAIN`] on windows that were not clustered, and strata that differ there by an F
/// above its quantile of .999. A single stratum instead of several needs the gain only, and so many strata as
/// [`Rule::Exactly`] asks for instead of a single one need nothing.
///
/// A stratum keeps its id while its medoid does: the new stratum that holds an old one's medoid goes on as that
/// one; where it holds several, as the one that gives it most ranks. It may have another medoid then, nearer to
/// the middle of the ranks that it now has.
///
/// # Source
/// STATISTICS §5.
pub fn propose(
    vectors: &Vectors,
    current: &Strata,
    aims: &[Aim],
    rule: Rule,
    metric: Metric,
    effort: Effort,
) -> Option<Proposal> {
    let (found_on, judged_on) = vectors.halves();
    if found_on.is_empty() || current.labels.len() != vectors.ranks() {
        return None;
    }
    let choice = choose(vectors, aims, rule, |features| k_medoids(features, metric, effort));
    let found = choice.strata();
    let in_force = price(vectors, &judged_on, &current.labels, current.strata.len(), aims);
    let several = found.k > 1;
    // So many strata were asked for: the first ones need not prove themselves.
    let asked = matches!(rule, Rule::Exactly(_)) && several && current.strata.len() == 1;
    let gain = 1.0 - found.price.size / in_force.size.max(f64::MIN_POSITIVE);
    if !asked && (gain < LEAST_GAIN || several && !found.price.is_proven()) {
        return None;
    }
    let (labels, medoids) = numbered(&found.labels, &found.medoids);
    let reference = several.then(|| vectors.features(&found_on).reference(&medoids));
    // Prices are by stratum, in the order that strata now have.
    let price = price(vectors, &judged_on, &labels, medoids.len(), aims);
    Some(Proposal { strata: succeed(current, labels, &medoids), gain, price, reference })
}

/// New strata with the ids of the old ones that they continue.
fn succeed(current: &Strata, labels: Vec<usize>, medoids: &[usize]) -> Strata {
    let mut next_id = current.next_id;
    let shared = |old: usize, new: usize| {
        let pairs = current.labels.iter().zip(&labels);
        pairs.filter(|&(&before, &after)| (before, after) == (old, new)).count()
    };
    let heir = |new: usize| {
        let ancestors =
            current.strata.iter().enumerate().filter(|(_, old)| labels.get(old.medoid) == Some(&new));
        let most = ancestors.map(|(old, stratum)| (shared(old, new), stratum.id));
        most.reduce(|most, next| if next.0 > most.0 { next } else { most }).map(|(_, id)| id)
    };
    let strata = medoids.iter().enumerate().map(|(new, &medoid)| {
        let id = heir(new).unwrap_or_else(|| {
            next_id = next_id.wrapping_add(1);
            next_id.wrapping_sub(1)
        });
        OnlineStratum { id, medoid }
    });
    let strata = strata.collect();
    Strata { strata, labels, next_id }
}
