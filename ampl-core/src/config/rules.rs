//! Rules across keys: settings, metrics and groups checked against each other.

use super::error::Cause;
use super::tree::{Block, Report};
use super::{
    Config, Event, Group, GroupStrata, Journal, Keep, MOST_METRICS, Marker, Members, Metric, Quantity,
    Selection, SitePolicy, Sizing, Summaries, Target, UNGROUPED, form, perf, schema,
};
use crate::units::RankSet;

/// A valid number of strata, for errors.
pub(super) const STRATA_WANTED: &str = "from 1 to 8, and to as many strata as members, or \"auto\"";

/// A valid bound of a site, for errors.
pub(super) const SITE_WANTED: &str = "a fraction inside (0, 1), such as 0.05 or \"5%\"";

/// Values that were read and are still to be checked as a whole; numbers are byte offsets.
#[derive(Default)]
pub(super) struct Draft {
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
    pub(super) fn complete(self, blocks: &[Block<'_>], config: &mut Config, report: &mut Report<'_>) {
        let block = |table| blocks.iter().find(|block| block.table == table);
        check_combination((block("sampling"), block("output")), config, report);
        self.check_groups(report);
        self.check_strata(config, report);
        let wall_guide = |metric: &Metric| {
            metric.guide && metric.quantity == Quantity::Wall && metric.event == Event::Window
        };
        let marker = block("window").filter(|window| window.has("marker"));
        let is_found = config.window.marker != Marker::Auto || config.trace.structure == Keep::All;
        if let Some(window) = marker.filter(|_| !is_found) {
            let what =
                "time steps are found in the calls, which only trace.structure = \"all\" records all of";
            report.notice(window.at("marker"), "window.marker", what, "period:250ms is used");
        }
        // Of a marker that is wrong the kind is not known.
        let refused = block("window").is_some_and(|window| window.refused("marker"));
        if config.window.marker.is_clock() && !refused {
            for (at, _) in self.metrics.iter().filter(|(_, metric)| wall_guide(metric)) {
                let cause = Cause::Combination {
                    settings: "guide 'wall' of whole windows and a 'period' marker",
                    instead: "every such window lasts one period; guide by mpi.time or compute.time, or use a region:, mpi: or pcontrol marker",
                };
                report.error(*at, "metric.role", cause);
            }
        }
        if let Some(first) = block("metric") {
            self.take_metrics(first.at, config, report);
        }
        config.groups = self.groups.into_iter().map(|(.., group)| group).collect();
        config.strata = self.strata.into_iter().map(|(_, strata)| strata).collect();
        config.whole = self.whole;
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
                        Members::Program(_) | Members::Others => None,
                    });
                    if let Some((other, rank)) = shared {
                        report.error(*members_at, "group.members", Cause::Overlap { other, rank });
                    }
                }
                // The ranks of programs are known when the job starts.
                Members::Program(_) => {}
                Members::Others => {
                    let first = earlier.iter().find(|(.., other)| other.members == Members::Others);
                    if let Some((.., first)) = first {
                        let cause = Cause::SecondRest { first: first.name.clone() };
                        report.error(*name_at, "group.members", cause);
                    }
                    let pinned_elsewhere = self.groups.iter().find_map(|(.., other)| match &other.members {
                        Members::Listed(others) => first_shared(&group.pinned, others),
                        Members::Program(_) | Members::Others => None,
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

/// Checks settings of several tables against each other; the default of `selection` depends on others.
fn check_combination(
    (sampling, output): (Option<&Block<'_>>, Option<&Block<'_>>),
    config: &mut Config,
    report: &mut Report<'_>,
) {
    let sampled = config.sampling.summaries == Summaries::Sampled;
    // Retrospective decisions need every rank's summary of the window; partners must be drawn before it.
    let beforehand = sampled || config.sampling.partners;
    let asked = sampling.is_some_and(|sampling| sampling.has("selection"));
    let mut refuse = |block: &Block<'_>, name, settings, instead| {
        report.error(block.at(name), block.path(name), Cause::Combination { settings, instead });
    };
    if let Some(output) = output.filter(|_| config.output.verify && config.trace.structure == Keep::Off) {
        refuse(
            output,
            "verify",
            "verify = true and structure = \"off\"",
            "leave one of them out: calls that are not recorded cannot be compared",
        );
    }
    if beforehand && !asked {
        config.sampling.selection = Selection::Predictive;
    }
    let Some(sampling) = sampling else { return };
    if beforehand && config.sampling.selection == Selection::Retrospective {
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
        refuse(sampling, "selection", settings, instead);
    }
    if sampling.has("budget") && config.trace.stored() == Keep::All {
        refuse(
            sampling,
            "budget",
            "budget and timing = \"all\"",
            "leave one of them out: timing = \"all\" stores every call of every rank",
        );
    }
    if !sampled && config.sampling.sizing == Sizing::Ampl2008 {
        refuse(
            sampling,
            "sizing",
            "summaries = \"census\" and sizing = \"ampl-2008\"",
            "add summaries = \"sampled\", or use sizing = \"neyman\"",
        );
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
        Members::Program(_) | Members::Others => None,
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
                Members::Program(_) | Members::Others => format!("at least {least} (pinned) ranks"),
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
    let quantity = Quantity::by_name(name).ok_or_else(|| unknown(schema::nearest(name, known())))?;
    match &quantity {
        Quantity::Perf(counter) if perf::by_name(counter).is_none() => {
            let nearest = schema::nearest(counter, perf::COUNTERS.iter().map(|counter| counter.name));
            let nearest = nearest.and_then(perf::by_name).map(|counter| counter.metric);
            let allowed = perf::COUNTERS.iter().map(|counter| counter.metric).collect();
            Err(Cause::UnknownWord { word: name.to_owned(), allowed, nearest })
        }
        Quantity::User(_) if name.starts_with("PAPI_") => Err(unknown(Some("papi.NAME"))),
        // These families are ampl's: a name in them that it does not have is no name of the program's.
        Quantity::User(_) if ["mpi.", "compute.", "bytes."].iter().any(|family| name.starts_with(family)) => {
            Err(unknown(schema::nearest(name, known())))
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

/// The template of the run directory in `text`.
pub(super) fn template(text: &str) -> Result<String, Cause> {
    let bare =
        ["{app}", "{jobid}", "{time}"].iter().fold(text.to_owned(), |text, place| text.replace(place, ""));
    if text.is_empty() || text.contains(['\0', '\n']) || bare.contains(['{', '}']) {
        let expected = "a directory name in which {app}, {jobid} and {time} are replaced".into();
        return Err(Cause::Invalid { found: format!("{text:?}"), expected });
    }
    Ok(text.to_owned())
}

/// The template of the record's file in `text`.
pub(super) fn record(text: &str) -> Result<String, Cause> {
    let places = ["{app}", "{jobid}", "{time}", "{user}"];
    let bare = places.iter().fold(text.to_owned(), |text, place| text.replace(place, ""));
    if text.is_empty() || text.ends_with('/') || text.contains(['\0', '\n']) || bare.contains(['{', '}']) {
        let expected = "the name of a file in which {user}, {jobid}, {app} and {time} are replaced".into();
        return Err(Cause::Invalid { found: format!("{text:?}"), expected });
    }
    Ok(text.to_owned())
}

/// The permissions of a directory in `text`.
pub(super) fn mode(text: &str) -> Result<u32, Cause> {
    let digits = text.strip_prefix('0').unwrap_or(text);
    let mode = u32::from_str_radix(digits, 8).ok().filter(|mode| digits.len() == 3 && mode & 0o700 == 0o700);
    mode.ok_or_else(|| Cause::Invalid {
        found: format!("{text:?}"),
        expected: "three octal digits, the first of them 7, as \"750\"".into(),
    })
}

/// The place of journals that `text` names.
pub(super) fn journal(text: &str) -> Result<Journal, Cause> {
    Ok(match text {
        "node" => Journal::Node,
        "run" => Journal::Run,
        "off" => Journal::Off,
        // Without the slash a misspelt word would silently become a directory.
        path if path.contains('/') && !path.contains('\0') => Journal::Path(path.to_owned()),
        word => {
            let allowed = vec!["node", "run", "off", "./DIRECTORY"];
            let nearest = schema::nearest(word, ["node", "run", "off"]);
            return Err(Cause::UnknownWord { word: word.to_owned(), allowed, nearest });
        }
    })
}

/// The ranks of a group that `text` names.
pub(super) fn members(text: &str) -> Result<Members, Cause> {
    if text == "*" {
        return Ok(Members::Others);
    }
    match form::ranks(text)? {
        none if none.is_empty() => {
            let expected = "ranks, as in \"0-127,200\", or \"*\"".into();
            Err(Cause::Invalid { found: "empty".into(), expected })
        }
        listed => Ok(Members::Listed(listed)),
    }
}
