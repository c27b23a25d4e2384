//! Every key of `JOB.toml`: its good example changes the settings, its wrong one is refused on its line.
//!
//! The examples are those of the table of keys, which docs/configuration.md prints.

use ampl_core::config::keys::{KEYS, Key};
use ampl_core::config::*;

use crate::common::accepted;

/// Effect of the good example.
enum Effect {
    /// Makes this true of the settings, which is false without it.
    Shows(fn(&Config) -> bool),
}

use Effect::Shows;

/// Key, effect of its good example, and what the advice about the wrong one holds.
const ROWS: &[(&str, Effect, &str)] = &[
    ("sites", Shows(|c| c.sites.len() == 1), "readable file"),
    ("sampling.windows_per_update", Shows(|c| c.sampling.windows_per_update == 8), "from 1"),
    ("sampling.update_mechanism", Shows(|c| c.sampling.update_mechanism == Mechanism::Global), "\"subset\""),
    ("sampling.summaries", Shows(|c| c.sampling.summaries == Summaries::Sampled), "\"census\""),
    ("sampling.selection", Shows(|c| c.sampling.selection == Selection::Predictive), "\"predictive\""),
    ("sampling.sizing", Shows(|c| c.sampling.sizing == Sizing::Ampl2008), "\"neyman\""),
    ("sampling.floor", Shows(|c| c.sampling.floor == Some(3)), "from 1"),
    ("sampling.seed", Shows(|c| c.sampling.seed == 7), "from 0"),
    ("sampling.budget", Shows(|c| c.sampling.budget == Some(1e6)), "\"1MB/s\""),
    ("sampling.partners", Shows(|c| c.sampling.partners), "keep"),
    ("window.marker", Shows(|c| c.window.marker == Marker::Region("TIMESTEP".into())), "\"MPI_Allreduce\""),
    ("window.every", Shows(|c| c.window.every == 10), "from 1"),
    ("window.max", Shows(|c| c.window.max == 1000), "from 2"),
    ("metric.name", Shows(|c| c.metrics[0].quantity == Quantity::BytesSent), "\"mpi.time\""),
    (
        "metric.event",
        Shows(|c| c.metrics[0].event == Event::Function("MPI_Allreduce".into())),
        "\"MPI_Isend\"",
    ),
    ("metric.role", Shows(|c| c.metrics[0].guide && c.metrics.len() == 1), "\"guide\""),
    ("metric.optional", Shows(|c| c.metrics[0].optional), "true or false"),
    ("group.name", Shows(|c| c.groups[0].name == "Fluid"), "a name"),
    (
        "group.members",
        Shows(|c| matches!(&c.groups[0].members, Members::Listed(ranks) if ranks.len() == 129)),
        "\"0-127,200\"",
    ),
    (
        "group.program",
        Shows(|c| matches!(&c.groups[0].members, Members::Program(of) if of.to_string() == "ocean*")),
        "ocean*",
    ),
    ("group.confidence", Shows(|c| bound(c).0 == 0.95), "(0, 1)"),
    ("group.error", Shows(|c| bound(c).1 == ErrorBound::Relative(0.03)), "(0, 1)"),
    ("group.error_abs", Shows(|c| bound(c).1 == ErrorBound::Absolute(2e6)), "above zero"),
    ("group.stratify", Shows(|c| c.divides("A").is_some()), "\"k-medoids\""),
    ("group.k", Shows(|c| c.strata[0].k == Some(3)), "\"auto\""),
    ("group.sample_size", Shows(|c| c.groups[0].target == Target::Static { ranks: 3 }), "10 (members)"),
    ("group.pinned", Shows(|c| c.groups[0].pinned.len() == 3), "'members'"),
    (
        "site.match",
        Shows(|c| c.sites[0].matches == SiteMatch::Function("MPI_Waitsome".into())),
        "\"MPI_Waitsome\"",
    ),
    ("site.trace", Shows(|c| c.sites[0].trace == SiteTrace::Off), "\"aggregate\""),
    ("site.error", Shows(|c| c.sites[0].error == Some(0.03)), "(0, 1)"),
    ("site.confidence", Shows(|c| c.sites[0].confidence == Some(0.95)), "(0, 1)"),
    ("trace.structure", Shows(|c| c.trace.structure == Keep::Off), "\"all\""),
    ("trace.timing", Shows(|c| c.trace.timing == Keep::All), "\"kept\""),
    ("trace.time_error", Shows(|c| c.trace.time_error == 0.05), "[0, 1)"),
    ("trace.time_floor", Shows(|c| c.trace.time_floor_ns == 5000), "\"5us\""),
    ("trace.call_sites", Shows(|c| !c.trace.call_sites), "true or false"),
    ("trace.call_path_depth", Shows(|c| c.trace.call_path_depth == 8), "from 1 to 64"),
    ("trace.addresses", Shows(|c| !c.trace.addresses), "\"on\""),
    ("trace.values", Shows(|c| !c.trace.exact_values), "\"aggregate\""),
    ("trace.regions", Shows(|c| c.trace.regions.takes("solver") && !c.trace.regions.takes("tiny")), "commas"),
    ("trace.region_floor", Shows(|c| c.trace.region_floor_ns == 5000), "\"5us\""),
    ("output.dir", Shows(|c| c.output.dir == "runs/{jobid}"), "{jobid}"),
    (
        "output.record",
        Shows(|c| c.output.record.as_deref() == Some("/archive/{user}/{jobid}.json")),
        "{jobid}",
    ),
    ("output.mode", Shows(|c| c.output.mode == 0o750), "octal"),
    ("output.arguments", Shows(|c| c.output.arguments == Arguments::Program), "all or program or off"),
    ("output.copy", Shows(|c| c.output.copy_ns == Some(60_000_000_000)), "\"60s\""),
    ("output.journal", Shows(|c| c.output.journal == Journal::Run), "\"node\""),
    (
        "output.rank_summaries",
        Shows(|c| c.output.rank_summaries == RankSummaries::Sample),
        "all or sample or off",
    ),
    ("output.summary_error", Shows(|c| c.output.summary_error == 0.01), "[0, 1)"),
    ("output.max_bytes", Shows(|c| c.output.max_bytes == Some(1_000_000_000)), "\"64MiB\""),
    ("output.verify", Shows(|c| c.output.verify), "true or false"),
    ("agent.client", Shows(|c| c.agent.client.0 == 3), "from 0"),
    ("agent.max_overhead", Shows(|c| c.agent.max_overhead == Some(0.005)), "\"1%\""),
    ("agent.max_structure_overhead", Shows(|c| c.agent.max_structure_overhead == 0.03), "\"10%\""),
    ("agent.max_memory", Shows(|c| c.agent.max_memory == Some(64 << 20)), "\"64MiB\""),
    ("hooks.functions", Shows(|c| c.hooks.functions), "true or false"),
    ("hooks.kokkos", Shows(|c| c.hooks.kokkos), "true or false"),
    ("hooks.nvtx", Shows(|c| c.hooks.nvtx), "true or false"),
    ("hooks.itt", Shows(|c| c.hooks.itt), "true or false"),
    ("hooks.ompt", Shows(|c| c.hooks.ompt), "true or false"),
    ("hooks.perfstubs", Shows(|c| c.hooks.perfstubs), "true or false"),
    ("hooks.caliper", Shows(|c| c.hooks.caliper), "true or false"),
    ("hooks.nccl", Shows(|c| c.hooks.nccl), "true or false"),
    ("hooks.filter", Shows(|c| !c.hooks.filter.takes("tiny")), "commas"),
    ("hooks.floor", Shows(|c| c.hooks.floor_ns == 5000), "\"5us\""),
];

fn bound(config: &Config) -> (f64, ErrorBound) {
    match config.groups[0].target {
        Target::Bound { confidence, error } => (confidence, error),
        Target::Static { .. } => (0.0, ErrorBound::Absolute(0.0)),
    }
}

fn row(key: &Key) -> &'static (&'static str, Effect, &'static str) {
    let path = key.path();
    ROWS.iter().find(|(of, ..)| *of == path).unwrap_or_else(|| panic!("{path} has no row in this test"))
}

/// The job with `value` as the command line reads it: a file of sites in its place.
fn read(key: &Key, value: &str) -> Result<(Config, Vec<Notice>), ConfigErrors> {
    let files = |name: &str| match name {
        "sites.toml" => Ok("[[site]]\nmatch = 'MPI_Waitsome'\ntrace = 'off'\n".to_owned()),
        _ => Err("no such file".to_owned()),
    };
    match Config::inline_sites(&key.job(Some(value)), files) {
        Ok(text) => Config::parse(&text),
        Err(SitesFault::Here(error)) => Err(ConfigErrors(vec![error])),
        Err(SitesFault::There { errors, .. }) => Err(errors),
    }
}

#[test]
fn every_good_example_takes_effect() {
    for key in KEYS {
        let path = key.path();
        let plain = accepted(&key.job(None)).0;
        let (config, _) =
            read(key, key.good).unwrap_or_else(|errors| panic!("{path}: {}", errors.render("job.toml")));
        let Shows(effect) = &row(key).1;
        assert!(effect(&config), "{path}: {config:?}");
        assert!(!effect(&plain), "{path} says nothing new");
        assert_ne!(config, plain, "{path}");
        assert_eq!(Config::parse(&config.to_toml()).map(|(again, _)| again), Ok(config), "{path}");
    }
}

#[test]
fn every_wrong_example_is_refused_on_its_line() {
    for key in KEYS {
        let path = key.path();
        let Err(errors) = read(key, key.wrong) else { panic!("{path} = {} is accepted", key.wrong) };
        let [error] = &errors.0[..] else { panic!("{path}: {}", errors.render("job.toml")) };
        assert_eq!(error.key, path);
        assert_eq!(error.line, if key.table.is_empty() { 1 } else { 2 }, "{path}");
        let advice = row(key).2;
        assert!(!advice.is_empty() && error.fix().contains(advice), "{path}: {}", error.fix());
    }
}

#[test]
fn every_row_is_a_key() {
    for (path, ..) in ROWS {
        assert!(KEYS.iter().any(|key| key.path() == *path), "{path}");
    }
    assert_eq!(ROWS.len(), KEYS.len());
}
