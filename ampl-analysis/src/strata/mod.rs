//! Ranks that behave alike, and whether sampling them apart would pay.

mod comparison;
mod found;
pub mod guides;

use ampl_client::simulate::{Job, Window};
use ampl_core::cluster::linfa_baselines::silhouette;
use ampl_core::cluster::methods::{Compared, compare};
use ampl_core::cluster::{Aim, Choice, Effort, Metric, Tried, Vectors, numbered};
use ampl_core::config::{DEFAULT_TARGET, ErrorBound, GroupStrata, Selection, Target};
use ampl_core::plan::Plan;
use ampl_core::stats::sizing;
use ampl_core::units::RankSet;

pub use ampl_core::cluster::methods::Method;
pub use comparison::{ComparedFound, Failed, Priced};
pub use found::{Found, StratumFound, TriedFound};

/// Number of strata asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum K {
    /// As many as pay.
    Auto,
    /// So many.
    Exactly(u32),
}

/// The stratification that is asked for; the default is that of all ranks together with their own bound.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The group to divide; without it all ranks together, or the only group that the job file wants divided.
    pub group: Option<String>,
    /// Number of strata; without it the job file's, and without that as many as pay.
    pub k: Option<K>,
    /// Confidence of the bound, in (0, 1); without it the group's.
    pub confidence: Option<f64>,
    /// Relative error of the bound, in (0, 1); without it the group's.
    pub error: Option<f64>,
    /// Clustering method.
    pub method: Method,
    /// Distance between ranks.
    pub distance: Metric,
    /// `true` if the strata of all methods are to be compared.
    pub compare: bool,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            group: None,
            k: None,
            confidence: None,
            error: None,
            method: Method::KMedoids,
            distance: Metric::Euclidean,
            compare: false,
        }
    }
}

/// Failure of a stratification; `E` is that of the source of windows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StrataError<E> {
    /// Several groups of the job file are to be divided: their names.
    SeveralGroups(Vec<String>),
    /// No group has that name.
    NoGroup {
        /// The name asked for.
        name: String,
        /// The names of the groups.
        have: Vec<String>,
    },
    /// More strata are asked for than there are ranks.
    TooMany {
        /// Strata asked for.
        k: u32,
        /// Ranks of the group.
        ranks: u64,
    },
    /// The windows cannot be read.
    Windows(E),
}

/// The stratification of a group.
pub struct Stratification {
    /// The job: its groups as they were, or all ranks as one.
    pub plan: Plan,
    /// The group that was divided.
    pub group: usize,
    /// Its ranks, in order; numbers of ranks in `choice` are indices into them.
    pub members: Vec<u32>,
    /// Confidence of its bound, in (0, 1).
    pub confidence: f64,
    /// Half-width of its bound.
    pub error: ErrorBound,
    /// Guides that ranks were clustered by, as `metric@event`.
    pub guides: Vec<String>,
    /// Clustering method.
    pub method: Method,
    /// Every number of strata that was tried, and the one that pays.
    pub choice: Choice,
    /// linfa's silhouette for each number tried, in [−1, 1].
    pub silhouettes: Vec<Option<f64>>,
    /// Windows with an observation.
    pub windows: usize,
    /// Strata of the choice, in the order of their smallest ranks.
    pub strata: Vec<Stratum>,
    /// The same by all methods, where that is asked for.
    pub compared: Option<Vec<Compared>>,
}

/// A stratum: ranks that behave alike.
pub struct Stratum {
    /// Its name.
    pub name: String,
    /// Its ranks.
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

    /// Divides the ranks of `job` as `request` asks. `divided` are the groups that the job file wants divided.
    /// `each_window` passes every window of the job to its argument.
    ///
    /// # Errors
    /// A [`StrataError`]: a request that does not fit the job, or an error of `each_window`.
    pub fn of<E>(
        request: &Request,
        job: &Job,
        divided: &[GroupStrata],
        each_window: impl FnOnce(&mut dyn FnMut(&Window)) -> Result<(), E>,
    ) -> Result<Self, StrataError<E>> {
        let (plan, group, asked) = group(request, job, divided)?;
        let target = match bound_of(plan.groups[group].target) {
            Target::Bound { confidence, error } => Target::Bound {
                confidence: request.confidence.unwrap_or(confidence),
                error: request.error.map_or(error, ErrorBound::Relative),
            },
            fixed => fixed,
        };
        let mut plan = plan;
        plan.groups[group].target = target;
        let aims: Vec<Aim> = job
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
        if let Some(K::Exactly(k)) = request.k
            && k as usize > members.len()
        {
            return Err(StrataError::TooMany { k, ranks: members.len() as u64 });
        }
        let mut vectors = Vectors::new(members.len(), job.guides.len());
        let mut take = |window: &Window| {
            let observed = window.guides.iter().flat_map(|ranks| {
                members.iter().map(|&rank| &ranks[rank as usize]).map(|seen| (seen.n as f64, seen.sum))
            });
            vectors.push(observed);
        };
        each_window(&mut take).map_err(StrataError::Windows)?;
        let k = request.k.or(asked).unwrap_or(K::Auto);
        let k = match k {
            K::Auto => None,
            K::Exactly(k) => Some(k as usize),
        };
        let effort = Effort { seed: plan.config.sampling.seed, ..Effort::default() };
        let choice = request.method.choose(&vectors, &aims, k, request.distance, effort);
        let compared = request.compare.then(|| compare(&vectors, &aims, k, request.distance, effort));
        let (found_on, _) = vectors.halves();
        let points = vectors.features(&found_on).points;
        let score = |tried: &Tried| silhouette(&points, &tried.labels, effort.seed);
        let silhouettes = choice.tried.iter().map(score).collect();
        let strata = named(&plan, group, &members, choice.strata());
        let Target::Bound { confidence, error } = target else { unreachable!("a size was replaced") };
        let guides = job.guides.iter().map(|&metric| {
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
            method: request.method,
            silhouettes,
            windows: vectors.windows(),
            strata,
            compared,
            choice,
            plan,
        })
    }
}

/// The plan in which a group is divided, the number of the group, and k in the job file.
fn group<E>(
    request: &Request,
    job: &Job,
    divided: &[GroupStrata],
) -> Result<(Plan, usize, Option<K>), StrataError<E>> {
    let plan = job.plan.clone();
    let name = match (&request.group, divided) {
        (Some(name), _) => Some(name.as_str()),
        (None, [only]) => Some(only.group.as_str()),
        (None, []) => None,
        (None, several) => {
            let names = several.iter().map(|strata| strata.group.clone());
            return Err(StrataError::SeveralGroups(names.collect()));
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
        let have = plan.groups.iter().map(|group| group.name.clone()).collect();
        return Err(StrataError::NoGroup { name: name.to_owned(), have });
    };
    let asked = divided.iter().find(|strata| strata.group == name);
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
        let name = if found.k == 1 { own.clone() } else { format!("{own}-{}", place + 1) };
        Some(Stratum {
            name,
            ranks: ranks_with(members, &labels, place),
            medoid: medoids.get(place).map(|&medoid| members[medoid]),
            size: found.price.sizes[label],
            error: found.price.errors[label],
        })
    };
    first.iter().enumerate().filter_map(stratum).collect()
}

/// Ranks of every stratum of `found`, in the order of their smallest ranks.
fn ranks_of(members: &[u32], found: &Tried) -> Vec<RankSet> {
    let (labels, _) = numbered(&found.labels, &found.medoids);
    let strata = labels.iter().max().map_or(0, |most| most + 1);
    (0..strata).map(|place| ranks_with(members, &labels, place)).collect()
}

fn ranks_with(members: &[u32], labels: &[usize], place: usize) -> RankSet {
    members.iter().zip(labels).filter(|(_, label)| **label == place).map(|(rank, _)| *rank).collect()
}

/// The group's bound; the default one where it has a size instead.
fn bound_of(target: Target) -> Target {
    match target {
        Target::Bound { .. } => target,
        Target::Static { .. } => DEFAULT_TARGET,
    }
}
