//! Strata of a running job: whether others would be better, and what stays the same.

use std::borrow::Cow;
use std::task::{Poll, ready};

use super::choose::{Choosing, LEAST_GAIN, Rule, Wanted, numbered};
use super::work_budget::Work;
use super::{Aim, Clustering, Effort, Features, KMedoids, Metric, Price, Reference, Vectors, price};

/// A stratum that a job has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnlineStratum {
    /// Number in decisions and estimates, kept for as long as its medoid is in the stratum.
    pub id: u16,
    /// The rank that stands for it, a number of a rank in [`Vectors`]; a larger one where that rank is not there, so
    /// that nothing continues it.
    pub medoid: usize,
}

/// The strata of a group.
#[derive(Clone, Debug, PartialEq)]
pub struct Strata {
    /// The strata, at least one.
    pub strata: Vec<OnlineStratum>,
    /// Index in `strata`, by rank.
    pub labels: Vec<usize>,
    /// First free id: no stratum has had it or a larger one.
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
    /// Cost on the windows that were not clustered, and the F that proves the strata.
    pub price: Price,
    /// Medoids to send to ranks, so that each finds its own stratum; `None` where there is only one.
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
    let mut proposing =
        Proposing::new(vectors.clone(), current.clone(), aims.to_vec(), rule, metric, effort)?;
    Work::whole(|work| proposing.step(work))
}

/// The search of [`propose`] in steps; how it is cut into steps does not change the result.
#[derive(Clone, Debug)]
pub struct Proposing {
    vectors: Vectors,
    current: Strata,
    aims: Vec<Aim>,
    rule: Rule,
    metric: Metric,
    effort: Effort,
    choosing: Choosing,
    /// Vectors of the windows that strata are found on.
    features: Option<Features>,
    /// The search in one part of the windows.
    search: Option<(usize, KMedoids<'static, Metric>)>,
    /// Classes that it has found, not yet priced.
    found: Option<Clustering>,
}

impl Proposing {
    /// Starts a search with the arguments of [`propose`]; `None` where it could find nothing.
    pub fn new(
        vectors: Vectors,
        current: Strata,
        aims: Vec<Aim>,
        rule: Rule,
        metric: Metric,
        effort: Effort,
    ) -> Option<Self> {
        let (found_on, _) = vectors.halves();
        if found_on.is_empty() || current.labels.len() != vectors.ranks() {
            return None;
        }
        let choosing = Choosing::new(&vectors, &aims, rule);
        let (features, search, found) = (None, None, None);
        Some(Self { vectors, current, aims, rule, metric, effort, choosing, features, search, found })
    }

    /// Goes on as far as `work` goes; to be done again until it is ready, and not after that.
    pub fn step(&mut self, work: &mut Work) -> Poll<Option<Proposal>> {
        while let Some(Wanted { part, k }) = self.choosing.wanted() {
            if self.found.is_none() {
                self.found = Some(ready!(self.clusters(part, k, work)));
            }
            ready!(work.take(self.units(self.choosing.priced(), 14) + 3000));
            if let Some(found) = self.found.take() {
                self.choosing.take(&self.vectors, &self.aims, Ok(found));
            }
        }
        ready!(work.take(self.units(self.choosing.judged_on.len(), 14) + 3000));
        Poll::Ready(self.proposal())
    }

    /// Work of `windows` windows, with `each` units per rank and guide.
    fn units(&self, windows: usize, each: usize) -> u64 {
        (windows * self.aims.len() * (each * self.vectors.ranks() + 200)) as u64
    }

    fn clusters(&mut self, part: usize, k: usize, work: &mut Work) -> Poll<Clustering> {
        if self.search.as_ref().is_none_or(|&(of, _)| of != part) {
            let windows = self.choosing.windows(part);
            let pairs = (self.vectors.ranks() * self.vectors.ranks()) as u64;
            ready!(work.take(self.units(windows.len(), 10) + pairs));
            let features = self.vectors.features(&windows);
            let points = Cow::Owned(features.points.clone());
            self.search = Some((part, KMedoids::of(points, self.metric, self.effort)));
            self.features.get_or_insert(features);
        }
        let Some((_, search)) = &mut self.search else { return Poll::Pending };
        search.step(k, work)
    }

    fn proposal(&self) -> Option<Proposal> {
        let Self { vectors, current, aims, .. } = self;
        let found = self.choosing.chosen();
        let in_force = price(vectors, &self.choosing.judged_on, &current.labels, current.strata.len(), aims);
        let several = found.k > 1;
        // So many strata were asked for: the first ones need not prove themselves.
        let asked = matches!(self.rule, Rule::Exactly(_)) && several && current.strata.len() == 1;
        let gain = 1.0 - found.price.size / in_force.size.max(f64::MIN_POSITIVE);
        if !asked && (gain < LEAST_GAIN || several && !found.price.is_proven()) {
            return None;
        }
        let (labels, medoids) = numbered(&found.labels, &found.medoids);
        let reference =
            self.features.as_ref().filter(|_| several).map(|features| features.reference(&medoids));
        // Prices are by stratum, in the order that strata now have.
        let mut price = found.price.clone();
        for (&old, &new) in found.labels.iter().zip(&labels) {
            price.sizes[new] = found.price.sizes[old];
            price.errors[new] = found.price.errors[old];
        }
        Some(Proposal { strata: succeed(current, labels, &medoids), gain, price, reference })
    }
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
