//! [`Config::parse`]: from text to settings, table by table.

use toml::de::DeTable;

use super::MOST_STRATA;
use super::error::{Cause, ConfigErrors, Notice};
use super::tree::{self, Block, Report};
use super::{
    Agent, Config, ErrorBound, Event, Group, GroupStrata, Journal, Keep, MOST_FRAMES, Marker, Mechanism,
    Members, Metric, Output, RankSummaries, Sampling, Selection, SitePolicy, SiteTrace, Sizing, Summaries,
    Target, Trace, Window, keys, marker, rules,
};
use crate::units::{Rank, RankSet};

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
        let blocks = tree::read(&document, &mut report);
        let mut config = Self::default();
        let mut draft = rules::Draft::default();
        for block in &blocks {
            if report.is_full() {
                break;
            }
            match block.table {
                "sampling" => {
                    draft.sampling_at = Some((block.at("selection"), block.at("sizing")));
                    draft.selection = block.text("selection").and_then(|word| match word {
                        "retrospective" => Some(Selection::Retrospective),
                        "predictive" => Some(Selection::Predictive),
                        _ => None,
                    });
                    draft.budget_at = block.text("budget").map(|_| block.at("budget"));
                    sampling(block, &mut config.sampling, &mut report);
                }
                "window" => window(block, &mut config.window, &mut report),
                "metric" => {
                    draft.first_metric_at.get_or_insert(block.at);
                    if let Some(metric) = metric(block, &mut report) {
                        draft.take_metric(block.at("name"), metric, &mut report);
                    }
                }
                "group" => {
                    if let Some(group) = group(block, &mut report) {
                        let strata = stratify(block, &group, &mut report);
                        draft.strata.extend(strata.map(|strata| (block.at("stratify"), strata)));
                        let whole = block.text("stratify") == Some("off");
                        draft.whole.extend(whole.then(|| group.name.clone()));
                        // What may be wrong with a group of all others is whom it pins.
                        let ranks = if group.members == Members::Others { "pinned" } else { "members" };
                        draft.groups.push((block.at("name"), block.at(ranks), group));
                    }
                }
                "site" => {
                    let policy = site(block, &mut report);
                    if let Some(policy) = &policy {
                        rules::notice_second_policy(policy, &config.sites, block, &mut report);
                    }
                    config.sites.extend(policy);
                }
                "trace" => trace(block, &mut config.trace, &mut report),
                "output" => {
                    draft.verify_at = Some(block.at("verify"));
                    output(block, &mut config.output, &mut report);
                }
                "agent" => agent(block, &mut config.agent, &mut report),
                other => unreachable!("[{other}] is a table without a reader"),
            }
        }
        draft.complete(&mut config, &mut report);
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

fn sampling(block: &Block<'_>, sampling: &mut Sampling, report: &mut Report<'_>) {
    at_least_one(block, "windows_per_update", &mut sampling.windows_per_update, report);
    if block.integer("floor").is_some() {
        let mut floor = 0;
        at_least_one(block, "floor", &mut floor, report);
        sampling.floor = Some(floor);
    }
    pick(block, "update_mechanism", &mut sampling.update_mechanism, |word| match word {
        "subset" => Some(Mechanism::Subset),
        "global" => Some(Mechanism::Global),
        _ => None,
    });
    pick(block, "summaries", &mut sampling.summaries, |word| match word {
        "census" => Some(Summaries::Census),
        "sampled" => Some(Summaries::Sampled),
        _ => None,
    });
    pick(block, "sizing", &mut sampling.sizing, |word| match word {
        "neyman" => Some(Sizing::Neyman),
        "ampl-2008" => Some(Sizing::Ampl2008),
        _ => None,
    });
    if let Some(text) = block.text("budget") {
        sampling.budget = marker::bytes_per_second(text);
        if sampling.budget.is_none() {
            let expected = "bytes per second above zero with their unit, such as \"1MB/s\"";
            invalid(block, "budget", format!("{text:?}"), expected, report);
        }
    }
    pick(block, "partners", &mut sampling.partners, |word| Some(word == "keep"));
    if let Some(seed) = block.integer("seed") {
        match u64::try_from(seed) {
            Ok(seed) => sampling.seed = seed,
            Err(_) => invalid(block, "seed", seed, "a whole number from 0", report),
        }
    }
}

fn window(block: &Block<'_>, window: &mut Window, report: &mut Report<'_>) {
    if let Some(text) = block.text("marker") {
        match marker::marker(text) {
            Ok(marker) => {
                if marker == Marker::Auto {
                    let what = "the detection of the program's time step is not in this version";
                    report.notice(block.at("marker"), "window.marker", what, "period:250ms is used");
                }
                window.marker = marker;
            }
            Err(cause) => {
                // Rules that depend on the marker must not judge the default instead.
                window.marker = Marker::Mpi { function: String::new(), site: None };
                report.error(block.at("marker"), block.path("marker"), cause);
            }
        }
    }
    at_least_one(block, "every", &mut window.every, report);
}

/// The metric, unless it is wrong.
fn metric(block: &Block<'_>, report: &mut Report<'_>) -> Option<Metric> {
    let event = match block.text("event").map(marker::event) {
        None => Event::Window,
        Some(Ok(event)) => event,
        Some(Err(cause)) => {
            report.error(block.at("event"), block.path("event"), cause);
            return None;
        }
    };
    let Some(name) = block.text("name") else {
        missing(block, "name", "name = \"mpi.time\"", report);
        return None;
    };
    let quantity = match rules::quantity(name) {
        Ok(quantity) => quantity,
        Err(cause) => {
            report.error(block.at("name"), block.path("name"), cause);
            return None;
        }
    };
    let guide = block.text("role") == Some("guide");
    let metric = Metric { quantity, event, guide, optional: block.boolean("optional") == Some(true) };
    if let Some(cause) = rules::unobservable(&metric) {
        report.error(block.at("event"), block.path("event"), cause);
        return None;
    }
    Some(metric)
}

/// The site policy, unless it is wrong.
fn site(block: &Block<'_>, report: &mut Report<'_>) -> Option<SitePolicy> {
    let matches = match block.text("match").map(marker::site_match) {
        Some(Ok(matches)) => Some(matches),
        Some(Err(cause)) => {
            report.error(block.at("match"), block.path("match"), cause);
            None
        }
        None => {
            missing(block, "match", "match = \"MPI_Waitsome\"", report);
            None
        }
    };
    let mut policy = SitePolicy { matches: matches?, trace: SiteTrace::On, confidence: None, error: None };
    pick(block, "trace", &mut policy.trace, |word| match word {
        "on" => Some(SiteTrace::On),
        "off" => Some(SiteTrace::Off),
        "aggregate" => Some(SiteTrace::Aggregate),
        _ => None,
    });
    for (name, setting) in [("confidence", &mut policy.confidence), ("error", &mut policy.error)] {
        *setting = block.fraction(name);
        if setting.is_some_and(|value| !inside(value)) {
            invalid(
                block,
                name,
                block.written(name),
                "a fraction inside (0, 1), such as 0.05 or \"5%\"",
                report,
            );
        }
    }
    Some(policy)
}

fn group(block: &Block<'_>, report: &mut Report<'_>) -> Option<Group> {
    let target = target(block, report);
    let members = members(block, report);
    let others = members == Some(Members::Others);
    let name = match block.text("name").map(|name| (name, rules::group_name_fault(name, others))) {
        Some((name, Some(expected))) => {
            invalid(block, "name", format!("{name:?}"), &expected, report);
            None
        }
        Some((name, None)) => Some(name),
        None => {
            missing(block, "name", "name = \"NAME\"", report);
            None
        }
    };
    let pinned = rank_set(block, "pinned", report).unwrap_or_default();
    Some(Group { name: name?.to_owned(), members: members?, target: target?, pinned })
        .filter(|group| rules::group_is_sound(group, block, report))
}

/// The ranks that the group names; absent when they are wrong.
fn members(block: &Block<'_>, report: &mut Report<'_>) -> Option<Members> {
    match block.text("members") {
        None if block.refused("members") => None,
        None | Some("*") => Some(Members::Others),
        Some(_) => match rank_set(block, "members", report)? {
            none if none.is_empty() => {
                invalid(block, "members", "empty", "ranks, as in \"0-127,200\", or \"*\"", report);
                None
            }
            listed => Some(Members::Listed(listed)),
        },
    }
}

/// Stratification that the group's table asks for, if any.
fn stratify(block: &Block<'_>, group: &Group, report: &mut Report<'_>) -> Option<GroupStrata> {
    let divided = block.text("stratify") == Some("k-medoids");
    let k = match block.integer("k") {
        Some(_) if !divided => {
            let cause = match block.has("stratify") {
                true => Cause::Combination {
                    settings: "stratify = \"off\" and k",
                    instead: "leave k out, or use stratify = \"k-medoids\"",
                },
                false => Cause::Missing { example: "stratify = \"k-medoids\"" },
            };
            report.error(block.at("k"), block.path("stratify"), cause);
            return None;
        }
        Some(k) => match u32::try_from(k) {
            Ok(k) if (1..=rules::most_members(group).min(MOST_STRATA as u64)).contains(&u64::from(k)) => {
                Some(k)
            }
            _ => {
                invalid(block, "k", k, "from 1 to 8, and to as many strata as members, or \"auto\"", report);
                return None;
            }
        },
        None => None,
    };
    if divided && block.has("sample_size") {
        let with = "group.sample_size";
        report.error(block.at("stratify"), block.path("stratify"), Cause::Conflict { with });
        return None;
    }
    divided.then(|| GroupStrata { group: group.name.clone(), k })
}

/// Target of the group's sample; `None` where that is wrong.
fn target(block: &Block<'_>, report: &mut Report<'_>) -> Option<Target> {
    let mut sound = true;
    let mut conflict = |name: &str, with: &'static str| {
        if block.has(name) && block.has(with.trim_start_matches("group.")) {
            report.error(block.at(name), block.path(name), Cause::Conflict { with });
            sound = false;
        }
    };
    conflict("error_abs", "group.error");
    for name in ["confidence", "error", "error_abs"] {
        conflict(name, "group.sample_size");
    }
    let mut number = |name, fits: fn(f64) -> bool, expected| match block.fraction(name) {
        Some(value) if !fits(value) => {
            invalid(block, name, block.written(name), expected, report);
            sound = false;
            None
        }
        value => value,
    };
    let confidence = number("confidence", inside, "a confidence inside (0, 1), such as 0.90 or \"90%\"");
    let relative = number("error", inside, "a relative error inside (0, 1), such as 0.08 or \"8%\"");
    let absolute = number(
        "error_abs",
        |value| value > 0.0 && value.is_finite(),
        "a half-width above zero in the metric's unit",
    );
    if let Some(size) = block.integer("sample_size") {
        let Some(ranks) = u32::try_from(size).ok().filter(|&ranks| ranks > 0) else {
            invalid(block, "sample_size", size, "a number of ranks from 1", report);
            return None;
        };
        return sound.then_some(Target::Static { ranks });
    }
    let Target::Bound { confidence: default_confidence, error: default_error } = super::DEFAULT_TARGET else {
        unreachable!("the default is a bound");
    };
    let error = absolute.map(ErrorBound::Absolute).or(relative.map(ErrorBound::Relative));
    sound.then_some(Target::Bound {
        confidence: confidence.unwrap_or(default_confidence),
        error: error.unwrap_or(default_error),
    })
}

fn trace(block: &Block<'_>, trace: &mut Trace, report: &mut Report<'_>) {
    let keep = |word: &str| match word {
        "kept" => Some(Keep::Kept),
        "all" => Some(Keep::All),
        "off" => Some(Keep::Off),
        _ => None,
    };
    pick(block, "structure", &mut trace.structure, keep);
    pick(block, "timing", &mut trace.timing, keep);
    if let Some(error) = block.fraction("time_error") {
        match (0.0..1.0).contains(&error) {
            true => trace.time_error = error,
            false => {
                let expected = "a relative error in [0, 1), such as 0.10 or \"10%\"";
                invalid(block, "time_error", block.written("time_error"), expected, report);
            }
        }
    }
    if let Some(text) = block.text("time_floor") {
        match marker::nanoseconds(text) {
            Some(floor) => trace.time_floor_ns = floor,
            None => {
                // A duration that is too long has no fault in its unit.
                let expected = match marker::is_too_long(text) {
                    true => format!("a duration of at most {}s, such as \"5us\"", u64::MAX / 1_000_000_000),
                    false => "a duration with its unit, such as \"5us\"".to_owned(),
                };
                invalid(block, "time_floor", format!("{text:?}"), &expected, report);
            }
        }
    }
    if let Some(call_sites) = block.boolean("call_sites") {
        trace.call_sites = call_sites;
    }
    if let Some(depth) = block.integer("call_path_depth") {
        match u32::try_from(depth) {
            Ok(depth) if (1..=MOST_FRAMES).contains(&depth) => trace.call_path_depth = depth,
            _ => {
                let expected = format!("a number of functions from 1 to {MOST_FRAMES}");
                invalid(block, "call_path_depth", depth, &expected, report);
            }
        }
    }
}

fn output(block: &Block<'_>, output: &mut Output, report: &mut Report<'_>) {
    if let Some(dir) = block.text("dir") {
        match rules::template_fault(dir) {
            None => output.dir = dir.to_owned(),
            Some(expected) => invalid(block, "dir", format!("{dir:?}"), &expected, report),
        }
    }
    match block.text("journal") {
        None => {}
        Some("node") => output.journal = Journal::Node,
        Some("run") => output.journal = Journal::Run,
        Some("off") => output.journal = Journal::Off,
        // Without the slash a misspelt word would silently become a directory.
        Some(path) if path.contains('/') && !path.contains('\0') => {
            output.journal = Journal::Path(path.to_owned())
        }
        Some(word) => {
            let allowed = vec!["node", "run", "off", "./DIRECTORY"];
            let nearest = keys::nearest(word, ["node", "run", "off"]);
            let cause = Cause::UnknownWord { word: word.to_owned(), allowed, nearest };
            report.error(block.at("journal"), block.path("journal"), cause);
        }
    }
    pick(block, "rank_summaries", &mut output.rank_summaries, |word| match word {
        "all" => Some(RankSummaries::All),
        "sample" => Some(RankSummaries::Sample),
        "off" => Some(RankSummaries::Off),
        _ => None,
    });
    if let Some(verify) = block.boolean("verify") {
        output.verify = verify;
    }
}

fn agent(block: &Block<'_>, agent: &mut Agent, report: &mut Report<'_>) {
    if let Some(client) = block.integer("client") {
        match u32::try_from(client) {
            Ok(client) => agent.client = Rank(client),
            Err(_) => invalid(block, "client", client, "a rank, from 0", report),
        }
    }
    match block.fraction("max_overhead").filter(|&share| inside(share)) {
        Some(share) => agent.max_overhead = Some(share),
        None if block.has("max_overhead") => {
            let expected =
                "a share between 0 and 1, in percent as \"1%\", or as a number without quotes, 0.01";
            invalid(block, "max_overhead", block.written("max_overhead"), expected, report);
        }
        None => {}
    }
}

fn inside(value: f64) -> bool {
    value > 0.0 && value < 1.0
}

fn pick<T>(block: &Block<'_>, name: &str, setting: &mut T, meaning: impl Fn(&str) -> Option<T>) {
    if let Some(value) = block.text(name).and_then(meaning) {
        *setting = value;
    }
}

fn at_least_one(block: &Block<'_>, name: &str, setting: &mut u32, report: &mut Report<'_>) {
    if let Some(value) = block.integer(name) {
        match u32::try_from(value) {
            Ok(value) if value > 0 => *setting = value,
            _ => invalid(block, name, value, "a whole number from 1 to 4294967295", report),
        }
    }
}

fn rank_set(block: &Block<'_>, name: &str, report: &mut Report<'_>) -> Option<RankSet> {
    let text = block.text(name)?;
    match RankSet::parse(text) {
        Ok(set) => Some(set),
        Err(error) => {
            let expected = format!("ranks, as in \"0-127,200\" ({error})");
            invalid(block, name, format!("{text:?}"), &expected, report);
            // The fault is reported; rules that depend on the ranks are not checked.
            None
        }
    }
}

fn invalid(block: &Block<'_>, name: &str, found: impl ToString, expected: &str, report: &mut Report<'_>) {
    let cause = Cause::Invalid { found: found.to_string(), expected: expected.to_owned() };
    report.error(block.at(name), block.path(name), cause);
}

fn missing(block: &Block<'_>, name: &str, example: &'static str, report: &mut Report<'_>) {
    // A value of the wrong type was removed and reported while reading.
    if !block.refused(name) && !block.has(name) {
        report.error(block.at, block.path(name), Cause::Missing { example });
    }
}
