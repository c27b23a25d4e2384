//! How many strata a group is worth.

use super::{Aim, Clustering, Effort, Features, KMedoids, Metric, Price, Vectors, price};

/// Most strata of a group.
pub const MOST_STRATA: usize = 8;

/// Share of the ranks that strata have to save, on windows that they were not found on.
pub const LEAST_GAIN: f64 = 0.10;

/// As many strata are enough as cost no more than this times what the best number costs.
const GOOD_ENOUGH: f64 = 1.05;

/// Share of what strata explain of the differences between ranks that strata of another time must explain too.
const LEAST_LASTING: f64 = 0.6;

/// From so many windows on, what begins or ends half-way through the run can be told from what lingers.
const MANY_WINDOWS: usize = 24;

/// How many strata there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// As many as pay, from 1 to so many.
    Pays(usize),
    /// So many, whatever they cost, if so many ranks differ.
    Exactly(usize),
}

/// Finds classes of ranks, for one number of them after the other.
pub type Search<'f> = Box<dyn FnMut(usize) -> Clustering + 'f>;

/// The search by k-medoids.
pub fn k_medoids(features: &Features, metric: Metric, effort: Effort) -> Search<'_> {
    let search = KMedoids::new(&features.points, metric, effort);
    Box::new(move |k| search.clusters(k))
}

/// What some number of strata would have cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Tried {
    /// Strata.
    pub k: usize,
    /// Their medoids, numbers of ranks in [`Vectors`]; none where there are too few windows to find any.
    pub medoids: Vec<usize>,
    /// The stratum of every rank.
    pub labels: Vec<usize>,
    /// On windows that were not clustered.
    pub price: Price,
    /// Share of the ranks saved against a single stratum; negative where more are needed.
    pub gain: f64,
}

/// Strata, and what led to them.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// Every number that was tried, from 1; of a single window, which leaves none to be judged on, only 1.
    pub tried: Vec<Tried>,
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

/// The strata of the ranks of `vectors`, for `aims`: `cluster` is given the ranks' vectors in every other window,
/// and finds as many classes as it is asked for; the windows between tell what these would cost.
///
/// Under [`Rule::Pays`], the smallest number within 5 % of the cheapest, if it saves [`LEAST_GAIN`] of what one
/// stratum costs, strata differ by more than chance ([`Price::is_proven`]), and they last; else one.
///
/// Strata last where those found in a part of the run explain nearly as much of the differences between ranks in a
/// part of it that is some windows away. What a rank does often lingers for a few windows, so that
/// strata of every other window do well in the windows between, and would be others a little later.
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
    let (found_on, judged_on) = vectors.halves();
    let ranks = vectors.ranks();
    let alone = |medoids: Vec<usize>| {
        let labels = vec![0; ranks];
        let price = price(vectors, &judged_on, &labels, 1, aims);
        Tried { k: 1, medoids, labels, price, gain: 0.0 }
    };
    if found_on.is_empty() || ranks < 2 {
        return Choice { tried: vec![alone(Vec::new())], chosen: 0 };
    }
    let features = vectors.features(&found_on);
    let mut clusters = cluster(&features);
    let mut tried = vec![alone(clusters(1).medoids)];
    let one = tried[0].price.size;
    let numbers = match rule {
        Rule::Pays(most) => 2..=most.min(ranks),
        Rule::Exactly(k) => k.max(2)..=k.min(ranks),
    };
    for k in numbers {
        let Clustering { medoids, labels, .. } = clusters(k);
        if medoids.len() < 2 || medoids.len() < k && matches!(rule, Rule::Pays(_)) {
            // No more ranks than that differ.
            break;
        }
        let price = price(vectors, &judged_on, &labels, medoids.len(), aims);
        let gain = if one > 0.0 { 1.0 - price.size / one } else { 0.0 };
        tried.push(Tried { k: medoids.len(), medoids, labels, price, gain });
    }
    let chosen = match rule {
        Rule::Exactly(_) => tried.len() - 1,
        Rule::Pays(_) => {
            let best = tried.iter().map(|tried| tried.price.size).fold(f64::INFINITY, f64::min);
            let first = tried.iter().position(|tried| tried.price.size <= GOOD_ENOUGH * best).unwrap_or(0);
            let found = &tried[first];
            let pays = found.gain >= LEAST_GAIN && found.price.is_proven();
            if pays && lasts(vectors, aims, found, &cluster) { first } else { 0 }
        }
    };
    Choice { tried, chosen }
}

/// Whether as many strata as `found` has, found in one part of the run, are some in another part too.
fn lasts(vectors: &Vectors, aims: &[Aim], found: &Tried, cluster: &impl Fn(&Features) -> Search<'_>) -> bool {
    let all = vectors.windows();
    let part =
        |first: usize, last: usize| first * all / 24..(last * all / 24).max(first * all / 24 + 1).min(all);
    let pairs = [((0, 12), (16, 24)), ((12, 24), (0, 8)), ((12, 15), (21, 24)), ((0, 3), (9, 12))];
    let pairs = if all < MANY_WINDOWS { &pairs[..2] } else { &pairs };
    pairs.iter().any(|&(here, there)| {
        let (here, there): (Vec<usize>, Vec<usize>) =
            (part(here.0, here.1).collect(), part(there.0, there.1).collect());
        let features = vectors.features(&here);
        let Clustering { medoids, labels, .. } = cluster(&features)(found.k);
        let explained = price(vectors, &there, &labels, medoids.len().max(1), aims).explained;
        explained >= LEAST_LASTING * found.price.explained
    })
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
