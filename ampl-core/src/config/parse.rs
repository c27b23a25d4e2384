//! [`Config::parse`]: from text to settings, table by table.

use toml::de::DeTable;

use super::error::{Cause, ConfigErrors, Notice};
use super::rules::{self, Draft};
use super::schema::{GroupTable, MetricTable, SiteTable};
use super::tree::{self, Block, Report};
use super::{Config, ErrorBound, Group, GroupStrata, Members, Metric, SitePolicy, Target};

impl Config {
    /// The settings in `text` (TOML), and what was accepted without doing quite what it says.
    ///
    /// # Errors
    /// Everything found wrong, in the order of the text, as long as that is no more than people read. A text that is no
    /// TOML gives its first error only.
    pub fn parse(text: &str) -> Result<(Self, Vec<Notice>), ConfigErrors> {
        let mut report = Report::new(text);
        let document = tree::document(text).unwrap_or_else(|(at, cause)| {
            report.error(at, "", cause);
            DeTable::new()
        });
        let mut blocks = tree::read(&document, &mut report);
        let mut config = Self::default();
        let mut draft = Draft::default();
        for block in &mut blocks {
            if report.is_full() {
                break;
            }
            match block.table {
                "sampling" => config.sampling = block.settings(&mut report),
                "window" => config.window = block.settings(&mut report),
                "trace" => config.trace = block.settings(&mut report),
                "output" => config.output = block.settings(&mut report),
                "agent" => config.agent = block.settings(&mut report),
                "hooks" => config.hooks = block.settings(&mut report),
                "metric" => {
                    if let Some(metric) = metric(block, &mut report) {
                        draft.take_metric(block.at("name"), metric, &mut report);
                    }
                }
                "group" => group(block, &mut draft, &mut report),
                "site" => {
                    let policy = site(block, &mut report);
                    if let Some(policy) = &policy {
                        rules::notice_second_policy(policy, &config.sites, block, &mut report);
                    }
                    config.sites.extend(policy);
                }
                _ => {}
            }
        }
        draft.complete(&blocks, &mut config, &mut report);
        report.finish().map(|notices| (config, notices))
    }

    /// Line and column of the value of `key` in `text`, in the table of that index among those of its name: for what
    /// is found to be wrong when more is known than the text.
    pub fn place(text: &str, key: &str, index: usize) -> Option<(usize, usize)> {
        let mut report = Report::new(text);
        let document = tree::document(text).ok()?;
        let (table, name) = key.split_once('.')?;
        let blocks = tree::read(&document, &mut report);
        let block = blocks.iter().filter(|block| block.table == table).nth(index)?;
        block.has(name).then(|| report.place(block.at(name)))
    }
}

/// The metric, unless it is wrong.
fn metric(block: &mut Block<'_>, report: &mut Report<'_>) -> Option<Metric> {
    let MetricTable { name, event, guide, optional } = block.settings(report);
    let Some(quantity) = name else {
        missing(block, "name", "name = \"mpi.time\"", report);
        return None;
    };
    let metric = Metric { quantity, event, guide, optional };
    if let Some(cause) = rules::unobservable(&metric) {
        report.error(block.at("event"), block.path("event"), cause);
        return None;
    }
    // Rules about events must not judge the default instead.
    (!block.refused("event")).then_some(metric)
}

/// The site policy, unless it is wrong.
fn site(block: &mut Block<'_>, report: &mut Report<'_>) -> Option<SitePolicy> {
    let SiteTable { matches, trace, confidence, error } = block.settings(report);
    if matches.is_none() {
        missing(block, "match", "match = \"MPI_Waitsome\"", report);
    }
    Some(SitePolicy { matches: matches?, trace, confidence, error })
}

/// Adds the group to `draft`, unless it is wrong.
fn group(block: &mut Block<'_>, draft: &mut Draft, report: &mut Report<'_>) {
    let table: GroupTable = block.settings(report);
    let name = group_name(&table, block, report);
    let target = target(&table, block, report);
    if block.has("program") && block.has("members") {
        let cause = Cause::Conflict { with: "group.members" };
        return report.error(block.at("program"), block.path("program"), cause);
    }
    let refused = block.refused("members") || block.refused("program");
    let (Some(name), Some(target), false) = (name, target, refused) else { return };
    let members = table.program.map_or(table.members, Members::Program);
    let group = Group { name, members, target, pinned: table.pinned };
    if !rules::group_is_sound(&group, block, report) {
        return;
    }
    match (table.stratify, table.k) {
        (Some(true), k) => {
            if block.has("sample_size") {
                let with = "group.sample_size";
                report.error(block.at("stratify"), block.path("stratify"), Cause::Conflict { with });
            } else if k.is_some_and(|k| u64::from(k) > rules::most_members(&group)) {
                let found = k.unwrap_or_default().to_string();
                let cause = Cause::Invalid { found, expected: rules::STRATA_WANTED.into() };
                report.error(block.at("k"), block.path("k"), cause);
            } else {
                draft.strata.push((block.at("stratify"), GroupStrata { group: group.name.clone(), k }));
            }
        }
        (Some(false), Some(_)) => {
            let settings = "stratify = \"off\" and k";
            let instead = "leave k out, or use stratify = \"k-medoids\"";
            let cause = Cause::Combination { settings, instead };
            report.error(block.at("k"), block.path("stratify"), cause);
        }
        (None, Some(_)) if !block.refused("stratify") => {
            let cause = Cause::Missing { example: "stratify = \"k-medoids\"" };
            report.error(block.at("k"), block.path("stratify"), cause);
        }
        _ => {}
    }
    draft.whole.extend((table.stratify == Some(false)).then(|| group.name.clone()));
    // What may be wrong with a group of all others is whom it pins.
    let ranks = match group.members {
        Members::Listed(_) => "members",
        Members::Program(_) | Members::Others => "pinned",
    };
    draft.groups.push((block.at("name"), block.at(ranks), group));
}

fn group_name(table: &GroupTable, block: &Block<'_>, report: &mut Report<'_>) -> Option<String> {
    let others = table.members == Members::Others
        && table.program.is_none()
        && !block.refused("members")
        && !block.refused("program");
    let Some(name) = &table.name else {
        missing(block, "name", "name = \"NAME\"", report);
        return None;
    };
    if let Some(expected) = rules::group_name_fault(name, others) {
        let cause = Cause::Invalid { found: format!("{name:?}"), expected };
        report.error(block.at("name"), block.path("name"), cause);
        return None;
    }
    Some(name.clone())
}

/// Target of the group's sample; `None` where that is wrong.
fn target(table: &GroupTable, block: &Block<'_>, report: &mut Report<'_>) -> Option<Target> {
    let mut sound = true;
    for (name, other, with) in [
        ("error_abs", "error", "group.error"),
        ("confidence", "sample_size", "group.sample_size"),
        ("error", "sample_size", "group.sample_size"),
        ("error_abs", "sample_size", "group.sample_size"),
    ] {
        if block.has(name) && block.has(other) {
            report.error(block.at(name), block.path(name), Cause::Conflict { with });
            sound = false;
        }
    }
    if !sound || block.refused("sample_size") {
        return None;
    }
    let (default_confidence, default_error) = super::DEFAULT_BOUND;
    let relative = || table.error.map(ErrorBound::Relative);
    Some(match table.sample_size {
        Some(ranks) => Target::Static { ranks },
        None => Target::Bound {
            confidence: table.confidence.unwrap_or(default_confidence),
            error: table.error_abs.map(ErrorBound::Absolute).or_else(relative).unwrap_or(default_error),
        },
    })
}

fn missing(block: &Block<'_>, name: &str, example: &'static str, report: &mut Report<'_>) {
    // A value that was refused is reported already.
    if !block.refused(name) && !block.has(name) {
        report.error(block.at, block.path(name), Cause::Missing { example });
    }
}
