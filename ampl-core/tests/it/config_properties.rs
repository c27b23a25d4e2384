//! Settings survive being written and read, and no text breaks the parser.

use ampl_core::config::site::Site;
use ampl_core::config::*;
use ampl_core::units::{Rank, RankSet};
use proptest::prelude::*;

/// A region's name: anything on one line that is not blank.
fn region() -> impl Strategy<Value = String> {
    "[^\\p{Cc}]{0,9}[a-zA-Z:>]"
}

fn any_config() -> impl Strategy<Value = Config> {
    let functions =
        || prop::sample::select(vec!["MPI_Send", "MPI_Allreduce", "MPI_Waitall"]).prop_map(str::to_owned);
    let site = prop::option::of(
        prop::sample::select(vec!["a b.c:3", "app+0x1", "l.so+0x1-0x2f,app+0x3"])
            .prop_map(|site| Site::parse(site).unwrap()),
    );
    let marker = prop_oneof![
        (1..=365 * 24 * 3600 * 1_000_000_000_u64).prop_map(Marker::Period),
        (functions(), site).prop_map(|(function, site)| Marker::Mpi { function, site }),
        region().prop_map(Marker::Region),
        Just(Marker::Pcontrol),
        Just(Marker::Auto),
    ];
    let event = prop_oneof![
        Just(Event::Window),
        functions().prop_map(Event::Function),
        region().prop_map(Event::Region),
        prop::collection::vec("[^>\\p{Cc}]{0,3}[a-z]", 1..4).prop_map(Event::Path),
    ];
    let sampling =
        (1..=u32::MAX, any::<bool>(), 0..3, 0..=i64::MAX as u64).prop_map(|(updates, global, kind, seed)| {
            Sampling {
                windows_per_update: updates,
                update_mechanism: if global { Mechanism::Global } else { Mechanism::Subset },
                summaries: if kind == 0 { Summaries::Census } else { Summaries::Sampled },
                selection: Selection::Predictive,
                sizing: if kind == 2 { Sizing::Ampl2008 } else { Sizing::Neyman },
                floor: (kind == 1).then_some(3),
                seed,
                budget: None,
                partners: false,
            }
        });
    let own =
        prop::sample::select(vec!["perf.cycles", "perf.task-clock", "papi.PAPI_FP_INS", "cells", "a.b:c"]);
    let quantity = prop_oneof![
        prop::sample::select(Quantity::ALL.to_vec()),
        own.prop_map(|name| Quantity::by_name(name).expect("a metric's name")),
    ];
    let metric =
        (quantity, event, any::<bool>(), any::<bool>()).prop_map(|(quantity, event, guide, optional)| {
            let whole = match quantity {
                Quantity::Perf(_) | Quantity::Papi(_) => true,
                Quantity::User(_) | Quantity::ComputeTime => matches!(event, Event::Function(_)),
                _ => false,
            };
            Metric { quantity, event: if whole { Event::Window } else { event }, guide, optional }
        });
    let matches = prop_oneof![
        functions().prop_map(SiteMatch::Function),
        prop::sample::select(vec!["a b.c:3", "app+0x1-0x2f"])
            .prop_map(|site| SiteMatch::Site(Site::parse(site).unwrap())),
    ];
    let stored = prop::sample::select(vec![SiteTrace::On, SiteTrace::Off, SiteTrace::Aggregate]);
    let site_policy = (matches, stored).prop_map(|(matches, trace)| SitePolicy {
        matches,
        trace,
        confidence: None,
        error: None,
    });
    let share = || (f64::MIN_POSITIVE..1.0).boxed();
    let target = prop_oneof![
        (share(), share())
            .prop_map(|(confidence, e)| Target::Bound { confidence, error: ErrorBound::Relative(e) }),
        (share(), f64::MIN_POSITIVE..f64::MAX)
            .prop_map(|(confidence, e)| Target::Bound { confidence, error: ErrorBound::Absolute(e) }),
        (2..=10u32).prop_map(|ranks| Target::Static { ranks }),
    ];
    let groups = prop::collection::vec(("\\PC{0,12}", target, any::<bool>()), 0..4).prop_map(|groups| {
        let group = |(index, (name, target, pin)): (usize, (String, Target, bool))| {
            let first = index as u32 * 100;
            let pinned = if pin { RankSet::range(first + 1, first + 2) } else { RankSet::default() };
            Group {
                name: format!("{index}{name}"),
                members: RankSet::range(first, first + 9).into(),
                target,
                pinned,
            }
        };
        groups.into_iter().enumerate().map(group).collect::<Vec<_>>()
    });
    let keep = prop::sample::select(vec![Keep::Kept, Keep::All, Keep::Off]);
    let journal = prop_oneof![
        Just(Journal::Node),
        Just(Journal::Run),
        Just(Journal::Off),
        "/[^\0]{0,9}".prop_map(Journal::Path)
    ];
    let vectors = prop::sample::select(vec![RankSummaries::All, RankSummaries::Sample, RankSummaries::Off]);
    let record = prop::option::of("[^{}/\0\n]{1,9}");
    let words = prop::sample::select(vec![Arguments::All, Arguments::Program, Arguments::Off]);
    let output = ("[^{}\0\n]{1,9}", record, 0o700..0o1000u32, words, journal, vectors, any::<bool>())
        .prop_map(|(dir, record, mode, arguments, journal, rank_summaries, verify)| Output {
            record,
            mode,
            arguments,
            dir: format!("{dir}{{time}}"),
            journal,
            copy_ns: verify.then_some(60_000_000_001),
            rank_summaries,
            summary_error: if verify { 0.25 } else { 0.001 },
            max_bytes: verify.then_some(12_345_678_901),
            verify,
        });
    let sites = prop::collection::vec(site_policy, 0..3);
    let memory = prop::option::of(1..1u64 << 50);
    let agent =
        (any::<u32>(), share(), share(), memory).prop_map(|(client, share, structure, max_memory)| Agent {
            client: Rank(client),
            max_overhead: Some(share),
            max_structure_overhead: structure,
            max_memory,
        });
    let times = (0.0..1.0f64, any::<u64>());
    let filters = || prop::sample::select(vec!["*", "!*", "solve*,!tiny,!*::*"]).prop_map(filter);
    let regions = (filters(), any::<u64>());
    let trace = (keep.clone(), keep, times, (any::<bool>(), 1..=MOST_FRAMES), regions).prop_map(
        |(structure, timing, (time_error, time_floor_ns), (call_sites, call_path_depth), regions)| Trace {
            structure,
            timing,
            time_error,
            time_floor_ns,
            call_sites,
            call_path_depth,
            addresses: time_floor_ns % 2 == 0,
            exact_values: time_floor_ns % 3 == 0,
            regions: regions.0,
            region_floor_ns: regions.1,
        },
    );
    let hooks = (any::<[bool; 8]>(), filters(), any::<u64>());
    let hooks = hooks.prop_map(
        |([functions, kokkos, nvtx, itt, ompt, perfstubs, caliper, nccl], filter, floor_ns)| Hooks {
            functions,
            kokkos,
            nvtx,
            itt,
            ompt,
            perfstubs,
            caliper,
            nccl,
            filter,
            floor_ns,
        },
    );
    let rest = (trace, output, (agent, hooks), sites);
    (sampling, marker, 1..=u32::MAX, prop::collection::vec(metric, 0..5), groups, rest).prop_map(
        |(sampling, marker, every, mut metrics, groups, (trace, mut output, (agent, hooks), mut sites))| {
            output.verify &= trace.structure != Keep::Off;
            sites.dedup_by(|later, earlier| later.matches == earlier.matches);
            let (quantity, event) = (Quantity::Calls, Event::Window);
            metrics.push(Metric { quantity, event, guide: true, optional: false });
            let period = matches!(marker, Marker::Period(_) | Marker::Auto);
            metrics.retain(|m| !(period && m.quantity == Quantity::Wall && m.event == Event::Window));
            let mut seen = Vec::new();
            metrics.retain(|m| {
                let is_new = !seen.contains(&(m.quantity.clone(), m.event.clone()));
                seen.push((m.quantity.clone(), m.event.clone()));
                is_new
            });
            if !metrics.iter().any(|m| m.guide) {
                metrics[0].guide = true;
            }
            let dividable = sampling.summaries == Summaries::Census && !sampling.partners;
            let bounded = |group: &&Group| matches!(group.target, Target::Bound { .. });
            let strata = groups.iter().filter(bounded).zip([None, Some(1), Some(8)]);
            let strata =
                strata.filter(|_| dividable).map(|(group, k)| GroupStrata { group: group.name.clone(), k });
            let strata: Vec<GroupStrata> = strata.collect();
            let is_asked = |group: &&Group| !strata.iter().any(|strata| strata.group == group.name);
            let whole = groups.iter().filter(is_asked).step_by(2).map(|group| group.name.clone()).collect();
            Config {
                sampling,
                window: Window { marker, every, max: every.max(2) },
                metrics,
                groups,
                strata,
                whole,
                sites,
                trace,
                output,
                agent,
                hooks,
            }
        },
    )
}

/// The filter in `text`, as a job file has it.
fn filter(text: &str) -> RegionFilter {
    let (config, _) = Config::parse(&format!("[trace]\nregions = '{text}'\n")).expect("a filter");
    config.trace.regions
}

proptest! {
    #[test]
    fn written_settings_read_back_equal(config in any_config()) {
        let text = config.to_toml();
        let (again, notices) = Config::parse(&text).map_err(|errors| TestCaseError::fail(format!("{text}\n{errors}")))?;
        let finds_none = config.window.marker == Marker::Auto && config.trace.structure != Keep::All;
        prop_assert_eq!(notices.len(), usize::from(finds_none), "{:?}", notices);
        prop_assert_eq!(again, config);
    }

    #[test]
    fn arbitrary_text_returns(text in "\\PC{0,200}") {
        let _ = Config::parse(&text).map_err(|errors| errors.render("x"));
    }

    #[test]
    fn arbitrary_keys_and_values_return(
        key in prop::sample::select(keys::KEYS.iter().map(|key| (key.table, key.name)).collect::<Vec<_>>()),
        value in prop_oneof!["\\PC{0,30}", "'[^'\n]{0,30}'", "-?[0-9]{1,20}", "[0-9.e+-]{1,10}", Just("[{}]".to_owned()), Just("nan".to_owned())],
        many in any::<bool>(),
    ) {
        let (open, close) = if many { ("[[", "]]") } else { ("[", "]") };
        let head = if key.0.is_empty() { String::new() } else { format!("{open}{}{close}\n", key.0) };
        let _ = Config::parse(&format!("{head}{} = {value}\n", key.1)).map_err(|errors| errors.render("x"));
    }

    #[test]
    fn arbitrary_edits_return(text in "\\PC{0,60}", key in "\\PC{0,20}", value in "\\PC{0,20}") {
        for text in [text.as_str(), "group = [{name='a'}]\n[sampling]\n"] {
            if let Ok(edited) = Config::set(text, &key, &value) {
                let _ = Config::parse(&edited);
            }
        }
    }

    #[test]
    fn arbitrary_files_of_sites_return(text in "\\PC{0,60}", file in "\\PC{0,9}", tables in "\\PC{0,60}", sound in any::<bool>()) {
        let tables = if sound { "[[site]]\nmatch = 'MPI_Send'\n".to_owned() } else { tables };
        for text in [text.clone(), format!("sites = {}\n[sampling]\nseed = 7 # {text}\n", toml_edit::Value::from(file.as_str()))] {
            if let Ok(inlined) = Config::inline_sites(&text, |_| Ok(tables.clone())) {
                let read = Config::parse(&inlined).map(|(config, _)| (config.sampling.seed, config.sites.len()));
                // What was sound apart from its file is sound with it.
                let apart = Config::parse(&text.replacen("sites", "# sites", 1)).map(|(config, _)| config);
                if let (true, true, Ok(apart)) = (sound, text.starts_with("sites = "), apart) {
                    prop_assert_eq!(read, Ok((apart.sampling.seed, 1)), "{}", inlined);
                }
            }
        }
    }

    #[test]
    fn set_text_is_still_toml(table in "[a-z]{1,8}", name in "[a-z\" ü]{1,8}", value in "\\PC{0,20}") {
        prop_assume!(!name.trim().is_empty());
        let edited = Config::set("", &format!("{table}.{name}"), &value);
        if let Ok(edited) = edited {
            let syntax = |error: &ConfigError| matches!(error.cause, Cause::Syntax { .. });
            let broken = Config::parse(&edited).is_err_and(|errors| errors.0.iter().any(syntax));
            prop_assert!(!broken, "{}", edited);
        }
    }
}
