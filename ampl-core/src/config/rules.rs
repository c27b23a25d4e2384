//! Rules across keys: settings, metrics and groups checked against each other.

use super::error::Cause;
use super::tree::{Block, Report};
use super::{
    Config, Event, Group, GroupStrata, Keep, MOST_METRICS, Members, Metric, Quantity, Selection, SitePolicy,
    Sizing, Summaries, Target, UNGROUPED, keys, perf,
};
use crate::units::RankSet;

/// Values that were read and are still to be checked as a whole; numbers are byte offsets.
#[derive(Default)]
pub(super) struct Draft {
    /// Offsets of `selection` and `sizing`, if there is a `[sampling]`.
    pub(super) sampling_at: Option<(usize, usize)>,
    /// Value of `selection`, if it is written.
    pub(super) selection: Option<Selection>,
    /// Offset of `budget`, if it is written.
    pub(super) budget_at: Option<usize>,
    /// Offset of `verify`, if there is an `[output]`.
    pub(super) verify_at: Option<usize>,
    /// Offset of the first `[[metric]]`, right or wrong.
    pub(super) first_metric_at: Option<usize>,
    /// Name offset and metric.
    pub(super) metrics: Vec<(usize, Metric)>,
    /// Name offset, members offset and group.
    pub(super) groups: Vec<(usize, usize, Group)>,
    /// Offset of a group's `stratify`, and the strata it asks for.
    pub(super) strata: Vec<(usize, GroupStrata)>,
    /// Groups that are not to be divided.
    pub(super) whole: Vec<String>,
}

impl Draft {
    /// Takes a metric, whose name stands `at`; of one that is there already its role only.
    pub(super) fn take_metric(&mut self, at: usize, metric: Metric, report: &mut Report<'_>) {
        let same = |other: &Metric| other.quantity == metric.quantity && other.event == metric.event;
        let Some((_, first)) = self.metrics.iter_mut().find(|(_, other)| same(other)) else {
            return self.metrics.push((at, metric));
        };
        first.guide |= metric.guide;
        first.optional &= metric.optional;
        report.notice(at, "metric.name", "an earlier [[metric]] has the same name and event", "they are one");
    }

    /// Moves the draft into `config`; what is wrong goes to `report`.
    pub(super) fn complete(self, config: &mut Config, report: &mut Report<'_>) {
        self.check_combination(config, report);
        self.check_groups(report);
        self.check_strata(config, report);
        let wall_guide = |metric: &Metric| {
            metric.guide && metric.quantity == Quantity::Wall && metric.event == Event::Window
        };
        if config.window.marker.is_clock() {
            for (at, _) in self.metrics.iter().filter(|(_, metric)| wall_guide(metric)) {
                let cause = Cause::Combination {
                    settings: "guide 'wall' of whole windows and a 'period' marker",
                    instead: "every such window lasts one period; guide by mpi.time or compute.time, or use a region:, mpi: or pcontrol marker",
                };
                report.error(*at, "metric.role", cause);
            }
        }
        if let Some(at) = self.first_metric_at {
            self.take_metrics(at, config, report);
        }
        config.groups = self.groups.into_iter().map(|(.., group)| group).collect();
        config.strata = self.strata.into_iter().map(|(_, strata)| strata).collect();
        config.whole = self.whole;
    }

    fn check_combination(&self, config: &mut Config, report: &mut Report<'_>) {
        let sampled = config.sampling.summaries == Summaries::Sampled;
        // Retrospective decisions need every rank's summary of the window; partners must be drawn before it.
        let beforehand = sampled || config.sampling.partners;
        config.sampling.selection = self.selection.unwrap_or(match beforehand {
            true => Selection::Predictive,
            false => Selection::Retrospective,
        });
        if let Some(at) =
            self.verify_at.filter(|_| config.output.verify && config.trace.structure == Keep::Off)
        {
            let cause = Cause::Combination {
                settings: "verify = true and structure = \"off\"",
                instead: "leave one of them out: calls that are not recorded cannot be compared",
            };
            report.error(at, "output.verify", cause);
        }
        let Some((selection_at, sizing_at)) = self.sampling_at else { return };
        if beforehand && self.selection == Some(Selection::Retrospective) {
            let (settings, instead) = match sampled {
                true => (
                    "summaries = \"sampled\" and selection = \"retrospective\"",
                    "use summaries = \"census\" or selection = \"predictive\"",
                ),
                false => (
                    "partners = \"keep\" and selection = \"retrospective\"",
                    "use partners = \"off\" or selection = \"predictive\"",
                ),
            };
            report.error(selection_at, "sampling.selection", Cause::Combination { settings, instead });
        }
        if let Some(at) = self.budget_at.filter(|_| config.trace.stored() == Keep::All) {
            let cause = Cause::Combination {
                settings: "budget and timing = \"all\"",
                instead: "leave one of them out: timing = \"all\" stores every call of every rank",
            };
            report.error(at, "sampling.budget", cause);
        }
        if !sampled && config.sampling.sizing == Sizing::Ampl2008 {
            let cause = Cause::Combination {
                settings: "summaries = \"census\" and sizing = \"ampl-2008\"",
                instead: "add summaries = \"sampled\", or use sizing = \"neyman\"",
            };
            report.error(sizing_at, "sampling.sizing", cause);
        }
    }

    fn check_strata(&self, config: &Config, report: &mut Report<'_>) {
        let sampling = &config.sampling;
        let (settings, instead) = if sampling.summaries == Summaries::Sampled {
            (
                "stratify = \"k-medoids\" and summaries = \"sampled\"",
                "use summaries = \"census\": how many ranks a stratum has, and how they vary, every rank tells",
            )
        } else if sampling.partners {
            (
                "stratify = \"k-medoids\" and partners = \"keep\"",
                "use partners = \"off\": a rank does not know which stratum a partner belongs to",
            )
        } else {
            return;
        };
        for (at, _) in &self.strata {
            report.error(*at, "group.stratify", Cause::Combination { settings, instead });
        }
    }

    fn check_groups(&self, report: &mut Report<'_>) {
        for (index, (name_at, members_at, group)) in self.groups.iter().enumerate() {
            let earlier = &self.groups[..index];
            if let Some((first_at, ..)) = earlier.iter().find(|(.., other)| other.name == group.name) {
                let (first_line, _) = report.place(*first_at);
                report.error(
                    *name_at,
                    "group.name",
                    Cause::Duplicate { name: group.name.clone(), first_line },
                );
            }
            match &group.members {
                Members::Listed(listed) => {
                    let shared = earlier.iter().find_map(|(.., other)| match &other.members {
                        Members::Listed(others) => Some((other.name.clone(), first_shared(listed, others)?)),
                        Members::Others => None,
                    });
                    if let Some((other, rank)) = shared {
                        report.error(*members_at, "group.members", Cause::Overlap { other, rank });
                    }
                }
                Members::Others => {
                    let first = earlier.iter().find(|(.., other)| other.members == Members::Others);
                    if let Some((.., first)) = first {
                        let cause = Cause::SecondRest { first: first.name.clone() };
                        report.error(*name_at, "group.members", cause);
                    }
                    let pinned_elsewhere = self.groups.iter().find_map(|(.., other)| match &other.members {
                        Members::Listed(others) => first_shared(&group.pinned, others),
                        Members::Others => None,
                    });
                    if let Some(rank) = pinned_elsewhere {
                        let ranks = rank.to_string();
                        report.error(*members_at, "group.pinned", Cause::PinnedOutside { ranks });
                    }
                }
            }
        }
    }

    fn take_metrics(&self, first_at: usize, config: &mut Config, report: &mut Report<'_>) {
        let default_guides = std::mem::take(&mut config.metrics);
        config.metrics = self.metrics.iter().map(|(_, metric)| metric.clone()).collect();
        if let Some((at, _)) = self.metrics.get(MOST_METRICS) {
            let expected = format!("at most {MOST_METRICS} metrics");
            report.error(*at, "metric", Cause::Invalid { found: self.metrics.len().to_string(), expected });
        }
        // A bound without a guide bounds nothing; the documented default guides step in.
        if !config.metrics.iter().any(|metric| metric.guide) {
            config.metrics.extend(default_guides);
            report.notice(
                first_at,
                "metric.role",
                "no metric has role = \"guide\"",
                "mpi.time and compute.time guide the sample",
            );
        }
    }
}

/// Notes a policy for the same calls as one of the `earlier` ones: only the first bound counts, and the first `trace`.
pub(super) fn notice_second_policy(
    policy: &SitePolicy,
    earlier: &[SitePolicy],
    block: &Block<'_>,
    report: &mut Report<'_>,
) {
    let mut same = earlier.iter().filter(|other| other.matches == policy.matches).peekable();
    if same.peek().is_none() {
        return;
    }
    let name = policy.matches.name();
    let (what, instead) = if policy.is_bound() && same.any(SitePolicy::is_bound) {
        (
            format!("an earlier [[site]] already bounds the error of {name}"),
            "this one's 'error' and 'confidence' have no effect: put them there",
        )
    } else if block.has("trace") || !policy.is_bound() {
        (
            format!("an earlier [[site]] already says whether {name} is traced"),
            "this one's 'trace' has no effect: put it there",
        )
    } else {
        return;
    };
    report.notice(block.at("match"), "site.match", what, instead);
}

/// `true` if pinned ranks and sample size fit the members; errors go to `report`.
pub(super) fn group_is_sound(group: &Group, block: &Block<'_>, report: &mut Report<'_>) -> bool {
    let outside = match &group.members {
        Members::Listed(listed) => first_outside(&group.pinned, listed),
        Members::Others => None,
    };
    if let Some((low, high)) = outside {
        let ranks = RankSet::range(low, high).to_string();
        report.error(block.at("pinned"), block.path("pinned"), Cause::PinnedOutside { ranks });
        return false;
    }
    if let Target::Static { ranks } = group.target {
        let (least, most) = (group.pinned.len().max(1), most_members(group));
        if !(least..=most).contains(&u64::from(ranks)) {
            let expected = match group.members {
                Members::Listed(_) => format!("from {least} (pinned) to {most} (members) ranks"),
                Members::Others => format!("at least {least} (pinned) ranks"),
            };
            let cause = Cause::Invalid { found: ranks.to_string(), expected };
            report.error(block.at("sample_size"), block.path("sample_size"), cause);
            return false;
        }
    }
    true
}

/// Most ranks that the group may have.
pub(super) fn most_members(group: &Group) -> u64 {
    group.members.listed().map_or(u64::from(u32::MAX), RankSet::len)
}

/// The quantity that a metric of that name measures.
///
/// Any name that is not ampl's is the program's own, except one that must have been meant for ampl's.
pub(super) fn quantity(name: &str) -> Result<Quantity, Cause> {
    let known = || Quantity::ALL.map(|quantity| quantity.fixed_name());
    let unknown = |nearest| {
        let mut allowed = known().to_vec();
        allowed.extend(["perf.NAME", "papi.NAME", "a metric that the program declares"]);
        Cause::UnknownWord { word: name.to_owned(), allowed, nearest }
    };
    let quantity = Quantity::by_name(name).ok_or_else(|| unknown(keys::nearest(name, known())))?;
    match &quantity {
        Quantity::Perf(counter) if perf::by_name(counter).is_none() => {
            let nearest = keys::nearest(counter, perf::COUNTERS.iter().map(|counter| counter.name));
            let nearest = nearest.and_then(perf::by_name).map(|counter| counter.metric);
            let allowed = perf::COUNTERS.iter().map(|counter| counter.metric).collect();
            Err(Cause::UnknownWord { word: name.to_owned(), allowed, nearest })
        }
        Quantity::User(_) if name.starts_with("PAPI_") => Err(unknown(Some("papi.NAME"))),
        // These families are ampl's: a name in them that it does not have is no name of the program's.
        Quantity::User(_) if ["mpi.", "compute.", "bytes."].iter().any(|family| name.starts_with(family)) => {
            Err(unknown(keys::nearest(name, known())))
        }
        Quantity::User(_) => {
            let counters = perf::COUNTERS.iter().map(|counter| counter.metric);
            match known().into_iter().chain(counters).find(|known| is_slip(name, known)) {
                Some(meant) => Err(unknown(Some(meant))),
                None => Ok(quantity),
            }
        }
        _ => Ok(quantity),
    }
}

/// `true` if `name` is `known` with other capitals or signs, or with one letter lost, doubled or out of order.
/// Another letter makes another word: "cells" is no mistyped "calls".
fn is_slip(name: &str, known: &str) -> bool {
    let fold = |text: &str| text.to_lowercase().replace(['-', '_'], ".");
    let (name, known) = (fold(name), fold(known));
    let other_letter = strsim::hamming(&name, &known) == Ok(1);
    strsim::damerau_levenshtein(&name, &known) <= 1 && !other_letter
}

/// Error of observing `metric` over its event; `None` if that is possible.
pub(super) fn unobservable(metric: &Metric) -> Option<Cause> {
    if matches!(metric.quantity, Quantity::Perf(_) | Quantity::Papi(_)) && metric.event != Event::Window {
        // One system call per window is cheap, one per call is not.
        return Some(Cause::Combination {
            settings: "a counter and an event inside the window",
            instead: "counters are read when windows end: use event = \"*\"",
        });
    }
    if !matches!(metric.event, Event::Function(_) | Event::Site(_)) {
        return None;
    }
    let (settings, instead) = match metric.quantity {
        Quantity::User(_) => (
            "the program's own metric and an MPI call",
            "use region:NAME, path:OUTER>INNER or \"*\"; the program does not report from inside MPI",
        ),
        Quantity::ComputeTime => (
            "compute.time and an MPI call",
            "use region:NAME, path:OUTER>INNER or \"*\", or name = \"mpi.time\"; all of a call's time is inside MPI",
        ),
        _ => return None,
    };
    Some(Cause::Combination { settings, instead })
}

/// Description of a valid group name where `name` is none; `others` marks the group of every rank in no other group.
pub(super) fn group_name_fault(name: &str, others: bool) -> Option<String> {
    if name.trim().is_empty() || name.chars().any(char::is_control) {
        return Some("a name on one line".into());
    }
    // Two groups of one name could not be told apart.
    (name.trim() == UNGROUPED && !(others && name == UNGROUPED)).then(|| {
        format!("another name: ampl calls the ranks in no group \"{UNGROUPED}\", so this one has no members")
    })
}

/// The first rank in both sets.
fn first_shared(set: &RankSet, other: &RankSet) -> Option<u32> {
    let (mut ours, mut theirs) = (set.ranges().peekable(), other.ranges().peekable());
    while let (Some(&(low, high)), Some(&(first, last))) = (ours.peek(), theirs.peek()) {
        if high < first {
            ours.next();
        } else if last < low {
            theirs.next();
        } else {
            return Some(low.max(first));
        }
    }
    None
}

/// The first range of `set` that is not all in `other`.
fn first_outside(set: &RankSet, other: &RankSet) -> Option<(u32, u32)> {
    let mut theirs = other.ranges().peekable();
    set.ranges().find(|&(low, high)| {
        while theirs.next_if(|&(_, last)| last < low).is_some() {}
        theirs.peek().is_none_or(|&(first, last)| low < first || last < high)
    })
}

/// Description of a valid template of the run directory where `template` is none.
pub(super) fn template_fault(template: &str) -> Option<String> {
    let allowed = "a directory name in which {app}, {jobid} and {time} are replaced";
    if template.is_empty() || template.contains('\0') || template.contains('\n') {
        return Some(allowed.into());
    }
    let bare = ["{app}", "{jobid}", "{time}"]
        .iter()
        .fold(template.to_owned(), |text, place| text.replace(place, ""));
    bare.contains(['{', '}']).then(|| allowed.into())
}
