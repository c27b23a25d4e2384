//! The stratification of a group's ranks.

use ampl_core::cluster::linfa_baselines::{dbscan, k_means, silhouette};
use ampl_core::cluster::{
    Aim, Choice, Effort, Features, MOST_STRATA, Metric, Rule, Search, Tried, Vectors, choose, k_medoids,
    numbered,
};
use ampl_core::config::{ErrorBound, Selection, Target};
use ampl_core::plan::Plan;
use ampl_core::stats::sizing;
use ampl_core::units::{Rank, RankSet};

use super::source::{Source, bound_of};
use super::{Args, K};
use crate::failure::{Failure, USAGE};
use crate::human::plural;

/// Neighbours that make a rank a core point of a class.
const DBSCAN_NEIGHBOURS: usize = 4;

/// Clustering method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    KMedoids,
    KMeans,
    Dbscan,
}

impl Method {
    const ALL: [Self; 3] = [Self::KMedoids, Self::KMeans, Self::Dbscan];

    pub fn name(self) -> &'static str {
        match self {
            Self::KMedoids => "k-medoids",
            Self::KMeans => "k-means",
            Self::Dbscan => "dbscan",
        }
    }

    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }

    /// Finds classes for successive numbers of them.
    fn search<'f>(self, features: &'f Features, distance: Metric, effort: Effort) -> Search<'f> {
        let points = &features.points;
        match self {
            Self::KMedoids => k_medoids(features, distance, effort),
            Self::KMeans => Box::new(move |k| k_means(points, k, distance, effort)),
            Self::Dbscan => Box::new(move |k| match k {
                1 => k_means(points, 1, distance, effort),
                _ => dbscan(points, DBSCAN_NEIGHBOURS, distance, effort),
            }),
        }
    }
}

/// The stratification of a group.
pub struct Stratification {
    /// The job: its groups as they were, or all ranks as one.
    pub plan: Plan,
    /// The group that was divided.
    pub group: usize,
    /// Its ranks, in order; numbers of ranks in `choice` are indices into them.
    pub members: Vec<u32>,
    /// Its bound.
    pub confidence: f64,
    pub error: ErrorBound,
    /// Guides that ranks were clustered by, as `metric@event`.
    pub guides: Vec<String>,
    pub method: Method,
    pub choice: Choice,
    /// linfa's silhouette for each number tried, in [−1, 1].
    pub silhouettes: Vec<Option<f64>>,
    /// Windows with an observation.
    pub windows: usize,
    /// Strata of the choice, in the order of their smallest ranks.
    pub strata: Vec<Stratum>,
}

/// A stratum: ranks that behave alike.
pub struct Stratum {
    pub name: String,
    pub ranks: RankSet,
    /// The medoid; none where there are too few windows.
    pub medoid: Option<u32>,
    /// Ranks to be drawn of a window.
    pub size: f64,
    /// Relative error of the stratum's own mean at that size.
    pub error: f64,
}

impl Stratification {
    /// Fewest ranks drawn for a bound in any case.
    pub fn floor(&self) -> u64 {
        let sampling = &self.plan.config.sampling;
        let usual = match sampling.selection {
            Selection::Retrospective => sizing::retrospective_floor(self.members.len() as u64),
            Selection::Predictive => sizing::FLOOR,
        };
        sampling.floor.map_or(usual, u64::from)
    }

    /// Divides what `args` ask for.
    ///
    /// # Errors
    /// Errors of [`super::strata`].
    pub fn of(args: &Args, source: Source) -> anyhow::Result<Self> {
        let (plan, group, asked) = group(args, &source)?;
        let target = match bound_of(plan.groups[group].target) {
            Target::Bound { confidence, error } => Target::Bound {
                confidence: args.confidence.unwrap_or(confidence),
                error: args.error.map_or(error, ErrorBound::Relative),
            },
            fixed => fixed,
        };
        let mut plan = plan;
        plan.groups[group].target = target;
        let aims: Vec<Aim> = source
            .job
            .guides
            .iter()
            .enumerate()
            .filter_map(|(guide, &metric)| match plan.target(&plan.groups[group], &plan.metrics[metric]) {
                Target::Bound { confidence, error } => Some(Aim { guide, confidence, error }),
                Target::Static { .. } => None,
            })
            .collect();
        let members: Vec<u32> = plan.groups[group].members.iter().map(|rank| rank.0).collect();
        // The job file's k was checked against its group already.
        if let Some(K::Exactly(k)) = args.k
            && k as usize > members.len()
        {
            let most = members.len() as u64;
            let what = format!("{} cannot be {k} strata", plural(most, "rank"));
            return Err(Failure::message(USAGE, what, "--k", format!("name {most} at most, or auto")));
        }
        let mut vectors = Vectors::new(members.len(), source.job.guides.len());
        source.each_window(|window| {
            let observed = window.guides.iter().flat_map(|ranks| {
                members.iter().map(|&rank| &ranks[rank as usize]).map(|seen| (seen.n as f64, seen.sum))
            });
            vectors.push(observed);
        })?;
        let k = args.k.or(asked).unwrap_or(K::Auto);
        let rule = match (args.method, k) {
            // DBSCAN runs once, and finds the number of classes itself.
            (Method::Dbscan, K::Auto) => Rule::Pays(2),
            (_, K::Auto) => Rule::Pays(MOST_STRATA),
            (_, K::Exactly(k)) => Rule::Exactly(k as usize),
        };
        let effort = Effort { seed: plan.config.sampling.seed, ..Effort::default() };
        let choice = choose(&vectors, &aims, rule, |f| args.method.search(f, args.distance, effort));
        let (found_on, _) = vectors.halves();
        let points = vectors.features(&found_on).points;
        let score = |tried: &Tried| silhouette(&points, &tried.labels, effort.seed);
        let silhouettes = choice.tried.iter().map(score).collect();
        let strata = named(&plan, group, &members, choice.strata());
        let Target::Bound { confidence, error } = target else { unreachable!("a size was replaced") };
        let guides = source.job.guides.iter().map(|&metric| {
            let metric = &plan.metrics[metric];
            match metric.event.name().as_ref() {
                "*" => metric.name().into_owned(),
                event => format!("{}@{event}", metric.name()),
            }
        });
        Ok(Self {
            group,
            members,
            confidence,
            error,
            guides: guides.collect(),
            method: args.method,
            silhouettes,
            windows: vectors.windows(),
            strata,
            choice,
            plan,
        })
    }
}

/// The plan in which a group is divided, the number of the group, and k in the job file.
fn group(args: &Args, source: &Source) -> anyhow::Result<(Plan, usize, Option<K>)> {
    let plan = source.job.plan.clone();
    let divided: Vec<&str> = source.divided.iter().map(|strata| strata.group.as_str()).collect();
    let name = match (&args.group, &divided[..]) {
        (Some(name), _) => Some(name.as_str()),
        (None, [only]) => Some(*only),
        (None, []) => None,
        (None, several) => {
            let what = format!("several groups have 'stratify': {}", several.join(", "));
            return Err(Failure::message(USAGE, what, "--group", "name one of them"));
        }
    };
    let Some(name) = name else {
        if let [_] = plan.groups[..] {
            return Ok((plan, 0, None));
        }
        // Without groups: classes need not respect them.
        let mut config = plan.config.clone();
        config.groups.clear();
        let ranks = plan.ranks;
        let plan = Plan::new(config, ranks).expect("without groups, every rank is in the job");
        return Ok((plan, 0, None));
    };
    let Some(index) = plan.groups.iter().position(|group| group.name == name) else {
        let have: Vec<&str> = plan.groups.iter().map(|group| group.name.as_str()).collect();
        let what = format!("there is no group '{name}'");
        return Err(Failure::message(USAGE, what, "--group", format!("there are: {}", have.join(", "))));
    };
    let asked = source.divided.iter().find(|strata| strata.group == name);
    let k = asked.map(|strata| strata.k.map_or(K::Auto, K::Exactly));
    Ok((plan, index, k))
}

fn named(plan: &Plan, group: usize, members: &[u32], found: &Tried) -> Vec<Stratum> {
    let own = &plan.groups[group].name;
    let (labels, medoids) = numbered(&found.labels, &found.medoids);
    // Sizes are by label, as they were found.
    let mut first = vec![None; found.price.sizes.len()];
    for (label, &place) in found.labels.iter().zip(&labels) {
        first[place].get_or_insert(*label);
    }
    let stratum = |(place, label): (usize, &Option<usize>)| {
        let label = (*label)?;
        let ranks = members.iter().zip(&labels).filter(|(_, have)| **have == place).map(|(rank, _)| *rank);
        let name = if found.k == 1 { own.clone() } else { format!("{own}-{}", place + 1) };
        Some(Stratum {
            name,
            ranks: rank_set(ranks),
            medoid: medoids.get(place).map(|&medoid| members[medoid]),
            size: found.price.sizes[label],
            error: found.price.errors[label],
        })
    };
    first.iter().enumerate().filter_map(stratum).collect()
}

/// The set of those ranks, which ascend.
fn rank_set(ranks: impl Iterator<Item = u32>) -> RankSet {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for rank in ranks {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == rank => *last = rank,
            _ => ranges.push((rank, rank)),
        }
    }
    let text: Vec<String> = ranges.iter().map(|(low, high)| format!("{low}-{high}")).collect();
    let set = RankSet::parse(&text.join(",")).expect("ranges in order parse");
    debug_assert!(ranges.is_empty() || set.contains(Rank(ranges[0].0)));
    set
}
