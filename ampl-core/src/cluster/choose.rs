//! Choice of the number of strata of a group.

use serde::Serialize;

use super::{Aim, Clustering, Effort, Features, KMedoids, Metric, Price, Vectors, price};

pub use crate::config::MOST_STRATA;

/// Share of the ranks that strata have to save, on windows that they were not found on.
pub const LEAST_GAIN: f64 = 0.10;

/// Largest cost of a smaller number of strata that is still enough, over the cost of the best number.
const GOOD_ENOUGH: f64 = 1.05;

/// Least share of explained variance that strata found in one part of the run must explain in another part.
const LEAST_LASTING: f64 = 0.6;

/// Fewest windows that tell a change half-way through the run from behaviour that lingers.
const MANY_WINDOWS: usize = 24;

/// Pairs of parts of the run, in 24ths of it: strata are found in the first part and tested in the second. The last two
/// pairs apply only from [`MANY_WINDOWS`] on.
const PAIRS: [[(usize, usize); 2]; 4] =
    [[(0, 12), (16, 24)], [(12, 24), (0, 8)], [(12, 15), (21, 24)], [(0, 3), (9, 12)]];

/// Number of strata that is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// As many as pay, up to this number.
    Pays(usize),
    /// Exactly this number, whatever it costs, if that many ranks differ.
    Exactly(usize),
}

/// Finds classes of ranks, for one number of them after the other.
pub type Search<'f> = Box<dyn FnMut(usize) -> Result<Clustering, NoClasses> + 'f>;

/// Reason why a method has found no classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoClasses {
    /// Its steps have not come to rest.
    NotConverged,
    /// A class shrank to nothing, or its shape cannot be computed.
    Degenerate,
    /// No point has enough neighbours.
    AllNoise,
}

/// The search by k-medoids.
pub fn k_medoids(features: &Features, metric: Metric, effort: Effort) -> Search<'_> {
    let mut search = KMedoids::new(&features.points, metric, effort);
    Box::new(move |k| Ok(search.clusters(k)))
}

/// One number of strata that was tried: the strata and their cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Tried {
    /// Strata.
    pub k: usize,
    /// Medoids, numbers of ranks in [`Vectors`]; empty where there are too few windows to find any.
    pub medoids: Vec<usize>,
    /// The stratum of every rank.
    pub labels: Vec<usize>,
    /// On windows that were not clustered.
    pub price: Price,
    /// Share of the ranks saved against a single stratum; negative where more are needed.
    pub gain: f64,
    /// Ranks that the method has put into no class; they are in the stratum of the nearest medoid.
    pub unclassed: usize,
}

/// Strata, and what led to them.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// Every number that was tried, from 1; of a single window, which leaves none to be judged on, only 1.
    pub tried: Vec<Tried>,
    /// Numbers for which the method has found no classes.
    pub failed: Vec<(usize, NoClasses)>,
    /// Index in `tried` of the one to be had.
    pub chosen: usize,
}

impl Choice {
    /// The strata to be had.
    pub fn strata(&self) -> &Tried {
        &self.tried[self.chosen]
    }

    /// The cheapest one with more than one stratum, whether it is worth it or not.
    pub fn best_alternative(&self) -> Option<&Tried> {
        self.tried.iter().filter(|tried| tried.k > 1).min_by(|a, b| a.price.size.total_cmp(&b.price.size))
    }
}

/// The strata of the ranks of `vectors`, for `aims`. `cluster` gets the ranks' vectors in every other window, and finds
/// as many classes as it is asked for; these are priced on the windows between.
///
/// Under [`Rule::Pays`], the smallest number within 5 % of the cheapest, if it saves [`LEAST_GAIN`] of what one
/// stratum costs, strata differ by more than chance ([`Price::is_proven`]), and they last; else one.
///
/// Strata last where those found in a part of the run explain nearly as much of the differences between ranks in a part
/// of it that is some windows away. A rank's behaviour often lingers for a few windows. Strata of every other window
/// then do well in the windows between, but other strata would a little later.
///
/// # Source
/// STATISTICS §5. That strata must differ by more than chance is asked there of strata found online; in small jobs
/// it keeps those away that a wild window or two would make. That they must last is ours.
pub fn choose(
    vectors: &Vectors,
    aims: &[Aim],
    rule: Rule,
    cluster: impl Fn(&Features) -> Search<'_>,
) -> Choice {
    let mut choosing = Choosing::new(vectors, aims, rule);
    while let Some(Wanted { part, .. }) = choosing.wanted() {
        let features = vectors.features(&choosing.windows(part));
        let mut clusters = cluster(&features);
        while let Some(wanted) = choosing.wanted().filter(|wanted| wanted.part == part) {
            choosing.take(vectors, aims, clusters(wanted.k));
        }
    }
    choosing.choice()
}

/// Classes to be found next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    /// Part of the windows to find them in: [`Choosing::windows`].
    pub part: usize,
    /// Number of classes.
    pub k: usize,
}

/// The search of [`choose()`], step by step: it names the classes to find next, and takes them.
#[derive(Clone, Debug)]
pub(super) struct Choosing {
    rule: Rule,
    ranks: usize,
    all_windows: usize,
    found_on: Vec<usize>,
    /// Windows that strata are judged on.
    pub judged_on: Vec<usize>,
    tried: Vec<Tried>,
    failed: Vec<(usize, NoClasses)>,
    stage: Stage,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    /// Number of strata to try next.
    Trying(usize),
    /// Check of `tried[found]` on pair number `pair` of [`PAIRS`]: its strata must last.
    Lasting { found: usize, pair: usize },
    /// Choice made: index in `tried`.
    Over(usize),
}

impl Choosing {
    pub fn new(vectors: &Vectors, aims: &[Aim], rule: Rule) -> Self {
        let (found_on, judged_on) = vectors.halves();
        let (ranks, all_windows) = (vectors.ranks(), vectors.windows());
        let stage = Stage::Trying(1);
        let (tried, failed) = (Vec::new(), Vec::new());
        let mut choosing = Self { rule, ranks, all_windows, found_on, judged_on, tried, failed, stage };
        if choosing.found_on.is_empty() || ranks < 2 {
            choosing.try_one(vectors, aims, Vec::new());
            choosing.stage = Stage::Over(0);
        }
        choosing
    }

    fn try_one(&mut self, vectors: &Vectors, aims: &[Aim], medoids: Vec<usize>) {
        let labels = vec![0; self.ranks];
        let price = price(vectors, &self.judged_on, &labels, 1, aims);
        self.tried.push(Tried { k: 1, medoids, labels, price, gain: 0.0, unclassed: 0 });
    }

    /// Classes to find next; `None` once the choice is made.
    pub fn wanted(&self) -> Option<Wanted> {
        match self.stage {
            Stage::Trying(k) => Some(Wanted { part: 0, k }),
            Stage::Lasting { found, pair } => Some(Wanted { part: pair + 1, k: self.tried[found].k }),
            Stage::Over(_) => None,
        }
    }

    /// The windows of that part.
    pub fn windows(&self, part: usize) -> Vec<usize> {
        match part.checked_sub(1) {
            None => self.found_on.clone(),
            Some(pair) => self.part(PAIRS[pair][0]),
        }
    }

    fn part(&self, (first, last): (usize, usize)) -> Vec<usize> {
        let all = self.all_windows;
        (first * all / 24..(last * all / 24).max(first * all / 24 + 1).min(all)).collect()
    }

    /// Windows that the classes wanted next are priced on.
    pub fn priced(&self) -> usize {
        match self.stage {
            Stage::Lasting { pair, .. } => self.part(PAIRS[pair][1]).len(),
            _ => self.judged_on.len(),
        }
    }

    /// Takes the classes that were wanted, or the reason why there are none.
    pub fn take(&mut self, vectors: &Vectors, aims: &[Aim], found: Result<Clustering, NoClasses>) {
        match self.stage {
            Stage::Trying(1) => {
                self.try_one(vectors, aims, found.map_or_else(|_| Vec::new(), |found| found.medoids));
                self.go_on(match self.rule {
                    Rule::Pays(_) => 2,
                    Rule::Exactly(k) => k.max(2),
                });
            }
            Stage::Trying(k) => match found {
                Ok(found) => self.try_more(vectors, aims, k, found),
                Err(why) => {
                    self.failed.push((k, why));
                    self.go_on(k + 1);
                }
            },
            Stage::Lasting { found: first, pair } => {
                let lasts = found.is_ok_and(|found| self.lasts(vectors, aims, (first, pair), &found));
                self.stage = match lasts {
                    true => Stage::Over(first),
                    false if pair + 1 < self.pairs() => Stage::Lasting { found: first, pair: pair + 1 },
                    false => Stage::Over(0),
                };
            }
            Stage::Over(_) => {}
        }
    }

    fn try_more(&mut self, vectors: &Vectors, aims: &[Aim], k: usize, found: Clustering) {
        let Clustering { medoids, labels, unclassed, .. } = found;
        if medoids.len() < 2 || medoids.len() < k && matches!(self.rule, Rule::Pays(_)) {
            // No more ranks than that differ.
            return self.compare();
        }
        let one = self.tried[0].price.size;
        let price = price(vectors, &self.judged_on, &labels, medoids.len(), aims);
        let gain = if one > 0.0 { 1.0 - price.size / one } else { 0.0 };
        self.tried.push(Tried { k: medoids.len(), medoids, labels, price, gain, unclassed });
        self.go_on(k + 1);
    }

    /// Goes on with `k` strata, if that many may be tried.
    fn go_on(&mut self, k: usize) {
        let (Rule::Pays(most) | Rule::Exactly(most)) = self.rule;
        match k <= most.min(self.ranks) {
            true => self.stage = Stage::Trying(k),
            false => self.compare(),
        }
    }

    /// Compares all that were tried and picks one, which must still last under [`Rule::Pays`].
    fn compare(&mut self) {
        let tried = &self.tried;
        self.stage = match self.rule {
            Rule::Exactly(_) => Stage::Over(tried.len() - 1),
            Rule::Pays(_) => {
                let best = tried.iter().map(|tried| tried.price.size).fold(f64::INFINITY, f64::min);
                let found =
                    tried.iter().position(|tried| tried.price.size <= GOOD_ENOUGH * best).unwrap_or(0);
                match tried[found].gain >= LEAST_GAIN && tried[found].price.is_proven() {
                    true => Stage::Lasting { found, pair: 0 },
                    false => Stage::Over(0),
                }
            }
        };
    }

    fn pairs(&self) -> usize {
        if self.all_windows < MANY_WINDOWS { 2 } else { PAIRS.len() }
    }

    /// `true` if the classes `found` in one part of the run explain enough in the pair's other part: [`LEAST_LASTING`]
    /// of what `tried[first]` explains.
    fn lasts(
        &self,
        vectors: &Vectors,
        aims: &[Aim],
        (first, pair): (usize, usize),
        found: &Clustering,
    ) -> bool {
        let there = self.part(PAIRS[pair][1]);
        let explained = price(vectors, &there, &found.labels, found.medoids.len().max(1), aims).explained;
        explained >= LEAST_LASTING * self.tried[first].price.explained
    }

    /// Everything tried and the index chosen, once the search is over.
    fn choice(self) -> Choice {
        let chosen = self.number();
        Choice { tried: self.tried, failed: self.failed, chosen }
    }

    /// The strata to be had, when it is over.
    pub fn chosen(&self) -> &Tried {
        &self.tried[self.number()]
    }

    fn number(&self) -> usize {
        if let Stage::Over(chosen) = self.stage { chosen } else { 0 }
    }
}

/// `labels` and `medoids` renumbered so that strata come in the order of their smallest ranks.
pub fn numbered(labels: &[usize], medoids: &[usize]) -> (Vec<usize>, Vec<usize>) {
    let mut order = Vec::new();
    for &label in labels {
        if !order.contains(&label) {
            order.push(label);
        }
    }
    let mut place = vec![0; medoids.len().max(1)];
    order.iter().enumerate().for_each(|(new, &old)| place[old] = new);
    let medoids = order.iter().filter_map(|&old| medoids.get(old).copied()).collect();
    (labels.iter().map(|&label| place[label]).collect(), medoids)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strata_are_numbered_by_their_smallest_ranks() {
        assert_eq!(numbered(&[2, 2, 0, 1, 0], &[4, 3, 1]), (vec![0, 0, 1, 2, 1], vec![1, 4, 3]));
        assert_eq!(numbered(&[0, 0], &[]), (vec![0, 0], vec![]));
    }
}
