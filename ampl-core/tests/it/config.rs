//! Every rule of `JOB.toml`: what is refused, where, and with which advice.

use ampl_core::config::site::Site;
use ampl_core::config::*;
use ampl_core::units::{Rank, RankSet};

use crate::common::{accepted, one_error, refused};

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
    // Where nothing is said the share depends on what is recorded; by default it is the one in the table.
    let mut expected = Config::default();
    expected.agent.max_overhead = expected.max_overhead();
    assert_eq!(accepted(&text), (expected, vec![]));
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
                "site" => "[[site]]\nmatch = \"MPI_Send\"\n".to_owned(),
                table => format!("[{table}]\n"),
            };
            let extra = if *word == "ampl-2008" { "summaries = \"sampled\"\n" } else { "" };
            let text = format!("{head}{} = \"{word}\"\n{extra}", key.name);
            let default = key.default == format!("\"{word}\"");
            // A word other than the default must show somewhere.
            let (config, notices) = accepted(&text);
            let plain = accepted(&text.replace(&format!("{} = \"{word}\"\n", key.name), "")).0;
            assert!(default || !notices.is_empty() || config != plain, "{text}");
        }
    }
}

#[test]
fn every_setting_arrives() {
    let (config, notices) = accepted(
        "sampling.windows_per_update = 7\nsampling.update_mechanism = 'global'\nsampling.summaries = 'sampled'\n\
         sampling.sizing = 'ampl-2008'\nsampling.seed = 0x10\nsampling.selection = 'predictive'\n\
         window = { marker = 'mpi:mpi_allreduce@solve.c:12', every = 3 }\n\
         metric = [{ name = 'wall', role = 'guide' }, { name = 'bytes.sent', event = 'MPI_Send' },\n\
         { name = 'perf.cycles', optional = true }, { name = 'papi.PAPI_FP_INS' }, { name = 'calls', event = 'path:A>B' },\n\
         { name = 'residual', event = 'region:A' }]\n\
         [[group]]\nname = 'A'\nmembers = '0-3, 8'\nconfidence = 0.95\nerror = 0.05\npinned = '8'\n\
         [[group]]\nname = 'B'\nmembers = '4-7'\nsample_size = 2\npinned = '4,5'\n\
         [[group]]\nname = 'C'\nmembers = '9'\nerror_abs = 3\n\
         [trace]\nstructure = 'kept'\ntiming = 'all'\ncall_sites = false\ntime_error = 0.25\ntime_floor = '5us'\ncall_path_depth = 64\n\
         regions = '!tiny'\nregion_floor = '7ns'\n\
         [[site]]\nmatch = 'MPI_Waitsome'\ntrace = 'off'\n[[site]]\nmatch = 'a.c:3'\ntrace = 'aggregate'\n\
         [output]\ndir = 'runs/{time}-{app}'\nrecord = 'r/{user}.json'\nmode = '0755'\narguments = 'off'\njournal = '/scratch/j'\ncopy = '1.5s'\nrank_summaries = 'sample'\nverify = true\n\
         [agent]\nmax_overhead = '0.5%'\nmax_structure_overhead = 0.2\nmax_memory = '64 MiB'\n\
         [hooks]\nfunctions = true\nkokkos = true\nnvtx = true\nitt = true\nompt = true\nperfstubs = true\n\
         caliper = true\nnccl = true\nfilter = 'a, b*'\nfloor = '0us'\n",
    );
    assert_eq!(notices, vec![]);
    let group = |name: &str, members: &str, target, pinned: &str| Group {
        name: name.into(),
        members: RankSet::parse(members).unwrap().into(),
        target,
        pinned: RankSet::parse(pinned).unwrap(),
    };
    let bound = |confidence, error| Target::Bound { confidence, error };
    let metric = |quantity, event| Metric { quantity, event, guide: false, optional: false };
    let site = |matches, trace| SitePolicy { matches, trace, confidence: None, error: None };
    let filter = |text: &str| accepted(&format!("trace.regions = '{text}'")).0.trace.regions;
    let expected = Config {
        sampling: Sampling {
            windows_per_update: 7,
            update_mechanism: Mechanism::Global,
            summaries: Summaries::Sampled,
            selection: Selection::Predictive,
            sizing: Sizing::Ampl2008,
            floor: None,
            seed: 16,
            budget: None,
            partners: false,
        },
        window: Window {
            marker: Marker::Mpi { function: "MPI_Allreduce".into(), site: Site::parse("solve.c:12") },
            every: 3,
            max: 20_000,
        },
        metrics: vec![
            Metric { guide: true, ..metric(Quantity::Wall, Event::Window) },
            metric(Quantity::BytesSent, Event::Function("MPI_Send".into())),
            Metric { optional: true, ..metric(Quantity::Perf("cycles".into()), Event::Window) },
            metric(Quantity::Papi("PAPI_FP_INS".into()), Event::Window),
            metric(Quantity::Calls, Event::Path(vec!["A".into(), "B".into()])),
            metric(Quantity::User("residual".into()), Event::Region("A".into())),
        ],
        groups: vec![
            group("A", "0-3,8", bound(0.95, ErrorBound::Relative(0.05)), "8"),
            group("B", "4-7", Target::Static { ranks: 2 }, "4-5"),
            group("C", "9", bound(0.90, ErrorBound::Absolute(3.0)), ""),
        ],
        strata: Vec::new(),
        whole: Vec::new(),
        sites: vec![
            site(SiteMatch::Function("MPI_Waitsome".into()), SiteTrace::Off),
            site(SiteMatch::Site(Site::parse("a.c:3").unwrap()), SiteTrace::Aggregate),
        ],
        trace: Trace {
            structure: Keep::Kept,
            timing: Keep::All,
            time_error: 0.25,
            time_floor_ns: 5000,
            call_sites: false,
            call_path_depth: 64,
            addresses: true,
            exact_values: true,
            regions: filter("!tiny"),
            region_floor_ns: 7,
        },
        output: Output {
            dir: "runs/{time}-{app}".into(),
            record: Some("r/{user}.json".into()),
            mode: 0o755,
            arguments: Arguments::Off,
            journal: Journal::Path("/scratch/j".into()),
            copy_ns: Some(1_500_000_000),
            rank_summaries: RankSummaries::Sample,
            summary_error: 0.001,
            max_bytes: None,
            verify: true,
        },
        agent: Agent {
            client: Rank(0),
            max_overhead: Some(0.005),
            max_structure_overhead: 0.2,
            max_memory: Some(64 << 20),
        },
        hooks: Hooks {
            functions: true,
            kokkos: true,
            nvtx: true,
            itt: true,
            ompt: true,
            perfstubs: true,
            caliper: true,
            nccl: true,
            filter: filter("a,b*"),
            floor_ns: 0,
        },
    };
    assert_eq!(config, expected);
    assert_eq!(accepted(&expected.to_toml()).0, expected);
}

/// The record of a job whose lines have been looked up is a job file with the names that the user wrote.
#[test]
fn the_code_of_lines_is_a_comment() {
    let text = "[window]\nmarker = 'mpi:MPI_Send@a.c:1=app+0x1-0x2'\n\
                [[metric]]\nname = 'calls'\nevent = 'b.c:2=app+0x3-0x4,app+0x7-0x8'\nrole = 'guide'\n\
                [[site]]\nmatch = \"c.c:3=two\\nlines+0x5-0x6\"\n[[site]]\nmatch = 'app+0x9'\n";
    let written = accepted(text).0.to_toml();
    for line in [
        "marker = \"mpi:MPI_Send@a.c:1\" # app+0x1-0x2",
        "event = \"b.c:2\" # app+0x3-0x4,app+0x7-0x8",
        "match = \"c.c:3\" # two\\nlines+0x5-0x6",
        "match = \"app+0x9\"",
    ] {
        assert!(written.lines().any(|have| have == line), "{line}: {written}");
    }
    let again = accepted(&written).0;
    assert_eq!(again.metrics[0].event.name(), "b.c:2");
    assert_eq!(again.metrics[0].event, Event::Site(Site::parse("b.c:2").unwrap()), "without code");
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
    one_error(
        "[agent]\ncolour = 1",
        "2:1",
        "'agent.colour'",
        "valid here: client, max_overhead, max_structure_overhead, max_memory",
    );
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
    one_error("[trace]\ncall_path_depth = 65", "2:19", "65", "from 1 to 64");
    one_error("[[group]]\nname='g'\nmembers='0'\nerror_abs = '3%'", "4:13", "text", "a number");
    one_error("[[group]]\nname='g'\nmembers=0", "3:9", "'group.members' is a whole number", "text in quotes");
    one_error("[agent]\nmax_overhead = true", "2:16", "true or false", "\"5%\"");
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
    one_error("[[group]]\nname = 'g'\nmembers = '0-9'\nk = 3", "4:5", "'group.stratify'", "add stratify");
    one_error("[agent]\nmax_overhead = '0.5'", "2:16", "\"0.5\"", "without quotes");
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
    one_error("[trace]\ntime_floor = '99999999999s'", "2:14", "time_floor", "at most 18446744073s");
    for value in ["0", "1.0", "1", "-0.5", "'100%'", "'0%'", "'1'", "'x%'", "nan"] {
        one_error(&format!("[agent]\nmax_overhead = {value}"), "2:16", "max_overhead", "\"1%\"");
    }
    assert_eq!(accepted("[agent]\nmax_overhead = 0.02").0.agent.max_overhead, Some(0.02));
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
    for name in ["''", "' '", "\"a\\nb\""] {
        one_error(&format!("[[group]]\nname = {name}\nmembers = '0'"), "2:8", "'group.name'", "on one line");
    }
    // That is what ampl calls the ranks that are in no group.
    for name in ["'all'", "' all '"] {
        let text = format!("[[group]]\nname = {name}\nmembers = '0'");
        one_error(
            &text,
            "2:8",
            "'group.name' cannot be",
            "another name: ampl calls the ranks in no group \"all\"",
        );
    }
    accepted("[[group]]\nname = 'overall'\nmembers = '0'");
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
fn what_equals_this_version_is_accepted_in_silence() {
    let (config, notices) = accepted(
        "[sampling]\npartners = 'off'\n[[group]]\nname = 'g'\nmembers = '0'\nstratify = 'off'\n\
         [trace]\nstructure = 'all'\ntime_error = 0.1\ntime_floor = '0us'\n[output]\nrank_summaries = 'all'\nverify = false\n",
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
    let unrecorded = notice("[window]\nmarker = 'auto'\n[trace]\nstructure = 'kept'");
    assert!(unrecorded.contains("(job.toml:2:10): period:250ms is used"), "{unrecorded}");
    let (auto, notices) = accepted("[window]\nmarker = 'auto'");
    assert_eq!((auto.window.marker, notices.len()), (Marker::Auto, 0));
    let site = |more: &str| format!("[[site]]\nmatch = 'MPI_Send'\n{more}\n");
    let twice = notice(&(site("error = 0.1") + &site("confidence = 0.99")));
    assert!(twice.contains("already bounds the error of MPI_Send (job.toml:5:9): "), "{twice}");
    let elsewhere = site("error = 0.1") + "[[site]]\nmatch = 'MPI_Recv'\nerror = 0.2\n";
    for sound in [site("trace = 'off'") + &site("error = 0.1"), elsewhere] {
        assert_eq!(accepted(&sound).1, vec![]);
    }
    for unheard in [site("error = 0.1") + &site("trace = 'off'"), site("trace = 'off'") + &site("")] {
        assert!(notice(&unheard).contains("already says whether MPI_Send is traced"), "{}", notice(&unheard));
    }
    let (config, notices) = accepted(
        "[[metric]]\nname = 'mpi.time'\nrole = 'report'\n[[metric]]\nname = 'mpi.time'\nrole = 'guide'\n",
    );
    assert!(config.metrics.len() == 1 && config.metrics[0].guide, "{:?}", config.metrics);
    assert!(notices[0].render("job.toml").contains("the same name and event (job.toml:5:8)"), "{notices:?}");
}

#[test]
fn some_metric_always_guides() {
    let (config, notices) = accepted("[[metric]]\nname = 'calls'\n");
    let guides: Vec<_> = config.metrics.iter().filter(|metric| metric.guide).map(Metric::name).collect();
    assert_eq!((guides.join(" ").as_str(), notices.len()), ("mpi.time compute.time", 1));
    assert_eq!(notices[0].line, 1);
}

#[test]
fn metrics_have_a_limit() {
    let some = |count| (0..count).map(|at| format!("[[metric]]\nname = 'mine{at}'\n")).collect::<String>();
    let (config, _) = accepted(&some(MOST_METRICS));
    assert!(config.metrics.len() >= MOST_METRICS);
    one_error(&some(MOST_METRICS + 1), "2050:8", "'metric'", "1024");
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
    let listed = |text| Members::Listed(RankSet::parse(text).unwrap());
    assert_eq!(parsed("group.A.members", "0-1").groups[0].members, listed("0-1"));
    assert_eq!(parsed("group.A.members", "2").groups[0].members, listed("2"));
    assert_eq!(parsed("group.A.members", "*").groups[0].members, Members::Others);
    assert_eq!(parsed("group.1.sample_size", "2").groups[1].target, Target::Static { ranks: 2 });
    assert_eq!(parsed("group.B.c.sample_size", "2").groups[1].target, Target::Static { ranks: 2 });
    assert_eq!(parsed("agent.max_overhead", "2%").agent.max_overhead, Some(0.02));
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
    let two = Config::set("[[group]]\nname = 'Rest'\n", "group.all.error", "0.1").unwrap();
    assert!(refused(&two).contains("every rank in no other group is in group \"Rest\""));
    for key in ["", ".", "a..b", "sampling.", "sampling.x.y"] {
        assert!(Config::set("", key, "1").is_err(), "{key}");
    }
    assert!(Config::set("sampling = 3", "sampling.seed", "1").is_err());
    assert!(matches!(Config::set("[x", "sampling.seed", "1").unwrap_err().cause, Cause::Syntax { .. }));
    let edited = Config::set("", "samplng.seed", "1").unwrap();
    assert!(refused(&edited).contains("unknown key 'samplng'"));
    assert!(refused(&Config::set("", "nonsense", "x y").unwrap()).contains("unknown key 'nonsense'"));
}

#[test]
fn nothing_is_compared_where_nothing_is_recorded() {
    let text = "[trace]\nstructure = 'off'\n[output]\nverify = true\n";
    let error = Config::parse(text).unwrap_err().render("job.toml");
    assert!(error.contains("job.toml:4:10") && error.contains("structure = \"off\""), "{error}");
    assert!(accepted("[trace]\nstructure = 'off'\n[output]\nverify = false\n").1.is_empty());
}
