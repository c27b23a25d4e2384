//! [`Config::to_toml`]: resolved settings as text, for `run.toml`.

use toml_writer::{ToTomlValue, TomlStringBuilder};

use super::schema::{GroupTable, MetricTable, Settings, SiteTable};
use super::site::{Ranges, Site};
use super::{Config, ErrorBound, Group, Members, Metric, SitePolicy, Target};

impl Config {
    /// Every setting as TOML, defaults included; [`Config::parse`] reads it back to an equal configuration.
    ///
    /// The code of source lines is a comment: the next program may have it elsewhere.
    ///
    /// TOML has no integers above `i64::MAX`; a seed beyond cannot come from a file and would not read back.
    pub fn to_toml(&self) -> String {
        let mut out = String::new();
        self.sampling.write(&mut out);
        self.window.write(&mut out);
        self.metrics.iter().for_each(|metric| MetricTable::from(metric).write(&mut out));
        self.groups.iter().for_each(|group| self.group_table(group).write(&mut out));
        self.sites.iter().for_each(|site| SiteTable::from(site).write(&mut out));
        self.trace.write(&mut out);
        self.output.write(&mut out);
        self.agent.write(&mut out);
        self.hooks.write(&mut out);
        out
    }

    fn group_table(&self, group: &Group) -> GroupTable {
        let strata = self.divides(&group.name);
        let mut table = GroupTable {
            name: Some(group.name.clone()),
            members: group.members.clone(),
            program: match &group.members {
                Members::Program(pattern) => Some(pattern.clone()),
                _ => None,
            },
            pinned: group.pinned.clone(),
            stratify: match strata {
                Some(_) => Some(true),
                None => self.whole.contains(&group.name).then_some(false),
            },
            k: strata.and_then(|strata| strata.k),
            ..GroupTable::default()
        };
        match group.target {
            Target::Static { ranks } => table.sample_size = Some(ranks),
            Target::Bound { confidence, error } => {
                table.confidence = Some(confidence);
                match error {
                    ErrorBound::Relative(error) => table.error = Some(error),
                    ErrorBound::Absolute(error) => table.error_abs = Some(error),
                }
            }
        }
        table
    }
}

impl From<&Metric> for MetricTable {
    fn from(metric: &Metric) -> Self {
        let Metric { quantity, event, guide, optional } = metric.clone();
        Self { name: Some(quantity), event, guide, optional }
    }
}

impl From<&SitePolicy> for SiteTable {
    fn from(site: &SitePolicy) -> Self {
        let SitePolicy { matches, trace, confidence, error } = site.clone();
        Self { matches: Some(matches), trace, confidence, error }
    }
}

/// Behind the value that names `site`: what is matched, where the name does not say it.
pub(super) fn code(site: Option<&Site>) -> String {
    match site {
        // A file's name may break a line, a comment must not.
        Some(Site::Line { code, .. }) if !code.is_empty() => {
            format!(" # {}", Ranges(code).to_string().escape_debug())
        }
        _ => String::new(),
    }
}

/// `text` as TOML writes it, in quotes.
pub fn quoted(text: &str) -> String {
    TomlStringBuilder::new(text).as_default().to_toml_value()
}
