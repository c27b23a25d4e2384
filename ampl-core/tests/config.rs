//! Every rule of `JOB.toml`: what is refused, where, and with which advice.

use ampl_core::config::*;
use ampl_core::units::RankSet;

/// The lines printed for `text`, which must be wrong.
fn refused(text: &str) -> String {
    match Config::parse(text) {
        Err(errors) => errors.render("job.toml"),
        Ok((config, _)) => panic!("accepted: {text}\n{config:?}"),
    }
}

fn accepted(text: &str) -> (Config, Vec<Notice>) {
    Config::parse(text).unwrap_or_else(|errors| panic!("{text}\n{}", errors.render("job.toml")))
}

/// `text` gives exactly one error: at `place`, its message holding `what` and its advice `fix`.
#[track_caller]
fn one_error(text: &str, place: &str, what: &str, fix: &str) {
    let printed = refused(text);
    assert_eq!(printed.lines().count(), 1, "{printed}");
    assert!(printed.starts_with("ampl: "), "{printed}");
    let (said, advised) =
        printed.split_once(&format!(" (job.toml:{place}): ")).unwrap_or_else(|| panic!("{printed}"));
    assert!(said.contains(what), "{printed}");
    assert!(advised.contains(fix), "{printed}");
}

#[test]
fn an_empty_file_means_the_defaults() {
    assert_eq!(accepted(""), (Config::default(), vec![]));
    let (config, notices) = accepted("[sampling]\n[window]\n[trace]\n[output]\n[agent]\n");
    assert_eq!((config, notices), (Config::default(), vec![]));
}

#[test]
fn the_table_of_keys_states_the_defaults() {
    let mut text = String::new();
    for table in keys::TABLES.iter().filter(|table| !table.many) {
        text += &format!("[{}]\n", table.name);
        for key in keys::KEYS.iter().filter(|key| key.table == table.name && !key.default.is_empty()) {
            text += &format!("{} = {}\n", key.name, key.default);
        }
    }
    assert_eq!(accepted(&text), (Config::default(), vec![]));
    let bound = "[[group]]\nname = \"g\"\nmembers = \"0\"\n";
    let stated = format!("{bound}{}", group_defaults());
    assert_eq!(accepted(bound).0, accepted(&stated).0);
}

fn group_defaults() -> String {
    let stated = keys::KEYS.iter().filter(|key| key.table == "group" && !key.default.is_empty());
    stated.map(|key| format!("{} = {}\n", key.name, key.default)).collect()
}

#[test]
fn every_word_of_the_table_of_keys_is_understood_or_named_as_later() {
    for key in keys::KEYS {
        let keys::Shape::Word(words) = key.shape else { continue };
        for word in words {
            let head = match key.table {
                "group" => "[[group]]\nname = \"g\"\nmembers = \"0\"\n".to_owned(),
                "metric" => "[[metric]]\nname = \"calls\"\n".to_owned(),
                table => format!("[{table}]\n"),
            };
            let extra = if *word == "ampl-2008" { "summaries = \"sampled\"\n" } else { "" };
            let text = format!("{head}{} = \"{word}\"\n{extra}", key.name);
            let default = key.default == format!("\"{word}\"");
            match Config::parse(&text) {
                // A word other than the default must show somewhere.
                Ok((config, notices)) => {
                    let plain = accepted(&text.replace(&format!("{} = \"{word}\"\n", key.name), "")).0;
                    assert!(default || !notices.is_empty() || config != plain, "{text}");
                }
                Err(errors) => {
                    assert!(
                        matches!(errors.0[..], [ConfigError { cause: Cause::NotInThisVersion { .. }, .. }]),
                        "{text}"
                    );
                }
            }
        }
    }
}

#[test]
fn every_setting_arrives() {
    let (config, notices) = accepted(
        "sampling.windows_per_update = 7\nsampling.update_mechanism = 'global'\nsampling.summaries = 'sampled'\n\
         sampling.sizing = 'ampl-2008'\nsampling.seed = 0x10\nsampling.selection = 'predictive'\n\
         window = { marker = 'mpi:mpi_allreduce@solve.c:12', every = 3 }\n\
         metric = [{ name = 'wall', role = 'guide' }, { name = 'bytes.sent', event = 'MPI_Send' }]\n\
         [[group]]\nname = 'A'\nmembers = '0-3, 8'\nconfidence = 0.95\nerror = 0.05\npinned = '8'\n\
         [[group]]\nname = 'B'\nmembers = '4-7'\nsample_size = 2\npinned = '4,5'\n\
         [[group]]\nname = 'C'\nmembers = '9'\nerror_abs = 3\n\
         [trace]\ntiming = 'all'\ncall_sites = false\ntime_error = 0.10\ntime_floor = '5us'\ncall_path_depth = 1\n\
         [output]\ndir = 'runs/{time}-{app}'\njournal = '/scratch/j'\nrank_summaries = 'all'\nverify = false\n\
         [agent]\nmax_overhead = '0.5%'\n",
    );
    assert_eq!(notices, vec![]);
    let group = |name: &str, members: &str, target, pinned: &str| Group {
        name: name.into(),
        members: RankSet::parse(members).unwrap(),
        target,
        pinned: RankSet::parse(pinned).unwrap(),
    };
    let bound = |confidence, error| Target::Bound { confidence, error };
    let expected = Config {
        sampling: Sampling {
            windows_per_update: 7,
            update_mechanism: Mechanism::Global,
            summaries: Summaries::Sampled,
            selection: Selection::Predictive,
            sizing: Sizing::Ampl2008,
            floor: None,
            seed: 16,
        },
        window: Window {
            marker: Marker::Mpi { function: "MPI_Allreduce".into(), site: Some("solve.c:12".into()) },
            every: 3,
        },
        metrics: vec![
            Metric { quantity: Quantity::Wall, event: Event::Window, guide: true },
            Metric { quantity: Quantity::BytesSent, event: Event::Function("MPI_Send".into()), guide: false },
        ],
        groups: vec![
            group("A", "0-3,8", bound(0.95, ErrorBound::Relative(0.05)), "8"),
            group("B", "4-7", Target::Static { ranks: 2 }, "4-5"),
            group("C", "9", bound(0.90, ErrorBound::Absolute(3.0)), ""),
        ],
        trace: Trace { timing: Keep::All, call_sites: false },
        output: Output { dir: "runs/{time}-{app}".into(), journal: Journal::Path("/scratch/j".into()) },
        agent: Agent { max_overhead: 0.005 },
    };
    assert_eq!(config, expected);
    assert_eq!(accepted(&expected.to_toml()).0, expected);
}

#[test]
fn unknown_keys_name_the_nearest() {
    assert_eq!(
        refused("# job\n[sampling]\nwindows_per_updates = 3\n"),
        "ampl: unknown key 'sampling.windows_per_updates' (job.toml:3:1): did you mean 'windows_per_update'?"
    );
    one_error("[samplng]\n", "1:2", "unknown key 'samplng'", "'sampling'");
    one_error("sampling.sead = 1", "1:10", "'sampling.sead'", "'seed'");
    one_error("window = { evry = 1 }", "1:12", "'window.evry'", "'every'");
    one_error("[window]\n  seed = 1", "2:3", "'window.seed'", "'sampling.seed'");
    one_error("[agent]\ncolour = 1", "2:1", "'agent.colour'", "valid here: max_overhead");
    one_error("[[metric]]\nname = 'calls'\nrol = 'guide'", "3:1", "'metric.rol'", "'role'");
    one_error("'ä' = 1", "1:1", "'ä'", "valid here");
    one_error("[window.every]\nx = 1", "1:9", "'window.every' is a table", "a whole number");
}

#[test]
fn every_error_is_reported_in_the_order_of_the_text() {
    let text = "[window]\nevery = 0\n[sampling]\nseed = -1\nsumaries = 'census'\n[[group]]\nname = 'a'\nmembers = '0'\nerror = 2\n";
    let Err(errors) = Config::parse(text) else { panic!() };
    let lines: Vec<_> = errors.0.iter().map(|error| (error.line, error.key.as_str())).collect();
    assert_eq!(
        lines,
        [(2, "window.every"), (4, "sampling.seed"), (5, "sampling.sumaries"), (9, "group.error")]
    );
    assert_eq!(errors.0[2].nearest(), Some("summaries"));
}

#[test]
fn columns_count_characters() {
    let printed = refused("window = { marker = 'mpi:MPI_Send@é', every = 0 }");
    let places: Vec<_> = printed.lines().map(|line| line.split(['(', ')']).nth(1).unwrap()).collect();
    assert_eq!(places, ["job.toml:1:21", "job.toml:1:47"]);
}

#[test]
fn text_that_is_no_toml_names_the_place() {
    one_error("[sampling\nseed = 1", "1:10", "not valid TOML", "correct the line");
    one_error("[sampling]\nseed = 1\nseed = 2\n", "3:1", "not valid TOML", "");
    one_error("[sampling]\nsizing = neyman\n", "2:10", "not valid TOML", "quotes");
}

#[test]
fn wrong_types_say_what_is_wanted() {
    one_error("[sampling]\nseed = 'x'", "2:8", "'sampling.seed' is text", "a whole number");
    one_error("[sampling]\nseed = 1.5", "2:8", "a number with a fraction", "a whole number");
    one_error("[sampling]\nsizing = 1", "2:10", "a whole number", "text in quotes");
    one_error("[trace]\ncall_sites = 'yes'", "2:14", "text", "true or false");
    one_error("[[group]]\nname='g'\nmembers='0'\nerror = '3%'", "4:9", "text", "a number");
    one_error("[[group]]\nname='g'\nmembers=0", "3:9", "'group.members' is a whole number", "text in quotes");
    one_error("[agent]\nmax_overhead = true", "2:16", "true or false", "\"1%\"");
    one_error("sampling = 3", "1:1", "'sampling' is a whole number", "[sampling]");
    one_error("[[sampling]]\nseed = 1", "1:3", "an array of tables", "[sampling]");
    one_error("[metric]\nname = 'wall'", "1:2", "a table", "[[metric]]");
    one_error("group = [1]", "1:10", "a whole number", "[[group]]");
}

#[test]
fn unknown_words_name_the_nearest() {
    one_error("[sampling]\nupdate_mechanism = 'subsett'", "2:20", "\"subsett\"", "\"subset\"");
    one_error("[sampling]\nsummaries = 'all'", "2:13", "\"all\"", "census or sampled");
    one_error("[sampling]\nsizing = 'AMPL_2008'", "2:10", "\"AMPL_2008\"", "\"ampl-2008\"");
    one_error("[trace]\ntiming = 'keep'", "2:10", "\"keep\"", "\"kept\"");
    one_error("[output]\njournal = 'nodes'", "2:11", "\"nodes\"", "\"node\"");
    one_error("[output]\njournal = 'scratch'", "2:11", "\"scratch\"", "./DIRECTORY");
    one_error("[[metric]]\nname = 'calls'\nrole = 'guid'", "3:8", "\"guid\"", "\"guide\"");
    one_error("[[metric]]\nname = 'mpi.tme'", "2:8", "\"mpi.tme\"", "\"mpi.time\"");
    one_error("[[metric]]\nname = 'mpi.tme'\noptional = true", "2:8", "\"mpi.tme\"", "\"mpi.time\"");
}

#[test]
fn numbers_outside_their_range() {
    for value in ["0", "-1", "4294967296"] {
        one_error(&format!("[sampling]\nwindows_per_update = {value}"), "2:22", value, "from 1");
        one_error(&format!("[window]\nevery = {value}"), "2:9", value, "from 1");
    }
    one_error("[sampling]\nseed = -1", "2:8", "-1", "from 0");
    let group = "[[group]]\nname = 'g'\nmembers = '0-9'\n";
    for value in ["0", "1", "0.0", "1.0", "-0.1", "nan", "inf"] {
        one_error(&format!("{group}confidence = {value}"), "4:14", "'group.confidence'", "inside (0, 1)");
        one_error(&format!("{group}error = {value}"), "4:9", "'group.error'", "inside (0, 1)");
    }
    for value in ["0", "-3", "nan", "inf"] {
        one_error(&format!("{group}error_abs = {value}"), "4:13", "'group.error_abs'", "above zero");
    }
    for value in ["0", "-1", "99999999999"] {
        one_error(&format!("{group}sample_size = {value}"), "4:15", value, "from 1");
    }
    one_error(&format!("{group}sample_size = 11"), "4:15", "11", "to 10 (members)");
    one_error(&format!("{group}sample_size = 2\npinned = '0-2'"), "4:15", "2", "from 3 (pinned)");
    accepted(&format!("{group}sample_size = 3\npinned = '0-2'"));
    for value in ["1.0", "-0.1", "nan"] {
        one_error(&format!("[trace]\ntime_error = {value}"), "2:14", "time_error", "[0, 1)");
    }
    one_error("[trace]\ntime_floor = '5'", "2:14", "time_floor", "\"5us\"");
    for value in ["0", "1.0", "1", "-0.5", "'100%'", "'0%'", "'1'", "'x%'", "nan"] {
        one_error(&format!("[agent]\nmax_overhead = {value}"), "2:16", "max_overhead", "\"1%\"");
    }
    assert_eq!(accepted("[agent]\nmax_overhead = 0.02").0.agent.max_overhead, 0.02);
}

#[test]
fn groups_exclude_each_other() {
    let two = |name: &str, members: &str| {
        format!("[[group]]\nname = 'A'\nmembers = '0-9'\n[[group]]\nname = '{name}'\nmembers = '{members}'\n")
    };
    one_error(&two("B", "20,9"), "6:11", "rank 9 is already in group \"A\"", "one group");
    one_error(&two("A", "10"), "5:8", "\"A\" is declared twice", "line 2");
    accepted(&two("B", "10-12"));
}

#[test]
fn groups_need_name_and_members() {
    one_error("[[group]]\nmembers = '0'", "1:1", "'group.name' is missing", "name = ");
    one_error("[[group]]\nname = 'g'", "1:1", "'group.members' is missing", "members = ");
    one_error("[[group]]\nname = ''\nmembers = '0'", "2:8", "'group.name'", "a name");
    one_error("[[group]]\nname = 'g'\nmembers = ''", "3:11", "'group.members'", "ranks");
    one_error("[[group]]\nname = 'g'\nmembers = '0-x'", "3:11", "0-x", "neither a rank nor a range");
    one_error("[[group]]\nname = 'g'\nmembers = '5-2'", "3:11", "5-2", "runs backwards");
    one_error("[[group]]\nname = 'g'\nmembers = '0-3'\npinned = '3-4'", "4:10", "3-4", "'members'");
    one_error("[[metric]]\nrole = 'guide'", "1:1", "'metric.name' is missing", "name = ");
}

#[test]
fn bounds_exclude_each_other() {
    let group = "[[group]]\nname = 'g'\nmembers = '0-9'\n";
    one_error(
        &format!("{group}error = 0.1\nerror_abs = 5"),
        "5:13",
        "'group.error_abs' and 'group.error'",
        "one of them",
    );
    for bound in ["confidence = 0.9", "error = 0.1", "error_abs = 4"] {
        let name = bound.split(' ').next().unwrap();
        let what = format!("'group.{name}' and 'group.sample_size'");
        one_error(
            &format!("{group}sample_size = 3\n{bound}"),
            &format!("5:{}", name.len() + 4),
            &what,
            "one of them",
        );
    }
}

#[test]
fn illegal_combinations() {
    let sampling = |lines: &str| format!("[sampling]\n{lines}");
    one_error(
        &sampling("summaries = 'sampled'\nselection = 'retrospective'"),
        "3:13",
        "\"sampled\" and selection = \"retrospective\"",
        "census",
    );
    one_error(&sampling("sizing = 'ampl-2008'"), "2:10", "census", "sampled");
    one_error(&sampling("sizing = 'ampl-2008'\nsummaries = 'census'"), "2:10", "census", "sampled");
    let (config, notices) = accepted(&sampling("summaries = 'sampled'"));
    assert_eq!((config.sampling.selection, notices), (Selection::Predictive, vec![]));
    accepted(&sampling("summaries = 'sampled'\nselection = 'predictive'\nsizing = 'ampl-2008'"));
    accepted(&sampling("summaries = 'sampled'\nsizing = 'neyman'"));
}

#[test]
fn wall_of_a_window_cannot_guide_under_a_period() {
    let guide = "[[metric]]\nname = 'wall'\nrole = 'guide'\n";
    one_error(guide, "2:8", "'wall'", "mpi.time");
    one_error(&format!("[window]\nmarker = 'period:1s'\n{guide}"), "4:8", "'wall'", "mpi:");
    accepted(&format!("[window]\nmarker = 'mpi:MPI_Barrier'\n{guide}"));
    accepted(&format!("{guide}event = 'MPI_Send'\n"));
    one_error(
        &format!("[window]\nmarker = 'mpi:MPI_Bariere'\n{guide}"),
        "2:10",
        "MPI_Bariere",
        "MPI_Barrier",
    );
}

#[test]
fn markers_are_checked() {
    let marker = |text: &str| format!("[window]\nmarker = \"{text}\"\n");
    one_error(&marker("mpi:MPI_Alreduce"), "2:10", "MPI_Alreduce", "\"MPI_Allreduce\"");
    one_error(&marker("mpi:"), "2:10", "names no MPI function", "C name");
    one_error(&marker("mpi:MPI_Send@"), "2:10", "call site", "FILE:LINE");
    one_error(&marker("mpi:MPI_Send@file.c"), "2:10", "call site", "FILE:LINE");
    for period in ["period:0ms", "period:", "period:250", "period:-1s", "period:1h"] {
        one_error(&marker(period), "2:10", period, "period:250ms");
    }
    one_error(&marker("perod:1s"), "2:10", "perod:1s", "period:250ms");
    one_error(&marker("sometimes"), "2:10", "sometimes", "period:250ms or mpi:FUNCTION");
    for later in ["region:TIMESTEP", "pcontrol", "auto"] {
        one_error(&marker(later), "2:10", "not in this version", "period:250ms");
    }
    let site = |text| match accepted(&marker(text)).0.window.marker {
        Marker::Mpi { site, .. } => site,
        other => panic!("{other:?}"),
    };
    assert_eq!(site("mpi:MPI_Send@app+0x1f"), Some("app+0x1f".into()));
    assert_eq!(site("mpi:MPI_SEND"), None);
}

#[test]
fn what_this_version_lacks_is_never_ignored() {
    let group = "[[group]]\nname = 'g'\nmembers = '0-9'\n";
    let later = |text: &str, place: &str, fix: &str| one_error(text, place, "not in this version", fix);
    later("[sampling]\nbudget = '1MB/s'", "2:1", "group.error");
    later("[sampling]\npartners = 'keep'", "2:12", "pinned");
    later(&format!("{group}stratify = 'k-medoids'"), "4:12", "groups of their own");
    later(&format!("{group}k = 3"), "4:1", "groups of their own");
    later("sites = 'sites.toml'", "1:1", "follows its group");
    later("[[site]]\nmatch = 'MPI_Waitsome'\ntrace = 'on'", "1:1", "follows its group");
    later("[trace]\nstructure = 'off'", "2:13", "timing");
    later("[trace]\ncall_path_depth = 2", "2:19", "use 1");
    later("[output]\nrank_summaries = 'sample'", "2:18", "\"all\"");
    later("[output]\nverify = true", "2:10", "timing");
    later("[output]\njournal = 'off'", "2:11", "\"node\"");
    later("[[metric]]\nname = 'papi.PAPI_FP_INS'", "2:8", "optional = true");
    later("[[metric]]\nname = 'perf.cycles'", "2:8", "optional = true");
    later("[[metric]]\nname = 'my.residual'", "2:8", "optional = true");
    later("[[metric]]\nname = 'calls'\nevent = 'TIMESTEP'", "3:9", "\"*\"");
    later("[[metric]]\nname = 'calls'\nevent = 'path:A>B'", "3:9", "\"*\"");
    later("[[metric]]\nname = 'calls'\nevent = 'solve.c:12'", "3:9", "\"*\"");
    one_error("[[metric]]\nname = 'calls'\nevent = 'MPI_Isnd'", "3:9", "MPI_Isnd", "MPI_Isend");
}

#[test]
fn what_equals_this_version_is_accepted_in_silence() {
    let (config, notices) = accepted(
        "[sampling]\npartners = 'off'\n[[group]]\nname = 'g'\nmembers = '0'\nstratify = 'off'\n\
         [trace]\nstructure = 'kept'\ntime_error = 0\ntime_floor = '0us'\n[output]\nrank_summaries = 'all'\nverify = false\n",
    );
    assert_eq!(notices, vec![]);
    assert_eq!(config.groups.len(), 1);
}

#[test]
fn what_is_done_differently_is_noticed() {
    let notice = |text: &str| match &accepted(text).1[..] {
        [notice] => notice.render("job.toml"),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        notice("[sampling]\nselection = 'retrospective'"),
        "ampl: retrospective selection is not in this version (job.toml:2:13): predictive is used"
    );
    assert_eq!(accepted("[sampling]\nselection = 'retrospective'").0, Config::default());
    assert!(notice("[trace]\nstructure = 'all'").contains("(job.toml:2:13): calls of kept windows only"));
    let optional =
        "[[metric]]\nname = 'perf.cycles'\noptional = true\n[[metric]]\nname = 'calls'\nrole = 'guide'\n";
    assert!(notice(optional).contains("\"perf.cycles\" is not in this version (job.toml:2:8)"));
    assert_eq!(accepted(optional).0.metrics.len(), 1);
}

#[test]
fn some_metric_always_guides() {
    let (config, notices) = accepted("[[metric]]\nname = 'calls'\n");
    let guides: Vec<_> = config.metrics.iter().filter(|metric| metric.guide).map(Metric::name).collect();
    assert_eq!((guides, notices.len()), (vec!["mpi.time", "compute.time"], 1));
    assert_eq!(notices[0].line, 1);
}

#[test]
fn templates_of_the_run_directory() {
    for bad in ["", "{app}-{job}", "run}", "{{time}}"] {
        one_error(&format!("[output]\ndir = '{bad}'"), "2:7", "'output.dir'", "{jobid}");
    }
    accepted("[output]\ndir = '/runs/{jobid}'");
}

#[test]
fn set_edits_what_is_there_and_adds_what_is_not() {
    let text = "# kept\n[sampling]\nseed = 1 # why\n\n[[group]]\nname = 'A'\nmembers = '0-3'\n\n[[group]]\nname = 'B.c'\nmembers = '4-7'\n";
    let set = |key, value| Config::set(text, key, value).unwrap();
    let parsed = |key, value| accepted(&set(key, value)).0;
    assert!(set("sampling.seed", "7").starts_with("# kept\n[sampling]\nseed = 7"));
    assert_eq!(parsed("sampling.seed", "7").sampling.seed, 7);
    assert_eq!(parsed("window.every", "5").window.every, 5);
    assert_eq!(parsed("sampling.update_mechanism", "global").sampling.update_mechanism, Mechanism::Global);
    assert_eq!(
        parsed("sampling.update_mechanism", "\"global\"").sampling.update_mechanism,
        Mechanism::Global
    );
    assert_eq!(parsed("output.dir", "2026").output.dir, "2026");
    assert_eq!(parsed("group.A.members", "0-1").groups[0].members.len(), 2);
    assert_eq!(parsed("group.A.members", "2").groups[0].members.to_string(), "2");
    assert_eq!(parsed("group.1.sample_size", "2").groups[1].target, Target::Static { ranks: 2 });
    assert_eq!(parsed("group.B.c.sample_size", "2").groups[1].target, Target::Static { ranks: 2 });
    assert_eq!(parsed("agent.max_overhead", "2%").agent.max_overhead, 0.02);
    assert_eq!(
        accepted(&Config::set("metric = [{name='calls'}]", "metric.calls.role", "guide").unwrap()).1,
        vec![]
    );
    assert_eq!(Config::set("", "sampling.seed", "7").unwrap(), "[sampling]\nseed = 7\n");
}

#[test]
fn set_names_what_it_cannot_find() {
    let text = "[[group]]\nname = 'A'\nmembers = '0-3'\n";
    let error = Config::set(text, "group.B.error", "0.1").unwrap_err();
    assert_eq!(error.key, "group.error");
    assert_eq!(
        error.render_at("--set group.B.error"),
        "ampl: 'group.error' has no entry \"B\" (--set group.B.error): entries there: A"
    );
    assert!(Config::set(text, "group.error", "0.1").is_err());
    assert!(Config::set("", "metric.0.role", "guide").is_err());
    for key in ["", ".", "a..b", "sampling.", "sampling.x.y"] {
        assert!(Config::set("", key, "1").is_err(), "{key}");
    }
    assert!(Config::set("sampling = 3", "sampling.seed", "1").is_err());
    assert!(matches!(Config::set("[x", "sampling.seed", "1").unwrap_err().cause, Cause::Syntax { .. }));
    let edited = Config::set("", "samplng.seed", "1").unwrap();
    assert!(refused(&edited).contains("unknown key 'samplng'"));
    assert!(refused(&Config::set("", "nonsense", "x y").unwrap()).contains("unknown key 'nonsense'"));
}
