//! Settings without the names in them.

use ampl_core::config::site::{CodeRange, Site};
use ampl_core::config::{
    Config, Event, Hooks, Journal, Marker, Members, Output, Quantity, RegionFilter, SiteMatch, Trace,
    UNGROUPED,
};

use super::names::{Kind, Names};

/// The settings in `text`, with numbers in place of names; empty where they cannot be read.
pub fn anonymous(names: &mut Names, text: &str) -> String {
    let Ok((mut config, _)) = Config::parse(text) else { return String::new() };
    if let Marker::Region(region) = &mut config.window.marker {
        *region = names.of(Kind::Region, region);
    }
    if let Marker::Mpi { site: Some(site), .. } = &mut config.window.marker {
        *site = self::site(names, site);
    }
    for metric in &mut config.metrics {
        // PAPI's names are those of a machine's or a library's events.
        if let Quantity::User(name) | Quantity::Papi(name) = &mut metric.quantity {
            *name = names.of(Kind::Metric, name);
        }
        metric.event = match &metric.event {
            Event::Region(region) => Event::Region(names.of(Kind::Region, region)),
            Event::Path(regions) => {
                Event::Path(regions.iter().map(|region| names.of(Kind::Region, region)).collect())
            }
            Event::Site(site) => Event::Site(self::site(names, site)),
            other => other.clone(),
        };
    }
    // Of a program that no rank runs the name is all that there is.
    config.groups.retain(|group| !matches!(group.members, Members::Program(_)));
    for group in &mut config.groups {
        group.name = self::group(names, &group.name);
    }
    for strata in &mut config.strata {
        strata.group = self::group(names, &strata.group);
    }
    for policy in &mut config.sites {
        if let SiteMatch::Site(site) = &mut policy.matches {
            *site = self::site(names, site);
        }
    }
    config.whole = config.whole.iter().map(|name| self::group(names, name)).collect();
    let Output { journal, rank_summaries, verify, .. } = config.output;
    let journal = if matches!(journal, Journal::Path(_)) { Journal::Node } else { journal };
    config.output = Output { journal, rank_summaries, verify, ..Output::default() };
    config.trace = Trace { regions: RegionFilter::default(), ..config.trace };
    config.hooks = Hooks { filter: RegionFilter::default(), ..config.hooks };
    config.to_toml()
}

/// The name of a group; that of all ranks without one is nobody's.
pub fn group(names: &mut Names, name: &str) -> String {
    if name == UNGROUPED { name.to_owned() } else { names.of(Kind::Group, name) }
}

fn site(names: &mut Names, site: &Site) -> Site {
    let mut ranges = |ranges: &[CodeRange]| -> Vec<CodeRange> {
        let renamed = |range: &CodeRange| CodeRange { module: names.module(&range.module), ..range.clone() };
        ranges.iter().map(renamed).collect()
    };
    match site {
        Site::Code(code) => Site::Code(ranges(code)),
        Site::Line { file, line, code } => {
            let code = ranges(code);
            Site::Line { file: names.of(Kind::File, file), line: *line, code }
        }
    }
}

/// An event as rows of estimates name it.
pub fn event(names: &mut Names, text: &str) -> String {
    if let Some(region) = text.strip_prefix("region:") {
        return format!("region:{}", names.of(Kind::Region, region));
    }
    if let Some(path) = text.strip_prefix("path:") {
        let regions: Vec<String> = path.split('>').map(|region| names.of(Kind::Region, region)).collect();
        return format!("path:{}", regions.join(">"));
    }
    match Site::parse(text) {
        Some(found) => self::site(names, &found).to_string(),
        None => text.to_owned(),
    }
}

/// A metric as rows of estimates name it.
pub fn metric(names: &mut Names, name: &str) -> String {
    match Quantity::by_name(name) {
        Some(Quantity::User(name)) => names.of(Kind::Metric, &name),
        Some(Quantity::Papi(name)) => Quantity::Papi(names.of(Kind::Metric, &name)).name().into_owned(),
        _ => name.to_owned(),
    }
}
