//! Every key of `JOB.toml`, in the order of its documentation.

use super::Key;
use super::Shape::{Boolean, Count, Fraction, Integer, Number, Text, Word};

const COUNT: &str = "from 1 to 4294967295";
const INSIDE: &str = "inside (0, 1)";
const RANKS: &str = "ranks and ranges of ranks, as in `0-127,200`";
const NAME: &str = "where NAME is a letter or `_`, then letters, digits and `_.:-`";

/// Every key.
pub const KEYS: &[Key] = &[
    Key::new("", "sites", Text, "File with further [[site]] tables, and nothing else.")
        .range("a path, relative to the job file (in `AMPL_CONFIG` itself: to the working directory)")
        .examples("\"sites.toml\"", "\"absent.toml\""),
    Key::new("sampling", "windows_per_update", Integer, "Windows between two directives of the client.")
        .default("4")
        .range(COUNT)
        .examples("8", "0"),
    Key::new(
        "sampling",
        "update_mechanism",
        Word(&["subset", "global"]),
        "How a sample of the size asked for is drawn.",
    )
    .default("\"subset\"")
    .forms(&[
        ("subset", "exactly that many ranks, the same until the next update"),
        ("global", "every rank flips a coin in every window, with that many kept on average"),
    ])
    .examples("\"global\"", "\"subsets\""),
    Key::new(
        "sampling",
        "summaries",
        Word(&["census", "sampled"]),
        "Whose window summaries reach the client.",
    )
    .default("\"census\"")
    .forms(&[
        ("census", "every rank's, so that the size is right for the window at hand and totals are exact"),
        ("sampled", "those of drawn ranks only, as in the paper of 2008: less traffic, a wider margin"),
    ])
    .examples("\"sampled\"", "\"censsus\""),
    Key::new(
        "sampling",
        "selection",
        Word(&["retrospective", "predictive"]),
        "When the decision about a window is taken.",
    )
    .default("\"retrospective\"")
    .forms(&[
        (
            "retrospective",
            "after the window, from what happened in it: its calls are buffered until then. Needs \
             summaries = \"census\"; with partners = \"keep\" predictive is the default",
        ),
        (
            "predictive",
            "before the window, from earlier ones: where storing calls is what costs. The first update interval is \
             decided when it is over, unless there is a budget or partners = \"keep\"",
        ),
    ])
    .examples("\"predictive\"", "\"predicted\""),
    Key::new("sampling", "sizing", Word(&["neyman", "ampl-2008"]), "Formula that prices the sample.")
        .default("\"neyman\"")
        .forms(&[
            ("neyman", "stratified sampling with a margin for the variance being an estimate itself"),
            ("ampl-2008", "the paper's equation (8), corrected; needs summaries = \"sampled\""),
        ])
        .with("summaries = \"sampled\"")
        .examples("\"ampl-2008\"", "\"neumann\""),
    Key::new(
        "sampling",
        "floor",
        Integer,
        "Fewest ranks that a bound may ask for. Where not given 16, or 10 with ampl-2008; with retrospective selection \
         2 for groups of up to 64 ranks, 8 from 256 on, in between a rank in 32.",
    )
    .range(COUNT)
    .examples("3", "0"),
    Key::new(
        "sampling",
        "seed",
        Integer,
        "Seed of every random choice: the same seed and the same summaries draw the same ranks.",
    )
    .default("42")
    .range("from 0 to 9223372036854775807")
    .examples("7", "-1"),
    Key::new(
        "sampling",
        "budget",
        Text,
        "Times that are kept take no more than this in the trace, of the whole job. Calls are priced by what they take coded, as far as it is known. The bound then attained is reported.",
    )
    .range("bytes per second with their unit: B/s, kB/s, MB/s, GB/s, KiB/s, MiB/s or GiB/s")
    .examples("\"1MB/s\"", "\"1MB\""),
    Key::new(
        "sampling",
        "partners",
        Word(&["off", "keep"]),
        "What becomes of the ranks that drawn ranks exchange messages with.",
    )
    .default("\"off\"")
    .forms(&[
        ("off", "they are drawn or not like any other rank"),
        (
            "keep",
            "they are kept too, with the probability that follows from it; of the partners that a rank \
             has had so far, the latest 64 count",
        ),
    ])
    .examples("\"keep\"", "\"keeps\""),
    Key::new("window", "marker", Text, "What closes a window.")
        .default("\"period:250ms\"")
        .forms(&[
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
                "the program's time step; not found in this version, which says so and takes \
                 period:250ms",
            ),
        ])
        .examples("\"region:TIMESTEP\"", "\"mpi:MPI_Alreduce\""),
    Key::new("window", "every", Integer, "Markers per window.").default("1").range(COUNT).examples("10", "0"),
    Key::new("metric", "name", Text, "What is measured (docs/metrics.md).")
        .forms(&[
            ("wall", "time, ns; no guide of whole windows under a period, where every window is as long"),
            ("mpi.time", "time inside MPI, ns"),
            ("compute.time", "time outside MPI, ns; of windows and visits, for a call is inside MPI all the time"),
            ("bytes.sent", "bytes of send buffers"),
            ("bytes.received", "bytes of receive buffers"),
            ("calls", "MPI calls"),
            ("perf.COUNTER", "a counter of the Linux kernel, one of those listed below"),
            ("papi.EVENT", "a counter of PAPI by PAPI's name, as in papi.PAPI_FP_INS"),
            ("NAME", "any other name: a metric that the program declares through the C API"),
        ])
        .range(NAME)
        .examples("\"bytes.sent\"", "\"mpi.tme\""),
    Key::new("metric", "event", Text, "What one observation is.")
        .default("\"*\"")
        .forms(&[
            ("*", "the total of a rank's window"),
            ("FUNCTION", "one call of that MPI function"),
            ("FILE:LINE or MODULE+0xOFFSET", "one call made there; outputs call it as it is written here"),
            (
                "region:NAME",
                "one visit of that region; the bare NAME too, where no MPI function is called like it",
            ),
            ("path:OUTER>INNER", "one visit of the last region inside the others"),
        ])
        .examples("\"MPI_Allreduce\"", "\"MPI_Isnd\""),
    Key::new("metric", "role", Word(&["report", "guide"]), "Whether the metric's bound sizes the sample.")
        .default("\"report\"")
        .forms(&[
            ("report", "it is estimated from what was kept"),
            ("guide", "the sample is large enough for the group's bound to hold for it"),
        ])
        .examples("\"guide\"", "\"guid\""),
    Key::new(
        "metric",
        "optional",
        Boolean,
        "Leave the metric out where it cannot be measured, instead of refusing the job.",
    )
    .default("false")
    .examples("true", "\"yes\""),
    Key::new("group", "name", Text, "What reports call the group; ranks in no group are called `all`.")
        .range("not empty, unique in the file; `all` only for the group without `members`")
        .examples("\"Fluid\"", "\"\""),
    Key::new(
        "group",
        "members",
        Text,
        "Its ranks. No rank is in two groups. Ranks that the job does not have are left out, with one message when the \
         job starts; a group with none that it has is left out itself. So one job file serves jobs of any size.",
    )
        .range(RANKS)
        .forms(&[
            ("*", "every rank in no other group, as without the key; for one group at most"),
            ("0-127,200", "these ranks"),
        ])
        .examples("\"0-127,200\"", "\"127-0\""),
    Key::new("group", "confidence", Fraction, "Confidence of the bound.")
        .default("0.90")
        .range(INSIDE)
        .examples("0.95", "95"),
    Key::new("group", "error", Fraction, "Half-width of the confidence interval, relative to the mean.")
        .default("0.08")
        .range(INSIDE)
        .examples("0.03", "3"),
    Key::new(
        "group",
        "error_abs",
        Number,
        "Half-width in the metric's unit (ns, bytes, calls), where the mean may be near 0.",
    )
    .range("above 0; instead of `error`")
    .examples("2e6", "0"),
    Key::new(
        "group",
        "stratify",
        Word(&["off", "k-medoids"]),
        "Whether the group is divided while the job runs, so that ranks that behave alike are sampled apart.",
    )
    .forms(&[
        ("off", "the group is one stratum: the default, unless selection = \"predictive\""),
        (
            "k-medoids",
            "ranks that behave alike form strata, where that takes fewer ranks. With selection = \"predictive\" it is the \
             default of groups with a bound, a few at most, and more ranks than are drawn at least",
        ),
    ])
    .examples("\"k-medoids\"", "\"kmedoid\""),
    Key::new("group", "k", Count, "Number of strata; as many as pay with `auto`, or where it is not given.")
        .range("from 1 to 8, at most that of members; for `stratify`")
        .with("stratify = \"k-medoids\"")
        .examples("3", "\"all\""),
    Key::new(
        "group",
        "sample_size",
        Integer,
        "Keep exactly that many ranks, pinned ones included, whatever their bound; fewer only where `sampling.budget` leaves no room. With `update_mechanism = \"global\"`, where coins decide, that many on average.",
    )
    .range("from the number of pinned ranks, at least 1, to that of members, where these are listed; instead of a bound")
    .examples("3", "11"),
    Key::new("group", "pinned", Text, "Ranks that are always kept.")
        .default("\"\"")
        .range("ranks among the members")
        .examples("\"0-2\"", "\"10\""),
    Key::new("site", "match", Text, "Which calls the policy is for; the first that matches a call decides.")
        .forms(&[
            ("FUNCTION", "every call of that MPI function"),
            ("FILE:LINE or MODULE+0xOFFSET", "every call made there"),
        ])
        .examples("\"MPI_Waitsome\"", "\"MPI_Waitsom\""),
    Key::new(
        "site",
        "trace",
        Word(&["on", "off", "aggregate"]),
        "What is stored of these calls.",
    )
    .default("\"on\"")
    .forms(&[
        ("on", "each call, and its times where its window is kept, as of any other"),
        (
            "off",
            "nothing, not even their totals by call site; they are gaps in the sequence, and window summaries have them",
        ),
        ("aggregate", "each call without its times; what they took together is added up by call site"),
    ])
    .examples("\"off\"", "\"aggregated\""),
    Key::new(
        "site",
        "error",
        Fraction,
        "Relative error bound of guides on these calls, instead of the group's; their mpi.time guides where nothing else does.",
    )
    .range(INSIDE)
    .examples("0.03", "3"),
    Key::new("site", "confidence", Fraction, "Confidence of metrics on these calls, instead of the group's.")
        .range(INSIDE)
        .examples("0.95", "95"),
    Key::new(
        "trace",
        "structure",
        Word(&["all", "kept", "off"]),
        "Of which windows calls are recorded, without times.",
    )
    .default("\"all\"")
    .forms(&[
        ("all", "of every rank's windows, each call with all its arguments"),
        ("kept", "of windows whose times may be kept: those drawn, or waiting to be decided"),
        ("off", "of none: summaries only, whatever `timing` says"),
    ])
    .examples("\"off\"", "\"al\""),
    Key::new(
        "trace",
        "timing",
        Word(&["kept", "all", "off"]),
        "Of which windows the times of calls are stored.",
    )
    .default("\"kept\"")
    .forms(&[
        ("kept", "of the sampled ranks' windows"),
        (
            "all",
            "of every rank's windows; nothing limits what ampl takes then, unless \
                 max_overhead is set",
        ),
        ("off", "of none"),
    ])
    .examples("\"all\"", "\"keep\""),
    Key::new(
        "trace",
        "time_error",
        Fraction,
        "Relative error of stored times: that of a duration; of a start, from the start of the first of the kept windows in a row; and of a gap before a call twice as much, and a bit, where calls do not overlap. 0 stores exact times.",
    )
    .default("0.1")
    .range("in [0, 1)")
    .examples("0.05", "1.5"),
    Key::new("trace", "time_floor", Text, "Durations and gaps up to this are not told apart.")
        .default("\"0us\"")
        .range("a duration with its unit: ns, us, ms or s")
        .examples("\"5us\"", "\"5\""),
    Key::new("trace", "call_sites", Boolean, "Whether every call's site is stored with it.")
        .default("true")
        .examples("false", "\"no\""),
    Key::new(
        "trace",
        "call_path_depth",
        Integer,
        "How many functions tell call sites apart: the one that calls MPI and its callers, innermost first. A \
         function counts once, where it is innermost, however often and by whatever way it calls itself.",
    )
    .default("1")
    .range("from 1 to 64; above 1 the stack is walked at every call")
    .examples("8", "0"),
    Key::new("output", "dir", Text, "Run directory; a name already taken gets `-2`, and -o goes before it.")
        .default("\"ampl-{app}-{jobid}-{time}\"")
        .range("a path in which {app}, {jobid} and {time} are replaced")
        .examples("\"runs/{jobid}\"", "\"run-{job}\""),
    Key::new(
        "output",
        "journal",
        Text,
        "Where every rank's journal lives until all are merged in MPI_Finalize. Directories that ampl makes for them go \
         with the last run that uses them.",
    )
    .default("\"node\"")
    .forms(&[
        ("node", "memory of the node, or its temporary directory"),
        ("run", "the run directory"),
        ("PATH", "that directory; with a `/`, so that no slip becomes a directory"),
        ("off", "memory of the process: a job that dies leaves nothing to recover"),
    ])
    .examples("\"run\"", "\"nodes\""),
    Key::new(
        "output",
        "rank_summaries",
        Word(&["all", "sample", "off"]),
        "Whose per-rank vectors of window summaries are stored, for `strata`, `plan` and `simulate`.",
    )
    .default("\"all\"")
    .forms(&[("all", "every rank's"), ("sample", "the sampled ranks'"), ("off", "nobody's")])
    .examples("\"sample\"", "\"none\""),
    Key::new(
        "output",
        "verify",
        Boolean,
        "Record everything and mark what would have been kept, to check bounds against the truth.",
    )
    .default("false")
    .examples("true", "1"),
    Key::new("agent", "client", Integer, "The rank whose agent decides for all, beside its own work.")
        .default("0")
        .range("a rank of the job")
        .examples("3", "-1"),
    Key::new(
        "agent",
        "max_overhead",
        Fraction,
        "Share of the job's time that ampl may take; a rank that takes more steps down: no times \
         of calls, no calls but summaries, nothing but counts; and says when. Without it, nothing is limited where \
         `trace.timing = \"all\"` or `output.verify = true`.",
    )
    .default("\"1%\"")
    .range("above 0 and below 1")
    .examples("\"0.5%\"", "1.5"),
];
