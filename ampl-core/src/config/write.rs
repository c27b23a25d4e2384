//! [`Config::to_toml`]: resolved settings as text, for `run.toml`.

use std::fmt::Write;

use toml_writer::{ToTomlValue, TomlStringBuilder};

use super::site::{Ranges, Site};
use super::{
    Config, ErrorBound, Event, Group, Journal, Keep, Marker, Mechanism, RankSummaries, Selection, SiteMatch,
    SitePolicy, SiteTrace, Sizing, Summaries, Target, Trace,
};

impl Config {
    /// Every setting as TOML, defaults included; [`Config::parse`] reads it back to an equal configuration.
    ///
    /// The code of source lines is a comment: the next program may have it elsewhere.
    ///
    /// TOML has no integers above `i64::MAX`; a seed beyond cannot come from a file and would not read back.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        self.write(&mut text).expect("a String takes everything");
        text
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        let sampling = &self.sampling;
        writeln!(out, "[sampling]")?;
        writeln!(out, "windows_per_update = {}", sampling.windows_per_update)?;
        if let Some(floor) = sampling.floor {
            writeln!(out, "floor = {floor}")?;
        }
        let mechanism = match sampling.update_mechanism {
            Mechanism::Subset => "subset",
            Mechanism::Global => "global",
        };
        writeln!(out, "update_mechanism = \"{mechanism}\"")?;
        let summaries = match sampling.summaries {
            Summaries::Census => "census",
            Summaries::Sampled => "sampled",
        };
        writeln!(out, "summaries = \"{summaries}\"")?;
        let selection = match sampling.selection {
            Selection::Predictive => "predictive",
            Selection::Retrospective => "retrospective",
        };
        writeln!(out, "selection = \"{selection}\"")?;
        let sizing = match sampling.sizing {
            Sizing::Neyman => "neyman",
            Sizing::Ampl2008 => "ampl-2008",
        };
        writeln!(out, "sizing = \"{sizing}\"")?;
        writeln!(out, "seed = {}", sampling.seed)?;
        if let Some(budget) = sampling.budget {
            // {} never writes an exponent, which a rate cannot have.
            writeln!(out, "budget = \"{budget}B/s\"")?;
        }
        let partners = if sampling.partners { "keep" } else { "off" };
        writeln!(out, "partners = \"{partners}\"")?;
        let site = match &self.window.marker {
            Marker::Mpi { site, .. } => site.as_ref(),
            _ => None,
        };
        writeln!(out, "\n[window]\nmarker = {}{}", quoted(&self.window.marker.to_string()), code(site))?;
        writeln!(out, "every = {}", self.window.every)?;
        for metric in &self.metrics {
            let role = if metric.guide { "guide" } else { "report" };
            let (name, event) = (quoted(&metric.name()), quoted(&metric.event.name()));
            let site = match &metric.event {
                Event::Site(site) => Some(site),
                _ => None,
            };
            let code = code(site);
            writeln!(out, "\n[[metric]]\nname = {name}\nevent = {event}{code}\nrole = \"{role}\"")?;
            writeln!(out, "optional = {}", metric.optional)?;
        }
        for group in &self.groups {
            write_group(group, out)?;
            if let Some(strata) = self.divides(&group.name) {
                writeln!(out, "stratify = \"k-medoids\"")?;
                strata.k.map_or(Ok(()), |k| writeln!(out, "k = {k}"))?;
            }
            if self.whole.contains(&group.name) {
                writeln!(out, "stratify = \"off\"")?;
            }
        }
        for site in &self.sites {
            write_site(site, out)?;
        }
        let keep = |keep| match keep {
            Keep::Kept => "kept",
            Keep::All => "all",
            Keep::Off => "off",
        };
        let Trace { structure, timing, time_error, time_floor_ns, call_sites, call_path_depth } = self.trace;
        let (structure, timing) = (keep(structure), keep(timing));
        writeln!(out, "\n[trace]\nstructure = \"{structure}\"\ntiming = \"{timing}\"")?;
        writeln!(out, "time_error = {time_error}\ntime_floor = \"{time_floor_ns}ns\"")?;
        writeln!(out, "call_sites = {call_sites}\ncall_path_depth = {call_path_depth}")?;
        let journal = match &self.output.journal {
            Journal::Node => "node",
            Journal::Run => "run",
            Journal::Off => "off",
            Journal::Path(path) => path,
        };
        writeln!(out, "\n[output]\ndir = {}\njournal = {}", quoted(&self.output.dir), quoted(journal))?;
        let rank_summaries = match self.output.rank_summaries {
            RankSummaries::All => "all",
            RankSummaries::Sample => "sample",
            RankSummaries::Off => "off",
        };
        writeln!(out, "rank_summaries = \"{rank_summaries}\"\nverify = {}", self.output.verify)?;
        writeln!(out, "\n[agent]\nclient = {}", self.agent.client.0)?;
        match self.agent.max_overhead {
            Some(share) => writeln!(out, "max_overhead = {share:?}"),
            None => Ok(()),
        }
    }
}

fn write_group(group: &Group, out: &mut String) -> std::fmt::Result {
    writeln!(out, "\n[[group]]\nname = {}\nmembers = \"{}\"", quoted(&group.name), group.members)?;
    match group.target {
        // {:?} prints the shortest digits that read back, always with a point or an exponent.
        Target::Bound { confidence, error } => {
            writeln!(out, "confidence = {confidence:?}")?;
            match error {
                ErrorBound::Relative(error) => writeln!(out, "error = {error:?}")?,
                ErrorBound::Absolute(error) => writeln!(out, "error_abs = {error:?}")?,
            }
        }
        Target::Static { ranks } => writeln!(out, "sample_size = {ranks}")?,
    }
    if !group.pinned.is_empty() {
        writeln!(out, "pinned = \"{}\"", group.pinned)?;
    }
    Ok(())
}

fn write_site(site: &SitePolicy, out: &mut String) -> std::fmt::Result {
    let trace = match site.trace {
        SiteTrace::On => "on",
        SiteTrace::Off => "off",
        SiteTrace::Aggregate => "aggregate",
    };
    let code = match &site.matches {
        SiteMatch::Site(site) => code(Some(site)),
        SiteMatch::Function(_) => String::new(),
    };
    writeln!(out, "\n[[site]]\nmatch = {}{code}\ntrace = \"{trace}\"", quoted(&site.matches.name()))?;
    for (name, value) in [("confidence", site.confidence), ("error", site.error)] {
        if let Some(value) = value {
            writeln!(out, "{name} = {value:?}")?;
        }
    }
    Ok(())
}

/// Behind the value that names `site`: what is matched, where the name does not say it.
fn code(site: Option<&Site>) -> String {
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
