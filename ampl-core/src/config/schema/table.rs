//! Every key of `JOB.toml`, in the order of its documentation: one row each, and nothing of a key stands elsewhere
//! but its use.

use super::forms::{DURATION, MEMBERS, PATTERNS, PROGRAM, REGIONS};
use super::hooks::Hooks;
use super::output::Output;
use super::settings::{Settings, settings};
use super::{Key, Shape, Table};
use crate::config::form::{Flag, Maybe, OrAuto, Real, Text, Whole, ranks, words};
use crate::config::write::{code, quoted};
use crate::config::{
    Event, Keep, MOST_FRAMES, MOST_STRATA, Marker, Mechanism, Members, ProgramPattern, Quantity,
    RegionFilter, Selection, SiteMatch, SiteTrace, Sizing, Summaries, marker, rules,
};
use crate::units::{Rank, RankSet};

const COUNT: Whole = Whole {
    least: 1,
    most: u32::MAX as i64,
    range: "from 1 to 4294967295",
    wanted: "a whole number from 1 to 4294967295",
};

const fn inside(wanted: &'static str) -> Real {
    let fits = |value| 0.0 < value && value < 1.0;
    Real { shape: Shape::Fraction, fits, range: "inside (0, 1)", wanted }
}

const NAME: &str = "where NAME is a letter or `_`, then letters, digits and `_.:-`";

/// Every table.
pub const TABLES: &[Table] = &[
    Sampling::TABLE,
    Window::TABLE,
    MetricTable::TABLE,
    GroupTable::TABLE,
    SiteTable::TABLE,
    Trace::TABLE,
    Output::TABLE,
    Agent::TABLE,
    Hooks::TABLE,
];

/// Keys in no table. The only one names a file, whose tables take its place before the text is parsed.
const TOP: &[Key] = &[Key {
    shape: Shape::Text,
    ..Key::new("", "sites", "File with further [[site]] tables, and nothing else.")
        .range("a path, relative to the job file (in `AMPL_CONFIG` itself: to the working directory)")
        .examples("\"sites.toml\"", "\"absent.toml\"")
}];

const PARTS: [&[Key]; 10] = [
    TOP,
    Sampling::KEYS,
    Window::KEYS,
    MetricTable::KEYS,
    GroupTable::KEYS,
    SiteTable::KEYS,
    Trace::KEYS,
    Output::KEYS,
    Agent::KEYS,
    Hooks::KEYS,
];

/// Every key.
pub const KEYS: &[Key] = &joined();

const fn joined() -> [Key; number()] {
    let mut all = [PARTS[0][0]; number()];
    let (mut part, mut at) = (0, 0);
    while part < PARTS.len() {
        let mut key = 0;
        while key < PARTS[part].len() {
            all[at] = PARTS[part][key];
            (key, at) = (key + 1, at + 1);
        }
        part += 1;
    }
    all
}

const fn number() -> usize {
    let (mut part, mut keys) = (0, 0);
    while part < PARTS.len() {
        keys += PARTS[part].len();
        part += 1;
    }
    keys
}

settings! {
    [sampling] "How the client decides whose windows are kept." => pub struct Sampling {
        windows_per_update: u32 = 4, COUNT, "Windows between two directives of the client.",
            default("4"), examples("8", "0");
        update_mechanism: Mechanism = Mechanism::Subset,
            words! {
                "subset" => Mechanism::Subset, "exactly that many ranks, the same until the next update";
                "global" => Mechanism::Global,
                    "every rank flips a coin in every window, with that many kept on average";
            },
            "How a sample of the size asked for is drawn.",
            default("\"subset\""), examples("\"global\"", "\"subsets\"");
        summaries: Summaries = Summaries::Census,
            words! {
                "census" => Summaries::Census,
                    "every rank's, so that the size is right for the window at hand and totals are exact";
                "sampled" => Summaries::Sampled,
                    "those of drawn ranks only, as in the paper of 2008: less traffic, a wider margin";
            },
            "Whose window summaries reach the client.",
            default("\"census\""), examples("\"sampled\"", "\"censsus\"");
        selection: Selection = Selection::Retrospective,
            words! {
                "retrospective" => Selection::Retrospective,
                    "after the window, from what happened in it: its calls are buffered until then. Needs \
                     summaries = \"census\"; with partners = \"keep\" predictive is the default";
                "predictive" => Selection::Predictive,
                    "before the window, from earlier ones: where storing calls is what costs. The first update interval is \
                     decided when it is over, unless there is a budget or partners = \"keep\"";
            },
            "When the decision about a window is taken.",
            default("\"retrospective\""), examples("\"predictive\"", "\"predicted\"");
        sizing: Sizing = Sizing::Neyman,
            words! {
                "neyman" => Sizing::Neyman,
                    "stratified sampling with a margin for the variance being an estimate itself";
                "ampl-2008" => Sizing::Ampl2008,
                    "the paper's equation (8), corrected; needs summaries = \"sampled\"";
            },
            "Formula that prices the sample.",
            default("\"neyman\""), with("summaries = \"sampled\""), examples("\"ampl-2008\"", "\"neumann\"");
        floor: Option<u32> = None, Maybe(COUNT),
            "Fewest ranks that a bound may ask for. Where not given 16, or 10 with ampl-2008; with retrospective selection \
             2 for groups of up to 64 ranks, 8 from 256 on, in between a rank in 32.",
            examples("3", "0");
        seed: u64 = 42,
            Whole { least: 0, most: i64::MAX, range: "from 0 to 9223372036854775807", wanted: "a whole number from 0" },
            "Seed of every random choice: the same seed and the same summaries draw the same ranks.",
            default("42"), examples("7", "-1");
        budget: Option<f64> = None,
            // {} never writes an exponent, which a rate cannot have.
            Maybe(Text { read: marker::budget, write: |budget: &f64| Some(format!("\"{budget}B/s\"")) }),
            "Times that are kept take no more than this in the trace, of the whole job. Calls are priced by what they take coded, as far as it is known. The bound then attained is reported.",
            range("bytes per second with their unit: B/s, kB/s, MB/s, GB/s, KiB/s, MiB/s or GiB/s"),
            examples("\"1MB/s\"", "\"1MB\"");
        partners: bool = false,
            words! {
                "off" => false, "they are drawn or not like any other rank";
                "keep" => true,
                    "they are kept too, with the probability that follows from it; of the partners that a rank \
                     has had so far, the latest 64 count";
            },
            "What becomes of the ranks that drawn ranks exchange messages with.",
            default("\"off\""), examples("\"keep\"", "\"keeps\"");
    }
}

settings! {
    [window] "What delimits windows; collection is on or off for whole ones." => pub struct Window {
        marker: Marker = Marker::Period(Marker::AUTO_PERIOD_NS),
            Text { read: marker::marker, write: |marker| Some(quoted(&marker.to_string()) + &code(marker.site())) },
            "What closes a window.",
            default("\"period:250ms\""),
            forms(&[
                (
                    "period:DURATION",
                    "every so many ns, us, ms or s of a clock that the ranks share; needs no \
                     knowledge of the program",
                ),
                ("region:NAME", "the exit of that region, which the program names through the C API"),
                ("mpi:FUNCTION", "the entry of an MPI function, which then belongs to the next window"),
                (
                    "mpi:FUNCTION@SITE",
                    "only where it is called from SITE: FILE:LINE, or MODULE+0xOFFSET as decoded \
                     traces print it",
                ),
                ("pcontrol", "MPI_Pcontrol with any level but 0, which pauses, and 1, which resumes"),
                (
                    "auto",
                    "the program's time step, which ampl finds; windows before that, and of a program without \
                     one, last 250 ms",
                ),
            ]),
            examples("\"region:TIMESTEP\"", "\"mpi:MPI_Alreduce\"");
        every: u32 = 1, COUNT, "Markers per window.", default("1"), examples("10", "0");
        max: u32 = 20_000,
            Whole { least: 2, most: u32::MAX as i64, range: "from 2 to 4294967295", wanted: "a number of windows from 2" },
            "Windows of this length. The half as many behind them last twice as long, the next half four times, and so on, on \
             every rank alike: a job of any length has few windows.",
            default("20000"), examples("1000", "1");
    }
}

settings! {
    [[metric]]
    "One measured quantity over one kind of event. Without any, `mpi.time` and `compute.time` of whole \
     windows guide the sample; where none is a guide, they do besides."
    => pub(in crate::config) struct MetricTable {
        name: Option<Quantity> = None,
            Maybe(Text { read: rules::quantity, write: |quantity: &Quantity| Some(quoted(&quantity.name())) }),
            "What is measured (docs/metrics.md).",
            forms(&[
                ("wall", "time, ns; no guide of whole windows under a period, where every window is as long"),
                ("mpi.time", "time inside MPI, ns"),
                ("compute.time", "time outside MPI, ns; of windows and visits, for a call is inside MPI all the time"),
                ("bytes.sent", "bytes of send buffers"),
                ("bytes.received", "bytes of receive buffers"),
                ("calls", "MPI calls"),
                ("perf.COUNTER", "a counter of the Linux kernel, one of those listed below"),
                ("papi.EVENT", "a counter of PAPI by PAPI's name, as in papi.PAPI_FP_INS"),
                ("NAME", "any other name: a metric that the program declares through the C API"),
            ]),
            range(NAME), examples("\"bytes.sent\"", "\"mpi.tme\"");
        event: Event = Event::Window,
            Text { read: marker::event, write: |event| Some(quoted(&event.name()) + &code(event.site())) },
            "What one observation is.",
            default("\"*\""),
            forms(&[
                ("*", "the total of a rank's window"),
                ("FUNCTION", "one call of that MPI function"),
                ("FILE:LINE or MODULE+0xOFFSET", "one call made there; outputs call it as it is written here"),
                (
                    "region:NAME",
                    "one visit of that region; the bare NAME too, where no MPI function is called like it",
                ),
                ("path:OUTER>INNER", "one visit of the last region inside the others"),
            ]),
            examples("\"MPI_Allreduce\"", "\"MPI_Isnd\"");
        guide ("role"): bool = false,
            words! {
                "report" => false, "it is estimated from what was kept";
                "guide" => true, "the sample is large enough for the group's bound to hold for it";
            },
            "Whether the metric's bound sizes the sample.",
            default("\"report\""), examples("\"guide\"", "\"guid\"");
        optional: bool = false, Flag,
            "Leave the metric out where it cannot be measured, instead of refusing the job.",
            default("false"), examples("true", "\"yes\"");
    }
}

settings! {
    [[group]]
    "Ranks that are sampled for a common bound. Without any, the ranks of each program are a group, named after it, in a job \
     of several programs. Ranks in no group form the group `all`, whose \
     bound may be set, too: by a group without `members`, or `--set group.all.error=0.03`."
    => pub(in crate::config) struct GroupTable {
        name: Option<String> = None,
            Maybe(Text { read: |name| Ok(name.to_owned()), write: |name: &String| Some(quoted(name)) }),
            "What reports call the group; ranks in no group are called `all`.",
            range("not empty, unique in the file; `all` only for the group without `members`"),
            examples("\"Fluid\"", "\"\"");
        members: Members = Members::Others,
            MEMBERS,
            "Its ranks. No rank is in two groups. Ranks that the job does not have are left out, with one message when the \
             job starts; a group with none that it has is left out itself. So one job file serves jobs of any size.",
            range("ranks and ranges of ranks, as in `0-127,200`"),
            forms(&[
                ("*", "every rank in no other group, as without the key; for one group at most"),
                ("0-127,200", "these ranks"),
            ]),
            examples("\"0-127,200\"", "\"127-0\"");
        program: Option<ProgramPattern> = None,
            PROGRAM,
            "Its ranks are those that run a program of that name, as far as no other group lists them or names them first. A \
             group that no rank is of is left out, with one message when the job starts.",
            range("the name of the program's file, with `*` in place of any characters; its path where there is a `/`; instead \
             of `members`"),
            examples("\"ocean*\"", "\"\"");
        confidence: Option<f64> = None,
            Maybe(inside("a confidence inside (0, 1), such as 0.90 or \"90%\"")),
            "Confidence of the bound.",
            default("0.90"), examples("0.95", "95");
        error: Option<f64> = None,
            Maybe(inside("a relative error inside (0, 1), such as 0.08 or \"8%\"")),
            "Half-width of the confidence interval, relative to the mean.",
            default("0.08"), examples("0.03", "3");
        error_abs: Option<f64> = None,
            Maybe(Real {
                shape: Shape::Number,
                fits: |value| value > 0.0 && value.is_finite(),
                range: "above 0; instead of `error`",
                wanted: "a half-width above zero in the metric's unit",
            }),
            "Half-width in the metric's unit (ns, bytes, calls), where the mean may be near 0.",
            examples("2e6", "0");
        stratify: Option<bool> = None,
            Maybe(words! {
                "off" => false, "the group is one stratum: the default, unless selection = \"predictive\"";
                "k-medoids" => true,
                    "ranks that behave alike form strata, where that takes fewer ranks. With selection = \"predictive\" it is the \
                     default of groups with a bound, a few at most, and more ranks than are drawn at least";
            }),
            "Whether the group is divided while the job runs, so that ranks that behave alike are sampled apart.",
            examples("\"k-medoids\"", "\"kmedoid\"");
        k: Option<u32> = None,
            OrAuto(Whole {
                least: 1,
                most: MOST_STRATA as i64,
                range: "from 1 to 8, at most that of members; for `stratify`",
                wanted: rules::STRATA_WANTED,
            }),
            "Number of strata; as many as pay with `auto`, or where it is not given.",
            with("stratify = \"k-medoids\""), examples("3", "\"all\"");
        sample_size: Option<u32> = None,
            Maybe(Whole {
                least: 1,
                most: u32::MAX as i64,
                range: "from the number of pinned ranks, at least 1, to that of members, where these are listed; instead of a bound",
                wanted: "a number of ranks from 1",
            }),
            "Keep exactly that many ranks, pinned ones included, whatever their bound; fewer only where `sampling.budget` leaves no room. With `update_mechanism = \"global\"`, where coins decide, that many on average.",
            examples("3", "11");
        pinned: RankSet = RankSet::default(),
            Text { read: ranks, write: |ranks| (!ranks.is_empty()).then(|| quoted(&ranks.to_string())) },
            "Ranks that are always kept.",
            default("\"\""), range("ranks among the members"), examples("\"0-2\"", "\"10\"");
    }
}

settings! {
    [[site]] "What is stored of the calls of one function, or made at one place."
    => pub(in crate::config) struct SiteTable {
        matches ("match"): Option<SiteMatch> = None,
            Maybe(Text {
                read: marker::site_match,
                write: |matches: &SiteMatch| Some(quoted(&matches.name()) + &code(matches.site())),
            }),
            "Which calls the policy is for; the first that matches a call decides.",
            forms(&[
                ("FUNCTION", "every call of that MPI function"),
                ("FILE:LINE or MODULE+0xOFFSET", "every call made there"),
            ]),
            examples("\"MPI_Waitsome\"", "\"MPI_Waitsom\"");
        trace: SiteTrace = SiteTrace::On,
            words! {
                "on" => SiteTrace::On, "each call, and its times where its window is kept, as of any other";
                "off" => SiteTrace::Off,
                    "nothing, not even their totals by call site; they are gaps in the sequence, and window summaries have them";
                "aggregate" => SiteTrace::Aggregate,
                    "each call without its times; what they took together is added up by call site";
            },
            "What is stored of these calls.",
            default("\"on\""), examples("\"off\"", "\"aggregated\"");
        error: Option<f64> = None, Maybe(inside(rules::SITE_WANTED)),
            "Relative error bound of guides on these calls, instead of the group's; their mpi.time guides where nothing else does.",
            examples("0.03", "3");
        confidence: Option<f64> = None, Maybe(inside(rules::SITE_WANTED)),
            "Confidence of metrics on these calls, instead of the group's.",
            examples("0.95", "95");
    }
}

settings! {
    [trace] "What is stored of kept windows." => pub struct Trace {
        structure: Keep = Keep::All,
            words! {
                "all" => Keep::All, "of every rank's windows, each call with all its arguments";
                "kept" => Keep::Kept,
                    "of windows whose times may be kept: those drawn, or waiting to be decided";
                "off" => Keep::Off, "of none: summaries only, whatever `timing` says";
            },
            "Of which windows calls are recorded, without times.",
            default("\"all\""), examples("\"off\"", "\"al\"");
        timing: Keep = Keep::Kept,
            words! {
                "kept" => Keep::Kept, "of the sampled ranks' windows";
                "all" => Keep::All,
                    "of every rank's windows; nothing limits what ampl takes then, unless \
                     max_overhead is set";
                "off" => Keep::Off, "of none";
            },
            "Of which windows the times of calls are stored.",
            default("\"kept\""), examples("\"all\"", "\"keep\"");
        time_error: f64 = 0.1,
            Real {
                shape: Shape::Fraction,
                fits: |value| (0.0..1.0).contains(&value),
                range: "in [0, 1)",
                wanted: "a relative error in [0, 1), such as 0.10 or \"10%\"",
            },
            "Relative error of stored times: that of a duration; of a start, from the start of the first of the kept windows in a row; and of a gap before a call twice as much, and a bit, where calls do not overlap. 0 stores exact times.",
            default("0.1"), examples("0.05", "1.5");
        time_floor_ns ("time_floor"): u64 = 0,
            DURATION,
            "Durations and gaps up to this are not told apart.",
            default("\"0us\""), range("a duration with its unit: ns, us, ms or s"), examples("\"5us\"", "\"5\"");
        call_sites: bool = true, Flag, "Whether every call's site is stored with it.",
            default("true"), examples("false", "\"no\"");
        call_path_depth: u32 = 1,
            Whole {
                least: 1,
                most: MOST_FRAMES as i64,
                range: "from 1 to 64; above 1 calls are shown with their callers",
                wanted: "a number of functions from 1 to 64",
            },
            "How many functions tell call sites apart: the one that calls MPI and its callers, innermost first. A \
             function counts once, where it is innermost, however often and by whatever way it calls itself.",
            default("1"), examples("8", "0");
        addresses: bool = true,
            words! {
                "on" => true, "decoded calls have the addresses that the rank used";
                "off" => false, "decoded calls have `null` in their place, but where they name memory that MPI gives or takes";
            },
            "Whether it is stored where buffers were on each rank. Without that a program with ever new buffers takes no room \
             for them.",
            default("\"on\""), examples("\"off\"", "\"no\"");
        exact_values ("values"): bool = true,
            words! {
                "exact" => true, "each value";
                "aggregate" => false, "their mean, least and most";
            },
            "What is stored of the counts and displacements of each rank that `MPI_Allgatherv`, `MPI_Alltoallv`, `MPI_Alltoallw`, \
             `MPI_Gatherv` and `MPI_Scatterv` are passed.",
            default("\"exact\""), examples("\"aggregate\"", "\"aggregated\"");
        regions: RegionFilter = RegionFilter::default(), REGIONS,
            "Regions of the program whose entries and exits are recorded, by their names.",
            default("\"*\""), range(PATTERNS), examples("\"solve*,!tiny\"", "\"\"");
        region_floor_ns ("region_floor"): u64 = 0, DURATION,
            "Regions whose visits are this short on average are left out after 10,000 of them; their mean is taken again \
             every 10,000 visits until then.",
            default("\"0us\""), range("a duration with its unit: ns, us, ms or s"), examples("\"5us\"", "\"5\"");
    }
}

settings! {
    [agent] "What watching may cost." => pub struct Agent {
        client: Rank = Rank(0),
            Whole { least: 0, most: u32::MAX as i64, range: "a rank of the job", wanted: "a rank, from 0" },
            "The rank whose agent decides for all, beside its own work.",
            default("0"), examples("3", "-1");
        max_overhead: Option<f64> = None,
            Maybe(inside("a share between 0 and 1, in percent as \"1%\", or as a number without quotes, 0.01")),
            "Share of the job's time that ampl may take; a rank that takes more stores no times of calls, and says when. \
             Its calls go on being recorded, with the summaries of windows, up to `agent.max_structure_overhead`. Without \
             it, nothing is limited where `trace.timing = \"all\"` or `output.verify = true`.",
            default("\"1%\""), range("above 0 and below 1"), examples("\"0.5%\"", "1.5");
        max_structure_overhead: f64 = 0.1,
            inside("a share between 0 and 1, in percent as \"10%\", or as a number without quotes, 0.1"),
            "Share of a thread's processor time that recording calls without their times may take; a rank that takes more \
             only counts them, and the trace has how many and where. At least `agent.max_overhead`.",
            default("\"10%\""), range("above 0 and below 1"), examples("\"3%\"", "0");
        max_memory: Option<u64> = None,
            Maybe(Text { read: marker::size, write: |bytes: &u64| Some(format!("\"{bytes}B\"")) }),
            "Memory of a node that ampl may take for all ranks there, shared memory included. Times of calls are not stored \
             beyond half of it, calls beyond seven eighths; each rank takes some 200 kB whatever the limit is. Without it, \
             journals leave most of the node's shared memory free, and a quarter of all memory.",
            range("bytes with their unit: B, kB, MB, GB, KiB, MiB or GiB"),
            examples("\"64MiB\"", "\"64\"");
    }
}
