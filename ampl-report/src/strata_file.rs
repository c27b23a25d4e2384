//! The job file in which every stratum is a group.

use std::fmt::Write as _;
use std::path::Path;

use ampl_analysis::strata::{Stratification, Stratum};
use ampl_core::cluster::{floor_of_each, target_of};
use ampl_core::config::{Config, ErrorBound, Group, Target, UNGROUPED};

use crate::human::{digits, percent, plural};

/// The text, which [`Config::parse`] takes.
pub fn text(division: &Stratification, run: &Path) -> String {
    let mut config = division.plan.config.clone();
    let own = division.plan.groups[division.group].name.as_str();
    let several = division.strata.len() > 1;
    // All ranks together, or one of the groups.
    let place = config.groups.iter().position(|group| group.name == own).unwrap_or(config.groups.len());
    config.groups.retain(|group| group.name != own);
    let floor = division.floor();
    if several {
        config.sampling.floor = Some(floor_of_each(floor, division.strata.len()) as u32);
    }
    let groups = division.strata.iter().map(|stratum| group(division, stratum, several));
    let groups: Vec<Group> = groups.collect();
    config.groups.splice(place..place, groups);
    let mut text = head(division, run, floor);
    text.push('\n');
    text.push_str(&config.to_toml());
    for stratum in &division.strata {
        let line = format!("[[group]]\nname = {}\n", toml_edit::Value::from(name(stratum)));
        text = text.replacen(&line, &format!("{}{line}", comment(stratum)), 1);
    }
    debug_assert!(Config::parse(&text).is_ok(), "{text}");
    text
}

fn head(division: &Stratification, run: &Path, floor: u64) -> String {
    let choice = division.choice.strata();
    let one = digits(division.choice.tried[0].price.size);
    let bound = match division.error {
        ErrorBound::Relative(error) => percent(error),
        ErrorBound::Absolute(error) => digits(error),
    };
    // A name is no comment if it has more than one line.
    let run = run.display().to_string().replace(char::is_control, "?");
    let mut text = format!(
        "# Strata of {}, found by 'ampl strata' in {run}:\n# {} of {}, by {}.\n",
        plural(division.members.len() as u64, "rank"),
        plural(division.windows as u64, "window"),
        division.guides.join(", "),
        division.method.name()
    );
    let at = percent(division.confidence);
    if division.strata.len() > 1 {
        let _ = writeln!(
            text,
            "# The mean of all of them, each stratum's weighted with its number of ranks, is within {bound} at {at}\n\
             # with {} ranks of a window; one stratum takes {one}. For that the errors of single strata may be\n\
             # larger or smaller than {bound}, and floor is divided among them ({floor} before).",
            digits(choice.price.size)
        );
    } else {
        let _ = writeln!(
            text,
            "# One class: stratifying would not pay. {one} ranks of a window give {bound} at {at}."
        );
    }
    text
}

fn comment(stratum: &Stratum) -> String {
    let medoid = stratum.medoid.map_or(String::new(), |medoid| format!(", rank {medoid} in the middle"));
    let size = digits(stratum.size);
    format!("# {}{medoid}; {size} of a window are drawn\n", plural(stratum.ranks.len(), "rank"))
}

/// Name of a stratum in the file. The only stratum of ranks in no group has their name, which no group of a file
/// can have.
fn name(stratum: &Stratum) -> &str {
    if stratum.name == UNGROUPED { "all-1" } else { &stratum.name }
}

fn group(division: &Stratification, stratum: &Stratum, several: bool) -> Group {
    let confidence = division.confidence;
    let ranks = stratum.ranks.len();
    let target = match division.error {
        whole if several => target_of(ranks, stratum.size, stratum.error, confidence, whole),
        error => Target::Bound { confidence, error },
    };
    let pinned = division.plan.groups[division.group].pinned.iter();
    Group {
        name: name(stratum).to_owned(),
        members: stratum.ranks.clone().into(),
        target,
        pinned: pinned.filter(|&rank| stratum.ranks.contains(rank)).collect(),
    }
}
