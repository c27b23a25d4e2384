//! Every recipe in `configs/` runs over real MPI, for a moment, on as many ranks as fit.
//!
//! A recipe whose groups need more than [`MOST`] ranks is run with groups of the same shape, smaller by one factor;
//! the paper's own sizes are those of `figure4.rs` and of ampl-client's tests.

use std::collections::BTreeSet;

use ampl_core::config::{Config, Keep, Marker, RankSummaries, SiteTrace};
use ampl_core::units::RankSet;
use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::{Extent, home};
use ampl_tests::run::{Form, monitor, text_of};
use serde_json::Value;
use toml_edit::DocumentMut;

/// Ranks of a job whose recipe needs no particular number.
const FEW: u32 = 4;
/// Ranks that two processors bear for some seconds.
const MOST: u32 = 16;

/// Ranks that the groups of `config` name.
fn named(config: &Config) -> u32 {
    config
        .groups
        .iter()
        .filter_map(|group| group.members.listed()?.max())
        .map(|rank| rank.0 + 1)
        .max()
        .unwrap_or(0)
}

/// `text` with each group's ranks and size made `factor` times smaller, and none of them empty.
fn shrunk(text: &str, factor: u32) -> String {
    let ranks = |text: &str| {
        let set = RankSet::parse(text).expect("the recipe is sound");
        let range = |(low, high): (u32, u32)| {
            let first = low.div_ceil(factor);
            format!("{first}-{}", ((high + 1).div_ceil(factor)).max(first + 1) - 1)
        };
        set.ranges().map(range).collect::<Vec<_>>().join(",")
    };
    let mut document: DocumentMut = text.parse().expect("the recipe is TOML");
    let groups = document["group"].as_array_of_tables_mut().expect("it has groups");
    for group in groups.iter_mut() {
        for key in ["members", "pinned"] {
            if let Some(set) = group.get(key).and_then(|value| value.as_str()).map(ranks) {
                group[key] = toml_edit::value(set);
            }
        }
        if let Some(size) = group.get("sample_size").and_then(|value| value.as_integer()) {
            group["sample_size"] = toml_edit::value((size as u64).div_ceil(factor.into()) as i64);
        }
    }
    document.to_string()
}

/// `text` with a limit that a busy machine does not reach: ranks that store less would not test the recipe. Windows of
/// minutes become windows of a second.
fn patient(text: &str) -> String {
    let mut document: DocumentMut = text.parse().expect("the recipe is TOML");
    let (config, _) = Config::parse(text).expect("the recipe is sound");
    if matches!(config.window.marker, Marker::Period(nanos) if nanos > 1_000_000_000) {
        document["window"]["marker"] = toml_edit::value("period:1s");
    }
    document["agent"]["max_overhead"] = toml_edit::value("90%");
    document.to_string()
}

fn run(name: &str, text: &str) {
    let parse = |text: &str| match Config::parse(text) {
        Ok((config, _)) => config,
        Err(errors) => panic!("{}\n{text}", errors.render(name)),
    };
    let factor = named(&parse(text)).div_ceil(MOST).max(1);
    let text = patient(&if factor > 1 { shrunk(text, factor) } else { text.to_owned() });
    let config = parse(&text);
    let ranks = named(&config).max(FEW);
    let milliseconds = match config.window.marker {
        Marker::Period(nanos) => (nanos / 1_000_000 * 5 / 2).max(1000),
        _ => 1000,
    };
    let job = Job::of(Mpi::OpenMpi, ranks, "recipes", &[&milliseconds.to_string()]);
    let run = monitor(&job, &text, Form::Run).success();
    let context = || format!("{name}\n{}\n{}", run.info(), run.finished.stderr);
    let steps: u64 =
        run.finished.stdout.trim().strip_suffix(" steps").expect("a number").parse().expect("one");
    let info = run.info();
    assert!(
        info["complete"] == true && info["agent_failures"] == 0 && info["ranks"] == ranks,
        "{}",
        context()
    );
    for function in ["MPI_Isend", "MPI_Iprobe", "MPI_Waitall", "MPI_Allreduce", "MPI_Barrier"] {
        assert_eq!(run.functions()[function], steps * u64::from(ranks), "{function}: {}", context());
    }
    let windows = info["windows"].as_u64().expect("a number");
    let expected = match &config.window.marker {
        Marker::Period(_) => 2..=u64::MAX,
        _ => {
            let windows = steps / u64::from(config.window.every) + 1;
            windows..=windows
        }
    };
    assert!(expected.contains(&windows) && windows > 1, "{expected:?}: {}", context());
    let stores = config.trace.stored() != Keep::Off;
    assert_eq!(info["kept_windows"].as_u64() > Some(0), stores, "{}", context());
    if !stores {
        let bytes = &info["trace_bytes"];
        let size = |part: &str| bytes[part].as_u64().expect("a number");
        // Ranks' totals by function, and facts about the job, are apart: up to four bytes each, and up to 8 KiB.
        let totals = 4 * u64::from(ranks) * run.functions().len() as u64;
        let apart = size("aggregates").min(totals) + size("metadata").min(8 << 10);
        assert!(size("total") - apart <= (64 << 10) + 4 * u64::from(ranks), "{}", context());
        assert_eq!(run.decode(0).len(), 0, "{}", context());
    }
    // Every name in the recipe occurs: groups in the decisions, metrics in the estimates.
    let decisions = run.decisions();
    for group in &config.groups {
        assert!(decisions.iter().any(|row| row["group"] == group.name), "{}: {}", group.name, context());
    }
    let rows = run.estimate();
    let estimated: BTreeSet<(&str, &str)> =
        rows.iter().filter_map(|row| Some((row["metric"].as_str()?, row["event"].as_str()?))).collect();
    let summarised = config.output.rank_summaries != RankSummaries::Off;
    assert_eq!(rows.is_empty(), !summarised, "{}", context());
    for metric in config.metrics.iter().filter(|metric| !metric.optional && summarised) {
        let (name, event) = (metric.name(), metric.event.name());
        assert!(estimated.contains(&(&*name, &*event)), "{name} of {event}: {}", context());
    }
    // Calls that are off are in no line, and of those whose times are added up no line has one.
    let stored: Vec<Value> = run.decode(0);
    for policy in &config.sites {
        let name = policy.matches.name();
        let mut own = stored.iter().filter(|call| call["fn"] == *name);
        match policy.trace {
            SiteTrace::Off => assert!(own.next().is_none(), "{}", context()),
            SiteTrace::Aggregate => assert!(own.all(|call| call["start_ns"].is_null()), "{}", context()),
            SiteTrace::On => {}
        }
    }
    let reasons = run.adds_up();
    assert!(!stores || reasons.keys().all(|reason| reason == "site"), "{reasons:?}: {}", context());
    eprintln!("{name}: {ranks} ranks, {windows} windows, {} decisions", decisions.len());
}

#[test]
fn every_recipe_runs() {
    let (quick, mut count) = (Extent::get() == Extent::Quick, 0);
    let mut entries: Vec<_> =
        home().join("../configs").read_dir().expect("configs/").flatten().map(|entry| entry.path()).collect();
    entries.sort();
    for path in entries.iter().filter(|path| path.extension().is_some_and(|extension| extension == "toml")) {
        let name = path.file_name().expect("a file").to_string_lossy();
        run(&name, &text_of(path));
        count += 1;
        if quick && count == 4 {
            break;
        }
    }
    assert!(count >= if quick { 4 } else { 9 }, "{count} recipes");
}

#[test]
fn groups_keep_their_shape() {
    let text = "[[group]]\nname = 'a'\nmembers = '0-3'\nsample_size = 4\n\
                [[group]]\nname = 'b'\nmembers = '4-63'\npinned = '4'\n";
    let (config, _) = Config::parse(&shrunk(text, 4)).expect("sound");
    let members: Vec<String> = config.groups.iter().map(|group| group.members.to_string()).collect();
    assert_eq!((members, config.groups[1].pinned.to_string()), (vec!["0".into(), "1-15".into()], "1".into()));
}
