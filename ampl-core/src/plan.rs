//! A configuration resolved against a job: which rank belongs to which group, what is measured.

mod clipping;
mod programs;

pub use clipping::Clipping;
pub use programs::with_programs;

use crate::config::{
    Config, DEFAULT_TARGET, ErrorBound, Event, Members, Metric, Quantity, RankSummaries, Selection,
    SitePolicy, Summaries, Target, UNGROUPED,
};
use crate::stats::sizing::FLOOR;
use crate::units::{Rank, RankSet, WindowId};

/// A configuration resolved for a job, the same in every rank and the client before the first window.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Number of ranks in the job.
    pub ranks: u32,
    /// The configuration this came from.
    pub config: Config,
    /// Sampled groups; every rank is in exactly one.
    pub groups: Vec<GroupPlan>,
    /// Metrics of a summary: every built-in quantity over whole windows first ([`Quantity::ALL`] order), then the other
    /// configured metrics, each once.
    pub metrics: Vec<Metric>,
}

/// A group of the job.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupPlan {
    /// Name; [`UNGROUPED`] for the ranks in no configured group that has another.
    pub name: String,
    /// Ranks of the group.
    pub members: RankSet,
    /// Size of its sample, or the bound that asks for it.
    pub target: Target,
    /// Ranks always kept.
    pub pinned: RankSet,
}

/// Error that only the size of the job can show: `agent.client` is no rank of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankOutsideJob {
    /// The rank that it names.
    pub rank: Rank,
    /// Ranks in the job.
    pub ranks: u32,
}

impl std::fmt::Display for RankOutsideJob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (key, last) = (self.key(), self.ranks.saturating_sub(1));
        write!(f, "{key} names rank {}, but the job has ranks 0-{last}", self.rank.0)
    }
}

impl RankOutsideJob {
    /// The key that names it.
    pub fn key(&self) -> &'static str {
        "agent.client"
    }

    /// Line and column of its value in `text`, the configuration's; `None` where it is not there.
    pub fn place(&self, text: &str) -> Option<(usize, usize)> {
        Config::place(text, self.key(), 0)
    }
}

impl std::error::Error for RankOutsideJob {}

impl Plan {
    /// `config` applied to a job of `ranks` processes. Groups have the ranks of theirs that the job has, and those
    /// without any are left out ([`Clipping`] says so). Programs
    /// must be known before ([`with_programs`]).
    ///
    /// # Errors
    /// [`RankOutsideJob`] when `agent.client` names a rank that the job does not have.
    pub fn new(config: Config, ranks: u32) -> Result<Self, RankOutsideJob> {
        let client = config.agent.client;
        if client.0 >= ranks.max(1) {
            return Err(RankOutsideJob { rank: client, ranks });
        }
        let others = clipping::others(&config, ranks);
        let mut groups: Vec<GroupPlan> = Vec::new();
        for group in &config.groups {
            let members = match &group.members {
                Members::Listed(listed) => listed.below(ranks),
                // Its ranks are listed once they are known.
                Members::Program(_) => continue,
                Members::Others => others.clone(),
            };
            if members.is_empty() {
                continue;
            }
            let target = match group.target {
                Target::Static { ranks } => Target::Static { ranks: members.len().min(ranks.into()) as u32 },
                bound => bound,
            };
            let pinned = group.pinned.below(ranks);
            groups.push(GroupPlan { name: group.name.clone(), members, target, pinned });
        }
        let taken = config.groups.iter().any(|group| group.members == Members::Others);
        if !taken && !others.is_empty() {
            groups.push(GroupPlan {
                name: UNGROUPED.into(),
                members: others,
                target: DEFAULT_TARGET,
                pinned: RankSet::default(),
            });
        }
        let is_guide = |quantity: &Quantity| {
            config
                .metrics
                .iter()
                .any(|metric| metric.guide && metric.quantity == *quantity && metric.event == Event::Window)
        };
        let mut metrics: Vec<Metric> = Quantity::ALL
            .into_iter()
            .map(|quantity| {
                let guide = is_guide(&quantity);
                Metric { quantity, event: Event::Window, guide, optional: false }
            })
            .collect();
        let summarised_anyway =
            |metric: &Metric| metric.quantity.slot().is_some() && metric.event == Event::Window;
        for metric in config.metrics.iter().filter(|metric| !summarised_anyway(metric)) {
            match metrics
                .iter_mut()
                .find(|have| have.quantity == metric.quantity && have.event == metric.event)
            {
                Some(have) => {
                    have.guide |= metric.guide;
                    // What one of two declarations insists on cannot be left out.
                    have.optional &= metric.optional;
                }
                None => metrics.push(metric.clone()),
            }
        }
        // A bound on calls that no metric is asked of is about their time.
        for policy in config.sites.iter().filter(|policy| policy.is_bound()) {
            let event = policy.event();
            if !metrics.iter().any(|metric| metric.guide && metric.event == event) {
                metrics.retain(|metric| (&metric.quantity, &metric.event) != (&Quantity::MpiTime, &event));
                metrics.push(Metric { quantity: Quantity::MpiTime, event, guide: true, optional: false });
            }
        }
        Ok(Self { ranks, config, groups, metrics })
    }

    /// Target of `group` for `metric`: its own, unless a `[[site]]` bounds the error of metrics on these calls.
    pub fn target(&self, group: &GroupPlan, metric: &Metric) -> Target {
        let Target::Bound { confidence, error } = group.target else { return group.target };
        let about = |policy: &&SitePolicy| policy.is_bound() && policy.event() == metric.event;
        match self.config.sites.iter().find(about) {
            Some(policy) => Target::Bound {
                confidence: policy.confidence.unwrap_or(confidence),
                error: policy.error.map_or(error, ErrorBound::Relative),
            },
            None => group.target,
        }
    }

    /// Number of strata that `group` is divided into while the job runs, `Some(None)` for as many as pay; `None` if it
    /// is not divided. Where it is not configured, a group with a bound gets `Some(None)` if it is large enough and
    /// decisions are predictive, from a census and without partners.
    pub fn divides(&self, group: &GroupPlan) -> Option<Option<u32>> {
        if let Some(strata) = self.config.divides(&group.name) {
            return Some(strata.k.map(|k| group.members.len().min(k.into()) as u32));
        }
        let sampling = &self.config.sampling;
        let beforehand = sampling.selection == Selection::Predictive
            && sampling.summaries == Summaries::Census
            && !sampling.partners;
        let least = sampling.floor.map_or(FLOOR, u64::from);
        let saves = group.members.len() - group.pinned.len() > least;
        let bound = matches!(group.target, Target::Bound { .. });
        (beforehand && saves && bound && !self.config.whole.contains(&group.name)).then_some(None)
    }

    /// `true` if everything is stored that estimates from the sample can be checked against: `output.verify`, unless
    /// summaries of some ranks are left out.
    pub fn verifies(&self) -> bool {
        self.config.output.verify && self.config.output.rank_summaries == RankSummaries::All
    }

    /// `true` if no summary of any rank's window is stored, as `output.rank_summaries` asks.
    pub fn leaves_out_summaries(&self) -> bool {
        self.config.output.rank_summaries == RankSummaries::Off
    }

    /// `true` if the trace has the summary of a rank's window, for a window that was `drawn` or was not.
    pub fn stores_summary(&self, drawn: bool) -> bool {
        if self.verifies() {
            return true;
        }
        match (self.config.output.rank_summaries, self.config.sampling.summaries) {
            (RankSummaries::Off, _) => false,
            (RankSummaries::All, Summaries::Census) => true,
            (RankSummaries::Sample, _) | (_, Summaries::Sampled) => drawn,
        }
    }

    /// The update interval that `window` is in.
    pub fn update_of(&self, window: WindowId) -> u64 {
        window.0 / u64::from(self.config.sampling.windows_per_update.max(1))
    }

    /// Index of the group of `rank`.
    pub fn group_of(&self, rank: Rank) -> usize {
        self.groups
            .iter()
            .position(|group| group.members.contains(rank))
            .expect("every rank of the job is in a group")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Group;

    #[test]
    fn ranks_in_no_group_form_all() {
        let mut config = Config::default();
        config.groups.push(Group {
            name: "middle".into(),
            members: RankSet::parse("2-4,7").unwrap().into(),
            target: DEFAULT_TARGET,
            pinned: RankSet::default(),
        });
        let plan = Plan::new(config.clone(), 10).unwrap();
        assert_eq!(plan.groups[1].name, "all");
        assert_eq!(plan.groups[1].members.to_string(), "0-1,5-6,8-9");
        assert_eq!(plan.group_of(Rank(7)), 0);
        assert_eq!(plan.group_of(Rank(8)), 1);
        assert_eq!(Plan::new(config, 4).unwrap().groups[0].members.to_string(), "2-3");
        let mut config = Config::default();
        config.agent.client = Rank(4);
        assert!(Plan::new(config.clone(), 5).is_ok());
        let error = Plan::new(config, 4).unwrap_err().to_string();
        assert_eq!(error, "agent.client names rank 4, but the job has ranks 0-3");
    }

    #[test]
    fn what_names_a_rank_outside_the_job_is_found_in_the_text() {
        let at = |text: &str| {
            let error = Plan::new(Config::parse(text).unwrap().0, 4).unwrap_err();
            error.place(text).unwrap()
        };
        assert_eq!(at("agent.client = 7"), (1, 16));
        let error = Plan::new(Config::parse("agent.client = 7").unwrap().0, 4).unwrap_err();
        assert_eq!(error.place("[agent"), None);
        assert_eq!(error.place(""), None);
    }

    #[test]
    fn built_in_quantities_are_always_summarised() {
        let plan = Plan::new(Config::default(), 1).unwrap();
        assert_eq!(plan.metrics.len(), Quantity::ALL.len());
        assert_eq!(plan.metrics.iter().filter(|metric| metric.guide).count(), 2);
    }

    /// A bound on calls of which no metric is a guide makes their time one: it is never without effect.
    #[test]
    fn a_bound_on_calls_has_a_guide_to_bind() {
        let bounded = |text: &str| -> Vec<(String, Target)> {
            let bound = "[[site]]\nmatch = 'MPI_Send'\nerror = 0.02\n";
            let plan = Plan::new(Config::parse(&format!("{text}{bound}")).unwrap().0, 4).unwrap();
            let on_calls = plan.metrics.iter().filter(|metric| metric.guide && metric.event != Event::Window);
            on_calls
                .map(|metric| (metric.name().into_owned(), plan.target(&plan.groups[0], metric)))
                .collect()
        };
        let target = Target::Bound { confidence: 0.9, error: ErrorBound::Relative(0.02) };
        let metric = |more: &str| format!("[[metric]]\nname = 'bytes.sent'\n{more}\n");
        assert_eq!(bounded(&metric("role = 'guide'")), [("mpi.time".to_owned(), target)]);
        assert_eq!(bounded(&metric("event = 'MPI_Send'")), [("mpi.time".to_owned(), target)]);
        let own = metric("event = 'MPI_Send'\nrole = 'guide'");
        assert_eq!(bounded(&own), [("bytes.sent".to_owned(), target)]);
    }

    #[test]
    fn groups_are_divided_unasked_where_it_can_only_be_told_beforehand_who_differs() {
        let divided = |sampling: &str, group: &str| -> Vec<Option<Option<u32>>> {
            let named = format!("[[group]]\nname = 'g'\nmembers = '0-39'\n{group}\n");
            let config = Config::parse(&format!("[sampling]\n{sampling}\n{named}")).unwrap().0;
            let plan = Plan::new(config, 57).unwrap();
            plan.groups.iter().map(|group| plan.divides(group)).collect()
        };
        let predictive = "selection = 'predictive'";
        assert_eq!(divided(predictive, ""), [Some(None); 2]);
        assert_eq!(divided(predictive, "stratify = 'off'"), [None, Some(None)]);
        assert_eq!(divided(predictive, "stratify = 'k-medoids'\nk = 3"), [Some(Some(3)), Some(None)]);
        assert_eq!(divided(predictive, "sample_size = 5"), [None, Some(None)]);
        // Seventeen ranks are in no group, as many as are drawn at least, or one more.
        assert_eq!(divided(&format!("{predictive}\nfloor = 17"), ""), [Some(None), None]);
        for other in ["", "partners = 'keep'", "summaries = 'sampled'"] {
            assert_eq!(divided(other, ""), [None; 2], "{other}");
        }
    }

    #[test]
    fn summaries_are_stored_of_whom_they_are_asked_for() {
        let stored = |rank_summaries, summaries| {
            let mut config = Config::default();
            config.output.rank_summaries = rank_summaries;
            config.sampling.summaries = summaries;
            let plan = Plan::new(config, 1).unwrap();
            (plan.stores_summary(true), plan.stores_summary(false))
        };
        assert_eq!(stored(RankSummaries::All, Summaries::Census), (true, true));
        assert_eq!(stored(RankSummaries::All, Summaries::Sampled), (true, false));
        assert_eq!(stored(RankSummaries::Sample, Summaries::Census), (true, false));
        assert_eq!(stored(RankSummaries::Off, Summaries::Census), (false, false));
        // Everything is recorded to check against, the client learns no more than otherwise.
        let mut config = Config::default();
        config.output.verify = true;
        config.sampling.summaries = Summaries::Sampled;
        assert!(Plan::new(config.clone(), 1).unwrap().stores_summary(false));
        config.output.rank_summaries = RankSummaries::Sample;
        let plan = Plan::new(config, 1).unwrap();
        assert!(!plan.stores_summary(false) && !plan.verifies());
    }
}
