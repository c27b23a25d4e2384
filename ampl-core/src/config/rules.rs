//! What no single key can tell: settings, metrics and groups checked against each other.

use super::error::Cause;
use super::tree::{Block, Report};
use super::{Config, Event, Group, Marker, Metric, Quantity, Sizing, Summaries, Target};
use crate::units::RankSet;

/// What was read and is still to be checked as a whole; numbers are byte offsets.
#[derive(Default)]
pub(super) struct Draft {
    /// Where `selection` and `sizing` stand, if there is a `[sampling]`.
    pub(super) sampling_at: Option<(usize, usize)>,
    /// `selection = "retrospective"` was written.
    pub(super) retrospective: bool,
    /// Where the first `[[metric]]` stands, right or wrong.
    pub(super) first_metric_at: Option<usize>,
    /// Name offset and metric.
    pub(super) metrics: Vec<(usize, Metric)>,
    /// Name offset, members offset and group.
    pub(super) groups: Vec<(usize, usize, Group)>,
}

impl Draft {
    /// Moves the draft into `config`; what is wrong goes to `report`.
    pub(super) fn complete(self, config: &mut Config, report: &mut Report<'_>) {
        self.check_combination(config, report);
        self.check_groups(report);
        let wall_guide = |metric: &Metric| {
            metric.guide && metric.quantity == Quantity::Wall && metric.event == Event::Window
        };
        if matches!(config.window.marker, Marker::Period(_)) {
            for (at, _) in self.metrics.iter().filter(|(_, metric)| wall_guide(metric)) {
                let cause = Cause::Combination {
                    settings: "guide 'wall' of whole windows and a 'period' marker",
                    instead: "every such window lasts one period; guide by mpi.time or compute.time, or use an mpi: marker",
                };
                report.error(*at, "metric.role", cause);
            }
        }
        if let Some(at) = self.first_metric_at {
            self.take_metrics(at, config, report);
        }
        config.groups = self.groups.into_iter().map(|(.., group)| group).collect();
    }

    fn check_combination(&self, config: &Config, report: &mut Report<'_>) {
        let Some((selection_at, sizing_at)) = self.sampling_at else { return };
        let sampled = config.sampling.summaries == Summaries::Sampled;
        if sampled && self.retrospective {
            let cause = Cause::Combination {
                settings: "summaries = \"sampled\" and selection = \"retrospective\"",
                instead: "use summaries = \"census\" or selection = \"predictive\"",
            };
            report.error(selection_at, "sampling.selection", cause);
        } else if self.retrospective {
            report.notice(
                selection_at,
                "sampling.selection",
                "retrospective selection is not in this version",
                "predictive is used",
            );
        }
        if !sampled && config.sampling.sizing == Sizing::Ampl2008 {
            let cause = Cause::Combination {
                settings: "summaries = \"census\" and sizing = \"ampl-2008\"",
                instead: "add summaries = \"sampled\", or use sizing = \"neyman\"",
            };
            report.error(sizing_at, "sampling.sizing", cause);
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
            let shared = earlier.iter().find_map(|(.., other)| {
                first_shared(&group.members, &other.members).map(|rank| (other.name.clone(), rank))
            });
            if let Some((other, rank)) = shared {
                report.error(*members_at, "group.members", Cause::Overlap { other, rank });
            }
        }
    }

    fn take_metrics(&self, first_at: usize, config: &mut Config, report: &mut Report<'_>) {
        let default_guides = std::mem::take(&mut config.metrics);
        config.metrics = self.metrics.iter().map(|(_, metric)| metric.clone()).collect();
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

/// Whether pinned ranks and sample size fit the members; what does not goes to `report`.
pub(super) fn group_is_sound(group: &Group, block: &Block<'_>, report: &mut Report<'_>) -> bool {
    let outside = group
        .pinned
        .ranges()
        .find(|&(low, high)| !group.members.ranges().any(|(first, last)| first <= low && high <= last));
    if let Some((low, high)) = outside {
        let ranks = RankSet::range(low, high).to_string();
        report.error(block.at("pinned"), block.path("pinned"), Cause::PinnedOutside { ranks });
        return false;
    }
    if let Target::Static { ranks } = group.target {
        let (least, most) = (group.pinned.len().max(1), group.members.len());
        if !(least..=most).contains(&u64::from(ranks)) {
            let expected = format!("from {least} (pinned) to {most} (members) ranks");
            let cause = Cause::Invalid { found: ranks.to_string(), expected };
            report.error(block.at("sample_size"), block.path("sample_size"), cause);
            return false;
        }
    }
    true
}

fn first_shared(set: &RankSet, other: &RankSet) -> Option<u32> {
    let shared = |(low, high): (u32, u32)| {
        other.ranges().filter(|&(a, b)| low <= b && a <= high).map(|(a, _)| low.max(a)).min()
    };
    set.ranges().filter_map(shared).min()
}

/// What is wrong with a template of the run directory, as what would be right.
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
